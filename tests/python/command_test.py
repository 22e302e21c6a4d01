#!/usr/bin/env python3
"""Tests that the command takes Python sources where it takes C++: command_test.py CHORALE"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import chorale

SOURCE = """
import argparse
from chorale.language import *

parser = argparse.ArgumentParser()
parser.add_argument("--ranks", type=int, default=4)
parser.add_argument("--wrong", default="")
options = parser.parse_args()
print("this is printed")
with CollectiveProgram("gather", AllGather(options.ranks, 1, False), options.ranks) as program:
    for rank in range(options.ranks):
        me = Rank(rank)
        mine = me.get_input_buffer()[0]
        me.copy(me.get_output_buffer()[rank], mine, tb=0)
        peers = [MemoryChannel(peer, rank) for peer in range(options.ranks) if peer != rank]
        for peer in peers:
            peer.signal(tb=0, relaxed=True)
        for peer in peers:
            peer.wait(tb=0, relaxed=True)
            peer.put(Rank(peer.dst_rank).get_output_buffer()[rank], mine, tb=0)
            peer.signal(tb=0)
        for peer in peers:
            if not options.wrong:
                peer.wait(tb=0)
"""
COMMAND = None


class Commands(unittest.TestCase):
    def setUp(self):
        self.kept = tempfile.TemporaryDirectory()
        self.addCleanup(self.kept.cleanup)
        self.folder = pathlib.Path(self.kept.name)

    def source(self, text, name="mine.py"):
        file = self.folder / name
        file.write_text(text)
        return file

    def run_it(self, *words, status=0, **environment):
        done = subprocess.run([COMMAND, *map(str, words)], text=True, capture_output=True, timeout=300, cwd=self.folder,
                              env={**os.environ, "PYTHON": sys.executable, **environment})
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def test_compile(self):
        source, plan = self.source(SOURCE + "print(program.to_json())\n"), self.folder / "plan.json"
        done = self.run_it("compile", source, "--set", "ranks=3", "-o", plan)
        self.assertIn("this is printed", done.stderr)
        self.assertNotIn('"gpus"', done.stderr)  # the command writes the plan, and only once
        self.assertEqual(chorale.Plan.load(plan).ranks, 3)
        self.assertEqual(chorale.Plan.load(plan).operations(0)[0]["file"], "mine.py")
        self.assertEqual(json.loads(self.run_it("compile", source).stdout)["name"], "gather")
        self.assertIn("chorale", json.loads(self.run_it("compile", source, "--certify").stdout))
        self.run_it("compile", source, "--target", "mscclpp")

    def test_sources_need_no_numpy(self):
        (self.folder / "numpy.py").write_text("raise ImportError('there is none')\n")
        path = f"{self.folder}:{os.environ.get('PYTHONPATH', '')}"
        said = self.run_it("doctor", "--only", "versions", PYTHONPATH=path).stdout
        self.assertRegex(said, r"(?m)^ok +Python .*, no NumPy, package chorale")
        self.run_it("check", self.source(SOURCE), PYTHONPATH=path)

    def test_findings(self):
        at = SOURCE.splitlines().index("            peer.signal(tb=0)") + 1
        for words in ["compile"], ["run"], ["simulate"]:
            done = self.run_it(*words, self.source(SOURCE), "--set", "wrong=yes", status=1)
            self.assertIn(f"mine.py:{at}: error: this signal seems to be never awaited", done.stderr)
        done = self.run_it("check", self.source(SOURCE.replace('default=""', 'default="yes"')), status=1)
        self.assertIn(f"mine.py:{at}: error: this signal seems to be never awaited", done.stderr)
        # A script that compiles by itself has its findings reported in the same way.
        done = self.run_it("compile", self.source(SOURCE + "program.compile()\n"), "--set", "wrong=yes", status=1)
        self.assertIn("this signal seems to be never awaited", done.stderr)
        self.assertNotIn("Traceback", done.stderr)

    def test_allow(self):
        racy = SOURCE.replace("            peer.wait(tb=0, relaxed=True)\n", "")
        racy = racy.replace("        for peer in peers:\n            peer.signal(tb=0, relaxed=True)\n", "")
        source = self.source(racy)
        self.assertIn("[races]", self.run_it("compile", source, status=1).stderr)
        self.run_it("compile", source, "--allow", "races")

    def test_check_and_run(self):
        source = self.source(SOURCE)
        self.assertIn("ok, allgather of 4 ranks", self.run_it("check", source).stdout)
        out = self.run_it("run", source, "--set", "ranks=2", "--bytes", "4K,1M", "--no-times").stdout
        self.assertEqual(out.count("yes"), 2)
        self.run_it("simulate", source, "--bytes", "1M")

    def test_settings_that_nobody_reads(self):
        fixed = SOURCE.replace("options = parser.parse_args()", "options = parser.parse_args([])")
        for words in ["compile"], ["run"], ["check"]:
            done = self.run_it(*words, self.source(fixed), "--set", "ranks=8", status=2)
            self.assertIn("does not look at its arguments, so --ranks=8 would change nothing", done.stderr)
        self.assertIn("ok, allgather of 4 ranks", self.run_it("check", self.source(fixed)).stdout)
        self.assertIn("ok, allgather of 8 ranks", self.run_it("check", self.source(SOURCE), "--set", "ranks=8").stdout)

    def test_several_programs(self):
        two = SOURCE + "with CollectiveProgram('other', AllGather(1, 1, False)) as other:\n    me = Rank(0)\n" \
                       "    me.copy(me.get_output_buffer()[0], me.get_input_buffer()[0], tb=0)\n"
        source = self.source(two)
        done = self.run_it("compile", source, status=2)
        self.assertIn("has several programs: gather, other", done.stderr)
        self.assertIn("--name", done.stderr)
        self.assertEqual(json.loads(self.run_it("compile", source, "--name", "other").stdout)["name"], "other")
        self.assertIn("it has gather, other", self.run_it("compile", source, "--name", "others", status=2).stderr)

    def test_errors(self):
        def says(words, *parts, status=2, **environment):
            done = self.run_it(*words, status=status, **environment)
            for part in parts:
                self.assertIn(part, done.stderr)
        good = self.source(SOURCE)
        says(["compile", "missing.py"], "cannot read missing.py: there is no such file")
        says(["compile", good, "--set", "ranke=3"], "unrecognized arguments: --ranke=3", "--KEY=VALUE")
        says(["compile", self.source("print(3)", "no.py")], "no.py makes no program", "chorale.language")
        says(["compile", self.source("1 / 0", "bad.py")], "ZeroDivisionError", "bad.py failed", status=1)
        says(["compile", self.source("import os; os._exit(0)", "end.py")], "ended Python before", status=1)
        says(["compile", good], "there is no Python '/no/python'", "PYTHON=/usr/bin/python3", PYTHON="/no/python")
        says(["compile", good, "--help-program"], "--help lists them")
        broken = self.folder / "broken"
        (broken / "chorale").mkdir(parents=True)
        fake = broken / "python"
        fake.write_text(f"#!/bin/sh\nexec {sys.executable} -S -E \"$@\"\n")  # neither site-packages nor PYTHONPATH
        fake.chmod(0o755)
        says(["compile", good], f"{fake} cannot import the package chorale", "pip install",
             "PYTHON=FILE chooses another Python", PYTHON=str(fake))
        says(["run", self.source("import no_such_module", "lacks.py")], "No module named 'no_such_module'",
             f"lacks.py needs a module that {sys.executable} lacks", "PYTHON=FILE chooses another Python",
             status=1, PYTHON=sys.executable)
        says(["compile", self.source("import sys; sys.exit(3)", "three.py")], "three.py failed", "ended with 3", status=1)

    def test_tracebacks(self):
        """A traceback has the frames of the author only."""
        self.source("def half(number):\n    return number / 0\n", "beside.py")
        text = "from chorale.language import *\nimport beside\n" \
               "try:\n    beside.half(1)\nexcept ZeroDivisionError as error:\n    Rank('x')\n"
        done = self.run_it("check", self.source(text), status=1)
        self.assertEqual(done.stderr.count("Traceback"), 2, done.stderr)
        self.assertIn('mine.py", line 4, in <module>', done.stderr)
        self.assertIn('beside.py", line 2, in half', done.stderr)
        self.assertIn('mine.py", line 6, in <module>', done.stderr)
        for other in "runpy", "_driver", "<string>", os.path.dirname(chorale.__file__) + os.sep:
            self.assertNotIn(other, done.stderr)
        syntax = self.run_it("check", self.source("print(\n"), status=1).stderr
        self.assertIn("SyntaxError", syntax)
        self.assertNotIn("runpy", syntax)

    def test_findings_without_a_line(self):
        empty = "from chorale.language import *\nwith CollectiveProgram('named', AllGather(2, 1, False), 2):\n    pass\n"
        done = self.run_it("check", self.source(empty), status=1)
        self.assertIn("mine.py: error: output[0:1] of rank 0 is never written", done.stderr)

    def test_functions_of_python(self):
        """A promise of a custom collective is a function of Python, which must not outlive Python."""
        custom = "from chorale.language import *\nwith CollectiveProgram('c', Custom(1, 1, 1, lambda rank, chunk: [(0, 0)])):\n" \
                 "    Rank(0).copy(Rank(0).get_output_buffer()[0], Rank(0).get_input_buffer()[0], tb=0)\n"
        self.run_it("compile", self.source(custom))

    def test_modules_beside_the_source(self):
        self.source("RANKS = 2\n", "beside.py")
        self.run_it("compile", self.source(SOURCE.replace("options.ranks", "beside.RANKS").replace(
            "import argparse", "import argparse, beside")))


if __name__ == "__main__":
    COMMAND = os.path.abspath(sys.argv.pop(1))
    unittest.main()
