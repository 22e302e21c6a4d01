#!/usr/bin/env python3
"""Runs the examples in the help of every command, and the first steps that `chorale` alone shows: examples.py <chorale>

Every command must have an example that names it. Each runs in a folder of its own, as a user would type it into bash, and must
end with 0.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# These examples name a file that only the user has, and these commands make it.
FILES = {"import": {"algorithm.xml": [sys.executable, ROOT / "tests/msccl/algorithms.py", "ring_allreduce", "4"]}}


class Tried:
    def __init__(self, chorale):
        self.chorale, self.count, self.wrong = chorale, 0, 0
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("CHORALE_")}
        self.environment["PATH"] = f"{pathlib.Path(chorale).parent}:{os.environ['PATH']}"

    def said(self, *words):
        done = subprocess.run([self.chorale, *words], text=True, capture_output=True, timeout=60, env=self.environment)
        return done.stdout + done.stderr

    def complain(self, what):
        self.wrong += 1
        print(f"FAILED {what}")

    def run_all(self, of, lines):
        """Runs lines of one text in one folder."""
        with tempfile.TemporaryDirectory() as folder:
            for name, command in FILES.get(of, {}).items():
                (pathlib.Path(folder) / name).write_bytes(subprocess.run(command, capture_output=True, check=True).stdout)
            for line in lines:
                self.count += 1
                done = subprocess.run(["bash", "-eo", "pipefail", "-c", line], text=True, capture_output=True, timeout=300,
                                      cwd=folder, env=self.environment, stdin=subprocess.DEVNULL)
                if done.returncode:
                    self.complain(f"{of}: {line}\nended with {done.returncode}\n{done.stdout}{done.stderr}")

    def command(self, name):
        text = self.said(name, "--help")
        examples = text.partition("\nExamples:\n")[2].partition("\n\n")[0]
        lines = re.findall(r"^  ([^# ].*)$", examples, re.M)
        if not lines:
            self.complain(f"chorale {name} --help has no example")
        for line in lines:
            if not re.search(rf"\bchorale {name}\b", line):
                self.complain(f"chorale {name} --help has an example without the command: {line}")
        # A folder each, because some examples write a file of the same name and refuse to overwrite it.
        for line in lines:
            self.run_all(name, [line])


def main():
    tried = Tried(str(pathlib.Path(sys.argv[1]).resolve()))
    commands = re.findall(r"^  (\w+) {2,}", tried.said("--help").split("Subcommands:")[1], re.M)
    for name in commands:
        tried.command(name)
    steps = re.findall(r"^  (chorale .*?) +#", tried.said(), re.M)
    if len(steps) != 3:
        tried.complain(f"chorale alone shows {len(steps)} steps, expected write, check and run")
    tried.run_all("chorale alone", steps)
    print(f"{tried.count} examples of {len(commands)} commands, {tried.wrong} wrong")
    sys.exit(bool(tried.wrong or not commands))


main()
