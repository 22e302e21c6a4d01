"""Writes a reduce: one rank, the root, receives the sum of all inputs.

    prove it:        chorale check my_reduce.py
    run it:          chorale run my_reduce.py --set ranks=4
    write its plan:  chorale compile my_reduce.py --set ranks=8 -o plan.json

The proof covers every order in which thread blocks and ranks make progress. Remove a wait, and `chorale check` shows
what then goes wrong.
"""
import argparse

from chorale.language import JSON, CollectiveProgram, MemoryChannel, Rank, Reduce

parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
parser.add_argument("--ranks", type=int, default=4, help="number of GPUs")
parser.add_argument("--root", type=int, default=0, help="the rank that receives")
arguments = parser.parse_args()
ranks, root = arguments.ranks, arguments.root

# With a chunk factor of 1 an input and an output are one chunk each.
with CollectiveProgram("my_reduce", Reduce(ranks, 1, root=root), ranks):
    receiver = Rank(root)
    mine, total = receiver.get_input_buffer()[0:1], receiver.get_output_buffer()[0:1]
    peers = []
    for i in range(1, ranks):
        rank = (root + i) % ranks
        peers.append(MemoryChannel(rank, root))  # the destination comes first
        # A signal says to the peer: what I did before is done. A wait takes one signal of the peer.
        to_root = MemoryChannel(root, rank)
        to_root.signal(tb=0)  # my input may be read now
        to_root.wait(tb=0)  # my input has been read
    for number, peer in enumerate(peers):
        peer.wait(tb=0)
        # The first sum begins with the root's own input, and each later one with the sum so far.
        theirs = Rank(peer.dst_rank).get_input_buffer()[0:1]
        peer.reduce(mine if number == 0 else total, [theirs], tb=0, local_dst_chunk=total)
        peer.signal(tb=0)
    print(JSON())  # so that `python3 my_reduce.py --ranks 8 > plan.json` writes the plan, too
