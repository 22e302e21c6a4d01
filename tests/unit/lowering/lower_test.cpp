/// \file
/// These tests check what single operations are lowered to.

#include "executor/lowering/lower.hpp"

#include <memory>

#include "chorale/error.hpp"
#include "chorale/layout.hpp"
#include "executor/lowering/steps.hpp"
#include "tests/unit/compiler/helpers.hpp"

namespace chorale {
namespace {

using namespace lowering;

/// Holds a step, with the contents of its page.
struct Seen {
  ProgramStep step;
  uint32_t page;
  const SyncItem* items;
  const ProgramPlace *plain, *packets;               ///< sources, then sinks
  std::shared_ptr<const std::vector<char>> program;  ///< keeps these alive
};

/// Returns two_ranks() with input and output in one piece each, so that only their last chunks may be short.
Plan two_wholes() {
  Plan plan = two_ranks();
  plan.collective = "allreduce";
  return plan;
}

/// Lowers rank 0. Buffers that are not passed have made-up addresses, because nothing runs here.
struct Recorded {
  lowering::BoundImage image;
  ProgramAddresses places;
  DeviceProgram program;

  static uint64_t base_of(size_t buffer) { return (buffer + 1) << 20; }

  Recorded(const Plan& plan, uint64_t bytes, uint64_t page_bytes = LowerOptions().page_bytes,
           uint64_t shift = 0, uint64_t loop_bytes = LowerOptions().loop_bytes)
      : Recorded(plan, layout_of(plan, bytes, DType::i32), page_bytes, shift, loop_bytes) {}
  Recorded(const Plan& plan, const Layout& layout, uint64_t page_bytes = LowerOptions().page_bytes,
           uint64_t shift = 0, uint64_t loop_bytes = LowerOptions().loop_bytes,
           PacketForm packet = PacketForm::ll8) {
    image = lowering::build_image(plan, 0, layout, DType::i32, {});
    for (size_t buffer = 2; buffer < image.buffers.size(); ++buffer) {
      image.buffers[buffer].base = reinterpret_cast<char*>(base_of(buffer) + shift);
    }
    for (size_t at = 0; at < image.channels.size(); ++at) {
      places.signals.push_back(reinterpret_cast<const Signal*>((uint64_t(1) << 40) + 4096 * at));
    }
    places.expected = reinterpret_cast<uint64_t*>(uint64_t(2) << 40);
    places.pushed = reinterpret_cast<uint64_t*>(uint64_t(3) << 40);
    places.completed = reinterpret_cast<const Signal*>(uint64_t(5) << 40);
    places.signals_at_peer.assign(image.channels.size(), reinterpret_cast<Signal*>(uint64_t(4) << 40));
    program = lower(image, places, packet,
                    {.page_bytes = page_bytes, .most_page_bytes = 160 << 10, .loop_bytes = loop_bytes});
  }

  std::vector<Seen> steps(uint32_t block = 0) const {
    std::vector<Seen> all;
    const auto kept = std::make_shared<const std::vector<char>>(program.bytes);
    const PageShape& shape = program.page;
    for (uint32_t page = 0; page < program.pages; ++page) {
      const char* const at = kept->data() + (uint64_t(block) * program.pages + page) * shape.bytes();
      const auto& header = *reinterpret_cast<const PageHeader*>(at);
      for (uint32_t step = 0; step < header.steps; ++step) {
        const ProgramStep& of = reinterpret_cast<const ProgramStep*>(at + sizeof header)[step];
        all.push_back({of, page, reinterpret_cast<const SyncItem*>(at + shape.items_at()) + of.first_item,
                       reinterpret_cast<const ProgramPlace*>(at + shape.plain_at()) + of.first_plain,
                       reinterpret_cast<const ProgramPlace*>(at + shape.packets_at()) + of.first_packets,
                       kept});
      }
      if (header.more == 0) break;
    }
    return all;
  }
};

TEST(Lower, splits_tails_off) {
  Plan plan = two_wholes();
  add(block(plan), Opcode::copy, {in(0, 8)}, {out(0, 8)});
  const Recorded of(plan, 12804);  // chunks of 1616 bytes, the last of 1492
  const auto steps = of.steps();
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].step.bytes, 12800u);
  EXPECT_EQ(steps[0].step.whole, 1);
  EXPECT_EQ(steps[0].step.passed, 3);
  EXPECT_EQ(steps[1].step.bytes, 128u);
  EXPECT_EQ(steps[1].step.whole, 0);
  EXPECT_EQ(steps[1].plain[0].at, ProgramPlace::in + 12800);
  EXPECT_EQ(steps[1].plain[1].at, ProgramPlace::out + 12800);
  EXPECT_EQ(steps[1].plain[0].valid, 4u);
  EXPECT_FALSE(of.program.whole);
}

