#!/usr/bin/env python3
"""Compares our Python programs with the plans of MSCCL++ that tests/mscclpp/manifest.tsv names: ported_test.py [PLANS]

Without the folder of plans, ../shared/mscclpp-plans beside the repository, the programs are only compiled.
"""
import csv
import pathlib
import sys
import unittest

import chorale
from ported import PROGRAMS

HERE = pathlib.Path(__file__).resolve().parent
PLANS = HERE.parents[2] / "shared" / "mscclpp-plans"


def value(word):
    return int(word) if word.isdigit() else word


class Ported(unittest.TestCase):
    def setUp(self):
        with open(HERE.parent / "mscclpp" / "manifest.tsv", encoding="utf-8") as file:
            self.rows = list(csv.DictReader(file, delimiter="\t"))

    def compiled(self, row):
        arguments = dict(word.split("=") for word in row["arguments"].split())
        program = PROGRAMS[row["program"]](**{key: value(word) for key, word in arguments.items()})
        found = sorted({finding.kind for finding in program.check(target="mscclpp")})
        self.assertEqual(found, row["allow"].split())
        return program.compile(target="mscclpp", allow=found)

    def test_every_row_has_a_program(self):
        self.assertEqual(sorted({row["program"] for row in self.rows}), sorted(PROGRAMS))
        self.assertGreaterEqual(len(PROGRAMS), 40)

    def test_plans_are_those_of_mscclpp(self):
        equal = 0
        if not PLANS.is_dir():
            print("skipped: the comparison with MSCCL++'s plans, there is no folder mscclpp-plans on this machine")
        for row in self.rows:
            with self.subTest(plan=row["plan"]):
                plan = self.compiled(row)
                if not PLANS.is_dir():
                    continue
                difference = chorale.Plan.load(str(PLANS / (row["plan"] + ".json"))).diff(plan, canonical=True)
                if row["verdict"] == "equal":
                    self.assertEqual(difference, "")
                    equal += 1
                else:
                    self.assertNotEqual(difference, "", f"is equal, but the manifest says '{row['verdict']}'")
        if PLANS.is_dir():
            print(f"{equal} of {len(self.rows)} plans are equal")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        PLANS = pathlib.Path(sys.argv.pop(1))
    unittest.main()
