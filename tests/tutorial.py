#!/usr/bin/env python3
"""Follows the chapters of docs/tutorial as a reader does:
tutorial.py <chorale> <build folder> <C++ compiler> [<chapter> ...] [--update]

Each chapter is followed in an empty folder of its own, from top to bottom:

- A block of C++, CUDA, CMake, Python or Bash is a file. The paragraph before it names the file last, as in: Save this as
  `my.cpp`.
- A block of type `diff` changes the file that the paragraph before it names last. Its lines must occur there exactly once.
- A block of type `console` has commands after `$ `, with `> ` before further lines, and what they print. `...` stands for what
  varies: in a line for any characters, and as a line of its own for any number of lines. Two or more spaces stand for any
  number of them, because columns are as wide as their longest number. After `console fails` the last command
  must fail, and all other commands must end with 0. After `console numbers vary`, decimal fractions may be any number, and
  differ in width.

Chapters that build an application need an installation. It is made from the build folder when the first chapter asks for
`$PREFIX`. With --update, outputs that differ are written into the pages, unless they show something that varies.

Commands of Python are left out if the build folder has no Python package, scripts with CHORALE_HOST if there is no
UCX, and nvcc if it is not there.
MASTER_PORT=29500 in a script becomes a free port.
"""
import dataclasses
import difflib
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILES = {"cpp", "cuda", "cmake", "python", "bash"}


@dataclasses.dataclass
class Block:
    line: int
    kind: str  # the first word after the fence
    how: str  # the other words
    text: str
    file: str  # the file that the paragraph before names last


def blocks(page):
    text = page.read_text()
    for found in re.finditer(r"^```(\w*) ?(.*)\n((?:.*\n)*?)```$", text, re.M):
        paragraph = text[:found.start()].rstrip("\n").rsplit("\n\n", 1)[-1]
        names = re.findall(r"`([\w.-]+\.\w+|CMakeLists\.txt)`", paragraph)
        yield Block(text.count("\n", 0, found.start()) + 1, found[1], found[2], found[3], names[-1] if names else "")


def commands(text):
    """Returns each command of a console block, and the lines that it prints there."""
    found = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line.startswith("> ") and found and not found[-1][1]:
            found[-1] = (found[-1][0] + "\n" + line[2:], [])
        elif found:
            found[-1][1].append(line)
        else:
            raise ValueError("a console block begins with output")
    return found


