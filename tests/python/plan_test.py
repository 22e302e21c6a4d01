#!/usr/bin/env python3
"""Tests the functions of chorale.Plan."""
import json
import pathlib
import tempfile
import unittest
from html.parser import HTMLParser

import chorale
from chorale.language import *  # noqa: F401,F403


class Html(HTMLParser):
    """Checks that tags are balanced, and collects the text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.text = [], ""
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.text += data


def ring(name="allreduce_ring", ranks=4):
    return chorale.Plan.make(name, ranks)


class Plans(unittest.TestCase):
    def test_properties(self):
        plan = ring()
        self.assertEqual((plan.name, plan.collective, plan.ranks), ("allreduce_ring", "allreduce", 4))
        self.assertEqual((plan.protocol, plan.in_place, plan.root), ("Simple", False, 0))
        self.assertEqual(chorale.Plan.make("broadcast_direct", 4, root=2).root, 2)
        self.assertTrue(chorale.Plan.make("allreduce_ring", 4, inplace=True).in_place)
        self.assertEqual(plan.operation_count, sum(len(plan.operations(rank)) for rank in range(4)))
        first = plan.operations(0)[0]
        self.assertEqual(first["file"], "allreduce_ring.cpp")
        self.assertGreater(first["line"], 0)
        self.assertTrue(plan.certified)

    def test_files(self):
        plan = ring()
        again = chorale.Plan.from_json(plan.to_json())
        self.assertEqual(again.to_json(), plan.to_json())
        self.assertEqual(chorale.Plan.from_json(plan.to_cbor()).to_json(), plan.to_json())
        self.assertEqual(json.loads(plan.to_json())["name"], "allreduce_ring")
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "plan.json"
            file.write_text(plan.to_json())
            self.assertEqual(chorale.Plan.load(str(file)).to_json(), plan.to_json())
            self.assertEqual(chorale.Plan.load(file).to_json(), plan.to_json())

    def test_show_and_diff(self):
        plan = ring()
        self.assertIn("plan allreduce_ring: allreduce of 4 ranks", plan.show())
        self.assertIn("rank 1:", plan.show(rank=1))
        self.assertNotIn("rank 0:", plan.show(rank=1))
        self.assertEqual(plan.diff(ring()), "")
        self.assertIn("- allreduce of 4 ranks", plan.diff(ring(ranks=2)))
        # The plans differ in the numbers of two channels only.
        changed = json.loads(chorale.Plan.make("allgather_direct", 2).to_json())
        first = chorale.Plan.from_json(json.dumps(changed))
        self.assertEqual(first.diff(chorale.Plan.make("allgather_direct", 2), canonical=True), "")

    def test_certificate_and_facts(self):
        with CollectiveProgram("one", AllGather(1, 1, False), 1) as program:
            me = Rank(0)
            me.copy(me.get_output_buffer()[0], me.get_input_buffer()[0], tb=0)
        plan = program.compile()
        self.assertFalse(plan.certified)
        self.assertTrue(plan.certify().certified)
        self.assertTrue(program.compile(certify=True).certified)
        self.assertEqual(plan.facts()["launches"] > 0, True)
        self.assertEqual(ring().facts()["bounded"], False)

    def test_codecs(self):
        with CollectiveProgram("codecs", AllGather(2, 1, False), 2) as program:
            slots = [Buffer(rank, 2) for rank in range(2)]
            for rank in range(2):
                me, channel = Rank(rank), MemoryChannel(1 - rank, rank)
                mine = slots[rank][rank].encoded("int8", block=64)
                self.assertNotEqual(mine, slots[rank][rank])
                me.copy(mine, me.get_input_buffer()[0], tb=0)
                channel.signal(tb=0, relaxed=True)
                channel.wait(tb=0, relaxed=True)
                channel.put(slots[1 - rank][rank].encoded("int8", block=64), mine, tb=0)
                channel.signal(tb=0)
                channel.wait(tb=0)
                for part in range(2):
                    me.copy(me.get_output_buffer()[part], slots[rank][part].encoded("int8", block=64), tb=0)
        plan = program.compile()
        self.assertEqual(plan.check(), [])
        self.assertEqual(plan.facts()["quantised"], "1 x int8")
        self.assertEqual(plan.facts()["error_bound"], "(1 + 1/254) - 1")

    def test_check(self):
        self.assertEqual(ring().check(), [])
        text = json.loads(ring().to_json())
        del text["chorale"]
        text["gpus"][0]["threadblocks"][0]["ops"].pop(0)
        wrong = chorale.Plan.from_json(json.dumps(text))
        findings = wrong.check()
        self.assertTrue(findings)
        with self.assertRaises(chorale.FindingsError) as caught:
            wrong.certify()
        self.assertEqual(len(caught.exception.findings), len(findings))

    def test_simulate(self):
        plan = ring()
        one = plan.simulate(1 << 20)
        self.assertGreater(one.us, 0)
        self.assertAlmostEqual(one.us * 1000, one.ns)
        self.assertEqual(len(one.links), 4)
        self.assertEqual(one.spans, [])
        self.assertTrue(plan.simulate(1 << 20, spans=True).spans)
        self.assertGreater(plan.simulate(1 << 24).ns, one.ns)
        times = plan.simulate([1 << 10, 1 << 20])
        self.assertEqual([size for size, _ in times], [1 << 10, 1 << 20])
        self.assertEqual(times[1][1].ns, one.ns)
        self.assertIn("1048576", str(times))
        self.assertIn("1048576", Html(times._repr_html_()).text)

    def test_topology(self):
        plan = ring()
        self.assertEqual(plan.simulate(1 << 20, topology="switch:4").ns, plan.simulate(1 << 20).ns)
        self.assertGreater(plan.simulate(1 << 20, topology="pcie:4").ns, plan.simulate(1 << 20).ns)
        self.assertEqual(plan.simulate([1 << 20], topology="pcie:4")[0][1].ns, plan.simulate(1 << 20, topology="pcie:4").ns)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "page.html"
            plan.view(file, topology="pcie:4")
            self.assertIn("pcie:4", file.read_text())

    def test_interchange(self):
        plan = ring()
        self.assertIn('type="rrcs"', plan.to_msccl_xml())
        with self.assertRaisesRegex(chorale.FindingsError, "MSCCL's steps have no packets"):
            chorale.Plan.make("allgather_packets", 2).to_msccl_xml()
        goal = plan.to_goal(1 << 20)
        self.assertTrue(goal.startswith("num_ranks 4\n"))
        self.assertNotRegex(goal, "calc [1-9]")
        self.assertRegex(plan.to_goal(1 << 20, machine="nvidia_h200"), "calc [1-9]")
        self.assertNotEqual(plan.to_goal(1 << 22), goal)
        traces = plan.to_chakra(1 << 20, dtype="bf16")
        self.assertEqual(len(traces), 4)
        self.assertIn(b"comm_size", traces[3])
        with self.assertRaises(chorale.UsageError):
            plan.to_goal(1)
        text = json.loads(plan.to_json())
        ops = text["gpus"][0]["threadblocks"][0]["ops"]
        ops.remove(next(op for op in ops if op["name"] == "wait"))
        wrong = chorale.Plan.from_json(json.dumps(text))
        for call in wrong.to_msccl_xml, lambda: wrong.to_goal(1 << 20), lambda: wrong.to_chakra(1 << 20):
            with self.assertRaisesRegex(chorale.FindingsError, "6 signals meet 5 waits"):
                call()

    def test_view(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "ring.html"
            self.assertEqual(ring().view(file, bytes=4096, eager=True), str(file))
            page = file.read_text()
            self.assertTrue(page.startswith("<!doctype html>"), page[:100])
            self.assertIn("allreduce_ring", page)
            self.assertIn('"file":"-"', page)  # the page then names the plan and no file
            self.assertNotEqual(pathlib.Path(ring().view(pathlib.Path(folder) / "other.html")).read_text(), page)
            with self.assertRaisesRegex(chorale.UsageError, "dtype"):
                ring().view(pathlib.Path(folder) / "none.html", dtype="f31")
            with self.assertRaisesRegex(FileNotFoundError, "there is no machine file none"):
                ring().view(file, machine="none")
            self.assertFalse((pathlib.Path(folder) / "none.html").exists())
            with self.assertRaisesRegex(TypeError, "allow takes a list"):
                ring().view(file, allow="proofs")

    def test_html(self):
        text = Html(ring()._repr_html_()).text
        self.assertIn("allreduce_ring", text)
        with CollectiveProgram("<b>&", AllGather(1, 1, False), 1) as program:
            me = Rank(0)
            me.copy(me.get_output_buffer()[0], me.get_input_buffer()[0], tb=0)
        html = program.compile()._repr_html_()
        self.assertNotIn("<b>&<", html)
        self.assertIn("&lt;b&gt;&amp;", html)
        self.assertIn("<b>&", Html(html).text)

    def test_folder(self):
        self.assertTrue((pathlib.Path(chorale.plans_folder()) / "shipped" / "allreduce_ring_4.json").exists())

    def test_doc(self):
        for name in chorale.__all__:
            thing = getattr(chorale, name)
            self.assertTrue(thing.__doc__, name)


if __name__ == "__main__":
    unittest.main()
