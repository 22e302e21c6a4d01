#!/usr/bin/env python3
"""Loads Chorale by ctypes alone, as an engine does: ranks.py LIBRARY

Four processes connect over TCP, make and prove a plan, and run an all-reduce. Then rank 2 is lost, and the others
must receive an error. Other processes make wrong calls, and load two copies of Chorale.
"""
import ctypes
import multiprocessing
import os
import shutil
import signal
import socket
import sys
import tempfile
from ctypes import byref, c_char_p, c_float, c_int32, c_uint64, c_void_p

RANKS, COUNT, LOST = 4, 3001, 2
F32, CPU, CURRENT_DEVICE = 1, 1, -1
INVALID_ARGUMENT, INVALID_HANDLE, INVALID_PLAN, UNREADABLE_FILE, PEER_LOST = 1, 2, 4, 5, 19


class Arguments(ctypes.Structure):
    _fields_ = [("struct_bytes", c_uint64), ("input", c_void_p), ("output", c_void_p), ("bytes", c_uint64),
                ("dtype", c_int32), ("op", c_int32), ("packet", c_int32), ("reserved", c_int32)]


class Chorale:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.chorale_last_error.restype = c_char_p

    def status(self, name, *arguments):
        return getattr(self.library, "chorale_" + name)(*arguments)

    def error(self):
        return self.library.chorale_last_error().decode()

    def ok(self, name, *arguments):
        status = self.status(name, *arguments)
        assert status == 0, f"{name} is {status}: {self.error()}"

    def made(self, name, *arguments):
        """Returns the handle that a call makes."""
        handle = c_void_p()
        self.ok(name, *arguments, byref(handle))
        assert handle.value
        return handle

    def fails(self, wanted, words, name, *arguments):
        status = self.status(name, *arguments)
        assert status == wanted and words in self.error(), f"{name} is {status}: {self.error()}, and not {wanted}: {words}"


def arguments(x, y):
    return Arguments(ctypes.sizeof(Arguments), ctypes.addressof(x), ctypes.addressof(y), ctypes.sizeof(x), F32)


def run_rank(library, address, rank):
    chorale = Chorale(library)
    config = chorale.made("config_load")
    chorale.ok("config_set", config, b"CHORALE_TIMEOUT", b"60s")
    world = chorale.made("world_join", address, rank, RANKS, config)
    plan = chorale.made("plan_make", b"allreduce_all_pairs", RANKS, None, c_uint64(0))
    findings = c_void_p()
    chorale.ok("plan_prove", plan, byref(findings))
    assert not findings.value
    executor = chorale.made("executor_create", world, config, CPU, CURRENT_DEVICE)
    x, y = (c_float * COUNT)(*(rank + at % 5 for at in range(COUNT))), (c_float * COUNT)()
    sums = [6.0 + RANKS * (at % 5) for at in range(COUNT)]
    chorale.ok("executor_execute", executor, plan, byref(arguments(x, y)), None)
    assert list(y) == sums, "out of place"
    chorale.ok("executor_execute", executor, plan, byref(arguments(x, x)), None)
    assert list(x) == sums, "in place"
    chorale.ok("world_barrier", world)
    if rank == LOST:
        os.kill(os.getpid(), signal.SIGKILL)
    chorale.fails(PEER_LOST, f"rank {LOST}", "executor_execute", executor, plan, byref(arguments(x, y)), None)
    chorale.fails(PEER_LOST, f"rank {LOST}", "world_barrier", world)
    for name, handle in ("world", world), ("executor", executor), ("plan", plan), ("config", config):
        chorale.ok(name + "_close", handle)


def call_wrongly(library):
    chorale, handle = Chorale(library), c_void_p()
    chorale.fails(INVALID_ARGUMENT, "'x://y' is no address", "world_join", b"x://y", 0, 2, None, byref(handle))
    chorale.fails(INVALID_ARGUMENT, "rank -1 of 2 ranks", "world_join", b"tcp://localhost:1", -1, 2, None, byref(handle))
    chorale.fails(INVALID_ARGUMENT, "'plan' is null", "plan_load", b"plan.json", None)
    chorale.fails(UNREADABLE_FILE, "/no/plan.json", "plan_load", b"/no/plan.json", byref(handle))
    chorale.fails(INVALID_PLAN, 'the key "name" is missing', "plan_read", b"{}", c_uint64(2), byref(handle))
    # A message is valid UTF-8, whatever bytes it reports. These bytes are not: overlong forms, surrogate halves and
    # numbers that are too large.
    no_text = b"\xff\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80" + "/\u00e9\u20ac\U0001f600".encode() + b"\xe2\x82"
    chorale.fails(UNREADABLE_FILE, "?" * 10 + "/\u00e9\u20ac\U0001f600??:", "plan_load", no_text, byref(handle))
    chorale.fails(INVALID_HANDLE, "of a plan is null", "plan_prove", None, None)
    plan = chorale.made("plan_make", b"allreduce_all_pairs", 2, None, c_uint64(0))
    chorale.fails(INVALID_HANDLE, "is of a plan, but one of an executor", "executor_check", plan)
    text = c_void_p()
    chorale.ok("plan_json", plan, byref(text))
    wrong = ctypes.string_at(text).replace(b'"signal"', b'"wait"', 1)
    chorale.library.chorale_text_free(text)
    plan_without_signal, findings = chorale.made("plan_read", wrong, c_uint64(len(wrong))), c_void_p()
    chorale.fails(INVALID_PLAN, "1 signal meets 2 waits", "plan_prove", plan_without_signal, byref(findings))
    assert b"allreduce_all_pairs.cpp:" in ctypes.string_at(findings)
    chorale.library.chorale_text_free(findings)
    for one in plan, plan_without_signal:
        chorale.ok("plan_close", one)
    chorale.fails(INVALID_HANDLE, "has been closed", "plan_close", plan)


def load_twice(library):
    """Loads Chorale twice in a process: as this library, and as an extension of a framework that was built with it."""
    with tempfile.TemporaryDirectory() as folder:
        other = shutil.copy(library, folder + "/libother.so")
        for chorale in Chorale(library), Chorale(other):
            world = c_void_p()
            chorale.ok("world_local", 1, None, byref(world))
            chorale.ok("world_close", world)


def main():
    library = sys.argv[1]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}".encode()
    processes = [multiprocessing.Process(target=run_rank, args=(library, address, rank)) for rank in range(RANKS)]
    processes += [multiprocessing.Process(target=target, args=(library,)) for target in (call_wrongly, load_twice)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=120)
    codes = [process.exitcode for process in processes]
    wanted = [-signal.SIGKILL if at == LOST else 0 for at in range(len(processes))]
    assert codes == wanted, f"the processes ended with {codes}, and not {wanted}"
    print(f"{RANKS} processes by ctypes, wrong calls, two copies in a process")


if __name__ == "__main__":
    main()
