#!/usr/bin/env python3
"""Checks every plan with 64 MiB, and with 8 bytes more, which are no multiple of 16: large.py CHORALE RANKS PLAN...
[--share-gpus]. `chorale bench` runs all plans in one set of processes. It only notes a plan that refuses a size,
but here every plan must run."""
import csv
import subprocess
import sys

SIZES = (64 << 20, (64 << 20) + 8)


def main():
    chorale, ranks = sys.argv[1:3]
    switches = [word for word in sys.argv[3:] if word.startswith("--")]
    # Codecs encode no integers.
    plans = [word for word in sys.argv[3:] if not word.startswith("--") and "_quantised_" not in word]
    run = subprocess.run([chorale, "bench", *plans, "--ranks", ranks, "--backend", "cuda", "--dtype", "i8", "--bytes",
                          ",".join(map(str, SIZES)), "--graph", "--calls", "1", "--warmup", "1", "--no-nccl", "--all",
                          "--format", "csv", *switches], stdout=subprocess.PIPE, text=True)
    rows = list(csv.DictReader(run.stdout.splitlines()))
    not_right = [row for row in rows if row["wrong"] != "0" or not row["time_us"]]
    for row in not_right:
        print(f"{row['plan']} of {row['size']} bytes: {row['note'] or row['wrong'] + ' wrong elements'}")
    if len(rows) != len(plans) * len(SIZES):
        sys.exit(f"{len(plans)} plans of {len(SIZES)} sizes, and {len(rows)} results")
    if run.returncode or not_right:
        sys.exit(f"exit status {run.returncode}, {len(not_right)} of {len(rows)} results are not right")
    print(f"{len(rows)} results of {len(plans)} plans are right")


if __name__ == "__main__":
    main()
