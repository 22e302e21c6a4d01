#!/usr/bin/env python3
"""Tests World, Executor, Exchange and TunedPlans on arrays."""
import os
import pathlib
import subprocess
import sys
import threading
import unittest

import numpy

import chorale

RANKS = 3
JOIN = """
import sys, numpy, chorale
world = chorale.World.join("shm://" + sys.argv[1], int(sys.argv[2]), 2, timeout="60s")
executor = chorale.Executor(world)
plan = chorale.Plan.make("allreduce_ring", 2)
memory = executor.allocate(64)
buffer = numpy.asarray(memory).view(numpy.float32)
buffer[:] = world.rank + 1
executor.execute(plan, buffer, buffer)
assert (buffer == 3).all(), buffer
world.barrier()
"""


class OnlyDlpack:
    """An array that only has DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **keywords):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class LikeTensor:
    """An array whose type is called as PyTorch calls it, with the interface that its tensors on a GPU have."""

    class Type:
        def __str__(self):
            return "torch.int64"

    def __init__(self, array):
        self.__array_interface__ = array.__array_interface__
        self.dtype = self.Type()


class Worlds(unittest.TestCase):
    def test_world(self):
        def body(world):
            self.assertEqual((world.ranks, world.local_world, world.host(0)), (RANKS, True, 0))
            self.assertEqual(world.timeout_s, 7)
            self.assertEqual(world.allgather(b"x" * world.rank), [b"", b"x", b"xx"])
            half = world.split(world.rank % 2)
            self.assertEqual(half.ranks, 2 if world.rank % 2 == 0 else 1)
            self.assertIsNone(world.split(None))
            world.check()
            world.barrier()
        chorale.run_local(RANKS, body, timeout="7s")

    def test_threads_of_the_caller(self):
        worlds = chorale.World.local(2, timeout="20s")
        results = [None, None]

        def body(world):
            results[world.rank] = world.allgather(bytes([world.rank]))
        threads = [threading.Thread(target=body, args=(world,)) for world in worlds]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(results, [[b"\0", b"\1"]] * 2)

    def test_abort_and_reset(self):
        def body(world):
            if world.rank == 1:
                world.abort("this is a test")
            with self.assertRaises(chorale.RunError) as caught:
                world.barrier()
            self.assertEqual(caught.exception.reason, "aborted")
            self.assertIn("this is a test", str(caught.exception))
            world.reset()
            world.barrier()
        chorale.run_local(RANKS, body)

    def test_processes(self):
        name = f"chorale-python-{os.getpid()}"
        ranks = [subprocess.Popen([sys.executable, "-c", JOIN, name, str(rank)]) for rank in range(2)]
        self.assertEqual([rank.wait(timeout=120) for rank in ranks], [0, 0])


class Executors(unittest.TestCase):
    def test_execute(self):
        plan = chorale.Plan.make("allreduce_ring", RANKS)

        def body(world):
            executor = chorale.Executor(world, trace=1)
            mine = numpy.arange(12, dtype=numpy.int64) * (world.rank + 1)
            for array in mine, mine.reshape(3, 4), OnlyDlpack(mine), LikeTensor(mine):
                out = numpy.zeros(12, numpy.int64)
                executor.prepare(plan, array, out)
                executor.execute(plan, array, out)
                executor.synchronize()
                numpy.testing.assert_array_equal(out, numpy.arange(12) * 6)
            spans = executor.trace()
            self.assertTrue(spans)
            self.assertEqual({span.rank for span in spans}, {world.rank})
            self.assertEqual(spans[0].file, "allreduce_ring.cpp")
            memory = executor.allocate(96)
            self.assertEqual(len(memory), 96)
            own = numpy.asarray(memory).view(numpy.int64)
            own[:] = mine
            executor.execute(plan, own, own, op="max")
            numpy.testing.assert_array_equal(own, numpy.arange(12) * RANKS)
            world.barrier()
        chorale.run_local(RANKS, body)

    def test_torch(self):
        try:
            import torch
        except ImportError:
            print("skipped: tensors of PyTorch, there is no PyTorch for this Python")
            return
        plan = chorale.Plan.make("allreduce_ring", 2)

        def body(world):
            executor = chorale.Executor(world)
            for kind in torch.float32, torch.bfloat16, torch.int32:
                mine, out = torch.full((16,), world.rank + 1, dtype=kind), torch.zeros(16, dtype=kind)
                executor.execute(plan, mine, out)
                self.assertTrue((out == 3).all())
            world.barrier()
        chorale.run_local(2, body)

    def test_exchange(self):
        def body(world):
            exchange = chorale.Exchange(world)
            after, before = (world.rank + 1) % RANKS, (world.rank - 1) % RANKS
            mine, got = numpy.full(1000, world.rank, numpy.int32), numpy.empty(1000, numpy.int32)
            exchange.exchange([(mine, after)], [(got, before)])
            self.assertTrue((got == before).all())
            if world.rank == 0:
                exchange.send(mine[:3], peer=1)
            if world.rank == 1:
                exchange.recv(got[:3], peer=0)
                self.assertTrue((got[:3] == 0).all())
            exchange.check()
            world.barrier()
        chorale.run_local(RANKS, body)

    def test_executors_end_with_their_world(self):
        kept = []

        def body(world):
            kept.append((world, chorale.Executor(world), chorale.Exchange(world)))
            world.barrier()
        chorale.run_local(2, body)
        data = numpy.ones(4, numpy.float32)
        for _, executor, exchange in kept:
            for call in (lambda: executor.execute(chorale.Plan.make("allreduce_ring", 2), data, data),
                         lambda: exchange.send(data, peer=0), executor.check):
                with self.assertRaises(RuntimeError) as caught:
                    call()
                self.assertIn("ended with its World", str(caught.exception))
        del kept[:]

        def fails(world):  # the traceback keeps the executor
            executor = chorale.Executor(world)
            raise KeyError(executor)
        try:
            chorale.run_local(2, fails)
        except KeyError as error:
            with self.assertRaises(RuntimeError):
                error.args[0].check()

    def test_tuned_plans(self):
        plans = chorale.TunedPlans(4)
        choice = plans.choose("allreduce", 1 << 20, "bf16")
        plan = plans.plan(choice)
        self.assertEqual((plan.collective, plan.ranks, choice.collective), ("allreduce", 4, "allreduce"))
        self.assertIn(choice.name, str(choice))
        self.assertTrue(plans.explain("allreduce", 1 << 20, "bf16"))
        own = chorale.Plan.make("allreduce_two_shot", 4)
        plans.use(own, most_bytes=4096, packet="ll8")
        self.assertEqual(plans.choose("allreduce", 4096).name, own.name)
        self.assertEqual(plans.choose("allreduce", 4096).packet, "ll8")
        self.assertNotEqual(plans.choose("allreduce", 1 << 20).name, own.name)
        few = chorale.TunedPlans(4, max_blocks=1)
        self.assertEqual(str(few.choose("allreduce", 4096)),
                         "allreduce_one_shot, the default within 1 block: nothing is tuned for it")
        self.assertIn(("allreduce_all_pairs", "4 blocks, the limit is 1"), few.explain("allreduce", 4096))
        del plans
        self.assertEqual(len(plan.run([numpy.ones(8, numpy.float32)] * 4)), 4)  # the plan keeps its owner
        with self.assertRaises(chorale.UsageError):
            chorale.TunedPlans(4).choose("allredice", 4096)

    def test_files_of_the_package_are_typed(self):
        folder = pathlib.Path(chorale.__file__).parent
        self.assertTrue((folder / "py.typed").exists())


if __name__ == "__main__":
    unittest.main()
