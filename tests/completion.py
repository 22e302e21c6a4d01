#!/usr/bin/env python3
"""Checks what bash and zsh suggest for the words of `chorale`: completion.py <chorale>

Bash calls the function of the script as it does when a user presses tab. A zsh in a pseudo-terminal gets the keys, if there is a
zsh. The scripts come from the definitions of commands and options, so every command and option of the help has to be suggested.
"""
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

LIMIT_S = 60


class Completion:
    def __init__(self, chorale, folder):
        self.chorale, self.folder, self.wrong, self.count = chorale, pathlib.Path(folder), 0, 0
        (self.folder / "plan one.json").write_text("{}")
        (self.folder / "plain.json").write_text("{}")
        for shell in ("bash", "zsh"):
            (self.folder / f"_{shell}").write_text(self.said("completion", shell))

    def said(self, *words):
        return subprocess.run([self.chorale, *words], text=True, capture_output=True, check=True, timeout=60).stdout

    def expect(self, true, what, *more):
        self.count += 1
        if not true:
            self.wrong += 1
            print(f"FAILED {what}", *more, sep="\n")

    def bash(self, *words):
        """Returns what bash suggests for the last word, which may be empty."""
        script = 'source ./_bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _chorale; printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "-u", "-c", script, "bash", "chorale", *words], text=True, capture_output=True, timeout=60,
                              cwd=self.folder)
        self.expect(done.returncode == 0 and not done.stderr, f"bash fails for {words}", done.stderr)
        return done.stdout.split("\n")[:-1]

    def in_bash(self):
        commands = re.findall(r"^  (\w+) {2,}", self.said("--help").split("Subcommands:")[1], re.M)
        self.expect(set(commands) <= set(self.bash("")), "bash does not suggest every command", self.bash(""))
        for command in commands:
            options = re.findall(r"^  (?:(-\w),)?(--[\w-]+)", self.said(command, "--help"), re.M)
            names = {name for option in options for name in option if name}
            self.expect(names == set(self.bash(command, "-")), f"bash suggests {self.bash(command, '-')} for chorale {command}", names)
        algorithms = self.said("list", "--names").split()
        plans = [file.stem for file in (pathlib.Path(__file__).parent.parent / "plans/shipped").glob("*.json")]
        for words, some in {("comp",): ["compile", "completion"], ("help", "tu"): ["tune"], ("--v",): ["--version"],
                            ("compile", "allreduce_r"): ["allreduce_ring"],
                            ("run", "--backend", ""): ["cpu", "cuda"],
                            ("run", "--backend", "=", "cu"): ["cuda"],
                            ("run", "--backend", "="): ["cpu", "cuda"],
                            ("tune", "allr"): ["allreduce"], ("new", "all"): ["allreduce", "allgather", "alltoall"],
                            ("completion", ""): ["bash", "zsh"], ("list", ""): [*algorithms, *plans],
                            ("run", "ag_m"): ["ag_matmul_p2p"], ("run", "--seed", ""): [],
                            ("check", "pl"): ["plan one.json", "plain.json"],
                            ("compile", "allreduce_ring", "-o", "plai"): ["plain.json"]}.items():
            suggested = self.bash(*words)
            self.expect(set(some) <= set(suggested) and (some or not any(suggested)), f"bash suggests for {words}", suggested, some)
        self.expect("allgather_ring" not in self.bash("run", "allreduce"), "bash suggests a word with another beginning")

    def zsh(self, keys, wanted):
        """Returns what a zsh shows after the keys, when it has shown what is wanted."""
        process, terminal = pty.fork()
        if process == 0:
            os.chdir(self.folder)
            os.environ.update(PS1="> ", TERM="dumb", HOME=str(self.folder), COLUMNS="200", LINES="50")
            os.execlp("zsh", "zsh", "-f", "-i")
        start = "autoload -Uz compinit; compinit -u -D; source ./_zsh; unsetopt zle_bracketed_paste; bindkey '^I' complete-word; " \
                "setopt no_beep; zstyle ':completion:*' list-prompt ''; echo ready$((1+1))\n"
        text, sent, end = "", 0, time.monotonic() + LIMIT_S
        os.write(terminal, start.encode())
        while time.monotonic() < end and not (sent and all(word in text for word in wanted)):
            if not sent and "ready2" in text:
                text, sent = "", 1
                os.write(terminal, keys.encode())
            if select.select([terminal], [], [], 0.1)[0]:
                try:
                    text += os.read(terminal, 4096).decode(errors="replace")
                except OSError:
                    break
        os.kill(process, 9)
        os.waitpid(process, 0)
        os.close(terminal)
        return text

    def in_zsh(self):
        for keys, wanted in {"chorale comp\t\t": ["Build an algorithm", "Print the script"], "chorale tun\t": ["chorale tune"],
                             "chorale run --back\t": ["--backend="], "chorale run --backend cu\t": ["cuda"],
                             "chorale compile allreduce_ri\t": ["allreduce_ring"], "chorale new allr\t": ["allreduce"],
                             "chorale check plai\t": ["plain.json"], "chorale run --no-\t": ["--no-times"]}.items():
            shown = self.zsh(keys, wanted)
            self.expect(all(word in shown for word in wanted), f"zsh does not suggest {wanted} for {keys!r}", repr(shown))


def main():
    with tempfile.TemporaryDirectory() as folder:
        completion = Completion(str(pathlib.Path(sys.argv[1]).resolve()), folder)
        completion.in_bash()
        zsh = shutil.which("zsh")
        if zsh:
            completion.in_zsh()
    print(f"{completion.count} suggestions, {completion.wrong} wrong" + ("" if zsh else "; zsh is not tried: it is not on this machine"))
    sys.exit(bool(completion.wrong))


main()
