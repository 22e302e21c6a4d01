#!/usr/bin/env python3
"""Checks what `chorale new` writes: new.py <chorale> [<folder of the Python package>]

The skeleton of every collective, in C++ and in Python, must be compiled, proved for four ranks, and run on two. If there is
no Python package, its skeletons are only compiled by Python. Files that exist stay, and wrong words are refused.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


class New:
    def __init__(self, chorale, package, folder):
        self.chorale, self.package, self.folder, self.wrong = chorale, package, pathlib.Path(folder), 0
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("CHORALE_")}

    def run(self, *words):
        done = subprocess.run([self.chorale, *words], text=True, capture_output=True, timeout=300, cwd=self.folder,
                              env=self.environment)
        return done.returncode, done.stdout, done.stderr

    def expect(self, true, what, *more):
        if not true:
            self.wrong += 1
            print(f"FAILED {what}", *more, sep="\n")

    def well(self, *words):
        status, out, messages = self.run(*words)
        self.expect(status == 0, f"chorale {' '.join(words)} ended with {status}", out, messages)
        return out

    def skeleton(self, collective, ending):
        file = f"my-{collective}{ending}"
        self.well("new", collective, file)
        text = (self.folder / file).read_text()
        self.expect(f"chorale check {file}" in text, f"{file} does not name itself", text)
        self.expect(f"my_{collective}" in text, f"{file} has no program my_{collective}", text)
        if ending == ".py" and not self.package:
            compile(text, file, "exec")
            return
        shown = self.well("check", file)
        self.expect(f": ok, {collective} of 4 ranks" in shown, f"{file} is not proved", shown)
        rows = self.well("run", file, "--set", "ranks=2", "--bytes", "4K", "--no-times")
        exact = "unknown" if collective == "test" else "yes"  # a test promises no result
        self.expect(re.search(rf"^ +4096 .* {exact}$", rows, re.M), f"{file} is not exact", rows)

    def names(self):
        """Checks the name of the program, which comes from the file's."""
        for file, name in {"2nd-try.cpp": "program_2nd_try", "new.cpp": "new", "my_allgather_2.cpp": "my_allgather_2"}.items():
            self.well("new", "allgather", file)
            self.expect(f"CHORALE_PROGRAM({name}, " in (self.folder / file).read_text(), f"{file} has no program {name}")
            self.well("check", file)

    def refusals(self):
        (self.folder / "mine.cpp").write_text("mine\n")
        for words, message in {("allreduce", "mine.cpp"): "mine.cpp exists, and is not overwritten",
                               ("allreduce", "mine.txt"): "'mine.txt' ends neither in .cpp nor in .py",
                               ("allreduce", "none/mine.cpp"): "cannot write none/mine.cpp: No such file or directory",
                               ("allredcue", "other.cpp"): "did you mean 'allreduce'?",
                               ("allreduce",): "file is required"}.items():
            status, _, messages = self.run("new", *words)
            self.expect(status == 2 and message in messages, f"chorale new {' '.join(words)} ended with {status}", messages)
        self.expect((self.folder / "mine.cpp").read_text() == "mine\n", "a file was overwritten")
        self.expect(not (self.folder / "other.cpp").exists(), "a file was written for a wrong word")


def main():
    collectives = sorted(path.stem for path in (ROOT / "tools/skeletons").glob("*.cpp"))
    package = len(sys.argv) > 2 and pathlib.Path(sys.argv[2], "chorale/_driver.py").exists()
    with tempfile.TemporaryDirectory() as folder:
        new = New(str(pathlib.Path(sys.argv[1]).resolve()), package, folder)
        for collective in collectives:
            for ending in (".cpp", ".py"):
                new.skeleton(collective, ending)
        new.names()
        new.refusals()
    print(f"{len(collectives)} collectives in C++ and Python, {new.wrong} failed" + ("" if package else "; there is no Python package"))
    sys.exit(bool(new.wrong or not collectives))


main()
