#!/usr/bin/env python3
"""Compares what `cmake --install` copies from the build folder with what the target chorale_installed builds.

installed.py BUILD_DIR. A file that a command of the build makes and that is installed has to be an input of
chorale_installed, because tools/quickstart and the pages build only this target before the installation. The installation
also has to look for the file before it writes anything.
"""
import pathlib
import re
import shutil
import subprocess
import sys


def scripts(folder):
    """The texts of the installation scripts of `folder` and of the folders that it includes."""
    text = (folder / "cmake_install.cmake").read_text()
    yield text
    for inner in re.findall(r'^ *include\("(.*)/cmake_install\.cmake"\)', text, re.M):
        yield from scripts(pathlib.Path(inner))


def ninja(build, *arguments):
    """What `ninja -t` prints for the arguments, by lines."""
    done = subprocess.run(["ninja", "-C", build, "-t", *arguments], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"installed.py: ninja -t {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.splitlines()


def main(build):
    if not shutil.which("ninja") or not (build / "build.ninja").exists():
        print("skipped: the build folder is not one of ninja")
        return 77
    texts = list(scripts(build))
    copied = {path for text in texts for call in re.findall(r'file\(INSTALL .*?\)\n', text, re.S)
              for path in re.findall(r'"([^"]*)"', call.split(" FILES ", 1)[-1]) if " FILES " in call}
    [looked_for] = re.findall(r'^set\(built "(.*)"\)$', texts[0], re.M)
    looked_for = set(looked_for.split(";"))
    made = {str(build / line.rsplit(": ", 1)[0]) for line in ninja(build, "targets", "all")
            if not line.endswith((": phony", ": RERUN_CMAKE"))}
    # `ninja -t inputs` leaves out what a target only has to be built after, so this reads the graph.
    inputs = {str(build / name) for line in ninja(build, "graph", "chorale_installed")
              for name in re.findall(r'^"0x[0-9a-f]+" \[label="(.*?)"', line)}
    wrong = 0
    for path in sorted(copied & made):
        for holds, message in ((path in inputs, "is installed, but the target chorale_installed does not build it"),
                               (path in looked_for, "is installed without a look whether it is built")):
            if not holds:
                wrong += 1
                print(f"{path}: error: it {message}\n  help: install it with chorale_install() or chorale_install_made()")
    if not copied & made:
        print("installed.py: no installed file is made by the build, so this test reads the scripts wrongly")
        return 1
    print(f"{len(copied & made)} installed files are made by the build, {wrong} errors")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
