#!/usr/bin/env python3
"""Tests that every misuse of the package has an exception with the values and the remedy."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy

import chorale
import chorale.mscclpp
from chorale.language import *  # noqa: F401,F403


class Errors(unittest.TestCase):
    def refused(self, error, *words):
        """Expects the exception, with all words in its text."""
        test = self

        class Expects:
            def __enter__(self):
                self.caught = test.assertRaises(error)
                self.caught.__enter__()

            def __exit__(self, *exception):
                if not self.caught.__exit__(*exception):
                    return False
                for word in words:
                    test.assertIn(word, str(self.caught.exception))
                return True
        return Expects()

    def setUp(self):
        self.plan = chorale.Plan.make("allreduce_ring", 2)

    def test_plans(self):
        with self.refused(OSError, "/no/such/plan.json"):
            chorale.Plan.load("/no/such/plan.json")
        with self.refused(chorale.PlanError, "expected"):
            chorale.Plan.from_json("[1]")
        with self.refused(chorale.PlanError, "collective", "missing"):
            chorale.Plan.from_json('{"name": "x", "gpus": 3}')
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            file.write(b"no plan")
            file.flush()
            with self.refused(chorale.PlanError, file.name):
                chorale.Plan.load(file.name)
        with self.refused(ValueError, "allreduce_rong", "allreduce_ring"):
            chorale.Plan.make("allreduce_rong", 2)
        with self.refused(ValueError, "'mine.cpp' is a source", "chorale compile mine.cpp --set ranks=2 -o plan.json",
                          "Plan.load('plan.json')"):
            chorale.Plan.make("mine.cpp", 2)
        with self.refused(ValueError, "'plan.json' is a plan file", "Plan.load('plan.json')"):
            chorale.Plan.make("plan.json", 2)
        with self.refused(ValueError, "instancez"):
            chorale.Plan.make("allreduce_ring", 2, instancez=3)
        with self.refused(ValueError, "there is no rank 2", "0 to 1"):
            self.plan.operations(2)
        with self.refused(ValueError, "there is no rank 7"):
            self.plan.show(rank=7)
        with self.refused(ValueError, "'gpu'", "chorale, mscclpp"):
            self.plan.check(target="gpu")
        with self.refused(ValueError, "nonsense"):
            self.plan.check(allow=["nonsense"])
        with self.refused(FileNotFoundError, "my_machine", "nvidia_h200"):
            self.plan.simulate(1024, machine="my_machine")
        with self.refused(chorale.UsageError, "'rin:4'", "did you mean 'ring'?"):
            self.plan.simulate(1024, topology="rin:4")
        with self.refused(ValueError, "'float'", "f32"):
            self.plan.simulate(1024, dtype="float")
        with self.refused(ValueError, "'fp4'", "'fp8_e4m3', 'fp8_e5m2', 'int8'"):
            Chunk(0, BufferType.scratch, 0, 1).encoded("fp4")
        with self.refused(ValueError, "'ll9'", "ll8, ll16, ll128"):
            self.plan.simulate(1024, packet="ll9")
        with self.refused(chorale.UsageError, "1"):
            self.plan.simulate(1)
        with self.refused(TypeError, "not the text '1M'"):
            self.plan.simulate("1M")

    def test_runs(self):
        right = [numpy.ones(4, numpy.float32)] * 2
        with self.refused(chorale.UsageError, "1 inputs", "2 ranks"):
            self.plan.run(right[:1])
        with self.refused(chorale.UsageError, "1 outputs"):
            self.plan.run(right, right[:1])
        with self.refused(TypeError, "complex64", "float32"):
            self.plan.run([numpy.ones(4, numpy.complex64)] * 2)
        with self.refused(chorale.UsageError, "int32", "float32", "rank 1"):
            self.plan.run([right[0], numpy.ones(4, numpy.int32)])
        with self.refused(ValueError, "inputs differ: rank 1 has 12 bytes, rank 0 has 16"):
            self.plan.run([right[0], numpy.ones(3, numpy.float32)])
        with self.refused(ValueError, "contiguous", "ascontiguousarray"):
            self.plan.run([numpy.ones(8, numpy.float32)[::2]] * 2)
        fixed = [numpy.ones(4, numpy.float32) for _ in range(2)]
        fixed[1].flags.writeable = False
        with self.refused(ValueError, "rank 1", "read-only"):
            self.plan.run(right, fixed)
        with self.refused(ValueError, "'plus'", "sum, min, max, prod, avg"):
            self.plan.run(right, op="plus")
        with self.refused(TypeError, "allow", "['races']"):
            self.plan.run(right, allow="races")
        with self.refused(chorale.UsageError, "keyword", "CHORALE_TIMEOT", "CHORALE_TIMEOUT"):
            self.plan.run(right, timeot="3s")

    def test_a_run_that_waits_in_vain(self):
        with CollectiveProgram("stuck", TestCollective(1, 1, 1), 1) as program:
            Rank(0).unpack_packets(Rank(0).get_output_buffer()[0], Buffer(0, 1)[0], tb=0)
        plan = program.compile(allow=["deadlock"])
        data = [numpy.ones(4, numpy.float32)]
        with self.refused(chorale.FindingsError, "never ends"):
            plan.run(data)
        with self.refused(chorale.RunError, "errors_test.py", "unpack_packets"):
            plan.run(data, allow=["deadlock"], timeout="1s")
        try:
            plan.run(data, allow=["deadlock"], timeout="1s")
        except chorale.RunError as error:
            self.assertIn(error.reason, ("timed_out", "deadlock"))

    def test_required_proofs(self):
        with CollectiveProgram("alone", AllGather(1, 1, False), 1) as program:
            Rank(0).copy(Rank(0).get_output_buffer()[0], Rank(0).get_input_buffer()[0], tb=0)

        def run(plan, **settings):
            data = numpy.ones(4, numpy.float32)
            chorale.run_local(1, lambda world: chorale.Executor(world, **settings).execute(plan, data, data.copy()))

        run(program.compile())
        run(program.compile(), require_proof=False)
        run(program.compile(certify=True), require_proof=True)
        run(program.compile().certify(), require_proof=True)
        with self.refused(chorale.UsageError, "'alone' has no certificate", "chorale compile --certify"):
            run(program.compile(), require_proof=True)

    def test_language(self):
        with self.refused(RuntimeError, "no current program", "Rank(program, ...)"):
            Rank(0)
        with self.refused(RuntimeError, "MemoryChannel(program, ...)"):
            MemoryChannel(0, 1)
        with self.refused(RuntimeError, "no current program for JSON()", "program.to_json()"):
            JSON()
        with self.refused(ValueError, "num_ranks=3", "2 ranks"):
            CollectiveProgram("wrong", AllGather(2, 1, True), 3)
        with self.refused(ValueError, "'ll'", "'Simple' and 'LL'"):
            CollectiveProgram("wrong", AllGather(2, 1, True), 2, protocol="ll")
        with self.refused(ValueError, "'nccl'", "chorale, mscclpp"):
            CollectiveProgram("wrong", AllGather(2, 1, True), 2, target="nccl")
        with self.refused(TypeError, "Collective"):
            CollectiveProgram("wrong", "allgather", 2)
        with CollectiveProgram("wrong", AllGather(2, 1, True), 2):
            me = Rank(0)
            chunk = me.get_output_buffer()[0]
            with self.refused(ValueError, "tb=0", "tb_group of 2", "exclude"):
                me.copy(chunk, chunk, tb=0, tb_group=ThreadBlockGroup([0, 1]))
            with self.refused(ValueError, "neither tb nor tb_group"):
                me.copy(chunk, chunk)
            with self.refused(ValueError, "step is 1, not 2"):
                me.get_output_buffer()[0:2:2]
            with self.refused(TypeError, "Chunk"):
                me.copy(chunk, 3, tb=0)
            with self.refused(TypeError, "SyncType"):
                MemoryChannel(1, 0).signal(tb=0, data_sync="both")
            with self.refused(TypeError, "tb"):
                MemoryChannel(1, 0).signal(tb=0.5)
            with self.refused(ValueError, "thread block 5", "2 thread blocks"):
                ThreadBlockGroup([0, 1]).get_internal_id(5)
            loop = LoopIterationContext(2**20, 1)
            with loop, self.refused(RuntimeError, "entered already"):
                loop.__enter__()
        with self.refused(ValueError, "'nccl'"):
            compile_for(target="nccl")

    def said(self, call):
        """Returns the text of the TypeError of a call."""
        with self.assertRaises(TypeError) as caught:
            call()
        text = str(caught.exception)
        self.assertNotIn("incompatible", text)
        self.assertNotIn("\n", text)
        return text

    def test_arguments(self):
        """A call with a missing or wrong argument says which one it is, in one sentence."""
        with CollectiveProgram("wrong", AllGather(2, 1, True), 2) as program:
            me, memory, port = Rank(0), MemoryChannel(1, 0), PortChannel(1, 0)
            semaphore, joined = Semaphore(0, 1), SwitchChannel([0, 1], BufferType.input)
            chunk, buffer = me.get_output_buffer()[0], me.get_output_buffer()
            tb = "lacks the argument tb, the number of a thread block, such as tb=0"
            for call, words in (
                    (lambda: memory.signal(), f"MemoryChannel.signal() {tb}; the call is MemoryChannel.signal(tb, "
                                              "data_sync=SyncType.both, relaxed=False)"),
                    (lambda: memory.wait(relaxed=True), f"MemoryChannel.wait() {tb}"),
                    (lambda: port.signal(), f"PortChannel.signal() {tb}"),
                    (lambda: port.wait(), f"PortChannel.wait() {tb}"),
                    (lambda: port.flush(), f"PortChannel.flush() {tb}"),
                    (lambda: port.put(chunk, chunk), f"PortChannel.put() {tb}"),
                    (lambda: port.put_with_signal(chunk, chunk), f"PortChannel.put_with_signal() {tb}"),
                    (lambda: semaphore.acquire(), f"Semaphore.acquire() {tb}"),
                    (lambda: semaphore.release(), f"Semaphore.release() {tb}"),
                    (lambda: joined.reduce(0, 0, 1, chunk), f"SwitchChannel.reduce() {tb}"),
                    (lambda: joined.at_rank(0).broadcast(chunk, 0, 1), f"SwitchChannelRankView.broadcast() {tb}"),
                    (lambda: joined.at_rank(), "SwitchChannel.at_rank() lacks the argument rank;"),
                    (lambda: me.copy(), "Rank.copy() lacks the arguments dst_chunk and src_chunk;"),
                    (lambda: me.copy(chunk, tb=0), "Rank.copy() lacks the argument src_chunk;"),
                    (lambda: me.copy(buffer, chunk, tb=0), "takes dst_chunk of type Chunk, not an object of type BaseBuffer; "
                                                           "name chunks of the buffer, such as dst_chunk=buffer[0]"),
                    (lambda: me.copy(chunk, chunk, block=0), "Rank.copy() has no argument block;"),
                    (lambda: me.copy(chunk, chunk, 0, None, 1), "takes at most 4 arguments, not 5"),
                    (lambda: me.copy(chunk, chunk, dst_chunk=chunk), "is given dst_chunk twice"),
                    (lambda: me.reduce(chunk, chunk, tb=0), "takes other_chunks of type List[Chunk]"),
                    (lambda: me.barrier(), "Rank.barrier() lacks the argument tb_list"),
                    (lambda: me.barrier(0), "takes tb_list of type List[int], not int 0"),
                    (lambda: memory.signal(tb=0.5), "takes tb of type int, not float 0.5"),
                    (lambda: memory.signal(tb=2**80), "takes tb as an integer of its range, not 1208925819614629174706176"),
                    (lambda: Rank(), "Rank() lacks the argument rank; the call is Rank(rank)"),
                    (lambda: Rank(program), "Rank() lacks the argument rank; the call is Rank(program, rank)"),
                    (lambda: Rank("0"), "Rank() takes rank of type int, not str '0'"),
                    (lambda: MemoryChannel(1), "MemoryChannel() lacks the argument src_rank;"),
                    (lambda: PortChannel(1), "PortChannel() lacks the argument src_rank;"),
                    (lambda: SwitchChannel([0, 1]), "SwitchChannel() lacks the argument buffer_type;"),
                    (lambda: Semaphore(0), "Semaphore() lacks the argument initial_value, "),
                    (lambda: Buffer(0), "Buffer() lacks the argument size;"),
                    (lambda: Chunk(0), "Chunk() lacks the arguments buffer, index and size;"),
                    (lambda: ThreadBlockGroup(), "ThreadBlockGroup() lacks the argument tb_list"),
                    (lambda: LoopIterationContext(1), "LoopIterationContext() lacks the argument num_chunks"),
                    (lambda: AllGather(), "AllGather() lacks the argument"),
                    (lambda: buffer["0"], "named by integers, such as buffer[0] or buffer[0:2], not '0'"),
                    (lambda: buffer[0:1.5], "named by integers, such as buffer[0] or buffer[0:2], not 1.5"),
                    (lambda: CollectiveProgram("x"), "CollectiveProgram() lacks the argument collective;"),
                    (lambda: chorale.Plan.make(), "make() lacks the argument"),
                    (lambda: self.plan.operations(), "Plan.operations() lacks the argument rank;")):
                with self.subTest(words):
                    self.assertIn(words, self.said(call))
            self.assertEqual(program.check(allow=["values"]), [])

    def test_arrays(self):
        def body(world):
            executor = chorale.Executor(world)
            right = numpy.ones(4, numpy.float32)
            with self.refused(TypeError, "input is of type list", "NumPy"):
                executor.execute(self.plan, [1, 2], right)
            with self.refused(ValueError, "float32", "int32", "one type"):
                executor.execute(self.plan, right, right.astype(numpy.int32))
            with self.refused(ValueError, "16 bytes", "have 16 and 8; pass arrays of 16 and 16 bytes"):
                executor.execute(self.plan, right, right[:2])
            longer = numpy.ones(8, numpy.float32)
            for call in executor.execute, executor.prepare:
                with self.refused(ValueError, "have 16 and 32; pass arrays of 16 and 16 bytes, or bytes=16 to use only"):
                    call(self.plan, right, longer)
                with self.refused(ValueError, "have 32 and 16; pass arrays of 32 and 32 bytes"):
                    call(self.plan, longer, right)
                with self.refused(ValueError, "has an input of 8 bytes and an output of 16, but these have 16 and 16"):
                    call(chorale.Plan.make("allgather_ring", 2), right, right.copy())
                with self.refused(ValueError, "have 16 and 32; pass arrays of 32 and 32 bytes"):
                    call(self.plan, right, longer, bytes=32)
            executor.execute(self.plan, longer, longer, bytes=16)
            self.assertEqual(longer.tolist(), [2] * 4 + [1] * 4)
            with self.refused(ValueError, "complex64", "bfloat16"):
                executor.execute(self.plan, right.astype(numpy.complex64), right)
            with self.refused(ValueError, "6 bytes", "f32"):
                executor.execute(self.plan, numpy.ones(3, numpy.uint16), right, dtype="f32")

            class Gpu:
                __cuda_array_interface__ = {"shape": (4,), "typestr": "<f4", "data": (4096, False), "version": 3}
                dtype = numpy.dtype(numpy.float32)
            with self.refused(ValueError, "input is memory of a GPU", "runs on the CPU"):
                executor.execute(self.plan, Gpu(), right)
            exchange = chorale.Exchange(world)
            with self.refused(chorale.UsageError, "5"):
                exchange.send(right, peer=5)
            with self.refused(chorale.UsageError, "cuda"):
                chorale.Executor(world, backend="cudaa")
            world.barrier()
        chorale.run_local(2, body)

    def test_worlds(self):
        with self.refused(chorale.UsageError, "0"):
            chorale.World.local(0)
        with self.refused(chorale.UsageError, "ftp"):
            chorale.World.join("ftp://x", 0, 1)
        with self.refused(ValueError, "no seed", "Plan.run"):
            chorale.run_local(1, lambda world: None, seed=3)
        kept = []
        chorale.run_local(1, kept.append)
        with self.refused(RuntimeError, "ended", "inside the body"):
            kept[0].barrier()
        with self.refused(KeyError, "mine"):
            def fails(world):
                if world.rank == 1:
                    raise KeyError("mine")
                world.barrier()
            chorale.run_local(2, fails)
        with self.refused(chorale.RunError, "enough") as _:
            def aborts(world):
                world.abort("enough")
                world.barrier()
            chorale.run_local(2, aborts)

    def test_torch(self):
        command = [sys.executable, "-c", "import chorale.torch"]
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "TORCH_CHORALE_PREFIX": folder}
            done = subprocess.run(command, text=True, capture_output=True, env=environment)
            self.assertIn(f"no installation of them in TORCH_CHORALE_PREFIX={folder}", done.stderr)
            self.assertIn("cmake --install BUILD", done.stderr)
            # With an installation, this is chorale_torch.
            place = pathlib.Path(folder) / "share" / "chorale" / "torch"
            place.mkdir(parents=True)
            names = "chosen", "empty", "extension", "load", "make", "prefix", "run", "use"
            (place / "chorale_torch.py").write_text("".join(f"def {name}():\n    return {name!r}\n" for name in names))
            use = [sys.executable, "-c", "import chorale.torch as t; print(t.run(), t.prefix())"]
            self.assertEqual(subprocess.check_output(use, text=True, env=environment), "run prefix\n")

    def test_install(self):
        self.assertNotIn("mscclpp", sys.modules)
        with self.refused(ValueError, "'nccl'"):
            chorale.mscclpp.install(target="nccl")
        chorale.mscclpp.install()
        try:
            from mscclpp.language.channel import MemoryChannel as theirs
            from mscclpp.language.internal.types import BufferType as kinds  # noqa: F401
            from mscclpp.language import AlgoSpec as spec  # noqa: F401
            import mscclpp
            self.assertIs(theirs, MemoryChannel)
            self.assertIs(mscclpp.language, chorale.language)
        finally:
            for name in [name for name in sys.modules if name.split(".")[0] == "mscclpp"]:
                del sys.modules[name]


if __name__ == "__main__":
    unittest.main()
