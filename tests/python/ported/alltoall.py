"""MSCCL++'s all-to-alls of one node. In place, data that arrives waits in scratch until the data that it replaces was sent."""
from chorale.language import AllToAll, Buffer, CollectiveProgram, MemoryChannel, Semaphore, SyncType

from .share import Rank, channels_to, enter, inputs, leave, others, outputs, slot, sync

PREFIXES = ("single_node_",)


def slots_of(ranks):
    """Returns a chunk of scratch for every peer, by rank."""
    return [Buffer(rank, ranks - 1) for rank in range(ranks)]


# This one has a thread block for every peer.
def single_node_alltoall(ranks=2):
    with CollectiveProgram("alltoall", AllToAll(ranks, 1, True), ranks, instances=2) as program:
        slots = slots_of(ranks)
        for rank in range(ranks):
            for peer in others(rank, 0, ranks):
                tb = slot(peer, rank)
                channel = MemoryChannel(peer, rank)
                enter(channel, tb)
                channel.put(slots[peer][slot(rank, peer)], inputs(rank)[peer], tb=tb)
                leave(channel, tb)
                Rank(rank).copy(inputs(rank)[peer], slots[rank][slot(peer, rank)], tb=tb)
    return program


# This one uses packets.
def single_node_alltoall_pkt(ranks=2):
    with CollectiveProgram("alltoall_pkt", AllToAll(ranks, 1, True), ranks, protocol="LL", instances=2,
                           use_double_scratch_buffer=True) as program:
        slots = slots_of(ranks)
        for rank in range(ranks):
            for peer in others(rank, 0, ranks):
                tb = slot(peer, rank)
                MemoryChannel(peer, rank).put_packets(slots[peer][slot(rank, peer)], inputs(rank)[peer], tb=tb)
                Rank(rank).unpack_packets(inputs(rank)[peer], slots[rank][slot(peer, rank)], tb=tb)
    return program


# One thread block sends to the next rank, then to the one after it, and so on. Another one receives. A semaphore says that the
# input was sent and may be overwritten.
def single_node_alltoall_ring(ranks=2):
    with CollectiveProgram("alltoall_ring", AllToAll(ranks, 1, True), ranks, instances=16) as program:
        slots = slots_of(ranks)
        for rank in range(ranks):
            peers = others(rank, 0, ranks)
            data, ready = channels_to(peers, rank), channels_to(peers, rank)
            sent = Semaphore(rank, 0)
            sync(ready, 0, True)
            for step in range(1, ranks):
                to = (rank + step) % ranks
                data[slot(to, rank)].put(slots[to][slot(rank, to)], inputs(rank)[to], tb=0)
                data[slot(to, rank)].signal(0)
            sent.release(0)

            sent.acquire(1)
            for step in range(1, ranks):
                source = (rank - step) % ranks
                data[slot(source, rank)].wait(1)
                Rank(rank).copy(inputs(rank)[source], slots[rank][slot(source, rank)], tb=1)
    return program


# This one runs out of place, where nothing is overwritten.
def single_node_alltoall_ring_oop(ranks=2):
    with CollectiveProgram("alltoall_ring_oop", AllToAll(ranks, 1, False), ranks, instances=16) as program:
        slots = slots_of(ranks)
        for rank in range(ranks):
            me, peers = Rank(rank), others(rank, 0, ranks)
            data, ready = channels_to(peers, rank), channels_to(peers, rank)
            sync(ready, 0, True)
            for step in range(1, ranks):
                to = (rank + step) % ranks
                data[slot(to, rank)].put(slots[to][slot(rank, to)], inputs(rank)[to], tb=0)
                data[slot(to, rank)].signal(0, SyncType.before)
            me.copy(outputs(rank)[rank], inputs(rank)[rank], tb=0)

            for step in range(1, ranks):
                source = (rank - step) % ranks
                data[slot(source, rank)].wait(1, SyncType.after)
                me.copy(outputs(rank)[source], slots[rank][slot(source, rank)], tb=1)
    return program
