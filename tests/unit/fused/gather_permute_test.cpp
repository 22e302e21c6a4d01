// These tests compare the all-gather of rows that are permuted with the ranks' rows.

#include "chorale/fused/gather_permute.hpp"

#include <algorithm>
#include <limits>

#include "tests/has.hpp"
#include "tests/unit/fused/calls.hpp"

namespace chorale {
namespace {

using namespace test;
using fused::Form;
using fused::GatherPermute;

constexpr Form gather_forms[] = {Form::packets, Form::window};

/// Makes a call with a random index. Some of its rows do not exist.
template <class T, class I = int32_t>
void call_gather(World& world, GatherPermute& gather, uint64_t rows, uint32_t cols, uint64_t call,
                 uint64_t offset = 0, bool from_window = false) {
  const uint64_t ranks = uint64_t(world.ranks()), all = ranks * rows,
                 out_rows = (rows + 3) * ranks - uint64_t(world.rank());
  const auto in = message_of<T>(call * 100 + uint64_t(world.rank()), rows * cols + offset);
  std::vector<I> index(out_rows);
  for (uint64_t row = 0; row < out_rows; ++row) {
    index[row] = I(int64_t(mix(call * 777 + uint64_t(world.rank()) * 99 + row) % (all + 2)) - 1);
  }
  if (out_rows > 2) index[1] = std::numeric_limits<I>::min(), index[2] = std::numeric_limits<I>::max();
  std::vector<T> out(out_rows * cols + offset + 1, T(7)), expected(out_rows * cols);
  const T* from = in.data() + offset;
  if (from_window) {
    std::copy(in.begin(), in.end(), gather.input<T>());
    from = gather.input<T>();
  }
  gather.run<T, I>({from, out.data() + offset, index.data(), rows, out_rows, cols});
  for (uint64_t row = 0; row < out_rows; ++row) {
    if (index[row] < 0 || uint64_t(index[row]) >= all) continue;
    const uint64_t rank = uint64_t(index[row]) / rows, at = uint64_t(index[row]) % rows;
    for (uint32_t col = 0; col < cols; ++col)
      expected[row * cols + col] = value_at<T>(call * 100 + rank, offset + at * cols + col);
  }
  ASSERT_EQ(first_difference(out.data() + offset, expected.data(), expected.size()), expected.size());
  ASSERT_EQ(out.back(), T(7));
}

template <class T, class I>
void test_gather() {
  for (const Form form : gather_forms) {
    for (const int ranks : all_ranks) {
      for (const uint32_t threads : all_threads) {
        SCOPED_TRACE(testing::Message() << "form " << int(form) << ", " << ranks << " ranks, " << threads
                                        << " threads, " << sizeof(T));
        run_local(ranks, [&](World& world) {
          GatherPermute gather(world, 13, 64 * sizeof(T), setup_of(form, 3, threads));
          uint64_t call = 0;
          call_gather<T, I>(world, gather, 13, 64, ++call, 0, form == Form::window);
          call_gather<T, I>(world, gather, 7, 48, ++call);
          call_gather<T, I>(world, gather, 1, 37, ++call);
          call_gather<T, I>(world, gather, 5, 21, ++call, 1);
          call_gather<T, I>(world, gather, 0, 16, ++call);
          call_gather<T, I>(world, gather, 13, 1, ++call);
          call_gather<T, I>(world, gather, 13, 64, ++call);
          world.barrier();
        });
      }
    }
  }
}

TEST(GatherPermute, AnyShape) {
  test_gather<uint8_t, int64_t>();
  test_gather<uint16_t, int32_t>();
  test_gather<float, int32_t>();
  test_gather<double, int64_t>();
}

TEST(GatherPermute, InAnyOrder) {
  for (const Form form : gather_forms) {
    in_any_order(3, [form](World& world, uint64_t seed) {
      GatherPermute gather(world, 6, 16 * sizeof(float), setup_of(form, 1 + seed % 3, 1 + seed % 2));
      for (uint64_t call = 0; call < 4; ++call)
        call_gather<float>(world, gather, 6 - (seed + call) % 4, call == 1 ? 11 : 16, call);
      world.barrier();
    });
  }
}

/// Makes a call of each form, for expect_named_errors() and expect_lost_process().
template <class Expect>
void each_gather_permute(const Expect& expect) {
  for (const Form form : gather_forms) {
    expect([form](World& world) { return GatherPermute(world, 6, 64, setup_of(form, 2, 1)); },
           [](GatherPermute& gather, World& world, uint64_t number) {
             // Every rank needs a row of every other.
             const std::vector<float> in(6 * 16, float(world.rank()) + 10 * float(number));
             const std::vector<int32_t> index{0, 6, 12};
             std::vector<float> out(3 * 16);
             gather.run<float, int32_t>({in.data(), out.data(), index.data(), 6, 3, 16});
             for (int at = 0; at < int(out.size()); ++at) {
               const int from = at / 16;
               ASSERT_EQ(out[size_t(at)], float(from) + 10 * float(number));
             }
           });
  }
}

TEST(GatherPermute, EndsInANamedError) {
  each_gather_permute([](const auto&... of) { expect_named_errors(of...); });
}

TEST(GatherPermute, NamesLostProcesses) {
  each_gather_permute([](const auto&... of) { expect_lost_process(of...); });
}

TEST(GatherPermute, Refusals) {
  run_local(2, [](World& world) {
    GatherPermute gather(world, 4, 64);
    std::vector<float> data(1024);
    std::vector<int32_t> index(4);
    const auto said = [&](const fused::GatherPermuteCall<float>& call) {
      return message_of_error<UsageError>([&] { gather.run<float, int32_t>(call); });
    };
    EXPECT_EQ(
        said({data.data(), data.data(), index.data(), 5, 4, 16}),
        "GatherPermute: 5 rows of 16 elements of 4 bytes take 320 bytes, and this object was made for 256: "
        "make it with max_rows = 5 and max_row_bytes = 64");
    EXPECT_TRUE(has(said({nullptr, data.data(), index.data(), 4, 4, 16}), "must not be null"));
    EXPECT_TRUE(has(said({data.data(), data.data(), nullptr, 4, 4, 16}), "must not be null"));
    EXPECT_TRUE(has(said({gather.input<float>(), data.data(), index.data(), 4, 4, 15}), "whole units"));
    EXPECT_TRUE(has(message_of_error<UsageError>(
                        [&] { GatherPermute(world, 4, 64, setup_of(Form::packets_twice, 0, 0)); }),
                    "only packets and window"));
  });
}

}  // namespace
}  // namespace chorale
