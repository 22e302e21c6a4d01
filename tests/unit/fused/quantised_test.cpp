// These tests compare quantised collectives with the same arithmetic done element by element, and with the
// bound of their error.

#include "chorale/fused/quantised.hpp"

#include <algorithm>
#include <array>
#include <cfloat>
#include <type_traits>

#include "tests/has.hpp"
#include "tests/unit/fused/calls.hpp"
#include "tests/unit/fused/nearest_code.hpp"

namespace chorale {
namespace {

using namespace test;
using fused::Form;
using fused::QuantisedAllGather;
using fused::QuantisedAllReduce;

constexpr Form quantised_forms[] = {Form::packets, Form::window};

/// Returns values whose blocks are hard to encode. They have many magnitudes, are equal, near the largest
/// code, halfway between codes, zeros, or near the smallest or the largest floats.
std::vector<float> hard_values(uint64_t message, uint64_t n, uint32_t block) {
  std::vector<float> values(n);
  for (uint64_t at = 0; at < n; ++at) {
    const float random = random_float(message, at, 4);
    switch ((at / block + message) % 9) {
      case 0:
        values[at] = random_float(message, at, 60);
        break;
      case 1:
        values[at] = random < 0 ? -1.0f : 1.0f;
        break;
      case 2:
        values[at] = at % 5 == 0 ? 448.0f : float(at % 448) + 0.5f;
        break;
      case 3:
        values[at] = at % block == 0 ? 127.0f : float(at % 127) - 63.5f;
        break;
      case 4:
        values[at] = 0;
        break;
      case 5:
        values[at] = std::ldexp(random, -140);  // subnormal
        break;
      case 6:
        values[at] = std::ldexp(random, -121);  // codes have the smallest scale, or nearly
        break;
      case 7:
        values[at] = std::ldexp(random, 118);
        break;
      default:
        values[at] = at % 7 == 0 ? random * 1e6f : random * 1e-3f;
    }
  }
  return values;
}

template <class T>
std::vector<T> narrowed(const std::vector<float>& values) {
  std::vector<T> result(values.size());
  for (size_t at = 0; at < values.size(); ++at) {
    // Values that T has not become its largest and smallest ones.
    const float most = std::is_same_v<T, f16> ? 60000.0f / 16 : FLT_MAX;
    result[at] = narrow<T>(std::clamp(values[at], -most, most));
  }
  return result;
}

/// Returns what a message becomes as codes and back, computed without the library's arithmetic.
template <class Q>
std::vector<float> through_codes(const std::vector<float>& values, uint32_t block) {
  std::vector<float> result(values.size());
  for (size_t first = 0; first < values.size(); first += block) {
    const size_t end = std::min(values.size(), first + block);
    float largest = 0;
    for (size_t at = first; at < end; ++at)
      if (std::isfinite(values[at])) largest = std::max(largest, std::abs(values[at]));
    const float scale = std::max(largest / most_encoded<Q>, FLT_MIN), inverse = 1.0f / scale;
    for (size_t at = first; at < end; ++at) {
      const float scaled = values[at] * inverse;
      if (std::isfinite(scaled)) {
        result[at] = fused::value_of_code(nearest_code<Q>(scaled)) * scale;
      } else {
        result[at] = std::isinf(scaled) && std::is_same_v<Q, fp8_e5m2> ? scaled : NAN;
      }
    }
  }
  return result;
}

template <class T>
std::vector<float> widened(const std::vector<T>& values) {
  std::vector<float> result;
  for (const T& value : values) result.push_back(widen(value));
  return result;
}

/// Expects equal values; zeros may differ in their signs, and NaNs in their bits.
template <class T>
void expect_values(const T* got, const std::vector<float>& expected) {
  for (size_t at = 0; at < expected.size(); ++at) {
    const float value = widen(got[at]), right = widen(narrow<T>(expected[at]));
    if (value == right || (std::isnan(value) && std::isnan(right))) continue;
    FAIL() << "element " << at << " is " << value << ", expected " << right;
  }
}

/// Says what a call sends: the values of all ranks.
template <class T>
using Inputs = std::vector<std::vector<T>>;

template <class T>
Inputs<T> hard_inputs(int ranks, uint64_t call, uint64_t n, uint32_t block) {
  Inputs<T> all;
  for (int rank = 0; rank < ranks; ++rank)
    all.push_back(narrowed<T>(hard_values(call * 100 + uint64_t(rank) * (call % 3), n, block)));
  return all;
}

/// Expects that each element is within its bound of the exact sum.
template <class T, class Q>
void expect_bound(const std::vector<T>& out, const Inputs<T>& all, uint32_t block, int shots) {
  const int ranks = int(all.size());
  for (size_t at = 0; at < out.size(); ++at) {
    const size_t first = at / block * block, end = std::min(out.size(), first + block);
    double exact = 0, magnitudes = 0;
    for (const std::vector<T>& theirs : all) {
      float largest = 0;
      for (size_t other = first; other < end; ++other)
        largest = std::max(largest, std::abs(float(widen(theirs[other]))));
      magnitudes += fused::block_magnitude<Q>(largest);
      exact += double(widen(theirs[at]));
    }
    if (magnitudes * 1.01 > FLT_MAX) continue;
    double bound = fused::quantised_error<Q>(magnitudes, ranks, shots);
    // The rounding to T: half of the distance of its values, which is at least that of the smallest.
    const double out_of = std::abs(double(widen(out[at])));
    if (std::is_same_v<T, bf16>) bound += std::max(out_of / 256, std::ldexp(1, -134));
    if (std::is_same_v<T, f16>) bound += std::max(out_of / 2048, std::ldexp(1, -25));
    ASSERT_LE(std::abs(double(widen(out[at])) - exact), bound) << at << " of " << out.size();
  }
}

template <class T, class Q>
void call_reduce(World& world, QuantisedAllReduce& reduce, const Inputs<T>& all, bool in_place,
                 bool bounded = true, uint64_t offset = 0) {
  const uint32_t block = reduce.block();
  const size_t n = all[0].size();
  std::vector<T> in(offset), out(offset + n + 1, narrow<T>(-3.0f));
  const std::vector<T>& mine = all[size_t(world.rank())];
  in.insert(in.end(), mine.begin(), mine.end());
  if (in_place) std::copy(mine.begin(), mine.end(), out.begin() + int64_t(offset));
  reduce.run<T, Q>(in_place ? out.data() + offset : in.data() + offset, out.data() + offset, n);
  std::vector<float> sums;
  for (const std::vector<T>& theirs : all) {
    const std::vector<float> decoded = through_codes<Q>(widened(theirs), block);
    if (sums.empty()) {
      sums = decoded;
    } else {
      for (size_t at = 0; at < n; ++at) sums[at] += decoded[at];
    }
  }
  const bool window = reduce.form(n) == Form::window;
  if (window) sums = through_codes<Q>(sums, block);
  expect_values(out.data() + offset, sums);
  ASSERT_EQ(widen(out[offset + n]), -3.0f);
  if (bounded) expect_bound<T, Q>({out.begin() + int64_t(offset), out.end() - 1}, all, block, window ? 2 : 1);
}

template <class T, class Q>
void call_gather(World& world, QuantisedAllGather& gather, const Inputs<T>& all, bool in_place,
                 bool bounded = true) {
  const size_t n = all[0].size(), ranks = all.size(), self = size_t(world.rank());
  std::vector<T> in = all[self], out(n * ranks + 1, narrow<T>(-3.0f));
  if (in_place) std::copy(in.begin(), in.end(), out.begin() + int64_t(self * n));
  gather.run<T, Q>(in_place ? out.data() + self * n : in.data(), out.data(), n);
  for (size_t rank = 0; rank < ranks; ++rank) {
    expect_values(out.data() + rank * n, through_codes<Q>(widened(all[rank]), gather.block()));
    if (bounded) {
      const auto part = out.begin() + int64_t(rank * n);
      expect_bound<T, Q>({part, part + int64_t(n)}, {all[rank]}, gather.block(), 1);
    }
  }
  ASSERT_EQ(widen(out[n * ranks]), -3.0f);
}

template <class T, class Q>
void test_quantised_type(World& world, Form form, uint32_t threads, uint32_t block) {
  const int ranks = world.ranks();
  QuantisedAllReduce reduce(world, 1100, block, setup_of(form, 3, threads));
  QuantisedAllGather gather(world, 1100, block, setup_of(form, 3, threads));
  uint64_t call = block;
  for (const uint64_t n :
       {std::min<uint64_t>(9 * block + 5, 1100), uint64_t{1}, uint64_t{16}, uint64_t{333}, uint64_t{0}}) {
    call_reduce<T, Q>(world, reduce, hard_inputs<T>(ranks, ++call, n, block), n % 2 == 0);
    call_gather<T, Q>(world, gather, hard_inputs<T>(ranks, ++call, n, block), n % 2 != 0);
  }
  call_reduce<T, Q>(world, reduce, hard_inputs<T>(ranks, ++call, 300, block), true, true, 1);
  world.barrier();
}

template <class Q>
void test_codes() {
  for (const Form form : quantised_forms) {
    for (const int ranks : all_ranks) {
      for (const uint32_t threads : all_threads) {
        SCOPED_TRACE(testing::Message() << "form " << int(form) << ", " << ranks << " ranks, " << threads);
        run_local(ranks, [&](World& world) {
          test_quantised_type<float, Q>(world, form, threads, 128);
          test_quantised_type<bf16, Q>(world, form, threads, 16);
          test_quantised_type<f16, Q>(world, form, threads, 512);
        });
      }
    }
  }
}

TEST(Quantised, E4m3) { test_codes<fp8_e4m3>(); }
TEST(Quantised, E5m2) { test_codes<fp8_e5m2>(); }
TEST(Quantised, Int8) { test_codes<int8_t>(); }

TEST(Quantised, SameBitsOnAllRanks) {
  for (const Form form : quantised_forms) {
    run_local(4, [&](World& world) {
      QuantisedAllReduce reduce(world, 1000, 64, setup_of(form, 3, 8));
      const auto all = hard_inputs<bf16>(4, 7, 1000, 64);
      std::vector<bf16> out(1000);
      reduce.run<bf16, fp8_e4m3>(all[size_t(world.rank())].data(), out.data(), 1000);
      expect_same_on_all_ranks(world, out);
    });
  }
}

template <class Q>
void test_special_values(World& world, Form form) {
  QuantisedAllReduce reduce(world, 256, 64, setup_of(form, 2, 1));
  QuantisedAllGather gather(world, 256, 64, setup_of(form, 2, 1));
  Inputs<float> all(3);
  for (uint64_t rank = 0; rank < 3; ++rank) {
    all[rank] = random_message<float>(rank, 256, 4);
    all[rank][10 + rank] = NAN;
    all[rank][70] = INFINITY;
    all[rank][80 + rank] = -INFINITY;
    all[rank][90] = rank == 0 ? INFINITY : rank == 1 ? -INFINITY : 1.0f;
    if (rank == 1) std::fill(all[rank].begin() + 128, all[rank].end(), 0.0f);
  }
  all[0][200] = all[2][200] = FLT_MAX;  // the sum is no float
  call_reduce<float, Q>(world, reduce, all, false, false);
  call_gather<float, Q>(world, gather, all, false, false);
  std::vector<float> out(256);
  reduce.run<float, Q>(all[size_t(world.rank())].data(), out.data(), 256);
  constexpr bool has_infinity = std::is_same_v<Q, fp8_e5m2>;
  for (size_t at = 0; at < 256; ++at) {
    const bool infinite = at == 70 || (at >= 80 && at < 83);
    if (infinite && has_infinity) {
      EXPECT_EQ(out[at], at == 70 ? INFINITY : -INFINITY);
    } else if (infinite || at == 90 || (at >= 10 && at < 13)) {
      EXPECT_TRUE(std::isnan(out[at])) << at;
    } else if (at != 200) {
      EXPECT_TRUE(std::isfinite(out[at])) << at;
    }
  }
  world.barrier();
}

TEST(Quantised, SpecialValuesStayInTheirPlaces) {
  for (const Form form : quantised_forms) {
    run_local(3, [&](World& world) {
      test_special_values<fp8_e4m3>(world, form);
      test_special_values<fp8_e5m2>(world, form);
      test_special_values<int8_t>(world, form);
    });
  }
}

/// The bound is not far above what happens.
TEST(Quantised, BoundIsTight) {
  run_local(2, [&](World& world) {
    QuantisedAllReduce reduce(world, 64, 64, setup_of(Form::packets, 2, 1));
    // Halfway between the two largest codes of e4m3.
    std::vector<float> in(64, 432.0f), out(64);
    in[0] = 448;
    reduce.run<float, fp8_e4m3>(in.data(), out.data(), 64);
    const double bound = fused::quantised_error<fp8_e4m3>(2 * 448, 2, 1);
    EXPECT_EQ(std::abs(double(out[1]) - 864), 32);
    EXPECT_LT(bound, 32.1);
    world.barrier();
  });
}

TEST(Quantised, InAnyOrder) {
  for (const Form form : quantised_forms) {
    in_any_order(3, [form](World& world, uint64_t seed) {
      const uint64_t n = 40 + seed % 60;
      QuantisedAllReduce reduce(world, n, 16, setup_of(form, 1 + seed % 2, 1 + seed % 3));
      QuantisedAllGather gather(world, n, 16, setup_of(form, 1 + seed % 2, 1 + seed % 3));
      const auto inputs = [&](uint64_t call) { return hard_inputs<float>(3, call + seed, n - call, 16); };
      // Calls of one kind follow each other, because a call of the other kind would keep the ranks together.
      for (uint64_t call = 0; call < 3; ++call)
        call_reduce<float, fp8_e4m3>(world, reduce, inputs(call), call == 1);
      for (uint64_t call = 0; call < 3; ++call)
        call_gather<float, int8_t>(world, gather, inputs(call), call == 1);
      world.barrier();
    });
  }
}

/// Makes a call of each form, for expect_named_errors() and expect_lost_process().
template <class Expect>
void each_quantised(const Expect& expect) {
  for (const Form form : quantised_forms) {
    const auto all = [](uint64_t number) { return hard_inputs<float>(3, number, 100, 32); };
    expect([form](World& world) { return QuantisedAllReduce(world, 100, 32, setup_of(form, 2, 1)); },
           [&](QuantisedAllReduce& reduce, World& world, uint64_t number) {
             call_reduce<float, int8_t>(world, reduce, all(number), false);
           });
    expect([form](World& world) { return QuantisedAllGather(world, 100, 32, setup_of(form, 2, 1)); },
           [&](QuantisedAllGather& gather, World& world, uint64_t number) {
             call_gather<float, int8_t>(world, gather, all(number), false);
           });
  }
}

TEST(Quantised, EndsInANamedError) {
  each_quantised([](const auto&... of) { expect_named_errors(of...); });
}

TEST(Quantised, NamesLostProcesses) {
  each_quantised([](const auto&... of) { expect_lost_process(of...); });
}

TEST(Quantised, ChoosesTheForm) {
  run_local(2, [](World& world) {
    QuantisedAllReduce reduce(world, 1 << 20);
    EXPECT_EQ(reduce.form(1), Form::packets);
    EXPECT_EQ(reduce.form(910 * 128), Form::packets);
    EXPECT_EQ(reduce.form(911 * 128), Form::window);
    for (const uint64_t n : {910u * 128, 911u * 128})
      call_reduce<bf16, fp8_e5m2>(world, reduce, hard_inputs<bf16>(2, 3, n, 128), true);
    world.barrier();
  });
}

TEST(Quantised, Refusals) {
  run_local(2, [](World& world) {
    QuantisedAllReduce reduce(world, 128);
    std::vector<float> data(512);
    const auto said = [&](const float* in, float* out, uint64_t n) {
      return message_of_error<UsageError>([&] { reduce.run<float, int8_t>(in, out, n); });
    };
    EXPECT_EQ(said(data.data(), data.data(), 129),
              "QuantisedAllReduce: the codes of 129 elements take 256 bytes, and this object was made for "
              "128: make "
              "it with max_elements = 129");
    EXPECT_TRUE(has(said(data.data(), data.data(), ~uint64_t{0}), "more than can be addressed"));
    EXPECT_TRUE(has(said(nullptr, data.data(), 1), "must not be null"));
    EXPECT_TRUE(has(said(data.data(), nullptr, 1), "must not be null"));
    for (const uint32_t block : {0u, 8u, 48u, 1024u}) {
      EXPECT_TRUE(has(message_of_error<UsageError>([&] { QuantisedAllGather(world, 128, block); }),
                      "block is " + std::to_string(block) + ": it must be 16, 32, 64, 128, 256 or 512"));
    }
    EXPECT_TRUE(has(message_of_error<UsageError>(
                        [&] { QuantisedAllGather(world, 128, 128, setup_of(Form::tiles, 0, 0)); }),
                    "only packets and window"));
  });
}

}  // namespace
}  // namespace chorale
