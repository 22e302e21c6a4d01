"""Runs a program in Python for the command: python3 -c "from chorale._driver import main; main()" OPTIONS SCRIPT ARGUMENTS

OPTIONS is JSON with output, name, target, allow, minimize_syncs and certify. The script's plan and findings are written to the
file `output` as JSON. What the script prints goes to standard error, except plans that it prints.
"""
import json
import os
import runpy
import sys

from . import _chorale
from ._errors import FindingsError


_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_RUNPY = runpy.__file__, "<frozen runpy>"
_NO_MODULE = 98  # exit status; tools/python.cpp knows it too


class _Refused(Exception):
    """The script's programs are not what the options ask for. The arguments are the message and the remedy."""


class _Arguments(list):
    """sys.argv of the script. It notes whether the script looks at its arguments."""

    looked = False

    def __getitem__(self, key):
        if key != 0:
            self.looked = True
        return super().__getitem__(key)

    def __iter__(self):
        self.looked = True
        return super().__iter__()

    def __len__(self):
        self.looked = True
        return super().__len__()


class _Aside:
    """Standard output of the script. It leaves out the texts of plans, which the command writes itself."""

    def __init__(self, plans):
        self.plans, self.skip_newline = plans, False

    def write(self, text):
        if text in self.plans:
            self.skip_newline = True
        elif not (self.skip_newline and text == "\n"):
            self.skip_newline = False
            sys.stderr.write(text)
        else:
            self.skip_newline = False
        return len(text)

    def flush(self):
        sys.stderr.flush()

    def isatty(self):
        return False


def _choose(script, programs, name):
    """Returns the program that the options name."""
    if not programs:
        raise _Refused(f"{script} makes no program", "make one with chorale.language: with CollectiveProgram(...):")
    if name:
        found = [program for program in programs if program.name == name]
        if not found:
            known = ", ".join(dict.fromkeys(program.name for program in programs))
            raise _Refused(f"{script} has no program '{name}'", f"it has {known}")
        return found[-1]
    if len(programs) > 1:
        known = ", ".join(dict.fromkeys(program.name for program in programs))
        raise _Refused(f"{script} has several programs: {known}", "choose one with --name")
    return programs[0]


def _authors(trace, script=None):
    """Returns a traceback without the frames of this package and of runpy, and without those that come before `script`."""
    kept, begun = [], script is None
    while trace:
        file = trace.tb_frame.f_code.co_filename
        begun = begun or file == script
        if begun and not file.startswith(_PACKAGE) and file not in _RUNPY:
            kept.append(trace)
        trace = trace.tb_next
    for one, after in zip(kept, [*kept[1:], None]):
        one.tb_next = after
    return kept[0] if kept else None


def _tell(error, script):
    """Prints an exception of the script as Python does, with the frames of its author only."""
    error.__traceback__ = _authors(error.__traceback__, script)
    told, more = {id(error)}, [error.__cause__, error.__context__]
    while more:
        other = more.pop()
        if other is not None and id(other) not in told:
            told.add(id(other))
            other.__traceback__ = _authors(other.__traceback__)
            more += [other.__cause__, other.__context__]
    sys.excepthook(type(error), error, error.__traceback__)


def main():
    options = json.loads(sys.argv[1])
    script = sys.argv[2]
    given = sys.argv[3:]
    sys.argv = _Arguments(sys.argv[2:])
    arguments = sys.argv
    _chorale.compile_for(options["target"] or None, options["allow"], options["minimize_syncs"], options["certify"])
    _chorale._keep_programs()
    built = {}  # by id of the program: operations that were recorded then, and the result

    def build(program):
        known = built.get(id(program))
        if known is None or known[0] != program.recorded_operations:
            known = built[id(program)] = program.recorded_operations, program._build()
        return known[1]

    texts = set()

    def to_json(self, indent=2, **_):
        text = build(self)[0]
        texts.add(text)
        return text

    _chorale.CollectiveProgram.to_json = to_json
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    sys.stdout = _Aside(texts)
    try:
        runpy.run_path(script, run_name="__main__")
    except FindingsError:
        pass  # the command reports the findings
    except Exception as error:
        sys.stdout = sys.__stdout__
        _tell(error, script)
        sys.exit(_NO_MODULE if isinstance(error, ModuleNotFoundError) else 1)
    sys.stdout = sys.__stdout__
    try:
        if given and not arguments.looked:
            raise _Refused(f"{script} does not look at its arguments, so {' '.join(given)} would change nothing",
                           "read them with argparse, as the sources of `chorale new` do")
        text, findings, target = build(_choose(script, _chorale._kept_programs(), options["name"]))
        result = {"plan": text, "findings": findings, "target": target}
    except _Refused as refused:
        result = {"refused": refused.args}
    with open(options["output"], "w", encoding="utf-8") as file:
        json.dump(result, file)
