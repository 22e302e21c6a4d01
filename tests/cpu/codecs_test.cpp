/// \file
/// Runs plans that encode on the CPU, and compares each element with an oracle that encodes in the same
/// places. The oracle shares no code with the executor: it looks up the nearest value of a format. The error
/// of the results is also compared with the bound that the proof gives.

#include <gtest/gtest.h>

#include <chorale/dsl.hpp>
#include <cmath>
#include <functional>
#include <limits>

#include "chorale/proof.hpp"
#include "tests/cpu/harness.hpp"
#include "tools/elements.hpp"

namespace chorale::test {
namespace {

using Values = std::vector<float>;

struct Setting {
  std::string plan;
  int ranks = 2;
  CodecFormat format = CodecFormat::fp8_e4m3;
  int block = 128;
  DType type = DType::f32;
  uint64_t elements = 0;  ///< of the message, divided by the number of ranks
};

/// Rounds a number to an element type.
float rounded(DType type, float value) {
  if (type == DType::f32) return value;
  const int mantissa = tools::format(type).mantissa;
  const int least = type == DType::f16 ? -14 : -126;
  if (value == 0) return value;
  const int exponent = std::max(std::ilogb(value), least) - mantissa;
  return float(std::ldexp(std::nearbyint(std::ldexp(double(value), -exponent)), exponent));
}

/// Lists the values of a format that are not negative, in order.
const std::vector<float>& values_of(CodecFormat format) {
  static const std::vector<std::vector<float>> all = [] {
    std::vector<std::vector<float>> made(codec_format_count);
    for (int magnitude = 0; magnitude < 128; ++magnitude) {
      const auto add = [&](CodecFormat of, double value) { made[size_t(of)].push_back(float(value)); };
      add(CodecFormat::int8, magnitude);
      const int e4 = magnitude >> 3, m3 = magnitude & 7, e5 = magnitude >> 2, m2 = magnitude & 3;
      if (magnitude < 127)  // the last one is NaN
        add(CodecFormat::fp8_e4m3, e4 ? std::ldexp(1 + m3 / 8.0, e4 - 7) : std::ldexp(m3 / 8.0, -6));
      if (magnitude < 124)  // the others are infinity and NaN
        add(CodecFormat::fp8_e5m2, e5 ? std::ldexp(1 + m2 / 4.0, e5 - 15) : std::ldexp(m2 / 4.0, -14));
    }
    return made;
  }();
  return all[size_t(format)];
}

/// Returns what decoding yields after a block was encoded.
void pass_through(const Setting& of, float* block, size_t n) {
  const std::vector<float>& values = values_of(of.format);
  float largest = 0;
  for (size_t at = 0; at < n; ++at) largest = std::max(largest, std::abs(block[at]));
  const float scale = std::max(largest / values.back(), std::numeric_limits<float>::min());
  for (size_t at = 0; at < n; ++at) {
    const float wanted = std::abs(block[at] / scale);
    const auto above = std::lower_bound(values.begin(), values.end(), wanted);
    float nearest = above == values.end() ? values.back() : *above;
    if (above != values.end() && above != values.begin()) {
      const double up = double(*above) - wanted, down = wanted - double(above[-1]);
      const bool even = (above - values.begin()) % 2 == 0;  // the position has the bits of the value
      if (down < up || (down == up && !even)) nearest = above[-1];
    }
    block[at] = std::copysign(nearest * scale, block[at]);
  }
}

/// Encodes and decodes elements in the blocks of a part of a message.
void pass_through(const Setting& of, Values& part) {
  for (size_t at = 0; at < part.size(); at += size_t(of.block))
    pass_through(of, part.data() + at, std::min(size_t(of.block), part.size() - at));
}

/// Makes element `at` of the input of a rank.
using Input = std::function<float(const Setting&, int rank, uint64_t at)>;

/// Returns the expected output, which all ranks have. An all-reduce cuts its message into chunks of whole
/// blocks, of which each rank owns `instances` in a row.
Values expected(const Setting& of, const Input& input, int instances = 1) {
  Values result;
  const bool gathers = of.plan == "allgather_quantised";
  const uint64_t all = of.elements * uint64_t(of.ranks), block = uint64_t(of.block);
  const uint64_t blocks = (all + block - 1) / block, chunks = uint64_t(of.ranks * instances);
  const uint64_t owned = gathers ? of.elements : (blocks + chunks - 1) / chunks * uint64_t(instances) * block;
  const auto part_of = [&](int rank, int owner) {
    const uint64_t first = gathers ? 0 : std::min(all, uint64_t(owner) * owned);
    Values part(gathers ? owned : std::min(owned, all - first));
    for (uint64_t at = 0; at < part.size(); ++at) part[at] = rounded(of.type, input(of, rank, first + at));
    return part;
  };
  const auto round = [&](Values& part) {
    for (float& value : part) value = rounded(of.type, value);
  };
  for (int owner = 0; owner < of.ranks; ++owner) {
    Values part = part_of(owner, owner);
    if (!gathers) {
      for (int next = 1; next < of.ranks; ++next) {
        Values addend = part_of((owner + next) % of.ranks, owner);
        pass_through(of, addend);
        for (uint64_t at = 0; at < part.size(); ++at) part[at] += addend[at];
      }
      round(part);
    }
    pass_through(of, part);
    round(part);
    result.insert(result.end(), part.begin(), part.end());
  }
  return result;
}

Plan plan_of(const Setting& of, int instances = 1) {
  dsl::Compiled compiled = dsl::build(of.plan, {{"ranks", std::to_string(of.ranks)},
                                                {"format", codec_format_name(of.format)},
                                                {"block", std::to_string(of.block)},
                                                {"instances", std::to_string(instances)}})
                               .compile();
  EXPECT_TRUE(compiled.ok()) << render(compiled.plan, compiled.diagnostics);
  return std::move(compiled.plan);
}

/// Runs a plan, twice in a row, and returns the outputs of all ranks.
std::vector<Values> run(const Plan& plan, const Setting& of, const Input& input, uint64_t round_scratch = 0,
                        std::optional<uint64_t> seed = {}) {
  const size_t width = dtype_size(of.type);
  const uint64_t all = of.elements * uint64_t(of.ranks);
  const uint64_t own = of.plan == "allgather_quantised" ? of.elements : all;
  std::vector<Values> outputs(size_t(of.ranks), Values(all));
  Config config;
  if (round_scratch) config.round_scratch = round_scratch;
  run_local(of.ranks,
            [&](World& world) {
              std::vector<std::byte> in(own * width), out(all * width + 16, std::byte{0x5a});
              for (uint64_t at = 0; at < own; ++at)
                tools::encode(of.type, rounded(of.type, input(of, world.rank(), at)), in.data() + at * width);
              Executor executor(world, config);
              for (int launch = 0; launch < 2; ++launch)
                executor.execute(
                    plan, {.in = in.data(), .out = out.data(), .bytes = all * width, .dtype = of.type});
              for (uint64_t at = 0; at < all; ++at)
                outputs[size_t(world.rank())][at] = float(tools::decode(of.type, out.data() + at * width));
              for (size_t at = all * width; at < out.size(); ++at) EXPECT_EQ(out[at], std::byte{0x5a});
            },
            {.seed = seed});
  return outputs;
}

/// No element is subnormal in any type, because tools::encode() writes none.
float mixed(const Setting&, int rank, uint64_t at) {
  const uint64_t hash = (at * 2654435761u + uint64_t(rank) * 40503u) % 65521;
  return (float(hash) - 32760.0f) * (at / 50 % 3 == 0 ? 1e-4f : 0.01f) * (hash % 11 == 0 ? 0 : 1);
}

void expect_exact(const Setting& of, int instances = 1, uint64_t round_scratch = 0,
                  std::optional<uint64_t> seed = {}) {
  const std::vector<Values> found = run(plan_of(of, instances), of, mixed, round_scratch, seed);
  const Values wanted = expected(of, mixed, instances);
  for (int rank = 0; rank < of.ranks; ++rank) {
    for (size_t at = 0; at < wanted.size(); ++at) {
      ASSERT_EQ(found[size_t(rank)][at], wanted[at])
          << of.plan << ", " << of.ranks << " ranks, " << codec_format_name(of.format) << "/" << of.block
          << ", " << dtype_name(of.type) << ", " << of.elements << " elements: element " << at << " of rank "
          << rank;
    }
  }
}

TEST(Codecs, ResultsAreThoseOfTheOracle) {
  for (const char* const plan : {"allreduce_quantised", "allgather_quantised"}) {
    for (const int ranks : {2, 3, 4, 8}) {
      for (const CodecFormat format : all_codec_formats) {
        for (const int block : {32, 128, 1024}) {
          for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
            // One element, a short block, whole blocks, and a short block at the end.
            for (const uint64_t elements : {1, 31, 1024, 2051})
              expect_exact({plan, ranks, format, block, type, elements});
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

TEST(Codecs, CutsAreBetweenBlocks) {
  for (const char* const plan : {"allreduce_quantised", "allgather_quantised"}) {
    const Setting of{plan, 3, CodecFormat::fp8_e4m3, 64, DType::bf16, 5000};
    expect_exact(of, /*instances=*/3);
    expect_exact(of, 1, /*round_scratch=*/6 * 512);  // several rounds
  }
}

TEST(Codecs, EverySchedule) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    for (const char* const plan : {"allreduce_quantised", "allgather_quantised"}) {
      expect_exact({plan, 3, CodecFormat::int8, 32, DType::f32, 200}, 2, 0, seed);
      if (HasFatalFailure()) return;
    }
  }
}

/// Elements that are as far from the encoded values as they can be, beside one that decides the scale. All
/// errors have the sign of the element.
float adversarial(const Setting& of, int, uint64_t at) {
  const std::vector<float>& values = values_of(of.format);
  const float last = values.back(), before = values[values.size() - 2];
  if (at % uint64_t(of.block) == 0) return last;
  return (last + before) / 2 + (last - before) * (at % 2 ? 0.001f : -0.001f);
}

TEST(Codecs, ErrorsStayWithinTheBoundOfTheProof) {
  for (const char* const name : {"allreduce_quantised", "allgather_quantised"}) {
    for (const CodecFormat format : all_codec_formats) {
      const Setting of{name, 4, format, 64, DType::f32, 256};
      const Plan plan = plan_of(of);
      const double bound = error_factor(prove_plan(plan, {}, true).facts.quantised);
      for (const Input& input : {Input(adversarial), Input(mixed)}) {
        const Values found = run(plan, of, input)[0];
        double nearest = 0;  // to the bound
        for (uint64_t at = 0; at < found.size(); ++at) {
          double exact = 0, magnitudes = 0;
          for (int rank = 0; rank < of.ranks; ++rank) {
            if (of.plan == "allgather_quantised" && uint64_t(rank) != at / of.elements) continue;
            const uint64_t from = of.plan == "allgather_quantised" ? at % of.elements : at;
            const uint64_t first = from / uint64_t(of.block) * uint64_t(of.block);
            double largest = 0;
            for (uint64_t other = first; other < first + uint64_t(of.block); ++other)
              largest = std::max(largest, std::abs(double(input(of, rank, other))));
            exact += input(of, rank, from);
            magnitudes += largest;
          }
          const double error = std::abs(found[at] - exact), allowed = bound * magnitudes;
          ASSERT_LE(error, allowed * (1 + 1e-5)) << name << " " << codec_format_name(format) << " at " << at;
          nearest = std::max(nearest, error / allowed);
        }
        // The bound is not much larger than what happens.
        const bool is_adversarial = input(of, 0, 0) == values_of(format).back();
        const double least = !is_adversarial ? 0 : of.plan == "allgather_quantised" ? 0.9 : 0.3;
        EXPECT_GE(nearest, least) << name << " " << codec_format_name(format);
      }
    }
  }
}

/// A block with a NaN or an infinity decodes to NaN, and the others do not change.
TEST(Codecs, BlocksWithoutANumber) {
  for (const CodecFormat format : all_codec_formats) {
    const Setting of{"allgather_quantised", 2, format, 32, DType::f32, 96};
    const auto input = [](const Setting&, int, uint64_t at) {
      return at == 5    ? std::numeric_limits<float>::infinity()
             : at == 70 ? std::numeric_limits<float>::quiet_NaN()
                        : 1.0f;
    };
    const Values found = run(plan_of(of), of, input)[1];
    for (size_t at = 0; at < found.size(); ++at)
      EXPECT_EQ(std::isnan(found[at]), at % 96 < 32 || at % 96 >= 64)
          << codec_format_name(format) << " at " << at;
  }
}

TEST(Codecs, OtherTypesAreRefused) {
  const Plan plan = plan_of({"allreduce_quantised", 2});
  for (const DType type : all_dtypes) {
    if (has_codecs(type)) continue;
    EXPECT_THROW(message_sizes(plan, 4096, type), UsageError) << dtype_name(type);
  }
}

}  // namespace
}  // namespace chorale::test
