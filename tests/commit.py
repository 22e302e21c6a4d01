#!/usr/bin/env python3
"""Checks what a build reports as its commit: commit.py <cmake> <cmake/commit.cmake>"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


def git(folder, *words):
    who = ["-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def found(source, output, path=os.environ["PATH"]):
    cmake, script = sys.argv[1:]
    subprocess.run([cmake, "-D", f"SOURCE={source}", "-D", f"OUTPUT={output}", "-P", script], check=True,
                   env={**os.environ, "PATH": path})
    return output.read_text().split('built_from = "')[1].split('"')[0]


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        source, output = folder / "source", folder / "commit.cpp"
        (source / "inner").mkdir(parents=True)
        (source / "file").write_text("one\n")
        check(found(source, output) == "", "a tarball has no commit")
        if not shutil.which("git"):
            return
        git(source, "init", "-q")
        git(source, "add", "file")
        git(source, "commit", "-qm", "one")
        first = git(source, "rev-parse", "--short", "HEAD")
        check(found(source, output) == first, f"not {first}: {output.read_text()}")
        os.utime(output, (0, 0))
        found(source, output)
        check(output.stat().st_mtime == 0, "what has not changed is written, and compiled, again")
        (source / "file").write_text("two\n")
        check(found(source, output) == f"{first}-dirty", f"not dirty: {output.read_text()}")
        git(source, "commit", "-qam", "two")
        second = git(source, "rev-parse", "--short", "HEAD")
        check(first != second and found(source, output) == second, f"not {second}: {output.read_text()}")
        check(found(source / "inner", output) == "", "a tarball in another checkout has that one's commit")
        check(found(source, output, path=str(folder)) == "", "there is a commit without git")


main()
