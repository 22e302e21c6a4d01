#!/usr/bin/env python3
"""Tests what CHORALE_NCCL_FALLBACK and the variables of the log do: fallback.py CLIENT LIBRARY FAKE OLD_FAKE OTHER_LIBRARY

CLIENT is nccl_client. The fakes play the real NCCL, and the old one lacks functions. OTHER_LIBRARY is not NCCL's.
"""
import os
import pathlib
import re
import shutil
import socket
import sys
import tempfile

import table

CLIENT, LIBRARY, FAKE, OLD, OTHER = map(pathlib.Path, sys.argv[1:6])
HOST = socket.gethostname().split(".")[0]


def environment(fallback, **more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CHORALE_", "NCCL_"))}
    return {**kept, **more, **({"CHORALE_NCCL_FALLBACK": str(fallback)} if fallback else {})}


def call(name, fallback, **variables):
    """Returns what the client prints when it calls a function."""
    return table.run([CLIENT, "call", name], env=environment(fallback, **variables))


def check(name, fallback, result, pattern):
    said = call(name, fallback)
    if not re.fullmatch(rf"result {result}\nlast error {pattern}\n", said):
        table.fail(f"{name} with the fallback {fallback}:\n{said}")


def check_calls():
    said = table.run([CLIENT, "every", FAKE], env=environment(FAKE))
    forwarded = sum(map(table.goes_to_fallback, table.functions()))
    if f"{forwarded} functions went to the fallback" not in said:
        table.fail(said)
    print(said.strip())


def check_refusals(folder):
    refused = "ncclParamBind: the call is refused, because Chorale's libnccl.so.2 has none of NCCL's parameters. "
    cannot = refused + r"CHORALE_NCCL_FALLBACK={} cannot be used: {}. Set it to the file of the real NCCL"
    escaped = re.escape
    missing = folder / "none.so"
    check("ncclParamBind", missing, 5, cannot.format(escaped(str(missing)), f".*{escaped(str(missing))}.*No such file.*"))
    check("ncclParamBind", OTHER, 5, cannot.format(escaped(str(OTHER)), "it has no ncclGetVersion .*, so it is not NCCL's library"))
    check("ncclParamBind", "libnccl.so.2", 5, cannot.format("libnccl.so.2", "it is not a path: .*"))
    itself = "it is Chorale's own library and not NVIDIA's"
    check("ncclParamBind", LIBRARY, 5, cannot.format(escaped(str(LIBRARY)), itself))
    copy = folder / "libnccl.so.2"
    shutil.copy(LIBRARY, copy)
    check("ncclParamBind", copy, 5, cannot.format(escaped(str(copy)), itself))
    check("ncclParamBind", OLD, 5, refused + rf"CHORALE_NCCL_FALLBACK={escaped(str(OLD))} is NCCL 2.23.4 and has no ncclParamBind. "
          "Set it to the file of a later NCCL")
    place = [row.name for row in table.functions()].index("ncclParamGetI8")
    check("ncclParamGetI8", OLD, 100 + place, "text of the fake")


def check_log(folder):
    line = rf"{re.escape(HOST)}:\d+:\d+ \[0\] NCCL "
    version, refused = r"NCCL version 2\.28\.9\+chorale\S+\n", r"ncclParamBind: the call is refused, .*"
    end = rf"result 5\nlast error {refused}\n"

    def expect(pattern, fallback=None, **variables):
        said = call("ncclParamBind", fallback, **variables)
        if not re.fullmatch(pattern, said):
            table.fail(f"the log with {variables} is\n{said}\nand not\n{pattern}")

    expect(end)
    expect(version + end, NCCL_DEBUG="version")
    expect(version + rf"\n{line}WARN {refused}\n" + end, NCCL_DEBUG="WARN")
    expect(version + rf"{line}INFO CHORALE_NCCL_FALLBACK={re.escape(str(FAKE))} is NCCL 2\.23\.4, and gets .*\n"
           rf"{line}INFO NCCL_IB_HCA has no effect on Chorale: communicators have one host\n"
           rf"{line}INFO NCCL_PROTO has no effect on Chorale; CHORALE_PACKET is the setting for it\n"
           rf"{line}INFO without effect on Chorale: NCCL_ALGORITHM, NCCL_OTHER\n"
           rf"result 1\d\d\nlast error text of the fake\n"
           rf"{line}INFO calls served by Chorale: ncclGetLastError 1\n{line}INFO calls given to the fallback: ncclParamBind 1\n",
           FAKE, NCCL_DEBUG="INFO", NCCL_IB_HCA="mlx5", NCCL_PROTO="LL", NCCL_OTHER="1", NCCL_ALGORITHM="Ring",
           NCCL_COMM_BLOCKING="1")
    expect(version + rf"\n{line}WARN {refused}\n" + end, NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="NET", NCCL_IB_HCA="mlx5")
    expect(end, NCCL_DEBUG="TRACE", NCCL_DEBUG_FILE=str(folder / "log.%h.%p.%%.%x"))
    files = list(folder.glob("log.*"))
    if len(files) != 1 or not re.fullmatch(rf"log\.{re.escape(HOST)}\.\d+\.%\.%x", files[0].name):
        table.fail(f"the files of the log are {files}")
    if not re.search(rf"^{line.removesuffix('NCCL ')}\d+\.\d+ NCCL TRACE ncclParamBind: refused$", files[0].read_text(), re.M):
        table.fail(files[0].read_text())


def main():
    with tempfile.TemporaryDirectory() as name:
        check_calls()
        check_refusals(pathlib.Path(name))
        check_log(pathlib.Path(name))


main()
