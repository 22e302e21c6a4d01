#!/usr/bin/env python3
"""Says what a run of the tests left out, and how to have it: left_out.py BUILD_FOLDER...

These are the parts that the first folder was configured without (cmake/optional_parts.cmake), and the tests that said
"skipped: <why>" in the last run of ctest in each folder, wholly or in part. Prints nothing if nothing was left out.
"""
import pathlib
import re
import sys


def absent_parts(folder):
    """A line for each part that is not there."""
    rows = folder / "parts.txt"
    if not rows.exists():
        return [f"  unknown: {rows} is missing. help: configure the build folder again"]
    parts = [row.split("\t") for row in rows.read_text().splitlines()]
    return [f"  {name}: {without}. help: {remedy}" for name, state, without, remedy in parts if state != "present"]


def reasons(output):
    """Returns the reasons why a test, or parts of it, did not run."""
    found = re.findall(r"^\s*(?:[\w+, ]+: )?skipped[:,] *(.*)$", output, re.M)
    found += re.findall(r": Skipped\n(.*)$", output, re.M)  # GoogleTest's form
    return list(dict.fromkeys(why.strip() for why in found if why.strip()))


def skipped_tests(folder):
    """A line for each reason, with the tests that gave it."""
    log, results = folder / "Testing/Temporary/LastTest.log", folder / "tests.log"
    by_reason, named = {}, set()
    for test in re.split(r"^\d+/\d+ Testing: ", log.read_text(errors="replace") if log.exists() else "", flags=re.M)[1:]:
        name, output = test.split("\n", 1)
        for why in reasons(output):
            by_reason.setdefault(why, []).append(name)
            named.add(name)
    skipped = re.findall(r"^ *\d+/\d+ Test +#\d+: (\S+) \.*\*\*\*Skipped", results.read_text(errors="replace") if results.exists() else "", re.M)
    for name in skipped:
        if name not in named:
            by_reason.setdefault("it does not say why", []).append(name)
    return [f"  {', '.join(names)}: {why}" for why, names in by_reason.items()]


def main():
    folders = [pathlib.Path(name) for name in sys.argv[1:]]
    if not folders:
        sys.exit("usage: left_out.py BUILD_FOLDER...")
    if parts := absent_parts(folders[0]):
        print("not built or not tested, because this machine lacks it or it is switched off:", *parts, sep="\n")
    for folder in folders:
        if tests := skipped_tests(folder):
            print(f"skipped in {folder}, wholly or in part:", *tests, sep="\n")


main()
