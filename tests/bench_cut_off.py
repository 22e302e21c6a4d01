#!/usr/bin/env python3
"""Checks that a benchmark that is interrupted keeps what it has measured: bench_cut_off.py <chorale>"""
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time


def cut_off(chorale, folder, how, ranks_as, form):
    """Returns the output file, the page and standard output of a long run that `how` ends after its first results."""
    output, page = folder / f"out.{form}", folder / "page.md"
    words = [chorale, "bench", "allreduce_ring", "--ranks", "2", "--bytes", "1K:256M", "--calls", "10000", ranks_as,
             "--format", form, "--markdown", str(page)]
    if how == signal.SIGKILL:
        words += ["-o", str(output)]
    run = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in run.stderr:  # one line per result
        if line.startswith("allreduce_ring at "):
            break
    else:
        sys.exit(f"no result came: {run.stdout.read()}")
    while not page.exists() or "| 1K | allreduce_ring |" not in page.read_text():
        if run.poll() is not None:
            sys.exit("the run has ended by itself")
        time.sleep(0.01)
    run.send_signal(how)
    stdout, _ = run.communicate()
    return output.read_text() if how == signal.SIGKILL else stdout, page.read_text(), run.returncode


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


def main():
    chorale = sys.argv[1]
    for ranks_as in ("--processes", "--threads"):
        with tempfile.TemporaryDirectory() as name:
            text, page, _ = cut_off(chorale, pathlib.Path(name), signal.SIGKILL, ranks_as, "json")
            results = json.loads(text)
            check(results["complete"] is False, f"the results do not say that they are some only: {text}")
            check(results["results"] and results["results"][0]["wrong"] == 0, f"no result: {text}")
            check("The run has not ended" in page, f"the page does not say that the run was cut off: {page}")
    with tempfile.TemporaryDirectory() as name:
        text, _, status = cut_off(chorale, pathlib.Path(name), signal.SIGTERM, "--processes", "text")
        check(status != 0, "a run that was interrupted ends well")
        check("allreduce_ring" in text and "the run was cut off" in text, f"no table: {text}")


main()
