#!/usr/bin/env python3
"""Runs MSCCL++'s own scripts with only their imports changed, and compares their plans: mscclpp_scripts.py MSCCLPP PLANS

MSCCLPP is a checkout of https://github.com/microsoft/mscclpp, or a bare repository of it, and PLANS is the folder of its plans with
MANIFEST.tsv. A script imports chorale.language in place of mscclpp.language, and chorale.mscclpp.install() serves the one that also
imports mscclpp. Plans that were written by mended scripts come from the same mends here (MENDS). Prints a row for every plan that
is not equal, and the number of those that are.
"""
import csv
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import chorale

HERE = pathlib.Path(__file__).resolve().parent
TESTS = "python/mscclpp/language/tests/"
START = """
import runpy, sys
sys.path.insert(0, {folder!r})
import chorale.mscclpp
chorale.mscclpp.install("mscclpp", {allow!r})
sys.argv = {argv!r}
runpy.run_path(sys.argv[0], run_name="__main__")
"""
# SCRIPTS maps the beginning of a plan's name to its script, and to the arguments if the manifest has none. The manifest names no
# script for the checked-in plans, but these scripts wrote them.
SCRIPTS = {
    "unit_tests-put-put_with_signal_fuse_test": (TESTS + "unit_tests/put/put_with_signal_fuse_test.py", None),
    "single_node-allgather_ring": (TESTS + "single_node/allgather_ring.py", None),
    "single_node-alltoall-alltoall_pkt": (TESTS + "single_node/alltoall/alltoall_pkt.py", None),
    "single_node-allgather-scalable": (TESTS + "single_node/allgather.py", None),
    "single_node-allgather_tbg-scalable": (TESTS + "single_node/allgather_tbg.py", None),
    "execution_file-allreduce_packet": (TESTS + "single_node/allreduce_pkt.py", "--num_gpus 2"),
    "execution_file-allreduce": (TESTS + "single_node/allreduce.py", "--num_gpus 2"),
    "execution_file-allreduce_pipeline": (TESTS + "single_node/allreduce_pipeline.py", ""),
    "executor_plan-reduce_nvls_pipeline": ("test/executor-tests/algos/reduce_nvls_pipeline.py", "--num_gpus 2"),
    "executor_plan-reduce_nvls": ("test/executor-tests/algos/reduce_nvls.py", "--num_gpus 2"),
    "executor_plan-reduce_pack_tbg": ("test/executor-tests/algos/reduce_pack_tbg.py", ""),
    "executor_plan-reduce_pack": ("test/executor-tests/algos/reduce_pack.py", ""),
    "executor_plan-transfer_pack": ("test/executor-tests/algos/transfer_pack.py", ""),
    "executor_plan-reduce": ("test/executor-tests/algos/reduce.py", ""),
}
# MENDS holds the changes that the authors of the plans made to scripts that do not run as they are. For example, the number of GPUs
# becomes an argument of two of them.
MENDS = {
    "-scalable": [(r"gpu_size = 2\b", "gpu_size = args.num_gpus"),
                  (r'(parser\.add_argument\("--name")', r'parser.add_argument("--num_gpus", type=int)\n\1')],
    "put_with_signal_fuse_test": [(r"(\n *)(ch\.wait\(tb=0, data_sync=SyncType\.after\))(\n\n *print)", r"\1\2\1\2\3")],
}


class Scripts:
    def __init__(self, checkout, plans, folder):
        self.checkout, self.plans, self.folder = checkout, plans, folder
        with open(HERE.parent / "mscclpp" / "manifest.tsv", encoding="utf-8") as file:
            self.allowed = {row["plan"]: (row["allow"].split(), row["verdict"]) for row in csv.DictReader(file, delimiter="\t")}

    def text_of(self, path):
        file = self.checkout / path
        if file.exists():
            return file.read_text()
        shown = subprocess.run(["git", "-C", self.checkout, "show", "HEAD:" + path], text=True, capture_output=True)
        return shown.stdout if shown.returncode == 0 else None

    def put(self, path, name):
        text = self.text_of(path)
        if text is None:
            raise FileNotFoundError(path)
        for part, changes in MENDS.items():
            for pattern, replacement in changes if part in name else ():
                text, count = re.subn(pattern, replacement, text)
                assert count, f"{path} has nothing like {pattern}"
        file = self.folder / pathlib.Path(path).name
        file.write_text(re.sub(r"\bmscclpp\.language\b", "chorale.language", text))
        return file

    def why_not(self, name, path, arguments):
        """Returns why a plan is not equal; "" if it is."""
        script = next((what for what in sorted(SCRIPTS, key=len, reverse=True) if name.startswith(what)), None)
        if script:
            path, given = SCRIPTS[script]
            if given is not None:
                wanted = chorale.Plan.load(self.plans / (name + ".json"))
                arguments = f"--name {wanted.name} {given}"
        try:
            file = self.put(path, name)
        except FileNotFoundError:
            return f"there is no {path}"
        allow, verdict = self.allowed[name]
        start = START.format(folder=str(self.folder), allow=allow, argv=[str(file), *shlex.split(arguments)])
        done = subprocess.run([sys.executable, "-c", start], text=True, capture_output=True)
        if done.returncode:
            return done.stderr.strip().splitlines()[-1]
        plan = chorale.Plan.from_json(done.stdout)
        difference = chorale.Plan.load(self.plans / (name + ".json")).diff(plan, canonical=True)
        return " | ".join(difference.splitlines()[:4]) if difference else ""


def main():
    checkout, plans = map(pathlib.Path, sys.argv[1:3])
    with open(plans / "MANIFEST.tsv", encoding="utf-8") as file:
        rows = list(csv.DictReader((line for line in file if not line.startswith("#")), delimiter="\t"))
    with tempfile.TemporaryDirectory() as folder:
        scripts = Scripts(checkout, plans, pathlib.Path(folder))
        equal = 0
        for row in rows:
            name = row["file"].removesuffix(".json")
            why = scripts.why_not(name, row["program"], row["arguments"])
            equal += not why
            if why:
                print(f"{name}: {why}")
    print(f"{equal} of {len(rows)} plans are equal")


main()
