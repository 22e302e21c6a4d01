// These are MSCCL++'s tests of channels between two ranks, which both do the same.

#include "share.hpp"

using namespace chorale::dsl;
using namespace ported;

namespace {

/// Builds a program of two ranks; body(program, me, peer) is what one of them does.
template <class Body>
Program two(const char* name, int64_t input, int64_t output, Body&& body,
            Protocol protocol = Protocol::Simple) {
  Program program({.name = name,
                   .collective = TestCollective{.ranks = 2, .input = input, .output = output},
                   .protocol = protocol});
  for (int rank = 0; rank < 2; ++rank) body(program, program.rank(rank), program.rank(1 - rank));
  return program;
}

MemoryChannel memory(Program& program, const Rank& me, const Rank& peer) {
  return {program, peer.rank(), me.rank()};
}

PortChannel port(Program& program, const Rank& me, const Rank& peer) {
  return {program, peer.rank(), me.rank()};
}

}  // namespace

CHORALE_PROGRAM(unit_signal_wait, Parameters&) {
  return two("signal_wait_test", 0, 0,
             [](Program& program, const Rank& me, const Rank& peer) { leave(memory(program, me, peer), 0); });
}

CHORALE_PROGRAM(unit_relaxed_signal_wait, Parameters&) {
  return two("relaxed_signal_wait_test", 0, 0,
             [](Program& program, const Rank& me, const Rank& peer) { enter(memory(program, me, peer), 0); });
}

// Consecutive signals become one operation, and so do consecutive waits. A signal is awaited on the channel
// of the same number, so the ranks use their channels in opposite order. In MSCCL++'s program both ranks
// signal on the first two and wait on the others, so it never ends.
CHORALE_PROGRAM(unit_signal_wait_fuse, Parameters&) {
  return two("signal_wait_test", 0, 0, [](Program& program, const Rank& me, const Rank& peer) {
    std::vector<MemoryChannel> channels;
    for (int i = 0; i < 4; ++i) channels.push_back(memory(program, me, peer));
    const int64_t signalled = 2 * me.rank(), awaited = 2 * peer.rank();
    channels[signalled].signal(0);
    channels[signalled + 1].signal(0);
    channels[awaited].wait(0);
    channels[awaited + 1].wait(0);
  });
}

CHORALE_PROGRAM(unit_put, Parameters&) {
  return two("put_test", 2, 0, [](Program& program, const Rank& me, const Rank& peer) {
    const MemoryChannel channel = memory(program, me, peer);
    enter(channel, 0);
    channel.put(peer.get_input_buffer()[1], me.get_input_buffer()[0], 0);
    leave(channel, 0);
  });
}

CHORALE_PROGRAM(unit_put_fuse, Parameters&) {
  return two("put_test", 2, 0, [](Program& program, const Rank& me, const Rank& peer) {
    const MemoryChannel first = memory(program, me, peer), second = memory(program, me, peer);
    enter(first, 0);
    first.put(peer.get_input_buffer()[1], me.get_input_buffer()[0], 0);
    second.put(peer.get_input_buffer()[0], me.get_input_buffer()[1], 0);
    leave(second, 0);
  });
}

CHORALE_PROGRAM(unit_get, Parameters&) {
  return two("get_test", 2, 0, [](Program& program, const Rank& me, const Rank& peer) {
    const MemoryChannel channel = memory(program, me, peer);
    enter(channel, 0);
    channel.get(me.get_input_buffer()[0], peer.get_input_buffer()[1], 0);
    leave(channel, 0);
  });
}

CHORALE_PROGRAM(unit_get_fuse, Parameters&) {
  return two("get_test", 2, 0, [](Program& program, const Rank& me, const Rank& peer) {
    const MemoryChannel channel = memory(program, me, peer);
    enter(channel, 0);
    for (int i = 0; i < 2; ++i) channel.get(me.get_input_buffer()[0], peer.get_input_buffer()[1], 0);
    leave(channel, 0);
  });
}

CHORALE_PROGRAM(unit_put_packets, Parameters&) {
  Program program({.name = "put_packets_test",
                   .collective = TestCollective{.ranks = 2, .input = 1, .output = 0},
                   .protocol = Protocol::LL});
  const Buffer scratch[] = {{program, 0, 1}, {program, 1, 1}};
  for (int rank = 0; rank < 2; ++rank) {
    const MemoryChannel channel(program, 1 - rank, rank);
    channel.put_packets(scratch[1 - rank][0], program.rank(rank).get_input_buffer()[0], 0);
  }
  return program;
}

CHORALE_PROGRAM(unit_read_put_packets, Parameters&) {
  Program program({.name = "read_put_packets_test",
                   .collective = TestCollective{.ranks = 2, .input = 0, .output = 0},
                   .protocol = Protocol::LL});
  const Buffer scratch[] = {{program, 0, 2}, {program, 1, 2}};
  for (int rank = 0; rank < 2; ++rank) {
    const MemoryChannel channel(program, 1 - rank, rank);
    channel.read_put_packets(scratch[1 - rank][1], scratch[rank][0], 0);
  }
  return program;
}

