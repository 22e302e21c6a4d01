#!/usr/bin/env python3
"""Prints the wrong programs with their verdicts, as a table: verdicts.py [--check]

--check compares their ids with the list in ../shared/wrong-programs.tsv (or in $CHORALE_SHARED), and every source
with its test. It exits with 77 if there is no list.
"""
import os
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
SHARED = pathlib.Path(os.environ.get("CHORALE_SHARED", HERE.parent.parent / ".." / "shared"))


def verdicts():
    """Maps an id to its verdict and the program's description."""
    found = {}
    for test in sorted(HERE.glob("*.test")):
        text = test.read_text()
        number, what = re.match(r"# (W\d+): (.+)", text).groups()
        if number in found or not test.name.startswith(number + "_"):
            sys.exit(f"{test.name}: its id {number} is another test's, or not that of its name")
        found[number] = re.search(r"^verdict: (.+)$", text, re.M).group(1), what
    return found


def check(found):
    untested = [source.name for source in HERE.glob("*.cpp") if not source.with_suffix(".test").exists()]
    if untested:
        sys.exit(f"without a test: {', '.join(sorted(untested))}")
    listed = SHARED / "wrong-programs.tsv"
    if not listed.exists():
        print(f"skipped: there is no {listed.name} in ../shared or $CHORALE_SHARED")
        sys.exit(77)
    wanted = set(re.findall(r"^(W\d+)\t", listed.read_text(), re.M))
    if wanted != set(found):
        sys.exit(f"missing: {sorted(wanted - set(found))}, not in the list: {sorted(set(found) - wanted)}")


if __name__ == "__main__":
    table = verdicts()
    if sys.argv[1:] == ["--check"]:
        check(table)
    for number, (verdict, what) in table.items():
        print(number, verdict, what, sep="\t")
