#!/usr/bin/env python3
"""Compares MSCCL++'s programs, written in our DSL, with the plans of MSCCL++: ports.py CHORALE PLUGIN [filter ...]
[--plans FOLDER]

A row of manifest.tsv names a plan, our program for it, its arguments, the checks that the plan fails in MSCCL++'s
own executor, and a verdict: "equal", or "differs: why". The program is compiled for MSCCL++, and the checks must
find exactly what the row allows. Then the program is compared with the plan. An equal one must not differ, and one
that differs must not become equal unnoticed. All programs except those that test one operation also run on the CPU,
with sizes that fill their chunks and sizes that do not, and every element must be right.

Without the folder of plans, ../shared/mscclpp-plans beside the repository, the programs are only compiled and run.
"""
import argparse
import concurrent.futures
import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
LIMIT_S = 300
LINES = 30  # the most lines that are shown of a complaint


class Ports:
    def __init__(self, chorale, plugin, plans, folder):
        self.chorale, self.plugin, self.plans, self.folder = chorale, plugin, plans, pathlib.Path(folder)
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("CHORALE_")}

    def command(self, *words):
        return subprocess.run([self.chorale, *map(str, words)], text=True, capture_output=True, timeout=LIMIT_S,
                              env=self.environment)

    def compile(self, program, arguments, allow):
        """Returns the plan of a program, and a complaint if MSCCL++'s checks would not find exactly what the row
        allows."""
        output = self.folder / ("-".join([program, *arguments.split()]) + ".json")
        settings = [word for argument in arguments.split() for word in ("--set", argument)]
        words = ["compile", self.plugin, "--name", program, *settings, "--target", "mscclpp", "-o", output]
        done = self.command(*words)
        found = sorted(set(re.findall(r"error: .*\[(\w+)\]$", done.stderr, re.MULTILINE)))
        if found != allow.split():
            return None, f"is refused for {found}, but the manifest allows {allow.split()}:\n{done.stderr}"
        if found:
            done = self.command(*words, *(word for check in found for word in ("--allow", check)))
        return (None, "is not compiled:\n" + done.stderr) if done.returncode else (output, "")

    def compare(self, compiled, plan, verdict):
        """Returns the complaint about a row; empty if the row is right."""
        done = self.command("diff", "--canonical", self.plans / (plan + ".json"), compiled)
        if verdict == "equal":
            return "differs:\n" + done.stdout + done.stderr if done.returncode else ""
        if not verdict.startswith("differs: "):
            return f"has no verdict: '{verdict}'"
        return "" if done.returncode else f"is equal, but the manifest says '{verdict}'"

    def run(self, compiled, allow):
        plan = json.loads(compiled.read_text())
        if plan["collective"] == "test":  # it may wait for packets that no rank sends
            return ""
        ranks, gpu = len(plan["gpus"]), plan["gpus"][0]
        chunks = gpu["output_chunks"] if plan["collective"] == "allgather" else gpu["input_chunks"]
        least = max(plan["min_message_size"], 4 * chunks)  # one f32 per chunk
        odd = (least // (4 * ranks) + 37) * 4 * ranks      # elements for every rank, but not whole chunks
        proofs = (word for check in allow.split() if not check.startswith("mscclpp_") for word in ("--allow", check))
        done = self.command("run", compiled, "--bytes", f"{4 * least},{odd}", "--repeat", 2, "--no-times", *proofs)
        return "runs wrongly:\n" + done.stdout + done.stderr if done.returncode else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chorale")
    parser.add_argument("plugin")
    parser.add_argument("--plans", type=pathlib.Path, default=HERE.parents[2] / "shared" / "mscclpp-plans")
    parser.add_argument("filters", nargs="*")
    options = parser.parse_args()
    compare = options.plans.is_dir()
    if not compare:
        print(f"skipped: the comparisons, there is no folder {options.plans}")
    tasks = {}  # the rows of each program and its arguments, which is compiled and run once
    with open(HERE / "manifest.tsv", newline="") as manifest:
        for row in csv.DictReader(manifest, delimiter="\t", quoting=csv.QUOTE_NONE):
            if not options.filters or any(word in row["plan"] + " " + row["program"] for word in options.filters):
                tasks.setdefault((row["program"], row["arguments"], row["allow"]), []).append(row)

    bad = 0
    with tempfile.TemporaryDirectory(prefix="ports-") as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        ports = Ports(os.path.abspath(options.chorale), os.path.abspath(options.plugin), options.plans, folder)

        def complaints_of(task):
            compiled, wrong = ports.compile(*task)
            if wrong:
                return [f"{task[0]} {wrong}"]
            found = [f"{row['plan']} {wrong}" for row in tasks[task] if compare
                     and (wrong := ports.compare(compiled, row["plan"], row["verdict"]))]
            wrong = ports.run(compiled, task[2])
            return found + [f"{task[0]} {wrong}"] * bool(wrong)

        for task, complaints in zip(tasks, pool.map(complaints_of, tasks)):
            bad += bool(complaints)
            for complaint in complaints:
                lines = complaint.splitlines()
                cut = [f"... {len(lines) - LINES} lines more"] if len(lines) > LINES else []
                print(f"FAILED ({' '.join(task).strip()})", *lines[:LINES], *cut, sep="\n")
    print(f"{sum(map(len, tasks.values()))} plans, {len({task[0] for task in tasks})} programs, {bad} failed")
    sys.exit(bool(bad) or not tasks)


if __name__ == "__main__":
    main()
