#!/usr/bin/env python3
"""Checks that programs and calls shown in the pages and the public headers are right: documented.py <chorale>

Every program, from CHORALE_PROGRAM on, is compiled by `chorale compile`, which proves it, and run. A Python script
that writes plan.json is run, and the plan is checked and run. Other Python scripts are only parsed: they need
PyTorch, and backend_test.py makes their calls, or the installed library, and consumer/c_api/test.py runs them.
documented_calls_test runs other C++. tutorial.py follows the pages in docs/tutorial. Here every snippet must have a row in documented_calls.py and a place in
tests/documented. Findings shown in README.md and docs/counter-examples.md must be those of their programs. pages.py
checks what pages say about each other.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

import documented_calls

ROOT = pathlib.Path(__file__).resolve().parent.parent


def blocks(path, language="cpp"):
    """Returns the C++ of a page, or the programs in the comments of a header. It removes the marks for parts that
    are left out."""
    text = path.read_text()
    if path.suffix == ".md":
        found = re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)
    else:
        found = re.findall(r"(?:^/// {3}.*\n|^///\n(?=/// {3}))+", text, re.M)
        found = [re.sub(r"^/// {0,3}", "", block, flags=re.M) for block in found]
        found = [block for block in found if "CHORALE_PROGRAM(" in block and "..." not in block]
    if language != "cpp":
        return found
    return [re.sub(r"^ *\.\.\.\n", "", block, flags=re.M).replace(" .. }", " }") for block in found]


def run(command, folder=None):
    done = subprocess.run(command, text=True, capture_output=True, timeout=300, cwd=folder)
    return done.returncode == 0, done.stderr


class Documented:
    def __init__(self, chorale, folder):
        self.chorale, self.folder = chorale, folder
        self.source = pathlib.Path(folder) / "documented.cpp"
        self.programs = self.scripts = self.calls = self.findings = self.wrong = 0

    def look(self, page, text, command):
        self.source.write_text(text)
        well, words = run(command, self.folder)
        if not well:
            self.wrong += 1
            print(f"FAILED {page.relative_to(ROOT)}:\n{text}\n{words}")

    def look_at_script(self, page, block):
        if "plan.json" not in block:
            syntax = "import ast, sys; ast.parse(open(sys.argv[1]).read())"
            self.look(page, block, [sys.executable, "-c", syntax, str(self.source)])
            return
        self.scripts += 1
        for command in ([sys.executable, "-c", block], [self.chorale, "check", "plan.json"],
                        [self.chorale, "run", "plan.json", "--bytes", "4K"]):
            self.look(page, block, command)

    def look_at_program(self, page, block):
        self.programs += 1
        head = "" if "#include" in block else "#include <chorale/dsl.hpp>\nusing namespace chorale::dsl;\n"
        self.look(page, head + block, [self.chorale, "compile", str(self.source), "-o", f"{self.folder}/plan.json"])
        # A schedule is for several numbers of ranks, and its tensors have their own sizes.
        how = ["--ranks", "4"] if "Schedule " in block else ["--bytes", "4K", "--no-times"]
        self.look(page, head + block, [self.chorale, "run", f"{self.folder}/plan.json", *how])

    def look_at_findings(self, page, program, options):
        """Checks that the indented findings of this program on the page are what `chorale compile` prints, line by
        line."""
        said = subprocess.run([self.chorale, "compile", program.name, *options, "-o", f"{self.folder}/plan.json"],
                              text=True, capture_output=True, timeout=300, cwd=program.parent).stderr.splitlines()
        first = next((line for line in said if "error: " in line), "no finding")
        shown = page.read_text().splitlines()
        if "    " + first not in shown:
            self.wrong += 1
            print(f"FAILED {page.relative_to(ROOT)} does not show what {program.name} gives:\n{first}")
            return
        at = shown.index("    " + first)
        for line in said:
            if at == len(shown) or not shown[at].startswith("    "):
                break  # the page may leave out the rest
            if shown[at] != "    " + line:
                self.wrong += 1
                print(f"FAILED {page.relative_to(ROOT)}:{at + 1} shows\n{shown[at]}\nand {program.name} gives\n    {line}")
                return
            at += 1
        self.findings += 1

    def findings_of_pages(self):
        page = ROOT / "README.md"
        program = next(block for block in blocks(page) if "CHORALE_PROGRAM(" in block).splitlines(True)
        waits = [at for at, line in enumerate(program) if ".wait(" in line]
        # The page shows what the compiler says without the last signal and wait.
        source = pathlib.Path(self.folder) / "my_allgather.cpp"
        source.write_text("".join(line for at, line in enumerate(program) if at not in (waits[-1] - 1, waits[-1])))
        self.look_at_findings(page, source, ["--set", "ranks=2"])
        self.look_at_findings(ROOT / "docs/counter-examples.md", ROOT / "tests/golden/sources/bad_swap.cpp", [])

    def look_at_calls(self):
        for what in documented_calls.wrong_rows():
            self.wrong += 1
            print(f"FAILED {what}")
        self.calls = len(documented_calls.CALLS)

    def page(self, page):
        if page.suffix == ".md":
            for block in blocks(page, "python"):
                self.look_at_script(page, block)
        for block in blocks(page):
            if "CHORALE_PROGRAM(" in block:
                self.look_at_program(page, block)


def main():
    pages = [*documented_calls.PAGES, *sorted(ROOT.glob("*/include/chorale/**/*.hpp"))]
    with tempfile.TemporaryDirectory() as folder:
        documented = Documented(str(pathlib.Path(sys.argv[1]).resolve()), folder)
        for page in pages:
            documented.page(page)
        documented.findings_of_pages()
        documented.look_at_calls()
    print(f"{documented.programs} programs, {documented.scripts} scripts, {documented.calls} calls, {documented.findings} findings, {documented.wrong} wrong")
    sys.exit(bool(documented.wrong or not documented.programs or not documented.scripts or not documented.calls))


if __name__ == "__main__":
    main()
