#!/usr/bin/env python3
"""Tests every plan of MSCCL++: plans.py CHORALE PLANS [filter ...] [--markdown FILE] [--gpu-results FILE ...]

CHORALE is the command and PLANS is the folder of the plans. Each plan must load, survive a round trip through its canonical
text and CBOR, and be shown in words. It must pass the checks and the proofs. The plans in REFUSED and UNPROVED are the
exceptions, and must have the finding that is named there. Then each plan runs on the CPU: in every form of packets if it has
packets, out of place, and in place if it allows that, with sizes that MSCCL++ accepts and sizes that it refuses. Every element
must be right. A plan of the `test` collective does not define its result. It must end, or report where it cannot (STUCK).

--gpu-results adds the output of `cuda_plans --share-gpus --results FILE` on a machine with GPUs to the table that --markdown
writes (docs/mscclpp.md). There every plan must give the same bits as on the CPU.
"""
import argparse
import concurrent.futures
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
LIMIT_S = 300
ELEMENT = 4  # bytes of the type that runs
PARTS = 3, 17, 1025  # elements of a part, which chunks and alignment do not divide
COLUMNS = "plan", "loads", "round trip", "proved", "runs on the CPU", "runs on GPUs", "equals the oracle", "recompiled equal"
REFUSED = {  # plan: the finding that the checks must report
    "unit_tests-signal_wait-signal_wait_fuse_test": "this signal is never awaited: memory channel 0 of rank 0",
}
RELAXED = "a relaxed signal or a packet", """a rank's output is written by its peers, and only a relaxed
signal tells it so before it ends"""
NOBODY = "this wait for packets never ends: no remaining operation would answer it", "no operation sends the packets that are waited for"
UNPROVED = {  # beginning of a name: what the proofs have to say, and why it is right
    "executor_plan-reduce_nvls": RELAXED,
    "executor_tests-reduce_nvls": RELAXED,
    "single_node-allgather_nvls_zero_copy__": RELAXED,
    "single_node-allgather_ring__": RELAXED,
    "unit_tests-read_put_packet_test": NOBODY,
    "unit_tests-reduce_copy_packet_test": NOBODY,
    "unit_tests-reduce_packet-reduce_packets_": NOBODY,
    "unit_tests-reduce_send_packet_test": NOBODY,
    "unit_tests-put-put_fuse_test": (
        "this reads input[0:1] of rank 0, which another operation overwrites: nothing orders the two",
        "each rank reads the chunks of its input that the other one overwrites"),
    "unit_tests-switch_broadcast_test": (
        "this overwrites input[0:1] of rank 1, and nothing says that this rank has begun",
        "a peer's input is overwritten before its launch may have begun"),
}
STUCK = {  # plan: where it waits for packets that none of its operations sends, which its run must report
    "unit_tests-read_put_packet_test": "rank 0 block 0 op 0 read_put_packets: waits for packets",
    "unit_tests-reduce_copy_packet_test": "rank 0 block 0 op 0 reduce_copy_packets: waits for packets",
    "unit_tests-reduce_packet-reduce_packets_fuse_test": "rank 0 block 0 op 0 reduce_packets: waits for packets",
    "unit_tests-reduce_packet-reduce_packets_test": "rank 0 block 0 op 0 reduce_packets: waits for packets",
    "unit_tests-reduce_send_packet_test": "rank 0 block 0 op 0 reduce_send_packets: waits for packets",
}
PACKETS = {"cpkt", "upkt", "ppkt", "rppkt", "repkt", "respkt", "recpkt", "recspkt", "gstorepkt"}


class Trouble(Exception):
    """Reports the fault of a plan, in one line."""


def flatten(ops):
    for op in ops:
        yield op
        yield from flatten(op.get("ops", []))


