"""Makes a test: its output is not promised, so the proof says only that it ends and has no race.

    prove it:        chorale check my_test.py
    run it:          chorale run my_test.py --set ranks=4
    write its plan:  chorale compile my_test.py --set ranks=8 -o plan.json

The proof covers every order in which thread blocks and ranks make progress. Remove a wait, and `chorale check` shows
what then goes wrong.
"""
import argparse

from chorale.language import JSON, CollectiveProgram, MemoryChannel, Rank, TestCollective

parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
parser.add_argument("--ranks", type=int, default=4, help="number of GPUs")
ranks = parser.parse_args().ranks

with CollectiveProgram("my_test", TestCollective(ranks, 1, 1), ranks):
    for rank in range(ranks):
        following = (rank + 1) % ranks
        # A channel leads to its first rank from its second rank, which runs the operations. These two are a pair: a wait
        # on one takes a signal of the other. Thread block 0 sends, and thread block 1 receives.
        to_following, back = MemoryChannel(following, rank), MemoryChannel(rank, following)
        back.signal(tb=1)  # the output of `following` may be written now
        to_following.wait(tb=0)
        to_following.put(Rank(following).get_output_buffer()[0:1], Rank(rank).get_input_buffer()[0:1], tb=0)
        to_following.signal(tb=0)  # the message has arrived
        back.wait(tb=1)
    print(JSON())  # so that `python3 my_test.py --ranks 8 > plan.json` writes the plan, too
