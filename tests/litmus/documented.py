#!/usr/bin/env python3
"""Compares the litmus tests that docs/memory-model.md names with those that there are: documented.py <litmus_test>"""
import pathlib
import re
import subprocess
import sys

page = pathlib.Path(__file__).resolve().parents[2] / "docs" / "memory-model.md"
rows = [line for line in page.read_text().splitlines() if line.startswith("|")]
named = [name for row in rows for name in re.findall(r"`([a-z0-9_]+)`", row.split("|")[-2])]
listed = subprocess.run([sys.argv[1], "--gtest_list_tests"], capture_output=True, text=True, check=True).stdout
tests = re.findall(r"^  (\w+)", listed, re.M)
if set(named) != set(tests) or len(named) != len(set(named)):
    sys.exit(f"only in the page: {sorted(set(named) - set(tests))}, only in the tests: {sorted(set(tests) - set(named))}, "
             f"twice: {sorted({name for name in named if named.count(name) > 1})}")
