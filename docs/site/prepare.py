#!/usr/bin/env python3
"""Makes what Doxygen and MkDocs read, for tools/docs: prepare.py headers|pages WORK_FOLDER

`headers` copies the public headers to WORK_FOLDER/headers and marks the code in their comments. `pages` copies the
pages to WORK_FOLDER/pages, where Doxygen has written its reference, writes the reference of the Python package, and
makes the navigation from docs/README.md. Links from pages to headers lead to the reference, and links to other sources
to copies of them.
"""
import json
import os
import pathlib
import re
import shutil
import sys
import xml.etree.ElementTree

import python_reference
from cpp_calls import arguments, string

ROOT = pathlib.Path(__file__).resolve().parents[2]
INDEX = "docs/README.md"
START = ["README.md", INDEX, "CHANGELOG.md"]
PUBLIC = ["dsl/include", "compiler/include", "plans/include", "executor/include", "bindings/c/include", "bindings/nccl/include"]
LANGUAGES = {".cpp": "cpp", ".hpp": "cpp", ".h": "cpp", ".def": "cpp", ".cu": "cpp", ".py": "python", ".json": "json"}


def headers():
    """Yields (path, name to include) of each public header."""
    for folder in PUBLIC:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".hpp", ".cuh", ".h", ".def"):
                yield path, path.relative_to(ROOT / folder).as_posix()


# -- Headers

def with_links(line):
    """Makes links of the pages that a comment names."""
    def link(match):
        page, anchor = match.group(1), match.group(2) or ""
        target = re.sub(r"\bREADME$", "index", page[:-3]) + ".html"
        return f'<a href="../{target}{anchor}">{match.group(0)}</a>' if (ROOT / page).exists() else match.group(0)

    return re.sub(r"\b(docs/[\w/.-]+\.md)(#[\w-]+)?", link, line)


DEFINE = re.compile(r"\s*#define (CHORALE_\w+)\(([\w, ]+)\) (.*[,;+])")


def with_parameters(body, parameters, values):
    """Returns the body of a macro with its values in the place of its parameters."""
    for parameter, value in zip(parameters, values):
        body = re.sub(rf"(?<!#)#{parameter}\b", lambda _: json.dumps(value), body)
        body = re.sub(rf"(##)?\b{parameter}\b(##)?", lambda _: value, body)
    return body


def rows(table, macros):
    """Returns what the rows of a table (*.def) stand for, each with its summary. `macros` has parameters and body by name."""
    text, result = table.read_text(), []
    for match in re.finditer(rf"^({'|'.join(macros)})\(", text, re.M):
        values = [part.strip() for part in arguments(text, match.end())]
        summary = next((words for words in map(string, values) if words and " " in words), None)
        result.append(with_parameters(macros[match.group(1)][1], macros[match.group(1)][0], values))
        result += [f"/**< {summary} */"] if summary and not result[-1].endswith("+") else []
    return " ".join(result)


def with_tables(lines):
    """Replaces the inclusion of a table by what its rows stand for, such as enumerators. Doxygen does not read the tables."""
    for at, line in enumerate(lines):
        include = re.fullmatch(r'\s*#include "(chorale/.*\.def)"', line)
        first, macros = at, {}
        while include and (define := DEFINE.fullmatch(lines[first - 1])):
            macros[define.group(1)] = define.group(2).split(", "), define.group(3)
            first -= 1
        if macros:
            table = next(path for path, name in headers() if name == include.group(1))
            lines[first:at + 1] = [rows(table, macros), *[""] * (at - first)]
    return lines


def marked_comment(lines):
    """Marks the code in the lines of one comment, each without its `///`. Code is what is indented by two or more columns and
    does not continue an item of a list or a command such as \\param. The number of lines stays the same."""
    result, within_code, continues = [], False, False
    for at, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        is_code = bool(line.strip()) and indent >= 3 and not continues
        if not line.strip():  # a blank line within code belongs to it
            later = next((other for other in lines[at + 1:] if other.strip()), "")
            is_code = within_code and len(later) - len(later.lstrip()) >= 3
        if is_code and not within_code:
            kind = "{.unparsed}" if line.lstrip().startswith(("{", "[")) else "{.cpp}"
            result[-1] += f" \\code{kind}"
        if within_code and not is_code:
            result[-1] += " \\endcode"
        if not is_code and line.strip():
            if indent < 3:
                continues = bool(re.match(r" ?(\\\w|- |\d+\. )", line))
            line = with_links(re.sub(r"^ Source: ", r" \\source ", line))
        elif not line.strip() and not is_code:
            continues = False
        within_code = is_code
        result.append(line)
    if within_code:
        result[-1] += " \\endcode"
    return result


def marked(text):
    """Returns a header with its comments as Doxygen wants them, with as many lines as before."""
    lines = with_tables(text.split("\n"))
    # The comment at the top of a header without \file describes the file.
    for first in ("#pragma once", "#define CHORALE_NCCL_CALLS_H"):
        if first in lines and "\\file" not in text:
            at = lines.index(first) + 1
            if lines[at].startswith("// "):
                lines[at - 1] = "/// \\file"
                while lines[at].startswith("//"):
                    lines[at] = "/" + lines[at]
                    at += 1
    at = 0
    while at < len(lines):
        end = at
        while end < len(lines) and re.match(r"\s*///(?!<)", lines[end]):
            end += 1
        if end == at:
            at += 1
            continue
        heads = [re.match(r"\s*///", line).group(0) for line in lines[at:end]]
        bodies = [line[len(head):] for line, head in zip(lines[at:end], heads)]
        lines[at:end] = [head + body for head, body in zip(heads, marked_comment(bodies))]
        at = end
    return "\n".join(lines)


