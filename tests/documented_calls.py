#!/usr/bin/env python3
"""Writes each snippet of the pages that calls the library as a file that a test in tests/documented includes:
documented_calls.py <folder>

A snippet's headers are those of its page so far, in PAGE_headers.inc. Types before its calls are in NAME_types.inc,
because a function cannot contain templates. A snippet with main() is whole, in NAME.inc. Addresses become one where the test's ranks connect. The test defines
what a page leaves out: LEFT_OUT_1 and so on. documented.py checks that every snippet has a row here and is included.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# tutorial.py follows the pages in docs/tutorial.
PAGES = [ROOT / "README.md", *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent.name != "tutorial"),
         ROOT / "bench/README.md", ROOT / "CONTRIBUTING.md"]

# Maps a page and a word of the snippet to the name of its file.
CALLS = {
    ("docs/applications.md", "World::join"): "execute",
    ("docs/applications.md", "needs_of"): "needs",
    ("docs/applications.md", "world_from_mpi"): "mpi",
    ("docs/applications.md", "TunedPlans"): "tuned_plans",
    ("docs/applications.md", "ScheduleRun"): "schedule_run",
    ("docs/applications.md", "Exchange"): "exchange",
    ("docs/applications.md", "cudaSetDevice"): "on_gpus",
    ("docs/applications.md", "survivors()"): "survivors",
    ("docs/experts.md", "mixture_of_experts"): "experts",
    ("docs/experts.md", "report_lost"): "experts_over",
    ("docs/fused-kernels.md", "direct_rendezvous"): "send_and_receive",
    ("docs/fused-kernels.md", "struct MaxConsume"): "max_hook",
    ("docs/fused-kernels.md", "struct TransposeAllToAll"): "transpose",
    ("docs/fused-kernels.md", "fused::Setup"): "ready_made",
    ("docs/fused-kernels.md", "struct LargestOfRow"): "epilogue",
    ("docs/fused-kernels.md", "struct RmsNormConsume"): "norm",
    ("docs/fused-kernels.md", "struct QuantisedGather"): "quantised_gather",
    ("docs/fused-kernels.md", "struct QuantisedSum"): "quantised_sum",
    ("docs/fused-kernels.md", "struct PlaceRows"): "place_rows",
    ("docs/fused-kernels.md", "struct DispatchTokens"): "dispatch",
    ("docs/fused-kernels.md", "TuneTable"): "tuned_launch",
    ("docs/host-schedules.md", "schedule.token()"): "tokens",
    ("docs/hosts.md", "World::join"): "several_hosts",
    ("docs/simulation.md", "Simulator"): "simulate",
    ("docs/topologies.md", "load_topology"): "topology",
    ("docs/traces.md", "config.trace"): "trace",
    ("docs/traces.md", "load_machine"): "compare",
    ("docs/tuning.md", "rank_order"): "rank_order",
}

# Maps snippets that are compiled but not run to the reason.
NOT_RUN = {
    "on_gpus": "it needs a GPU; tests/cuda/matrix_test.cpp captures and replays every plan there",
}


def snippets(page):
    """Returns the C++ of a page that is not a program."""
    found = re.findall(r"^```(?:cpp|c\+\+|c)\n(.*?)^```$", page.read_text(), re.M | re.S)
    return [block for block in found if "CHORALE_PROGRAM(" not in block]


def name_of(page, block):
    """Returns the name of a snippet's file; None if it has no row."""
    path = page.relative_to(ROOT).as_posix()
    return next((name for (of, word), name in CALLS.items() if of == path and word in block), None)


def wrong_rows():
    """Returns the snippets that no test runs or compiles, and the rows without a snippet."""
    tests = {path: path.read_text() for path in sorted((ROOT / "tests/documented").glob("*.cpp"))}
    found = []
    for page in PAGES:
        path = page.relative_to(ROOT).as_posix()
        for block in snippets(page):
            name = name_of(page, block)
            found.append(name)
            if not name:
                yield f"{path} shows calls that have no row in tests/documented_calls.py, which says what runs them:\n{block}"
                continue
            _, types, calls = pieces(block)
            for file in [f"{name}_types.inc"] * bool(types.strip()) + [f"{name}.inc"] * bool(calls.strip()):
                users = [test for test, text in tests.items() if f'#include "tests/documented/shown/{file}"' in text]
                if not users:
                    yield f"{path}: no test in tests/documented includes {file}"
                for test in users:
                    if (name in NOT_RUN) != test.name.endswith("_compiled.cpp"):
                        yield f"tests/documented/{test.name} includes {file}: what is not run is in *_compiled.cpp, and NOT_RUN has the reason"
    for (path, word), name in CALLS.items():
        if found.count(name) != 1:
            yield f"tests/documented_calls.py has a row for the snippet with '{word}', of which {path} shows {found.count(name)}: a row is for one snippet"


def pieces(block):
    """Returns what a test includes of a snippet: headers, types, calls."""
    if "int main(" in block:
        return "", "", block
    headers = "".join(re.findall(r"^#include.*\n", block, re.M))
    body = re.sub(r"^#include.*\n", "", block, flags=re.M)
    body = re.sub(r'"(shm|tcp)://[^"]*"', "ADDRESS", body)
    holes = iter(range(1, 100))
    body = re.sub(r"^ *\.\.\.$| \.\. (?=\})", lambda _: f" LEFT_OUT_{next(holes)} ", body, flags=re.M)
    types = body.rfind("\n};\n") + 4 if "\n};\n" in body else 0
    return headers, body[:types], body[types:]


def write(path, text):
    if text.strip():
        path.write_text(text)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for page in PAGES:
        headers = ""
        for block in snippets(page):
            name = name_of(page, block)
            more, types, calls = pieces(block)
            headers += more
            if name:
                write(folder / f"{name}_types.inc", types)
                write(folder / f"{name}.inc", calls)
        write(folder / f"{page.stem.lower()}_headers.inc", headers)
    (folder / "written").touch()


if __name__ == "__main__":
    main()
