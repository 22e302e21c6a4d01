#!/usr/bin/env python3
"""Calls libnccl.so.2 as vLLM's wrapper does, by ctypes and the path of the library: ctypes_client.py LIBRARY cpu|cuda[=RUNTIME]

Two processes run the collectives of the wrapper and compare the results. With `cuda` the buffers and the stream are of the CUDA
that RUNTIME contains, such as libcudart.so.13 on a machine with two GPUs. Without RUNTIME the library itself contains a CUDA.
"""
import ctypes
import os
import subprocess
import sys


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_byte * 128)]


INT, SIZE, POINTER = ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p
OUT = ctypes.POINTER(ctypes.c_void_p)

# Functions of the wrapper: name, type of the result, types of the arguments.
FUNCTIONS = [
    ("ncclGetErrorString", ctypes.c_char_p, [INT]),
    ("ncclGetLastError", ctypes.c_char_p, [POINTER]),
    ("ncclGetVersion", INT, [ctypes.POINTER(INT)]),
    ("ncclGetUniqueId", INT, [ctypes.POINTER(UniqueId)]),
    ("ncclCommInitRank", INT, [OUT, INT, UniqueId, INT]),
    ("ncclAllReduce", INT, [POINTER, POINTER, SIZE, INT, INT, POINTER, POINTER]),
    ("ncclReduce", INT, [POINTER, POINTER, SIZE, INT, INT, INT, POINTER, POINTER]),
    ("ncclAllGather", INT, [POINTER, POINTER, SIZE, INT, POINTER, POINTER]),
    ("ncclReduceScatter", INT, [POINTER, POINTER, SIZE, INT, INT, POINTER, POINTER]),
    ("ncclSend", INT, [POINTER, SIZE, INT, INT, POINTER, POINTER]),
    ("ncclRecv", INT, [POINTER, SIZE, INT, INT, POINTER, POINTER]),
    ("ncclBroadcast", INT, [POINTER, POINTER, SIZE, INT, INT, POINTER, POINTER]),
    ("ncclCommDestroy", INT, [POINTER]),
    ("ncclGroupStart", INT, []),
    ("ncclGroupEnd", INT, []),
    ("ncclCommWindowRegister", INT, [POINTER, POINTER, SIZE, OUT, INT]),
    ("ncclCommWindowDeregister", INT, [POINTER, POINTER]),
]
CUDA_FUNCTIONS = [
    ("cudaSetDevice", INT, [INT]),
    ("cudaMalloc", INT, [OUT, SIZE]),
    ("cudaFree", INT, [POINTER]),
    ("cudaMemcpyAsync", INT, [POINTER, POINTER, SIZE, INT, POINTER]),
    ("cudaStreamCreateWithFlags", INT, [OUT, ctypes.c_uint]),
    ("cudaStreamSynchronize", INT, [POINTER]),
    ("cudaStreamDestroy", INT, [POINTER]),
]
FLOAT, SUM = 7, 0
SYMMETRIC = 1


class Library:
    def __init__(self, path, functions):
        library = ctypes.CDLL(path)
        for name, result, arguments in functions:
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)


class Nccl(Library):
    def __init__(self, path):
        super().__init__(path, FUNCTIONS)

    def check(self, result):
        if result != 0:
            text, sentence = self.ncclGetErrorString(result).decode(), self.ncclGetLastError(None).decode()
            raise RuntimeError(f"NCCL error: {text}: {sentence}")


class Cpu:
    """Has buffers in memory of the host, and no stream."""
    stream = None

    def allocate(self, count):
        return (ctypes.c_float * count)()

    def address(self, buffer):
        return ctypes.addressof(buffer)

    def write(self, buffer, values):
        buffer[:len(values)] = values

    def read(self, buffer, count):
        return buffer[:count]

    def end(self):
        pass


class Gpu:
    """Has buffers in memory of a GPU, and a stream that all work is on."""

    def __init__(self, path, number):
        self.cuda = Library(path, CUDA_FUNCTIONS)
        self.check(self.cuda.cudaSetDevice(number))
        self.stream, self.buffers = POINTER(), []
        non_blocking = 1
        self.check(self.cuda.cudaStreamCreateWithFlags(ctypes.byref(self.stream), non_blocking))

    def check(self, result):
        if result != 0:
            raise RuntimeError(f"CUDA error: {result}")

    def allocate(self, count):
        made = POINTER()
        self.check(self.cuda.cudaMalloc(ctypes.byref(made), count * 4))
        self.buffers.append(made)
        return made

    def address(self, buffer):
        return buffer.value

    def write(self, buffer, values):
        from_host, to_device = (ctypes.c_float * len(values))(*values), 1
        self.check(self.cuda.cudaMemcpyAsync(buffer, from_host, len(values) * 4, to_device, self.stream))
        self.check(self.cuda.cudaStreamSynchronize(self.stream))

    def read(self, buffer, count):
        values, to_host = (ctypes.c_float * count)(), 2
        self.check(self.cuda.cudaMemcpyAsync(values, buffer, count * 4, to_host, self.stream))
        self.check(self.cuda.cudaStreamSynchronize(self.stream))
        return values[:]

    def end(self):
        for buffer in self.buffers:
            self.check(self.cuda.cudaFree(buffer))
        self.check(self.cuda.cudaStreamDestroy(self.stream))


