"""Reads calls in C++ sources: their arguments, and strings that are several literals."""
import ast
import re

LITERAL = r'"(?:[^"\\\n]|\\.)*"'
TEXT = re.compile(rf"\s*(?:{LITERAL}\s*)+")
SKIPPED = re.compile(LITERAL + r"|'(?:[^'\\]|\\.)+'")


def arguments(text, at):
    """Returns the arguments of a call in C++, from behind its opening bracket. It splits template arguments too."""
    parts, depth, start = [], 0, at
    while True:
        if literal := SKIPPED.match(text, at):
            at = literal.end()
            continue
        mark = text[at]
        if mark in ")]}" and depth == 0 or mark == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
            if mark != ",":
                return parts
        depth += (mark in "([{") - (mark in ")]}")
        at += 1


def string(text):
    """Returns the string that adjacent literals make; None if the text has anything else."""
    if not TEXT.fullmatch(text):
        return None
    return "".join(ast.literal_eval(literal) for literal in re.findall(LITERAL, text))
