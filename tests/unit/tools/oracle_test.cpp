// The oracle guarantees that every partial result, in any order, is a value of the type. It also detects a
// single wrong bit.

#include "tools/oracle.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <tuple>
#include <utility>

#include "chorale/combine.hpp"
#include "tools/command.hpp"
#include "tools/elements.hpp"

namespace chorale::tools {
namespace {

Plan plan_of(const char* collective, uint32_t ranks) {
  Plan plan;
  plan.name = plan.collective = collective;
  plan.gpus.resize(ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank) plan.gpus[rank].id = rank;
  return plan;
}

bool holds(DType type, double value) {
  std::byte bits[8];
  encode(type, value, bits);
  const double held = decode(type, bits);
  if (std::isnan(value)) return std::isnan(held);
  return held == value && std::signbit(held) == std::signbit(value);
}

bool is_zero_of_an_integer(DType type, double value) { return !format(type).mantissa && value == 0; }

struct OracleOf : testing::TestWithParam<std::tuple<DType, ReduceOp, uint32_t>> {};

TEST_P(OracleOf, EveryOrderOfReductionIsExact) {
  const auto [type, op, ranks] = GetParam();
  constexpr uint64_t elements = 300;
  const size_t width = dtype_size(type);
  const Plan plan = plan_of("allreduce", ranks);
  std::optional<Oracle> oracle;
  try {
    oracle.emplace(plan, Oracle::Case{type, op, elements, elements, 5, /*special=*/true});
  } catch (const Failure&) {
    EXPECT_EQ(op, ReduceOp::avg);  // the only operator that is refused, for small types and many ranks
    return;
  }
  std::vector<std::vector<std::byte>> inputs(ranks, std::vector<std::byte>(elements * width));
  for (uint32_t rank = 0; rank < ranks; ++rank) oracle->fill(rank, 2, inputs[rank].data());
  std::vector<std::byte> output(elements * width);
  std::vector<uint32_t> order(ranks);
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(1);
  bool varied = false;
  uint64_t seen_at = 0,
           special = 0;  // an element in which one wrong bit is detected, and the number of special results
  for (uint64_t index = 0; index < elements; ++index) {
    std::shuffle(order.begin(), order.end(), random);
    double result = decode(type, &inputs[order[0]][index * width]);
    for (uint32_t at = 1; at < ranks; ++at) {
      result = reference::combine(op, result, decode(type, &inputs[order[at]][index * width]));
      if (is_zero_of_an_integer(type, result)) result = 0;
      ASSERT_TRUE(holds(type, result)) << result << " after " << at + 1 << " ranks";
    }
    if (op == ReduceOp::avg) result /= ranks;
    ASSERT_TRUE(holds(type, result)) << result;
    varied = varied || result != 0;
    if (std::isfinite(result)) seen_at = index;
    special += !std::isfinite(result);
    encode(type, result, &output[index * width]);
  }
  EXPECT_TRUE(varied);
  EXPECT_FALSE(oracle->compare(0, 2, output.data()));
  if (format(type).mantissa) {
    EXPECT_GT(special, 0u);
  } else {
    EXPECT_EQ(special, 0u);
  }
  output[seen_at * width] ^= std::byte{1};
  const std::optional<Mismatch> found = oracle->compare(ranks - 1, 2, output.data());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->index, seen_at);
  EXPECT_EQ(found->elements, 1u);
  EXPECT_EQ(found->rank, ranks - 1);
}

INSTANTIATE_TEST_SUITE_P(All, OracleOf,
                         testing::Combine(testing::ValuesIn(all_dtypes), testing::ValuesIn(all_reduce_ops),
                                          testing::Values(1u, 2u, 3u, 7u, 8u, 16u, 33u, 300u)));

TEST(Oracle, KnowsWhereEveryElementGoes) {
  constexpr uint32_t ranks = 3;
  constexpr uint64_t part = 4;
  const auto inputs_of = [](const Oracle& oracle, uint64_t elements) {
    std::vector<std::vector<float>> inputs(ranks, std::vector<float>(elements));
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      oracle.fill(rank, 0, reinterpret_cast<std::byte*>(inputs[rank].data()));
    }
    return inputs;
  };
  const auto right = [](const Oracle& oracle, uint32_t rank, const std::vector<float>& output) {
    return !oracle.compare(rank, 0, reinterpret_cast<const std::byte*>(output.data()));
  };
  {
    const Plan plan = plan_of("allgather", ranks);
    const Oracle oracle(plan, {DType::f32, ReduceOp::sum, part, part * ranks, 0});
    std::vector<float> all;
    for (const auto& input : inputs_of(oracle, part)) all.insert(all.end(), input.begin(), input.end());
    EXPECT_TRUE(right(oracle, 1, all));
    std::swap(all.front(), all.back());
    EXPECT_FALSE(right(oracle, 1, all));
  }
  {
    const Plan plan = plan_of("alltoall", ranks);
    const Oracle oracle(plan, {DType::f32, ReduceOp::sum, part * ranks, part * ranks, 0});
    std::vector<float> mine;
    for (const auto& input : inputs_of(oracle, part * ranks)) {
      mine.insert(mine.end(), input.begin() + part * 2, input.begin() + part * 3);
    }
    EXPECT_TRUE(right(oracle, 2, mine));
    EXPECT_FALSE(right(oracle, 1, mine));
  }
  {
    const Plan plan = plan_of("reducescatter", ranks);
    const Oracle oracle(plan, {DType::f32, ReduceOp::sum, part * ranks, part, 0});
    std::vector<float> mine(part, 0);
    for (const auto& input : inputs_of(oracle, part * ranks)) {
      for (uint64_t index = 0; index < part; ++index) mine[index] += input[part + index];
    }
    EXPECT_TRUE(right(oracle, 1, mine));
    EXPECT_FALSE(right(oracle, 0, mine));
  }
  {
    Plan plan = plan_of("broadcast", ranks);
    plan.extension.root = 2;
    const Oracle oracle(plan, {DType::f32, ReduceOp::sum, part, part, 0});
    EXPECT_TRUE(right(oracle, 0, inputs_of(oracle, part)[2]));
    EXPECT_FALSE(right(oracle, 0, inputs_of(oracle, part)[1]));
  }
}

