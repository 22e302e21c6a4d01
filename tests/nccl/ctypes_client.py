#!/usr/bin/env python3
"""Calls libnccl.so.2 as vLLM's wrapper does, by ctypes and the path of the library: ctypes_client.py LIBRARY"""
import ctypes
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


def main():
    library = Library(sys.argv[1])
    version = ctypes.c_int()
    library.check(library.ncclGetVersion(ctypes.byref(version)))
    text = str(version.value)
    print("version", f"{text[0].lstrip('0')}.{text[1:3].lstrip('0')}.{text[3:].lstrip('0')}")
    library.check(library.ncclGroupStart())
    library.check(library.ncclGroupEnd())
    library.check(library.ncclCommDestroy(None))
    comm = ctypes.c_void_p()
    for call in (lambda: library.ncclGetUniqueId(ctypes.byref(UniqueId())),
                 lambda: library.ncclCommInitRank(ctypes.byref(comm), 2, UniqueId(), 0),
                 lambda: library.ncclAllReduce(None, None, 1, 7, 0, ctypes.c_void_p(1), None)):
        try:
            library.check(call())
        except RuntimeError as error:
            print(error)
        else:
            sys.exit("a call that the library does not serve succeeded")


main()
