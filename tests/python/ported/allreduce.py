"""MSCCL++'s all-reduces of one node. All except the pipeline sum in the input, which is also the output."""
from chorale.language import (AllReduce, Buffer, BufferType, CollectiveProgram, LoopIterationContext, MemoryChannel, Semaphore,
                              SwitchChannel, SyncType)

from .share import Rank, channels_to, inputs, others, outputs, slot, sync

PREFIXES = ("single_node_", "execution_file_")


def sum_and_store(peers, rank, part, tb):
    """Reads a part of every peer's input, adds it to the rank's own and writes the sum to every peer."""
    mine = inputs(rank)[part]
    for peer in peers:
        peer.reduce(mine, [inputs(peer.dst_rank)[part]], tb=tb)
    for peer in peers:
        peer.put(inputs(peer.dst_rank)[part], mine, tb=tb)


# Every rank sums its part of all inputs and stores it to all ranks, with one operation per thread block.
def single_node_allreduce(ranks=2):
    blocks = 8
    with CollectiveProgram("allreduce", AllReduce(ranks, blocks, True), ranks) as program:
        for rank in range(ranks):
            for tb in range(blocks):
                peers = channels_to(others(rank, 0, ranks), rank)
                sync(peers, tb, True)
                sum_and_store(peers, rank, rank * blocks + tb, tb)
                sync(peers, tb, False)
    return program


# This one is for two ranks, as an older version of their DSL wrote it, with fewer synchronisations of threads.
def execution_file_allreduce():
    blocks = 8
    with CollectiveProgram("allreduce", AllReduce(2, blocks, True), 2) as program:
        for rank in range(2):
            for tb in range(blocks):
                peer = MemoryChannel(1 - rank, rank)
                peer.signal(tb, SyncType.none, relaxed=True)
                peer.wait(tb, SyncType.after, relaxed=True)
                sum_and_store([peer], rank, rank * blocks + tb, tb)
                peer.signal(tb, SyncType.before)
                peer.wait(tb, SyncType.none)
    return program


# This is the shortest one with packets, with one thread block.
def single_node_allreduce_naivy(ranks=2):
    with CollectiveProgram("allreduce_naivy", AllReduce(ranks, 1, True), ranks, protocol="LL") as program:
        sent, sums = [], []  # of each rank, one per sender
        for rank in range(ranks):
            sent.append(Buffer(rank, ranks))
            sums.append(Buffer(rank, ranks))
        for rank in range(ranks):
            me, mine = Rank(rank), inputs(rank)
            peers = channels_to(others(rank, 0, ranks), rank)
            for peer in peers:
                peer.put_packets(sent[peer.dst_rank][rank], mine[peer.dst_rank], tb=0)
            me.reduce(mine[rank], [sent[rank][peer.dst_rank] for peer in peers], tb=0, dst_chunk=mine[rank], packet=True)
            for peer in peers:
                peer.put_packets(sums[peer.dst_rank][rank], mine[rank], tb=0)
            for peer in peers:
                me.unpack_packets(mine[peer.dst_rank], sums[rank][peer.dst_rank], tb=0)
    return program


# This one has a thread block for each rank. Packets order all accesses, so auto_sync would only add waiting.
def single_node_allreduce_pkt(ranks=2):
    def part(buffer, of):
        return buffer[of * ranks:(of + 1) * ranks]

    with CollectiveProgram("allreduce_pkt", AllReduce(ranks, ranks, True), ranks, protocol="LL", auto_sync=False,
                           use_double_scratch_buffer=True) as program:
        sent, sums = [], []  # of each rank, a part of every peer
        for rank in range(ranks):
            sent.append(Buffer(rank, (ranks - 1) * ranks))
            sums.append(Buffer(rank, (ranks - 1) * ranks))
        for rank in range(ranks):
            me, mine = Rank(rank), inputs(rank)
            peers = channels_to(others(rank, 0, ranks), rank)
            for peer in peers:
                to = peer.dst_rank
                peer.put_packets(part(sent[to], slot(rank, to)), part(mine, to), tb=slot(to, rank))
            for tb in range(ranks):
                chunk = mine[rank * ranks + tb]
                arrived = [sent[rank][source * ranks + tb] for source in range(ranks - 1)]
                me.reduce(chunk, arrived, tb=tb, dst_chunk=chunk, packet=True)
                for peer in peers:
                    to = peer.dst_rank
                    peer.put_packets(sums[to][slot(rank, to) * ranks + tb], chunk, tb=tb)
            for source in others(rank, 0, ranks):
                me.unpack_packets(part(mine, source), part(sums[rank], slot(source, rank)), tb=source)
    return program


