#!/usr/bin/env python3
"""Tests that the type stub says what the module has: its classes, functions, properties and parameters."""
import ast
import inspect
import pathlib
import re
import unittest

import chorale
from chorale import _chorale

STUB = pathlib.Path(chorale.__file__).parent / "_chorale.pyi"


def names_of(members):
    return {name for name in members if not name.startswith("__") or name in ("__getitem__", "__len__", "__enter__", "__exit__")}


def parameters_of(function):
    """Returns the parameters of each overload in the text that pybind11 writes."""
    text = (function.__func__ if isinstance(function, staticmethod) else function).__doc__ or ""
    lines = [line for line in text.splitlines() if re.match(r"(\d+\. )?\w+\(.*\) -> ", line) and "(*args" not in line]
    return [re.findall(r"[(,] (?:\*\*)?(\w+)(?=: )|\((\w+): ", line.replace("(", "( ", 1)) for line in lines]


class Stubs(unittest.TestCase):
    def setUp(self):
        body = ast.parse(STUB.read_text()).body
        self.classes = {node.name: node for node in body if isinstance(node, ast.ClassDef)}
        self.functions = {node.name: node for node in body if isinstance(node, ast.FunctionDef)}

    def test_module(self):
        classes = {name for name, thing in vars(_chorale).items() if inspect.isclass(thing)}
        functions = {name for name, thing in vars(_chorale).items() if callable(thing) and not inspect.isclass(thing)}
        self.assertEqual(set(self.classes), classes)
        self.assertEqual(set(self.functions), {name for name in functions if not name.startswith("__")})

    def test_members(self):
        for name, node in self.classes.items():
            with self.subTest(name):
                stub = {item.name for item in node.body if isinstance(item, (ast.FunctionDef, ast.ClassDef))}
                stub |= {item.target.id for item in node.body if isinstance(item, ast.AnnAssign)}
                there = names_of(vars(getattr(_chorale, name)))
                if hasattr(getattr(_chorale, name), "__members__"):
                    there |= {"__members__"}
                self.assertEqual(names_of(stub) | ({"__members__"} & stub), there)

    def test_parameters(self):
        for name, node in self.classes.items():
            for function in [item for item in node.body if isinstance(item, ast.FunctionDef)]:
                thing = vars(getattr(_chorale, name)).get(function.name)
                if isinstance(thing, property) or function.name.startswith("_repr") or not parameters_of(thing):
                    continue
                taken = [argument.arg for argument in function.args.args]
                overloads = [[first or second for first, second in one] for one in parameters_of(thing)]
                taken = [argument for argument in taken if argument != "self"]
                known = [[one for one in overload if one not in ("self", "args", "kwargs")] for overload in overloads]
                with self.subTest(f"{name}.{function.name}"):
                    if not any(argument.startswith("arg") for overload in known for argument in overload):
                        self.assertIn(taken, known)

    def test_reexports(self):
        import chorale.language
        for module in chorale, chorale.language:
            for name in module.__all__:
                self.assertTrue(hasattr(module, name), name)
        for name in "run", "simulate":
            self.assertTrue(any(item.name == name for item in self.classes["Plan"].body if isinstance(item, ast.FunctionDef)))


if __name__ == "__main__":
    unittest.main()
