#!/usr/bin/env python3
"""Checks that includes go only where the table of rooms lets them: rooms.py SOURCE_FOLDER

rooms.txt has a row per room: the room's folder, a colon, and the rooms whose files it may include. A file belongs to the
room with the longest name that its path begins with. An include that no row allows, a row that names a room of a later
row, an arrow that no include needs and a file without a room are errors. So are paths that begin at the file's own folder and
lead into another room, because the compiler finds them without the room's target, and files that include each other in a circle.

A row such as "executor/world implements chorale/world.hpp" says which room defines what a public header declares. A row such as
"compiler/plan types chorale/collective.hpp" says that a public header has nothing to define, and whose headers it builds on; it is
an error if the header declares a function without a body. Within its library, such a header counts as a header of that room.
A name that ends with / stands for all headers of a folder. Every public header must be in exactly one of these rows.
"""
import os
import pathlib
import re
import sys

TOPS = ("bindings", "compiler", "dsl", "executor", "plans", "tools")
SUFFIXES = {".cpp", ".cu", ".cuh", ".def", ".h", ".hpp", ".in"}
# Quoted names are looked for in the folder of the file, and then in these.
INCLUDE_FOLDERS = ("", "bindings/c/include", "compiler/include", "dsl/include", "executor/include", "plans/include")
HEADERS = {".cuh", ".h", ".hpp"}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+["<]([^">]+)[">]')

# The heads of a namespace or class, of a function with a body, and of a function without one.
SCOPE = re.compile(r"\b(?:namespace|class|struct|union)\b(?:\s+alignas\s*\([^)]*\))?\s*([\w:]*)(?:\s+final)?\s*(?::[^:(][^(]*)?$|\bextern\s*$")
FUNCTION = re.compile(r"\s*([^=(]*?)(~?\w+)\s*\(", re.S)
DECLARATION = re.compile(r"\s*((?!using\b|typedef\b|friend\b|static_assert\b|template\b|extern\b)[^=(]*?)(~?\w+)\s*\(.*\)\s*"
                         r"(?:const\b\s*|noexcept\b\s*|override\b\s*|final\b\s*|&+\s*)*$", re.S)


def read_rooms(path, errors):
    """Returns the rooms that each room may include, by room, and the rows of public headers: (room, word, header or folder)."""
    rooms, rows = {}, []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        if ":" not in line:
            room, word, *headers = line.split()
            if word not in ("implements", "types"):
                errors.append(f"{path}:{number}: after {room}, expected ':', 'implements' or 'types', but got '{word}'")
            rows += [(room, word, f"{room.split('/')[0]}/include/{header}") for header in headers]
            continue
        name, _, allowed = line.partition(":")
        for other in allowed.split():
            if other not in rooms:
                errors.append(f"{path}:{number}: {name} may include {other}, which has no row above: includes would go in a circle")
        rooms[name] = set(allowed.split())
    errors += [f"{path}: {room} {word} headers, but has no row of its own" for room, word in {row[:2] for row in rows} if room not in rooms]
    return rooms, rows


def read_owners(rows, files, errors):
    """Returns the room and the word of the row that names a public header, by header."""
    owners = {}
    for room, word, named in rows:
        found = [file for file in files if is_public(file) and (file.startswith(named) if named.endswith("/") else file == named)]
        if not found:
            errors.append(f"cmake/rooms.txt: {room} {word} {named.split('/include/')[1]}, which does not exist")
        for file in found:
            if file in owners:
                errors.append(f"cmake/rooms.txt: {room} {word} {file}, and so does {owners[file][0]}: leave it in one row")
            owners[file] = room, word
    for file in sorted(files):
        if is_public(file) and file not in owners:
            library = file.split("/")[0]
            errors.append(f"{file}: no row of cmake/rooms.txt names it: add it to 'ROOM implements' with the room that defines its "
                          f"functions, or to '{library}/include types' if it leaves nothing to define")
    return owners


def is_public(path):
    return path.split("/")[1] == "include" and path.split("/")[0] in TOPS and os.path.splitext(path)[1] in HEADERS


def functions(text):
    """Returns the functions that a header declares without a body, as in "chorale::World::join", and the names of those with one."""
    text = re.sub(r'//[^\n]*|/\*.*?\*/', " ", text, flags=re.S)
    text = re.sub(r"""^[ \t]*#(?:\\\n|[^\n])*""", "", text, flags=re.M)
    text = re.sub(r"""\[\[.*?\]\]|__attribute__\s*\(\(.*?\)\)|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'""", " ", text, flags=re.S)
    declared, defined, scopes, head, body, last = [], set(), [], "", 0, 0
    for mark in re.finditer(r"[{};]", text):
        if body:
            body += {"{": 1, "}": -1, ";": 0}[mark[0]]
            last = mark.end()
            continue
        head, last = head + text[last:mark.start()], mark.end()
        inside = head.count("(") > head.count(")")  # a default argument is between braces
        if mark[0] == "{":
            scope = SCOPE.search(head)
            if scope and not inside:
                scopes.append(scope[1] or "")
                head = ""
                continue
            body = 1
            function = FUNCTION.match(head)
            if function and not inside:
                defined.add(function[2])
            head = "" if ")" in head and not inside else head + "{}"
        elif mark[0] == "}":
            scopes[-1:] = []
            head = ""
        elif not inside:
            statement = re.sub(r"^\s*(?:(?:public|private|protected)\s*:\s*)+", "", head)
            found = DECLARATION.match(statement)
            if found and (found[1].strip() or [found[2].lstrip("~")] == scopes[-1:]):
                declared.append("::".join(filter(None, [*scopes, found[2]])))
            head = ""
    return declared, defined


def room_of(path, rooms):
    """Returns the room of a file; None: it has none."""
    return max((room for room in rooms if path.startswith(room + "/")), key=len, default=None)


def target_of(path, name, files):
    """Returns the file of ours that an include names; None: it is another library's."""
    for folder in (os.path.dirname(path), *INCLUDE_FOLDERS):
        found = os.path.normpath(os.path.join(folder, name))
        if found in files:
            return found
    return None


def circles(includes):
    """Returns the sets of files that include each other, each as a sorted list."""
    found, numbers, open_files = [], {}, []

    def visit(path):
        """Returns the smallest number of an open file that this one leads to. (Tarjan's algorithm)"""
        least = numbers[path] = len(numbers)
        place = len(open_files)
        open_files.append(path)
        for other in includes[path]:
            if other not in numbers:
                least = min(least, visit(other))
            elif other in open_files:
                least = min(least, numbers[other])
        if least == numbers[path]:
            if len(open_files) > place + 1 or path in includes[path]:
                found.append(sorted(open_files[place:]))
            del open_files[place:]
        return least

    for path in sorted(includes):
        if path not in numbers:
            visit(path)
    return found


def main(root):
    errors = []
    rooms, rows = read_rooms(root / "cmake/rooms.txt", errors)
    files = {str(path.relative_to(root)) for top in TOPS for path in (root / top).rglob("*") if path.suffix in SUFFIXES}
    includes = {path: set() for path in files}
    owners = read_owners(rows, files, errors)
    unused = {(room, other) for room, allowed in rooms.items() for other in allowed}
    for path in sorted(files):
        room = room_of(path, rooms)
        if room is None:
            errors.append(f"{path}: it is in no room of cmake/rooms.txt")
            continue
        for number, line in enumerate((root / path).read_text().splitlines(), 1):
            include = INCLUDE.match(line)
            target = include and target_of(path, include.group(1), files)
            other = target and room_of(target, rooms)
            if not other:
                continue
            includes[path].add(target)
            owner = owners.get(target, (other, ""))[0]
            if owner != other and path.split("/")[0] == target.split("/")[0]:
                includer = owners.get(path, (room, ""))[0]
                unused.discard((includer, owner))
                if owner not in rooms.get(includer, set()) | {includer}:
                    errors.append(f"{path}:{number}: {includer} may not include {target}, a header of {owner} (cmake/rooms.txt)")
            if other == room:
                continue
            if target == os.path.normpath(os.path.join(os.path.dirname(path), include.group(1))):
                errors.append(f"{path}:{number}: {include.group(1)} is of {other}: include it by its path from the root of the project")
            unused.discard((room, other))
            if other not in rooms[room]:
                errors.append(f"{path}:{number}: {room} may not include {other} (cmake/rooms.txt), but includes {target}")
    found = {header: functions((root / header).read_text()) for header, (_, word) in owners.items() if word == "types"}
    for header, (declared, defined) in sorted(found.items()):
        # A header may also leave a function to one that includes it.
        defined = defined.union(*(found[other][1] for other in found if header in includes[other]))
        errors += [f"{header}: it declares {name}() without a body, so it belongs in a row 'ROOM implements' of cmake/rooms.txt"
                   for name in declared if name.split("::")[-1] not in defined]
    errors += [f"cmake/rooms.txt: {room} names {other}, and includes nothing of it: take the name away" for room, other in sorted(unused)]
    errors += [f"these files include each other in a circle: {' '.join(circle)}" for circle in circles(includes)]
    for error in errors:
        print(f"error: {error}")
    if not errors:
        print(f"{len(files)} files in {len(rooms)} rooms")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
