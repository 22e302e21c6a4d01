// These tests compare the RMSNorm all-reduce with the same arithmetic done element by element.

#include "chorale/fused/rms_norm.hpp"

#include <algorithm>
#include <array>
#include <type_traits>

#include "tests/has.hpp"
#include "tests/unit/fused/calls.hpp"
#include "tests/unit/fused/nearest_code.hpp"

namespace chorale {
namespace {

using namespace test;
using fused::Form;
using fused::QuantiseRow;
using fused::RmsNormAllReduce;
using fused::RmsNormCall;
using fused::StoreRow;

constexpr Form norm_forms[] = {Form::packets, Form::packets_twice, Form::window};

/// Is a user's epilogue: it stores the values that the epilogue `next` gets.
template <class Next>
struct Recorded {
  float* values;
  Next next;

  bool reads_memory(const Group& group, uint32_t cols, uint32_t per_unit) const {
    return next.reads_memory(group, cols, per_unit);
  }
  template <class Row>
  void operator()(const Group& group, const Row& row) const {
    row.each([&](uint32_t col, const auto& items, uint32_t count) {
      for (uint32_t item = 0; item < count; ++item) values[row.row() * row.cols() + col + item] = items[item];
    });
    next(group, row);
  }
};

struct NormShape {
  uint64_t rows;
  uint32_t cols;
  bool residual = true;
  uint64_t offset = 0;  ///< elements by which the buffers are moved from an alignment to 16 bytes
};

/// Holds one call's data, and what must come out.
template <class T>
struct NormData {
  NormData(World& world, const NormShape& shape, uint64_t call)
      : shape(shape),
        n(shape.rows * shape.cols),
        in(random_message<T>(call * 100 + uint64_t(world.rank()), n + shape.offset)),
        residual(random_message<T>(call * 100 + 77, n + shape.offset)),
        weight(random_message<T>(call * 100 + 88, shape.cols + shape.offset)),
        kept(n),
        ranks(world.ranks()) {
    std::vector<std::vector<T>> all;
    for (int rank = 0; rank < ranks; ++rank)
      all.push_back(random_message<T>(call * 100 + uint64_t(rank), n + shape.offset));
    for (uint64_t at = 0; at < n; ++at) {
      float sum = widen(all[0][at + shape.offset]);
      for (int rank = 1; rank < ranks; ++rank) sum += widen(all[size_t(rank)][at + shape.offset]);
      kept[at] = narrow<T>(sum);
      if (shape.residual) kept[at] = narrow<T>(widen(kept[at]) + widen(residual[at + shape.offset]));
    }
  }

  RmsNormCall<T> call() {
    return {in.data() + shape.offset,
            shape.residual ? residual.data() + shape.offset : nullptr,
            weight.data() + shape.offset,
            1e-5f,
            shape.rows,
            shape.cols};
  }

  /// Compares the residual, and the normalised values with a computation in double.
  void check(const std::vector<float>& values) {
    if (shape.residual) {
      ASSERT_EQ(first_difference(residual.data() + shape.offset, kept.data(), n), n);
    }
    // The squares are of sums that are not rounded to T.
    const double rounding = sizeof(T) == 4 ? 1e-5 : std::is_same_v<T, f16> ? 1e-3 : 1e-2;
    for (uint64_t row = 0; row < shape.rows; ++row) {
      double squares = 0;
      for (uint32_t col = 0; col < shape.cols; ++col) {
        const double value = widen(kept[row * shape.cols + col]);
        squares += value * value;
      }
      const double scale = 1 / std::sqrt(squares / shape.cols + 1e-5);
      for (uint32_t col = 0; col < shape.cols; ++col) {
        const double expected =
            widen(kept[row * shape.cols + col]) * scale * widen(weight[col + shape.offset]);
        ASSERT_NEAR(values[row * shape.cols + col], expected, rounding * std::abs(expected))
            << row << ", " << col;
      }
    }
  }

