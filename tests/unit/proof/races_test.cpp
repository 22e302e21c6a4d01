// These tests check accesses that nothing orders, and accesses that only look unordered.

#include "tests/has.hpp"
#include "tests/unit/proof/findings.hpp"

namespace chorale {
namespace {

using test::has;

TEST(Races, ThreadsOfABlock) {
  Plan plan = two_ranks();
  copy(plan, in(0), scratch(0));
  copy(plan, scratch(0), out(0));
  EXPECT_EQ(races(plan),
            "this reads scratch[0:1] of rank 0, which another thread of the block overwrites: nothing "
            "synchronises the "
            "threads in between at 0.0.1\n  the other operation is here at 0.0.0\n");
  plan = two_ranks();
  copy(plan, in(0), scratch(0));
  nop(plan);
  copy(plan, scratch(0), out(0));
  nop(plan);
  copy(plan, in(1), scratch(0));
  EXPECT_EQ(races(plan), "");
  plan = two_ranks();
  copy(plan, scratch(0), out(0));
  copy(plan, in(1), scratch(0));
  EXPECT_TRUE(has(races(plan), "overwrites scratch[0:1] of rank 0, which another thread of the block reads"));
}

TEST(Races, SignalsAndWaitsSynchroniseTheThreads) {
  Plan plan = two_ranks();
  copy(plan, in(0), scratch(0), 0, 0);
  hand_over(plan, 0);
  copy(plan, scratch(0), out(0), 0, 0);
  EXPECT_EQ(races(plan), "");
  // A relaxed signal does not.
  plan = two_ranks();
  copy(plan, in(0), scratch(0), 0, 0);
  hand_over(plan, 0, 0, true);
  copy(plan, scratch(0), out(0), 0, 0);
  EXPECT_NE(races(plan), "");
}

TEST(Races, BlocksOfARank) {
  Plan plan = two_ranks();
  copy(plan, in(0), scratch(0), 0);
  copy(plan, scratch(0), out(0), 1);
  EXPECT_EQ(races(plan),
            "this reads scratch[0:1] of rank 0, which another operation overwrites: nothing orders the two "
            "at 0.1.0\n"
            "  the other operation is here at 0.0.0\n");
  plan = two_ranks();
  copy(plan, in(0), scratch(0), 0);
  sync(plan);
  copy(plan, scratch(0), out(0), 1);
  EXPECT_EQ(races(plan), "");
  plan = two_ranks();
  copy(plan, in(0), scratch(0), 0);
  control(plan, Opcode::sem_release, 0, 0, 0);
  control(plan, Opcode::sem_acquire, 0, 0, 1);
  copy(plan, scratch(0), out(0), 1);
  EXPECT_EQ(races(plan), "");
  // A token that exists from the beginning orders nothing.
  plan.gpus[0].semaphores[0] = 1;
  EXPECT_NE(races(plan), "");
}

std::string help_of_race(const Plan& plan) {
  const Diagnostics findings = prove_plan(plan, all_but("races")).diagnostics();
  return findings.empty() ? "nothing was found" : findings[0].help;
}

/// The help depends on who writes: two blocks of a rank have barriers, and two ranks have signals.
TEST(Races, TwoThatWriteTheSameBytes) {
  Plan plan = two_ranks();
  copy(plan, in(0), scratch(0), 0);
  copy(plan, in(1), scratch(0), 1);
  EXPECT_EQ(help_of_race(plan),
            "give each thread block that writes here a chunk of scratch of its own, or order the writes by a "
            "barrier of the two thread blocks");
  plan = two_ranks();
  copy(plan, in(0), out(0), 0);
  copy(plan, in(1), out(0), 1);
  EXPECT_EQ(help_of_race(plan),
            "let one thread block write it, or put a barrier of the two thread blocks between the writes");
  plan = two_ranks();
  put(plan, in(0), 2, 0);
  copy(plan, in(0), scratch(0), 0, 1);
  EXPECT_EQ(
      help_of_race(plan),
      "give each rank that writes here a chunk of scratch of its own, or order the writes by a signal of "
      "one rank and a wait of the other");
  // One of the two reads.
  plan = two_ranks();
  copy(plan, in(0), scratch(0), 0);
  copy(plan, scratch(0), out(0), 1);
  EXPECT_EQ(help_of_race(plan), "");
  // One block does both.
  plan = two_ranks();
  copy(plan, in(0, 2), scratch(0, 2));
  copy(plan, in(1), scratch(0));
  EXPECT_EQ(help_of_race(plan), "");
}

/// Rank 1 signals that it has begun, rank 0 puts and signals, and rank 1 reads.
Plan exchange(bool entry, bool relaxed_entry, bool relaxed_data) {
  Plan plan = two_ranks();
  if (entry) hand_over(plan, 1, 0, relaxed_entry);
  put(plan, in(0), 1, 0);
  nop(plan);
  hand_over(plan, 0, 0, relaxed_data);
  copy(plan, out(0), scratch(0), 0, 1);
  return plan;
}

TEST(Races, BetweenRanks) {
  EXPECT_EQ(races(exchange(true, false, false)), "");
  // Data that was visible before the launch of the poster is visible after any signal.
  EXPECT_EQ(races(exchange(true, true, false)), "");
  EXPECT_EQ(races(exchange(true, false, true)),
            "this reads output[0:1] of rank 1, which another operation overwrites: a relaxed signal or a "
            "packet orders the two, but publishes no data at 1.0.2\n  the other operation is here at 0.0.1\n"
            "this overwrites output[0:1] of rank 1, but the rank learns this only from a relaxed signal or a "
            "packet, which publishes no data: the application may not see it at 0.0.1\n");
}

TEST(Races, WithTheApplication) {
  // Input is written right before the launch.
  Plan plan = two_ranks();
  add(block(plan), Opcode::get, {at(0, 0)}, {out(0)}, {0}, ChannelType::memory);
  EXPECT_EQ(races(plan),
            "this reads input[0:1] of rank 1, and nothing says that this rank has begun: the application may "
            "still be "
            "using it at 0.0.0\n");
  plan = two_ranks();
  hand_over(plan, 1);
  add(block(plan), Opcode::get, {at(0, 0)}, {out(0)}, {0}, ChannelType::memory);
  EXPECT_TRUE(has(races(plan), "nothing tells the rank when: its launch may have ended")) << races(plan);
  hand_over(plan, 0);
  EXPECT_EQ(races(plan), "");
  // A relaxed signal is enough for this.
  plan = two_ranks();
  hand_over(plan, 1, 0, true);
  add(block(plan), Opcode::get, {at(0, 0)}, {out(0)}, {0}, ChannelType::memory);
  nop(plan);
  hand_over(plan, 0, 0, true);
  EXPECT_EQ(races(plan), "");
}

TEST(Races, PortChannelsReadAtTheirLeisure) {
  Plan plan = two_ranks();
  const auto push = [&](Opcode code) {
    add(block(plan), code, {scratch(0)}, {at(2, 0)}, {0}, ChannelType::port);
    control(plan, Opcode::wait, 0, 1, 0, ChannelType::port);
  };
  copy(plan, in(0), scratch(0));
  push(Opcode::put_with_signal);
  nop(plan);
  copy(plan, in(1), scratch(0));
  EXPECT_EQ(races(plan),
            "this overwrites scratch[0:1] of rank 0, which the proxy reads at some later time: nothing waits "
            "for that at 0.0.3\n  it was handed to the proxy here at 0.0.1\n");
  plan = two_ranks();
  copy(plan, in(0), scratch(0));
  push(Opcode::put_with_signal_and_flush);
  copy(plan, in(1), scratch(0));
  copy(plan, scratch(0), out(0), 0, 1);
  EXPECT_EQ(races(plan), "");
  // A flush guarantees that the proxy has read, not that the data has arrived.
  plan = two_ranks();
  add(block(plan), Opcode::put, {in(0)}, {at(2, 0)}, {0}, ChannelType::port);
  control(plan, Opcode::flush, 0, 0, 0, ChannelType::port);
  hand_over(plan, 0);
  copy(plan, scratch(0), out(0), 0, 1);
  EXPECT_NE(races(plan), "");
  // The channel's own signal comes after the data.
  plan = two_ranks();
  add(block(plan), Opcode::put, {in(0)}, {at(2, 0)}, {0}, ChannelType::port);
  hand_over(plan, 0);
  control(plan, Opcode::signal, 0, 0, 0, ChannelType::port);
  control(plan, Opcode::wait, 0, 1, 0, ChannelType::port);
  copy(plan, scratch(0), out(0), 0, 1);
  EXPECT_EQ(races(plan), "");
}

TEST(Races, PacketsTellTheirReaderWhatTheirWriterHasRead) {
  // Each rank sends its input, and puts what it receives in its place.
  Plan plan = two_ranks();
  plan.collective = "allreduce";
  plan.inplace = true;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    ThreadBlock& sender = block(plan, rank, 0);
    add(sender, Opcode::put_packets, {in(0, 4)}, {at(2, 0, 4)}, {}, ChannelType::memory);
    // The packets that the other block sends back are made of what the first block has read.
    add(block(plan, rank, 1), Opcode::read_put_packets, {scratch(0, 4)}, {at(2, 4, 4)}, {},
        ChannelType::memory);
    add(sender, Opcode::unpack_packets, {scratch(4, 4)}, {in(0, 4)});
  }
  EXPECT_EQ(races(plan), "");
  EXPECT_EQ(replay(plan), "");
  // These packets are not made of it.
  for (uint32_t rank = 0; rank < 2; ++rank) {
    add(block(plan, rank, 1), Opcode::copy, {scratch(0)}, {in(5)});
    add(block(plan, rank, 1), Opcode::put_packets, {in(6)}, {at(2, 0)}, {}, ChannelType::memory);
    add(block(plan, rank, 0), Opcode::copy, {scratch(1)}, {in(6)});
  }
  EXPECT_TRUE(has(races(plan), "overwrites input[6:7]")) << races(plan);
}

TEST(Races, PacketsTellOnlyTheThreadsThatWaitForThem) {
  // Rank 1 sends a packet, reads scratch of rank 0, and sends another one. Only the second packet shows that
  // rank 1 has read.
  for (const uint32_t read : {0u, 1u}) {
    Plan plan = two_ranks();
    copy(plan, in(0), scratch(0), 0);
    copy(plan, in(1), scratch(1), 0);
    hand_over(plan, 0);
    ThreadBlock& reader = block(plan, 1);
    add(reader, Opcode::put_packets, {in(1)}, {at(2, 3)}, {}, ChannelType::memory);
    add(reader, Opcode::get, {at(2, read)}, {out(0)}, {0}, ChannelType::memory);
    nop(plan, 1);
    add(reader, Opcode::put_packets, {in(0)}, {at(2, 2)}, {}, ChannelType::memory);
    add(block(plan), Opcode::unpack_packets, {scratch(2, 2)}, {scratch(0, 2)});
    EXPECT_EQ(races(plan).empty(), read == 0) << races(plan);
    EXPECT_EQ(has(races(plan), "only packets at another place of this operation show that it has ended"),
              read == 1)
        << races(plan);
  }
}

TEST(Races, ForwardedPacketsTellWhatTheyWereToldBy) {
  // Rank 1 reads scratch of rank 0 and sends a packet to itself, which another block forwards to rank 0.
  Plan plan = two_ranks();
  copy(plan, in(0), scratch(0), 0);
  hand_over(plan, 0);
  add(block(plan, 1), Opcode::get, {at(2, 0)}, {out(0)}, {0}, ChannelType::memory);
  nop(plan, 1);
  add(block(plan, 1), Opcode::copy_packets, {in(0)}, {scratch(1)});
  add(block(plan, 1, 1), Opcode::read_put_packets, {scratch(1)}, {at(2, 1)}, {}, ChannelType::memory);
  add(block(plan), Opcode::unpack_packets, {scratch(1)}, {scratch(0)});
  EXPECT_EQ(races(plan), "");
}

TEST(Races, ASlotIsWrittenOnceInALaunch) {
  Plan plan = two_ranks();
  add(block(plan), Opcode::copy_packets, {in(0)}, {scratch(0)});
  nop(plan);
  add(block(plan), Opcode::unpack_packets, {scratch(0)}, {out(0)});
  EXPECT_EQ(races(plan), "");
  add(block(plan), Opcode::copy_packets, {in(1)}, {scratch(0)});
  EXPECT_NE(races(plan), "");
}

TEST(Races, OperandsThatOverlap) {
  Plan plan = two_ranks();
  copy(plan, scratch(0, 2), scratch(1, 2));
  EXPECT_TRUE(has(races(plan), "operands of this overlap in scratch[1:3] of rank 0"));
  plan = two_ranks();
  copy(plan, scratch(0, 2), scratch(0, 2));
  EXPECT_EQ(races(plan), "");
}

TEST(Races, SwitchReadsWhatWasReleased) {
  for (const bool released : {false, true}) {
    Plan plan = two_ranks();
    for (uint32_t rank = 0; rank < 2; ++rank) copy(plan, in(0), scratch(0), 0, rank);
    hand_over(plan, 1);
    if (released) hand_over(plan, 0);
    nop(plan);
    add(block(plan), Opcode::switch_reduce, {at(1, 0)}, {out(0)}, {}, ChannelType::switched);
    EXPECT_EQ(races(plan).empty(), released) << races(plan);
  }
}

TEST(Races, OutputThatAPeerReadsBehindTheLaunch) {
  for (const bool late : {false, true}) {
    Plan plan = two_ranks();
    hand_over(plan, 0);
    put(plan, in(0), 1, 0, 1);
    nop(plan, 1);
    if (late) hand_over(plan, 1);
    add(block(plan, 1), Opcode::get, {at(1, 0)}, {scratch(0)}, {0}, ChannelType::memory);
    if (!late) hand_over(plan, 1);
    EXPECT_EQ(has(races(plan), "this reads output[0:1] of rank 0, and nothing tells the rank when"), late)
        << races(plan);
  }
  // The race is found whichever of the two is examined first.
  Plan plan = two_ranks();
  hand_over(plan, 0);
  add(block(plan, 1), Opcode::get, {at(1, 0)}, {scratch(0)}, {0}, ChannelType::memory);
  EXPECT_TRUE(has(races(plan), "this reads output[0:1] of rank 0, and nothing tells the rank when"));
}

/// The finding is the same whatever the peer's speed. Here the peer reaches its end after three launches of
/// the rank that reads.
TEST(Races, OutputThatAPeerReadsBeforeTheLaunch) {
  for (const bool early : {true, false}) {
    Plan plan = two_ranks();
    if (!early) hand_over(plan, 1);
    add(block(plan), Opcode::get, {at(1, 0)}, {scratch(0)}, {0}, ChannelType::memory);
    nop(plan);
    hand_over(plan, 0);
    EXPECT_EQ(races(plan),
              early ? "this reads output[0:1] of rank 1, and nothing says that this rank has begun: the "
                      "application may still be using it at 0.0.0\n"
                    : "");
  }
  Plan plan = two_ranks();
  add(block(plan), Opcode::get, {at(1, 0)}, {scratch(0)}, {0}, ChannelType::memory);
  control(plan, Opcode::sem_acquire, 0, 1);
  control(plan, Opcode::sem_release, 0, 1, 1);
  EXPECT_TRUE(has(races(plan), "this reads output[0:1] of rank 1, and nothing says that this rank has begun"))
      << races(plan);
  // A packet shows that the application is done, but does not publish its data. A signal does, even a relaxed
  // one.
  for (const bool relaxed : {true, false}) {
    plan = two_ranks();
    if (relaxed) {
      hand_over(plan, 1, 0, true);
    } else {
      add(block(plan, 1), Opcode::put_packets, {in(0)}, {at(2, 0)}, {}, ChannelType::memory);
      add(block(plan), Opcode::unpack_packets, {scratch(0)}, {scratch(1)});
      nop(plan);
    }
    add(block(plan), Opcode::get, {at(1, 0)}, {scratch(0)}, {0}, ChannelType::memory);
    nop(plan);
    hand_over(plan, 0);
    EXPECT_EQ(races(plan).empty(), relaxed) << races(plan);
  }
}

TEST(Races, OutputThatIsStillRead) {
  // The application has finished with a peer's last output only after the peer has begun.
  Plan plan = two_ranks();
  put(plan, in(0), 1, 0);
  hand_over(plan, 0);
  EXPECT_TRUE(
      has(races(plan), "this overwrites output[0:1] of rank 1, and nothing says that this rank has begun"));
  plan = two_ranks();
  hand_over(plan, 1);
  put(plan, in(0), 1, 0);
  control(plan, Opcode::signal, 1, 0);
  control(plan, Opcode::wait, 1, 1);
  EXPECT_EQ(races(plan), "");
}

TEST(Races, FindingsHaveTheirEvents) {
  Plan plan = two_ranks();
  copy(plan, in(0), scratch(0), 0);
  copy(plan, scratch(0), out(0), 1);
  const Proof proof = prove_plan(plan);
  ASSERT_EQ(proof.findings.size(), 1u);
  const Finding& finding = proof.findings[0];
  EXPECT_EQ(finding.proof, "races");
  EXPECT_EQ(finding.kind, Finding::Kind::race);
  ASSERT_EQ(finding.events.size(), 2u);
  EXPECT_EQ(place_of(finding.events[0].at), "0.0.0");
  EXPECT_TRUE(finding.events[0].writes);
  EXPECT_EQ(place_of(finding.events[1].at), "0.1.0");
  EXPECT_FALSE(finding.events[1].writes);
  EXPECT_EQ(finding.events[1].buffer, BufferKind::scratch);
  EXPECT_EQ(finding.known, 0u);
}

TEST(Races, InPlaceInputIsOutput) {
  Plan plan = two_ranks();
  plan.collective = "allreduce";
  copy(plan, in(0), scratch(0), 0);
  copy(plan, scratch(1), out(0), 1);
  EXPECT_EQ(races(plan), "");
  plan.inplace = true;
  EXPECT_TRUE(has(races(plan), "overwrites output[0:1] of rank 0, which another operation reads"));
}

TEST(Races, CompetitorsInEveryOrder) {
  // A lock separates them, whichever comes first.
  Plan plan = two_ranks();
  plan.gpus[0].semaphores[0] = 1;
  for (uint32_t on = 0; on < 2; ++on) {
    control(plan, Opcode::sem_acquire, 0, 0, on);
    add(block(plan, 0, on), Opcode::reduce, {scratch(0), in(on)}, {scratch(0)});
    control(plan, Opcode::sem_release, 0, 0, on);
  }
  EXPECT_EQ(races(plan), "");
  plan.gpus[0].semaphores[0] = 2;
  EXPECT_NE(races(plan), "");
}

/// A block fills scratch turn by turn and another empties it. With `back` the second block signals
/// that, and the first one waits for it.
Plan ring_of_chunks(bool back) {
  Plan plan = two_ranks();
  plan.gpus[0].semaphores = {0, 1, 0};
  for (uint32_t on = 0; on < 2; ++on) {
    Op& loop = append(block(plan, 0, on), Opcode::pipeline, {}, {});
    loop.unit_bytes = 16;
    loop.chunks = 1;
    loop.body = back ? 3 : 2;
    if (back) control(plan, Opcode::sem_acquire, on == 0 ? 1 : 0, 0, on);
    // Packets stay at the beginning of their slot's unit; plain units advance.
    if (!back && on == 1) control(plan, Opcode::sem_acquire, 0, 0, on);
    if (on == 0)
      copy(plan, in(0), scratch(0), 0);
    else
      copy(plan, scratch(0), out(0), 1);
    if (back || on == 0) control(plan, Opcode::sem_release, on == 0 ? 0 : 1, 0, on);
  }
  return plan;
}

TEST(Races, PipelinesAdvanceUnitByUnit) {
  EXPECT_EQ(races(ring_of_chunks(true)), "");
  EXPECT_EQ(races(ring_of_chunks(false)), "");
  // Without a token each turn reads what is being written.
  Plan plan = ring_of_chunks(false);
  plan.gpus[0].threadblocks[1].ops[1].code = Opcode::sem_release;
  plan.gpus[0].threadblocks[0].ops[2].code = Opcode::sem_acquire;
  EXPECT_NE(races(plan), "");
}

}  // namespace
}  // namespace chorale
