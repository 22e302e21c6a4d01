#!/usr/bin/env python3
"""Compiles the bitcode library to PTX. Checks that it has each function that docs/bitcode.md names, needs no other library, and keeps
the memory orders of the device library.

    bitcode.py CLANG LIBRARY REPOSITORY

Exit status 0 if all of this holds, 1 otherwise. Where ptxas is, it also has to accept the PTX."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


def checks(page, ptx):
    """Yields pairs of a property that must hold and whether it does."""
    named = set(re.findall(r"^\| `(chorale_\w+)\(", page, re.M))
    functions = dict(re.findall(r"^\.visible \.func.*? (chorale_\w+)\((.*?)^\}", ptx, re.M | re.S))
    yield "docs/bitcode.md has the table of functions", len(named) > 10
    for name in sorted(named | set(functions)):
        yield f"{name} is in the library", name in functions
        yield f"{name} is in docs/bitcode.md", name in named
    external = re.findall(r"^\.extern .*?(\w+)\(?$", ptx, re.M)
    yield f"no function comes from another library, and {external} do", not external
    yield "every ordered access is system-wide", not re.search(r"\b(ld|st)\.(relaxed|acquire|release)\.(?!sys\.)", ptx)
    for name, words in (("chorale_signal", "red.add.release.sys"), ("chorale_wait", "ld.acquire.sys"),
                        ("chorale_send", "st.release.sys"), ("chorale_recv_slot", "ld.acquire.sys")):
        yield f"{name} has {words}", words in functions.get(name, "")
    for name in ("chorale_wait", "chorale_barrier", "chorale_send_slot", "chorale_recv_slot"):
        yield f"{name} reads the clock, so that it ends", "globaltimer" in functions.get(name, "")


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    clang, library, root = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    with tempfile.TemporaryDirectory() as folder:
        made = pathlib.Path(folder) / "device.ptx"
        subprocess.run([clang, "-x", "ir", "--target=nvptx64-nvidia-cuda", "-Xclang", "-target-cpu", "-Xclang", "sm_90", "-O2", "-S",
                        "-Wno-unknown-cuda-version", library, "-o", made], check=True)
        wrong = [what for what, holds in checks((root / "docs" / "bitcode.md").read_text(), made.read_text()) if not holds]
        ptxas = shutil.which("ptxas") or shutil.which("ptxas", path="/usr/local/cuda/bin")
        if ptxas and subprocess.run([ptxas, "-arch", "sm_90", made, "-o", f"{made}.cubin"]).returncode != 0:
            wrong.append("ptxas accepts the PTX")
    for what in wrong:
        print(f"does not hold: {what}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
