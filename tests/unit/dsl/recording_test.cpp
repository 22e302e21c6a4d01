// These tests check what each call becomes in the plan.

#include "helpers.hpp"

namespace chorale::dsl {
namespace {

using Ids = std::vector<uint32_t>;

TEST(Recording, put_signal_wait_is_the_smallest_plan) {
  Program program = two_ranks();
  MemoryChannel there(program, 1, 0), back(program, 0, 1);
  there.put(program.rank(1).get_output_buffer()[1], program.rank(0).get_input_buffer()[0], 0);
  there.signal(0);
  back.wait(0);
  ASSERT_EQ(texts(program), Texts{});

  const Plan plan = program.recorded();
  const Gpu &zero = plan.gpus[0], &one = plan.gpus[1];
  EXPECT_EQ(ops(plan, 0), (Texts{"put i[0,1) > r0[1,2) memory", "signal c0 memory"}));
  EXPECT_EQ(ops(plan, 1), (Texts{"wait c0 memory"}));
  ASSERT_EQ(zero.channels.size(), 1u);
  EXPECT_EQ(zero.channels[0].connected_to, Ids{1});
  EXPECT_EQ(one.channels[0].connected_to, Ids{0});
  ASSERT_EQ(zero.remote_buffers.size(), 1u);
  EXPECT_EQ(zero.remote_buffers[0].rank, 1u);
  EXPECT_EQ(zero.remote_buffers[0].buffer, BufferKind::output);
  EXPECT_EQ(zero.remote_buffers[0].access, std::vector{ChannelType::memory});
  EXPECT_TRUE(one.remote_buffers.empty());
  EXPECT_EQ(zero.threadblocks[0].channels_of(ChannelType::memory)->ids, Ids{0});
  EXPECT_EQ(zero.threadblocks[0].remote_buffers_of(ChannelType::memory)->ids, Ids{0});
  EXPECT_EQ(zero.threadblocks[0].ops[1].sync, SyncType::both);
  EXPECT_EQ(zero.chunks[0], 4u);
  EXPECT_EQ(zero.chunks[1], 4u);
  EXPECT_EQ(zero.chunks[2], 0u);
}

TEST(Recording, local_numbers_are_those_of_first_use) {
  Program program({.name = "p", .collective = AllReduce{.ranks = 3}});
  MemoryChannel first(program, 1, 0), second(program, 2, 0);
  second.signal(0);
  first.signal(0);
  second.signal(0);
  const Plan plan = program.recorded();
  EXPECT_EQ(plan.gpus[0].channels[0].connected_to, (Ids{1, 2}));
  EXPECT_EQ(plan.gpus[0].threadblocks[0].channels_of(ChannelType::memory)->ids, (Ids{1, 0}));
  EXPECT_EQ(ops(plan, 0), (Texts{"signal c0 memory", "signal c1 memory", "signal c0 memory"}));
}

TEST(Recording, remote_buffers_are_one_for_each_peer_and_kind) {
  Program program = two_ranks();
  MemoryChannel memory(program, 1, 0);
  PortChannel port(program, 1, 0);
  const BaseBuffer in = program.rank(0).get_input_buffer(), peer_in = program.rank(1).get_input_buffer(),
                   peer_out = program.rank(1).get_output_buffer();
  memory.put(peer_in[0], in[0], 0);
  port.put(peer_out[0], in[0], 0);
  port.put(peer_in[1], in[1], 0);
  memory.put(peer_out[1], in[1], 1);
  const Plan plan = program.recorded();
  const Gpu& gpu = plan.gpus[0];
  ASSERT_EQ(gpu.remote_buffers.size(), 2u);
  EXPECT_EQ(gpu.remote_buffers[0].access, (std::vector{ChannelType::memory, ChannelType::port}));
  EXPECT_EQ(gpu.remote_buffers[1].access, (std::vector{ChannelType::port, ChannelType::memory}));
  EXPECT_EQ(gpu.threadblocks[0].remote_buffers_of(ChannelType::memory)->ids, Ids{0});
  EXPECT_EQ(gpu.threadblocks[0].remote_buffers_of(ChannelType::port)->ids, (Ids{1, 0}));
  EXPECT_EQ(gpu.threadblocks[1].remote_buffers_of(ChannelType::memory)->ids, Ids{1});
  EXPECT_EQ(ops(plan, 0), (Texts{"put i[0,1) > r0[0,1) memory", "put i[0,1) > r0[0,1) c0 port",
                                 "put i[1,2) > r1[1,2) c0 port"}));
  ASSERT_EQ(gpu.channels.size(), 2u);
  EXPECT_EQ(gpu.channels[0].type, ChannelType::memory);
  EXPECT_EQ(gpu.channels[1].type, ChannelType::port);
}

TEST(Recording, rank_calls) {
  Program program = two_ranks();
  const Rank rank = program.rank(0);
  const BaseBuffer in = rank.get_input_buffer(), out = rank.get_output_buffer();
  const Buffer first(program, 0, 2), second(program, 0, 3);
  EXPECT_EQ(second.offset(), 2);
  rank.copy(out[{0, 2}], in[{2, 4}], 0);
  rank.copy_packets(second[0], in[0], 0);
  rank.unpack_packets(out[3], second[2], 0);
  rank.reduce(in[0], {in[1], out[2]}, 0);
  rank.reduce(in[0], {in[1]}, 0, out[0], ReduceOp::max);
  rank.reduce(in[0], {second[1]}, 0, out[0], ReduceOp::sum, true);
  rank.combine_packets(out[{0, 2}], {second[{0, 2}], second[{1, 3}]}, 0, ReduceOp::min);
  rank.barrier({0});
  ASSERT_EQ(texts(program), Texts{});
  const Plan plan = program.recorded();
  EXPECT_EQ(plan.gpus[0].chunks[2], 5u);
  EXPECT_EQ(ops(plan, 0), (Texts{"copy i[2,4) > o[0,2)", "cpkt i[0,1) > s[2,3)", "upkt s[4,5) > o[3,4)",
                                 "re i[0,1) i[1,2) o[2,3) > i[0,1) sum", "re i[0,1) i[1,2) > o[0,1) max",
                                 "repkt i[0,1) s[3,4) > o[0,1) sum",
                                 "chorale_combine_packets s[2,4) s[3,5) > o[0,2) min", "nop"}));
}

TEST(Recording, barriers_are_numbered_by_program_and_rank) {
  for (int time = 0; time < 2; ++time) {  // a second program starts anew
    Program program = two_ranks();
    program.rank(0).barrier({0, 1});
    program.rank(0).barrier(std::vector<int>{1, 2});
    program.rank(0).barrier({0, 1});
    program.rank(1).barrier({0, 1, 2});
    const Plan plan = program.recorded();
    EXPECT_EQ(ops(plan, 0, 0), (Texts{"barrier c0 of 2", "barrier c0 of 2"}));
    EXPECT_EQ(ops(plan, 0, 1), (Texts{"barrier c0 of 2", "barrier c1 of 2", "barrier c0 of 2"}));
    EXPECT_EQ(ops(plan, 1, 2), (Texts{"barrier c0 of 3"}));
  }
}

TEST(Recording, semaphores) {
  Program program = two_ranks();
  Semaphore first(program, 0, 0), second(program, 0, 3), other(program, 1, 1);
  second.acquire(0, SyncType::after);
  second.release(0);
  const Plan plan = program.recorded();
  EXPECT_EQ(plan.gpus[0].semaphores, (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(plan.gpus[1].semaphores, (std::vector<int64_t>{1}));
  EXPECT_EQ(ops(plan, 0), (Texts{"sem_acquire c1", "sem_release c1"}));
  EXPECT_EQ(plan.gpus[0].threadblocks[0].ops[0].sync, SyncType::after);
  EXPECT_EQ(plan.gpus[0].threadblocks[0].ops[1].sync, SyncType::both);
}

TEST(Recording, memory_channel_calls) {
  Program program = two_ranks();
  const MemoryChannel channel(program, 1, 0);
  const BaseBuffer in = program.rank(0).get_input_buffer(), peer = program.rank(1).get_output_buffer();
  const Buffer scratch(program, 0, 2), peer_scratch(program, 1, 2);
  channel.signal(0, SyncType::before, true);
  channel.wait(0, SyncType::none, true);
  channel.get(in[{0, 2}], peer[{2, 4}], 0);
  channel.put_packets(peer_scratch[1], in[0], 0);
  channel.read_put_packets(peer_scratch[0], scratch[1], 0);
  channel.reduce(in[0], {peer[0], peer[1]}, 0);
  channel.reduce(in[0], {peer[0]}, 0, in[1], ReduceOp::min);
  ASSERT_EQ(texts(program), Texts{});
  EXPECT_EQ(
      ops(program.recorded(), 0),
      (Texts{"rlxsignal c0 memory", "rlxwait c0 memory", "get r0[2,4) > i[0,2) c0 memory",
             "ppkt i[0,1) > r1[1,2) memory", "rppkt s[1,2) > r1[0,1) memory",
             "rre i[0,1) r0[0,1) r0[1,2) > i[0,1) memory sum", "rre i[0,1) r0[0,1) > i[1,2) memory min"}));
}

TEST(Recording, port_channel_calls) {
  Program program = two_ranks();
  const PortChannel unused(program, 1, 0), channel(program, 1, 0);
  const BaseBuffer in = program.rank(0).get_input_buffer(), peer = program.rank(1).get_output_buffer();
  const Buffer scratch(program, 0, 2), peer_scratch(program, 1, 2);
  channel.put(peer[0], in[0], 0);
  channel.put_with_signal(peer[0], in[0], 0);
  channel.put_with_signal_and_flush(peer[0], in[0], 0);
  channel.put_packets(peer_scratch[1], in[0], 0);
  channel.read_put_packets(peer_scratch[0], scratch[1], ThreadBlockGroup{0, 1});
  channel.signal(0);
  channel.wait(0);
  channel.flush(0);
  ASSERT_EQ(texts(program), Texts{});
  const Plan plan = program.recorded();
  EXPECT_EQ(ops(plan, 0),
            (Texts{"put i[0,1) > r0[0,1) c0 port", "pws i[0,1) > r0[0,1) c0 port",
                   "pwsf i[0,1) > r0[0,1) c0 port", "ppkt i[0,1) > r1[1,2) c0 port",
                   "rppkt s[1,2) > r1[0,1) c0 port 0/2", "signal c0 port", "wait c0 port", "flush c0 port"}));
  EXPECT_EQ(plan.gpus[0].threadblocks[0].channels_of(ChannelType::port)->ids, Ids{1});
}

TEST(Recording, switch_channel_calls) {
  Program program = two_ranks();
  const SwitchChannel unused(program, {0}, BufferKind::output), input(program, {0, 1}, BufferKind::input);
  const Buffer mine(program, 0, 2), other(program, 1, 2);
  const SwitchChannel scratch(program, {1, 0}, BufferKind::scratch);
  const BaseBuffer out = program.rank(0).get_output_buffer();
  input.at_rank(0).reduce(1, 2, out[{0, 2}], 0, ReduceOp::max);
  input.at_rank(0).broadcast(out[{0, 2}], 2, 2, 0);
  scratch.broadcast_packets(0, mine[0], 1, 1, 0);
  input.at_rank(1).broadcast(other[0], 0, 1, 0);
  ASSERT_EQ(texts(program), Texts{});
  const Plan plan = program.recorded();
  EXPECT_EQ(ops(plan, 0), (Texts{"glre w0[1,3) > o[0,2) switch max", "gstore o[0,2) > w0[2,4) switch",
                                 "gstorepkt s[0,1) > w1[1,2) switch"}));
  EXPECT_EQ(ops(plan, 1), (Texts{"gstore s[0,1) > w0[0,1) switch"}));
  EXPECT_EQ(plan.gpus[0].threadblocks[0].channels_of(ChannelType::switched)->ids, (Ids{1, 2}));
  EXPECT_EQ(plan.gpus[1].threadblocks[0].channels_of(ChannelType::switched)->ids, (Ids{0}));
  EXPECT_EQ(plan.gpus[0].channels.size(), 3u);
  EXPECT_EQ(*plan.gpus[1].switch_group(1).ranks, (Ids{1, 0}));
  EXPECT_EQ(plan.gpus[1].switch_group(1).buffer, BufferKind::scratch);
}

TEST(Recording, switch_channels_come_after_the_others) {
  Program program = two_ranks();
  const SwitchChannel first(program, {0, 1}, BufferKind::input);
  const PortChannel port(program, 1, 0);
  const SwitchChannel second(program, {1, 0}, BufferKind::output);
  const MemoryChannel memory(program, 1, 0), more(program, 1, 0);
  const Gpu gpu = program.recorded().gpus[0];
  ASSERT_EQ(gpu.channels.size(), 4u);
  EXPECT_EQ(gpu.channels[0].type, ChannelType::port);
  EXPECT_EQ(gpu.channels[1].type, ChannelType::memory);
  EXPECT_EQ(gpu.channels[1].connected_to, (Ids{1, 1}));
  EXPECT_EQ(gpu.channels[2].buffer, BufferKind::input);
  EXPECT_EQ(gpu.channels[3].buffer, BufferKind::output);
}

TEST(Recording, groups_share_an_operation_by_position) {
  Program program = two_ranks();
  const Rank rank = program.rank(0);
  const ThreadBlockGroup group({2, 0});
  rank.copy(rank.get_output_buffer()[0], rank.get_input_buffer()[0], group);
  const Plan plan = program.recorded();
  ASSERT_EQ(plan.gpus[0].threadblocks.size(), 3u);
  EXPECT_EQ(ops(plan, 0, 0), (Texts{"copy i[0,1) > o[0,1) 1/2"}));
  EXPECT_EQ(ops(plan, 0, 1), Texts{});
  EXPECT_EQ(ops(plan, 0, 2), (Texts{"copy i[0,1) > o[0,1) 0/2"}));
}

TEST(Recording, blocks_below_the_highest_exist_and_ids_are_positions) {
  Program program = two_ranks();
  MemoryChannel channel(program, 1, 0);
  channel.signal(3);
  channel.signal(1);
  const Plan plan = program.recorded();
  ASSERT_EQ(plan.gpus[0].threadblocks.size(), 4u);
  for (uint32_t id = 0; id < 4; ++id) EXPECT_EQ(plan.gpus[0].threadblocks[id].id, id);
  EXPECT_EQ(plan.gpus[0].threadblocks[3].ops.size(), 1u);
  EXPECT_TRUE(plan.gpus[1].threadblocks.empty());
}

TEST(Recording, thousands_of_channels_and_operations_are_fine) {
  Program program({.name = "wide", .collective = AllReduce{.ranks = 300}});
  for (int peer = 1; peer < 300; ++peer) MemoryChannel(program, peer, 0).signal(0);
  EXPECT_EQ(texts(program), Texts{});
  EXPECT_EQ(program.recorded().gpus[0].threadblocks[0].ops.size(), 299u);
}

}  // namespace
}  // namespace chorale::dsl
