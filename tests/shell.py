#!/usr/bin/env python3
"""Tests standard input and output that do not work, links, and names that are not UTF-8: shell.py <chorale> <source
folder>"""
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

LIMIT_S = 300
NO_SPACE = "No space left on device"
RESULTS = "cannot write the results to standard output"


def run(words, stdin="/dev/null", stdout="/dev/null", limit=None):
    """Returns the exit status and the text on standard error."""
    with open(stdin, "rb") as source, open(stdout, "wb") as sink:
        try:
            done = subprocess.run(words, stdin=source, stdout=sink, stderr=subprocess.PIPE, timeout=LIMIT_S,
                                  preexec_fn=limit)
        except subprocess.TimeoutExpired:
            return "nothing", f"it still ran after {LIMIT_S} s"
    return done.returncode, done.stderr.decode(errors="replace")


def streams(shipped, folder):
    """Holds words, standard input, standard output, and a part of the error if one is expected."""
    plan, small = str(shipped / "allreduce_one_shot_2.json"), str(shipped / "allgather_ring_2.json")
    schedule = str(shipped / "schedules/ag_matmul_p2p.json")
    algorithm = str(shipped / "../../tests/golden/sources/exchange.xml")
    timed = ["bench", plan, "--bytes", "1K", "--calls", "1"]
    for words, says in [
        (["--help"], RESULTS), (["--version"], RESULTS), (["version"], RESULTS), (["bench", "--help"], RESULTS),
        (["list"], RESULTS), (["list", "--names"], RESULTS), (["list", "allgather_ring"], RESULTS), (["ops"], RESULTS), (["show", plan], RESULTS),
        (["show", schedule], RESULTS), (["doctor", "--only", "settings"], RESULTS), (["doctor", plan], RESULTS),
        (["check", plan], RESULTS), (["check", "--sarif", "-", plan], NO_SPACE), (["convert", plan], NO_SPACE),
        (["compile", "allreduce_one_shot", "--set", "ranks=2"], NO_SPACE), (["diff", plan, small], RESULTS),
        (["import", algorithm], NO_SPACE), (["run", plan, "--bytes", "1K"], RESULTS), (timed + ["--format", "json"], NO_SPACE),
        (timed + ["--format", "csv"], NO_SPACE),
        (["tune", "allreduce", "--ranks", "2", "--bytes", "1K", "--calls", "1", "-o", f"{folder}/table.json"], RESULTS),
    ]:
        yield words, "/dev/null", "/dev/full", says
    device = "it is a device, expected a file"
    yield ["check", "-"], "/dev/zero", "/dev/null", "cannot read standard input: " + device
    yield ["check", "-"], plan, "/dev/null", None
    yield ["import", "-"], "/dev/zero", "/dev/null", "cannot read standard input: " + device
    yield ["import", "-"], algorithm, "/dev/null", None


def limited(chorale, shipped, folder):
    """Checks that every command that writes a file names the limit if the process may write no larger files."""
    plan = str(shipped / "allreduce_one_shot_2.json")
    says = "RLIMIT_FSIZE lets this process write files of at most 64 bytes; raise it (ulimit -f"
    out = f"{folder}/limited"
    for words, stdout in [(["convert", plan, "-o", out], "/dev/null"), (["convert", plan], out), (["list"], out),
                          (["bench", plan, "--bytes", "1K", "--calls", "1", "--tuned-out", out], "/dev/null")]:
        status, said = run([chorale, *words], stdout=stdout,
                           limit=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64)))
        if status <= 0 or says not in said:
            yield f"{words} with files of 64 bytes ends with {status}: {said}"
        if os.path.exists(out):
            os.remove(out)