TEST(Lower, keeps_the_tails_of_short_exchanges) {
  Plan plan = two_wholes();
  add(block(plan), Opcode::copy_packets, {in(0, 8)}, {scratch(0, 8)});
  const Recorded of(plan, 100);  // chunks of 16 bytes, the seventh of 4
  const auto steps = of.steps();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].step.bytes, 128u);
  EXPECT_EQ(steps[0].step.whole, 0);
  EXPECT_EQ(steps[0].plain[0].valid, 100u);
  EXPECT_TRUE(of.program.exchange);
  EXPECT_FALSE(of.program.whole);
  EXPECT_TRUE(Recorded(plan, 128).program.whole);
  // A block that signals is no exchange, and runs whole units faster.
  add(block(plan), Opcode::signal, {}, {}, {0}, ChannelType::memory);
  EXPECT_FALSE(Recorded(plan, 100).program.exchange);
  // A thread has several units of a long message.
  Plan long_one = two_wholes();
  add(block(long_one), Opcode::copy_packets, {in(0, 8)}, {scratch(0, 8)});
  EXPECT_TRUE(Recorded(long_one, 12800).program.exchange);
  EXPECT_FALSE(Recorded(long_one, 12804).program.exchange);
  EXPECT_EQ(Recorded(plan, 100).steps().at(1).step.bytes, 32u);
}

TEST(Lower, splits_the_tails_of_packets_off_with_their_data) {
  Plan plan = two_wholes();
  add(block(plan), Opcode::copy_packets, {in(0, 8)}, {scratch(0, 8)});
  const auto steps = Recorded(plan, 12804).steps();
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[1].packets[0].at - steps[0].packets[0].at, 2 * 12800u);
}

TEST(Lower, pads_the_last_lines_of_exchanges) {
  Plan plan = two_wholes();
  add(block(plan), Opcode::copy_packets, {in(0, 8)}, {scratch(0, 8)});
  const auto of = [&plan](uint64_t bytes) {
    return Recorded(plan, layout_of(plan, bytes, DType::i32, PacketForm::ll128), LowerOptions().page_bytes, 0,
                    LowerOptions().loop_bytes, PacketForm::ll128);
  };
  for (const uint64_t bytes : {uint64_t{1024}, uint64_t{1} << 20}) {
    const Recorded padded = of(bytes);
    const auto steps = padded.steps();
    ASSERT_EQ(steps.size(), 1u);
    EXPECT_EQ(steps[0].step.bytes % packet_payload<LL128>, 0u);
    EXPECT_GT(steps[0].step.bytes, bytes);
    EXPECT_EQ(steps[0].step.whole, 1);
    EXPECT_EQ(steps[0].plain[0].valid, bytes);
    EXPECT_TRUE(padded.program.exchange);
    EXPECT_TRUE(padded.program.whole);
  }
  const Recorded split = of(1028);
  ASSERT_EQ(split.steps().size(), 2u);
  EXPECT_EQ(split.steps()[0].step.bytes, 9 * packet_payload<LL128>);
  EXPECT_EQ(split.steps()[1].step.whole, 0);
  EXPECT_FALSE(split.program.exchange);
}

TEST(Lower, splits_lines_whose_places_have_different_ends) {
  RecordedStep step;
  step.step.kind = ProgramStepKind::unpack;
  step.step.bytes = 5 * packet_payload<LL128>;
  step.step.plain_sinks = 2;
  step.packets = {{4096, 0, 0}};
  step.plain = {{8192, 0, 464}, {16384, 0, 464}};
  std::vector<RecordedStep> alike{step};
  mark_whole(alike, PacketForm::ll128, false);
  EXPECT_EQ(alike.size(), 1u);
  step.plain[1].valid = unlimited;
  std::vector<RecordedStep> different{step};
  mark_whole(different, PacketForm::ll128, false);
  ASSERT_EQ(different.size(), 2u);
  EXPECT_EQ(different[0].step.bytes, 4 * packet_payload<LL128>);
  EXPECT_EQ(different[1].plain[0].valid, 464 - 4 * packet_payload<LL128>);
}

