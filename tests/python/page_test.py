#!/usr/bin/env python3
"""Runs what docs/python.md shows: page_test.py CHORALE

Each block of Python runs in a process of its own, in one folder. Findings and comments that the page shows must be what the blocks
print.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python.md"


def main():
    command = os.path.abspath(sys.argv[1])
    text = PAGE.read_text(encoding="utf-8")
    parts = re.split(r"^```python\n(.*?)^```$", text, flags=re.M | re.S)
    failures = blocks = shown_lines = 0
    environment = {**os.environ, "PYTHON": sys.executable}

    def fail(message):
        nonlocal failures
        failures += 1
        print("FAILED " + message)
    with tempfile.TemporaryDirectory() as folder:
        for block, after in zip(parts[1::2], parts[2::2]):
            blocks += 1
            (pathlib.Path(folder) / "mine.py").write_text(block)
            done = subprocess.run([sys.executable, "mine.py"], cwd=folder, text=True, capture_output=True, timeout=120)
            if done.returncode:
                fail(f"{block}\n{done.stderr}")
                continue
            printed = done.stdout.splitlines()
            for comment in re.findall(r"^print\(.*\)\s+# (<.*)$", block, re.M):
                shown_lines += 1
                if comment not in printed:
                    fail(f"{PAGE.name} says '{comment}', but the block prints\n{done.stdout}")
            if "FindingsError" in block:
                for line in re.findall(r"^    (.*)$", after.split("\n##")[0], re.M):
                    shown_lines += 1
                    if line not in printed:
                        fail(f"{PAGE.name} says '{line}', but the block prints\n{done.stdout}")
            if "CollectiveProgram" in block and "FindingsError" not in block:
                for words in ["check", "mine.py"], ["run", "mine.py", "--bytes", "64K", "--no-times"]:
                    done = subprocess.run([command, *words], cwd=folder, text=True, capture_output=True, env=environment, timeout=120)
                    if done.returncode:
                        fail(f"chorale {' '.join(words)}: {done.stderr}\n{block}")
    if blocks < 5 or shown_lines < 7:
        fail(f"only {blocks} blocks and {shown_lines} lines were found")
    print(f"{blocks} blocks ran, and {shown_lines} lines are what they print")
    sys.exit(bool(failures))


main()
