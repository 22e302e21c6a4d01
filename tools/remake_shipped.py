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
RANKS_OF = {"allreduce_two_level": (4, 8)}  # two nodes


def wanted():
    for source in sorted((ROOT / "plans").glob("*.cpp")):
        for ranks in RANKS_OF.get(source.stem, RANKS):
            yield source.stem, ranks, f"{source.stem}_{ranks}.json"


def make(chorale, folder):
    for name, ranks, file in wanted():
        done = subprocess.run([chorale, "compile", name, "--set", f"ranks={ranks}", "-o", str(folder / file)])
        if done.returncode != 0:
            sys.exit(f"{name} at {ranks} ranks: chorale compile ended with {done.returncode}")


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
        names = {path.name for folder in (made, shipped) for path in folder.glob("*.json")}
        wrong = [name for name in sorted(names) if not (made / name).exists() or not (shipped / name).exists()
                 or (made / name).read_bytes() != (shipped / name).read_bytes()]
    for name in wrong:
        print(f"plans/shipped/{name} is not what plans/ gives now", file=sys.stderr)
    if wrong:
        sys.exit("run tools/remake_shipped.py, and look at the difference")


main()