class Rank:
    """Calls the library as one rank of a communicator, with floats."""

    def __init__(self, nccl, device, rank, ranks, id):
        self.nccl, self.device, self.rank, self.ranks = nccl, device, rank, ranks
        self.comm = POINTER()
        nccl.check(nccl.ncclCommInitRank(ctypes.byref(self.comm), ranks, id, rank))

    def values(self, rank, count, turn):
        return [float((rank + 1) * (at % 100) + turn) for at in range(count)]

    def call(self, name, *arguments):
        self.nccl.check(getattr(self.nccl, name)(*arguments, self.comm, self.device.stream))

    def expect(self, what, buffer, expected):
        found = self.device.read(buffer, len(expected))
        if found != expected:
            at = next(at for at in range(len(expected)) if found[at] != expected[at])
            raise RuntimeError(f"rank {self.rank}: {what} of {len(expected)}: element {at} is {found[at]}, not {expected[at]}")

    def run_collectives(self, count, turn):
        device, ranks, rank, nccl = self.device, self.ranks, self.rank, self.nccl
        whole, after, before = ranks * count, (rank + 1) % ranks, (rank + ranks - 1) % ranks
        send, recv = self.send, self.recv
        inputs = [self.values(one, whole, turn) for one in range(ranks)]
        sums = [sum(column) for column in zip(*inputs)]

        def begin():
            device.write(send, inputs[rank])
            device.write(recv, [-1.0] * whole)

        begin()
        self.call("ncclAllReduce", send, recv, whole, FLOAT, SUM)
        self.expect("all-reduce", recv, sums)
        self.call("ncclAllReduce", send, send, whole, FLOAT, SUM)
        self.expect("all-reduce in place", send, sums)
        begin()
        self.call("ncclReduce", send, recv, whole, FLOAT, SUM, ranks - 1)
        if rank == ranks - 1:
            self.expect("reduce", recv, sums)
        begin()
        self.call("ncclReduceScatter", send, recv, count, FLOAT, SUM)
        self.expect("reduce-scatter", recv, sums[rank * count:(rank + 1) * count])
        begin()
        self.call("ncclAllGather", send, recv, count, FLOAT)
        self.expect("all-gather", recv, [value for one in range(ranks) for value in inputs[one][:count]])
        begin()
        self.call("ncclBroadcast", send, recv, whole, FLOAT, ranks - 1)
        self.expect("broadcast", recv, inputs[ranks - 1])
        # vLLM gathers parts of different sizes by a group of broadcasts.
        begin()
        nccl.check(nccl.ncclGroupStart())
        for root in range(ranks):
            to = device.address(recv) + root * count * 4
            self.call("ncclBroadcast", send, to, count, FLOAT, root)
        nccl.check(nccl.ncclGroupEnd())
        self.expect("group of broadcasts", recv, [value for one in range(ranks) for value in inputs[one][:count]])
        begin()
        nccl.check(nccl.ncclGroupStart())
        self.call("ncclSend", send, whole, FLOAT, after)
        self.call("ncclRecv", recv, whole, FLOAT, before)
        nccl.check(nccl.ncclGroupEnd())
        self.expect("message", recv, inputs[before])
        # Only one of two ranks sends, so neither call is in a group.
        begin()
        if rank == 0:
            self.call("ncclSend", send, whole, FLOAT, 1)
        elif rank == 1:
            self.call("ncclRecv", recv, whole, FLOAT, 0)
            self.expect("message without a group", recv, inputs[0])

    def run(self):
        """Runs everything twice, because the first calls also bind the plans. Returns the text of an error."""
        nccl, device, most = self.nccl, self.device, 50000
        self.send, self.recv = device.allocate(self.ranks * most), device.allocate(self.ranks * most)
        for turn in range(2):
            for count in (1, 1000, most):
                self.run_collectives(count, turn)
        windows = []
        for buffer in (self.send, self.recv):
            windows.append(POINTER())
            nccl.check(nccl.ncclCommWindowRegister(self.comm, buffer, self.ranks * most * 4, ctypes.byref(windows[-1]), SYMMETRIC))
        self.run_collectives(1000, 2)
        for window in windows:
            nccl.check(nccl.ncclCommWindowDeregister(self.comm, window))
        try:
            self.call("ncclAllReduce", self.send, self.send, 1000, 99, SUM)
            said = "no error"
        except RuntimeError as error:
            said = str(error)
        nccl.check(nccl.ncclCommDestroy(self.comm))
        device.end()
        return said


def main():
    path, kind = sys.argv[1:3]
    runtime = kind.partition("=")[2] or path
    rank = 1 if sys.argv[3:] == ["second"] else 0
    if kind != "cpu":
        os.environ.pop("CHORALE_BACKEND", None)  # the GPU is the default
    nccl, ranks = Nccl(path), 2
    device = Gpu(runtime, rank) if kind != "cpu" else Cpu()
    id = UniqueId()
    if rank == 1:
        ctypes.memmove(ctypes.byref(id), sys.stdin.buffer.read(ctypes.sizeof(id)), ctypes.sizeof(id))
        Rank(nccl, device, rank, ranks, id).run()
        return
    version = INT()
    nccl.check(nccl.ncclGetVersion(ctypes.byref(version)))
    text = str(version.value)
    print("version", f"{text[0].lstrip('0')}.{text[1:3].lstrip('0')}.{text[3:].lstrip('0')}", flush=True)
    nccl.check(nccl.ncclCommDestroy(None))
    nccl.check(nccl.ncclGetUniqueId(ctypes.byref(id)))
    second = subprocess.Popen([sys.executable, __file__, path, kind, "second"], stdin=subprocess.PIPE)
    second.stdin.write(bytes(id))
    second.stdin.close()
    said = Rank(nccl, device, rank, ranks, id).run()
    if second.wait() != 0:
        sys.exit("rank 1 failed")
    print("the results are right;", said)
    if "ncclAllReduce: datatype 99 does not exist" not in said:
        sys.exit("the wrong call has no such error")


main()