/// Only the operations of a plan of "sendrecv" say which rank sends to which.
TEST(Oracle, AnOutputThatNothingIsSentToIsAsItWas) {
  Plan plan = plan_of("sendrecv", 2);
  for (Gpu& gpu : plan.gpus) gpu.chunks[0] = gpu.chunks[1] = 1;
  plan.gpus[0].threadblocks.emplace_back();
  plan.gpus[0].remote_buffers.push_back({1, BufferKind::output, {ChannelType::memory}});
  plan.gpus[0].threadblocks[0].remote_buffers = {{ChannelType::memory, {0}}};
  const Operand from{0, 1, uint32_t(BufferKind::input)}, to{0, 1, 0};
  append(plan.gpus[0].threadblocks[0], Opcode::put, {&from, 1}, {&to, 1}, {}).via = ChannelType::memory;
  const Oracle oracle(plan, {DType::f32, ReduceOp::sum, 4, 4, 0});
  std::vector<float> output(4, 1000);
  const auto wrong = [&](uint32_t rank) {
    return oracle.compare(rank, 0, reinterpret_cast<const std::byte*>(output.data())).has_value();
  };
  EXPECT_FALSE(wrong(0));
  EXPECT_TRUE(wrong(1));
  oracle.fill(0, 0, reinterpret_cast<std::byte*>(output.data()));
  EXPECT_FALSE(wrong(1));
}

// Data repeats after a prime number of elements, so that data in a wrong place looks wrong.
TEST(Pattern, LargeBuffersAreComparedInPiecesAndWhole) {
  constexpr uint64_t part = Pattern::period + 1234, ranks = 3, width = sizeof(float);
  for (const char* const collective : {"allreduce", "allgather", "reducescatter", "alltoall"}) {
    const Plan plan = plan_of(collective, ranks);
    const bool gathers = collective == std::string("allgather"),
               scatters = collective == std::string("reducescatter");
    const uint64_t in = gathers ? part : part * ranks, out = scatters ? part : part * ranks;
    const Oracle oracle(plan, {DType::f32, ReduceOp::sum, in, out, 3});
    std::vector<std::vector<float>> inputs(ranks, std::vector<float>(in));
    for (uint32_t rank = 0; rank < ranks; ++rank)
      oracle.fill(rank, 1, reinterpret_cast<std::byte*>(inputs[rank].data()));
    constexpr uint32_t me = 1;
    std::vector<float> output(out);
    for (uint64_t index = 0; index < out; ++index) {
      if (gathers)
        output[index] = inputs[index / part][index % part];
      else if (collective == std::string("alltoall"))
        output[index] = inputs[index / part][me * part + index % part];
      else
        for (const auto& input : inputs) output[index] += input[(scatters ? me * part : 0) + index];
    }
    const auto bytes = [&](uint64_t element) {
      return reinterpret_cast<const std::byte*>(output.data() + element);
    };
    EXPECT_FALSE(oracle.compare(me, 1, bytes(0))) << collective;
    const Pattern wanted = oracle.outputs(me, 1).at(0);
    for (uint64_t first = 0; first < out; first += 100000) {
      const uint64_t count = std::min<uint64_t>(100000, out - first);
      EXPECT_FALSE(wanted.compare(first * width, bytes(first), count * width))
          << collective << " from " << first;
    }
    output[Pattern::period + 7] += 1;
    output[part - 1] += 1;
    const auto found = wanted.compare(100000 * width, bytes(100000), (part - 100000) * width);
    ASSERT_TRUE(found) << collective;
    EXPECT_EQ(found->index, Pattern::period + 7);
    EXPECT_EQ(found->elements, 2u);
    for (const uint64_t shift : {1024u, 65536u, 262144u}) {
      const std::optional<Mismatch> moved = wanted.compare(0, bytes(shift), 1024 * width);
      EXPECT_TRUE(shift + 1024 > out || (moved && moved->elements > 900))
          << collective << " moved by " << shift;
    }
  }
}

