#!/usr/bin/env python3
"""Checks the counter-examples of the wrong programs: witnesses.py <chorale>

It runs every test of this folder that a proof refuses again with --sarif and --witness. The printed text has at most
12 events of 4 ranks, each operation with its line. The files must follow SARIF 2.1.0 and the trace event format. If
a seed is printed, that command must fail.
"""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PROOFS = "decidable|deadlock|races|values|replay"
MOST_EVENTS, MOST_RANKS = 12, 4


def need(condition, what):
    if not condition:
        raise AssertionError(what)


# These are SARIF 2.1.0's rules for the objects that we write: the properties that they may have, as far as we use them.
# A "!" marks the properties that they must have. Values are strings, integers with a lower bound, one of several words,
# objects, or lists of objects.
SARIF = {
    "log": {"version!": {"2.1.0"}, "$schema": str, "runs!": ["run"]},
    "run": {"tool!": "tool", "columnKind": {"utf16CodeUnits", "unicodeCodePoints"}, "results": ["result"]},
    "tool": {"driver!": "component"},
    "component": {"name!": str, "version": str, "rules": ["rule"]},
    "rule": {"id!": str, "shortDescription": "message"},
    "result": {"message!": "message", "ruleId": str, "level": {"none", "note", "warning", "error"},
               "locations": ["location"], "relatedLocations": ["location"], "codeFlows": ["flow"]},
    "message": {"text!": str},
    "location": {"id": -1, "physicalLocation": "physical", "logicalLocations": ["logical"], "message": "message"},
    "physical": {"artifactLocation!": "artifact", "region": "region"},
    "artifact": {"uri!": str},
    "region": {"startLine!": 1},
    "logical": {"fullyQualifiedName!": str},
    "flow": {"threadFlows!": ["thread"]},
    "thread": {"locations!": ["step"]},
    "step": {"location!": "location", "executionOrder": -1, "importance": {"important", "essential", "unimportant"}},
}
MAY_BE_EMPTY = {"results"}


def check_schema(kind, value, where):
    if kind is str:
        return need(isinstance(value, str) and value, f"{where}: {value!r} is no text")
    if isinstance(kind, int):
        return need(type(value) is int and value >= kind, f"{where}: {value!r} is no number from {kind} on")
    if isinstance(kind, set):
        return need(value in kind, f"{where}: {value!r} is none of {sorted(kind)}")
    if isinstance(kind, list):
        need(isinstance(value, list), f"{where}: {value!r} is no list")
        for at, item in enumerate(value):
            check_schema(kind[0], item, f"{where}/{at}")
        return None
    need(isinstance(value, dict), f"{where}: {value!r} is no object")
    known = {name.rstrip("!"): of for name, of in SARIF[kind].items()}
    for name in SARIF[kind]:
        need(not name.endswith("!") or name[:-1] in value, f"{where}: {kind} without {name[:-1]}")
    for name, part in value.items():
        need(name in known, f"{where}: {kind} has no {name}")
        need(part != [] or name in MAY_BE_EMPTY, f"{where}: {name} is empty")
        check_schema(known[name], part, f"{where}/{name}")
    return None


def check_sarif(log):
    check_schema("log", log, "")
    need(log["$schema"].endswith("sarif-2.1.0.json"), "not SARIF 2.1.0")
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    need(driver["name"] == "chorale", "another tool")
    rules = [rule["id"] for rule in driver["rules"]]
    need(len(rules) == len(set(rules)), "a rule is listed twice")
    need(run["results"], "no results")
    for result in run["results"]:
        need(result["ruleId"] in rules, f"{result['ruleId']} is no rule")
        need(result["level"] == "error", "a finding that is none")
        steps = [step["location"] for flow in result.get("codeFlows", []) for thread in flow["threadFlows"]
                 for step in thread["locations"]]
        for place in result["locations"] + result.get("relatedLocations", []) + steps:
            need(place.get("physicalLocation") or place.get("logicalLocations"), f"a location of nothing: {place}")
        need(all("message" in step for step in steps), "a step without a text")
        numbers = [place["id"] for place in result.get("relatedLocations", [])]
        need(len(numbers) == len(set(numbers)), "two related locations of one number")
    return run["results"]


