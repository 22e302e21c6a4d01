"""Starts the command of the wheel."""
import os
import sys


def main():
    command = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "chorale")
    # Programs in Python then run with the Python that has this package.
    os.environ.setdefault("PYTHON", sys.executable)
    os.execv(command, [command, *sys.argv[1:]])