CHORALE_PROGRAM(unit_read_reduce, Parameters&) {
  return two("read_reduce_test", 2, 2, [](Program& program, const Rank& me, const Rank& peer) {
    const MemoryChannel channel = memory(program, me, peer);
    enter(channel, 0);
    channel.reduce(me.get_input_buffer()[0], {peer.get_input_buffer()[1]}, 0, me.get_output_buffer()[0]);
    leave(channel, 0);
  });
}

// This does the same as unit_reduce_fuse, in one call.
CHORALE_PROGRAM(unit_read_reduce_fuse, Parameters&) {
  return two("read_reduce_test", 2, 2, [](Program& program, const Rank& me, const Rank& peer) {
    const MemoryChannel channel = memory(program, me, peer);
    const BaseBuffer theirs = peer.get_input_buffer();
    enter(channel, 0);
    channel.reduce(me.get_input_buffer()[0], {theirs[0], theirs[1]}, 0, me.get_output_buffer()[0]);
    leave(channel, 0);
  });
}

// A reduction and a put of its result become one operation.
CHORALE_PROGRAM(unit_reduce_send, Parameters&) {
  return two("reduce_send_test", 2, 2, [](Program& program, const Rank& me, const Rank& peer) {
    const MemoryChannel channel = memory(program, me, peer);
    const BaseBuffer in = me.get_input_buffer();
    const Chunk sum = me.get_output_buffer()[0];
    enter(channel, 0);
    me.reduce(in[0], {in[1]}, 0, sum);
    channel.put(peer.get_output_buffer()[1], sum, 0);
    leave(channel, 0);
  });
}

CHORALE_PROGRAM(unit_reduce_send_packets, Parameters&) {
  Program program({.name = "reduce_send_packets_test",
                   .collective = TestCollective{.ranks = 2, .input = 0, .output = 0},
                   .protocol = Protocol::LL});
  const Buffer scratch[] = {{program, 0, 4}, {program, 1, 4}};
  for (int rank = 0; rank < 2; ++rank) {
    const Buffer& mine = scratch[rank];
    const MemoryChannel channel(program, 1 - rank, rank);
    program.rank(rank).reduce(mine[0], {mine[1]}, 0, mine[2], ReduceOp::sum, true);
    channel.put_packets(scratch[1 - rank][3], mine[2], 0);
  }
  return program;
}

CHORALE_PROGRAM(unit_flush, Parameters&) {
  Program program({.name = "flush_test", .collective = TestCollective{.ranks = 2}});
  PortChannel(program, 1, 0).flush(0, SyncType::before);
  return program;
}

CHORALE_PROGRAM(unit_flush_fuse, Parameters&) {
  Program program({.name = "flush_test", .collective = TestCollective{.ranks = 2}});
  const PortChannel first(program, 1, 0), second(program, 1, 0);
  first.flush(0);
  second.flush(0);
  return program;
}

CHORALE_PROGRAM(unit_put_with_signal, Parameters&) {
  return two("put_with_signal_test", 2, 0, [](Program& program, const Rank& me, const Rank& peer) {
    const PortChannel channel = port(program, me, peer);
    channel.signal(0);
    channel.wait(0);
    channel.put_with_signal(peer.get_input_buffer()[1], me.get_input_buffer()[0], 0);
    channel.wait(0, SyncType::after);
  });
}

// Every put has its own signal, joined or not, so each has a wait.
CHORALE_PROGRAM(unit_put_with_signal_fuse, Parameters&) {
  return two("put_with_signal_test", 4, 0, [](Program& program, const Rank& me, const Rank& peer) {
    const PortChannel channel = port(program, me, peer);
    const BaseBuffer mine = me.get_input_buffer(), theirs = peer.get_input_buffer();
    channel.signal(0);
    channel.wait(0);
    channel.put_with_signal(theirs[1], mine[0], 0);
    channel.put_with_signal(theirs[3], mine[2], 0);
    channel.wait(0, SyncType::after);
    channel.wait(0, SyncType::after);
  });
}

CHORALE_PROGRAM(unit_put_with_signal_and_flush, Parameters&) {
  return two("put_with_signal_and_flush_test", 2, 0, [](Program& program, const Rank& me, const Rank& peer) {
    const PortChannel channel = port(program, me, peer);
    channel.signal(0);
    channel.wait(0);
    channel.put_with_signal_and_flush(peer.get_input_buffer()[1], me.get_input_buffer()[0], 0);
    channel.wait(0, SyncType::after);
  });
}

// Rank 2 is not in the group.
CHORALE_PROGRAM(unit_switch_broadcast, Parameters&) {
  Program program(
      {.name = "group_store_test", .collective = TestCollective{.ranks = 3, .input = 1, .output = 1}});
  const Buffer scratch(program, 0, 1);
  const SwitchChannel channel(program, {0, 1}, BufferType::input);
  channel.at_rank(0).broadcast(scratch[0], 0, 1, 0);
  return program;
}
