"""MSCCL++'s programs for several nodes: memory channels inside a node, port channels between nodes."""
from chorale.language import (AllGather, Buffer, CollectiveProgram, PortChannel, ReduceScatter, SendRecv, SyncType,
                              ThreadBlockGroup)

from .share import Rank, channels_to, inputs, others, outputs, sync

PREFIXES = ("multi_node_",)


def ring(after):
    """Returns, by rank, the channels of a ring that lead to the next rank and back from the last one.

    after: by rank, the rank that follows it.
    """
    to_next, from_last = [], [None] * len(after)
    for rank, to in enumerate(after):
        to_next.append(PortChannel(to, rank))
        from_last[to] = PortChannel(rank, to)
    return to_next, from_last


def place(rank, gpus):
    """Returns a rank's peers in its node, and the rank with its position in the other one of two nodes."""
    first = rank // gpus * gpus
    return others(rank, first, first + gpus), (rank + gpus) % (2 * gpus)


# Every rank sends to its node and to its partner, and forwards data from the partner to its node.
def multi_node_allgather(gpus_per_node=2):
    gpus, ranks = gpus_per_node, 2 * gpus_per_node
    with CollectiveProgram("allgather", AllGather(ranks, 1, True), ranks) as program:
        for rank in range(ranks):
            near, far = place(rank, gpus)
            peers, partner = channels_to(near, rank), PortChannel(far, rank)
            sync(peers, 0, True)
            for peer in peers:
                peer.put(outputs(peer.dst_rank)[rank], outputs(rank)[rank], tb=0)
            partner.signal(0)
            partner.wait(0)
            partner.put_with_signal_and_flush(outputs(far)[rank], outputs(rank)[rank], tb=0)
            partner.wait(0, SyncType.after)
            for peer in peers:
                peer.put(outputs(peer.dst_rank)[far], outputs(rank)[far], tb=0)
            sync(peers, 0, False)
    return program


# This one uses packets: each thread block forwards to one peer as soon as the packets have arrived.
def multi_node_allgather_pkt(gpus_per_node=2):
    gpus, ranks = gpus_per_node, 2 * gpus_per_node
    with CollectiveProgram("allgather_pkt", AllGather(ranks, 1, True), ranks, protocol="LL",
                           use_double_scratch_buffer=True) as program:
        slots = [Buffer(rank, ranks) for rank in range(ranks)]
        for rank in range(ranks):
            near, far = place(rank, gpus)
            me = Rank(rank)
            me.copy_packets(slots[rank][rank], outputs(rank)[rank], tb=rank)
            PortChannel(far, rank).read_put_packets(slots[far][rank], slots[rank][rank], tb=rank % gpus)
            for part in rank, far:
                for peer in channels_to(near, rank):
                    to = peer.dst_rank
                    peer.read_put_packets(slots[to][part], slots[rank][part], tb=to % gpus)
            for step in range(1, ranks):
                source = (rank + step) % ranks
                me.unpack_packets(outputs(rank)[source], slots[rank][source], tb=step)
    return program


# This one goes out of place through scratch, round a ring of all ranks. One thread block moves the parts, and the others copy
# each to the output while the next one is in transit.
def multi_node_allgather_tbg(ranks=4, gpus_per_node=2, tbg_size=1):
    copiers = gpus_per_node * tbg_size
    with CollectiveProgram("allgather_tbg", AllGather(ranks, 1, False), ranks) as program:
        parts = [Buffer(rank, ranks) for rank in range(ranks)]
        blocks = list(range(copiers + 1))
        group = ThreadBlockGroup(blocks[1:])
        after = [(rank + 1) % ranks for rank in range(ranks)]
        to_next, from_last = ring(after)
        for rank in range(ranks):
            me, going, coming = Rank(rank), to_next[rank], from_last[rank]
            coming.signal(0, SyncType.none)  # my scratch may be written
            going.wait(0, SyncType.after)
            for step in range(ranks):
                part = (rank - step) % ranks
                held = parts[rank][part] if step else inputs(rank)[0]
                if step + 1 < ranks:
                    going.put_with_signal_and_flush(parts[after[rank]][part], held, tb=0)
                    coming.wait(0)
                me.copy(outputs(rank)[part], held, tb_group=group)
                if step + 1 < ranks:
                    me.barrier(blocks)
    return program


# Every rank sums two parts over its node, its own and its partner's, and sends the partner's sum to the partner.
def multi_node_reducescatter(gpus_per_node=2):
    gpus, ranks = gpus_per_node, 2 * gpus_per_node
    with CollectiveProgram("reducescatter", ReduceScatter(ranks, 1, True), ranks) as program:
        slots = [Buffer(rank, 1) for rank in range(ranks)]
        for rank in range(ranks):
            near, far = place(rank, gpus)
            peers, partner = channels_to(near, rank), PortChannel(far, rank)
            sync(peers, 0, True)
            for part in rank, far:
                for peer in peers:
                    peer.reduce(inputs(rank)[part], [inputs(peer.dst_rank)[part]], tb=0)
            partner.signal(0)
            partner.wait(0)
            partner.put_with_signal(slots[far][0], inputs(rank)[far], tb=0)
            partner.wait(0, SyncType.after)
            Rank(rank).reduce(inputs(rank)[rank], [slots[rank][0]], tb=0)
            sync(peers, 0, True)
    return program


# Every rank sends its input to the next rank of its group. A group has the ranks whose numbers agree in the bits of split_mask.
def multi_node_send_recv(nodes=2, gpus_per_node=1, split_mask=0, instances=1):
    ranks = nodes * gpus_per_node
    with CollectiveProgram("send_recv", SendRecv(ranks, 1, False), ranks, instances=instances) as program:
        after = []
        for rank in range(ranks):
            to = (rank + 1) % ranks
            while to & split_mask != rank & split_mask:
                to = (to + 1) % ranks
            after.append(to)
        to_next, from_last = ring(after)
        for rank in range(ranks):
            from_last[rank].signal(0, SyncType.none)  # my output may be written
            to_next[rank].wait(0, SyncType.after)
            to_next[rank].put_with_signal(outputs(after[rank])[0], inputs(rank)[0], tb=0)
            from_last[rank].wait(0, SyncType.none)
    return program
