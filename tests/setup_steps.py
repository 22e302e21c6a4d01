#!/usr/bin/env python3
"""Checks what tools/setup.sh does for tools/quickstart and tools/test: setup_steps.py SOURCE_FOLDER

Its cmake, ninja and packages are scripts that only record how they were called.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

LIMIT_S = 200


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


def sourced(folder, text, **more):
    """Runs a shell that has sourced setup.sh, with the scripts of the folder first on its PATH."""
    environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "BUILD_DIR": str(folder / "build"),
                   "TMPDIR": str(folder), "CALLS": str(folder / "calls"), **more}
    return subprocess.Popen(["bash", "-c", f". {SOURCE}/tools/setup.sh; {text}"], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, env=environment)


def ended(process, status=0):
    try:
        said = process.communicate(timeout=LIMIT_S)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        sys.exit(f"FAILED: it still runs after {LIMIT_S} s")
    check(process.returncode == status, f"exit {process.returncode}: {said}")
    return said


def script(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\necho \"{path.name} $*\" >>$CALLS\n{text}\n")
    path.chmod(0o755)


def steps_say_how_far_they_are(folder):
    """Checks that the command ends only after the line has been read."""
    command = f"echo [240/681] cc; for try in $(seq 900); do [ -e {folder}/seen ] && break; sleep 0.1; done"
    process = sourced(folder, f"step building {folder}/log bash -c '{command}'", tell_every="1")
    for line in process.stdout:
        if line.startswith("... 240 of 681 after "):
            (folder / "seen").touch()
            break
    check((folder / "seen").exists(), "nothing was said while a step ran")
    check(" done, 681 of 681 (" in ended(process), "a step does not say that it is done")
    check("failed after" in ended(sourced(folder, f"step x {folder}/log false"), 1), "a failed step")


def configured_folders_are_configured_again(folder):
    (folder / "build").mkdir(exist_ok=True)
    for name, text in (("CMakeCache.txt", "MINE:BOOL=ON\n"), ("build.ninja", "")):
        (folder / "build" / name).write_text(text)
    script(folder / "bin/cmake", "")
    script(folder / "bin/ninja", "")
    ended(sourced(folder, "build_project chorale"))
    calls = (folder / "calls").read_text().splitlines()
    check(calls == [f"cmake -S {SOURCE} -B {folder}/build", f"ninja -C {folder}/build chorale"], calls)
    (folder / "build/build.ninja").unlink()
    ended(sourced(folder, "build_project"))
    check("-DCMAKE_BUILD_TYPE=RelWithDebInfo" in (folder / "calls").read_text(), "a new folder has no settings")


def tests_can_be_left_out(folder):
    """Checks that a target is left out only by its whole name, and that all other targets are built."""
    script(folder / "bin/ninja", """case "$*" in
      *"query all") printf 'all:\\n  input: phony\\n    dsl/all\\n    || tools/all\\n    tests/all\\n  outputs:\\n    other\\n';;
      *"query tests/all") printf 'tests/all:\\n  input: phony\\n    tests/dsl_test\\n    tests/dsl_test_too\\n    tests/other\\n';;
    esac""")
    (folder / "calls").unlink()
    ended(sourced(folder, "build_project --without dsl_test compiler_schedule_test"))
    built = (folder / "calls").read_text().splitlines()[-1]
    check(built == f"ninja -C {folder}/build dsl/all tools/all tests/dsl_test_too tests/other", built)


def tests_of_a_label_need_their_targets(folder):
    """Checks labels. A label is a regular expression, as ctest takes it. The needs of a script are not known, so
    everything is built."""
    (folder / "build/test_targets.txt").write_text("script all\nunit.proof proof_test\nunit.dsl a_test\nhosts hosts_test\n")
    for label, targets in (("unit", " a_test proof_test"), ("proof", " proof_test"), ("unit|script", "")):
        ended(sourced(folder, f"build_project --label '{label}'"))
        built = (folder / "calls").read_text().splitlines()[-1]
        check(built == f"ninja -C {folder}/build{targets}", f"{label}: {built}")
    check("no test has a label like 'unti'" in ended(sourced(folder, "build_project --label unti"), 1), "a label of no test")


def optional_packages_are_optional(folder):
    """Checks that a package that cannot be installed stops nothing, and that all packages of the table are tried."""
    script(folder / "bin/dpkg-query", "exit 1")
    script(folder / "bin/sudo", 'exec "$@"')
    script(folder / "bin/apt-get", 'case "$*" in *libucx-dev*) exit 100;; esac')
    said = ended(sourced(folder, "install_optional_packages; echo goes on, ${#failed_steps[@]} failed"))
    check("libucx-dev is not installed" in said and "goes on, 0 failed" in said, said)
    calls = (folder / "calls").read_text()
    for package in ("libopenmpi-dev", "python3-jsonschema", "clang-19"):
        check(f"--no-install-recommends {package}\n" in calls, f"{package} was not tried: {calls}")
    (folder / "calls").unlink()
    ended(sourced(folder, "install_optional_packages --only python3-numpy"))
    installed = re.findall(r"--no-install-recommends (.*)", (folder / "calls").read_text())
    check(installed == ["python3-numpy"], f"--only python3-numpy tries {installed}")
    script(folder / "bin/apt-get", "exit 100")
    check("goes on" in ended(sourced(folder, "install_optional_packages; echo goes on")), "no network stops it")


SOURCE = pathlib.Path(sys.argv[1])
with tempfile.TemporaryDirectory() as name:
    for test in (steps_say_how_far_they_are, configured_folders_are_configured_again, tests_can_be_left_out,
                 tests_of_a_label_need_their_targets, optional_packages_are_optional):
        test(pathlib.Path(name))
