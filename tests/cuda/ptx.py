#!/usr/bin/env python3
"""Compiles device_headers.cu to PTX and checks that the ordering comes out as it is written.

    ptx.py NVCC REPOSITORY [ARCH]

Exit status 0 and one line per check if all hold, 1 otherwise. ARCH is sm_90 unless given."""

import os
import re
import subprocess
import sys
import tempfile


def compile_ptx(nvcc, root, arch):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "device_headers.ptx")
        subprocess.run(
            [nvcc, "-std=c++17", "-arch=" + arch, "-ptx", "-Werror", "all-warnings", "-o", out,
             "-I" + os.path.join(root, "compiler/include"), "-I" + os.path.join(root, "executor/include"),
             os.path.join(root, "tests/cuda/device_headers.cu")],
            check=True)
        with open(out) as file:
            return file.read()


def kernels(ptx):
    """Name -> text of each kernel."""
    parts = re.split(r"^\.visible \.entry ", ptx, flags=re.M)[1:]
    return {re.match(r"\w+", part).group(): part for part in parts}


def count(text, pattern):
    return len(re.findall(pattern, text))


def checks(ptx):
    """Yields (what must hold, whether it does)."""
    of = kernels(ptx)
    waits, post, wait = of["posts_and_waits"], of["one_post"], of["one_wait"]

    yield "no load through the read-only cache: peers write what we read", not re.search(
        r"\bld\.global(\.\w+)*\.nc\b|\bldu\.", ptx)
    yield "no volatile access", not re.search(r"\b(ld|st)\.volatile", ptx)
    yield "every atomic operation is system-wide", not re.search(r"(?<![.\w])(atom|red)\.(?!\w+\.\w+\.sys\.)", ptx)
    yield "every ordered access is system-wide", not re.search(
        r"\b(ld|st)\.(relaxed|acquire|release)\.(?!sys\.)", ptx)
    yield "a post is one release store", (
        count(post, r"\bst\.release\.sys\.global\.u64\b") == 1 and count(post, r"\b(st|atom|red|fence)\.") == 1)
    yield "a post follows the block's barrier", 0 <= post.find("bar.sync") < post.find("st.release.sys")
    first_acquire = wait.find("ld.acquire.sys.global.u64")
    yield "a wait polls with acquire", first_acquire >= 0 and not re.search(r"ld\.relaxed\.sys\.global\.u64", wait)
    yield "a wait ends with the block's barrier", wait.rfind("bar.red.and.pred") > first_acquire
    yield "a verdict is stored after the barrier", wait.rfind("st.global") > wait.find("bar.red.and.pred")
    yield "a semaphore is taken by an acquiring compare-and-swap", count(waits, r"atom\.cas\.acquire\.sys\.global\.b64") == 1
    yield "additions release", "atom.add.release.sys.global.u64" in waits
    yield "relaxed posts are relaxed", (
        "st.relaxed.sys.global.u64" in waits and "atom.add.relaxed.sys.global.u64" in waits)
    yield "the fence is system-wide", "fence.acq_rel.sys" in of["groups"] and not re.search(r"\bmembar\.", ptx)

    ll16, ll8, receive = of["send_ll16"], of["send_ll8"], of["receive_ll16"]
    stores = r"\bst\.(?!param|local)[\w.]+"
    yield "an LL16 packet is one vector store", set(re.findall(stores, ll16)) == {"st.relaxed.sys.global.v2.b64"}
    yield "an LL8 packet is one store", set(re.findall(stores, ll8)) == {"st.relaxed.sys.global.u64"}
    yield "an LL16 packet is one vector load", count(receive, r"ld\.relaxed\.sys\.global\.v2\.b64") > 0
    yield "packets need no fence", not re.search(r"\b(fence|membar)\.|\.release\.", ll16 + ll8)
    copies = of["copy"]
    yield "a copy holds four 16-byte loads before it stores", re.search(
        r"(ld(\.global)?\.v4\.[ub]32[^;]*;(?:(?!\bst[. ])[\s\S])*?){4}st(\.global)?\.v4\.[ub]32", copies) is not None
    yield "nothing is kept in local memory", "__local_depot" not in "".join(
        of[name] for name in ("copy", "send_ll16", "send_ll8", "receive_ll16", "one_post", "one_wait"))


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    ptx = compile_ptx(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) == 4 else "sm_90")
    failed = False
    for name, holds in checks(ptx):
        print("ok    " if holds else "FAILED", name)
        failed |= not holds
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
