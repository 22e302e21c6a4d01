#!/usr/bin/env python3
"""Runs the benchmarks of docs/benchmarks.md on the GPUs of this machine, and writes the tables of that page.

    bench/report.py BUILD FOLDER --ranks N [--parts NAME...] [--commit TEXT] [--torch python3] [--peers FOLDER]

With --torch, PyTorch's operations are timed beside plans and schedules, and torch.distributed on Chorale and on NCCL. With --peers,
the programs of a folder are timed too. They are named as those of nccl-tests, such as all_reduce_perf.

BUILD is a build folder configured with -DCHORALE_CUDA=ON -DCHORALE_BENCH=ON. FOLDER receives the output of every program,
and page.md with the tables of all parts that have been timed there, now or before. If a program fails or exceeds its time
limit, the script prints its name and runs the others. Exit status: 0, or 1 if one failed or missed its goal.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHIPPED = ROOT / "plans" / "shipped"

# These shipped plans may be the fastest for long messages. Some do not exist for all numbers of ranks. For short messages all are
# timed, with every form of packets.
COLLECTIVES = {
    "allreduce": ("all_pairs_b64", "all_pairs_b128", "ring_b*", "staged_b64"),
    "allgather": ("direct_b64", "by_peer_b*", "ring_b64", "by_port"),
    "reducescatter": ("direct_b*", "staged_b64"),
    "alltoall": ("direct_b64", "by_peer_b*", "in_turns_b64", "by_port"),
}
LENGTHS = (("short", "1K:8M:2"), ("long", "16M:1G:2"))
MOVERS = ("ce_put", "ce_get", "plan")
BLOCKS = (4, 8, 16)  # the numbers of thread blocks with which the cost of interpreting is measured
LIMITS = "8,16,24,32,64"  # the numbers of thread blocks with which plans are compared with NCCL
# These shipped plans may be the fastest within one of these limits, from 1 MB on.
WITHIN = {
    "allreduce": ("two_shot_b16", "two_shot_b32", "all_pairs_b16", "all_pairs_b24", "all_pairs_b64", "ring_b8", "ring_b16",
                  "ring_b24", "ring_b64"),
    "allgather": ("packets_b16", "packets_b64", "direct", "direct_b8", "direct_b12", "direct_b16", "by_peer_b64", "by_port_b8",
                  "by_port_b24"),
    "reducescatter": ("packets_b16", "packets_b32", "direct_b16", "direct_b24", "direct_b64", "staged_b8", "staged_b16",
                      "staged_b24"),
    "alltoall": ("packets_b16", "packets_b64", "direct", "direct_b8", "direct_b12", "direct_b16", "by_peer_b64", "by_port_b8",
                 "by_port_b24"),
}
PARTS = (*COLLECTIVES, "blocks", "pytorch", "interpreting", "tiles", "fused", "overlap", "movers")


def table(title, names, rows, words=(0,)):
    """Returns a section in Markdown, or "" without rows. The columns `words` hold no numbers."""
    if not rows:
        return ""
    bars = [":--" if column in words else "--:" for column in range(len(names))]
    lines = ["| " + " | ".join(str(cell) for cell in row) + " |" for row in (names, bars, *rows)]
    return "\n".join([f"## {title}", "", *lines, ""])


class Timing:
    def __init__(self, arguments):
        self.build, self.tools, self.bench = arguments.build, arguments.build / "tools", arguments.build / "bench"
        self.folder, self.ranks = arguments.folder, arguments.ranks
        self.commit, self.torch = arguments.commit, arguments.torch
        peers = ROOT / "bench" / "peers"
        self.peers = ["--peer", f"PyTorch={self.torch} {peers}/torch_symmetric.py"] if self.torch else []
        if arguments.peers:
            self.peers += ["--peer", f"{arguments.peers.name}=python3 {peers}/nccl_tests.py {arguments.peers}"]
        self.failed = False

    def run(self, name, *command, limit=240):
        """Runs a program with its output in FOLDER/name.log."""
        begin = time.monotonic()
        with open(self.folder / f"{name}.log", "w") as log:
            try:
                status = subprocess.run([str(word) for word in command], stdout=log, stderr=subprocess.STDOUT,
                                        timeout=limit).returncode
            except subprocess.TimeoutExpired:
                status = f"did not end in {limit} s"
        verdict = {0: "ok", 1: "missed its goal"}.get(status, f"FAILED ({status})")
        self.failed |= status != 0
        print(f"{name:<28} {verdict}, {time.monotonic() - begin:.0f} s", flush=True)

    def blocks(self):
        """Times plans of all collectives by number of thread blocks, beside NCCL with as many CTAs."""
        files = [SHIPPED / f"{name}_{plan}_{self.ranks}.json" for name, plans in WITHIN.items() for plan in plans]
        result = self.folder / "blocks"
        self.run("blocks", self.tools / "chorale", "bench", *(file for file in files if file.exists()), "--ranks", self.ranks,
                 "--backend", "cuda", "--dtype", "bf16", "--bytes", "1M:1G:4", "--graph", "--calls", 20, "--max-blocks", LIMITS,
                 "--all", "--format", "csv", "-o", f"{result}.csv", "--markdown", f"{result}.md", "--tuned-out",
                 f"{result}.json", "--commit", self.commit)

    def part(self, name):
        if name in COLLECTIVES:
            for length, sizes in LENGTHS:
                plans = [name] if length == "short" else sorted(
                    {plan for pattern in COLLECTIVES[name] for plan in SHIPPED.glob(f"{name}_{pattern}_{self.ranks}.json")})
                result = self.folder / f"{name}_{length}"
                self.run(result.name, self.tools / "chorale", "bench", *plans, "--ranks", self.ranks, "--backend", "cuda",
                         "--dtype", "bf16", "--bytes", sizes, "--all", *self.peers, "--format", "csv", "-o", f"{result}.csv",
                         "--markdown", f"{result}.md", "--commit", self.commit)
        elif name == "blocks":
            self.blocks()
        elif name == "pytorch":
            if self.torch:
                installed = self.folder / "installed"
                self.run("install", "cmake", "--install", self.build, "--prefix", installed)
                self.run(name, "env", f"PYTHONPATH={installed}/share/chorale/torch", self.torch, ROOT / "bench" / "pytorch.py", "--ranks",
                         self.ranks, "--bytes", "1K,16K,256K,1M,4M,16M,64M,256M,1G", "--output", self.folder / "pytorch.md")
        elif name == "interpreting":
            for blocks in BLOCKS:
                self.run(f"interpreting_{blocks}", self.bench / "bench_gpu_interpreting", "--ranks", self.ranks, "--blocks", blocks)
        elif name == "tiles":
            self.run(name, self.bench / "bench_tiles", "--port", limit=400)
        elif name == "fused":
            self.run(name, self.bench / "bench_fused", self.ranks, "--markdown")
        elif name == "overlap":
            torch = ("--torch", self.torch, "--torch-script", ROOT / "bench" / "overlap" / "torch_fused.py") if self.torch else ()
            self.run(name, self.bench / "bench_overlap", self.ranks, "--form", "ce_", *torch, "--json",
                     self.folder / "overlap.json", limit=500)
        else:
            # Each mover has a separate run, without the streams and thread blocks of the others.
            for mover in MOVERS:
                self.run(f"movers_{mover}", self.bench / "bench_overlap", self.ranks, "--only", "all-gather", "--shapes", 1, "--form",
                         mover, "--json", self.folder / f"movers_{mover}.json")


class Page:
    """Makes the tables from the results in a folder."""

    def __init__(self, folder, ranks):
        self.folder, self.ranks = folder, ranks

    def text(self, name):
        file = self.folder / name
        return file.read_text() if file.exists() else ""

    def rows(self, name, columns):
        """Returns the lines that have this many columns and are not headings, as words."""
        split = (line.split() for line in self.text(name).splitlines())
        return [words for words in split if len(words) == columns and any(re.fullmatch(r"[\d.]+", word) for word in words)]

    def write(self):
        parts = [f"# {self.ranks} GPUs\n", self.machine(), *(self.collective(name) for name in COLLECTIVES),
                 *(self.by_blocks(name) for name in WITHIN), self.pytorch(), self.interpreting(), self.tiles(), self.fused(),
                 self.overlap(), self.movers()]
        (self.folder / "page.md").write_text("\n".join(part for part in parts if part))

    def machine(self):
        for name in (*(f"{name}_short.md" for name in COLLECTIVES), "blocks.md"):
            found = re.search(r"^\| machine \| value \|\n(\|.*\n)+", self.text(name), re.M)
            if found:
                return found[0]
        return ""

    def pytorch(self):
        tables = self.text("pytorch.md")
        return f"## torch.distributed, {self.ranks} ranks\n\n{tables}" if tables else ""

    def collective(self, name):
        """Returns the tables of two runs, out of place and in place, with the rows of the second run after those of the first."""
        sections = {}
        for length, _ in LENGTHS:
            for section in self.text(f"{name}_{length}.md").split("\n## ")[1:]:
                heading, rest = section.split("\n", 1)
                table = [line for line in rest.splitlines() if line.startswith("| ")]
                if heading.startswith(f"{name}, "):
                    # The first two lines are the names of the columns and the bars.
                    sections.setdefault(heading, table[:2]).extend(table[2:])
        return "\n".join(f"## {heading}\n\n" + "\n".join(lines) + "\n" for heading, lines in sections.items())

    def by_blocks(self, name):
        """Returns the section with the tables by number of thread blocks."""
        sections = self.text("blocks.md").split("\n## ")[1:]
        return "\n".join(f"## {section.rstrip()}\n" for section in sections if section.startswith(f"{name} by thread blocks"))

    def interpreting(self):
        rows = []
        for blocks in BLOCKS:
            for algorithm, size, *times in self.rows(f"interpreting_{blocks}.log", 5):
                rows.append((algorithm, blocks, f"{int(size) >> 10}K" if int(size) < 1 << 20 else f"{int(size) >> 20}M", *times))
        return table(f"The cost of interpreting: packet all-reduce, {self.ranks} ranks",
                     ("algorithm", "blocks", "size", "hand-written", "plan", "plan / hand-written"), rows)

    def tiles(self):
        best = {}
        for way, form, size, blocks, _, _, _, us, rate, engine, nccl in self.rows("tiles.log", 11):
            for key in ((way, size, ""), *([(way, size, form)] if form == "port" else [])):
                if key not in best or float(us) < float(best[key][2]):
                    best[key] = (form, blocks, us, rate, engine, nccl)
        names = ("way", "size", "as", "blocks", "us", "GB/s", "of the copy engine", "of NCCL")
        return table("The device library's sends and receives", names,
                     [(way, size, *row) for (way, size, form), row in best.items() if not form], words=(0, 2)) + "\n" + \
            table("The same over a proxy", names,
                  [(way, size, *row) for (way, size, form), row in best.items() if form], words=(0, 2))

    def fused(self):
        rows, kernel = [], ""
        for line in self.text("fused.log").splitlines():
            cells = [cell.strip() for cell in line.strip("| ").split("|")]
            if re.match(r"\w.*, \d GPUs$", line):
                kernel = line.rsplit(",", 1)[0]
            elif len(cells) == 6 and re.fullmatch(r"\d+[KM]", cells[0]):
                size, _, us, form, theirs, ratio = cells
                rows.append((kernel, size, us, theirs, ratio, form))
        return table(f"Fused kernels, {self.ranks} ranks", ("kernel", "size", "us", "NCCL and a kernel", "ratio", "form"), rows,
                     words=(0, 5))

    def results(self, name):
        return json.loads(self.text(name) or "{}").get("results", ())

    def overlap(self):
        rows = []
        for one in self.results("overlap.json"):
            ms = one["ms"]
            for form in one["forms"][:2]:
                rows.append((one["workload"], f"{one['M']} x {one['K']} x {one['N']}",
                             *(f"{ms[key]:.3f}" if key in ms else "-" for key in ("serial", "product", "nccl", "torch_fused")),
                             form["name"], f"{form['ms']:.3f}",
                             *(f"{form[key]:.2f}" if key in form else "-"
                               for key in ("of_ideal", "of_bound", "beside_serial", "beside_torch"))))
        return table(f"Products that overlap with transfers, {self.ranks} ranks",
                     ("program", "shape", "NCCL, then cuBLAS", "product alone", "NCCL alone", "PyTorch", "form", "ms", "of ideal",
                      "of bound", "beside serial", "beside PyTorch"), rows, words=(0, 1, 6))

    def movers(self):
        rows = []
        for mover in MOVERS:
            for one in self.results(f"movers_{mover}.json"):
                form = one["forms"][0]
                rows.append((mover, form["name"].removesuffix(f" {mover}"), f"{form['ms']:.3f}", f"{form['of_ideal']:.2f}",
                             f"{form['beside_serial']:.2f}" if "beside_serial" in form else "-"))
        return table("By every mover, all-gather and product of 8192 x 8192 x 8192",
                     ("mover", "form", "ms", "of ideal", "beside serial"), rows, words=(0, 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--ranks", type=int, choices=(2, 4, 8), required=True, help="number of GPUs, with one process each")
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=PARTS, metavar="NAME",
                        help="some of " + ", ".join(PARTS) + "; default: all")
    parser.add_argument("--commit", default="unknown", help="the commit that BUILD was made from, for the page")
    parser.add_argument("--torch", help="a Python with PyTorch, to time its fused operations beside ours")
    parser.add_argument("--peers", type=pathlib.Path, help="a folder with programs like those of nccl-tests; its name is in the tables")
    arguments = parser.parse_args()
    needs_bench = not {*COLLECTIVES, "blocks"}.issuperset(arguments.parts)  # these parts take only the command chorale
    needed = "bench/bench_fused" if needs_bench else "tools/chorale"
    if not (arguments.build / needed).exists():
        sys.exit(f"error: {arguments.build} has no {needed}: configure with -DCHORALE_CUDA=ON -DCHORALE_BENCH=ON and build")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    timing = Timing(arguments)
    for name in arguments.parts:
        timing.part(name)
        Page(arguments.folder, arguments.ranks).write()
    print(f"tables: {arguments.folder / 'page.md'}")
    return timing.failed


if __name__ == "__main__":
    sys.exit(main())
