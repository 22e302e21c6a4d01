#!/usr/bin/env python3
"""Runs a plan of each collective on NumPy's arrays, and compares the outputs with what NumPy computes."""
import sys
import unittest
import unittest.mock

import numpy

import chorale
from chorale.language import *  # noqa: F401,F403

RANKS = 4


def data(elements, dtype=numpy.float32):
    """Returns small whole numbers, whose sums are exact in every type."""
    random = numpy.random.default_rng(7)
    return [random.integers(0, 5, elements).astype(dtype) for _ in range(RANKS)]


class Runs(unittest.TestCase):
    def same(self, outputs, expected):
        self.assertEqual(len(outputs), len(expected))
        for rank, (output, wanted) in enumerate(zip(outputs, expected)):
            numpy.testing.assert_array_equal(output, wanted, f"rank {rank}")

    def test_allreduce(self):
        for name in "allreduce_ring", "allreduce_two_shot", "allreduce_one_shot", "allreduce_all_pairs":
            for dtype in numpy.float32, numpy.float16, numpy.float64, numpy.int32, numpy.uint64, numpy.int8:
                with self.subTest(name=name, dtype=dtype):
                    inputs = data(1001, dtype)
                    outputs = chorale.Plan.make(name, RANKS).run(inputs)
                    self.same(outputs, [sum(inputs).astype(dtype)] * RANKS)
                    self.assertEqual(outputs[0].dtype, dtype)

    def test_without_numpy(self):
        with unittest.mock.patch.dict(sys.modules, numpy=None), self.assertRaises(ImportError) as caught:
            chorale.Plan.make("allreduce_ring", RANKS).run(data(64))
        self.assertIn(sys.executable, str(caught.exception))
        self.assertIn("install it", str(caught.exception))

    def test_operators(self):
        plan, inputs = chorale.Plan.make("allreduce_ring", RANKS), data(64)
        for op, result in (("min", numpy.minimum.reduce(inputs)), ("max", numpy.maximum.reduce(inputs)),
                           ("prod", numpy.multiply.reduce(inputs)), ("avg", sum(inputs) / RANKS)):
            with self.subTest(op=op):
                self.same(plan.run(inputs, op=op), [result] * RANKS)

    def test_allgather(self):
        inputs = data(17)
        for name in "allgather_ring", "allgather_direct", "allgather_packets":
            with self.subTest(name=name):
                self.same(chorale.Plan.make(name, RANKS).run(inputs), [numpy.concatenate(inputs)] * RANKS)

    def test_reducescatter(self):
        inputs = data(20)
        parts = numpy.split(sum(inputs), RANKS)
        for name in "reducescatter_direct", "reducescatter_packets":
            with self.subTest(name=name):
                self.same(chorale.Plan.make(name, RANKS).run(inputs), parts)

    def test_alltoall(self):
        inputs = data(20)
        expected = [numpy.concatenate([numpy.split(array, RANKS)[rank] for array in inputs]) for rank in range(RANKS)]
        for name in "alltoall_direct", "alltoall_packets":
            with self.subTest(name=name):
                self.same(chorale.Plan.make(name, RANKS).run(inputs), expected)

    def test_broadcast(self):
        inputs = data(33)
        self.same(chorale.Plan.make("broadcast_ring", RANKS, root=2).run(inputs), [inputs[2]] * RANKS)

    def test_custom(self):
        with CollectiveProgram("shift", Custom(RANKS, 1, 1, lambda rank, chunk: [((rank + RANKS - 1) % RANKS, 0)])) as program:
            for rank in range(RANKS):
                after, channel = (rank + 1) % RANKS, MemoryChannel((rank + 1) % RANKS, rank)
                back = MemoryChannel((rank - 1) % RANKS, rank)
                back.signal(tb=0, relaxed=True)
                channel.wait(tb=0, relaxed=True)
                channel.put(Rank(after).get_output_buffer()[0], Rank(rank).get_input_buffer()[0], tb=0)
                channel.signal(tb=0)
                back.wait(tb=0)
        inputs = data(9)
        self.same(program.compile().run(inputs), inputs[-1:] + inputs[:-1])

    def test_in_place_and_own_outputs(self):
        plan, inputs = chorale.Plan.make("allreduce_ring", RANKS), data(64)
        expected = sum(inputs)
        own = [numpy.empty((8, 8), numpy.float32) for _ in inputs]
        self.assertIs(plan.run(inputs, own)[0], own[0])
        self.same([array.ravel() for array in own], [expected] * RANKS)
        plan.run(inputs, inputs)
        self.same(inputs, [expected] * RANKS)

    def test_bf16_as_bits(self):
        ones = [numpy.full(8, 0x3F80, numpy.uint16) for _ in range(RANKS)]  # 1.0
        outputs = chorale.Plan.make("allreduce_ring", RANKS).run(ones, dtype="bf16")
        self.same(outputs, [numpy.full(8, 0x4080, numpy.uint16)] * RANKS)  # 4.0

    def test_seed(self):
        plan, inputs = chorale.Plan.make("allreduce_all_pairs", RANKS), data(64)
        for seed in range(3):
            self.same(plan.run(inputs, seed=seed), [sum(inputs)] * RANKS)

    def test_packets(self):
        inputs = data(100)
        for packet in "ll8", "ll16", "ll128":
            self.same(chorale.Plan.make("allgather_packets", RANKS).run(inputs, packet=packet),
                      [numpy.concatenate(inputs)] * RANKS)


if __name__ == "__main__":
    unittest.main()
