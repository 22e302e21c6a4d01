// These tests check times that can be computed by hand.

#include "chorale/simulate.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "chorale/usage_error.hpp"
#include "tests/unit/simulation/made_up.hpp"

namespace chorale {
namespace {

TEST(Simulate, AnOperationIsIssuedReadsAndStores) {
  Plan plan = two_ranks();
  add_put(plan, 0, 0, 0);
  Machine machine = nothing_takes_time();
  machine.issue_ns = 50;
  machine.read_ns = 400;
  machine.block_read_gb_s = 16;
  machine.block_put_gb_s = 10;
  EXPECT_NEAR(ns_of(plan, machine), 50 + 400 + 8000 / 16.0 + 8000 / 10.0, near);
}

TEST(Simulate, TwoBlocksShareALinkAndNotTheOtherWay) {
  Machine machine = nothing_takes_time();
  machine.link_put_gb_s = 2;
  Plan alone = two_ranks(), shared = two_ranks(), apart = two_ranks();
  add_put(alone, 0, 0, 0);
  add_put(shared, 0, 0, 0);
  add_put(shared, 0, 1, 1);
  add_put(apart, 0, 0, 0);
  add_put(apart, 1, 0, 1);
  EXPECT_NEAR(ns_of(alone, machine), 4000, near);
  EXPECT_NEAR(ns_of(shared, machine), 8000, near);
  EXPECT_NEAR(ns_of(apart, machine), 4000, near);
}

TEST(Simulate, BlocksThatShareALinkTakeTurns) {
  Machine machine = nothing_takes_time();
  machine.link_put_gb_s = 2;
  Plan plan = two_ranks();
  add_put(plan, 0, 0, 0);
  add_put(plan, 0, 1, 1);
  const Simulation result =
      simulate(plan, {.bytes = made_up_bytes, .dtype = DType::u8, .spans = true}, machine);
  ASSERT_EQ(result.spans.size(), 2u);
  // With fair shares both would end at 8000; the first one is one of three pieces ahead.
  EXPECT_EQ(result.spans[0].end_ns, 6667u);
  EXPECT_EQ(result.spans[1].end_ns, 8000u);
  EXPECT_EQ(result.links[0].bytes_out, 2 * chunk_bytes);
  EXPECT_EQ(result.links[1].bytes_in, 2 * chunk_bytes);
  EXPECT_NEAR(result.links[0].out_busy_ns, 8000, near);
}

TEST(Simulate, EncodedDataIsShorterOnTheLink) {
  Plan plan = two_ranks();
  plan.extension.codecs = {{CodecFormat::int8, 64}};
  const auto bytes_out = [&](DType dtype) {
    return simulate(plan, {.bytes = 16 * made_up_bytes, .dtype = dtype}, nothing_takes_time())
        .links[0]
        .bytes_out;
  };
  add(block(plan), Opcode::put, {in(0)}, {at(2, 0)}, {}, ChannelType::memory);
  const uint64_t plain = bytes_out(DType::bf16);
  block(plan).operands.back().codec = 1;
  // A block of 64 elements is sent as 64 bytes and a scale.
  EXPECT_NEAR(double(bytes_out(DType::bf16)), double(plain) * 68 / 128, 1);
  EXPECT_NEAR(double(bytes_out(DType::f32)), double(plain) * 68 / 256, 1);
  EXPECT_THROW(bytes_out(DType::i32), UsageError);
}

TEST(Simulate, ALinkThatTurnsToAnotherPeerIsSlower) {
  Machine machine = nothing_takes_time();
  machine.link_put_gb_s = 4;
  Plan plan = two_ranks();
  add_put(plan, 0, 0, 0);
  add_put(plan, 0, 0, 1);
  const double same = ns_of(plan, machine);
  machine.link_mixed_gb_s = 2;
  // There is one peer: only the first of three pieces of 8000 bytes pays for the switch to it.
  EXPECT_NEAR(same, 4000, near);
  EXPECT_NEAR(ns_of(plan, machine), 4000 + 2000 / 3.0, near);
}

/// Ranks 1 and 2 put to rank 0, rank 1 from chunk 0 and rank 2 from chunk 1.
Plan two_to_one() {
  Plan plan = two_ranks();
  plan.gpus.push_back(plan.gpus[1]);
  plan.gpus[2].id = 2;
  for (Gpu& gpu : plan.gpus) {
    gpu.channels.clear();
    for (ThreadBlock& of : gpu.threadblocks) of.channels.clear();
  }
  add_put(plan, 1, 0, 0);
  add_put(plan, 2, 0, 1);
  return plan;
}

TEST(Simulate, TwoGpusShareTheLinkOfTheThird) {
  Machine machine = nothing_takes_time();
  machine.link_put_gb_s = 2;
  const Simulation result = simulate(two_to_one(), {.bytes = made_up_bytes, .dtype = DType::u8}, machine);
  EXPECT_NEAR(result.ns, 8000, near);
  EXPECT_NEAR(result.links[0].in_busy_ns, 8000, near);
  EXPECT_NEAR(result.links[1].out_busy_ns, 4000, near);
  EXPECT_EQ(result.links[0].bytes_in, 2 * chunk_bytes);
}

TEST(Simulate, WhatIsLaterDoesNotHoldTheLink) {
  Plan plan = two_ranks();
  add(block(plan, 0, 0), Opcode::signal, {}, {}, {0}, ChannelType::memory);
  add(block(plan, 1, 0), Opcode::wait, {}, {}, {0}, ChannelType::memory);
  add_put(plan, 0, 1, 0);
  Machine machine = nothing_takes_time();
  machine.release_ns = 5000;
  machine.read_ns = 100;
  machine.link_put_gb_s = 2;
  // The put is complete at 4100, before the signal leaves at 5000.
  EXPECT_NEAR(ns_of(plan, machine), 5000, near);
}

TEST(Simulate, HopsAddUp) {
  Plan plan = two_ranks();
  for (int hop = 0; hop < 6; ++hop) add_hop(plan, uint32_t(hop % 2));
  Machine machine = nothing_takes_time();
  machine.signal_ns = 800;
  machine.release_ns = 500;
  machine.acquire_ns = 100;
  EXPECT_NEAR(ns_of(plan, machine), 6 * 1400, near);
}

TEST(Simulate, RelaxedSignalsPublishNothing) {
  Plan plan = two_ranks();
  add_hop(plan, 0, Opcode::relaxed_signal, Opcode::relaxed_wait);
  Machine machine = nothing_takes_time();
  machine.signal_ns = 800;
  machine.release_ns = 500;
  machine.acquire_ns = 100;
  EXPECT_NEAR(ns_of(plan, machine), 800, near);
}

TEST(Simulate, SignalsTakeTurnsOnTheLink) {
  Plan plan = two_ranks();
  for (const uint32_t rank : {0u, 1u})
    add(block(plan, rank), rank ? Opcode::wait : Opcode::signal, {}, {}, {0, 1}, ChannelType::memory);
  Machine machine = nothing_takes_time();
  machine.signal_ns = 800;
  machine.link_signal_ns = 10;
  EXPECT_NEAR(ns_of(plan, machine), 820, near);
}

TEST(Simulate, ABarrierWaitsForTheLast) {
  Plan plan = two_ranks();
  add_put(plan, 0, 1, 0);
  for (const uint32_t id : {0u, 1u}) add(block(plan, 0, id), Opcode::barrier, {}, {}, {0}).participants = 2;
  Machine machine = nothing_takes_time();
  machine.block_put_gb_s = 8;
  machine.barrier_ns = 300;
  machine.barrier_block_ns = 20;
  EXPECT_NEAR(ns_of(plan, machine), 1000 + 300 + 2 * 20, near);
  machine.sync_ns = 7;  // before the barrier; no operation follows it
  EXPECT_NEAR(ns_of(plan, machine), 1000 + 300 + 2 * 20 + 7, near);
}

TEST(Simulate, ASemaphoreIsSeenWithinItsGpu) {
  Plan plan = two_ranks();
  add(block(plan, 0, 0), Opcode::sem_release, {}, {}, {0});
  add(block(plan, 0, 1), Opcode::sem_acquire, {}, {}, {0});
  Machine machine = nothing_takes_time();
  machine.semaphore_ns = 300;
  machine.signal_ns = 800;
  machine.release_ns = 50;
  EXPECT_NEAR(ns_of(plan, machine), 350, near);
}

TEST(Simulate, PipelinesTakeTurns) {
  Plan plan = two_ranks();
  Op& pipeline = loop(plan, 2);
  pipeline.unit_bytes = 1600;
  for (int op = 0; op < 2; ++op) add(block(plan), op ? Opcode::nop : Opcode::copy, {in(0)}, {scratch(0)});
  block(plan).ops.back().sources = block(plan).ops.back().destinations = 0;
  Machine machine = nothing_takes_time();
  machine.issue_ns = 10;
  machine.block_read_gb_s = 16;
  const Simulation result =
      simulate(plan, {.bytes = made_up_bytes, .dtype = DType::u8, .spans = true}, machine);
  EXPECT_NEAR(result.ns, 5 * (10 + 100), near);
  ASSERT_EQ(result.spans.size(), 2u);
  EXPECT_EQ(result.spans[0].name, "pipeline");
  EXPECT_EQ(result.spans[0].end_ns, 440u);
  EXPECT_EQ(result.spans[1].name, "copy");
  EXPECT_EQ(result.spans[1].end_ns, 550u);
  // Longer messages take more turns. A recording of another size does not apply.
  Simulator simulator(plan);
  EXPECT_NEAR(simulator.simulate({.bytes = made_up_bytes, .dtype = DType::u8}, machine).ns, 550, near);
  EXPECT_NEAR(simulator.simulate({.bytes = 2 * made_up_bytes, .dtype = DType::u8}, machine).ns, 1100, near);
}

TEST(Simulate, ReductionsCombineEachOperand) {
  Plan plan = two_ranks();
  add(block(plan), Opcode::reduce, {in(0), in(1), in(2)}, {out(0)});
  Machine machine = nothing_takes_time();
  machine.block_reduce_gb_s = 16;
  machine.operand_ns = 5;
  EXPECT_NEAR(ns_of(plan, machine), 2 * 500 + 2 * 5, near);
  machine.block_reduce_gb_s = 1e9;
  machine.memory_gb_s = 4;
  EXPECT_NEAR(ns_of(plan, machine), 4 * 2000 + 2 * 5, near);
}

TEST(Simulate, GetsComeOverThePeersLink) {
  Plan plan = two_ranks();
  add(block(plan), Opcode::get, {at(0, 0)}, {out(0)}, {0}, ChannelType::memory);
  Machine machine = nothing_takes_time();
  machine.remote_read_ns = 900;
  machine.link_get_gb_s = 8;
  const Simulation result = simulate(plan, {.bytes = made_up_bytes, .dtype = DType::u8}, machine);
  EXPECT_NEAR(result.ns, 1900, near);
  EXPECT_EQ(result.links[1].bytes_out, chunk_bytes);
  EXPECT_EQ(result.links[0].bytes_out, 0u);
}

Plan packets() {
  Plan plan = two_ranks();
  add(block(plan, 0), Opcode::put_packets, {in(0)}, {at(2, 0)}, {}, ChannelType::memory);
  add(block(plan, 1), Opcode::unpack_packets, {scratch(0)}, {out(0)});
  return plan;
}

TEST(Simulate, PacketsCarryTheirFlags) {
  Machine machine = nothing_takes_time();
  machine.packet_ns = 700;
  machine.block_ll8_write_gb_s = machine.block_ll16_write_gb_s = machine.block_ll128_write_gb_s = 16;
  EXPECT_NEAR(ns_of(packets(), machine), 700 + 1000, near);
  EXPECT_NEAR(ns_of(packets(), machine, made_up_bytes, PacketForm::ll8), 700 + 1000, near);
  // Chunks are made whole lines of 112 bytes, but there are only 8000 in each part of the message.
  EXPECT_NEAR(ns_of(packets(), machine, made_up_bytes, PacketForm::ll128), 700 + 500 * 128 / 112.0, near);
  machine.block_ll16_read_gb_s = 32;
  machine.link_ll16_gb_s = 4;
  EXPECT_NEAR(ns_of(packets(), machine), 4000 + 700 + 500, near);
}

TEST(Simulate, EachFormOfPacketsHasItsRates) {
  Machine machine = nothing_takes_time();
  machine.link_ll8_gb_s = 2;
  machine.link_ll16_gb_s = 4;
  machine.link_ll128_gb_s = 8;
  machine.line_ns = 30;
  EXPECT_NEAR(ns_of(packets(), machine, made_up_bytes, PacketForm::ll8), 8000, near);
  EXPECT_NEAR(ns_of(packets(), machine, made_up_bytes, PacketForm::ll16), 4000, near);
  EXPECT_NEAR(ns_of(packets(), machine, made_up_bytes, PacketForm::ll128), 1000 * 128 / 112.0 + 30, near);
}

/// A block goes on while its packets leave, and a second operand is loaded beside the first.
TEST(Simulate, PacketsLeaveWhileTheirBlockGoesOn) {
  Plan plan = two_ranks();
  add(block(plan, 0), Opcode::put_packets, {in(0)}, {at(2, 0)}, {}, ChannelType::memory);
  add(block(plan, 0), Opcode::copy_packets, {in(0)}, {scratch(0)});
  Machine machine = nothing_takes_time();
  machine.block_ll16_write_gb_s = 16;
  machine.block_write_gb_s = 32;
  EXPECT_NEAR(ns_of(plan, machine), 1000, near);
  machine.block_write_gb_s = 8;
  EXPECT_NEAR(ns_of(plan, machine), 2000, near);
}

/// If all blocks take at most a quarter of the GPU, the next launch begins beside this one.
TEST(Simulate, AShortLaunchLetsTheNextOneStart) {
  Machine machine = nothing_takes_time();
  machine.launch_graph_ns = 50;
  machine.launch_apart_ns = 700;
  machine.multiprocessors = 1;
  machine.multiprocessor_threads = 4 * 2 * 512;
  // 8000 bytes are 500 units, so each of the two blocks has 512 threads.
  EXPECT_NEAR(ns_of(packets(), machine), 50, near);
  machine.multiprocessor_threads = 4 * 2 * 512 - 1;
  EXPECT_NEAR(ns_of(packets(), machine), 750, near);
  EXPECT_NEAR(ns_of(packets(), machine, made_up_bytes / 2), 50, near);
}

/// The host's times vary, so a launch takes longer than each of two equal times.
TEST(Simulate, ALaunchTakesAboutTheLongerOfTwoTimes) {
  Machine machine = nothing_takes_time();
  machine.packet_ns = 1000;
  machine.enqueue_ns = 1000;
  const SimulatedCall call{.bytes = made_up_bytes, .dtype = DType::u8, .eager = true};
  EXPECT_NEAR(simulate(packets(), call, machine).ns, 1000 * std::pow(2, 1 / 8.0), near);
  machine.launch_rank_ns = 100000;
  EXPECT_NEAR(simulate(packets(), call, machine).ns, 201000, near);
}

TEST(Simulate, PacketsOfOnesOwn) {
  Plan plan = two_ranks();
  add(block(plan, 0, 0), Opcode::copy_packets, {in(0)}, {scratch(0)});
  add(block(plan, 0, 1), Opcode::unpack_packets, {scratch(0)}, {out(0)});
  Machine machine = nothing_takes_time();
  machine.packet_ns = 700;
  machine.local_packet_ns = 60;
  EXPECT_NEAR(ns_of(plan, machine), 60, near);
}

TEST(Simulate, TheProxyTakesOrdersInTurn) {
  Plan plan = two_ranks();
  for (const uint32_t id : {0u, 1u}) {
    add(block(plan, 0, id), Opcode::put_with_signal, {in(id)}, {at(1, id)}, {id}, ChannelType::port);
    add(block(plan, 1, id), Opcode::wait, {}, {}, {id}, ChannelType::port);
  }
  Machine machine = nothing_takes_time();
  machine.proxy_ns = 1000;
  machine.copy_engine_ns = 200;
  machine.link_copy_engine_gb_s = 4;
  machine.signal_ns = 800;
  // The second order is accepted while the first one runs.
  EXPECT_NEAR(ns_of(plan, machine), 1000 + 2 * (200 + 2000) + 800, near);
  Machine quick = nothing_takes_time();
  quick.proxy_ns = 1000;
  EXPECT_NEAR(ns_of(plan, quick), 2000, near);
  add(block(plan, 0, 0), Opcode::flush, {}, {}, {0}, ChannelType::port);
  const Simulation result =
      simulate(plan, {.bytes = made_up_bytes, .dtype = DType::u8, .spans = true}, machine);
  ASSERT_EQ(result.spans[1].name, "flush");
  EXPECT_EQ(result.spans[1].end_ns, 3200u);
}

TEST(Simulate, SwitchChannelsReachEachMember) {
  Plan plan = two_ranks();
  add(block(plan), Opcode::switch_broadcast, {in(0)}, {at(0, 0)}, {}, ChannelType::switched);
  Machine machine = nothing_takes_time();
  machine.link_put_gb_s = 4;
  machine.block_write_gb_s = 8;
  EXPECT_NEAR(ns_of(plan, machine), 2000, near);
  machine.link_put_gb_s = 1e9;
  EXPECT_NEAR(ns_of(plan, machine), 1000, near);
}

TEST(Simulate, LaunchesComeOneAfterTheOther) {
  Plan plan = two_ranks();
  add_put(plan, 0, 0, 0);
  Machine machine = nothing_takes_time();
  machine.block_put_gb_s = 8;
  machine.launch_graph_ns = 600;
  machine.launch_eager_ns = 900;
  machine.launch_block_ns = 10;
  machine.enqueue_ns = 100;
  SimulatedCall call{.bytes = made_up_bytes, .dtype = DType::u8};
  EXPECT_NEAR(simulate(plan, call, machine).ns, 1000 + 600 + 2 * 10, near);
  call.eager = true;
  EXPECT_NEAR(simulate(plan, call, machine).ns, 1000 + 900 + 2 * 10, near);
  machine.enqueue_ns = 40000;
  EXPECT_NEAR(simulate(plan, call, machine).ns, 40000, near);
}

TEST(Simulate, WhatIsBehindTheMessageTakesNoTime) {
  Plan plan = two_ranks();
  plan.collective = "allreduce";
  add_put(plan, 0, 0, 7);
  Machine machine = nothing_takes_time();
  machine.issue_ns = 50;
  machine.block_put_gb_s = 1;
  // 100 bytes are six chunks of 16 and four bytes more.
  EXPECT_NEAR(ns_of(plan, machine, 100), 0, near);
  EXPECT_NEAR(ns_of(plan, machine, 128), 50 + 16, near);
  EXPECT_NEAR(ns_of(plan, machine, 120), 50 + 8, near);
}

TEST(Simulate, RefusesWhatDoesNotEnd) {
  Plan plan = two_ranks();
  add(block(plan), Opcode::wait, {}, {}, {0}, ChannelType::memory);
  try {
    ns_of(plan, nothing_takes_time());
    FAIL() << "a wait without a signal came to its end";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "plan 'two' does not end: chorale check says where it stops");
  }
  EXPECT_THROW(ns_of(two_ranks(), nothing_takes_time(), 12345), UsageError);
}

}  // namespace
}  // namespace chorale
