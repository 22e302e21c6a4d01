#!/usr/bin/env python3
"""Checks that long work shows its progress on a terminal, and nowhere else: progress.py <chorale>

The work is long, and each test ends it when it has seen what it waits for. So no time decides a test.
"""
import fcntl
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

LIMIT_S = 120  # ends a test that hangs
BAR = re.compile(r"\r\x1b\[K\[([#.]{20})\] +(\d+) %(, about \d+ (?:s|min|h) left)?  (.*?)(?=\r|$)")
ENDLESS = ["run", "allreduce_one_shot", "--set", "ranks=2", "--adversarial", "--schedules", str(2**40), "--limit", "2min"]


def run_on_terminal(command, until, columns=100):
    """Runs a command whose stderr is a terminal until it ends, or has written what `until` accepts. Returns what it wrote."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
    with open(os.devnull, "w") as nothing:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=nothing, stderr=slave)
    os.close(slave)
    text, end = "", time.monotonic() + LIMIT_S
    while time.monotonic() < end and not until(text):
        if not select.select([master], [], [], 0.1)[0]:
            if process.poll() is not None:
                break
            continue
        try:
            part = os.read(master, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        text += part.decode()
    process.send_signal(signal.SIGKILL)
    process.wait()
    os.close(master)
    return text


class Progress:
    def __init__(self, chorale, folder):
        self.chorale, self.folder, self.wrong = chorale, folder, 0

    def expect(self, true, what, *more):
        if not true:
            self.wrong += 1
            print(f"FAILED {what}", *(repr(one) for one in more), sep="\n")

    def bar(self, name, command, words):
        """Checks that a bar with an estimate and these words is shown."""
        shown = run_on_terminal([self.chorale, *command], lambda text: any(of[2] and re.search(words, of[3]) for of in BAR.findall(text)))
        bars = [of for of in BAR.findall(shown) if re.search(words, of[3])]
        self.expect(any(of[2] for of in bars), f"{name} shows no bar with an estimate for {words}", shown[-500:])
        for filled, percent, _, _ in bars:
            self.expect(filled.count("#") == int(percent) // 5 or abs(filled.count("#") * 5 - int(percent)) <= 5,
                        f"{name}: the bar {filled} is not {percent} %")

    def narrow(self):
        """Checks that lines fit the terminal, because a line that wraps could not be overwritten."""
        shown = run_on_terminal([self.chorale, *ENDLESS], lambda text: text.count("\r\x1b[K") > 3, columns=30)
        lines = [line for line in shown.split("\r\x1b[K")[1:-1]]
        self.expect(lines and all(len(line) <= 29 for line in lines), "lines do not fit a narrow terminal", lines)

    def cleared(self):
        """Checks that the line is gone at the end."""
        command = [self.chorale, *ENDLESS[:-2], "--limit", "6s"]
        shown = run_on_terminal(command, lambda text: "note: " in text)
        self.expect(BAR.search(shown), "a run of six seconds shows no bar", shown[-500:])
        self.expect(re.search(r"\r\x1b\[Knote: ", shown), "the line is not cleared before the next one", shown[-500:])

    def silent(self):
        """Checks that nothing is shown without a terminal, or with --quiet. The same command shows a bar otherwise."""
        command = [self.chorale, *ENDLESS[:-2], "--limit", "6s"]
        done = subprocess.run(command, text=True, capture_output=True, timeout=LIMIT_S)
        self.expect("\x1b" not in done.stderr and "%" not in done.stderr, "progress is shown without a terminal", done.stderr)
        shown = run_on_terminal([*command, "--quiet"], lambda text: False)
        self.expect("note: " in shown and "\x1b" not in shown, "progress is shown with --quiet", shown)


def main():
    with tempfile.TemporaryDirectory() as folder:
        progress = Progress(str(pathlib.Path(sys.argv[1]).resolve()), folder)
        progress.bar("run --adversarial", ENDLESS, r"\d+ of \d+ schedules tried")
        progress.bar("compile", ["compile", "allreduce_ring", "--set", "ranks=1024", "-o", os.devnull], "compiling allreduce_ring")
        progress.bar("tune", ["tune", "allreduce", "--ranks", "2", "--bytes", "1K:64M", "--calls", "1000", "-o", f"{folder}/table.json"],
                     "allreduce of .* by ")
        progress.bar("bench", ["bench", "allreduce", "--ranks", "2", "--bytes", "1K:64M", "--calls", "1000"], " at ")
        progress.narrow()
        progress.cleared()
        progress.silent()
    print(f"{progress.wrong} failed")
    sys.exit(bool(progress.wrong))


main()
