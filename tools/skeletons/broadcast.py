"""Writes a broadcast: every rank receives the input of one rank, the root.

    prove it:        chorale check my_broadcast.py
    run it:          chorale run my_broadcast.py --set ranks=4
    write its plan:  chorale compile my_broadcast.py --set ranks=8 -o plan.json

The proof covers every order in which thread blocks and ranks make progress. Remove a wait, and `chorale check` shows
what then goes wrong.
"""
import argparse

from chorale.language import JSON, Broadcast, CollectiveProgram, MemoryChannel, Rank

parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
parser.add_argument("--ranks", type=int, default=4, help="number of GPUs")
parser.add_argument("--root", type=int, default=0, help="the rank that sends")
arguments = parser.parse_args()
ranks, root = arguments.ranks, arguments.root

# With a chunk factor of 1 an input and an output are one chunk each.
with CollectiveProgram("my_broadcast", Broadcast(ranks, 1, root=root), ranks):
    sender = Rank(root)
    message = sender.get_input_buffer()[0:1]
    peers = []
    for i in range(1, ranks):
        rank = (root + i) % ranks
        peers.append(MemoryChannel(rank, root))  # the destination comes first
        # A signal says to the peer: what I did before is done. A wait takes one signal of the peer.
        to_root = MemoryChannel(root, rank)
        to_root.signal(tb=0)  # my output may be written now
        to_root.wait(tb=0)  # the message has arrived
    for peer in peers:
        peer.wait(tb=0)
        peer.put(Rank(peer.dst_rank).get_output_buffer()[0:1], message, tb=0)
        peer.signal(tb=0)
    sender.copy(sender.get_output_buffer()[0:1], message, tb=0)
    print(JSON())  # so that `python3 my_broadcast.py --ranks 8 > plan.json` writes the plan, too