def names(shipped, folder):
    """Maps words to the JSON file that they write."""
    odd = os.fsencode(folder) + b"/odd\xff"
    os.mkdir(odd)
    plan, races, out = odd + b"/plan\xff.json", odd + b"/races\xff.json", odd + b"/out\xff.json"
    text = (shipped / "allgather_ring_2.json").read_text()
    with open(plan, "w") as file:
        file.write(text)
    with open(races, "w") as file:  # without the last signals and waits, and with the author's lines
        file.writelines(
            re.sub(',"at":[0-9]+', "", line) for line in text.splitlines(keepends=True)
            if not re.search('"(signal|wait)".*"at":[45]', line))
    right, wrong = odd + b"/right\xff.xml", odd + b"/wrong\xff.xml"
    text = (shipped / "../../tests/golden/sources/exchange.xml").read_text()
    for name, steps in ((right, text), (wrong, text.replace('dstoff="1"', 'dstoff="0"'))):
        with open(name, "w") as file:
            file.write(steps)
    timed = ["bench", plan, "--bytes", "1K", "--calls", "1", "--commit", b"\xff"]
    yield 0, ["import", right, "-o", out], out
    yield 1, ["import", wrong, "--sarif", out], out
    yield 0, [*timed, "--format", "json", "-o", out], out
    yield 0, [*timed, "--tuned-out", out], out
    yield 1, ["check", races, "--sarif", out], out
    yield 1, ["check", races, "--witness", out], out
    yield 1, ["check", races, "--shrink", out], out
    yield 0, ["convert", plan, "-o", out], out


def links(chorale, shipped, folder):
    """Checks that output to a link goes to its target, whether or not the target exists."""
    plan = str(shipped / "allgather_ring_2.json")
    os.mkdir(f"{folder}/behind")
    for words in (["convert", plan, "-o"], ["bench", plan, "--bytes", "1K", "--calls", "1", "--tuned-out"]):
        for points in (f"{folder}/behind/file", "behind/file", "next"):
            link, file = f"{folder}/link", f"{folder}/behind/file"
            os.symlink("behind/file", f"{folder}/next")
            os.symlink(points, link)
            for what in ("makes", "replaces"):
                status, said = run([chorale, *words, link])
                if status or not os.path.islink(link) or not os.path.islink(f"{folder}/next"):
                    yield f"{words} {link}, which points to {points}, ends with {status}: {said}"
                elif not os.path.isfile(file) or json.loads(pathlib.Path(file).read_text()) is None:
                    yield f"{words} {link} {what} no {points}"
                if what == "makes" and os.path.isfile(file):
                    os.truncate(file, 0)
            for name in (link, f"{folder}/next", file):
                if os.path.lexists(name):
                    os.remove(name)
    for points, says in (("missing/file", "No such file or directory"), ("link", "Too many levels of symbolic links")):
        os.symlink(points, f"{folder}/link")
        for words in (["convert", plan, "-o"], ["bench", plan, "--bytes", "1K", "--tuned-out"]):
            status, said = run([chorale, *words, f"{folder}/link"])
            if status != 2 or f"cannot write {folder}/link: {says}" not in said:
                yield f"{words} to a link to {points} ends with {status}: {said}"
        os.remove(f"{folder}/link")


def closed(chorale, shipped, folder):
    """Checks that a closed standard error stays taken. Otherwise the next opened file would get its number, and the
    messages."""
    pipe = f"{folder}/pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["sh", "-c", 'exec "$0" check "$1" >/dev/null 2>&-', chorale, pipe]) as child:
        with open(pipe, "w") as plan:  # this waits until the pipe is opened for reading
            stream = os.readlink(f"/proc/{child.pid}/fd/2")
            plan.write((shipped / "allgather_ring_2.json").read_text())
        status = child.wait(LIMIT_S)
    if status or stream != "/dev/null":
        yield f"check with standard error closed ends with {status}, and standard error is {stream}"


def main():
    chorale, shipped = sys.argv[1], pathlib.Path(sys.argv[2]) / "plans/shipped"
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for words, stdin, stdout, says in streams(shipped, folder):
            status, said = run([chorale, *words], stdin, stdout)
            if status != (2 if says else 0) or (says or "") not in said:
                wrong.append(f"{' '.join(words)} < {stdin} > {stdout} ends with {status}: {said}")
        for expected, words, out in names(shipped, folder):
            status, said = run([chorale, *words])
            if status != expected:
                wrong.append(f"{words} ends with {status}: {said}")
            elif out:
                with open(out, encoding="utf-8") as file:
                    json.load(file)
                os.remove(out)
        wrong += links(chorale, shipped, folder)
        wrong += closed(chorale, shipped, folder)
        wrong += limited(chorale, shipped, folder)
    for text in wrong:
        print("FAILED:", text)
    sys.exit(bool(wrong))


main()
