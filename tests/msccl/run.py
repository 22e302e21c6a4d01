#!/usr/bin/env python3
"""Imports, proves and runs right algorithms, and checks that each one with a mistake is refused at a line of the
file: run.py <chorale>

The mistakes are: a dependency that is left out, an offset that is changed to another one, and a step that becomes a
nop. A mistake that changes nothing, such as leaving out a dependency that others imply, must leave an algorithm that
runs.

Each right algorithm is also exported, and imported again: the plan must be the same, and the steps must be of the same
types. Shipped plans whose programs know nothing of MSCCL are exported too, and what is imported must run.
"""
import concurrent.futures
import pathlib
import random
import re
import subprocess
import sys
import tempfile

from algorithms import ALGORITHMS

SIZES = "4K,100064"
MUTANTS = 6  # for each algorithm and kind of mistake
LIMIT_S = 300
# Maps shipped plans that MSCCL can express to types of steps that their files must have.
EXPORTED = {"allgather_direct_4": "cpy r s", "allreduce_staged_4": "r re s", "alltoall_in_turns_4": "cpy r s", "allgather_ring_4": "r rcs s", "allreduce_ring_8": "r rcs rrcs", "allreduce_staged_2": "r rrcs s",
            "alltoall_by_peer_4": "cpy r s", "broadcast_ring_4": "r rcs s", "reducescatter_staged_2": "rrc s"}
# The export writes no <copy>, and joins steps that these files have apart.
OTHER_TYPES = "copied_"


def run(*words):
    return subprocess.run(words, text=True, capture_output=True, timeout=LIMIT_S)


def refused(done, name):
    """Returns whether the command has refused a file at one of its lines."""
    return done.returncode == 1 and re.search(rf"^{re.escape(name)}:\d+: error: ", done.stderr, re.M)


def right(chorale, name, ranks, folder):
    file, plan = folder / f"{name}_{ranks}.xml", folder / f"{name}_{ranks}.json"
    file.write_text(ALGORITHMS[name](ranks).text())
    for words in (["import", file, "--certify", "-o", plan], ["check", plan], ["run", plan, "--bytes", SIZES, "--no-times"],
                  ["run", plan, "--adversarial", "--schedules", "20"]):
        done = run(chorale, *map(str, words))
        if done.returncode:
            return f"{name} of {ranks} ranks: {words[0]} ends with {done.returncode}\n{done.stdout}{done.stderr}"
    return exported(chorale, name, ranks, file, plan)


def types(file):
    return sorted(re.findall(r' type="(\w+)"', file.read_text()))


def exported(chorale, name, ranks, file, plan):
    back, again = file.with_suffix(".back.xml"), file.with_suffix(".again.json")
    for words in (["convert", plan, "--to", "msccl-xml", "-o", back], ["import", back, "-o", again],
                  ["diff", plan, again, "--canonical"]):
        done = run(chorale, *map(str, words))
        if done.returncode:
            return f"{name} of {ranks} ranks, exported: {words[0]} ends with {done.returncode}\n{done.stdout}{done.stderr}"
    if not name.startswith(OTHER_TYPES) and types(file) != types(back):
        return f"{name} of {ranks} ranks, exported: its steps are of other types"
    return ""


def shipped(chorale, name, folder):
    back, again = folder / f"{name}.xml", folder / f"{name}.json"
    plan = pathlib.Path(__file__).resolve().parents[2] / "plans" / "shipped" / f"{name}.json"
    for words in (["convert", plan, "--to", "msccl-xml", "-o", back], ["import", back, "-o", again],
                  ["run", again, "--bytes", SIZES, "--no-times"], ["run", again, "--adversarial", "--schedules", "20"]):
        done = run(chorale, *map(str, words))
        if done.returncode:
            return f"{name}, exported: {words[0]} ends with {done.returncode}\n{done.stdout}{done.stderr}"
    missing = set(EXPORTED[name].split()) - set(types(back))
    return f"{name}, exported: no step is of type {', '.join(sorted(missing))}" if missing else ""


def without_dependency(step):
    if 'depid="-1"' in step:
        return None
    return re.sub(r'depid="\d+" deps="\d+"', 'depid="-1" deps="-1"', step)


def other_offset(step):
    kind = re.search(r'type="(\w+)"', step)[1]
    side = {"s": "src", "rrs": "src", "nop": ""}.get(kind, "dst")
    if not side or 'cnt="1"' not in step:
        return None
    offset = int(re.search(rf'{side}off="(\d+)"', step)[1])
    return re.sub(rf'{side}off="\d+"', f'{side}off="{offset ^ 1}"', step)


def dropped(step):
    if 'type="nop"' in step:
        return None
    return re.sub(r'type="\w+"', 'type="nop"', step)


def mistakes(text, draw):
    """Returns texts with one mistake each, and its description."""
    lines = text.splitlines(keepends=True)
    for what, change in (("a dependency left out", without_dependency), ("another offset", other_offset),
                         ("a step left out", dropped)):
        sites = [n for n, line in enumerate(lines) if "<step" in line and change(line)]
        for number in draw.sample(sites, min(MUTANTS, len(sites))):
            changed = lines[:number] + [change(lines[number])] + lines[number + 1:]
            yield f"{what} in line {number + 1}", "".join(changed)


def wrong(chorale, name, ranks, folder, counts):
    draw = random.Random(f"{name} {ranks}")
    complaints = []
    for number, (what, text) in enumerate(mistakes(ALGORITHMS[name](ranks).text(), draw)):
        file, plan = folder / f"{name}_{ranks}_{number}.xml", folder / f"{name}_{ranks}_{number}.json"
        file.write_text(text)
        done = run(chorale, "import", str(file), "-o", str(plan), "--schedules", "0")
        kind = what.split(" in line")[0]
        counts.setdefault(kind, [0, 0])[0 if done.returncode else 1] += 1
        if refused(done, file.name):
            continue
        if done.returncode == 0:
            # The mistake does not change the result, so the algorithm must run, in every order.
            if run(chorale, "run", str(plan), "--adversarial", "--schedules", "50").returncode == 0:
                continue
        complaints.append(f"{name} of {ranks} ranks, {what}: import ends with {done.returncode}\n{done.stderr}")
    return "\n".join(complaints)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    chorale, counts, jobs = str(pathlib.Path(sys.argv[1]).resolve()), {}, []
    with tempfile.TemporaryDirectory(prefix="msccl-") as name, concurrent.futures.ThreadPoolExecutor(2) as pool:
        folder = pathlib.Path(name)
        for algorithm in ALGORITHMS:
            jobs += [pool.submit(right, chorale, algorithm, ranks, folder) for ranks in (2, 4, 8)]
            jobs.append(pool.submit(wrong, chorale, algorithm, 4, folder, counts))
        jobs += [pool.submit(shipped, chorale, name, folder) for name in EXPORTED]
        complaints = [job.result() for job in jobs if job.result()]
    print(*complaints, sep="\n")
    for kind, (found, harmless) in sorted(counts.items()):
        print(f"{kind}: {found} refused, {harmless} harmless")
        if not found:
            complaints.append(kind)
    print(f"{len(ALGORITHMS)} algorithms, {len(complaints)} failed")
    sys.exit(bool(complaints))


if __name__ == "__main__":
    main()
