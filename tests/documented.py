#!/usr/bin/env python3
"""Programs and calls that the pages and <chorale/dsl.hpp> show are right: documented.py <chorale> <C++ compiler>

Every program, from CHORALE_PROGRAM on, is compiled by `chorale compile`, which proves it. A script in Python that writes
plan.json is run, and the plan checked and run; of others the syntax is looked at: they need PyTorch, and backend_test.py makes their calls, or the installed library, and consumer/c_api/test.py runs them. What README.md shows of the library is only read by the C++ compiler, with the headers that it names, and with the variables below.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What a call in README.md takes for granted, by a word of it.
GIVEN = {
    "World::join": "const int rank = 0, ranks = 8; const uint64_t n = 0; float *x = nullptr, *y = nullptr;",
    "TunedPlans": "const int ranks = 8; const uint64_t n = 0; float *x = nullptr, *y = nullptr; "
                  "extern chorale::Executor& executor;",
    "Exchange": "const uint64_t n = 1, m = 1; const int left = 0, right = 1; void *x = nullptr, *y = nullptr, *u = nullptr, *v = nullptr, "
                "*stream = nullptr; extern chorale::World& world;",
    "ScheduleRun": "const int64_t m = 1, k = 1, n = 1; void *a = nullptr, *b = nullptr, *c = nullptr, *stream = nullptr; "
                   "extern chorale::World& world;",
    "survivors()": "extern std::optional<chorale::Executor>& executor; extern chorale::World& world; "
                   "extern chorale::Config& config; chorale::Plan plan;",
}


def blocks(path, language="cpp"):
    """The C++ of a page, or of the comment at the head of a header; what leaves something out is left out."""
    text = path.read_text()
    if path.suffix == ".md":
        found = re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)
    else:
        found = re.findall(r"(?:^/// {3}.*\n|^///\n(?=/// {3}))+", text, re.M)
        found = [re.sub(r"^/// {0,3}", "", block, flags=re.M) for block in found]
    return [block for block in found if not re.search(r"\.\.\.|\{ \.\. \}", block)]


def run(command, folder=None):
    done = subprocess.run(command, text=True, capture_output=True, timeout=300, cwd=folder)
    return done.returncode == 0, done.stderr


def main():
    chorale, compiler = str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2]
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "dsl/include/chorale/dsl.hpp"]
    includes = [f"-I{ROOT / folder / 'include'}" for folder in ("compiler", "dsl", "executor", "plans")]
    programs, scripts, wrong, missing, headers = 0, 0, 0, set(GIVEN), ""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "documented.cpp"

        def look(page, text, command):
            nonlocal wrong
            source.write_text(text)
            well, words = run(command, folder)
            if not well:
                wrong += 1
                print(f"FAILED {page.relative_to(ROOT)}:\n{text}\n{words}")

        for page in pages:
            for block in blocks(page, "python") if page.suffix == ".md" else ():
                if "plan.json" not in block:
                    look(page, block, [sys.executable, "-c", "import ast, sys; ast.parse(open(sys.argv[1]).read())", str(source)])
                    continue
                scripts += 1
                for command in ([sys.executable, "-c", block], [chorale, "check", "plan.json"],
                                [chorale, "run", "plan.json", "--bytes", "4K"]):
                    look(page, block, command)
            for block in blocks(page):
                if "CHORALE_PROGRAM(" in block:
                    programs += 1
                    head = "" if "#include" in block else "#include <chorale/dsl.hpp>\nusing namespace chorale::dsl;\n"
                    look(page, head + block, [chorale, "compile", str(source), "-o", f"{folder}/plan.json"])
                elif page.name == "README.md":
                    word = next((word for word in GIVEN if word in block), None)
                    if not word:
                        continue
                    missing.discard(word)
                    # A page is read from its beginning: headers of earlier calls are there.
                    headers += "".join(re.findall(r"^#include.*\n", block, re.M))
                    body = re.sub(r"^#include.*\n", "", block, flags=re.M)
                    look(page, f"{headers}void shown() {{\n{GIVEN[word]}\n{body}}}\n",
                         [compiler, "-std=c++20", "-fsyntax-only", *includes, str(source)])
    if missing:
        print("FAILED: README.md no longer shows", *missing)
    print(f"{programs} programs, {scripts} scripts, {len(GIVEN)} calls, {wrong} wrong")
    sys.exit(bool(wrong or missing or not programs or not scripts))


if __name__ == "__main__":
    main()
