"""MSCCL++'s all-gathers of one node. All are in place: a rank's input is its part of its output."""
from chorale.language import (AllGather, Buffer, BufferType, CollectiveProgram, MemoryChannel, SwitchChannel, ThreadBlockGroup)

from .share import Rank, channels_to, enter, leave, others, outputs, slot, sync

PREFIXES = ("single_node_",)


# This one serves one peer after the other.
def single_node_allgather(ranks=2):
    with CollectiveProgram("allgather", AllGather(ranks, 1, True), ranks) as program:
        for rank in range(ranks):
            for peer in channels_to(others(rank, 0, ranks), rank):
                enter(peer, 0)
                peer.put(outputs(peer.dst_rank)[rank], outputs(rank)[rank], tb=0)
                leave(peer, 0)
    return program


# This one does the same with four thread blocks that share every put.
def single_node_allgather_tbg(ranks=2):
    with CollectiveProgram("allgather_tbg", AllGather(ranks, 1, True), ranks) as program:
        group = ThreadBlockGroup([0, 1, 2, 3])
        for rank in range(ranks):
            for peer in channels_to(others(rank, 0, ranks), rank):
                enter(peer, 0)
                Rank(rank).barrier(group.tb_list)
                peer.put(outputs(peer.dst_rank)[rank], outputs(rank)[rank], tb_group=group)
                Rank(rank).barrier(group.tb_list)
                leave(peer, 0)
    return program


# This one serves all peers at once, beginning with the next rank.
def single_node_allgather_ring(ranks=2):
    with CollectiveProgram("allgather_ring", AllGather(ranks, 1, True), ranks, instances=32) as program:
        for rank in range(ranks):
            peers = channels_to(others(rank, 0, ranks), rank)
            sync(peers, 0, True)
            for step in range(1, ranks):
                to = (rank + step) % ranks
                peers[slot(to, rank)].put(outputs(to)[rank], outputs(rank)[rank], tb=0)
            sync(peers, 0, True)
    return program


# This one uses packets, with a thread block for every transfer that is sent, and one for every transfer that is received.
def single_node_allgather_pkt(ranks=2):
    with CollectiveProgram("allgather_pkt", AllGather(ranks, 1, True), ranks, protocol="LL",
                           use_double_scratch_buffer=True) as program:
        slots = [Buffer(rank, ranks) for rank in range(ranks)]
        for rank in range(ranks):
            for step in range(1, ranks):
                peer = (rank + step) % ranks
                MemoryChannel(peer, rank).put_packets(slots[peer][rank], outputs(rank)[rank], tb=step - 1)
                Rank(rank).unpack_packets(outputs(rank)[peer], slots[rank][peer], tb=ranks - 1 + step - 1)
    return program


# In this one a switch stores every rank's part to all ranks.
def single_node_allgather_nvls(ranks=2, instances=1):
    with CollectiveProgram("ag_nvls", AllGather(ranks, 1, True), ranks, instances=instances,
                           num_threads_per_block=256) as program:
        joined = SwitchChannel(list(range(ranks)), BufferType.output)
        for rank in range(ranks):
            peers = channels_to(others(rank, 0, ranks), rank)
            sync(peers, 0, True)
            joined.at_rank(rank).broadcast(outputs(rank)[rank], buffer_offset=rank, size=1, tb=0)
            sync(peers, 0, True)
    return program


# This one stores packets, which need no signals.
def single_node_allgather_nvls_pkt(ranks=2, instances=1, min_message_size=2**10):
    with CollectiveProgram("ag_nvls_pkt", AllGather(ranks, 1, True), ranks, protocol="LL", instances=instances,
                           auto_sync=False, num_threads_per_block=256, use_double_scratch_buffer=True,
                           min_message_size=min_message_size, max_message_size=2**20) as program:
        slots = [Buffer(rank, ranks) for rank in range(ranks)]
        joined = SwitchChannel(list(range(ranks)), BufferType.scratch)
        for rank in range(ranks):
            me = Rank(rank)
            me.copy_packets(slots[rank][rank], outputs(rank)[rank], tb=0)
            joined.at_rank(rank).broadcast_packets(slots[rank][rank], buffer_offset=rank, size=1, tb=0)
            for peer in range(ranks):
                me.unpack_packets(outputs(rank)[peer], slots[rank][peer], tb=peer)
    return program
