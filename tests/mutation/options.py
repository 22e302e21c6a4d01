#!/usr/bin/env python3
"""Checks what mutate refuses, and how it continues after it was stopped: options.py MUTATE SHIPPED_PLANS"""
import pathlib
import subprocess
import sys
import tempfile

LIMIT_S = 300


def run(*words):
    """Returns the exit status and the output on both streams."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S)
    return done.returncode, done.stdout + done.stderr


def main():
    mutate, shipped = sys.argv[1], pathlib.Path(sys.argv[2])
    plan, schedule = str(shipped / "allgather_ring_2.json"), str(shipped / "schedules/ag_matmul_p2p.json")
    few = [mutate, "--sample", "1", "--schedules", "0", "--threads", "1"]
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        copy, whole, cut = (pathlib.Path(folder) / name for name in ("plan.json", "whole", "cut"))
        text = pathlib.Path(plan).read_text()
        copy.write_text(text)
        for status, says, words in [
            (2, "unknown operator 'drop_weit', did you mean 'drop_wait'?", ["--operators", "drop_weit", plan]),
            (2, "--seed is '-1', but must be a whole number", ["--seed", "-1", plan]),
            (2, "/no/hole.json: No such file or directory", ["--holes", f"{folder}/no", plan]),
            (2, "/no/lines: No such file or directory", ["--json", f"{folder}/no/lines", plan]),
            (2, "cannot write /dev/full: No space left on device", ["--json", "/dev/full", plan]),
            (2, "--json names the file that is read", ["--json", copy, copy]),
            (2, "--resume goes on with the lines of a file", ["--resume", plan]),
            (2, "line 1 says of no mutant what became of it", ["--json", copy, "--resume", plan]),
            (0, "left out, it is a host schedule", [schedule]),
            (0, "0 holes", ["--json", whole, plan]),
        ]:
            ended, said = run(*few, *words)
            if ended != status or says not in said:
                wrong.append(f"{words} ends with {ended}, expected {status} and '{says}': {said}")
        if copy.read_text() != text:
            wrong.append("a plan is written to")
        # A run that was stopped in the middle of a line continues, and leaves the same lines as one that was not
        # stopped.
        lines = whole.read_text()
        cut.write_text(lines[:len(lines) // 2])
        ended, said = run(*few, "--json", cut, "--resume", plan)
        if ended or cut.read_text() != lines:
            wrong.append(f"--resume behind half a line ends with {ended}: {said}, and leaves\n{cut.read_text()}")
    for text in wrong:
        print("FAILED:", text)
    sys.exit(bool(wrong))


main()
