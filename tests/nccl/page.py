#!/usr/bin/env python3
"""Checks the tables of functions and of variables in docs/nccl.md: page.py [--update]"""
import re
import sys

import table

HEADERS = {"nccl": "`nccl.h`", "device": "`nccl_device.h`", "later": "`nccl.h` after 2.28"}
EFFECTS = {"OWN": "Chorale's own", "HONOURED": "as in NCCL", "REFUSED": "refuses GPUs, unless it is 0", "COUNTERPART": "none: set `{}`",
           "WITHOUT": "none"}


def with_fallback(row):
    return "given to the fallback" if table.goes_to_fallback(row) else row.today


def of_functions():
    lines = ["| function | declared in | without a fallback | with a fallback |", "| --- | --- | --- | --- |"]
    return lines + [f"| `{row.name}` | {HEADERS[row.header]} | {row.today} | {with_fallback(row)} |" for row in table.functions()]


def of_variables():
    lines = ["| variable | effect | meaning |", "| --- | --- | --- |"]
    return lines + [f"| `{name}` | {EFFECTS[kind].format(setting)} | {text} |" for kind, name, setting, text in table.variables()]


def main():
    page = table.ROOT / "docs/nccl.md"
    before = text = page.read_text()
    for source, lines in (("functions.def", of_functions()), ("variables.def", of_variables())):
        shown = re.search("^" + re.escape(lines[0][:lines[0].index("|", 2) + 1]) + r".*?\n(?!\|)", text + "\n", re.M | re.S)
        if not shown:
            table.fail(f"docs/nccl.md has no table of {source}")
        made = "\n".join(lines)
        if shown.group(0).rstrip("\n") != made and "--update" not in sys.argv:
            table.fail(f"a table in docs/nccl.md differs from {source}. help: tests/nccl/page.py --update")
        text = text.replace(shown.group(0).rstrip("\n"), made)
    if text != before:
        page.write_text(text)
    print(len(table.functions()), "functions and", len(table.variables()), "variables are documented")


main()
