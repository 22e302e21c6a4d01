"""Makes a collective of your own: it says what every output chunk is, and the proof checks that.

    prove it:        chorale check my_custom.py
    run it:          chorale run my_custom.py --set ranks=4
    write its plan:  chorale compile my_custom.py --set ranks=8 -o plan.json

The proof covers every order in which thread blocks and ranks make progress. Remove a wait, and `chorale check` shows
what then goes wrong.
"""
import argparse

from chorale.language import JSON, CollectiveProgram, Custom, MemoryChannel, Rank

parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
parser.add_argument("--ranks", type=int, default=4, help="number of GPUs")
ranks = parser.parse_args().ranks


def promise(rank, chunk):
    """Lists the input chunks, as (rank, chunk), whose sum is this output chunk."""
    return [(rank, 0), ((rank + ranks - 1) % ranks, 0)]


with CollectiveProgram("my_custom", Custom(ranks, 1, 1, promise), ranks):
    for rank in range(ranks):
        following = (rank + 1) % ranks
        # A channel leads to its first rank from its second rank, which runs the operations. These two are a pair: a wait
        # on one takes a signal of the other. Thread block 0 adds, and thread block 1 lends its input.
        to_following, back = MemoryChannel(following, rank), MemoryChannel(rank, following)
        to_following.signal(tb=1)  # the input of `rank` may be read now
        back.wait(tb=0)
        adder = Rank(following)
        total = adder.get_output_buffer()[0:1]
        adder.copy(total, adder.get_input_buffer()[0:1], tb=0)
        back.reduce(total, [Rank(rank).get_input_buffer()[0:1]], tb=0)
        back.signal(tb=0)  # the input has been read, so the application may change it
        to_following.wait(tb=1)
    print(JSON())  # so that `python3 my_custom.py --ranks 8 > plan.json` writes the plan, too
