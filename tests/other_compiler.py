#!/usr/bin/env python3
"""Checks that another compiler accepts the sources of the library and its tools: other_compiler.py BUILD_FOLDER
CLANG [PATTERN]

It only parses the sources, with the commands of a Ninja build folder. With PATTERN it parses only sources whose
paths match. It parses the headers that most sources include once, into a precompiled header. tests/includes.py looks
for missing #includes.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
OURS = re.compile(r"^(bench|bindings|compiler|dsl|executor|plans|tools)/.*\.cpp$")
KEPT = re.compile(r"-(I|D|std=)")
# These headers take the longest to parse, besides cmake/precompiled.hpp.
SLOW = ("CLI/CLI.hpp", "boost/asio/ip/tcp.hpp", "boost/asio/write.hpp", "fmt/ranges.h", "nlohmann/json.hpp", "spdlog/spdlog.h",
        "chorale/plan.hpp")


def sources_in(path):
    """Returns the source itself, or the sources that it includes if the build wrote it to compile them together."""
    if path.suffix != ".cxx":
        return [path]
    return [pathlib.Path(source) for source in re.findall(r'#include "(.*)"', path.read_text())]


def is_ours(path):
    return path.is_relative_to(ROOT) and bool(OURS.match(path.relative_to(ROOT).as_posix()))


def commands(build):
    """Maps the path of each of our sources to the options that a compiler needs. Sources that the build compiles
    together (cmake/unity.cmake) are one file here, too."""
    listed = subprocess.run(["ninja", "-C", str(build), "-t", "compdb"], check=True, capture_output=True, text=True).stdout
    found = {}
    for entry in json.loads(listed):
        words = shlex.split(entry["command"])
        path = build / entry["file"]
        if "-c" not in words or not all(is_ours(source) for source in sources_in(path)):
            continue
        options = []
        for at, word in enumerate(words):
            if word == "-isystem":
                options.append(word + words[at + 1])
            elif KEPT.match(word):
                options.append(word)
        found.setdefault(path, options)
    return found


def parse(compiler, options, path, *more):
    """Returns the compiler's message if it does not accept the file."""
    done = subprocess.run([compiler, *options, "-w", *more, str(path)], capture_output=True, text=True)
    return done.stderr if done.returncode else ""


def main():
    build, compiler = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    sources = {path: options for path, options in commands(build).items()
               if any(re.search(sys.argv[3] if len(sys.argv) > 3 else "", source.as_posix()) for source in sources_in(path))}
    if not sources:
        sys.exit(f"{build} has no commands for our sources")
    every = list(dict.fromkeys(option for options in sources.values() for option in options
                               if not option.startswith("-DCHORALE")))
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        header, parsed = pathlib.Path(folder) / "slow.hpp", pathlib.Path(folder) / "slow.pch"
        header.write_text("".join(f"#include <{name}>\n" for name in SLOW) + f'#include "{ROOT}/cmake/precompiled.hpp"\n')
        if wrong := parse(compiler, every, header, "-fpch-instantiate-templates", "-x", "c++-header", "-o",
                          str(parsed)):
            sys.exit(f"{compiler} does not take the headers of other libraries:\n{wrong}")

        def judged(source):
            path, options = source
            # The names in the headers that are parsed for all sources may be ambiguous with ours. Then the source is
            # parsed alone.
            return (parse(compiler, options, path, "-include-pch", str(parsed), "-fsyntax-only") and
                    parse(compiler, options, path, "-fsyntax-only"))

        results = pool.map(judged, sources.items())
        failed = 0
        for at, (path, wrong) in enumerate(zip(sources, results), 1):
            print(f"[{at}/{len(sources)}] {', '.join(str(source.relative_to(ROOT)) for source in sources_in(path))}", flush=True)
            if wrong:
                failed += 1
                print(wrong, flush=True)
    if failed:
        sys.exit(f"{compiler} does not take {failed} of {len(sources)} sources")


main()
