"""MSCCL++'s tests of its executor: small collectives that together use every operation."""
import contextlib

from chorale.language import (AllGather, AllReduce, Buffer, BufferType, CollectiveProgram, LoopIterationContext, MemoryChannel,
                              SwitchChannel, ThreadBlockGroup)

from .share import Rank, channels_to, inputs, others, sync

PREFIXES = ("executor_",)


def reduce_packets(name, blocks):
    """blocks(k) names the thread blocks of the k-th of three steps."""
    with CollectiveProgram(name, AllReduce(2, 1, True), 2, protocol="LL", use_double_scratch_buffer=True) as program:
        left, right = Rank(0), Rank(1)
        first, second = left.get_input_buffer(), right.get_input_buffer()
        of_first, of_second = Buffer(0, 3), Buffer(1, 3)
        to_right, to_left = MemoryChannel(1, 0), MemoryChannel(0, 1)

        to_right.put_packets(of_second[1], first[1], **blocks(0))
        left.reduce(first[0], [of_first[0]], dst_chunk=first[0], packet=True, **blocks(1))
        to_right.put_packets(of_second[0], first[0], **blocks(1))
        left.unpack_packets(first[1], of_first[1], **blocks(2))

        # The sum is kept as packets, and these are forwarded.
        to_left.put_packets(of_first[0], second[0], **blocks(0))
        right.reduce(second[1], [of_second[1]], dst_chunk=second[1], packet=True, **blocks(1))
        right.copy_packets(of_second[2], second[1], **blocks(1))
        to_left.read_put_packets(of_first[1], of_second[2], **blocks(1))
        right.unpack_packets(second[0], of_second[0], **blocks(2))
    return program


def reduce_on_switch(name, ranks, loop):
    """All peers synchronise, sum and store a part of the input each on the switch, and synchronise again."""
    with CollectiveProgram(name, AllReduce(ranks, 1, True), ranks) as program:
        joined = SwitchChannel(list(range(ranks)), BufferType.input)
        for rank in range(ranks):
            mine = inputs(rank)[rank]
            peers = channels_to(others(rank, 0, ranks), rank)
            sync(peers, 0, True)
            with loop():
                joined.at_rank(rank).reduce(buffer_offset=rank, size=1, dst_chunk=mine, tb=0)
                joined.at_rank(rank).broadcast(mine, buffer_offset=rank, size=1, tb=0)
            sync(peers, 0, True)
    return program


# Rank 0 sums the first half, once from the peer's memory and once from a copy that it receives. Rank 1 sums the other half and
# puts the result.
def executor_reduce():
    with CollectiveProgram("reduce", AllReduce(2, 2, True), 2) as program:
        left, right = Rank(0), Rank(1)
        first, second = left.get_input_buffer(), right.get_input_buffer()
        of_first, of_second = Buffer(0, 4), Buffer(1, 4)
        to_right, to_left = MemoryChannel(1, 0), MemoryChannel(0, 1)

        left.copy(of_first[2:4], first[2:4], tb=0)
        sync([to_right], 0, False)
        to_right.reduce(first[0], [of_second[0]], tb=0)
        to_right.put(second[0], first[0], tb=0)
        to_right.get(of_first[1], of_second[1], tb=0)
        left.reduce(first[1], [of_first[1]], tb=0)
        to_right.put(second[1], first[1], tb=0)
        sync([to_right], 0, False)

        right.copy(of_second[0:2], second[0:2], tb=0)
        sync([to_left], 0, False)
        to_left.reduce(second[2:4], [first[2:4]], tb=0)
        right.copy(of_second[2:4], second[2:4], tb=0)
        to_left.put(first[2:4], of_second[2:4], tb=0)
        sync([to_left], 0, False)
    return program


def executor_reduce_pack():
    return reduce_packets("reduce_pack", lambda step: {"tb": step})


# Two thread blocks share every step.
def executor_reduce_pack_tbg():
    groups = [ThreadBlockGroup([0, 1]), ThreadBlockGroup([2, 3]), ThreadBlockGroup([4, 5])]
    return reduce_packets("reduce_pack_tbg", lambda step: {"tb_group": groups[step]})


# This is an all-gather of two ranks: rank 0 puts packets, rank 1 makes packets and forwards them.
def executor_transfer_pack():
    with CollectiveProgram("transfer_pack", AllGather(2, 1, True), 2, protocol="LL",
                           use_double_scratch_buffer=True) as program:
        left, right = Rank(0), Rank(1)
        first, second = left.get_output_buffer(), right.get_output_buffer()
        of_first, of_second = Buffer(0, 2), Buffer(1, 2)
        MemoryChannel(1, 0).put_packets(of_second[0], first[0], tb=0)
        left.unpack_packets(first[1], of_first[1], tb=1)
        right.copy_packets(of_second[1], second[1], tb=0)
        MemoryChannel(0, 1).read_put_packets(of_first[1], of_second[1], tb=1)
        right.unpack_packets(second[0], of_second[0], tb=2)
    return program


def executor_reduce_nvls(ranks=2, name="reduce_nvls"):
    return reduce_on_switch(name, ranks, contextlib.nullcontext)


def executor_reduce_nvls_pipeline(ranks=2, name="reduce_nvls_pipeline"):
    return reduce_on_switch(name, ranks, lambda: LoopIterationContext(unit=2**20, num_chunks=1))
