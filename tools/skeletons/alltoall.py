"""Writes an all-to-all: rank r receives part r of the inputs of all ranks, in the order of the ranks.

    prove it:        chorale check my_alltoall.py
    run it:          chorale run my_alltoall.py --set ranks=4
    write its plan:  chorale compile my_alltoall.py --set ranks=8 -o plan.json

The proof covers every order in which thread blocks and ranks make progress. Remove a wait, and `chorale check` shows
what then goes wrong.
"""
import argparse

from chorale.language import JSON, AllToAll, CollectiveProgram, MemoryChannel, Rank

parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
parser.add_argument("--ranks", type=int, default=4, help="number of GPUs")
ranks = parser.parse_args().ranks

# With a chunk factor of 1 an input and an output have one chunk for every rank.
with CollectiveProgram("my_alltoall", AllToAll(ranks, 1), ranks):
    for rank in range(ranks):
        me = Rank(rank)
        # Each rank begins with its next neighbour, so that no two ranks write to the same rank at the same time.
        peers = [MemoryChannel((rank + i) % ranks, rank) for i in range(1, ranks)]

        # A signal says to a peer: what I did before is done. A wait takes one signal of the peer.
        def meet_peers():
            for peer in peers:
                peer.signal(tb=0)
            for peer in peers:
                peer.wait(tb=0)

        source = me.get_input_buffer()
        me.copy(me.get_output_buffer()[rank:rank + 1], source[rank:rank + 1], tb=0)
        meet_peers()  # now all outputs may be written
        for peer in peers:
            to = peer.dst_rank
            peer.put(Rank(to).get_output_buffer()[rank:rank + 1], source[to:to + 1], tb=0)
        meet_peers()  # now everything has arrived
    print(JSON())  # so that `python3 my_alltoall.py --ranks 8 > plan.json` writes the plan, too
