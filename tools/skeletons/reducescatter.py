"""Writes a reduce-scatter: rank r receives part r of the sum of the inputs of all ranks.

    prove it:        chorale check my_reducescatter.py
    run it:          chorale run my_reducescatter.py --set ranks=4
    write its plan:  chorale compile my_reducescatter.py --set ranks=8 -o plan.json

The proof covers every order in which thread blocks and ranks make progress. Remove a wait, and `chorale check` shows
what then goes wrong.
"""
import argparse

from chorale.language import JSON, CollectiveProgram, MemoryChannel, Rank, ReduceScatter

parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
parser.add_argument("--ranks", type=int, default=4, help="number of GPUs")
ranks = parser.parse_args().ranks

# With a chunk factor of 1 an input has one chunk for every rank, and an output is one chunk.
with CollectiveProgram("my_reducescatter", ReduceScatter(ranks, 1), ranks):
    for rank in range(ranks):
        me = Rank(rank)
        # Each rank begins with its next neighbour, so that no two ranks read from the same rank at the same time.
        peers = [MemoryChannel((rank + i) % ranks, rank) for i in range(1, ranks)]

        # A signal says to a peer: what I did before is done. A wait takes one signal of the peer.
        def meet_peers():
            for peer in peers:
                peer.signal(tb=0)
            for peer in peers:
                peer.wait(tb=0)

        total = me.get_output_buffer()[0:1]
        me.copy(total, me.get_input_buffer()[rank:rank + 1], tb=0)
        meet_peers()  # now all inputs may be read
        for peer in peers:  # reads the peer's part, and adds it to the sum
            peer.reduce(total, [Rank(peer.dst_rank).get_input_buffer()[rank:rank + 1]], tb=0)
        meet_peers()  # now all peers have read this input, so the application may change it
    print(JSON())  # so that `python3 my_reducescatter.py --ranks 8 > plan.json` writes the plan, too
