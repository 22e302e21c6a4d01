#!/usr/bin/env python3
"""Checks what run and bench write with --trace: trace.py <chorale> <source folder>; on GPUs what run writes, with
--backend cuda [--share-gpus] after these."""
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

LIMIT_S = 300
NAME = "allgather_ring_2"  # the k-th channels of both ranks belong together, and one block each uses them


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


def traced(chorale, file, words):
    """Returns the events that a command writes."""
    done = subprocess.run([chorale, *words, "--trace", str(file)], capture_output=True, text=True, timeout=LIMIT_S)
    check(done.returncode == 0, f"{words}: {done.stderr}")
    return json.loads(file.read_text())["traceEvents"]


def check_structure(plan, events, launch, gpus=False):
    """Checks that each operation of each block has a span with its line, in the plan's order. Operations without a
    step of their own have none: here a `nop`, because each is beside a signal or a wait, and on GPUs waits side
    by side."""
    spans = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            spans[event["pid"], event["tid"]].append(event)
    lines = plan["chorale"]["source"]
    for gpu in plan["gpus"]:
        for block in gpu["threadblocks"]:
            where = f"rank {gpu['id']}, block {block['id']}"
            seen = spans.pop((gpu["id"], block["id"]), [])
            numbers = [one["args"]["op"] for one in seen]
            steps = [number for number, op in enumerate(block["ops"]) if op["name"] != "nop"]
            wanted = sorted(set(numbers) & set(range(len(block["ops"])))) if gpus else steps
            check(seen and numbers == wanted, f"{where}: {seen}")
            for op, one in zip([block["ops"][number] for number in numbers], seen):
                name = op["name"].replace("rlx", "relaxed_")  # traces have the names of the language
                check(one["name"] == name, f"{where}: {one} is no {name}")
                check(one["args"]["line"] == lines[op["at"]], f"{where}: {one} is at {lines[op['at']]}")
                check(one["args"]["launch"] == launch, f"{where}: {one} is of launch {launch}")
                check(one["dur"] >= 0, f"{where}: {one} ends before it begins")
    check(not spans, f"spans of no block: {list(spans)}")
    names = {(event["name"], event["pid"], event.get("tid"), event["args"]["name"])
             for event in events if event["ph"] == "M"}
    for gpu in plan["gpus"]:
        check(("process_name", gpu["id"], None, f"rank {gpu['id']}") in names, f"rank {gpu['id']} has no name")
        for block in gpu["threadblocks"]:
            check(("thread_name", gpu["id"], block["id"], f"block {block['id']}") in names, f"{block['id']} has no name")


def check_clock(events, one_thread):
    """Checks that ranks have one clock: the first span of all is at 0, and a wait ends after its signal began."""
    times = collections.defaultdict(list)
    first = {}
    for event in events:
        if event["ph"] != "X":
            continue
        first[event["pid"]] = min(first.get(event["pid"], event["ts"]), event["ts"])
        times[event["name"], event["pid"], event["tid"]].append(event)
    check(min(first.values()) == 0, f"no span is at 0: {first}")
    check(max(first.values()) > 0 or not one_thread, f"each rank has a time of its own: {first}")
    waits = 0
    for (name, rank, block), those in times.items():
        if name != "wait":
            continue
        signals = times["signal", 1 - rank, block]
        check(len(those) == len(signals), f"rank {rank}, block {block}: {those}, {signals}")
        for wait, signal in zip(those, signals):
            waits += 1
            check(wait["ts"] + wait["dur"] >= signal["ts"] - 1e-6, f"{wait} ends before {signal}")
    check(waits == 8, f"there are {waits} waits")


def check_clocks(plan, events):
    """Checks that on GPUs the first span of each rank is at 0."""
    for gpu in plan["gpus"]:
        first = min(event["ts"] for event in events if event["ph"] == "X" and event["pid"] == gpu["id"])
        check(first == 0, f"rank {gpu['id']} begins at {first}")


def check_stopped(chorale, source, file):
    """Checks that a run whose ranks, here processes, time out leaves its trace. The last span of each rank is the
    operation that did not end."""
    plan = str(source / "tests/golden/sources/bad_deadlock.cpp")
    words = ["run", plan, "--bytes", "1K", "--allow", "deadlock", "--allow", "values", "--processes", "--timeout", "2s"]
    done = subprocess.run([chorale, *words, "--trace", str(file)], capture_output=True, text=True, timeout=LIMIT_S)
    check(done.returncode == 3 and "timed out" in done.stderr, f"exit {done.returncode}: {done.stderr}")
    check(file.exists(), "a run that has failed leaves no trace")
    last = {event["pid"]: event for event in json.loads(file.read_text())["traceEvents"] if event["ph"] == "X"}
    check(sorted(last) == [0, 1], f"no spans of both ranks: {last}")
    for rank, event in last.items():
        check(event["name"] == "wait" and event["dur"] > 1e6, f"rank {rank} did not end with a wait: {event}")


def check_sizes(chorale, path, file):
    """Checks that launches of two sizes, which are counted separately, are told apart."""
    events = traced(chorale, file, ["run", path, "--bytes", "4K,64K"])
    sizes = {(event["args"]["bytes"], event["args"]["launch"]) for event in events if event["ph"] == "X"}
    check(sizes == {(4096, 3), (65536, 3)}, f"sizes and launches: {sizes}")
    view = [chorale, "view", path, "--trace", str(file), "-o", str(file.with_suffix(".html")), "--bytes"]
    done = subprocess.run([*view, "64K"], capture_output=True, text=True, timeout=LIMIT_S)
    check(done.returncode == 0, done.stderr)
    done = subprocess.run([*view, "1M"], capture_output=True, text=True, timeout=LIMIT_S)
    check(done.returncode == 2 and "it has messages of 4K, 64K bytes" in done.stderr, f"{done.returncode}: {done.stderr}")


def main():
    chorale, source, on_gpus = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
    path = source / f"plans/shipped/{NAME}.json"
    plan = json.loads(path.read_text())
    run = ["run", str(path), "--bytes", "4K"]
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "trace.json"
        if on_gpus:
            events = traced(chorale, file, [*run, *on_gpus])
            check_structure(plan, events, 3, gpus=True)
            check_clocks(plan, events)
            return
        check_stopped(chorale, source, file)
        check_sizes(chorale, str(path), file)
        for words, launch in [(run, 3), ([*run, "--processes"], 3), ([*run, "--seed", "1", "--repeat", "1"], 1)]:
            events = traced(chorale, file, words)
            check_structure(plan, events, launch)
            check_clock(events, "--seed" in words)
        events = traced(chorale, file, ["bench", str(path), "--bytes", "4K", "--calls", "2", "--warmup", "1"])
        launches = {event["args"]["launch"] for event in events if event["ph"] == "X"}
        check(len(launches) == 1 and min(launches) > 3, f"launches of a benchmark: {launches}")
        check_structure(plan, events, min(launches))
        check_clock(events, False)


main()
