#!/usr/bin/env python3
"""Runs the *.test files of tests/golden, tests/wrong and tests/broken: golden.py <chorale> [--update] [filter ...]

A test is one file:

    # one line that says what the test shows
    run: check - --some "quoted word"
    {"name": ...}                 what the command reads on standard input; may be absent
    ==== exit 1
    ==== output
    what the command wrote: standard output, then standard error

There may be several `run:` lines. They run one after the other in one temporary folder, until one does not exit
with 0. Only the last one gets the standard input. In commands and output {TMP} is that folder, {SRC} is this folder, and
{BUILD} is the folder whose tools/ has <chorale>. `env: NAME=value` sets a variable for the commands; all other CHORALE_
variables are unset. `show: FILE` adds the contents of a file that the commands have written. `keep: regex` keeps only the
output lines that match, to drop another program's lines. If the regex has a group, it keeps only what the group matched.
Times of traces are shown as T.

Every test of tests/wrong has a line `verdict: ` and one of
    refused                     the command ends with exit status 1
    right                       all commands end with 0
    passes wrongly: <reason>    all commands end with 0, but should not. Remove the mark when they no longer do

--update rewrites what follows `==== exit`. Read the difference before you commit it: that is the review.
"""
import concurrent.futures
import difflib
import os
import pathlib
import re
import resource
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
FOLDERS = ("golden", "wrong", "broken")
LIMIT_S = 300
BROKEN_MB = 512  # the limit for reading and checking a small broken plan, with any sanitizer


def normal(text, folder, build):
    """Returns output without the parts that differ from machine to machine."""
    text = text.replace(folder, "{TMP}").replace(build, "{BUILD}").replace(str(HERE), "{SRC}")
    return re.sub(r'"(ts|dur)":[-+.e0-9]+', r'"\1":T', text)


def parse(text):
    head = text.split("==== exit", 1)[0]
    runs, stdin, variables, show, keep, verdict = [], [], {}, "", "", ""
    for line in head.splitlines(keepends=True):
        if line.startswith("run:"):
            runs.append(line[4:].strip())
        elif line.startswith("env:"):
            name, value = line[4:].strip().split("=", 1)
            variables[name] = value
        elif line.startswith("show:"):
            show = line[5:].strip()
        elif line.startswith("keep:"):
            keep = line[5:].strip()
        elif line.startswith("verdict:"):
            verdict = line[8:].strip()
        elif not line.startswith("#"):
            stdin.append(line)
    return head, runs, "".join(stdin), variables, show, keep, verdict


def kept(keep, line):
    found = re.search(keep, line)
    if not found:
        return ""
    return found[1] + "\n" if found.re.groups and found[1] else line


def run(chorale, text):
    """Returns the expected text of the file, made by the commands in its first part."""
    head, runs, stdin, variables, show, keep, _ = parse(text)
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
                output += normal(done.stdout + done.stderr, folder, build)
            except subprocess.TimeoutExpired:
                status = f"none: it still ran after {LIMIT_S} s"
            if status != 0:
                break
        if show:
            shown = pathlib.Path(fill(show))
            output += normal(shown.read_text(), folder, build) if shown.exists() else f"there is no {show}\n"
    output = "".join(kept(keep, line) for line in output.splitlines(keepends=True))
    if output and not output.endswith("\n"):
        output += "\n"
    return f"{head}==== exit {status}\n==== output\n{output}"


def complain(test, text, got):
    """Returns the faults of a test that its golden text cannot contain, and that --update does not fix."""
    folder = test.relative_to(HERE).parts[0]
    verdict = parse(text)[-1]
    well, refused = "==== exit 0\n" in got, "==== exit 1\n" in got
    if not text.startswith("# "):
        yield "the first line does not say what the test shows"
    if (test.name.startswith("bad_") or folder == "broken") and well:
        yield "a test of what is bad must not exit with 0"
    if folder == "broken" and not re.search(r"(^|: |  )/", got.split("==== output\n", 1)[1], re.M):
        yield "the message has no JSON path"
    if folder != "wrong":
        return
    if verdict == "refused":
        if not refused:
            yield "the verdict is 'refused', but the exit status is not 1"
    elif verdict == "right":
        if not well:
            yield "the verdict is 'right', but the exit status is not 0"
    elif re.fullmatch("passes wrongly: .+", verdict):
        if not well:
            yield "it does not pass any more: the verdict 'passes wrongly' has to go"
    else:
        yield f"the verdict is '{verdict}', expected refused, right or passes wrongly: <reason>"


def main():
    words = sys.argv[1:]
    update = "--update" in words
    words = [word for word in words if word != "--update"]
    if not words or words[0].startswith("-"):
        sys.exit(__doc__)
    chorale, filters = os.path.abspath(words[0]), words[1:]
    tests = sorted(test for folder in FOLDERS for test in (HERE / folder).rglob("*.test"))
    tests = [t for t in tests if not filters or any(f in str(t.relative_to(HERE)) for f in filters)]
    bad = []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        texts = [test.read_text() for test in tests]
        for test, text, got in zip(tests, texts, pool.map(lambda text: run(chorale, text), texts)):
            name = str(test.relative_to(HERE))
            complaints = list(complain(test, text, got))
            if got != text and update and not complaints:
                test.write_text(got)
                print("updated", name)
            elif got != text:
                complaints.append("".join(difflib.unified_diff(text.splitlines(True), got.splitlines(True), "expected", "got")))
            if complaints:
                bad.append(name)
                print(f"FAILED {name}", *complaints, sep="\n")
    most_mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    if tests and all(test.is_relative_to(HERE / "broken") for test in tests) and most_mb > BROKEN_MB:
        bad.append("memory")
        print(f"FAILED: a command took {most_mb} MB, expected at most {BROKEN_MB}")
    print(f"{len(tests)} tests, {len(bad)} failed")
    sys.exit(bool(bad) or not tests)


if __name__ == "__main__":
    main()
