/// \file
/// These tests check messages whose parts are apart in memory.

#include <gtest/gtest.h>

#include "recorded.hpp"

namespace chorale {
namespace {

using namespace lowering;

/// The parts of a piece of a long message are apart in memory.
TEST(Gaps, EndMovesAndLoopsAtTheEndOfAPart) {
  Plan plan = two_ranks();
  plan.collective = "alltoall";
  for (Gpu& gpu : plan.gpus)
    gpu.chunks[size_t(BufferKind::input)] = gpu.chunks[size_t(BufferKind::output)] = 8;
  add(block(plan), Opcode::copy, {in(0, 8)}, {out(0, 8)});
  const auto copies = [&](bool apart) {
    Layout layout = layout_of(plan, 1024, DType::i32);
    layout.segments_apart = apart;
    std::vector<uint64_t> bytes;
    for (const Seen& of : Recorded(plan, layout).steps()) bytes.push_back(of.step.bytes);
    return bytes;
  };
  EXPECT_EQ(copies(false), std::vector<uint64_t>{1024});
  EXPECT_EQ(copies(true), (std::vector<uint64_t>{512, 512}));
  Op& loop = block(plan).ops.emplace(block(plan).ops.begin())[0];
  loop.code = Opcode::pipeline;
  loop.unit_bytes = 64;
  loop.chunks = 8;
  loop.body = 1;
  const auto loops = [&](bool apart) {
    Layout layout = layout_of(plan, 1024, DType::i32);
    layout.segments_apart = apart;
    std::vector<uint64_t> turns;
    for (const Seen& of : Recorded(plan, layout).steps()) {
      if (of.step.kind == ProgramStepKind::repeat) turns.push_back(of.items[0].repeat.turns);
    }
    return turns;
  };
  EXPECT_EQ(loops(false), std::vector<uint64_t>{16});
  EXPECT_EQ(loops(true), (std::vector<uint64_t>{8, 8}));
}

TEST(Gaps, ComeBetweenParts) {
  const Gaps gaps{32, 64, 16};
  char* const passed = reinterpret_cast<char*>(uintptr_t(1) << 40);
  const auto at = [&](uint64_t tag, uint64_t offset) {
    return uint64_t(ProgramPlace{tag | offset}.settled(1, passed, passed, 0, gaps) - passed);
  };
  EXPECT_EQ(at(ProgramPlace::in, 31), 31u);
  EXPECT_EQ(at(ProgramPlace::in, 32), 96u);
  EXPECT_EQ(at(ProgramPlace::in, 70), 2 * 96u + 6);
  EXPECT_EQ(at(ProgramPlace::out, 70), 2 * 48u + 6);
  EXPECT_EQ(ProgramPlace{70}.settled(1, passed, passed, 0, gaps), reinterpret_cast<char*>(70))
      << "it is not in a passed buffer";
}

}  // namespace
}  // namespace chorale
