#!/usr/bin/env python3
"""Checks the output of run and bench with --profile and --machine, for real launches: profile.py <chorale> <source
folder>

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
    """Counts the plan's operations by line and by name in the language.

    A `nop` beside a signal or a wait has no step of its own."""
    lines = plan["chorale"]["source"]
    return collections.Counter((lines[op["at"]], op["name"].replace("rlx", "relaxed_"))
                               for gpu in plan["gpus"] for block in gpu["threadblocks"] for op in block["ops"]
                               if op["name"] != "nop")


def check_profile(plan, text, size, launch):
    """Checks one profile, which must account for all of its launch."""
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
        check(abs(float(found[2]) - share) < 0.06 + 1 / whole, f"{found[2]}% is not {share}: {rows[row]}")
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


def beside(measured, predicted):
    """Checks that the printed difference of two times is right."""
    gap = round(float(measured) - float(predicted), 2)
    return gap, "no gap" if gap == 0 else f"{abs(gap):.2f} us {'more' if gap > 0 else 'less'}"


def check_comparison(plan, text, size, in_a_row=None):
    """Checks a prediction beside a profile. Measurements differ from run to run; predictions do not.

    in_a_row: the microseconds that bench and simulate report for one call of many in a row"""
    rows = text.splitlines()
    check(re.fullmatch(rf"compared with the prediction for all 100: launch \d+ of {plan['name']}, {size} bytes", rows[0]), rows[0])
    whole = re.match(rf"  the launch: {NUMBER} us, predicted {NUMBER}: ", rows[1])
    check(whole, rows[1])
    call = re.match(rf"  a call of many in a row, launched one by one: {NUMBER} us, predicted {NUMBER}: ", rows[2])
    check(bool(call) == bool(in_a_row), rows[2])
    check(not call or all(abs(float(call[at + 1]) - us) < 0.011 for at, us in enumerate(in_a_row)), f"not {in_a_row}: {rows[2]}")
    row = 5 if call else 4
    check(rows[row - 1].split()[:4] == ["gap", "us", "median", "us"], rows[row - 1])
    lines, gaps = {}, []
    while found := re.fullmatch(r" +(?P<gap>[-+]\d+\.\d\d)(?P<times>(?: +\d+\.\d\d){4}) +\d+  rank \d, block \d  (?P<line>\S+) +(?P<name>\S+) +(?P<kind>work|waits)(?: .*)?", rows[row]):
        median, predicted, longest, longest_predicted = (float(number) for number in found["times"].split())
        check(abs(median - predicted - float(found["gap"])) < 0.011, f"gap {found['gap']}: {rows[row]}")
        check(median <= longest and 0 < predicted <= longest_predicted <= float(whole[2]), rows[row])
        if found["kind"] == "work":
            gaps.append((abs(float(found["gap"])), f"  {found['name']} {found['line']}: {median:.2f} us, predicted {predicted:.2f}: "))
        lines[found["line"], found["name"]] = float(found["gap"])
        row += 1
    check(set(lines) == set(planned(plan)), f"{lines} of {planned(plan)}")
    check(gaps == sorted(gaps, key=lambda gap: -gap[0]), f"not sorted: {gaps}")
    check(rows[row].startswith("all us of a thread block, median: work "), rows[row])
    check(rows[row + 1] == "the three largest gaps, in a median thread block, without waits:", rows[row + 1])
    for said, (_, words) in zip(rows[row + 2:row + 5], gaps[:3]):
        check(said.startswith(words), f"{words} is not in {said}")
    for said in [rows[1], *rows[row + 2:row + 6]]:
        found = re.search(rf": {NUMBER} us, predicted {NUMBER}: (no gap|{NUMBER} us (?:more|less))", said)
        check(found, said)
        gap, words = beside(found[1], found[2])
        shown = float(found[4] or 0)
        check(abs(abs(gap) - shown) < 0.011 and (shown < 0.02 or words.split()[-1] in found[3]), f"{words}: {said}")
    check(rows[row + 5].startswith("waits, in a median thread block: "), rows[row + 5])


def check_comparisons(chorale, source, path, plan):
    machine = ["--profile", "--machine", str(source / "tests/golden/simulate/machine.json")]
    simulate = ["simulate", str(path), "--bytes", "4K", "--format", "json", *machine[1:]]
    for more in [[], ["--processes"], ["--seed", "1"]]:
        _, talk = call(chorale, ["run", str(path), "--bytes", "4K", *more, *machine])
        profile, comparison = talk.split("compared with the prediction")
        check_profile(plan, profile, "4K", 3)
        check_comparison(plan, "compared with the prediction" + comparison, "4K")
    predicted = json.loads(call(chorale, [*simulate, "--eager"])[0])["results"][0]["time_us"]
    bench = ["bench", str(path), "--bytes", "1K,4K", "--calls", "2", "--warmup", "1", "--format", "json"]
    result, talk = call(chorale, [*bench, *machine])
    measured = json.loads(result)["results"][1]["time_us"]
    _, first, second = talk.split("profile of ")
    check("1K bytes\n" in first.split("compared with the prediction")[1], first)
    check_comparison(plan, "compared with the prediction" + second.split("compared with the prediction")[1], "4K", (measured, predicted))


def main():
    chorale, source = sys.argv[1], pathlib.Path(sys.argv[2])
    path = source / f"plans/shipped/{NAME}.json"
    plan = json.loads(path.read_text())
    run = ["run", str(path), "--bytes"]
    without_times = lambda text: re.sub(r"[\d.]+", "N", " ".join(text.split()))
    for more, launch in [([], 3), (["--processes"], 3), (["--seed", "1", "--repeat", "1"], 1)]:
        result, talk = call(chorale, [*run, "4K", *more, "--profile"])
        check_profile(plan, talk, "4K", launch)
        plain, nothing = call(chorale, [*run, "4K", *more])
        check(not nothing and without_times(plain) == without_times(result), f"--profile changes the result: {result}")
    _, talk = call(chorale, [*run, "4K,64K", "--profile"])
    first, second = talk.split("profile of ")[1:]
    check_profile(plan, "profile of " + first, "4K", 3)
    check_profile(plan, "profile of " + second, "64K", 3)
    bench = ["bench", str(path), "--bytes", "4K", "--calls", "2", "--warmup", "1", "--format", "json"]
    for more in [[], ["--processes"]]:
        result, talk = call(chorale, [*bench, *more, "--profile"])
        json.loads(result)
        check_profile(plan, talk[talk.index("profile of "):], "4K", None)
    check_comparisons(chorale, source, path, plan)


main()
