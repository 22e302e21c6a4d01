#!/usr/bin/env python3
"""Checks that docs/plan.schema.json is the command's output, and that it accepts plans and nothing else:
plan_schema.py <chorale> <source folder>"""
import copy
import json
import pathlib
import subprocess
import sys


def main():
    chorale, source = sys.argv[1], pathlib.Path(sys.argv[2])
    kept = (source / "docs/plan.schema.json").read_text()
    if kept != subprocess.run([chorale, "ops", "--schema"], capture_output=True, text=True, check=True).stdout:
        sys.exit("docs/plan.schema.json is not what `chorale ops --schema` prints")
    try:
        import jsonschema
    except ImportError:
        print("skipped: no Python module jsonschema on this machine")
        sys.exit(77)
    jsonschema.Draft202012Validator.check_schema(json.loads(kept))
    schema = jsonschema.Draft202012Validator(json.loads(kept))

    plans = {}
    for pattern in ("plans/shipped/*_2.json", "plans/shipped/schedules/*.json", "tests/golden/sources/*.json"):
        for path in sorted(source.glob(pattern)):
            if path.stat().st_size < 100_000:
                plans[path.name] = json.loads(path.read_text())
    used = {operation["name"] for plan in plans.values() for rank in plan["gpus"] for block in rank["threadblocks"]
            for operation in block["ops"]}
    for name, plan in plans.items():
        for error in schema.iter_errors(plan):
            sys.exit(f"{name}: {error.json_path}: {error.message}")
    if not {"put", "wait", "re", "repkt", "flush"} <= used:
        sys.exit(f"the plans have too few operations: {sorted(used)}")

    right = plans["allreduce_one_shot_2.json"]
    operations = right["gpus"][0]["threadblocks"][0]["ops"]
    moves = next(at for at, operation in enumerate(operations) if "src_buff" in operation)
    for what, spoil in {
            "no gpus": lambda plan, _: plan.pop("gpus"),
            "another protocol": lambda plan, _: plan.update(protocol="LL128"),
            "chunks below zero": lambda plan, _: plan["gpus"][0].update(input_chunks=-1),
            "another operation": lambda _, operation: operation.update(name="send"),
            "no source": lambda _, operation: operation.pop("src_buff"),
            "an empty source": lambda _, operation: operation.update(src_buff=[]),
            "a source elsewhere": lambda _, operation: operation["src_buff"][0].update(type="x"),
            "a source without a size": lambda _, operation: operation["src_buff"][0].pop("size"),
            "another version": lambda plan, _: plan.update(chorale={"version": "2.0"}),
    }.items():
        plan = copy.deepcopy(right)
        spoil(plan, plan["gpus"][0]["threadblocks"][0]["ops"][moves])
        if schema.is_valid(plan):
            sys.exit(f"a plan with {what} is valid")


main()
