/// \file
/// Runs all element types and operators through one all-reduce and compares with the scalar oracle; tests avg
/// and large offsets.

#include "executor/lowering/image.hpp"
#include "tests/cpu/harness.hpp"
#include "tests/cpu/oracle.hpp"

namespace chorale::test {
namespace {

Plan shipped(const std::string& name) {
  return load((source_dir() / "plans/shipped" / (name + ".json")).string());
}

void expect_oracle(const char* algorithm, const char* collective, uint32_t ranks) {
  const Plan plan = shipped(std::string(algorithm) + "_" + std::to_string(ranks));
  for (const DType type : all_dtypes) {
    for (const ReduceOp op : all_reduce_ops) {
      for (const uint64_t elements : {1u, 15u, 333u}) {
        const uint64_t bytes =
            elements * dtype_size(type) * (std::string(collective) == "allreduce" ? 1 : ranks);
        const MessageSizes sizes = message_sizes(plan, bytes, type);
        std::vector<oracle::Bytes> inputs, outputs(ranks, oracle::Bytes(sizes.output));
        for (uint32_t rank = 0; rank < ranks; ++rank) {
          inputs.push_back(oracle::random_elements(type, sizes.input, rank * 77 + elements));
        }
        run_local(int(ranks), [&](World& world) {
          Executor executor(world);
          const size_t rank = size_t(world.rank());
          executor.execute(plan, {.in = inputs[rank].data(),
                                  .out = outputs[rank].data(),
                                  .bytes = bytes,
                                  .dtype = type,
                                  .op = op,
                                  .packet = PacketForm(elements % 3)});
        });
        oracle::Setting setting{.algorithm = algorithm, .collective = collective, .ranks = int(ranks)};
        setting.type = type;
        setting.op = op;
        EXPECT_EQ(oracle::expected(setting, inputs), outputs)
            << algorithm << " " << dtype_name(type) << " " << reduce_op_name(op) << " " << elements;
      }
    }
  }
}

TEST(Elements, all_types_and_operators_by_packets) { expect_oracle("allreduce_one_shot", "allreduce", 4); }
TEST(Elements, all_types_and_operators_by_reads) {
  expect_oracle("reducescatter_direct", "reducescatter", 4);
}

TEST(Elements, one_operator_cannot_replace_two) {
  Plan plan = shipped("allreduce_one_shot_4");
  for (Op& op : plan.gpus[2].threadblocks[0].ops) op.reduce_op = ReduceOp::max;
  run_local(4, [&](World& world) {
    Executor executor(world);
    float in = 1, out = 0;
    try {
      executor.execute(plan, {.in = &in, .out = &out, .bytes = 4, .op = ReduceOp::min});
      ADD_FAILURE() << "it ran";
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find("reduces by sum and by max: min cannot replace them"),
                std::string::npos)
          << error.what();
    }
  });
}

TEST(Addresses, six_gibibytes_a_chunk) {
  constexpr uint64_t gib = uint64_t(1) << 30, chunk = 6 * gib;
  // The four segments have one chunk each, but the last 100 bytes of the last chunk do not exist.
  const image::Buffer buffer{nullptr, chunk, chunk - 100, 0, 0, 0};
  const image::Position last = image::locate(buffer, 3 * chunk + 5 * gib);
  EXPECT_EQ(last.offset, 3 * (chunk - 100) + 5 * gib);
  EXPECT_EQ(last.valid, gib - 100);
  EXPECT_EQ(last.run, gib);
  const image::Position behind = image::locate(buffer, 2 * chunk - 50);
  EXPECT_EQ(behind.valid, 0u);
  EXPECT_EQ(behind.run, 50u);
  const image::Range share = image::range_of(chunk, 0, 0, 2, 3, 16);
  EXPECT_EQ(share.first, 4 * gib + 16 * ((chunk / 16) % 3));
  EXPECT_EQ(share.end, chunk);
  const image::Range turn = image::range_of(chunk, 5 * gib, 2 * gib, 0, 0, 16);
  EXPECT_EQ(turn.first, 5 * gib);
  EXPECT_EQ(turn.end, chunk);
  EXPECT_EQ(image::range_of(chunk, 7 * gib, 2 * gib, 0, 0, 16).first, chunk);
}

TEST(Addresses, groups_share_units_as_the_plan_format_says) {
  // 1,040 bytes are 65 units of 16 over four members: 17, 16, 16, 16.
  uint64_t offsets[] = {0, 272, 528, 784}, bytes[] = {272, 256, 256, 256};
  for (uint32_t member = 0; member < 4; ++member) {
    const image::Range range = image::range_of(1040, 0, 0, member, 4, 16);
    EXPECT_EQ(range.first, offsets[member]);
    EXPECT_EQ(range.end - range.first, bytes[member]);
  }
}

TEST(Addresses, messages_of_twenty_four_gibibytes_have_sizes) {
  const Plan plan = shipped("alltoall_direct_4");
  const uint64_t bytes = uint64_t(24) << 30;
  EXPECT_EQ(message_sizes(plan, bytes, DType::f16).output, bytes);
  EXPECT_EQ(message_sizes(shipped("allgather_direct_4"), bytes, DType::f16).input, bytes / 4);
  EXPECT_EQ(message_sizes(shipped("reducescatter_direct_4"), bytes, DType::f16).output, bytes / 4);
}

}  // namespace
}  // namespace chorale::test
