#!/usr/bin/env python3
"""Calls libnccl.so.2 as vLLM's wrapper does, by ctypes and the path of the library: ctypes_client.py LIBRARY"""
import ctypes
import os
import sys


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_byte * 128)]


# Functions of the wrapper: name, type of the result, types of the arguments.
FUNCTIONS = [
    ("ncclGetErrorString", ctypes.c_char_p, [ctypes.c_int]),
    ("ncclGetLastError", ctypes.c_char_p, [ctypes.c_void_p]),
    ("ncclGetVersion", ctypes.c_int, [ctypes.POINTER(ctypes.c_int)]),
    ("ncclGetUniqueId", ctypes.c_int, [ctypes.POINTER(UniqueId)]),
    ("ncclCommInitRank", ctypes.c_int, [ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, UniqueId, ctypes.c_int]),
    ("ncclAllReduce", ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_void_p,
                                     ctypes.c_void_p]),
    ("ncclCommDestroy", ctypes.c_int, [ctypes.c_void_p]),
    ("ncclGroupStart", ctypes.c_int, []),
    ("ncclGroupEnd", ctypes.c_int, []),
]


class Library:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        for name, result, arguments in FUNCTIONS:
            function = getattr(self.library, name)
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)

    def check(self, result):
        if result != 0:
            text, sentence = self.ncclGetErrorString(result).decode(), self.ncclGetLastError(None).decode()
            raise RuntimeError(f"NCCL error: {text}: {sentence}")


def run_rank(library, rank, ranks, id):
    """Runs one rank, and returns what it has to say."""
    comm = ctypes.c_void_p()
    library.check(library.ncclCommInitRank(ctypes.byref(comm), ranks, id, rank))
    data = (ctypes.c_float * 1000)(*[rank + 1.0] * 1000)
    library.check(library.ncclAllReduce(data, data, 1000, 7, 0, comm, None))
    library.check(library.ncclGroupStart())
    library.check(library.ncclAllReduce(data, data, 1000, 7, 0, comm, None))
    library.check(library.ncclGroupEnd())
    try:
        library.check(library.ncclAllReduce(data, data, 1000, 99, 0, comm, None))
    except RuntimeError as error:
        said = str(error)
    library.check(library.ncclCommDestroy(comm))
    return f"sum {sum(data) / 1000}; {said}"


def main():
    library = Library(sys.argv[1])
    version = ctypes.c_int()
    library.check(library.ncclGetVersion(ctypes.byref(version)))
    text = str(version.value)
    print("version", f"{text[0].lstrip('0')}.{text[1:3].lstrip('0')}.{text[3:].lstrip('0')}", flush=True)
    library.check(library.ncclCommDestroy(None))
    id = UniqueId()
    library.check(library.ncclGetUniqueId(ctypes.byref(id)))
    child = os.fork()
    if child == 0:
        run_rank(library, 1, 2, id)
        os._exit(0)
    print(run_rank(library, 0, 2, id))
    sys.exit(0 if os.waitpid(child, 0)[1] == 0 else "rank 1 failed")


main()
