#!/usr/bin/env python3
"""Runs tests/golden/**/*.test: golden.py <chorale> [--update] [filter ...]

A test is one file:

    # one line that says what it shows
    run: check - --some "quoted word"
    {"name": ...}                 what the command reads on standard input; may be absent
    ==== exit 1
    ==== output
    what the command wrote: standard output, then standard error

There may be several `run:` lines. They run one after the other in one temporary folder, until one does not exit
with 0; only the last has the standard input. In commands and output {TMP} is that folder, {SRC} this
one and {BUILD} the one in whose tools/ <chorale> is. `env: NAME=value` sets a variable for the commands; all other CHORALE_ variables are unset. `keep: regex` drops
output lines in which it is not found, for those that are another program's.

--update rewrites what stands behind `==== exit`. Read the difference before you commit it: it is the review.
"""
import concurrent.futures
import difflib
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
LIMIT_S = 120


def normal(text, folder):
    """Output without what differs from machine to machine."""
    return text.replace(folder, "{TMP}").replace(str(HERE), "{SRC}")


def parse(text):
    head = text.split("==== exit", 1)[0]
    runs, stdin, variables, keep = [], [], {}, ""
    for line in head.splitlines(keepends=True):
        if line.startswith("run:"):
            runs.append(line[4:].strip())
        elif line.startswith("env:"):
            name, value = line[4:].strip().split("=", 1)
            variables[name] = value
        elif line.startswith("keep:"):
            keep = line[5:].strip()
        elif not line.startswith("#"):
            stdin.append(line)
    return head, runs, "".join(stdin), variables, keep


def run(chorale, text):
    """What the file should say, from its own first part."""
    head, runs, stdin, variables, keep = parse(text)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CHORALE_")}
    with tempfile.TemporaryDirectory(prefix="golden-") as folder:
        build = os.path.dirname(os.path.dirname(chorale))
        fill = lambda word: word.replace("{TMP}", folder).replace("{SRC}", str(HERE)).replace("{BUILD}", build)
        environment.update({name: fill(value) for name, value in variables.items()})
        output, status = "", 0
        for number, words in enumerate(runs):
            last = number == len(runs) - 1
            try:
                done = subprocess.run([chorale, *shlex.split(fill(words))], input=stdin if last else "", text=True,
                                      capture_output=True, timeout=LIMIT_S, cwd=folder, env=environment, errors="replace")
                status = done.returncode
                output += normal(done.stdout + done.stderr, folder)
            except subprocess.TimeoutExpired:
                status = f"none: it still ran after {LIMIT_S} s"
            if status != 0:
                break
    output = "".join(line for line in output.splitlines(keepends=True) if re.search(keep, line))
    if output and not output.endswith("\n"):
        output += "\n"
    return f"{head}==== exit {status}\n==== output\n{output}"


def main():
    words = sys.argv[1:]
    update = "--update" in words
    words = [word for word in words if word != "--update"]
    if not words or words[0].startswith("-"):
        sys.exit(__doc__)
    chorale, filters = os.path.abspath(words[0]), words[1:]
    tests = sorted((HERE / "golden").rglob("*.test"))
    tests = [t for t in tests if not filters or any(f in str(t.relative_to(HERE)) for f in filters)]
    bad = []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        texts = [test.read_text() for test in tests]
        for test, text, got in zip(tests, texts, pool.map(lambda text: run(chorale, text), texts)):
            name = str(test.relative_to(HERE))
            complaints = [] if text.startswith("# ") else ["the first line does not say what the test shows"]
            if test.name.startswith("bad_") and "==== exit 0" in got:
                complaints.append("a bad_ test must not exit with 0")
            if got != text and update:
                test.write_text(got)
                print("updated", name)
            elif got != text:
                complaints.append("".join(difflib.unified_diff(text.splitlines(True), got.splitlines(True), "expected", "got")))
            if complaints:
                bad.append(name)
                print(f"FAILED {name}", *complaints, sep="\n")
    print(f"{len(tests)} tests, {len(bad)} failed")
    sys.exit(bool(bad) or not tests)


if __name__ == "__main__":
    main()
