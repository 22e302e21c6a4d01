#!/usr/bin/env python3
"""What run and bench print with --profile, of real launches: profile.py <chorale> <source folder>

tests/unit/profile has launches of which every time is known."""
import collections
import json
import pathlib
import re
import subprocess
import sys

LIMIT_S = 300
NAME = "allgather_ring_2"
NUMBER = r"(\d+\.\d\d)"


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


def call(chorale, words):
    done = subprocess.run([chorale, *words], capture_output=True, text=True, timeout=LIMIT_S)
    check(done.returncode == 0, f"{words}: {done.stderr}")
    return done.stdout, done.stderr


def planned(plan):
    """How many operations the plan has by line and mnemonic."""
    lines = plan["chorale"]["source"]
    return collections.Counter((lines[op["at"]], op["name"])
                               for gpu in plan["gpus"] for block in gpu["threadblocks"] for op in block["ops"])


def check_profile(plan, text, size, launch):
    """One profile, which accounts for all of its launch."""
    rows = text.splitlines()
    head = re.fullmatch(rf"profile of {plan['name']}, {size} bytes, launch (\d+): {NUMBER} us", rows[0])
    check(head, f"no head: {rows[0]}")
    check(launch is None or int(head[1]) == launch, f"not launch {launch}: {rows[0]}")
    whole = float(head[2])
    check(rows[1].split() == "path us path % spans total us longest us at line operation".split(), rows[1])
    on_path, spans = 0.0, {}
    row = 2
    while not rows[row].startswith("critical path, "):
        found = re.fullmatch(rf" +{NUMBER} +(\d+\.\d) +(\d+|-) +({NUMBER}|-) +{NUMBER}  rank \d(?:, block \d)? +(\S+) +(.+)", rows[row])
        check(found, f"no line: {rows[row]}")
        on_path += float(found[1])
        share = 100 * float(found[1]) / whole
        check(abs(float(found[2]) - share) < 0.2, f"{found[2]}% is not {share}: {rows[row]}")
        if found[3] != "-":
            spans[found[7], found[8]] = int(found[3])
        row += 1
    check(abs(on_path - whole) < 0.02 * row, f"{on_path} us of {whole} on the path")
    check(spans == dict(planned(plan)), f"spans {spans} of {dict(planned(plan))}")
    check(re.fullmatch(r"critical path, (its|the 8 longest of its \d+) stretches:", rows[row]), rows[row])
    now = 0.0
    stretches = rows[row + 2:-1]
    check(0 < len(stretches) <= 8, text)
    for one in stretches:
        found = re.match(rf" +{NUMBER} +{NUMBER} +{NUMBER}  rank \d", one)
        check(found, f"no stretch: {one}")
        length, begin, end = (float(number) for number in found.groups())
        check(begin >= now and abs(begin + length - end) < 0.02 and end <= whole + 0.01, f"{one} after {now}")
        now = end
    shares = [float(number) for number in re.findall(r"(\d+\.\d)%", rows[-1])]
    check(rows[-1].startswith("all thread blocks, ") and abs(sum(shares) - 100) < 0.5, rows[-1])


def main():
    chorale, source = sys.argv[1], pathlib.Path(sys.argv[2])
    path = source / f"plans/shipped/{NAME}.json"
    plan = json.loads(path.read_text())
    run = ["run", str(path), "--no-times", "--bytes"]
    for more, launch in [([], 3), (["--processes"], 3), (["--seed", "1", "--repeat", "1"], 1)]:
        result, talk = call(chorale, [*run, "4K", *more, "--profile"])
        check_profile(plan, talk, "4K", launch)
        check(call(chorale, [*run, "4K", *more]) == (result, ""), f"--profile changes the result: {result}")
    _, talk = call(chorale, [*run, "4K,64K", "--profile"])
    first, second = talk.split("profile of ")[1:]
    check_profile(plan, "profile of " + first, "4K", 3)
    check_profile(plan, "profile of " + second, "64K", 3)
    bench = ["bench", str(path), "--bytes", "4K", "--calls", "2", "--warmup", "1", "--format", "json"]
    for more in [[], ["--processes"]]:
        result, talk = call(chorale, [*bench, *more, "--profile"])
        json.loads(result)
        check_profile(plan, talk[talk.index("profile of "):], "4K", None)


main()
