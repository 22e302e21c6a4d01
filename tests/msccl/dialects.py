#!/usr/bin/env python3
"""Checks that files which leave out what MSCCL's writers leave out, or spell it differently, become the same plan:
dialects.py <chorale>

A dialect is a change of a file that does not change its meaning. The plan of the changed file must equal the plan of
the original file, except for names and lines. What we read differently from MSCCL's own documents is proved, run on
the CPU, and compared with the expected collective.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from algorithms import ALGORITHMS, Algorithm

LIMIT_S = 120


def run(*words):
    return subprocess.run([str(word) for word in words], text=True, capture_output=True, timeout=LIMIT_S)


def without(*attributes):
    return lambda text: re.sub(rf' (?:{"|".join(attributes)})="[^"]*"', "", text)


def gpus_backwards(text):
    gpus = re.findall(r"  <gpu.*?</gpu>\n", text, re.S)
    return text[:text.index("  <gpu")] + "".join(reversed(gpus)) + "</algo>\n"


def scratch_behind_output(text):
    """Writes the file as older runtimes did."""
    def gpu(match):
        size = int(re.search(r'o_chunks="(\d+)"', match[0])[1])
        return re.sub(r'(src|dst)buf="s" (?:src|dst)off="(\d+)"',
                      lambda side: f'{side[1]}buf="o" {side[1]}off="{int(side[2]) + size}"', match[0])
    return re.sub(r"  <gpu.*?</gpu>\n", gpu, text, flags=re.S)


def with_comments(text):
    return '\ufeff<?xml version="1.0"?>\n<!-- before -->\n' + text.replace("<tb", "<!-- a <tb> --><tb").replace("/>", "><!-- in --></step>")


def another_case(text):
    names = {"nchunksperloop": "nChunksPerLoop", "minBytes": "min_bytes", "maxBytes": "maxbytes", "srcbuf": "srcBuf", "hasdep": "has_dep"}
    for name, other in names.items():
        text = text.replace(f" {name}=", f" {other}=")
    text = re.sub(r'coll="(\w)(\w+)"', lambda match: f'coll="{match[1].upper()}{match[2]}"', text)
    return re.sub(r'proto="(\w+)"', lambda match: f'proto="{match[1].lower()}"', text)


# Maps a name to a change of the text, and to the algorithms to which it applies.
DIALECTS = {
    "spaces_in_numbers": (lambda text: re.sub(r'="(\d+)"', r'=" +\1 "', text), ["two_step_alltoall", "ring_allreduce"]),
    "another_case": (another_case, ["direct_reducescatter", "ring_allgather"]),
    "comments_and_bom": (with_comments, ["direct_alltoall"]),
    "gpus_backwards": (gpus_backwards, ["hierarchical_allreduce", "copied_allgather"]),
    "more_attributes": (lambda text: text.replace("<algo ", '<algo redop="nop" maxcount="1" nthreadblocks="24" nthreads="256" '),
                        ["ring_allreduce"]),
    "no_coll": (without("coll"), ["ring_allreduce", "ring_allreduce_inplace", "ring_allgather", "ring_allgather_inplace", "direct_alltoall",
                                  "direct_reducescatter", "tree_broadcast", "ring_reduce", "copied_allgather"]),
    "no_place": (without("inplace", "outofplace"), ["ring_allreduce", "ring_allreduce_inplace", "allpairs_allreduce", "ring_allgather",
                                                    "direct_alltoall", "copied_alltoall", "ring_reduce_inplace"]),
    "no_inplace": (without("inplace"), ["ring_allreduce", "ring_allgather_inplace"]),
    "no_outofplace": (without("outofplace"), ["ring_allreduce", "ring_allgather_inplace"]),
    "no_sizes": (without("nchunksperloop", "ngpus", "nchannels", "i_chunks", "o_chunks", "s_chunks"),
                 ["two_step_alltoall", "ring_allgather", "direct_reducescatter", "ring_allreduce"]),
    "no_proto": (without("proto", "minBytes", "maxBytes"), ["ring_allgather"]),
    "no_hasdep": (without("hasdep"), ["two_step_alltoall", "halving_doubling"]),
    "no_dependencies_of_none": (lambda text: text.replace(' depid="-1" deps="-1"', ""), ["two_step_alltoall"]),
    "dependencies_on_no_step": (lambda text: text.replace('depid="-1" deps="-1"', 'depid="0" deps="-1"'), ["two_step_alltoall"]),
    "dependencies_on_no_block": (lambda text: text.replace('depid="-1" deps="-1"', 'depid="-1" deps="0"'), ["two_step_alltoall"]),
    "no_cnt_of_one": (lambda text: text.replace(' cnt="1"', ""), ["two_step_alltoall"]),
    "no_peers": (lambda text: text.replace(' send="-1"', "").replace(' recv="-1"', ""), ["two_step_alltoall"]),
    "no_step_numbers": (without("s"), ["halving_doubling"]),
    "scratch_behind_output": (scratch_behind_output, ["two_step_alltoall"]),
    "many_channels": (lambda text: re.sub(r'chan="(\d+)"', lambda match: f'chan="{int(match[1]) + 4000}"', text), ["ring_allreduce"]),
}


def plan_of(chorale, text, folder, complaints, what):
    """Returns the plan of a text without names and lines."""
    file = folder / f"{what}.xml"
    file.write_text(text)
    done = run(chorale, "import", file)
    if done.returncode:
        complaints.append(f"{what}: import ends with {done.returncode}\n{done.stderr}")
        return None

    def bare(value):
        if isinstance(value, list):
            return [bare(one) for one in value]
        if isinstance(value, dict):
            return {key: bare(one) for key, one in value.items() if key not in ("name", "at", "source") or one in ("nop", "put")}
        return value
    plan = bare(json.loads(done.stdout))
    plan.get("chorale", {}).pop("source", None)
    return plan


def same_plans(chorale, folder):
    complaints = []
    for dialect, (change, names) in DIALECTS.items():
        for name in names:
            text = ALGORITHMS[name](4).text()
            changed = change(text)
            if changed == text:
                complaints.append(f"{dialect} does not change {name}")
            before = plan_of(chorale, text, folder, complaints, name)
            if before != plan_of(chorale, changed, folder, complaints, f"{dialect}_of_{name}"):
                complaints.append(f"{dialect} makes another plan of {name}")
    return complaints


def nothing_left_to_copy(chorale, folder):
    """Checks <copy>: in place, a copy of a chunk to itself is no operation; out of place, it is one, before
    everything that needs it."""
    complaints = []
    for name, copies in (("copied_allgather", 1), ("copied_allgather_inplace", 0), ("copied_allreduce", 1),
                         ("copied_allreduce_inplace", 0), ("copied_alltoall", 1)):
        file, plan = folder / f"{name}.xml", folder / f"{name}.json"
        file.write_text(ALGORITHMS[name](2).text())
        done = run(chorale, "import", file, "-o", plan)
        blocks = json.loads(plan.read_text())["gpus"][0]["threadblocks"] if done.returncode == 0 else []
        found = sum(op["name"] == "copy" and op["src_buff"][0]["type"] == "i" for block in blocks for op in block["ops"])
        if found != copies:
            complaints.append(f"{name}: {found} copies, expected {copies}\n{done.stderr}")
    return complaints


def custom(chorale, folder):
    """Checks that races and deadlocks are still found in a custom collective, which defines no result."""
    made = Algorithm("shift", "custom", 3, 1)
    for rank in range(3):
        made.step(rank, "s", ("i", 0), ("o", 0), send=(rank + 1) % 3, recv=(rank - 1) % 3)
        made.step(rank, "r", ("i", 0), ("o", 0), send=(rank + 1) % 3, recv=(rank - 1) % 3)
    file = folder / "shift.xml"
    file.write_text(made.text())
    done = run(chorale, "run", file, "--bytes", "4K", "--no-times")
    if done.returncode:
        return [f"custom: run ends with {done.returncode}\n{done.stderr}"]
    racing = Algorithm("racing", "custom", 3, 1)
    for rank in range(3):
        racing.step(rank, "s", ("o", 0), ("o", 0), send=(rank + 1) % 3)
        racing.step(rank, "r", ("o", 0), ("o", 0), recv=(rank - 1) % 3)
    file.write_text(racing.text())
    done = run(chorale, "import", file)
    return [] if "[races]" in done.stderr else [f"a race in a custom collective is not found\n{done.stderr}"]


def sample(chorale):
    file = pathlib.Path(__file__).resolve().parents[2].parent / "shared" / "samples" / "two_gpu_copy.xml"
    if not file.exists():
        print(f"skipped: there is no {file.name}")
        return []
    done = run(chorale, "run", file, "--bytes", "4K,100064", "--no-times")
    return [f"{file.name}: run ends with {done.returncode}\n{done.stderr}"] if done.returncode else []


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    chorale = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory(prefix="msccl-") as name:
        folder = pathlib.Path(name)
        complaints = same_plans(chorale, folder) + nothing_left_to_copy(chorale, folder) + custom(chorale, folder) + sample(chorale)
    print(*complaints, sep="\n")
    print(f"{len(DIALECTS)} dialects, {len(complaints)} failed")
    sys.exit(bool(complaints))


if __name__ == "__main__":
    main()
