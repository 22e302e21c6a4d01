#!/usr/bin/env python3
"""Checks what pages say about each other and about files, commands and settings: pages.py <chorale>

Links must lead somewhere, docs/README.md must have a line for every page, and named files, commands and options must
exist. docs/command.md must have every command, docs/settings.md the settings with their defaults, docs/proof.md the
checks, docs/plan-format.md the collectives and channel types, and README.md the range of the products measured in
docs/benchmarks.md.
"""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "bench/README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# These are files that only a user makes, or that stand for many.
MADE = {"tests/wrong/Wnn_what.cpp", "FOLDER/page.md", "plans/tuned/cpu.json", "plans/tuned/<GPU>.json", "plans/tuned/<device>.json"}
SUFFIXES = "hpp|cpp|cuh|cu|def|py|sh|json|in|md|tsv|xml|h"


def prose(page):
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)


def anchors(page):
    """Makes anchors as GitHub does."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.M)
    plain = [re.sub(r"[`*]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)) for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in plain}


def links(page):
    """Returns (file, anchor) of each link to a local page or file."""
    text = re.sub(r"`[^`\n]*`", "", prose(page))
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if not target.startswith("http"):
            file, _, anchor = target.partition("#")
            yield target, (page.parent / file).resolve() if file else page, anchor


def wrong_links():
    for page in PAGES:
        for target, file, anchor in links(page):
            if not file.exists():
                yield page, f"links to {target}, which is not there"
            elif anchor and anchor not in anchors(file):
                yield page, f"links to {target}, where there is no such heading"


def pages_without_a_line():
    index = ROOT / "docs/README.md"
    listed = {file for _, file, _ in links(index)}
    for page in PAGES:
        if page.is_relative_to(ROOT / "docs") and page != index and page not in listed:
            yield index, f"does not have {page.relative_to(ROOT)}"


def files_that_are_not_there():
    kept = [path.relative_to(ROOT).as_posix() for folder in sorted(ROOT.iterdir())
            if folder.is_dir() and folder.name not in ("build", ".git") for path in folder.rglob("*")]
    for page in PAGES:
        for word in sorted(set(re.findall(r"`([^`\n]+)`", prose(page)))):
            name = word.strip("<>").rstrip("/")
            is_path = re.fullmatch(rf"[\w./-]*\w\.({SUFFIXES})", name) and "/" in name
            if is_path and name not in MADE and not any(("/" + file).endswith("/" + name) for file in kept):
                yield page, f"names {word}, which is no file here"


def run(*command):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CHORALE_")}
    return subprocess.run(command, text=True, capture_output=True, check=True, timeout=60, env=environment).stdout


def wrong_commands(chorale):
    commands = re.findall(r"^  (\w+) {2,}", run(chorale, "--help").split("Subcommands:")[1], re.M)
    options = {command: set(re.findall(r"--[\w-]+", run(chorale, command, "--help"))) for command in commands}
    table = ROOT / "docs/command.md"
    for command in commands:
        if not re.search(rf"^\| .*`(chorale )?{command}\b.* \|", table.read_text(), re.M):
            yield table, f"has no row for chorale {command}"
    for page in PAGES:
        code = re.findall(r"`(chorale [^`\n]+)`", prose(page)) + re.findall(r"^    (chorale .*)$", prose(page), re.M)
        for line in code:
            command = line.split()[1]
            if command == "help" or command.startswith("-"):
                continue
            if command not in options:
                yield page, f"has '{line}', and there is no command {command}"
                continue
            for option in re.findall(r"(?<!\S)\[?(--[\w-]+)", line.split(" #")[0]):
                if option not in options[command]:
                    yield page, f"has '{line}', and {command} has no {option}"


def wrong_settings(chorale):
    """Returns names and defaults of docs/settings.md, in the order of the page."""
    page = ROOT / "docs/settings.md"
    there = re.findall(r"^ *(\w+) = (\S+)  \(default\)$", run(chorale, "doctor", "--only", "settings"), re.M)
    shown = re.findall(r"^\| `(\w+)` \|.*\| `([^`]*)` \|$", page.read_text(), re.M)
    for name, value in sorted(set(there) ^ set(shown)):
        where = "has, and the library has not" if (name, value) in shown else "does not have"
        yield page, f"{where} '{name} = {value}'"
    if not there:
        yield page, "cannot be compared: chorale doctor lists no settings"


def checks_without_a_line():
    """Checks that docs/proof.md has every proof, and every check with its message."""
    page = ROOT / "docs/proof.md"
    table = (ROOT / "compiler/include/chorale/passes.def").read_text()
    passes = re.findall(r'^CHORALE_(CHECK|PROOF)\((\w+), "(.*)"\)$', table, re.M)
    for kind, name, summary in passes:
        if (f"| `{name}` | {summary} |" if kind == "CHECK" else f"(`{name}`)") not in page.read_text():
            yield page, f"does not have {name}: {summary}"
    if not passes:
        yield page, "cannot be compared: passes.def has no rows"


def words_without_a_line():
    """Checks that docs/plan-format.md has every collective, with its sizes, every channel type, and what MSCCL++ lacks."""
    page = ROOT / "docs/plan-format.md"
    tables = ROOT / "compiler/include/chorale"
    collectives = re.findall(r"^CHORALE_COLLECTIVE\((\w+), (\w+), (\w+),", (tables / "collectives.def").read_text(), re.M)
    channels = re.findall(r'^CHORALE_CHANNEL\(\w+, "(\w+)",', (tables / "channels.def").read_text(), re.M)
    words = (tables / "ops.def").read_text() + (tables / "channels.def").read_text()
    ours = re.findall(r'^CHORALE_\w+\(\w+, "chorale_(\w+)",', words, re.M)
    chunks = {"whole": "c", "even": "N c", "parts": "N c"}
    wanted = [("collective", rf"\| `{word}` \| ") for word, _, _ in collectives]
    wanted += [("collective", rf"\|.*`{word}`.* \| {chunks[input]} \| {chunks[output]} \|$")
               for word, input, output in collectives if input != "own"]
    wanted += [("channel type", rf"\| `channel_type` \|.*`{word}`") for word in channels]
    wanted += [("requirement", rf"\| `requires` \|.*`{word}`") for word in ours if word != "require"]
    for what, line in wanted:
        if not re.search("^" + line, page.read_text(), re.M):
            yield page, f"has no line for a {what}: {line}"
    if not collectives or not channels or not ours:
        yield page, "cannot be compared: a table has no rows"


def wrong_figures():
    """Checks that README.md's rows of products are the ranges of docs/benchmarks.md: for each shape the best form."""
    table = (ROOT / "README.md").read_text()
    sections = (ROOT / "docs/benchmarks.md").read_text().split("\n# Four GPUs\n")
    for column, section in enumerate(sections):
        best = {}
        for row in re.findall(r"^\| all-gather and product \|(.*)\|$", section, re.M):
            cells = [cell.strip() for cell in row.split("|")]
            of = best.setdefault(cells[0], [0.0] * 3)
            best[cells[0]] = [max(old, float(cells[at])) for old, at in zip(of, (9, 10, 7))]
        for name, values in zip(("NCCL and cuBLAS one after the other", "PyTorch's fused operation",
                                 "the larger time of product and all-gather alone"), zip(*best.values())):
            row = re.search(rf"^\|.*{re.escape(name)} \| (.*) \| (.*) \|$", table, re.M)
            expected = f"{min(values):.2f} to {max(values):.2f}"
            if not row or row.group(column + 1) != expected:
                yield ROOT / "README.md", f"says {row and row.group(column + 1)} {name}; docs/benchmarks.md has {expected}"
        if len(best) != 5:
            yield ROOT / "docs/benchmarks.md", f"has {len(best)} shapes of all-gather and product, not five"


def main():
    chorale = str(pathlib.Path(sys.argv[1]).resolve())
    found = [*wrong_links(), *pages_without_a_line(), *files_that_are_not_there(), *wrong_commands(chorale), *wrong_settings(chorale),
             *checks_without_a_line(), *words_without_a_line(), *wrong_figures()]
    for page, what in found:
        print(f"FAILED {page.relative_to(ROOT)} {what}")
    print(f"{len(PAGES)} pages, {sum(1 for page in PAGES for _ in links(page))} links, {len(found)} wrong")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