TEST(Lower, splits_nothing_where_nothing_is_missing) {
  Plan plan = two_wholes();
  add(block(plan), Opcode::copy, {in(0, 8)}, {out(0, 8)});
  const auto steps = Recorded(plan, 128).steps();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].step.bytes, 128u);
  EXPECT_EQ(steps[0].step.whole, 1);
}

TEST(Lower, leaves_odd_addresses_to_the_slow_way) {
  Plan plan = two_wholes();
  add(block(plan), Opcode::put, {in(0)}, {at(1, 0)}, {0}, ChannelType::memory);
  EXPECT_EQ(Recorded(plan, 128).steps().at(0).step.whole, 1);
  EXPECT_EQ(Recorded(plan, 128, LowerOptions().page_bytes, 4).steps().at(0).step.whole, 0);
}

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
  EXPECT_EQ(Recorded(in_turn, 100).program.busy_threads, 8u);       // chunks of 16 bytes

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

TEST(Lower, unrolls_pipelines) {
  Plan plan = two_wholes();
  Op& loop = add(block(plan), Opcode::pipeline);
  loop.unit_bytes = 32;
  loop.chunks = 5;
  loop.body = 2;
  add(block(plan), Opcode::copy, {in(0, 5)}, {out(0, 5)});
  add(block(plan), Opcode::nop);
  add(block(plan), Opcode::copy, {in(6)}, {out(6)});
  const auto steps = Recorded(plan, 128, LowerOptions().page_bytes, 0, 0).steps();
  ASSERT_EQ(steps.size(), 7u);
  for (uint32_t turn = 0; turn < 3; ++turn) {
    EXPECT_EQ(steps[2 * turn].step.op, 1u);
    EXPECT_EQ(steps[2 * turn].plain[0].at, ProgramPlace::in + turn * 32);
    EXPECT_EQ(steps[2 * turn].step.bytes, turn == 2 ? 16u : 32u);
    EXPECT_EQ(steps[2 * turn + 1].step.kind, ProgramStepKind::sync);
  }
  EXPECT_EQ(steps[6].step.op, 3u);
  EXPECT_EQ(steps[6].plain[0].at, ProgramPlace::in + 96);
}

/// Copies five chunks in turns of 32 bytes.
Plan in_turns() {
  Plan plan = two_wholes();
  Op& loop = add(block(plan), Opcode::pipeline);
  loop.unit_bytes = 32;
  loop.chunks = 5;
  loop.body = 2;
  add(block(plan), Opcode::copy, {in(0, 5)}, {out(0, 5)});
  add(block(plan), Opcode::nop);
  add(block(plan), Opcode::copy, {in(6)}, {out(6)});
  return plan;
}

TEST(Lower, keeps_turns_that_are_alike_as_a_loop) {
  const Recorded of(in_turns(), 8 * 112);  // 17 turns of 32 bytes, and one of 16
  const auto steps = of.steps();
  ASSERT_EQ(steps.size(), 6u);  // `repeat` synchronises the block, so no sync is before it
  EXPECT_EQ(steps[0].step.kind, ProgramStepKind::loop);
  EXPECT_EQ(steps[0].step.op, 0u);
  EXPECT_EQ(steps[1].step.kind, ProgramStepKind::copy);
  EXPECT_EQ(steps[1].step.bytes, 32u);
  EXPECT_EQ(steps[1].plain[0].at, ProgramPlace::in);
  EXPECT_EQ(steps[1].step.whole, 1);
  ASSERT_EQ(steps[2].step.kind, ProgramStepKind::repeat);
  EXPECT_EQ(steps[2].items[0].repeat.turns, 17u);
  EXPECT_EQ(steps[2].items[0].repeat.steps, 1u);
  EXPECT_EQ(steps[3].step.bytes, 16u);
  EXPECT_EQ(steps[3].plain[0].at, ProgramPlace::in + 17 * 32);
  EXPECT_EQ(steps[5].plain[0].at, ProgramPlace::in + 6 * 112);
  const PageShape& shape = of.program.page;
  EXPECT_EQ(shape.strides, shape.plain + shape.packets);
  const auto* const strides = reinterpret_cast<const uint64_t*>(of.program.bytes.data() + shape.strides_at());
  EXPECT_EQ(strides[steps[1].step.first_plain], 32u);
  EXPECT_EQ(strides[steps[3].step.first_plain], 0u);
}