def pattern(shown, numbers_vary):
    """Returns the regular expression of an output that a page shows."""
    def line_pattern(line):
        parts = []
        for part in line.split("..."):
            words = re.split(r"((?<![\w.])\d+\.\d+(?![\w.])| +)" if numbers_vary else r"(  +)", part)
            parts.append("".join(word_pattern(word) for word in words))
        return ".*".join(parts)

    def word_pattern(word):
        if numbers_vary and re.fullmatch(r"\d+\.\d+", word):
            return r"\d+\.\d+"
        return " +" if word.isspace() else re.escape(word)

    return "".join(r"(?:.*\n)*?" if line.strip() == "..." else line_pattern(line) + r"\n" for line in shown)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class Reader:
    def __init__(self, chorale, build, compiler, update):
        self.update = update
        self.chorale, self.build = pathlib.Path(chorale).resolve(strict=True), pathlib.Path(build).resolve(strict=True)
        self.compiler, self.prefix = compiler, None
        self.has_python = (self.build / "python/chorale/_driver.py").exists()
        said = subprocess.run([self.chorale, "doctor"], text=True, capture_output=True, timeout=60).stdout
        self.has_ucx = bool(re.search(r"built in, UCX .* loads", said))
        self.commands = self.files = self.left_out = self.wrong = 0

    def environment(self):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CHORALE_")}
        kept["PATH"] = f"{self.chorale.parent}:{kept['PATH']}"
        kept["PYTHONPATH"] = str(self.build / "python")
        if not shutil.which("make"):
            kept["CMAKE_GENERATOR"] = "Ninja"  # CMake takes make without it
        if self.prefix:
            kept |= {"PREFIX": str(self.prefix), "CXX": self.compiler}
        return kept

    def complain(self, page, block, what):
        self.wrong += 1
        print(f"FAILED {page.relative_to(ROOT)}:{block.line}: {what}")

    def install(self, folder):
        if not self.prefix:
            self.prefix = pathlib.Path(folder) / "prefix"
            subprocess.run(["cmake", "--install", self.build, "--prefix", self.prefix], check=True, stdout=subprocess.DEVNULL)

    def write(self, page, block, folder):
        if not block.file:
            return self.complain(page, block, "the paragraph before this block names no file")
        self.files += 1
        return (folder / block.file).write_text(block.text.replace("MASTER_PORT=29500", f"MASTER_PORT={free_port()}"))

    def change(self, page, block, folder):
        lines = [(line[:1], line[1:]) for line in block.text.splitlines(True)]
        if any(mark not in " +-\n" for mark, _ in lines):
            return self.complain(page, block, "every line of a diff begins with ' ', '-' or '+'")
        old = "".join(line for mark, line in lines if mark != "+")
        new = "".join(line for mark, line in lines if mark != "-")
        file = folder / block.file
        if not block.file or not file.exists():
            return self.complain(page, block, f"changes '{block.file}', which is not there")
        count = ("\n" + file.read_text()).count("\n" + old)
        if count != 1:
            return self.complain(page, block, f"its lines are {count} times in {block.file}, expected once")
        self.files += 1
        return file.write_text(("\n" + file.read_text()).replace("\n" + old, "\n" + new)[1:])

    def type(self, page, block, folder):
        words = block.how.split()
        if block.how not in ("", "fails", "numbers vary", "fails numbers vary"):
            return self.complain(page, block, f"'console {block.how}' has no meaning")
        typed = commands(block.text)
        now = ""
        for at, (command, shown) in enumerate(typed):
            if (not self.has_python and re.search(r"\bpython3\b|\.py\b", command)
                    or not self.has_ucx and "CHORALE_HOST" in self.script(command, folder)
                    or not shutil.which("nvcc") and command.startswith("nvcc ")):
                self.left_out += 1
            else:
                shown = self.type_one(page, block, folder, command, shown, "fails" in words and at == len(typed) - 1)
            now += "$ " + command.replace("\n", "\n> ") + "\n" + "".join(line + "\n" for line in shown)
        if now != block.text:
            fence = f"```console {block.how}".rstrip()
            page.write_text(page.read_text().replace(f"{fence}\n{block.text}```\n", f"{fence}\n{now}```\n", 1))
        return None

    def script(self, command, folder):
        name = re.search(r"\bbash (\S+)", command)
        return (folder / name[1]).read_text() if name else ""

    def type_one(self, page, block, folder, command, shown, fails):
        """Runs one command. Returns the lines that the page should show."""
        self.commands += 1
        done = subprocess.run(["bash", "-eo", "pipefail", "-c", command], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=300, cwd=folder, env=self.environment(), stdin=subprocess.DEVNULL)
        vary = block.how.endswith("vary")
        if fails != bool(done.returncode):
            self.complain(page, block, f"this ended with {done.returncode}:\n$ {command}\n{done.stdout}")
        elif self.update and not vary and not any("..." in line for line in shown):
            return done.stdout.splitlines()
        elif not re.fullmatch(pattern(shown, vary), done.stdout):
            differences = difflib.unified_diff(shown, done.stdout.splitlines(), "the page", "the command", lineterm="")
            self.complain(page, block, "\n".join([f"does not show what this prints:\n$ {command}", *differences]))
        return shown

    def follow(self, page, temporary):
        folder = pathlib.Path(temporary) / page.stem
        folder.mkdir()
        if "$PREFIX" in page.read_text():
            self.install(temporary)
        followed = 0
        for block in list(blocks(page)):
            followed += 1
            if block.kind == "console":
                self.type(page, block, folder)
            elif block.kind == "diff":
                self.change(page, block, folder)
            elif block.kind in FILES:
                self.write(page, block, folder)
            else:
                self.complain(page, block, f"a block of type '{block.kind}' has no meaning")
        if not followed:
            self.complain(page, Block(1, "", "", "", ""), "has no block")


def main():
    words = [word for word in sys.argv[1:] if word != "--update"]
    wanted = words[3:]
    pages = [page for page in sorted((ROOT / "docs/tutorial").glob("*.md")) if not wanted or page.name[0] in wanted]
    reader = Reader(*words[:3], "--update" in sys.argv)
    with tempfile.TemporaryDirectory() as temporary:
        for page in pages:
            reader.follow(page, temporary)
    print(f"{len(pages)} chapters, {reader.commands} commands, {reader.files} files, {reader.wrong} wrong"
          + (f"; {reader.left_out} commands left out, because Python's package, UCX or nvcc is missing" if reader.left_out else ""))
    sys.exit(bool(reader.wrong or not pages or not reader.commands))


if __name__ == "__main__":
    main()
