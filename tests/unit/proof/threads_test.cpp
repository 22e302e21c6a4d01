// What orders the threads of a block, and the two ways to memory that a switch reaches.

#include "tests/unit/proof/findings.hpp"

namespace chorale {
namespace {

std::string races(const Plan& plan) { return found("races", plan); }

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

void copy(Plan& plan, const Operand& from, const Operand& to, uint32_t on = 0, uint32_t rank = 0) {
  add(block(plan, rank, on), Opcode::copy, {from}, {to});
}
void nop(Plan& plan, uint32_t rank = 0, uint32_t on = 0) { add(block(plan, rank, on), Opcode::nop); }
TEST(Threads, PairsOfAnOperation) {
  // A cell is at another place of the second pair, thus another thread's.
  Plan plan = two_ranks();
  hand_over(plan, 1);
  add(block(plan), Opcode::put, {in(0, 2), in(2, 2)}, {at(2, 0, 2), at(2, 1, 2)}, {}, ChannelType::memory);
  EXPECT_TRUE(has(races(plan), "overwrites scratch[1:3] of rank 1, which another thread of the block"));
  // The very same operands: one thread does both, in order.
  plan = two_ranks();
  hand_over(plan, 1);
  add(block(plan), Opcode::put, {in(0, 2), in(0, 2)}, {at(2, 0, 2), at(2, 0, 2)}, {}, ChannelType::memory);
  EXPECT_EQ(races(plan), "");
}

TEST(Threads, TurnsOfAPipeline) {
  // A turn reads what the one before it wrote, one chunk further on.
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
  add(block(plan), Opcode::put_packets, {scratch(7), scratch(7)}, {at(2, 0), at(2, 1)}, {},
      ChannelType::memory);
  add(block(plan, 1), Opcode::read_put_packets, {scratch(first ? 0 : 1)}, {at(2, 2)}, {},
      ChannelType::memory);
  add(block(plan, 0, 1), Opcode::unpack_packets, {scratch(2)}, {scratch(7)});
  return plan;
}

TEST(Threads, PacketsTellOfTheirOwnPairOnly) {
  // An answer to one packet says nothing of the read for the other one.
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
  // A relaxed signal says that the first ones are on their way, not that they have arrived.
  for (const bool relaxed : {false, true}) {
    Plan plan = two_ranks();
    add(block(plan), Opcode::put_packets, {in(0)}, {at(2, 0)}, {}, ChannelType::memory);
    nop(plan);
    hand_over(plan, 0, 0, relaxed);
    add(block(plan, 1), Opcode::copy_packets, {in(0)}, {scratch(0)});
    EXPECT_EQ(has(races(plan), "overwrites packets of scratch[0:1] of rank 1"), relaxed) << races(plan);
  }
}

}  // namespace
}  // namespace chorale
