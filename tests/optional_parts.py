#!/usr/bin/env python3
"""Installs and removes parts after a build folder was configured: optional_parts.py CMAKE SOURCE_FOLDER

cmake/parts.cmake must look for each kind of part again, and tools/left_out.py must name what a run of the tests
lacked.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(parts LANGUAGES NONE)
option(SWITCH "" OFF)
list(APPEND CMAKE_MODULE_PATH ${PROJECT_SOURCE_DIR})
include(@SOURCE@/cmake/parts.cmake)
chorale_part(STICKY PACKAGE Sticky 2.1 CACHED STICKY_ WITHOUT "w sticky" HELP "h sticky")
chorale_part(PROGRAM PROGRAM part_program PATHS @MACHINE@ WITHOUT "w program" HELP "h program")
chorale_part(HEADER FOLDER_OF part_header.h PATHS @MACHINE@ WITHOUT "w header" HELP "h header")
chorale_part(MODULE PYTHON part_module WITHOUT "w module" HELP "h module")
chorale_part(LISTED LISTS cat @MACHINE@/listed WITHOUT "w listed" HELP "h listed")
chorale_part(OFF IF SWITCH LISTS echo there WITHOUT "w off" HELP "h off")
chorale_write_parts(${PROJECT_BINARY_DIR}/parts.txt)
"""
# Like FindMPI, it remembers that a search failed, and what it once found.
FIND_STICKY = """
if(NOT DEFINED STICKY_WORKS)
  if(EXISTS @MACHINE@/sticky.h)
    set(STICKY_WORKS TRUE CACHE INTERNAL "")
    set(STICKY_HEADER @MACHINE@/sticky.h CACHE PATH "")
  else()
    set(STICKY_WORKS FALSE CACHE INTERNAL "")
  endif()
endif()
set(Sticky_FOUND ${STICKY_WORKS})
"""
PARTS = ("STICKY", "PROGRAM", "HEADER", "MODULE", "LISTED")
LOG = """1/3 Testing: alone
skipped: no nvcc on this machine
<end of output>
2/3 Testing: in_part
skipped: app_mpi, there is no MPI on this machine
cuda_plans, 2 ranks: skipped, there are no plans
<end of output>
3/3 Testing: whole
t.cpp:3: Skipped
this user may not mount
"""


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


def install(machine):
    for name in ("sticky.h", "part_program", "part_header.h", "part_module.py", "listed"):
        (machine / name).write_text("part\n")
    (machine / "part_program").chmod(0o755)


def states(cmake, folder, machine, *options):
    """Returns the state of each part after a configuration."""
    done = subprocess.run([cmake, "-G", "Ninja", "-S", folder, "-B", folder / "build", f"-DPython3_EXECUTABLE={sys.executable}", *options],
                          capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(machine)})
    check(done.returncode == 0, done.stdout + done.stderr)
    rows = [row.split("\t") for row in (folder / "build/parts.txt").read_text().splitlines()]
    return {row[0]: row[1] for row in rows}


def parts_come_and_go(cmake, source, folder):
    machine = folder / "machine"
    for name, text in (("CMakeLists.txt", PROJECT), ("FindSticky.cmake", FIND_STICKY)):
        (folder / name).write_text(text.replace("@SOURCE@", str(source)).replace("@MACHINE@", str(machine)))
    for what in ("at first", "after they were removed"):
        machine.mkdir()
        found = states(cmake, folder, machine)
        check(all(found[part] == "absent" for part in PARTS), f"absent {what}: {found}")
        said = subprocess.run([sys.executable, source / "tools/left_out.py", folder / "build"], capture_output=True, text=True).stdout
        for part in PARTS:
            check(f"  {part}: w {part.lower()}. help: h {part.lower()}\n" in said, f"{part} is not named: {said}")
        check("  OFF: it is switched off. help: -DSWITCH=ON\n" in said, said)
        install(machine)
        found = states(cmake, folder, machine)
        check(all(found[part] == "present" for part in PARTS), f"installed after they were {what}: {found}")
        check(found["OFF"] == "off", f"a part that is switched off: {found}")
        shutil.rmtree(machine)
    machine.mkdir()
    check(states(cmake, folder, machine, "-DSWITCH=ON")["OFF"] == "present", "a part that is switched on")


def skips_are_named(source, folder):
    (folder / "build/Testing/Temporary").mkdir(parents=True)
    (folder / "build/Testing/Temporary/LastTest.log").write_text(LOG)
    (folder / "build/tests.log").write_text(" 4/4 Test #4: silent ....***Skipped   0.06 sec\n")
    (folder / "build/parts.txt").write_text("MPI\tpresent\t\t\n")
    said = subprocess.run([sys.executable, source / "tools/left_out.py", folder / "build"], capture_output=True, text=True).stdout
    for line in ("  alone: no nvcc on this machine", "  in_part: app_mpi, there is no MPI on this machine",
                 "  in_part: there are no plans", "  whole: this user may not mount", "  silent: it does not say why"):
        check(line in said.splitlines(), f"no line '{line}': {said}")
    check("MPI:" not in said, said)


def rows_are_whole(source):
    """Checks that each row says what is lacking without the part, and how to get it."""
    table = (source / "cmake/optional_parts.cmake").read_text()
    rows = re.findall(r"^chorale_part\((.*?)\)$", table, re.M | re.S)
    check(len(rows) >= 9, f"{len(rows)} rows")
    for row in rows:
        check(re.search(r'WITHOUT\s+"[^"]+"', row) and re.search(r'HELP\s+"[^"]+"', row), row)


def main():
    cmake, source = sys.argv[1], pathlib.Path(sys.argv[2])
    rows_are_whole(source)
    with tempfile.TemporaryDirectory() as name:
        parts_come_and_go(cmake, source, pathlib.Path(name))
    with tempfile.TemporaryDirectory() as name:
        skips_are_named(source, pathlib.Path(name))


main()