class Plan:
    def __init__(self, path):
        self.path, self.name = path, path.stem
        self.json = json.loads(path.read_text())
        self.ranks = len(self.json["gpus"])
        self.collective = self.json["collective"]
        self.inplace = self.json["inplace"]
        blocks = [block for gpu in self.json["gpus"] for block in gpu["threadblocks"]]
        self.packets = any(op["name"] in PACKETS for block in blocks for op in flatten(block["ops"]))

    def sizes(self, parts):
        """Returns bytes of messages: a size that MSCCL++ accepts (whole chunks of its alignment), and then odd
        sizes."""
        scattered = {"reducescatter": self.ranks, "alltoall": self.ranks, "allgather": self.ranks}
        chunks = [gpu["output_chunks" if self.collective == "allgather" else "input_chunks"] for gpu in self.json["gpus"]]
        segments = scattered.get(self.collective, max(chunks) if self.collective == "test" else 1)
        step = ELEMENT * max(segments, 1)
        accepted = self.json.get("buffer_alignment", 16) * max(max(chunks), 1)
        least = self.json.get("min_message_size", 0)
        accepted *= max(1, -(-least // accepted))
        odd = [part * step + (-(-least // step) * step) for part in parts]
        most = self.json.get("max_message_size", 2**64 - 1)
        return [size for size in sorted({accepted, 4 * accepted, *odd}) if least <= size <= most]


class Command:
    def __init__(self, chorale):
        self.chorale = chorale
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("CHORALE_")}

    def __call__(self, *words):
        try:
            return subprocess.run([self.chorale, *map(str, words)], text=True, capture_output=True, timeout=LIMIT_S,
                                  env=self.environment)
        except subprocess.TimeoutExpired:
            raise Trouble(f"chorale {words[0]} did not end in {LIMIT_S} s") from None

    def must(self, *words):
        done = self(*words)
        if done.returncode:
            said = (done.stderr + done.stdout).strip().splitlines()
            said.sort(key=lambda line: not line.startswith("error"))  # sorts errors before notes
            raise Trouble(f"chorale {words[0]}: {said[0] if said else f'exit {done.returncode}'}")
        return done.stdout


def round_trip(command, plan, folder):
    """Checks that JSON to CBOR to JSON gives the same text, and that the text says what the plan says."""
    text, binary, again = (folder / f"{plan.name}.{end}" for end in ("json", "cbor", "again.json"))
    command.must("convert", plan.path, "-o", text)
    command.must("convert", text, "-o", binary)
    command.must("convert", binary, "-o", again)
    if text.read_bytes() != again.read_bytes():
        raise Trouble("CBOR gives another text")
    command.must("diff", plan.path, text)


def unproved(plan):
    return next((what for name, what in UNPROVED.items() if plan.name.startswith(name)), None)


def run(command, plan, parts, *settings):
    """Runs a plan in all its forms. Returns "yes" if every element was right, "ends" if the plan does not define its
    result."""
    if unproved(plan):
        settings = *settings, "--allow", "proofs"
    if plan.name in STUCK:
        done = command("run", plan.path, "--no-times", "--dtype", "i32", "--bytes", plan.sizes(parts)[0], "--timeout", "5s",
                       *settings)
        if done.returncode == 3 and ("cuda" in settings or STUCK[plan.name] in done.stderr):
            return "stops: waits for packets that nobody sends"
        raise Trouble(f"did not stop at '{STUCK[plan.name]}', but {done.stderr}")
    verdicts = set()
    for packet in ("ll16", "ll8", "ll128") if plan.packets else ("ll16",):
        for place in ("--out-of-place", "--in-place") if plan.inplace else ("--out-of-place",):
            sizes = ",".join(map(str, plan.sizes(parts)))
            out = command.must("run", plan.path, "--no-times", "--repeat", 2, "--dtype", "i32", "--bytes", sizes,
                               "--packet", packet, place, *settings)
            verdicts |= {line.split()[-1] for line in out.splitlines()[2:]}
    if verdicts == {"yes"}:
        return "yes"
    if verdicts == {"unknown"} and plan.collective == "test":
        return "ends"
    raise Trouble(f"verdicts {sorted(verdicts)}")


def examine(command, plan):
    """Returns the first columns of a plan's row, and the plan's fault."""
    row, trouble = {"plan": plan.name}, []

    def column(name, action):
        try:
            row[name] = action() or "yes"
        except Trouble as wrong:
            row[name] = "NO"
            trouble.append(f"{plan.name}, {name}: {wrong}")

    def loads():
        if f"plan {plan.json['name']}: " not in command.must("show", plan.path):
            raise Trouble("is not shown")

    def proves():
        if plan.name in REFUSED:
            return "refused by a check"
        if not unproved(plan):
            command.must("check", plan.path)
            return "yes"
        expected, reason = unproved(plan)
        done = command("check", plan.path)
        if done.returncode != 1 or expected not in done.stderr:
            raise Trouble(f"check did not say '{expected}', but {done.stderr}")
        return "no: " + " ".join(reason.split())

    def runs():
        expected = REFUSED.get(plan.name)
        if not expected:
            return run(command, plan, PARTS)
        done = command("check", plan.path)
        if done.returncode != 1 or expected not in done.stderr:
            raise Trouble(f"check did not say '{expected}', but {done.stderr}")
        return "refused: a signal that nobody awaits"

    column("loads", loads)
    with tempfile.TemporaryDirectory() as folder:
        column("round trip", lambda: round_trip(command, plan, pathlib.Path(folder)))
    column("proved", proves)
    column("runs on the CPU", runs)
    return row, trouble


def table(rows, gpu_results, manifest):
    """Writes docs/mscclpp.md."""
    on_gpu, recompiled = {}, {}
    for path in gpu_results:
        for row in csv.DictReader(path.open(), delimiter="\t"):
            on_gpu[row["plan"]] = f"{row['verdict']}, {row['gpus']}" if row["verdict"] in ("yes", "ends") else row["verdict"]
    for row in csv.DictReader(manifest.open(), delimiter="\t"):
        recompiled[row["plan"]] = "yes" if row["verdict"] == "equal" else row["verdict"]
    lines = [
        "# MSCCL++'s plans in Chorale", "",
        "This table shows which of MSCCL++'s plans Chorale loads, proves and runs. `tests/mscclpp/plans.py --markdown` writes it from a",
        "run. These are the columns and values:",
        "",
        "- *round trip* says whether the plan stays the same when it is converted to CBOR and back.",
        "- *proved* says whether the plan is proved ([proof.md](proof.md)). If not, it gives the reason.",
        "- *runs on GPUs* gives the verdict and the number of GPUs.",
        "- *ends* means that a plan of the `test` collective ran to its end. That collective defines no result.",
        "- *equals the oracle* says whether every result is the expected one. *-* means there that no result is promised.",
        "- *-* means elsewhere that nothing was run.",
        "- *recompiled equal* says whether the same program in Chorale's DSL, compiled for MSCCL++, gives this plan.", "",
        "| " + " | ".join(COLUMNS) + " |", "| :-- " * len(COLUMNS) + "|"]
    for row in rows:
        row["runs on GPUs"] = on_gpu.get(row["plan"], "-")
        ran = [row["runs on the CPU"], row["runs on GPUs"].split(",")[0]]
        wrong = any(verdict.startswith("NO") for verdict in ran)
        row["equals the oracle"] = "NO" if wrong else "yes" if "yes" in ran else "-"
        row["recompiled equal"] = recompiled.get(row["plan"], "-")
        lines.append("| " + " | ".join(row[column] for column in COLUMNS) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chorale")
    parser.add_argument("plans", type=pathlib.Path)
    parser.add_argument("filter", nargs="*", help="parts of names: only plans that have one of them")
    parser.add_argument("--markdown", type=pathlib.Path, help="where the table goes")
    parser.add_argument("--gpu-results", type=pathlib.Path, nargs="*", default=[], help="of earlier runs on GPUs")
    options = parser.parse_args()
    files = sorted(options.plans.glob("*.json"))
    if not files:
        print(f"skipped: no plans in {options.plans}")
        sys.exit(77)
    if options.filter:
        files = [file for file in files if any(part in file.stem for part in options.filter)]
    plans = [Plan(file) for file in files]
    command = Command(options.chorale)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        done = list(pool.map(lambda plan: examine(command, plan), plans))
    complaints = [complaint for _, trouble in done for complaint in trouble]
    print(*complaints, f"{len(plans)} plans, {len(complaints)} complaints", sep="\n")
    if options.markdown:
        manifest = HERE / "manifest.tsv"
        options.markdown.write_text(table([row for row, _ in done], options.gpu_results, manifest))
    sys.exit(bool(complaints))


if __name__ == "__main__":
    main()
