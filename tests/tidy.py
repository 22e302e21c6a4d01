#!/usr/bin/env python3
"""Checks that clang-tidy 14 finds none of the faults that .clang-tidy lists: tidy.py BUILD_FOLDER [--since COMMIT |
--all | --sample N]

It checks sources as a built folder compiles them, one or several at a time. Without an option it takes the sources
that differ from the last commit, with --since those that differ from that commit. It checks a changed header through
one source that includes it. --sample takes what --since HEAD~1 would take, and adds others up to N compilations. The
commit decides which ones, so that all are checked in the course of time. The whole tree takes about twelve minutes
on two cores.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = re.compile(r"^(bench|bindings|compiler|dsl|executor|plans|tests|tools)/")
KEPT = re.compile(r"-(I|D|std=)")
VERSION = "14"
SKIPPED = 77


def tidier():
    """Returns clang-tidy of the version whose checks are listed; None if there is none."""
    for name in (f"clang-tidy-{VERSION}", "clang-tidy"):
        if program := shutil.which(name):
            said = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
            if re.search(rf"version {VERSION}\.", said):
                return program
    return None


def git(*words):
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True)
    return done.stdout.split() if done.returncode == 0 else []


def sources_of(path):
    """Returns the source itself, or the sources that it includes if the build wrote it to compile them together."""
    return re.findall(r'#include "(.*)"', path.read_text()) if path.suffix == ".cxx" else [str(path)]


def compilations(build):
    """Returns the options of each of our compilations, and the names of its sources."""
    listed = subprocess.run(["ninja", "-C", str(build), "-t", "compdb"], check=True, capture_output=True, text=True).stdout
    found = {}
    for entry in json.loads(listed):
        words, path = shlex.split(entry["command"]), build / entry["file"]
        if "-c" not in words or path.suffix not in (".cpp", ".cxx") or not path.exists() or path in found:
            continue
        names = [os.path.relpath(os.path.realpath(source), ROOT) for source in sources_of(path)]
        if not names or not all(FOLDERS.match(name) for name in names):
            continue
        options = [word for word in words if KEPT.match(word)]
        options += [word + words[at + 1] for at, word in enumerate(words) if word == "-isystem"]
        found[path] = options, names
    return found


def changed(found, since):
    """Returns the compilations of everything that differs from a commit."""
    names = {name for name in git("diff", "--name-only", since) + git("ls-files", "--others", "--exclude-standard")}
    paths = [path for path, (_, sources) in found.items() if names & set(sources)]
    for header in sorted(name for name in names if name.endswith((".hpp", ".h"))):
        includes = re.compile(rf'#include ["<](.*/)?{re.escape(os.path.basename(header))}[">]')
        paths += [path for path, (_, sources) in found.items()
                  if any(includes.search((ROOT / source).read_text()) for source in sources)][:1]
    return list(dict.fromkeys(paths))


def sample(found, most):
    """Returns what the last commit changed, then others in an order that the commit decides."""
    commit = "".join(git("rev-parse", "HEAD"))
    others = sorted(found, key=lambda path: hashlib.sha256(f"{commit} {path.name} {found[path][1]}".encode()).digest())
    return list(dict.fromkeys(changed(found, "HEAD~1") + others))[:most]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="a folder that was configured for Ninja")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--since", default="HEAD", metavar="COMMIT")
    which.add_argument("--all", action="store_true")
    which.add_argument("--sample", type=int, metavar="N")
    arguments = parser.parse_args()
    program = tidier()
    if not program:
        print(f"skipped: there is no clang-tidy {VERSION} (apt-get install clang-tidy-{VERSION})")
        sys.exit(SKIPPED)
    found = compilations(arguments.build.resolve())
    if not found:
        sys.exit(f"{arguments.build} has no commands for our sources")
    chosen = list(found) if arguments.all else sample(found, arguments.sample) if arguments.sample else changed(found, arguments.since)

    def judged(path):
        options = found[path][0]
        return subprocess.run([program, "--quiet", f"--config-file={ROOT / '.clang-tidy'}", str(path), "--", *options, "-w"],
                              capture_output=True, text=True)

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for at, (path, done) in enumerate(zip(chosen, pool.map(judged, chosen)), 1):
            print(f"[{at}/{len(chosen)}] {', '.join(found[path][1])}", flush=True)
            if done.returncode:
                failed += 1
                print(done.stdout, done.stderr, flush=True)
    if failed:
        sys.exit(f"clang-tidy finds faults in {failed} of {len(chosen)} compilations")


main()
