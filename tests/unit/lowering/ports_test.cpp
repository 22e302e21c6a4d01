/// \file
/// These tests run port channels in seeded orders, in which the proxy does its copies late.

#include "tests/unit/compiler/helpers.hpp"
#include "tests/unit/lowering/bound_ranks.hpp"

namespace chorale::test {
namespace {

// The caller writes its next input as soon as a launch has ended, as it may after a kernel in a stream.
TEST(Ports, have_read_the_input_when_the_launch_ends) {
  Plan plan = two_ranks();
  plan.collective = "broadcast";
  const uint32_t output = 1;
  add(block(plan, 0), Opcode::copy, {in(0, 8)}, {out(0, 8)});
  add(block(plan, 0), Opcode::wait, {}, {}, {0}, ChannelType::memory);  // the last output has been read
  add(block(plan, 0), Opcode::put_with_signal, {in(0, 8)}, {at(output, 0, 8)}, {0}, ChannelType::port);
  add(block(plan, 1), Opcode::signal, {}, {}, {0}, ChannelType::memory);
  add(block(plan, 1), Opcode::wait, {}, {}, {0}, ChannelType::port);
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_EQ(BoundRanks(plan, {.bytes = 512, .launches = 10, .seed = seed}).run(), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace chorale::test
