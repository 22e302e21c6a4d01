#!/usr/bin/env python3
"""Compiles device_headers.cu to PTX. Checks that memory orders are those of the source, and that code which moves
data has its loads together and its values in registers.

    ptx.py NVCC REPOSITORY [ARCH]

Exit status 0 and one line per check if all hold, 1 otherwise. ARCH is sm_90 unless given."""

import itertools
import os
import re
import subprocess
import sys
import tempfile

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def run_compiler(command):
    """Runs a compiler and returns its messages. If it fails, this prints them and ends the test."""
    done = subprocess.run(command, capture_output=True, text=True)
    messages = done.stderr + done.stdout
    if done.returncode != 0:
        sys.exit(f"FAILED {' '.join(command)} ended with status {done.returncode}:\n{messages}")
    return messages


def compile_ptx(nvcc, root, arch, source="device_headers.cu", std="c++17", most_registers=()):
    """Returns the PTX, and what the assembler reports for each kernel: name -> (registers, bytes of stack and
    spills)."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "kernels.ptx")
        run_compiler(
            [nvcc, "-std=" + std, "-arch=" + arch, "-ptx", "-Werror", "all-warnings", "-o", out,
             "-I" + os.path.join(root, "compiler/include"), "-I" + os.path.join(root, "executor/include"),
             os.path.join(root, "tests/cuda", source)])
        said = run_compiler(
            [os.path.join(os.path.dirname(os.path.realpath(nvcc)), "ptxas"), "-arch=" + arch, "-v", *most_registers, "-o",
             os.path.join(folder, "kernels.cubin"), out])
        with open(out) as file:
            return file.read(), resources(said)


def resources(said):
    result, name, spills = {}, None, 0
    for line in said.splitlines():
        if entry := re.search(r"Compiling entry function '(\w+)'", line):
            name, spills = entry.group(1), 0
        elif memory := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            spills += sum(map(int, memory.groups()))  # of the kernel, and then of each function that it calls
        elif used := re.search(r"Used (\d+) registers", line):
            result[name] = [int(used.group(1)), 0]
        if name in result:
            result[name][1] = spills
    return result


def kernels(ptx):
    """Maps the name of each kernel to its text."""
    parts = re.split(r"^\.visible \.entry ", ptx, flags=re.M)[1:]
    # The functions that a kernel calls come after it.
    return {re.match(r"\w+", part).group(): re.split(r"^\.(?:weak )?\.?func\b", part, flags=re.M)[0] for part in parts}


def count(text, pattern):
    return len(re.findall(pattern, text))


def checks(ptx, resources):
    """Yields pairs of a property that must hold and whether it does."""
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
    yield "additions release, and wait for no answer", (
        "red.add.release.sys.global.u64" in waits and "atom.add" not in waits)
    yield "relaxed posts are relaxed", (
        "st.relaxed.sys.global.u64" in waits and "red.add.relaxed.sys.global.u64" in waits)
    yield "the fence is system-wide", "fence.acq_rel.sys" in of["groups"] and not re.search(r"\bmembar\.", ptx)

    yield "a sum over a warp orders its memory before and behind the shuffles", re.search(
        r"bar\.warp\.sync(?:(?!bar\.warp)[\s\S])*(?:shfl\.sync[^;]*;(?:(?!bar\.warp)[\s\S])*){5}bar\.warp\.sync",
        of["sum_of_a_warp"]) is not None

    ll16, ll8, receive = of["send_ll16"], of["send_ll8"], of["receive_ll16"]
    stores = r"\bst\.(?!param|local)[\w.]+"
    yield "an LL16 packet is one vector store", set(re.findall(stores, ll16)) == {"st.relaxed.sys.global.v2.b64"}
    yield "an LL8 packet is one store", set(re.findall(stores, ll8)) == {"st.relaxed.sys.global.u64"}
    yield "an LL16 packet is one vector load", count(receive, r"ld\.relaxed\.sys\.global\.v2\.b64") > 0
    lines = of["send_ll128"], of["receive_ll128"]
    yield "an LL128 line is one vector store per lane", set(re.findall(stores, lines[0])) == {"st.relaxed.sys.global.v2.b64"}
    yield "lanes learn of a line's flag together", "vote.sync.ballot" in lines[1]
    yield "four lines are looked at before one is waited for", re.search(
        r"(?:ld\.relaxed\.sys\.global\.v2\.b64(?:(?!\bvote\b)[\s\S])*?){4}vote", lines[1]) is not None
    yield "packets need no fence", not re.search(r"\b(fence|membar)\.|\.release\.", ll16 + ll8)
    copies = of["copy"]
    yield "a copy holds four 16-byte loads before it stores", re.search(
        r"(ld(\.global)?\.v4\.[ub]32[^;]*;(?:(?!\bst[. ])[\s\S])*?){4}st(\.global)?\.v4\.[ub]32", copies) is not None
    # Arithmetic on addresses and masks may come between loads. A branch or a use of a loaded value may not.
    apart = r"(?:(?!\bbra\b|\bxor\b|\bcvt\.f32|\bst[. ])[\s\S])*?"
    packet_load = r"ld\.relaxed\.sys\.global\.v2\.b64" + apart
    yield "packets of seven peers are all looked at before one is waited for", re.search(
        "(?:" + packet_load + "){14}", of["reduce_packets"]) is not None
    yield "four units of a copy are looked at before one is waited for", re.search(
        "(?:" + packet_load + "){8}", receive) is not None
    for name in "reduce_memory", "reduce_members":
        yield name + " issues the loads of seven peers before it adds", loads_before_use(of[name]) >= 7
    yield from multimem_checks(of)
    for name, (registers, stack) in sorted(resources.items()):
        if name != "groups":  # it takes a list of groups apart
            yield name + " keeps everything in registers", stack == 0
            yield name + " fits 512 threads a block", registers <= 128


def multimem_rows():
    """Returns (dtype, op, instruction) of each row of multimem.def."""
    with open(os.path.join(REPOSITORY, "executor/include/chorale/device/multimem.def")) as file:
        return re.findall(r'^CHORALE_MULTIMEM\((\w+), \w+, (\w+), \w+, "([^"]+)"\)', file.read(), flags=re.M)


MULTIMEM = r"\bmultimem\.\w[\w.:]*"
LOAD_REDUCE = "multimem.ld_reduce.relaxed.sys.global."
STORE_TO_ALL = "multimem.st.relaxed.sys.global.v4.f32"
OTHER_LOAD = r"(?<![.\w])ld\.(?!param)[\w.]+"
OTHER_STORE = r"(?<![.\w])st\.(?!param|local)[\w.]+"


class Flow:
    """Holds the instructions of a function, and the successors of each."""

    def __init__(self, text):
        self.lines, labels = [], {}
        for line in text.split("{", 1)[1].splitlines():
            line = line.split("//")[0].strip()
            if label := re.match(r"(\$\w+):", line):
                labels[label.group(1)] = len(self.lines)
            elif re.match(r"(@!?%\w+\s+)?[a-z]\w*[.\w:]*(\s|;)", line):
                self.lines.append(line)
        self.next = []
        for at, line in enumerate(self.lines):
            targets = [labels[label] for label in re.findall(r"\$\w+", line) if label in labels]
            ends = re.match(r"(bra|brx|ret|exit)\b", line) is not None
            self.next.append(targets + ([] if ends or at + 1 == len(self.lines) else [at + 1]))

    def reaches(self, first, wanted, barred):
        """Returns whether a path from after an instruction, or from the beginning (-1), reaches a wanted one without
        passing a barred one."""
        seen, ways = set(), [0] if first < 0 else list(self.next[first])
        while ways:
            at = ways.pop()
            if at in seen or re.search(barred, self.lines[at]):
                continue
            seen.add(at)
            if re.search(wanted, self.lines[at]):
                return True
            ways += self.next[at]
        return False


def is_fenced(text):
    """Returns whether every path to an access through a switch, and every path from one to the end, passes a fence
    between addresses of the same memory."""
    flow = Flow(text)
    accesses = [at for at, line in enumerate(flow.lines) if re.search(MULTIMEM, line)]
    fence = r"fence\.proxy\.alias"
    return accesses != [] and not flow.reaches(-1, MULTIMEM, fence) and not any(
        flow.reaches(at, r"^(@!?%\w+\s+)?(ret|exit)\b", fence) for at in accesses)


def multimem_checks(of):
    """Checks that switches do what multimem.def says, and that no other code uses them."""
    rows = multimem_rows()
    yield "multimem.def has rows", len(rows) > 0
    for dtype, op, instruction in rows:
        kernel = of.get(f"multimem_{dtype}_{op}", "")
        yield f"{op} of {dtype} by a switch is {instruction}, relaxed and system-wide", (
            set(re.findall(MULTIMEM, kernel)) == {LOAD_REDUCE + instruction})
        yield f"{op} of {dtype} by a switch loads nothing else", not re.search(OTHER_LOAD, kernel)
    both = of["multimem_pass"]
    yield "a switch combines and stores", set(re.findall(MULTIMEM, both)) == {
        LOAD_REDUCE + "add.acc::f32.v4.bf16x2", STORE_TO_ALL}
    yield "what a switch stores is stored by it alone", not re.search(OTHER_STORE, both) and not re.search(OTHER_LOAD, both)
    yield "accesses by a switch are fenced from those by other addresses", is_fenced(both)
    yield "four units are asked of a switch before one is waited for", re.search(
        r"multimem\.ld_reduce(?:(?:(?!\bbra\b|multimem\.st)[\s\S])*?multimem\.ld_reduce){3}", both) is not None
    yield "no other kernel goes through a switch", not any(
        re.search(MULTIMEM, text) for name, text in of.items() if not name.startswith("multimem_"))


INTERPRETER = """#include "executor/cuda/kernels/exchange.cuh"
using namespace chorale;
using namespace chorale::cuda;
template __global__ void cuda::interpret<void, LL16>(const __grid_constant__ Launch);
template __global__ void cuda::interpret<bf16, LL16>(const __grid_constant__ Launch);
template __global__ void cuda::interpret_exchange<bf16, LL16, true>(const __grid_constant__ Launch);
template __global__ void cuda::interpret_exchange<bf16, LL16, false>(const __grid_constant__ Launch);
"""

MULTICAST_INTERPRETER = """#include "executor/cuda/kernels/multicast_steps.cuh"
using namespace chorale;
using namespace chorale::cuda;
template __global__ void cuda::interpret<void, LL16, MulticastSteps>(const __grid_constant__ Launch);
template __global__ void cuda::interpret<bf16, LL16, MulticastSteps>(const __grid_constant__ Launch);
"""


CODED_INTERPRETER = """#include "executor/cuda/kernels/coded_steps.cuh"
using namespace chorale;
using namespace chorale::cuda;
template __global__ void cuda::interpret<bf16, LL16, CodedSteps>(const __grid_constant__ Launch);
"""


def compile_interpreter(nvcc, root, arch, text):
    """Returns the PTX of a source, and what the assembler reports for it."""
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "interpreter.cu")
        with open(source, "w") as file:
            file.write(text)
        said = run_compiler(
            [nvcc, "-std=c++17", "-arch=" + arch, "-cubin", "-Xptxas", "-v", "-keep", "-keep-dir", folder, "-o",
             os.path.join(folder, "interpreter.cubin"), "-I" + root, "-I" + os.path.join(root, "compiler/include"),
             "-I" + os.path.join(root, "executor/include"), source])
        with open(os.path.join(folder, "interpreter.ptx")) as file:
            return file.read(), said


def interpreter_checks(nvcc, root, arch):
    """Does the same for the interpreter kernels of some element types."""
    ptx, said = compile_interpreter(nvcc, root, arch, INTERPRETER)
    yield from checks_of_interpreters("interpret", ptx, said, kernels=4, spills=300)
    yield "interpret: no multicast", not re.search(r"\bmultimem\b|multicast", ptx)
    yield "interpret: one name is enough for its memory", "fence.proxy" not in ptx
    yield "interpret: nothing is encoded", "run_coded" not in ptx


def multicast_interpreter_checks(nvcc, root, arch):
    """Does the same for the kernels with the steps of switches, and checks that they contain these steps."""
    ptx, said = compile_interpreter(nvcc, root, arch, MULTICAST_INTERPRETER)
    # They use more registers than others, because there is a call in the loop over steps. The cost of that is not
    # known.
    yield from checks_of_interpreters("multicast interpreter", ptx, said, kernels=2, spills=600)
    functions = [text for text in re.split(r"^(?=\.(?:visible |weak )?\.?(?:func|entry)\b)", ptx, flags=re.M)
                 if "multimem." in text]
    yield "multicast interpreter: the steps of switches are functions of their own", len(functions) == 2 and all(
        text.startswith(".func") or ".entry" not in text.split("{", 1)[0] for text in functions)
    summing = [text for text in functions if "ld_reduce" in text]
    yield "multicast interpreter: where nothing is reduced, switches store alone", len(summing) == 1 and all(
        set(re.findall(MULTIMEM, text)) == {STORE_TO_ALL} for text in functions if text not in summing)
    yield "multicast interpreter: switches combine by all operators that multimem.def has", set(
        found for text in summing for found in re.findall(MULTIMEM, text)) == {STORE_TO_ALL} | {
            LOAD_REDUCE + instruction for dtype, _, instruction in multimem_rows() if dtype == "bf16"}
    for text in functions:
        yield "multicast interpreter: accesses by switches are fenced from those by other addresses", is_fenced(text)


def coded_interpreter_checks(nvcc, root, arch):
    """Does the same for a kernel with the steps that encode and decode."""
    ptx, said = compile_interpreter(nvcc, root, arch, CODED_INTERPRETER)
    # As in the multicast interpreter, there are calls in the loop over steps.
    yield from checks_of_interpreters("coded interpreter", ptx, said, kernels=1, spills=600)
    steps = re.findall(r"run_coded\w*Lj(\d+)E[\s\S]*?(\d+) bytes spill stores, (\d+) bytes spill loads", said)
    yield "coded interpreter: each format has functions for short and for long blocks", sorted(
        {rounds for rounds, _, _ in steps}) == ["1", "8"]
    yield "coded interpreter: short blocks stay in registers", all(
        int(stores) + int(loads) < 64 for rounds, stores, loads in steps if rounds == "1")
    # The assembler may join other products with an addition. The CPU rounds between the two.
    functions = [text for text in re.split(r"^(?=\.(?:visible |weak )?\.?(?:func|entry)\b)", ptx, flags=re.M)
                 if "run_coded" in text.split("(", 1)[0] and "{" in text]
    yield "coded interpreter: decoding rounds its products", len(functions) == 12 and all(
        "mul.rn.f32" in text for text in functions)


def checks_of_interpreters(what, ptx, said, kernels, spills):
    yield what + ": no volatile access", not re.search(r"\b(ld|st)\.volatile", ptx)
    yield what + ": no load through the read-only cache", not re.search(r"\bld\.global(\.\w+)*\.nc\b|\bldu\.", ptx)
    # A block's counts are in its shared memory.
    yield what + ": every atomic operation is system-wide", not re.search(
        r"(?<![.\w])(atom|red)\.(?!shared\.)(?!\w+\.\w+\.sys\.)", ptx)
    yield what + ": every ordered access is system-wide", not re.search(
        r"\b(ld|st|ld_reduce)\.(relaxed|acquire|release)\.(?!sys\.)", ptx)
    # These are the properties of the kernel itself. The functions that it calls have separate "Function properties".
    found = re.findall(r"Compiling entry function '(\w+)'[\s\S]*?(\d+) bytes spill stores, (\d+) bytes spill loads"
                       r"[\s\S]*?Used (\d+) registers", said)
    yield f"{what}: all {kernels} kernels are there", len(found) == kernels
    for name, stores, loads, registers in found:
        yield f"{name} spills less than {spills} bytes", int(stores) + int(loads) < spills
        yield name + " fits 512 threads a block", int(registers) <= 128


def loads_before_use(kernel):
    """Returns the largest number of 16-byte loads between two places that widen or store loaded values."""
    parts = re.split(r"\bshl\.b32|\bmov\.b32[^;]*\{|\bst[. ]", kernel)
    return max(count(part, r"\bld(\.global)?\.v4\.[ub]32") for part in parts)


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    arch = sys.argv[3] if len(sys.argv) == 4 else "sm_90"
    ptx, of = compile_ptx(sys.argv[1], sys.argv[2], arch)
    failed = False
    everything = itertools.chain(checks(ptx, of), interpreter_checks(sys.argv[1], sys.argv[2], arch),
                                 multicast_interpreter_checks(sys.argv[1], sys.argv[2], arch),
                                 coded_interpreter_checks(sys.argv[1], sys.argv[2], arch))
    for name, holds in everything:
        print("ok    " if holds else "FAILED", name)
        failed |= not holds
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
