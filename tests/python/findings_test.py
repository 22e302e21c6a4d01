#!/usr/bin/env python3
"""Tests that what is wrong in a Python program is found at its line."""
import inspect
import pathlib
import unittest

import chorale
from chorale.language import *  # noqa: F401,F403
from plan_test import Html

HERE = pathlib.Path(__file__)


def line():
    return inspect.currentframe().f_back.f_lineno


class Findings(unittest.TestCase):
    def one(self, program, kind):
        findings = program.check()
        self.assertTrue(findings)
        self.assertEqual({finding.kind for finding in findings}, {kind})
        self.assertEqual(findings[0].file, HERE.name)
        with self.assertRaises(chorale.FindingsError) as caught:
            program.compile()
        self.assertEqual([str(one) for one in caught.exception.findings], [str(one) for one in findings])
        self.assertIn(findings[0].message, str(caught.exception))
        self.assertIn(findings[0].message, Html(caught.exception._repr_html_()).text)
        with self.assertRaises(chorale.FindingsError):
            program.to_json()
        return findings[0]

    def test_chunk_past_the_end(self):
        with CollectiveProgram("wrong", AllGather(2, 1, False), 2) as program:
            me = Rank(0)
            at = line() + 1
            me.copy(me.get_output_buffer()[1:3], me.get_input_buffer()[0:2], tb=0)
        finding = self.one(program, "dsl")
        self.assertEqual(finding.line, at)
        self.assertIsNone(finding.rank)

    def test_names_of_arguments(self):
        """Findings name arguments as Python does, although C++ has other names."""
        with CollectiveProgram("wrong", AllReduce(2, 1, False), 2) as program:
            me = Rank(0)
            me.reduce(me.get_input_buffer()[0], [], tb=0)
            me.copy(me.get_output_buffer()[0], me.get_input_buffer()[0:2], tb=0)
        self.assertEqual([finding.message for finding in program.check()],
                         ["other_chunks is empty, but src_chunk has to be combined with at least 1 chunk",
                          "dst_chunk is output[0:1] of rank 0, which is 1 chunk, "
                          "but src_chunk is input[0:2] of rank 0, which is 2"])

    def test_words(self):
        """print() of what check() returns shows what the command prints. repr() is short."""
        with CollectiveProgram("wrong", Broadcast(2, 1, False, root=0), 2) as program:
            for rank in range(2):
                at = line() + 1
                Rank(rank).copy(Rank(rank).get_output_buffer()[0], Rank(rank).get_input_buffer()[0], tb=0)
        findings = program.check()
        self.assertIsInstance(findings, list)
        self.assertEqual(str(findings), f"{findings[0]}1 error")
        self.assertEqual(str(findings), str(chorale.FindingsError(findings)))
        self.assertEqual(str(findings).splitlines()[0],
                         f"{HERE.name}:{at}: error: {findings[0].message} [values]")
        self.assertGreater(len(findings[0].message), 80)
        self.assertEqual(repr(findings), f"[{findings[0]!r}]")
        self.assertTrue(repr(findings[0]).startswith(f"<chorale.Finding values at {HERE.name}:{at}: output[0:1] of rank 1"))
        self.assertTrue(repr(findings[0]).endswith(" ...>"))
        self.assertLess(len(repr(findings[0])), 120)
        self.assertIn(findings[0].message, Html(findings._repr_html_()).text)
        plan = program.compile(allow=["values"])
        self.assertEqual(str(plan.check()), str(findings))
        self.assertEqual(str(plan.check(allow=["values"])), "nothing was found")
        self.assertFalse(plan.check(allow=["values"]))

    def test_wrong_ranks(self):
        """A wrong rank is found where it is given, with what to change."""
        with CollectiveProgram("wrong", AllGather(4, 1, False), 4) as program:
            at = line() + 1
            Rank(5)
            MemoryChannel(4, 0)
            MemoryChannel(1, 1)
            channel = MemoryChannel(1, 0)
            me = Rank(0)
            channel.put(me.get_output_buffer()[0], me.get_input_buffer()[0], tb=0)
        findings = program.check()
        self.assertEqual([one.line for one in findings], [at, at + 1, at + 2, at + 5])
        for one, words in zip(findings, ("rank is 5", "destination rank is 4")):
            self.assertIn(words + ", but the program's ranks are 0 to 3", one.message)
            self.assertIn("4 ranks", one.help)
        self.assertIn("leave the rank itself out of its peers", findings[2].help)
        self.assertEqual([(note["line"], note["message"]) for note in findings[3].notes],
                         [(at + 3, "the channel is made here")])

    def test_wait_without_signal(self):
        with CollectiveProgram("wrong", AllGather(2, 1, False), 2) as program:
            for rank in range(2):
                at = line() + 1
                MemoryChannel(1 - rank, rank).wait(tb=0)
        finding = self.one(program, "pairing")
        self.assertEqual((finding.line, finding.block, finding.op), (at, 0, 0))
        self.assertEqual({one.rank for one in program.check()}, {0, 1})
        self.assertIn("wait", finding.operation)
        self.assertIn("memory channel 0", finding.message)

    def test_race_has_a_counter_example(self):
        with CollectiveProgram("wrong", AllGather(2, 1, False), 2) as program:
            for rank in range(2):
                me, channel = Rank(rank), MemoryChannel(1 - rank, rank)
                mine = me.get_input_buffer()[0]
                me.copy(me.get_output_buffer()[rank], mine, tb=0)
                at = line() + 1
                channel.put(Rank(1 - rank).get_output_buffer()[rank], mine, tb=0)
                channel.signal(tb=0)
                channel.wait(tb=0)
        finding = self.one(program, "races")
        self.assertEqual(finding.line, at)
        self.assertIn(f"{HERE.name}:{at}", finding.counter_example)
        self.assertIn("put", finding.operation)
        self.assertIn(finding.counter_example, str(finding))
        self.assertIn("counter-example", Html(finding._repr_html_()).text)
        self.assertTrue(program.compile(allow=["races"]).check())

    def test_wrong_result(self):
        with CollectiveProgram("wrong", Broadcast(2, 1, False, root=0), 2) as program:
            for rank in range(2):
                me = Rank(rank)
                me.copy(me.get_output_buffer()[0], me.get_input_buffer()[0], tb=0)
        finding = self.one(program, "values")
        self.assertEqual((finding.rank, finding.help is not None), (1, True))

    def test_line_is_outside_of_the_package(self):
        """A call through the package's own functions counts as a call of the author's line."""
        def helper(chunk):
            Rank(0).copy(chunk, chunk, tb=-1)
            return line() - 1
        with CollectiveProgram("wrong", AllGather(1, 1, False), 1) as program:
            at = helper(Rank(0).get_input_buffer()[0])
        self.assertEqual(self.one(program, "dsl").line, at)

    def test_notes(self):
        with CollectiveProgram("wrong", AllGather(2, 1, False), 2) as program:
            with LoopIterationContext(unit=2**20, num_chunks=1):
                at = line() + 1
                with LoopIterationContext(unit=2**20, num_chunks=1):
                    pass
        finding = self.one(program, "dsl")
        self.assertEqual(finding.line, at)

    def test_loop_that_fails_records_nothing(self):
        with CollectiveProgram("right", AllGather(1, 1, False), 1) as program:
            me = Rank(0)
            me.copy(me.get_output_buffer()[0], me.get_input_buffer()[0], tb=0)
            with self.assertRaises(KeyError):
                with LoopIterationContext(unit=2**20, num_chunks=1):
                    me.copy(me.get_output_buffer()[0], me.get_input_buffer()[0], tb=1)
                    raise KeyError("mine")
        self.assertEqual(len(program.compile().operations(0)), 1)

    def test_all_findings_are_reported(self):
        with CollectiveProgram("wrong", AllGather(2, 1, False), 2) as program:
            for rank in range(2):
                Rank(rank).copy(Rank(rank).get_output_buffer()[5], Rank(rank).get_input_buffer()[6], tb=0)
        # One finding is about inputs, and one about outputs. Each counts the others of its kind.
        findings = program.check()
        self.assertEqual(len(findings), 2)
        for finding in findings:
            self.assertIn("1 more", str(finding))

    def test_both_ways_to_name_a_program(self):
        program = CollectiveProgram("right", AllGather(1, 1, False))
        me = Rank(program, 0)
        me.copy(me.get_output_buffer()[0], program.rank(0).get_input_buffer()[0], tb=0)
        self.assertEqual(program.compile().ranks, 1)
        with CollectiveProgram("outer", AllGather(1, 1, False)) as outer:
            with CollectiveProgram("inner", AllGather(1, 1, False)) as inner:
                Buffer(0, 3)
            Buffer(outer, 0, 2)
            self.assertIs(get_program(), outer)
        self.assertEqual(inner.name, "inner")


if __name__ == "__main__":
    unittest.main()
