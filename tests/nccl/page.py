#!/usr/bin/env python3
"""Checks the table of functions in docs/nccl.md: page.py [--update]"""
import re
import sys

import table

ANSWERS = {"served": ("served", "served"), "either": ("served", "given to the fallback"), "refused": ("refused", "given to the fallback")}
HEADERS = {"nccl": "`nccl.h`", "device": "`nccl_device.h`", "later": "`nccl.h` after 2.28"}


def main():
    page = table.ROOT / "docs/nccl.md"
    lines = ["| function | declared in | without a fallback | with a fallback |", "| --- | --- | --- | --- |"]
    lines += [f"| `{row.name}` | {HEADERS[row.header]} | {' | '.join(ANSWERS[row.today])} |" for row in table.functions()]
    made = "\n".join(lines) + "\n"
    text = page.read_text()
    shown = re.search(r"^\| function \|.*?\n(?!\|)", text + "\n", re.M | re.S)
    if not shown:
        table.fail("docs/nccl.md has no table of functions")
    if shown.group(0).rstrip("\n") == made.rstrip("\n"):
        print(len(table.functions()), "functions are documented")
    elif "--update" in sys.argv:
        page.write_text(text.replace(shown.group(0).rstrip("\n"), made.rstrip("\n")))
    else:
        table.fail("the table in docs/nccl.md differs from functions.def. help: tests/nccl/page.py --update")


main()
