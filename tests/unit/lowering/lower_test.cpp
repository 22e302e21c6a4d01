/// \file
/// These tests check what single operations are lowered to.

#include <gtest/gtest.h>

#include "recorded.hpp"

namespace chorale {
namespace {

using namespace lowering;

TEST(Lower, alternates_banks) {
  for (const bool two : {false, true}) {
    Plan plan = two_wholes();
    plan.use_double_scratch_buffer = two;
    add(block(plan), Opcode::copy, {in(0)}, {scratch(3)});
    add(block(plan), Opcode::copy_packets, {in(0)}, {scratch(3)});
    const Recorded of(plan, 128);
    const auto steps = of.steps();
    const ProgramPlace input = steps.at(0).plain[0], plain = steps.at(0).plain[1],
                       packets = steps.at(1).packets[0];
    char passed[16];
    EXPECT_EQ(input.settled(1, passed, nullptr), passed);
    EXPECT_EQ(input.settled(2, passed, nullptr), passed);
    const auto apart = [](const ProgramPlace& place) {
      return place.settled(2, nullptr, nullptr) - place.settled(1, nullptr, nullptr);
    };
    EXPECT_EQ(apart(plain), two ? 128 : 0);
    // This is always so, because they must not be overwritten while a slow peer still reads them. Chunks 0 to
    // 3 have enough space.
    EXPECT_EQ(apart(packets), 128);
    EXPECT_EQ(packets.settled(1, nullptr, nullptr), packets.settled(3, nullptr, nullptr));
  }
}

TEST(Lower, batches_what_does_not_touch_each_other) {
  Plan plan = two_wholes();
  for (uint64_t chunk = 0; chunk < 4; ++chunk) add(block(plan), Opcode::copy, {in(chunk)}, {scratch(chunk)});
  add(block(plan), Opcode::copy, {scratch(2)}, {scratch(4)});  // reads what another one writes
  add(block(plan), Opcode::copy, {scratch(2)}, {scratch(5)});
  const auto steps = Recorded(plan, 128).steps();
  ASSERT_EQ(steps.size(), 6u);
  EXPECT_EQ(steps[0].step.batch, 4u);
  EXPECT_EQ(steps[4].step.batch, 2u);
  EXPECT_EQ(steps[5].step.batch, 1u);
}

TEST(Lower, tells_how_many_threads_have_something_to_do) {
  Plan side_by_side = two_wholes();
  for (uint64_t chunk = 0; chunk < 4; ++chunk) {
    add(block(side_by_side), Opcode::copy, {in(chunk)}, {scratch(chunk)});
  }
  EXPECT_EQ(Recorded(side_by_side, 100 * 128).program.busy_threads, 400u);     // chunks of 100 units
  EXPECT_EQ(Recorded(side_by_side, 100 * 128, 1).program.busy_threads, 100u);  // batches end with their page

  Plan in_turn = two_wholes();
  add(block(in_turn), Opcode::copy, {in(0, 4)}, {scratch(0, 4)});
  add(block(in_turn), Opcode::copy, {scratch(0, 8)}, {out(0, 8)});  // reads what the first one writes
  EXPECT_EQ(Recorded(in_turn, 100).program.busy_threads, 7u);       // 100 bytes exist

  Plan waits = two_wholes();
  for (const uint32_t id : {0, 1}) add(block(waits), Opcode::wait, {}, {}, {id}, ChannelType::memory);
  EXPECT_EQ(Recorded(waits, 128).program.busy_threads, 2u);
}

TEST(Lower, joins_waits_and_leaves_out_syncs_beside_them) {
  Plan plan = two_wholes();
  add(block(plan), Opcode::copy, {in(0)}, {out(0)});
  add(block(plan), Opcode::nop);
  for (const uint32_t id : {0, 1}) {
    add(block(plan), Opcode::wait, {}, {}, {id}, ChannelType::memory);
    add(block(plan), Opcode::nop);
  }
  add(block(plan), Opcode::copy, {in(1)}, {out(1)});
  const auto steps = Recorded(plan, 128).steps();
  ASSERT_EQ(steps.size(), 3u);
  ASSERT_EQ(steps[1].step.n, 2u);
  EXPECT_EQ(steps[1].items[0].await.op, 2u);
  EXPECT_EQ(steps[1].items[1].await.op, 4u);
}

/// Packs its own input beside packets that have arrived, and adds them up.
Plan own_beside_others(const std::vector<Operand>& sources, const Operand& sum) {
  Plan plan = two_wholes();
  add(block(plan), Opcode::copy_packets, {in(0, 2)}, {scratch(2, 2)});
  add(block(plan), Opcode::nop);
  add(block(plan), Opcode::combine_packets, sources, {sum});
  return plan;
}

TEST(Lower, adds_what_is_its_own_from_where_it_lies) {
  const Operand own = scratch(2, 2), first = scratch(0, 2), second = scratch(4, 2);
  const std::vector<std::vector<Operand>> orders = {
      {own, first, second}, {first, own, second}, {first, second, own}};
  for (uint16_t place = 0; place < 3; ++place) {
    const auto steps = Recorded(own_beside_others(orders[place], out(0, 2)), 128).steps();
    ASSERT_EQ(steps.size(), 1u) << place;
    EXPECT_EQ(steps[0].step.kind, ProgramStepKind::reduce_packets);
    EXPECT_EQ(steps[0].step.own, place + 1);
    EXPECT_EQ(steps[0].step.n, 2u);
    EXPECT_EQ(steps[0].plain[0].at, ProgramPlace::in);
    EXPECT_EQ(steps[0].packets[1].at - steps[0].packets[0].at, 4 * 32u);
  }
}

TEST(Lower, packs_what_others_may_see_or_what_is_overwritten) {
  const std::vector<Operand> sources = {scratch(0, 2), scratch(2, 2)};
  const auto size = [](const Plan& plan) { return Recorded(plan, 128).steps().size(); };
  EXPECT_EQ(size(own_beside_others(sources, in(0, 2))), 1u);  // each unit is read before it is written
  EXPECT_GT(size(own_beside_others(sources, in(1, 2))), 1u);

  Plan read_elsewhere = own_beside_others(sources, out(0, 2));
  add(block(read_elsewhere, 0, 1), Opcode::unpack_packets, {scratch(3)}, {out(5)});
  EXPECT_GT(size(read_elsewhere), 1u);

  Plan told = two_wholes();
  add(block(told), Opcode::copy_packets, {in(0, 2)}, {scratch(2, 2)});
  add(block(told), Opcode::signal, {}, {}, {0}, ChannelType::memory);
  add(block(told), Opcode::combine_packets, sources, {out(0, 2)});
  EXPECT_EQ(size(told), 3u);
}

TEST(Lower, breaks_pages_between_steps) {
  Plan plan = two_wholes();
  for (uint64_t chunk = 0; chunk < 8; ++chunk) add(block(plan), Opcode::copy, {in(chunk)}, {out(chunk)});
  add(block(plan, 0, 1), Opcode::copy, {in(0)}, {out(0)});
  const Recorded of(plan, 128, 200);
  EXPECT_GT(of.program.pages, 2u);
  EXPECT_LE(of.program.page.shared_bytes(), 200u);
  const auto steps = of.steps();
  ASSERT_EQ(steps.size(), 8u);
  for (uint32_t at = 0; at < 8; ++at) {
    EXPECT_EQ(steps[at].step.op, at);
    EXPECT_EQ(steps[at].plain[0].at, ProgramPlace::in + at * 16);
  }
  EXPECT_EQ(steps.back().page, of.program.pages - 1);
  EXPECT_EQ(of.steps(1).size(), 1u);  // its other pages are not used
}

TEST(Lower, gives_a_large_step_a_page_of_its_own) {
  Plan plan = two_wholes();
  add(block(plan), Opcode::copy, {in(0)}, {scratch(0)});
  add(block(plan), Opcode::reduce, {in(0), in(1), in(2), in(3), in(4), in(5), in(6), in(7)}, {out(0)});
  add(block(plan), Opcode::copy, {in(0)}, {scratch(1)});
  const auto steps = Recorded(plan, 128, 128).steps();
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[1].page, 1u);
  EXPECT_EQ(steps[1].step.n, 7u);
  EXPECT_EQ(steps[2].page, 2u);
}

TEST(Lower, refuses_a_step_that_no_page_holds) {
  Plan plan = two_wholes();
  std::vector<Operand> sources(6000, scratch(0));
  sources[0] = in(0);
  add(block(plan), Opcode::reduce_packets, sources, {out(0)});
  EXPECT_THROW(Recorded(plan, 128), RunError);
}

TEST(Lower, pushes_data_and_then_its_signal) {
  Plan plan = two_wholes();
  add(block(plan), Opcode::copy, {in(1)}, {out(1)});  // its places come first in the page
  add(block(plan), Opcode::put_with_signal, {in(0)}, {at(2, 3)}, {1}, ChannelType::port);
  const Recorded of(plan, 128);
  const auto steps = of.steps();
  ASSERT_EQ(steps.size(), 4u);
  const SyncItem::Push data = steps[1].items[0].push, signal = steps[2].items[0].push;
  EXPECT_EQ(steps[1].step.kind, ProgramStepKind::push);
  EXPECT_EQ(steps[1].step.bytes, 16u);
  EXPECT_EQ(data.from, 2u);
  EXPECT_EQ(data.to, 3u);
  EXPECT_EQ(steps[1].plain[0].at, ProgramPlace::in);
  EXPECT_EQ(data.channel, 3u);  // after two memory channels
  EXPECT_EQ(data.pushed, of.places.pushed + 3);
  EXPECT_EQ(data.signal, 0u);
  EXPECT_EQ(signal.signal, 1u);
  EXPECT_EQ(signal.from, ~0u);
  // The launch ends when the data has been read from its place.
  EXPECT_EQ(steps[3].step.kind, ProgramStepKind::drain);
  ASSERT_EQ(steps[3].step.n, 1u);
  EXPECT_EQ(steps[3].items[0].drain.pushed, of.places.pushed + 3);
  EXPECT_EQ(steps[3].items[0].drain.completed, of.places.completed + 3);
}

TEST(Lower, waits_once_for_what_it_pushed) {
  Plan plan = two_wholes();
  for (const uint32_t channel : {0, 1, 0}) {
    add(block(plan), Opcode::put, {in(0)}, {at(2, 3)}, {channel}, ChannelType::port);
  }
  add(block(plan), Opcode::flush, {}, {}, {0}, ChannelType::port);
  add(block(plan, 0, 1), Opcode::signal, {}, {}, {0}, ChannelType::port);
  const Recorded of(plan, 128);
  const auto steps = of.steps();
  ASSERT_EQ(steps.size(), 5u);  // of channel 0 the plan's own flush; a signal leaves nothing to wait for
  EXPECT_EQ(steps[3].step.kind, ProgramStepKind::drain);
  EXPECT_EQ(steps[3].items[0].drain.pushed, of.places.pushed + 2);
  EXPECT_EQ(steps[4].step.kind, ProgramStepKind::drain);
  ASSERT_EQ(steps[4].step.n, 1u);
  EXPECT_EQ(steps[4].items[0].drain.pushed, of.places.pushed + 3);
  EXPECT_EQ(of.steps(1).size(), 1u);
}

TEST(Lower, pushes_what_exists) {
  Plan plan = two_wholes();
  add(block(plan), Opcode::put, {in(6, 2)}, {at(0, 6, 2)}, {0}, ChannelType::port);
  const auto steps = Recorded(plan, 100).steps();
  ASSERT_EQ(steps.size(), 2u);  // and the wait for it
  EXPECT_EQ(steps[0].step.bytes, 4u);
}

TEST(Lower, counts_in_one_place_for_blocks_that_share_a_channel) {
  Plan plan = two_wholes();
  for (const uint32_t id : {0, 1}) add(block(plan, 0, id), Opcode::wait, {}, {}, {0}, ChannelType::memory);
  add(block(plan), Opcode::signal, {}, {}, {1}, ChannelType::memory);
  add(block(plan), Opcode::wait, {}, {}, {1}, ChannelType::memory);
  add(block(plan), Opcode::relaxed_wait, {}, {}, {0, 1}, ChannelType::port);
  add(block(plan), Opcode::wait, {}, {}, {1}, ChannelType::memory);
  const Recorded of(plan, 128);
  const auto steps = of.steps();
  ASSERT_EQ(steps.size(), 5u);
  EXPECT_EQ(steps[0].items[0].await.expected, of.places.expected);
  EXPECT_EQ(of.steps(1)[0].items[0].await.expected, of.places.expected);
  EXPECT_EQ(steps[0].items[0].await.mine, of.places.signals[0]);
  EXPECT_EQ(steps[2].items[0].await.expected, nullptr);
  EXPECT_EQ(steps[2].items[0].await.slot, 0u);
  EXPECT_EQ(steps[3].items[0].await.slot, 1u);
  EXPECT_EQ(steps[3].items[1].await.slot, 2u);
  EXPECT_EQ(steps[4].items[0].await.slot, 0u);
  EXPECT_GE(of.program.state_bytes, sizeof(BlockState) + 3 * sizeof(uint64_t));
}

TEST(Lower, slices_what_a_group_shares) {
  uint64_t next = 0;
  for (const uint32_t member : {0, 1, 2}) {
    Plan plan = two_wholes();
    Op& op = add(block(plan), Opcode::copy, {in(0, 7)}, {scratch(0, 7)});
    op.group_index = member;
    op.group_size = 3;
    const auto steps = Recorded(plan, 128).steps();
    ASSERT_EQ(steps.size(), 1u);
    EXPECT_EQ(steps[0].plain[0].at, ProgramPlace::in + next);
    EXPECT_EQ(steps[0].plain[1].at, Recorded::base_of(2) + next);
    EXPECT_EQ(steps[0].step.bytes, member == 0 ? 48u : 32u);
    next += steps[0].step.bytes;
  }
  EXPECT_EQ(next, 7 * 16u);
}

}  // namespace
}  // namespace chorale
