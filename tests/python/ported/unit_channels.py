"""MSCCL++'s tests of channels between two ranks, which both do the same."""
from chorale.language import (Buffer, BufferType, CollectiveProgram, MemoryChannel, PortChannel, Rank, SwitchChannel, SyncType,
                              TestCollective)

from .share import enter, leave

PREFIXES = ("unit_",)


def two(name, inputs, outputs, body):
    """Makes a program of two ranks; body(me, peer) is what one of them does."""
    with CollectiveProgram(name, TestCollective(2, inputs, outputs), 2) as program:
        for rank in range(2):
            body(Rank(rank), Rank(1 - rank))
    return program


def memory(me, peer):
    return MemoryChannel(peer.rank, me.rank)


def port(me, peer):
    return PortChannel(peer.rank, me.rank)


def unit_signal_wait():
    return two("signal_wait_test", 0, 0, lambda me, peer: leave(memory(me, peer), 0))


def unit_relaxed_signal_wait():
    return two("relaxed_signal_wait_test", 0, 0, lambda me, peer: enter(memory(me, peer), 0))


# A signal is awaited on the channel of the same number, so the ranks use their channels in opposite order.
def unit_signal_wait_fuse():
    def body(me, peer):
        channels = [memory(me, peer) for _ in range(4)]
        signalled, awaited = 2 * me.rank, 2 * peer.rank
        channels[signalled].signal(0)
        channels[signalled + 1].signal(0)
        channels[awaited].wait(0)
        channels[awaited + 1].wait(0)
    return two("signal_wait_test", 0, 0, body)


def unit_put():
    def body(me, peer):
        channel = memory(me, peer)
        enter(channel, 0)
        channel.put(peer.get_input_buffer()[1], me.get_input_buffer()[0], tb=0)
        leave(channel, 0)
    return two("put_test", 2, 0, body)


def unit_put_fuse():
    def body(me, peer):
        first, second = memory(me, peer), memory(me, peer)
        enter(first, 0)
        first.put(peer.get_input_buffer()[1], me.get_input_buffer()[0], tb=0)
        second.put(peer.get_input_buffer()[0], me.get_input_buffer()[1], tb=0)
        leave(second, 0)
    return two("put_test", 2, 0, body)


def unit_get():
    def body(me, peer):
        channel = memory(me, peer)
        enter(channel, 0)
        channel.get(me.get_input_buffer()[0], peer.get_input_buffer()[1], tb=0)
        leave(channel, 0)
    return two("get_test", 2, 0, body)


def unit_get_fuse():
    def body(me, peer):
        channel = memory(me, peer)
        enter(channel, 0)
        for _ in range(2):
            channel.get(me.get_input_buffer()[0], peer.get_input_buffer()[1], tb=0)
        leave(channel, 0)
    return two("get_test", 2, 0, body)


def unit_put_packets():
    with CollectiveProgram("put_packets_test", TestCollective(2, 1, 0), 2, protocol="LL") as program:
        scratch = [Buffer(0, 1), Buffer(1, 1)]
        for rank in range(2):
            MemoryChannel(1 - rank, rank).put_packets(scratch[1 - rank][0], Rank(rank).get_input_buffer()[0], tb=0)
    return program


def unit_read_put_packets():
    with CollectiveProgram("read_put_packets_test", TestCollective(2, 0, 0), 2, protocol="LL") as program:
        scratch = [Buffer(0, 2), Buffer(1, 2)]
        for rank in range(2):
            MemoryChannel(1 - rank, rank).read_put_packets(scratch[1 - rank][1], scratch[rank][0], tb=0)
    return program


def unit_read_reduce():
    def body(me, peer):
        channel = memory(me, peer)
        enter(channel, 0)
        channel.reduce(me.get_input_buffer()[0], [peer.get_input_buffer()[1]], tb=0,
                       local_dst_chunk=me.get_output_buffer()[0])
        leave(channel, 0)
    return two("read_reduce_test", 2, 2, body)


def unit_read_reduce_fuse():
    def body(me, peer):
        channel, theirs = memory(me, peer), peer.get_input_buffer()
        enter(channel, 0)
        channel.reduce(me.get_input_buffer()[0], [theirs[0], theirs[1]], tb=0, local_dst_chunk=me.get_output_buffer()[0])
        leave(channel, 0)
    return two("read_reduce_test", 2, 2, body)


# A reduction and a put of its result become one operation.
def unit_reduce_send():
    def body(me, peer):
        channel, mine, total = memory(me, peer), me.get_input_buffer(), me.get_output_buffer()[0]
        enter(channel, 0)
        me.reduce(mine[0], [mine[1]], tb=0, dst_chunk=total)
        channel.put(peer.get_output_buffer()[1], total, tb=0)
        leave(channel, 0)
    return two("reduce_send_test", 2, 2, body)


def unit_reduce_send_packets():
    with CollectiveProgram("reduce_send_packets_test", TestCollective(2, 0, 0), 2, protocol="LL") as program:
        scratch = [Buffer(0, 4), Buffer(1, 4)]
        for rank in range(2):
            mine, channel = scratch[rank], MemoryChannel(1 - rank, rank)
            Rank(rank).reduce(mine[0], [mine[1]], tb=0, dst_chunk=mine[2], packet=True)
            channel.put_packets(scratch[1 - rank][3], mine[2], tb=0)
    return program


def unit_flush():
    with CollectiveProgram("flush_test", TestCollective(2, 0, 0), 2) as program:
        PortChannel(1, 0).flush(tb=0, data_sync=SyncType.before)
    return program


def unit_flush_fuse():
    with CollectiveProgram("flush_test", TestCollective(2, 0, 0), 2) as program:
        first, second = PortChannel(1, 0), PortChannel(1, 0)
        first.flush(tb=0)
        second.flush(tb=0)
    return program


def unit_put_with_signal():
    def body(me, peer):
        channel = port(me, peer)
        channel.signal(0)
        channel.wait(0)
        channel.put_with_signal(peer.get_input_buffer()[1], me.get_input_buffer()[0], tb=0)
        channel.wait(0, data_sync=SyncType.after)
    return two("put_with_signal_test", 2, 0, body)


# Every put has its own signal, joined or not, so each has a wait.
def unit_put_with_signal_fuse():
    def body(me, peer):
        channel, mine, theirs = port(me, peer), me.get_input_buffer(), peer.get_input_buffer()
        channel.signal(0)
        channel.wait(0)
        channel.put_with_signal(theirs[1], mine[0], tb=0)
        channel.put_with_signal(theirs[3], mine[2], tb=0)
        channel.wait(0, data_sync=SyncType.after)
        channel.wait(0, data_sync=SyncType.after)
    return two("put_with_signal_test", 4, 0, body)


def unit_put_with_signal_and_flush():
    def body(me, peer):
        channel = port(me, peer)
        channel.signal(0)
        channel.wait(0)
        channel.put_with_signal_and_flush(peer.get_input_buffer()[1], me.get_input_buffer()[0], tb=0)
        channel.wait(0, data_sync=SyncType.after)
    return two("put_with_signal_and_flush_test", 2, 0, body)


# Rank 2 is not in the group.
def unit_switch_broadcast():
    with CollectiveProgram("group_store_test", TestCollective(3, 1, 1), 3) as program:
        scratch = Buffer(0, 1)
        SwitchChannel([0, 1], BufferType.input).at_rank(0).broadcast(scratch[0], buffer_offset=0, size=1, tb=0)
    return program
