"""Reads the tables of bindings/nccl for the tests of libnccl.so.2."""
import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "bindings/nccl"
Function = collections.namedtuple("Function", "header area today result name parameters")
ROW = re.compile(r"^CHORALE_NCCL\((\w+), (\w+), (\w+), ([^,]+), (\w+), \((.*?)\), \(.*?\), \(.*?\), \w+, \w+, \w+\)$", re.M)


def fail(words):
    print("FAILED:", words)
    sys.exit(1)


def functions():
    """Returns the rows of functions.def."""
    text = (FOLDER / "functions.def").read_text()
    rows = [Function(*row) for row in ROW.findall(text)]
    if len(rows) != len(re.findall(r"^CHORALE_NCCL\(", text, re.M)):
        fail("functions.def has a row that this script cannot read")
    return rows


def goes_to_fallback(row):
    """Returns whether the fallback, if there is one, gets the calls. A communicator is of this library, so it gets none."""
    return row.today == "refused" and not re.search(r"\bncclComm_t \w", row.parameters)


def values(kind):
    """Returns the name and the value of each row of a kind in abi.def."""
    return re.findall(rf"^CHORALE_NCCL_{kind}\((\w+), (.+)\)$", (FOLDER / "abi.def").read_text(), re.M)


def members(kind):
    """Returns the type, the name and the initial value of each member in abi.def."""
    return re.findall(rf"^CHORALE_NCCL_{kind}\(([^,]+), (\w+), (.+)\)$", (FOLDER / "abi.def").read_text(), re.M)


def variables():
    """Returns the kind, the name, the setting or "", and the text of each row of variables.def."""
    text = (FOLDER / "variables.def").read_text()
    rows = re.findall(r'^CHORALE_NCCL_(\w+)\((\w+), (?:(\w+), )?"(.*)"\)$', text, re.M)
    if len(rows) != len(re.findall(r"^CHORALE_NCCL_", text, re.M)):
        fail("variables.def has a row that this script cannot read")
    return rows


def run(command, fails=False, **options):
    """Returns the output of a command. The test fails if the command does not end as expected."""
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300,
                          **options)
    if (done.returncode != 0) != fails:
        fail(f"{' '.join(map(str, command))}: {done.returncode}\n{done.stdout}")
    return done.stdout
