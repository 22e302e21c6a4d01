/// \file
/// Checks that long messages that run in rounds have the results of one round, bit for bit.

#include <algorithm>
#include <random>

#include "chorale/scratch.hpp"
#include "tests/cpu/shipped.hpp"

namespace chorale::test {
namespace {

/// Holds the size, type and packets of a run.
struct Way {
  uint64_t bytes = 0;
  DType dtype = DType::f32;
  PacketForm packet = PacketForm::ll16;
  bool in_place = false;
  std::optional<ReduceOp> op = std::nullopt;
};

using Bytes = std::vector<char>;

Bytes random_bytes(uint64_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(n);
  // The bytes are small floats in any type. Their sums depend on the order, and none is a NaN.
  for (char& byte : bytes) byte = char(random() % 0x40);
  return bytes;
}

/// Returns the outputs of all ranks after three launches, one after the other.
Bytes outputs(const Plan& plan, const Way& way, uint64_t round_scratch) {
  const MessageSizes sizes = message_sizes(plan, way.bytes, way.dtype);
  constexpr int launches = 3;
  std::vector<Bytes> all(plan.ranks());
  run_local(int(plan.ranks()), [&](World& world) {
    const uint64_t rank = uint64_t(world.rank());
    Config config;
    config.round_scratch = round_scratch;
    Executor executor(world, config);
    Bytes one(std::max(sizes.input, sizes.output)), other(one.size());
    char *in = one.data(), *out = (way.in_place ? one : other).data();
    if (way.in_place && plan.collective == "allgather") in += rank * sizes.input;
    if (way.in_place && plan.collective == "reducescatter") out += rank * sizes.output;
    for (int launch = 0; launch < launches; ++launch) {
      const Bytes data = random_bytes(sizes.input, rank * launches + uint64_t(launch));
      std::copy(data.begin(), data.end(), in);
      executor.execute(
          plan,
          {.in = in, .out = out, .bytes = way.bytes, .dtype = way.dtype, .op = way.op, .packet = way.packet});
      all[rank].insert(all[rank].end(), out, out + sizes.output);
    }
  });
  Bytes joined;
  for (const Bytes& of : all) joined.insert(joined.end(), of.begin(), of.end());
  return joined;
}

class Rounds : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(Rounds, give_the_bits_of_one_round) {
  const Plan plan = load(GetParam().string());
  const std::vector<ScratchUse> use = scratch_use(plan);
  uint64_t per_byte = 0;
  for (const ScratchUse& of : use) per_byte = std::max(per_byte, of.per_chunk_byte());
  if (per_byte == 0) return;  // the plan takes no scratch
  const uint64_t parts = message_segments(plan), chunks = layout_of(plan, 0, DType::u8).chunks_per_segment;
  const bool sums = collective_reduces(plan.collective);
  const Way ways[] = {{.dtype = DType::f32, .packet = PacketForm::ll8},
                      {.dtype = DType::bf16, .packet = PacketForm::ll16, .in_place = true},
                      {.dtype = DType::i64,
                       .packet = PacketForm::ll128,
                       .op = sums ? std::optional(ReduceOp::avg) : std::nullopt}};
  for (Way way : ways) {
    // The last chunk of each part is short. With LL128 slices have at least 1920 bytes.
    const uint64_t slice = way.packet == PacketForm::ll128 && sends_packets(plan) ? 1920 : 128;
    way.bytes = parts * ((chunks * 5 * slice - 3 * slice / 2) / 8 * 8);
    const uint64_t window = per_byte * slice;
    ASSERT_GE(in_rounds(plan, use, layout_of(plan, way.bytes, way.dtype, way.packet), window).rounds(), 4u);
    EXPECT_EQ(outputs(plan, way, window), outputs(plan, way, 0))
        << way.bytes << " bytes of " << dtype_name(way.dtype);
  }
}

INSTANTIATE_TEST_SUITE_P(Shipped, Rounds, testing::ValuesIn(shipped_plans(4)), name_of_plan);

}  // namespace
}  // namespace chorale::test