TEST(Sizes, ListsAndRanges) {
  EXPECT_EQ(parse_sizes("1,4K,1M"), (std::vector<uint64_t>{1, 4096, 1 << 20}));
  EXPECT_EQ(parse_sizes("1K:4KiB"), (std::vector<uint64_t>{1024, 2048, 4096}));
  EXPECT_EQ(parse_sizes("1:20:4"), (std::vector<uint64_t>{1, 4, 16}));
  EXPECT_EQ(parse_sizes("8388608T:16777215T").size(), 1u);  // the next one would wrap
  for (const char* bad : {"", ",", "1K:", "0:4", "4:1", "1:4:1", "1:2:3:4", "-1", "1.5K", "K",
                          "99999999999999999999", "16777216T"}) {
    EXPECT_THROW(parse_sizes(bad), Failure) << bad;
  }
  for (const uint64_t bytes : {0u, 1u, 1023u, 1024u, 1536u, 1u << 30})
    EXPECT_EQ(parse_bytes(format_bytes(bytes)), bytes);
}

/// Results of a plan with codecs may be wrong by what its proof says, and by no more.
TEST(Oracle, CodecsMayChangeResults) {
  constexpr uint64_t elements = 64;
  Plan plan = plan_of("broadcast", 2);
  plan.extension.codecs = {{CodecFormat::fp8_e4m3, 32}};
  for (uint32_t rank = 0; rank < 2; ++rank) {
    Gpu& gpu = plan.gpus[rank];
    for (uint64_t& chunks : gpu.chunks) chunks = 1;
    gpu.channels.push_back({.type = ChannelType::memory, .connected_to = {1 - rank}, .rank_groups = {}});
    gpu.remote_buffers.push_back({1 - rank, BufferKind::scratch, {ChannelType::memory}});
    ThreadBlock& block = gpu.threadblocks.emplace_back();
    block.channels.push_back({ChannelType::memory, {0}});
    block.remote_buffers.push_back({ChannelType::memory, {0}});
    const auto add = [&](Opcode code, std::vector<Operand> from, std::vector<Operand> to,
                         std::vector<uint32_t> ids = {}) {
      append(block, code, from, to, ids).via = code == Opcode::copy ? ChannelType::none : ChannelType::memory;
    };
    const Operand in{0, 1, 0}, out{0, 1, 1};
    Operand sent{0, 1, 0}, got{0, 1, 2};
    sent.codec = got.codec = 1;
    if (rank == 0) {
      add(Opcode::put, {in}, {sent});
      add(Opcode::signal, {}, {}, {0});
      add(Opcode::copy, {in}, {out});
      add(Opcode::wait, {}, {}, {0});
    } else {
      add(Opcode::wait, {}, {}, {0});
      add(Opcode::copy, {got}, {out});
      add(Opcode::signal, {}, {}, {0});
    }
  }
  const Oracle oracle(plan, {DType::f32, ReduceOp::sum, elements, elements, 5, /*special=*/true});
  std::vector<std::byte> output(elements * 4);
  oracle.fill(0, 1, output.data());
  const double bound = format(DType::f32).exact / 28;
  const auto wrong_by = [&](double error) {
    std::vector<std::byte> changed = output;
    encode(DType::f32, std::floor(decode(DType::f32, changed.data()) + error), changed.data());
    return oracle.compare(1, 1, changed.data()).has_value();
  };
  EXPECT_FALSE(wrong_by(0));
  EXPECT_FALSE(wrong_by(bound * 0.99));
  EXPECT_TRUE(wrong_by(bound * 1.01));
  EXPECT_TRUE(wrong_by(-bound * 1.01));
  EXPECT_THROW(Oracle(plan, {DType::f32, ReduceOp::prod, elements, elements, 5}), Failure);
}

}  // namespace
}  // namespace chorale::tools