TEST(Lower, moves_turns_of_odd_sizes_slowly) {
  Plan plan = in_turns();
  block(plan).ops[0].unit_bytes = 24;  // the second turn begins at an odd address
  const auto steps = Recorded(plan, 8 * 112).steps();
  ASSERT_EQ(steps.at(0).step.kind, ProgramStepKind::loop);
  EXPECT_EQ(steps.at(1).step.bytes, 24u);
  EXPECT_EQ(steps.at(1).step.whole, 0);
}

TEST(Lower, unrolls_a_loop_that_is_larger_than_allowed) {
  const auto kind_with = [](uint64_t loop_bytes) {
    return Recorded(in_turns(), 8 * 112, LowerOptions().page_bytes, 0, loop_bytes).steps().at(0).step.kind;
  };
  EXPECT_EQ(kind_with(1 << 10), ProgramStepKind::loop);
  EXPECT_EQ(kind_with(1 << 8), ProgramStepKind::copy);
}

/// Makes a copy of 64 bytes whose places advance by their strides in 10 turns.
RecordedStep copy_in_turns(uint64_t from, uint64_t from_stride, uint64_t to, uint64_t to_stride) {
  RecordedStep step;
  step.step.kind = ProgramStepKind::copy;
  step.step.bytes = 64;
  step.step.whole = 1;
  step.step.plain_sinks = 1;
  step.plain = {{from, 0, 64}, {to, 0, 64}};
  step.plain_strides = {from_stride, to_stride};
  step.turns = 10;
  return step;
}

TEST(Lower, batches_no_steps_that_meet_in_a_later_turn) {
  const auto batch = [](const RecordedStep& a, const RecordedStep& b) { return batch_from({a, b}, 0, 2); };
  constexpr uint64_t fixed = 1 << 20, moving = 2 << 20;
  EXPECT_EQ(batch(copy_in_turns(moving, 64, fixed, 0), copy_in_turns(moving + 4096, 64, fixed + 64, 0)), 2);
  // The first one writes a place that stays, which the second one's source reaches in its fifth turn.
  EXPECT_EQ(batch(copy_in_turns(moving, 64, fixed, 0), copy_in_turns(fixed - 256, 64, moving + 4096, 64)), 1);
  // Places that advance together never meet.
  EXPECT_EQ(batch(copy_in_turns(fixed, 0, moving, 64), copy_in_turns(moving + 64, 64, fixed + 64, 0)), 2);
  // A place that moves backwards counts as if it were everywhere.
  EXPECT_EQ(batch(copy_in_turns(moving, 64, fixed, 0), copy_in_turns(fixed + 640, -64ull, moving + 4096, 64)),
            1);
}

TEST(Lower, makes_programs_whose_size_does_not_grow_with_the_message) {
  const size_t small = Recorded(in_turns(), 8 * 1024).program.bytes.size();
  EXPECT_EQ(Recorded(in_turns(), 8 << 20).program.bytes.size(), small);
  EXPECT_GT(Recorded(in_turns(), 8 * 1024, LowerOptions().page_bytes, 0, 0).program.bytes.size(), small);
}

TEST(Lower, puts_a_loop_on_one_page) {
  const Recorded of(in_turns(), 8 * 112, 1);
  const auto steps = of.steps();
  ASSERT_EQ(steps.size(), 6u);
  for (const size_t at : {1, 2}) EXPECT_EQ(steps[at].page, steps[0].page);
  EXPECT_GT(steps[3].page, steps[0].page);
}

/// The last chunk of the message has 4 bytes, so the turn with these bytes is not part of the loop.
TEST(Lower, ends_a_loop_where_data_end) {
  Plan plan = two_wholes();
  Op& loop = add(block(plan), Opcode::pipeline);
  loop.unit_bytes = 32;
  loop.chunks = 8;
  loop.body = 1;
  add(block(plan), Opcode::copy, {in(0, 8)}, {out(0, 8)});
  const auto steps = Recorded(plan, 8 * 128 - 92).steps();
  ASSERT_GE(steps.size(), 5u);
  ASSERT_EQ(steps[2].step.kind, ProgramStepKind::repeat);
  EXPECT_EQ(steps[2].items[0].repeat.turns, 29u);  // 932 bytes exist: 29 turns, and 4 bytes
  EXPECT_EQ(steps[3].step.whole, 0);
  EXPECT_EQ(steps[3].plain[0].valid, 4u);
}

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