def check_trace(trace):
    events = trace["traceEvents"]
    slices = [e for e in events if e["ph"] == "X"]
    marks = [e for e in events if e["ph"] == "i"]
    need(0 < len(slices) <= MOST_EVENTS, f"{len(slices)} slices")
    need(len({e["pid"] for e in slices}) <= MOST_RANKS, "too many ranks")
    need(marks, "no culprit is marked")
    for mark in marks:
        need(any(s["pid"] == mark["pid"] and s["tid"] == mark["tid"] and s["ts"] <= mark["ts"] <= s["ts"] + s["dur"]
                 for s in slices), "a mark is on no slice")
    for first in (e for e in events if e["ph"] == "s"):
        last = [e for e in events if e["ph"] == "f" and e["id"] == first["id"]]
        need(len(last) == 1 and last[0]["ts"] >= first["ts"], "an arrow without an end")
    names = {(e["pid"], e.get("tid")) for e in events if e["ph"] == "M"}
    need(all((s["pid"], s["tid"]) in names and (s["pid"], None) in names for s in slices), "a thread without a name")


def check_text(text):
    """Returns the number of counter-examples."""
    found = 0
    for part in re.findall(r"  counter-example:\n((?:   .*\n)*)", text):
        events = [line for line in part.splitlines() if re.match(r"   \S* *\d+ +launch ", line)]
        need(len(events) <= MOST_EVENTS, f"{len(events)} events")
        need(len({re.search(r"rank (\d+)", line).group(1) for line in events}) <= MOST_RANKS, "too many ranks")
        for line in events:
            need(re.search(r"\.cpp:\d+ |the launch |the application ", line), f"no line of the author: {line}")
        found += 1
    return found


def check(chorale, test):
    """Returns False if no proof refuses the program; otherwise whether a seed was printed."""
    text = test.read_text()
    if not re.search(rf"\[({PROOFS})\]$", text, re.M):
        return False, False
    build = os.path.dirname(os.path.dirname(chorale))
    (command,) = re.findall(r"^run: (.+)$", text, re.M)
    with tempfile.TemporaryDirectory() as folder:
        words = shlex.split(command.replace("{BUILD}", build).replace("{TMP}", folder))
        sarif, trace = os.path.join(folder, "findings.sarif"), os.path.join(folder, "witness.json")
        done = subprocess.run([chorale, *words, "--sarif", sarif, "--witness", trace], text=True, capture_output=True,
                              timeout=300, cwd=folder)
        need(done.returncode == 1, f"exit {done.returncode}: {done.stderr}")
        need(check_text(done.stderr), "no counter-example is printed")
        check_sarif(json.loads(pathlib.Path(sarif).read_text()))
        check_trace(json.loads(pathlib.Path(trace).read_text()))
        seed = re.search(r"on the CPU: chorale (run .+)$", done.stderr, re.M)
        if seed:
            again = subprocess.run([chorale, *shlex.split(seed.group(1))], text=True, capture_output=True, timeout=300)
            need(again.returncode == 3, f"{seed.group(1)} exits with {again.returncode}: {again.stderr}")
        return True, bool(seed)


def main():
    chorale = os.path.abspath(sys.argv[1])
    refused = seeds = failed = 0
    for test in sorted(HERE.glob("*.test")):
        try:
            by_proof, seed = check(chorale, test)
            refused += by_proof
            seeds += seed
        except (AssertionError, KeyError, ValueError) as error:
            failed += 1
            print(f"FAILED {test.name}: {type(error).__name__} {error}")
    print(f"{refused} refused by a proof, {seeds} with a seed, {failed} failed")
    sys.exit(bool(failed) or not refused)


if __name__ == "__main__":
    main()
