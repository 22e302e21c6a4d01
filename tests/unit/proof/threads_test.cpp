// These tests check the order between the threads of a block, and between the two ways to memory that a
// switch reaches.

#include "tests/has.hpp"
#include "tests/unit/proof/findings.hpp"

namespace chorale {
namespace {

using test::has;

void switch_reduce(Plan& plan, uint32_t on = 0, uint32_t rank = 0) {
  add(block(plan, rank, on), Opcode::switch_reduce, {at(1, 0)}, {out(0)}, {}, ChannelType::switched);
}

TEST(Threads, PairsOfAnOperation) {
  // An element is at another position of the second pair, so another thread handles it.
  Plan plan = two_ranks();
  hand_over(plan, 1);
  add(block(plan), Opcode::put, {in(0, 2), in(2, 2)}, {at(2, 0, 2), at(2, 1, 2)}, {}, ChannelType::memory);
  EXPECT_TRUE(has(races(plan), "overwrites scratch[1:3] of rank 1, which another thread of the block"));
  // If the operands are the very same, one thread does both, in order.
  plan = two_ranks();
  hand_over(plan, 1);
  add(block(plan), Opcode::put, {in(0, 2), in(0, 2)}, {at(2, 0, 2), at(2, 0, 2)}, {}, ChannelType::memory);
  EXPECT_EQ(races(plan), "");
}

TEST(Threads, TurnsOfAPipeline) {
  // A turn reads what the previous one wrote, one chunk further.
  for (const bool synchronised : {false, true}) {
    Plan plan = two_ranks();
    loop(plan, synchronised ? 3 : 1).chunks = 2;
    if (synchronised) {
      copy(plan, scratch(0, 2), out(0, 2));
      nop(plan);
      copy(plan, scratch(4, 2), out(2, 2));
    } else {
      copy(plan, scratch(0, 2), scratch(1, 2));
    }
    EXPECT_EQ(races(plan).empty(), synchronised) << races(plan);
  }
}

/// Rank 0 sends its chunk to both ranks' scratch, and overwrites it when rank 1 has answered one of the
/// packets.
Plan answered(bool first) {
  Plan plan = two_ranks();
  copy(plan, in(0), scratch(7));
  nop(plan);
  add(block(plan), Opcode::put_packets, {scratch(7), scratch(7)}, {at(2, 0), at(2, 1)}, {},
      ChannelType::memory);
  add(block(plan, 1), Opcode::read_put_packets, {scratch(first ? 0 : 1)}, {at(2, 2)}, {},
      ChannelType::memory);
  add(block(plan, 0, 1), Opcode::unpack_packets, {scratch(2)}, {scratch(7)});
  return plan;
}

TEST(Threads, PacketsTellOfTheirOwnPairOnly) {
  // An answer to one packet does not show that the other one was read.
  EXPECT_TRUE(has(races(answered(true)), "overwrites scratch[7:8] of rank 0"));
  EXPECT_TRUE(has(races(answered(false)), "overwrites scratch[7:8] of rank 0"));
  Plan plan = two_ranks();
  add(block(plan), Opcode::put_packets, {scratch(7)}, {at(2, 0)}, {}, ChannelType::memory);
  add(block(plan, 1), Opcode::read_put_packets, {scratch(0)}, {at(2, 2)}, {}, ChannelType::memory);
  add(block(plan, 0, 1), Opcode::unpack_packets, {scratch(2)}, {scratch(7)});
  EXPECT_EQ(races(plan), "");
}

TEST(Threads, PacketsOverPacketsFurtherOn) {
  for (const uint64_t to : {1u, 2u}) {
    Plan plan = two_ranks();
    add(block(plan), Opcode::put_packets, {in(0, 2)}, {at(2, 0, 2)}, {}, ChannelType::memory);
    add(block(plan, 1), Opcode::reduce_copy_packets, {in(0, 2), scratch(0, 2)}, {out(0, 2), scratch(to, 2)});
    EXPECT_EQ(has(races(plan), "operands of this overlap in packets of scratch[1:3] of rank 1"), to == 1)
        << races(plan);
  }
}

TEST(Threads, PacketsOverPacketsThatAreNotVisible) {
  // A relaxed signal shows that the first ones were sent, not that they have arrived.
  for (const bool relaxed : {false, true}) {
    Plan plan = two_ranks();
    add(block(plan), Opcode::put_packets, {in(0)}, {at(2, 0)}, {}, ChannelType::memory);
    nop(plan);
    hand_over(plan, 0, 0, relaxed);
    add(block(plan, 1), Opcode::copy_packets, {in(0)}, {scratch(0)});
    EXPECT_EQ(has(races(plan), "overwrites packets of scratch[0:1] of rank 1"), relaxed) << races(plan);
  }
}

TEST(Threads, PacketsOverPacketsThatTheirBlockHasRead) {
  // A block sees its own packets before others can. Another block receives them when they have arrived.
  for (const uint32_t reader : {0u, 1u}) {
    Plan plan = two_ranks();
    add(block(plan, 1), Opcode::copy_packets, {in(0)}, {scratch(0)});
    add(block(plan, 1, reader), Opcode::read_put_packets, {scratch(0)}, {at(2, 1)}, {}, ChannelType::memory);
    add(block(plan, 0), Opcode::read_put_packets, {scratch(1)}, {at(2, 0)}, {}, ChannelType::memory);
    EXPECT_EQ(has(races(plan), "overwrites packets of scratch[0:1] of rank 1"), reader == 0) << races(plan);
  }
}

TEST(Threads, PacketsOverPacketsThatAreForwardedToTheirOwnPlace) {
  // A switch stores them at all ranks, including their source. A rank that has received one of them knows
  // nothing about the others.
  for (const bool signalled : {false, true}) {
    Plan plan = two_ranks();
    add(block(plan, 0), Opcode::put_packets, {in(0)}, {at(2, 0)}, {}, ChannelType::memory);
    add(block(plan, 1), Opcode::switch_broadcast_packets, {scratch(0)}, {at(1, 0)}, {},
        ChannelType::switched);
    if (signalled) hand_over(plan, 1);
    add(block(plan, 0), Opcode::reduce_send_packets, {in(1), scratch(0)}, {out(1), at(2, 0)}, {},
        ChannelType::memory);
    EXPECT_EQ(has(races(plan), "overwrites packets of scratch[0:1] of rank 1"), !signalled) << races(plan);
  }
}

TEST(Threads, ARelaxedSignalMayComeFirst) {
  // Threads that do not wait post both of them, so the wait may be for either.
  for (const bool apart : {false, true}) {
    Plan plan = two_ranks();
    add(block(plan), Opcode::put, {in(0)}, {at(2, 0)}, {}, ChannelType::memory);
    control(plan, Opcode::signal, 0, 0);
    if (apart) nop(plan);
    control(plan, Opcode::relaxed_signal, 0, 0);
    control(plan, Opcode::wait, 0, 1);
    copy(plan, scratch(0), out(0), 0, 1);
    control(plan, Opcode::relaxed_wait, 0, 1);
    EXPECT_EQ(races(plan).empty(), apart) << races(plan);
  }
  // A relaxed signal on another channel cannot be mistaken for the signal.
  Plan plan = two_ranks();
  add(block(plan), Opcode::put, {in(0)}, {at(2, 0)}, {}, ChannelType::memory);
  control(plan, Opcode::signal, 0, 0);
  control(plan, Opcode::relaxed_signal, 1, 0);
  control(plan, Opcode::wait, 0, 1);
  copy(plan, scratch(0), out(0), 0, 1);
  control(plan, Opcode::relaxed_wait, 1, 1);
  EXPECT_EQ(races(plan), "");
}

TEST(Threads, ARelaxedSignalOfTheNextTurnMayComeFirst) {
  for (const bool apart : {false, true}) {
    Plan plan = two_ranks();
    for (uint32_t rank = 0; rank < 2; ++rank) {
      Op& turns = append(block(plan, rank), Opcode::pipeline, {}, {});
      turns.unit_bytes = 64;
      turns.chunks = 1;
      turns.body = rank == 0 && !apart ? 3 : 4;
      control(plan, rank ? Opcode::relaxed_wait : Opcode::relaxed_signal, 0, rank);
      if (rank == 0) add(block(plan), Opcode::put, {in(0)}, {at(2, 0)}, {}, ChannelType::memory);
      control(plan, rank ? Opcode::wait : Opcode::signal, 0, rank);
      if (rank == 0 && apart) nop(plan);
      if (rank == 1) copy(plan, scratch(0), out(0), 0, 1);
      if (rank == 1) nop(plan, 1);
    }
    EXPECT_EQ(races(plan).empty(), apart) << races(plan);
  }
}

TEST(Threads, ASignalReleasesFromTheNextSyncOn) {
  // One thread signals; the other threads may be ahead of it.
  for (const bool met : {false, true}) {
    Plan plan = two_ranks();
    for (uint32_t rank = 0; rank < 2; ++rank) copy(plan, in(0), scratch(0), 0, rank);
    hand_over(plan, 1);
    control(plan, Opcode::signal, 0, 0);
    if (met) nop(plan);
    switch_reduce(plan);
    control(plan, Opcode::wait, 0, 1);
    EXPECT_EQ(races(plan).empty(), met) << races(plan);
  }
}

TEST(Threads, ABarrierReleasesToItsRankOnly) {
  // Another block of the same rank reads a put to a peer back through the switch.
  for (const bool signalled : {false, true}) {
    Plan plan = two_ranks();
    copy(plan, in(0), scratch(0), 1);
    copy(plan, in(0), scratch(0), 0, 1);
    hand_over(plan, 1);
    add(block(plan), Opcode::put, {in(0)}, {at(2, 0)}, {}, ChannelType::memory);
    if (signalled) control(plan, Opcode::signal, 1, 0);
    sync(plan);
    switch_reduce(plan, 1);
    if (signalled) control(plan, Opcode::wait, 1, 1);
    EXPECT_EQ(has(races(plan), "reads scratch[0:1] of rank 1"), !signalled) << races(plan);
    EXPECT_FALSE(has(races(plan), "reads scratch[0:1] of rank 0")) << races(plan);
  }
}

TEST(Threads, PlainReadsOfWhatASwitchWrote) {
  for (const bool released : {false, true}) {
    Plan plan = two_ranks();
    hand_over(plan, 1);
    add(block(plan), Opcode::switch_broadcast, {in(0)}, {at(1, 0)}, {}, ChannelType::switched);
    nop(plan);
    if (released) control(plan, Opcode::barrier, 0, 0).participants = 1;
    copy(plan, scratch(0), out(0));
    EXPECT_EQ(races(plan).empty(), released) << races(plan);
  }
}

}  // namespace
}  // namespace chorale
