// What orders the threads of a block, and the two ways to memory that a switch reaches.

#include "tests/unit/proof/findings.hpp"

namespace chorale {
namespace {

std::string races(const Plan& plan) { return found("races", plan); }

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

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

}  // namespace
}  // namespace chorale
