// These tests check which operations release which others.

#include "chorale/releases.hpp"

#include "tests/unit/proof/findings.hpp"

namespace chorale {
namespace {

constexpr uint64_t chunk_bytes = 1024;

/// Returns "rank.block.op ..." of the operations that release an operation, or "unknown".
std::string releases(const Plan& plan, uint32_t rank, uint32_t on, uint32_t op,
                     uint64_t bytes = chunk_bytes) {
  const Awaited awaited = list_awaited(plan, bytes)[rank][on][op];
  std::string text;
  for (const OpPlace& place : awaited.releases) text += (text.empty() ? "" : " ") + place_of(place);
  return awaited.known ? text : "unknown";
}

TEST(Releases, ThePostsOfAChannelInOrder) {
  for (const ChannelType via : {ChannelType::memory, ChannelType::port}) {
    Plan plan = two_ranks();
    for (int turn = 0; turn < 2; ++turn) {
      control(plan, Opcode::signal, 0, 0, 0, via);
      control(plan, Opcode::wait, 0, 1, 1, via);
    }
    EXPECT_EQ(releases(plan, 1, 1, 0), "0.0.0");
    EXPECT_EQ(releases(plan, 1, 1, 1), "0.0.1");
    EXPECT_EQ(releases(plan, 0, 0, 0), "");
  }
  Plan plan = two_ranks();
  control(plan, Opcode::relaxed_signal, 1, 0);
  add(block(plan, 0, 1), Opcode::put_with_signal, {in(0)}, {at(2, 0)}, {0}, ChannelType::port);
  control(plan, Opcode::relaxed_wait, 1, 1);
  control(plan, Opcode::wait, 0, 1, 0, ChannelType::port);
  EXPECT_EQ(releases(plan, 1, 0, 0), "0.0.0");
  EXPECT_EQ(releases(plan, 1, 0, 1), "0.1.0");
}

TEST(Releases, AllChannelsOfAWait) {
  Plan plan = two_ranks();
  control(plan, Opcode::signal, 0, 0, 0);
  control(plan, Opcode::signal, 1, 0, 1);
  add(block(plan, 1), Opcode::wait, {}, {}, {0, 1}, ChannelType::memory);
  EXPECT_EQ(releases(plan, 1, 0, 0), "0.0.0 0.1.0");
}

TEST(Releases, TheReleasesOfASemaphore) {
  Plan plan = two_ranks();
  add_blocks(plan, 3);
  for (const uint32_t on : {0u, 1u}) control(plan, Opcode::sem_release, 0, 0, on);
  for (int turn = 0; turn < 2; ++turn) control(plan, Opcode::sem_acquire, 0, 0, 2);
  // The first take may be of either post. For the second, both must have come.
  EXPECT_EQ(releases(plan, 0, 2, 0), "unknown");
  EXPECT_EQ(releases(plan, 0, 2, 1), "0.0.0 0.1.0");
}

TEST(Releases, WhatIsThereFromTheBeginningIsOfNobody) {
  Plan plan = two_ranks();
  plan.gpus[0].semaphores[0] = 1;
  for (int turn = 0; turn < 2; ++turn) control(plan, Opcode::sem_acquire, 0, 0);
  control(plan, Opcode::sem_release, 0, 0, 1);
  EXPECT_EQ(releases(plan, 0, 0, 0), "");
  EXPECT_EQ(releases(plan, 0, 0, 1), "0.1.0");
}

TEST(Releases, WhoCompetesIsNotKnown) {
  Plan plan = two_ranks();
  add_blocks(plan, 4);
  for (const uint32_t on : {0u, 1u}) {
    control(plan, Opcode::sem_release, 0, 0, on);
    control(plan, Opcode::sem_acquire, 0, 0, on + 2);
  }
  for (const uint32_t on : {2u, 3u}) EXPECT_EQ(releases(plan, 0, on, 0), "unknown");
}

TEST(Releases, ArrivalsOfEachRound) {
  Plan plan = two_ranks();
  sync(plan);
  control(plan, Opcode::sem_release, 0, 0);
  sync(plan);
  EXPECT_EQ(releases(plan, 0, 0, 0), "0.0.0 0.1.0");
  EXPECT_EQ(releases(plan, 0, 1, 1), "0.0.2 0.1.1");
  // More blocks wait than a barrier has members.
  plan = two_ranks();
  add_blocks(plan, 4);
  for (uint32_t on = 0; on < 4; ++on) control(plan, Opcode::barrier, 0, 0, on).participants = 2;
  EXPECT_EQ(releases(plan, 0, 0, 0), "unknown");
}

TEST(Releases, TheWritersOfPackets) {
  Plan plan = two_ranks();
  add(block(plan, 0), Opcode::put_packets, {in(0, 2)}, {at(2, 0, 2)}, {}, ChannelType::memory);
  add(block(plan, 1), Opcode::copy_packets, {in(0)}, {scratch(2)});
  add(block(plan, 1, 1), Opcode::unpack_packets, {scratch(1, 2)}, {out(0, 2)});
  EXPECT_EQ(releases(plan, 1, 1, 0), "0.0.0 1.0.0");
  add(block(plan, 1, 1), Opcode::unpack_packets, {scratch(0)}, {out(3)});
  EXPECT_EQ(releases(plan, 1, 1, 1), "0.0.0");
}

/// Rank 0 signals in each turn, rank 1 waits.
Plan in_turns(bool ahead) {
  Plan plan = two_ranks();
  for (const uint32_t rank : {0u, 1u}) {
    const Opcode code = rank == 0 ? Opcode::signal : Opcode::wait;
    if (ahead && rank == 0) control(plan, code, 0, rank);
    Op& pipeline = add(block(plan, rank), Opcode::pipeline);
    pipeline.body = 1;
    pipeline.unit_bytes = 16;
    pipeline.chunks = 1;
    control(plan, code, 0, rank);
    if (ahead && rank == 1) control(plan, code, 0, rank);
  }
  return plan;
}

TEST(Releases, InTheLastTurnOfAPipeline) {
  for (const uint64_t bytes : {16, 32, 48, 1 << 20})
    EXPECT_EQ(releases(in_turns(false), 1, 0, 1, bytes), "0.0.1") << bytes;
  // The signal is one turn ahead: the last turn waits for the signal of the previous one, for which
  // the pipeline stands.
  EXPECT_EQ(releases(in_turns(true), 1, 0, 1, 16), "0.0.0");
  for (const uint64_t bytes : {32, 48, 1 << 20}) {
    EXPECT_EQ(releases(in_turns(true), 1, 0, 1, bytes), "0.0.1") << bytes;
    EXPECT_EQ(releases(in_turns(true), 1, 0, 2, bytes), "0.0.2") << bytes;
  }
}

TEST(Releases, OfAPlanThatDoesNotEndAreNotKnown) {
  Plan plan = two_ranks();
  control(plan, Opcode::wait, 0, 1);
  control(plan, Opcode::signal, 0, 1);
  EXPECT_EQ(releases(plan, 1, 0, 0), "unknown");
  EXPECT_EQ(releases(plan, 1, 0, 1), "");
}

}  // namespace
}  // namespace chorale
