#!/usr/bin/env python3
"""Checks that every source is formatted as by clang-format 14: format.py SOURCE_FOLDER [--mend]

Other versions of clang-format break lines elsewhere, so without version 14 the test is skipped. With --mend the script
formats the sources. It leaves out folders whose .clang-format disables formatting.
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

VERSION = "14"
SUFFIXES = {".cpp", ".hpp", ".cu", ".cuh", ".h"}
FOLDERS = ("bench", "bindings", "compiler", "dsl", "executor", "plans", "tests", "tools")
SKIPPED = 77


def formatter():
    """Returns clang-format of the required version; None if there is none."""
    for name in (f"clang-format-{VERSION}", "clang-format"):
        if program := shutil.which(name):
            said = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
            if re.search(rf"version {VERSION}\.", said):
                return program
    return None


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    program = formatter()
    if not program:
        print(f"skipped: there is no clang-format {VERSION} (apt-get install clang-format-{VERSION})")
        sys.exit(SKIPPED)
    sources = [str(path) for folder in FOLDERS for path in sorted((root / folder).rglob("*")) if path.suffix in SUFFIXES]
    if not sources:
        sys.exit(f"there are no sources in {root}")
    how = ["-i"] if "--mend" in sys.argv[2:] else ["--dry-run", "-Werror", "--ferror-limit=1"]
    parts = [sources[at::os.cpu_count()] for at in range(os.cpu_count())]
    with concurrent.futures.ThreadPoolExecutor(len(parts)) as pool:
        done = list(pool.map(lambda part: subprocess.run([program, *how, *part], capture_output=True, text=True), parts))
    print("".join(one.stderr for one in done), end="")
    if any(one.returncode for one in done):
        sys.exit("help: tests/format.py . --mend writes the sources as clang-format has them")


main()
