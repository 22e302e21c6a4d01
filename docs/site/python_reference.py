"""Writes the page of the Python package from its stub, its sources and the docstrings in the C++ sources of its module."""
import ast
import re

from cpp_calls import arguments, string

# These declare classes and functions. A `helper` is a lambda that declares functions of the class of a variable.
DECLARED = re.compile(r"const auto (?P<helper>\w+) = \[&(?P<of>\w+)\]\(|^  (?P<helped>\w+)\((?=\")|"
                      r"py::(?:class_|enum_)<[^;()]*>\s*(?P<variable>\w+)?\(|declare_(?:standard|made)<[^;()]*>\(|"
                      r"(?P<on>\b\w+)?\s*\.def\w*\(", re.M)
SHOWN = {"__init__", "__len__", "__getitem__"}


# -- Docstrings of the module

def docstrings(folder):
    """Returns the docstrings of the module by (class or None, name). That of a class has the name None."""
    found = {}
    for path in sorted(folder.glob("*.cpp")):
        text = re.sub(r"^\s*//.*$", "", path.read_text(), flags=re.M)
        owner, variables = None, {}
        for match in DECLARED.finditer(text):
            if match["helper"]:
                variables[match["helper"]] = variables.get(match["of"])
                continue
            parts = [string(part) for part in arguments(text, match.end())]
            names = [part for part in parts if part]
            doc = names[-1] if len(names) > 1 else None
            if match["helped"]:
                if match["helped"] in variables:
                    found[variables[match["helped"]], names[0]] = doc
            elif match.group().startswith(("py::", "declare_standard")):
                owner = names[0] if names else None
                variables[match["variable"]] = owner
                found[owner, None] = doc
            elif match.group().startswith("declare_made"):
                found[variables.get(text[match.end():].split(",")[0].strip()), "__init__"] = parts[-1]
            else:
                if match["on"]:
                    owner = variables.get(match["on"])
                if parts[0]:
                    found.setdefault((owner, parts[0]), doc)
                elif parts[-1]:
                    found[owner, "__init__"] = parts[-1]
    return found


# -- Markdown

def words(text):
    """Escapes what Markdown would read as its own marks, but not within code."""
    parts = re.split(r"(`[^`\n]*`)", text)
    for at in range(0, len(parts), 2):
        parts[at] = re.sub(r"([*_<\[\]#])", r"\\\1", parts[at]).replace("\\<", "&lt;")
    return "".join(parts)


def prose(doc):
    """Returns a docstring in Markdown. Lines such as "bytes: ..." become a list."""
    result = []
    for block in re.split(r"\n\s*\n", doc.strip()):
        if block.startswith("    "):
            result.append(block)
            continue
        lines = []
        for line in block.splitlines():
            if argument := re.match(r"(\*{0,2}[a-z]\w*): (.*)", line.strip()):
                lines.append(("\n" if not lines else "") + f"- `{argument.group(1)}`: {words(argument.group(2))}")
            elif lines and lines[-1].lstrip().startswith("- ") and not line.startswith(" "):
                lines.append("\n" + words(line))
            else:
                lines.append(words(line.strip()))
        result.append("\n".join(lines))
    return "\n\n".join(result)


def signature(function, name):
    arguments_text = ast.unparse(function.args)
    arguments_text = re.sub(r"^self(, )?", "", arguments_text)
    returns = f" -> {ast.unparse(function.returns)}" if function.returns and function.name != "__init__" else ""
    return f"{name}({arguments_text}){returns}"


def is_property(function):
    return any(isinstance(decorator, ast.Name) and decorator.id == "property" for decorator in function.decorator_list)


class Writer:
    def __init__(self, folder):
        package = folder / "chorale"
        self.docs = docstrings(folder)
        self.stub = ast.parse((package / "_chorale.pyi").read_text()).body
        self.modules = {name: ast.parse((package / f"{name}.py").read_text()) for name in
                        ("__init__", "_plan", "_errors", "_paths", "torch", "mscclpp")}
        self.modules["language"] = ast.parse((package / "language/__init__.py").read_text())
        self.nodes = {node.name: node for node in self.stub if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
        for module in ("_plan", "_errors", "_paths"):
            for node in self.modules[module].body:
                if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_"):
                    self.nodes.setdefault(node.name, node)
                    self.docs.setdefault(("Plan", node.name), ast.get_docstring(node))
        self.lines = []

    def add(self, *lines):
        self.lines += [*lines, ""]

    def add_doc(self, owner, name, node):
        doc = self.docs.get((owner, name)) or ast.get_docstring(node)
        if doc:
            self.add(prose(doc))

    def add_functions(self, title, owner, functions):
        self.add(f"### {words(title)}")
        shown = "\n".join(signature(function, title) for function in functions)
        self.add(f"```python\n{shown}\n```")
        self.add_doc(owner, functions[0].name, functions[0])

    def add_class(self, node, prefix=""):
        self.add(f"## {prefix}{node.name}")
        doc = self.docs.get((node.name, None)) or ast.get_docstring(node)
        if doc:
            self.add(prose(doc))
        functions = {}
        for item in node.body:
            if isinstance(item, ast.FunctionDef) and (not item.name.startswith("_") or item.name in SHOWN):
                functions.setdefault(item.name, []).append(item)
        values = [item.target.id for item in node.body if isinstance(item, ast.AnnAssign) and not item.target.id.startswith("_")]
        if values:
            self.add("The values are " + ", ".join(f"`{value}`" for value in values) + ".")
        rows = [group[0] for group in functions.values() if is_property(group[0])]
        if rows:
            table = ["| property | type | |", "| --- | --- | --- |"]
            for row in rows:
                doc = words(" ".join((self.docs.get((node.name, row.name)) or "").split()))
                kind = ast.unparse(row.returns).replace("|", "or")
                table.append(f"| `{row.name}` | `{kind}` | " + doc.replace("|", "&#124;") + " |")
            self.add("\n".join(table))
        for name, group in functions.items():
            if not is_property(group[0]):
                title = f"{node.name}" if name == "__init__" else f"{node.name}.{name}"
                self.add_functions(title, node.name, group)
        for item in node.body:
            if isinstance(item, ast.ClassDef):
                self.add_class(item, node.name + ".")

    def add_names(self, names):
        for name in names:
            node = self.nodes[name]
            if isinstance(node, ast.ClassDef):
                self.add_class(node)
            else:
                self.add(f"## {name}")
                self.add(f"```python\n{signature(node, name)}\n```")
                self.add_doc(None, name, node)

    def page(self):
        main = self.modules["__init__"]
        names = next(ast.literal_eval(node.value) for node in main.body
                     if isinstance(node, ast.Assign) and node.targets[0].id == "__all__")
        self.add("# Python reference")
        self.add("This page lists the classes and functions of the package. [Chorale in Python](docs/python.md) shows how to use them.")
        self.add(prose(ast.get_docstring(main)))
        self.add_names(names)
        self.add("## Module chorale.language")
        self.add(prose(ast.get_docstring(self.modules["language"])))
        self.add_names([name for name, node in self.nodes.items() if node in self.stub and name not in names and not name.startswith("_")])
        for module in ("mscclpp", "torch"):
            self.add(f"## Module chorale.{module}")
            self.add(prose(ast.get_docstring(self.modules[module])))
        return "\n".join(self.lines)


def page(folder):
    """Returns the page for the folder of the bindings."""
    return Writer(folder).page()
