// These tests check the shipped hooks, and some user's hooks, on sends and receives.

#include <algorithm>
#include <cstdlib>

#include "support.hpp"
#include "transports.hpp"

namespace chorale {
namespace {

using namespace test;

/// Sends `in` from rank 0 to rank 1, which receives it into `out`, over 2 blocks of 1 and of 8 threads, with
/// tiles of 512 bytes.
template <class T, class Produce, class Consume, class In, class Out>
void move(const Leg& shape, uint64_t n, const std::vector<In>& in, std::vector<Out>& out,
          const Produce& produce, const Consume& consume) {
  const std::vector<Out> before = out;
  for (const uint32_t threads : {8u, 1u}) {
    out = before;
    run_local(2, [&](World& world) {
      const auto transport = direct_rendezvous(world, rings(2, 2, 576));
      Leg message = shape;
      message.in = in.data();
      message.out = out.data();
      message.bytes = n * sizeof(T);
      if (world.rank() == 0) {
        send<T>(*transport, message, 1, produce, {2, threads});
      } else {
        recv<T>(*transport, message, 0, consume, {2, threads});
      }
    });
  }
}

template <class T>
class HooksOf : public testing::Test {};
using Types = testing::Types<float, bf16, int64_t, uint8_t, fp8_e4m3>;
TYPED_TEST_SUITE(HooksOf, Types);

TYPED_TEST(HooksOf, ScaleOnTheWayOut) {
  using T = TypeParam;
  for (const uint64_t n : {1, 333}) {
    const auto in = message_of<T>(1, n);
    std::vector<T> out(n), expected(n);
    move<T>({}, n, in, out, ScaleProduce<T>{Accumulator<T>(2)}, CopyConsume{});
    for (uint64_t at = 0; at < n; ++at)
      expected[at] = narrow<T>(Accumulator<T>(widen(in[at]) * Accumulator<T>(2)));
    EXPECT_MESSAGE(out, expected);
  }
}

TYPED_TEST(HooksOf, AddOnTheWayIn) {
  using T = TypeParam;
  const uint64_t n = 1001;
  const auto in = message_of<T>(1, n);
  std::vector<T> out(n), expected(n);
  move<T>({}, n, in, out, CopyProduce{}, AddConsume<T>{Accumulator<T>(1)});
  for (uint64_t at = 0; at < n; ++at)
    expected[at] = narrow<T>(Accumulator<T>(widen(in[at]) + Accumulator<T>(1)));
  EXPECT_MESSAGE(out, expected);
}

TYPED_TEST(HooksOf, Accumulate) {
  using T = TypeParam;
  const uint64_t n = 777;
  const auto in = message_of<T>(1, n), own = message_of<T>(2, n);
  const auto check = [&](auto op) {
    std::vector<T> out = own, expected(n);
    move<T>({}, n, in, out, CopyProduce{}, AccumulateConsume<decltype(op)::value, T>{});
    for (uint64_t at = 0; at < n; ++at) {
      expected[at] = narrow<T>(combine<decltype(op)::value>(widen(own[at]), widen(in[at])));
    }
    EXPECT_MESSAGE(out, expected);
  };
  check(OpTag<ReduceOp::sum>{});
  check(OpTag<ReduceOp::max>{});
}

TYPED_TEST(HooksOf, Transpose) {
  using T = TypeParam;
  const uint32_t rows = 37, cols = 19;
  const auto in = message_of<T>(3, rows * 25);  // rows are 25 elements apart
  std::vector<T> out(rows * cols), expected(rows * cols);
  Leg shape;
  shape.rows = rows;
  shape.cols = cols;
  shape.in_strides = {25, 1};
  move<T>(shape, rows * cols, in, out, TransposeProduce<T>{}, CopyConsume{});
  for (uint32_t row = 0; row < rows; ++row) {
    for (uint32_t col = 0; col < cols; ++col) expected[col * rows + row] = in[row * 25 + col];
  }
  EXPECT_MESSAGE(out, expected);
}

TYPED_TEST(HooksOf, WithoutStridesRowsLieOneBehindTheOther) {
  using T = TypeParam;
  const uint32_t rows = 9, cols = 5;
  const auto in = message_of<T>(3, rows * cols);
  std::vector<T> turned(rows * cols), expected(rows * cols);
  for (uint32_t row = 0; row < rows; ++row) {
    for (uint32_t col = 0; col < cols; ++col) expected[col * rows + row] = in[row * cols + col];
  }
  Leg shape;
  shape.rows = rows;
  shape.cols = cols;
  move<T>(shape, rows * cols, in, turned, TransposeProduce<T>{}, CopyConsume{});
  EXPECT_MESSAGE(turned, expected);
  turned.assign(rows * cols, T{});
  shape.tile_bytes = rows * sizeof(T);
  move<T>(shape, rows * cols, in, turned, TransposeTiles<T>{}, CopyConsume{});
  EXPECT_MESSAGE(turned, expected);

  std::vector<T> gathered(rows * cols), backwards;
  std::vector<int32_t> index(rows);
  for (uint32_t row = 0; row < rows; ++row) {
    index[row] = int32_t(rows - 1 - row);
    backwards.insert(backwards.end(), in.begin() + index[row] * int64_t(cols),
                     in.begin() + (index[row] + 1) * int64_t(cols));
  }
  shape.tile_bytes = 0;
  move<T>(shape, rows * cols, in, gathered, GatherProduce<T, int32_t>{index.data()}, CopyConsume{});
  EXPECT_MESSAGE(gathered, backwards);
}

TYPED_TEST(HooksOf, Gather) {
  using T = TypeParam;
  const std::vector<int32_t> index = {5, 0, 0, 9, 3};
  const uint32_t cols = 101;
  const auto in = message_of<T>(4, 10 * cols);
  std::vector<T> out(index.size() * cols), expected;
  Leg shape;
  shape.cols = cols;
  shape.in_strides = {cols, 1};
  move<T>(shape, out.size(), in, out, GatherProduce<T, int32_t>{index.data()}, CopyConsume{});
  for (const int32_t row : index) {
    expected.insert(expected.end(), in.begin() + row * int64_t(cols), in.begin() + (row + 1) * int64_t(cols));
  }
  EXPECT_MESSAGE(out, expected);
}

template <class From, class F>
void quantised() {
  const uint64_t n = 1003;
  const auto in = message_of<From>(5, n);
  std::vector<float> out(n);
  const float scale = 0.25f;
  move<F>({}, n, in, out, QuantizeFp8<From, F>{&scale}, DequantizeFp8<float, F>{&scale});
  std::vector<float> expected(n);
  for (uint64_t at = 0; at < n; ++at)
    expected[at] = widen(narrow<F>(clamp_to<F>(float(widen(in[at])) / scale))) * scale;
  EXPECT_MESSAGE(out, expected);
}

TEST(Hooks, Quantise) {
  quantised<float, fp8_e4m3>();
  quantised<bf16, fp8_e4m3>();
  quantised<f16, fp8_e5m2>();
}

TEST(Hooks, QuantiseByBlocks) {
  using Block = Fp8Block<>;
  const uint64_t n = 128 * 10 + 50, blocks = 11;
  std::vector<float> in(n), out(n + 1, -1), expected(n);
  for (uint64_t at = 0; at < n; ++at)
    in[at] = float(int(mix(at) % 2001) - 1000) * (at / 128 % 2 ? 0.001f : 4.0f);
  Leg shape;
  shape.elem = sizeof(Block);
  move<Block>(shape, blocks, in, out, QuantizeFp8Blocks<float>{n}, DequantizeFp8Blocks<float>{n});
  for (uint64_t block = 0; block < blocks; ++block) {
    float largest = 0;
    const uint64_t end = std::min(n, (block + 1) * 128);
    for (uint64_t at = block * 128; at < end; ++at) largest = std::max(largest, std::abs(in[at]));
    const float scale = largest / 448.0f;
    for (uint64_t at = block * 128; at < end; ++at) {
      expected[at] = widen(narrow<fp8_e4m3>(clamp_to<fp8_e4m3>(in[at] / scale))) * scale;
      // There are three bits of mantissa, so the error is half a unit in the last place of the largest value.
      EXPECT_NEAR(expected[at], in[at], largest / 16) << at;
    }
  }
  EXPECT_MESSAGE(out, expected);
  EXPECT_EQ(out[n], -1) << "written behind the message";
}

/// Leg::elem says what must not be cut. Hooks of values count these elements, however they are sent.
TEST(Hooks, CountWhatTheyMakeWhateverAnElementIs) {
  constexpr uint32_t cols = 3;
  const uint64_t rows = 111;
  const auto in = message_of<float>(1, rows * cols);
  std::vector<float> expected(in);
  for (float& value : expected) value = value * 2 + 1;
  const auto check = [&](const char* what, const auto& kernel, uint64_t packet_bytes = 2048) {
    run_local(3, [&](World& world) {
      const auto transport = direct_rendezvous(world, with_packets(rings(2, 2, 112), packet_bytes));
      const EndpointTable table = transport->table();
      std::vector<float> out(in.size());
      Leg message = leg_of<float>(in.data(), out.data(), in.size());
      message.elem = cols * sizeof(float);
      message.cols = cols;
      message.signal_bytes = 48;
      launch(*transport, Call{[&](const Group& group, const Deadline& deadline) {
        return kernel(group, table, share_of(message, group.id, group.count), deadline);
      }},
             {2});
      if (world.rank() == 1) {
        EXPECT_MESSAGE(out, expected) << what;
      }
    });
  };
  const ScaleProduce<float> twice{2.0f};
  const AddConsume<float> and_one{1.0f};
  check("tiles",
        [&](const Group& group, const EndpointTable& table, const Leg& share, const Deadline& deadline) {
          if (table.self == 0) return send_tiles<float>(group, table.at(1, group.id), share, twice, deadline);
          if (table.self == 2) return Stop::none;
          return recv_tiles<float>(group, table.at(0, group.id), share, and_one, deadline);
        });
  check("packets",
        [&](const Group& group, const EndpointTable& table, const Leg& share, const Deadline& deadline) {
          if (table.self == 0)
            return send_packets<LL16, float>(group, table.at(1, group.id), share, twice, deadline);
          if (table.self == 2) return Stop::none;
          return recv_packets<LL16, float>(group, table.at(0, group.id), share, and_one, deadline);
        });
  check("a chain",
        [&](const Group& group, const EndpointTable& table, const Leg& share, const Deadline& deadline) {
          const Endpoint& between = table.at(2, group.id);
          if (table.self == 0) return send_tiles<float>(group, between, share, CopyProduce{}, deadline);
          if (table.self == 1) return recv_tiles<float>(group, between, share, and_one, deadline);
          return forward_tiles<float>(group, table.at(0, group.id), table.at(1, group.id), share,
                                      AccumulateForward<ReduceOp::sum, float>{}, deadline);
        });
  // All ranks' messages, which are alike, go to one place.
  const auto from_all = [&](const Group& group, const EndpointTable& table, const Leg& share,
                            const Deadline& deadline) {
    Leg message = share;
    message.begin = 0;
    message.bytes = in.size() * sizeof(float);
    return all_to_all<float>(group, table, message, {0, 0}, twice, and_one, deadline);
  };
  check("a collective", from_all, 0);
  check("a collective of packets", from_all);
}

/// Tests a user's hooks, by tiles. They reverse each row of `cols` elements as it is sent, and add the value
/// of a member on arrival.
struct ReverseRows {
  using block_hook = void;
  template <class X>
  void produce(const Ctx<X>& ctx, const Group& group, TileOut tile) const {
    const int32_t* const in = static_cast<const int32_t*>(ctx.in);
    int32_t* const to = reinterpret_cast<int32_t*>(tile.data);
    for (uint64_t item = group.rank; item < tile.bytes / 4; item += group.size) {
      const uint64_t element = ctx.index + item, row = element / ctx.cols, col = element % ctx.cols;
      to[item] = in[row * ctx.cols + (ctx.cols - 1 - col)];
    }
  }
};
struct AddByRow {
  using block_hook = void;
  const int32_t* addend;
  template <class X>
  void consume(const Ctx<X>& ctx, const Group& group, TileIn tile) const {
    const int32_t* const from = reinterpret_cast<const int32_t*>(tile.data);
    for (uint64_t item = group.rank; item < tile.bytes / 4; item += group.size) {
      const uint64_t element = ctx.index + item;
      static_cast<int32_t*>(ctx.out)[element] = from[item] + addend[element / ctx.cols];
    }
  }
};

/// This hook is the one of docs/fused-kernels.md.
template <class T>
struct MaxConsume {
  template <class X>
  CHORALE_FN void consume(const Ctx<X>& ctx, const Pack<T, 16 / sizeof(T)>& pack) const {
    T* const out = static_cast<T*>(ctx.out) + ctx.index;
    for (uint32_t at = 0; at < ctx.count; ++at) out[at] = out[at] < pack.item[at] ? pack.item[at] : out[at];
  }
};

TEST(Hooks, OfAUserByElements) {
  const uint64_t n = 333;
  const auto in = message_of<float>(1, n);
  auto out = message_of<float>(2, n), expected = out;
  for (uint64_t at = 0; at < n; ++at) expected[at] = std::max(in[at], out[at]);
  move<float>({}, n, in, out, CopyProduce{}, MaxConsume<float>{});
  EXPECT_MESSAGE(out, expected);
}

TEST(Hooks, OfAUserByTiles) {
  const uint32_t rows = 23, cols = 12;
  const auto in = message_of<int32_t>(6, rows * cols);
  const auto addend = message_of<int32_t>(7, rows);
  std::vector<int32_t> out(rows * cols), expected(rows * cols);
  Leg shape;
  shape.cols = cols;
  shape.tile_bytes = 4 * cols * 4;  // four rows
  move<int32_t>(shape, rows * cols, in, out, ReverseRows{}, AddByRow{addend.data()});
  for (uint32_t row = 0; row < rows; ++row) {
    for (uint32_t col = 0; col < cols; ++col) {
      expected[row * cols + col] = in[row * cols + (cols - 1 - col)] + addend[row];
    }
  }
  EXPECT_MESSAGE(out, expected);
}

TEST(Hooks, OfASingleFabricCall) {
  // This uses the interface itself, as a kernel without tiles does.
  alignas(16) char region[64] = {};
  const Vector<float> values{{1, 2, 3, 4}};
  Direct::put(region, 1, values);
  Direct::put(region, 2, values, 3);
  EXPECT_EQ(std::memcmp(region + 16, &values, 16), 0);
  const Vector<float> back = Direct::get<float>(region, 2);
  EXPECT_EQ(back.item[2], 3);
  EXPECT_EQ(back.item[3], 0);
  EXPECT_EQ((Port::get<float>(region, 1, 1).item[1]), 0);
}

}  // namespace
}  // namespace chorale
