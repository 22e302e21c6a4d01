#!/usr/bin/env python3
"""Runs every plan of MSCCL++ on the adversarial machine: adversarial.py CHORALE PLANS [--schedules N] [filter ...]

CHORALE is the command and PLANS is the folder of the plans. A plan must pass all schedules. If FAILS lists it with a
reason, it must fail. A plan that the command refuses to run, because its checks find something, counts as failed.
"""
import argparse
import concurrent.futures
import pathlib
import subprocess
import sys

RELAXED = "publishes its data by relaxed signals alone"
NOBODY = "waits for what nobody sends"
CROSSED = "puts into what the peer reads at the same time"
UNASKED = "writes to a peer that has not said that its launch has begun"
FAILS = {  # the beginning of names: the reason
    "executor_plan-reduce_nvls": RELAXED,
    "executor_tests-reduce_nvls_": RELAXED,
    "executor_tests-reduce_nvls_pipeline_": RELAXED,
    "single_node-allgather_nvls_zero_copy__": RELAXED,
    "single_node-allgather_ring_": RELAXED,
    "unit_tests-put-put_fuse_test": CROSSED,
    "unit_tests-read_put_packet_test": NOBODY,
    "unit_tests-reduce_copy_packet_test": NOBODY,
    "unit_tests-reduce_packet-reduce_packets_": NOBODY,
    "unit_tests-reduce_send_packet_test": NOBODY,
    "unit_tests-signal_wait-signal_wait_fuse_test": NOBODY,
    "unit_tests-switch_broadcast_test": UNASKED,
}


def run(chorale, plan, schedules):
    command = [chorale, "run", str(plan), "--allow", "proofs", "--adversarial", "--schedules", str(schedules)]
    done = subprocess.run(command, capture_output=True, text=True)
    said = next((line for line in done.stderr.splitlines() if "error: " in line), done.stderr.strip())
    why = next((reason for name, reason in FAILS.items() if plan.stem.startswith(name)), None)
    if done.returncode not in (0, 1, 3):
        return f"{plan.stem}: exit {done.returncode}: {said}"
    if done.returncode == 0 and why:
        return f"{plan.stem} stands, but {why}"
    if done.returncode != 0 and not why:
        return f"{plan.stem}: {said}"
    return None


parser = argparse.ArgumentParser()
parser.add_argument("chorale")
parser.add_argument("plans", type=pathlib.Path)
parser.add_argument("filter", nargs="*")
parser.add_argument("--schedules", type=int, default=200)
arguments = parser.parse_args()
if not arguments.plans.is_dir():
    print(f"skipped: there is no {arguments.plans}")
    sys.exit(77)
plans = [plan for plan in sorted(arguments.plans.glob("*.json"))
         if all(word in plan.stem for word in arguments.filter)]
with concurrent.futures.ThreadPoolExecutor() as pool:
    found = [line for line in pool.map(lambda plan: run(arguments.chorale, plan, arguments.schedules), plans) if line]
print("\n".join(found + [f"{len(plans)} plans, {arguments.schedules} schedules each: {len(found)} not as expected"]))
sys.exit(bool(found) or not plans)
