#!/usr/bin/env python3
"""Makes plans/shipped/*.json from the algorithms in plans/, or checks that they are what would be made now.

    tools/remake_shipped.py CHORALE            write them
    tools/remake_shipped.py CHORALE --check    exit 1 and name those that differ or are too many
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
RANKS = (2, 4, 8)
RANKS_OF = {"allreduce_two_level": (4, 8)}  # it has two nodes

# These algorithms are also shipped for these numbers of thread blocks, beside the default: few for short messages, many
# for long ones, and 8 to 24 for users who limit the blocks (max_blocks). The names of these plans have _b and the number
# before the ranks. allgather_direct and alltoall_direct have two blocks for each of these numbers.
BLOCKS_OF = {
    "allreduce_one_shot": (4, 16),
    "allreduce_two_shot": (16, 32),
    "allreduce_all_pairs": (16, 24, 64, 128),
    "allreduce_ring": (8, 24, 64),
    "allreduce_staged": (16, 64),
    "allgather_packets": (4, 16),
    "allgather_direct": (12, 16, 64),
    "allgather_ring": (64,),
    "reducescatter_packets": (4, 16, 32),
    "reducescatter_direct": (16, 24, 64),
    "reducescatter_staged": (16, 64),
    "alltoall_packets": (4, 16),
    "alltoall_direct": (12, 16, 64),
    "alltoall_in_turns": (64,),
    "broadcast_direct": (16, 64),
    "reduce_packets": (4, 16),
    "reduce_direct": (64,),
    "reduce_staged": (64,),
    "allgather_by_peer": (64, 128),
    "alltoall_by_peer": (64, 128),
    "allgather_by_port": (8, 24),
    "alltoall_by_port": (8, 24),
}
# These are the same for certain numbers of ranks. With one peer to send to, packets carry longer messages, and
# more blocks fit beside each other.
BLOCKS_FOR = {
    ("allreduce_one_shot", 2): (128,),
    ("allreduce_two_shot", 2): (128,),
    ("allreduce_two_shot", 4): (128,),
    ("allreduce_ring", 2): (16, 128),
    ("allgather_packets", 2): (64,),
    ("alltoall_packets", 2): (64,),
    ("reducescatter_packets", 2): (128,),
    ("reducescatter_packets", 4): (128,),
    ("reducescatter_direct", 2): (128,),
    ("allgather_direct", 2): (8,),
    ("reducescatter_staged", 2): (8, 24),
    ("alltoall_direct", 2): (8,),
}
# These algorithms are also shipped in rank order with these numbers of blocks, if their own order differs, which is so
# for more than two ranks. These plans are called <name>_ordered.
ORDERED = {"allreduce_two_shot": (16, 32), "reducescatter_packets": (4, 16), "reduce_packets": (4, 16)}
PER_RANK = ("allgather_by_peer", "alltoall_by_peer")  # their `instances` count for each peer and for the rank itself
COPIERS = ("allgather_by_port", "alltoall_by_port")  # all blocks but one are their `copiers`


def parameters_of(name, ranks, blocks):
    if name in COPIERS:
        return {"ranks": ranks, "copiers": blocks - 1}
    return {"ranks": ranks, "instances": blocks // ranks if name in PER_RANK else blocks}


def wanted():
    """The algorithm, its parameters and the name of the file, for each plan."""
    for source in sorted((ROOT / "plans").glob("*.cpp")):
        name = source.stem
        for ranks in RANKS_OF.get(name, RANKS):
            yield name, {"ranks": ranks}, f"{name}_{ranks}.json"
            for blocks in BLOCKS_OF.get(name, ()) + BLOCKS_FOR.get((name, ranks), ()):
                yield name, parameters_of(name, ranks, blocks), f"{name}_b{blocks}_{ranks}.json"
            for blocks in ORDERED.get(name, ()) if ranks > 2 else ():
                parameters = {"ranks": ranks, "instances": blocks, "rank_order": "true"}
                yield name, parameters, f"{name}_ordered_b{blocks}_{ranks}.json"


def compile_to(chorale, what, settings, file):
    done = subprocess.run([chorale, "compile", what, *settings, "-o", str(file)], stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{file.name}: chorale compile ended with {done.returncode}\n{done.stderr}")


def make(chorale, folder):
    for name, parameters, file in wanted():
        settings = [word for key, value in parameters.items() for word in ("--set", f"{key}={value}")]
        compile_to(chorale, name, settings, folder / file)
    # Host schedules are for any number of ranks.
    (folder / "schedules").mkdir(exist_ok=True)
    for source in sorted((ROOT / "plans" / "schedules").glob("*.cpp")):
        compile_to(chorale, str(source), (), folder / "schedules" / f"{source.stem}.json")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chorale", help="the built command")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    shipped = ROOT / "plans" / "shipped"
    if not arguments.check:
        shipped.mkdir(exist_ok=True)
        make(arguments.chorale, shipped)
        return
    with tempfile.TemporaryDirectory() as made:
        made = pathlib.Path(made)
        make(arguments.chorale, made)
        names = {str(path.relative_to(folder)) for folder in (made, shipped) for path in folder.glob("**/*.json")}
        wrong = [name for name in sorted(names) if not (made / name).exists() or not (shipped / name).exists()
                 or (made / name).read_bytes() != (shipped / name).read_bytes()]
    for name in wrong:
        print(f"plans/shipped/{name} differs from the plan that plans/ makes now", file=sys.stderr)
    if wrong:
        sys.exit("run tools/remake_shipped.py, and look at the difference")


main()
