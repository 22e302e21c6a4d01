#!/usr/bin/env python3
"""Checks that two runs which keep their results in one table at the same time lose none: tune_together.py <chorale>"""
import json
import pathlib
import subprocess
import sys
import tempfile


def words(chorale, collective, sizes, table):
    return [chorale, "tune", collective, "--ranks", "2", "--plan", f"{collective}_direct", "--bytes", sizes, "--threads", "-o", str(table)]


def main():
    chorale = sys.argv[1]
    with tempfile.TemporaryDirectory() as name:
        table = pathlib.Path(name) / "table.json"
        # The other run starts and ends while this one is at its longer sizes.
        first = subprocess.Popen(words(chorale, "allgather", "1K,4M,16M,64M", table), stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        if not first.stdout.readline().startswith("allgather"):
            sys.exit(f"no result came: {first.stderr.read()}")
        second = subprocess.run(words(chorale, "alltoall", "1K,2K", table), capture_output=True, text=True)
        _, errors = first.communicate()
        if first.returncode or second.returncode:
            sys.exit(f"{errors}{second.stderr}")
        found = {(entry["key"]["kind"], entry["key"]["bytes"]) for entry in json.loads(table.read_text())["entries"]}
        expected = {("allgather", size) for size in (1 << 10, 4 << 20, 16 << 20, 64 << 20)}
        expected |= {("alltoall", size) for size in (1 << 10, 2 << 10)}
        if found != expected:
            sys.exit(f"the table has {sorted(found)}, expected {sorted(expected)}")


main()