  const NormShape shape;
  const uint64_t n;
  std::vector<T> in, residual, weight, kept;
  const int ranks;
};

template <class T>
void call_stored(World& world, RmsNormAllReduce& norm, const NormShape& shape, uint64_t call,
                 bool in_place = false, bool same = true) {
  NormData<T> data(world, shape, call);
  std::vector<float> values(data.n);
  std::vector<T> out(data.n + 1, narrow<T>(-3.0f));
  T* const to = in_place ? data.in.data() + shape.offset : out.data();
  norm.run<T>(data.call(), Recorded<StoreRow<T>>{values.data(), {to}});
  data.check(values);
  for (uint64_t at = 0; at < data.n; ++at) {
    const T expected = narrow<T>(values[at]);
    ASSERT_EQ(std::memcmp(&to[at], &expected, sizeof(T)), 0) << at;
  }
  ASSERT_EQ(widen(out[data.n]), -3.0f);
  if (same) expect_same_on_all_ranks(world, std::vector<T>(to, to + data.n));
}

template <class T, class Q>
void call_quantised(World& world, RmsNormAllReduce& norm, const NormShape& shape, uint64_t call,
                    uint32_t block) {
  NormData<T> data(world, shape, call);
  const QuantiseRow<Q> plain{nullptr, nullptr, block};
  const uint32_t each = plain.scale_count(shape.cols);
  std::vector<float> values(data.n), scales(shape.rows * each + 1, -1.0f);
  std::vector<Q> out(data.n + 1, Q{5});
  norm.run<T>(data.call(), Recorded<QuantiseRow<Q>>{values.data(), {out.data(), scales.data(), block}});
  data.check(values);
  for (uint64_t row = 0; row < shape.rows; ++row) {
    for (uint32_t number = 0; number < each; ++number) {
      const uint32_t first = number * block,
                     end = block == 0 ? shape.cols : std::min(shape.cols, first + block);
      float largest = 0;
      for (uint32_t col = first; col < end; ++col)
        largest = std::max(largest, std::abs(values[row * shape.cols + col]));
      const float scale = scales[row * each + number];
      ASSERT_EQ(scale, largest / most_encoded<Q>) << row << ", " << number;
      for (uint32_t col = first; col < end; ++col) {
        const Q code = out[row * shape.cols + col];
        const Q expected = nearest_code<Q>(double(values[row * shape.cols + col] * (1.0f / scale)));
        ASSERT_EQ(fused::value_of_code(code), fused::value_of_code(expected)) << row << ", " << col;
      }
    }
  }
  ASSERT_EQ(scales[shape.rows * each], -1.0f);
  expect_same_on_all_ranks(world, scales);
  expect_same_on_all_ranks(world, out);
}

template <class T>
void test_stored() {
  for (const Form form : norm_forms) {
    for (const int ranks : all_ranks) {
      for (const uint32_t threads : all_threads) {
        SCOPED_TRACE(testing::Message() << "form " << int(form) << ", " << ranks << " ranks, " << threads
                                        << " threads of " << sizeof(T));
        run_local(ranks, [&](World& world) {
          RmsNormAllReduce norm(world, 23, 64 * sizeof(T), setup_of(form, 3, threads));
          uint64_t call = 0;
          call_stored<T>(world, norm, {7, 48}, ++call);
          call_stored<T>(world, norm, {23, 64, false}, ++call, true);
          call_stored<T>(world, norm, {1, 37}, ++call);  // rows that end within a unit
          call_stored<T>(world, norm, {5, 37, false, 1}, ++call);
          call_stored<T>(world, norm, {2, 3, true, 1}, ++call, true);
          call_stored<T>(world, norm, {0, 48}, ++call);
          call_stored<T>(world, norm, {4, 1, false}, ++call);
        });
      }
    }
  }
}

TEST(RmsNorm, StoresTheSameType) {
  test_stored<float>();
  test_stored<f16>();
  test_stored<bf16>();
}

template <class T, class Q>
void test_quantised(World& world, RmsNormAllReduce& norm, uint64_t call) {
  for (const uint32_t block : {0u, 16u, 20u, 1u, 1000u}) {
    call_quantised<T, Q>(world, norm, {5, 64}, call + block, block);
    call_quantised<T, Q>(world, norm, {3, 37, false, 1}, call + block + 7, block);
  }
}

TEST(RmsNorm, QuantisesRowsAndBlocks) {
  for (const Form form : norm_forms) {
    for (const int ranks : {1, 3}) {
      for (const uint32_t threads : all_threads) {
        SCOPED_TRACE(testing::Message() << "form " << int(form) << ", " << ranks << " ranks, " << threads);
        run_local(ranks, [&](World& world) {
          RmsNormAllReduce norm(world, 5, 64 * sizeof(float), setup_of(form, 2, threads));
          test_quantised<float, fp8_e4m3>(world, norm, 1);
          test_quantised<bf16, fp8_e5m2>(world, norm, 2);
          test_quantised<f16, int8_t>(world, norm, 3);
        });
      }
    }
  }
}

TEST(RmsNorm, TakesItsInputFromTheWindow) {
  for (const int ranks : {1, 4}) {
    run_local(ranks, [&](World& world) {
      RmsNormAllReduce norm(world, 9, 48 * sizeof(float), setup_of(Form::window, 2, 1));
      for (uint64_t call = 0; call < 4; ++call) {
        NormData<float> data(world, {9, 48}, call);
        std::copy(data.in.begin(), data.in.end(), norm.input<float>());
        RmsNormCall<float> made = data.call();
        made.in = norm.input<float>();
        std::vector<float> out(data.n);
        norm.run<float>(made, StoreRow<float>{out.data()});
        data.check(out);
      }
      NormData<float> ragged(world, {9, 37}, 1);
      RmsNormCall<float> made = ragged.call();
      made.in = norm.input<float>();
      const std::string said =
          message_of_error<UsageError>([&] { norm.run<float>(made, StoreRow<float>{ragged.in.data()}); });
      EXPECT_TRUE(has(said, "37 elements of 4 bytes")) << said;
      world.barrier();
    });
  }
}

TEST(RmsNorm, NotANumberStaysInItsRow) {
  for (const Form form : norm_forms) {
    run_local(2, [&](World& world) {
      RmsNormAllReduce norm(world, 3, 64 * sizeof(float), setup_of(form, 2, 1));
      std::vector<float> in(3 * 64, 1.0f), weight(64, 1.0f), scales(3);
      std::vector<fp8_e4m3> out(in.size());
      if (world.rank() == 1) in[64 + 5] = NAN;
      std::fill(in.begin() + 128, in.end(), 0.0f);  // a row of zeros
      norm.run<float>({in.data(), nullptr, weight.data(), 1e-5f, 3, 64},
                      QuantiseRow<fp8_e4m3>{out.data(), scales.data()});
      for (size_t at = 0; at < 64; ++at) {
        ASSERT_NEAR(to_float(out[at]) * scales[0], 1.0f, 1e-4f);
        ASSERT_TRUE(std::isnan(to_float(out[64 + at])));
        ASSERT_EQ(to_float(out[128 + at]), 0.0f);
      }
      world.barrier();
    });
  }
}

TEST(RmsNorm, InAnyOrder) {
  for (const Form form : norm_forms) {
    in_any_order(3, [form](World& world, uint64_t seed) {
      RmsNormAllReduce norm(world, 4 + seed % 5, 16 * sizeof(bf16),
                            setup_of(form, 1 + seed % 2, 1 + seed % 3));
      for (uint64_t call = 0; call < 3; ++call)
        call_stored<bf16>(world, norm, {4 + seed % 5, call == 1 ? 11u : 16u, call != 2}, call, seed % 2 == 0,
                          call == 2);
    });
  }
}

/// Makes a call of each form, for expect_named_errors() and expect_lost_process().
template <class Expect>
void each_rms_norm(const Expect& expect) {
  for (const Form form : norm_forms) {
    expect(
        [form](World& world) { return RmsNormAllReduce(world, 5, 64 * sizeof(float), setup_of(form, 2, 1)); },
        [](RmsNormAllReduce& norm, World& world, uint64_t number) {
          call_stored<float>(world, norm, {5, 48}, number, false, false);
        });
  }
}

TEST(RmsNorm, EndsInANamedError) {
  each_rms_norm([](const auto&... of) { expect_named_errors(of...); });
}

TEST(RmsNorm, NamesLostProcesses) {
  each_rms_norm([](const auto&... of) { expect_lost_process(of...); });
}

TEST(RmsNorm, ChoosesTheForm) {
  EXPECT_EQ(fused::form_of(0, 1, 1), Form::window);
  EXPECT_EQ(fused::form_of(128 << 10, 128 << 10, 2), Form::packets);
  EXPECT_EQ(fused::form_of((128 << 10) + 1, 128 << 10, 2), Form::packets_twice);
  EXPECT_EQ(fused::form_of(1 << 20, 512 << 10, 3), Form::packets_twice);
  EXPECT_EQ(fused::form_of(1 << 20, (512 << 10) + 1, 3), Form::window);
  EXPECT_EQ(fused::form_of(1 << 20, 0, 3), Form::window);
  EXPECT_EQ(fused::form_of(1, 1, 17), Form::window);
  run_local(2, [](World& world) {
    RmsNormAllReduce norm(world, 1000, 1024);
    EXPECT_EQ(norm.form(1, 1000), Form::packets);
    EXPECT_EQ(norm.form(128, 1024), Form::packets);
    EXPECT_EQ(norm.form(129, 1024), Form::packets_twice);
    EXPECT_EQ(norm.form(512, 1024), Form::packets_twice);
    EXPECT_EQ(norm.form(513, 1024), Form::window);
    EXPECT_EQ(norm.form(1, 1000 * 1024), Form::window);
    EXPECT_EQ(norm.form(2, 160000), Form::window) << "a block would send more than its packets hold";
    for (const NormShape& shape :
         {NormShape{100, 256}, NormShape{500, 256}, NormShape{513, 256}, NormShape{2, 40000}})
      call_stored<float>(world, norm, shape, shape.rows);
  });
}

TEST(RmsNorm, Refusals) {
  run_local(2, [](World& world) {
    RmsNormAllReduce norm(world, 4, 64);
    std::vector<float> data(1024);
    const auto said = [&](const RmsNormCall<float>& call) {
      return message_of_error<UsageError>([&] { norm.run<float>(call, StoreRow<float>{data.data()}); });
    };
    EXPECT_EQ(
        said({data.data(), nullptr, data.data(), 0, 5, 16}),
        "RmsNormAllReduce: 5 rows of 16 elements of 4 bytes take 320 bytes, and this object was made for "
        "256: make it with max_rows = 5 and max_row_bytes = 64");
    EXPECT_TRUE(
        has(said({data.data(), nullptr, data.data(), 0, ~uint64_t{0}, 16}), "more bytes than can be"));
    EXPECT_TRUE(has(said({nullptr, nullptr, data.data(), 0, 4, 16}), "must not be null"));
    EXPECT_TRUE(has(said({data.data(), nullptr, nullptr, 0, 4, 16}), "must not be null"));
    EXPECT_EQ(
        message_of_error<UsageError>([&] { RmsNormAllReduce(world, 4, 64, setup_of(Form::tiles, 0, 0)); }),
        "RmsNormAllReduce: there is no form tiles of it, only packets, packets_twice and window");
    EXPECT_TRUE(
        has(message_of_error<UsageError>([&] { RmsNormAllReduce(world, 0, 64); }), "made for 0 bytes"));
    EXPECT_TRUE(has(
        message_of_error<UsageError>([&] { RmsNormAllReduce(world, 4, 64, setup_of(Form::window, 513, 0)); }),
        "blocks is 513"));
    fused::Setup odd = setup_of(Form::window, 0, 48);
    odd.space = Space::device;
    EXPECT_TRUE(
        has(message_of_error<UsageError>([&] { RmsNormAllReduce(world, 4, 64, odd); }), "threads is 48"));
    const std::string differ =
        message_of_error<RunError>([&] { RmsNormAllReduce(world, 4 + uint64_t(world.rank()), 64); });
    EXPECT_TRUE(has(differ, "rank 0 with 4 rows of 64 bytes") && has(differ, "rank 1 with 5 rows")) << differ;
  });
}

TEST(RmsNorm, UnevenLinksAreRefused) {
  EXPECT_THROW(
      run_local(
          3,
          [&](World& world) {
            const auto transport = direct_rendezvous(world, with_packets(rings(1, 2, 16), 256));
            std::vector<float> data(8), weight(8), residual(8);
            if (world.rank() < 2) {  // ranks 0 and 1 have had a message of packets, rank 2 none
              const auto between = [&](const Group& group, const Deadline& deadline) {
                Leg leg;
                leg.in = data.data();
                leg.out = data.data();
                leg.bytes = 32;
                const Endpoint& e = transport->table().at(1 - world.rank(), group.id);
                return world.rank() == 0 ? send_packets<LL16, float>(group, e, leg, {}, deadline)
                                         : recv_packets<LL16, float>(group, e, leg, {}, deadline);
              };
              launch(*transport, between, {1, 1});
            }
            const fused::RmsNormPackets<float, StoreRow<float>> kernel{
                transport->table(),
                {{data.data(), residual.data(), weight.data(), 1e-5f, 1, 8}, nullptr, 8, {data.data()}}};
            launch(*transport, kernel, {1, 1});
          }),
      std::logic_error);
}

}  // namespace
}  // namespace chorale