def make_headers(work):
    folder = work / "headers"
    shutil.rmtree(folder, ignore_errors=True)
    for path, name in headers():
        copy = folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(marked(path.read_text()))
    shutil.copy(ROOT / "docs/site/reference.dox", folder)


# -- Pages

def reference_pages(work):
    """Returns the page of the reference for each header, by the header's path."""
    tags = xml.etree.ElementTree.parse(work / "reference.tag")
    pages = {}
    for compound in tags.iter("compound"):
        if compound.get("kind") == "file":
            path = pathlib.Path(compound.findtext("path"), compound.findtext("name")).relative_to(work / "headers")
            pages[path.as_posix()] = "cpp/" + compound.findtext("filename")
    return {path.relative_to(ROOT).as_posix(): pages[name] for path, name in headers() if name in pages}


def without_dead_links(page):
    """Removes the link to the list of nested classes, which Doxygen writes even if all of them are private and not listed."""
    text = page.read_text()
    if 'href="#nested-classes"' in text and 'name="nested-classes"' not in text:
        page.write_text(re.sub(r'<a href="#nested-classes">\w+</a>( &#124;\s*)?', "", text))


class Pages:
    def __init__(self, work):
        self.folder, self.reference = work / "pages", reference_pages(work)
        self.sources = set()
        self.errors = []
        self.titles = {}

    def target(self, page, link):
        """Returns where a link of a page leads in the site."""
        file, mark, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link) or not file:
            return link
        name = os.path.normpath(os.path.join(os.path.dirname(page), file))
        if name in self.reference:
            name = self.reference[name]
        elif name.startswith("..") or not (ROOT / name).is_file():
            self.errors.append(f"{page}: links to {link}, which is no file here")
        elif not name.endswith((".md", ".png")):
            self.sources.add(name)
            name += ".md"
        return os.path.relpath(name, os.path.dirname(page) or ".") + mark + anchor

    def add(self, page):
        text = (ROOT / page).read_text()
        title = re.search(r"^# (.*)$", text, re.M)
        if not title:
            self.errors.append(f"{page}: has no title")
            return
        self.titles[page] = re.sub(r"[`*]", "", title.group(1))
        parts = re.split(r"(^```.*?^```$|`[^`\n]*`)", text, flags=re.M | re.S)
        for at in range(1, len(parts), 2):
            parts[at] = re.sub(r"^```(\w+) .*\n", r"```\1\n", parts[at])  # MkDocs knows only the language
        for at in range(0, len(parts), 2):
            parts[at] = re.sub(r"\]\(([^)\s]+)\)", lambda match: f"]({self.target(page, match.group(1))})", parts[at])
        self.write(page, "".join(parts))

    def write(self, page, text):
        copy = self.folder / page
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text)

    def add_source(self, name):
        language = LANGUAGES.get(pathlib.Path(name).suffix, "text")
        text = (ROOT / name).read_text()
        self.write(name + ".md", f"# {name}\n\n````{language}\n{text}````\n")


def navigation(pages):
    """Returns the sections of the index with their pages: a list of {title: [{title: page}]}. Decisions have one of their own."""
    sections, decisions = {"Start": list(START)}, []
    title, seen = None, set(START)
    for line in (ROOT / INDEX).read_text().splitlines():
        if heading := re.fullmatch(r"\*\*(.*)\*\*", line):
            title = heading.group(1)
            continue
        for link in re.findall(r"\]\(([^)#]+\.md)\)", line):
            page = os.path.normpath(os.path.join("docs", link))
            if page in seen:
                continue
            seen.add(page)
            if page.startswith("docs/decisions/"):
                decisions.append(page)
            elif title is None:
                pages.errors.append(f"{INDEX}: the link to {link} is before the first title")
            else:
                sections.setdefault(title, []).append(page)
    sections["Decisions"] = decisions
    for path in sorted((ROOT / "docs").rglob("*.md")):
        name = path.relative_to(ROOT).as_posix()
        if name not in seen:
            pages.errors.append(f"{INDEX}: does not name {name}, so the navigation lacks it")
    return sections


def make_pages(work):
    for page in (work / "pages/cpp").glob("*.html"):
        without_dead_links(page)
    pages = Pages(work)
    sections = navigation(pages)
    for names in sections.values():
        for page in names:
            pages.add(page)
    for name in sorted(pages.sources):
        pages.add_source(name)
    pages.write("python-reference.md", python_reference.page(ROOT / "bindings/python"))
    shutil.copytree(ROOT / "docs/images", pages.folder / "docs/images", dirs_exist_ok=True)
    nav = [{title: [{pages.titles.get(page, page): page} for page in names]} for title, names in sections.items()]
    reference = {"Reference": [{"C++ and C": "cpp/index.html"}, {"Python": "python-reference.md"}]}
    nav.insert(next(at for at, part in enumerate(nav) if "Decisions" in part), reference)
    (work / "navigation.json").write_text(json.dumps(nav, indent=1))
    for error in pages.errors:
        print(f"error: {error}")
    return bool(pages.errors)


def main():
    what, work = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    sys.exit(make_headers(work) if what == "headers" else make_pages(work))


if __name__ == "__main__":
    main()