# Three thread blocks move a large message through a small scratch buffer, unit by unit. One copies in, one sums on the switch,
# one copies out. Semaphores hand the units on.
def single_node_allreduce_pipeline(ranks=2):
    with CollectiveProgram("allreduce_pipeline", AllReduce(ranks, 1, True), ranks, reuse_resources=True) as program:
        scratch = [Buffer(rank, ranks) for rank in range(ranks)]
        joined = SwitchChannel(list(range(ranks)), BufferType.scratch)
        for rank in range(ranks):
            me, peers = Rank(rank), others(rank, 0, ranks)
            copied, summed = channels_to(peers, rank), channels_to(peers, rank)
            copied_in, stored = Semaphore(rank, 0), Semaphore(rank, 0)
            with LoopIterationContext(unit=2**20, num_chunks=1):
                for part in range(ranks):
                    me.copy(scratch[rank][part], inputs(rank)[part], tb=0)
                for peer in copied:
                    peer.signal(0, SyncType.before)
                for peer in copied:
                    peer.wait(0, SyncType.after)
                copied_in.release(0)

                copied_in.acquire(1, SyncType.after)
                joined.at_rank(rank).reduce(rank, 1, scratch[rank][rank], tb=1)
                joined.at_rank(rank).broadcast(scratch[rank][rank], rank, 1, tb=1)
                for peer in summed:
                    peer.signal(1)
                stored.release(1)

                stored.acquire(2)
                for peer in summed:
                    peer.wait(2)
                for part in range(ranks):
                    me.copy(outputs(rank)[part], scratch[rank][part], tb=2)
    return program


# This does the same for four ranks in place, as an older version of their DSL wrote it. Up to 32 units are in flight.
def execution_file_allreduce_pipeline():
    ranks = 4
    with CollectiveProgram("allreduce_nvls", AllReduce(ranks, 1, True), ranks, reuse_resources=True) as program:
        scratch = [Buffer(rank, ranks) for rank in range(ranks)]
        joined = SwitchChannel(list(range(ranks)), BufferType.scratch)

        def meet(channels, tb, before):
            for peer in channels:
                peer.signal(tb, before)
            for peer in channels:
                peer.wait(tb, SyncType.after)

        for rank in range(ranks):
            me, mine, peers = Rank(rank), inputs(rank), others(rank, 0, ranks)
            copied, summed = channels_to(peers, rank), channels_to(peers, rank)
            copied_in, stored, free = Semaphore(rank, 0), Semaphore(rank, 0), Semaphore(rank, 32)
            with LoopIterationContext(unit=2**19, num_chunks=1):
                free.acquire(0, SyncType.after)
                for part in range(ranks):
                    me.copy(scratch[rank][part], mine[part], tb=0)
                meet(copied, 0, SyncType.before)
                copied_in.release(0, SyncType.none)

                copied_in.acquire(1, SyncType.after)
                joined.at_rank(rank).reduce(rank, 1, scratch[rank][rank], tb=1)
                joined.at_rank(rank).broadcast(scratch[rank][rank], rank, 1, tb=1)
                stored.release(1, SyncType.before)

                stored.acquire(2, SyncType.after)
                meet(summed, 2, SyncType.none)
                for part in range(ranks):
                    me.copy(mine[part], scratch[rank][part], tb=2)
                free.release(2, SyncType.before)
    return program
