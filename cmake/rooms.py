#!/usr/bin/env python3
"""Checks that includes go only where the table of rooms lets them: rooms.py SOURCE_FOLDER

rooms.txt has a row per room: the room's folder, a colon, and the rooms whose files it may include. A file belongs to the
room with the longest name that its path begins with. An include that no row allows, a row that names a room of a later
row, an arrow that no include needs and a file without a room are errors. So are paths that begin at the file's own folder and
lead into another room, because the compiler finds them without the room's target, and files that include each other in a circle.

A row such as "executor/world implements chorale/world.hpp" says which room defines what a public header declares. Within its
library, such a header counts as a header of that room.
"""
import os
import pathlib
import re
import sys

TOPS = ("bindings", "compiler", "dsl", "executor", "plans", "tools")
SUFFIXES = {".cpp", ".cu", ".cuh", ".def", ".h", ".hpp", ".in"}
# Quoted names are looked for in the folder of the file, and then in these.
INCLUDE_FOLDERS = ("", "bindings/c/include", "compiler/include", "dsl/include", "executor/include", "plans/include")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+["<]([^">]+)[">]')


def read_rooms(path, errors):
    """Returns the rooms that each room may include, by room, and the rooms that implement public headers, by header."""
    rooms, owners = {}, {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        if ":" not in line:
            room, _, *headers = line.split()
            owners |= {f"{room.split('/')[0]}/include/{header}": room for header in headers}
            continue
        name, _, allowed = line.partition(":")
        for other in allowed.split():
            if other not in rooms:
                errors.append(f"{path}:{number}: {name} may include {other}, which has no row above: includes would go in a circle")
        rooms[name] = set(allowed.split())
    return rooms, owners


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
    rooms, owners = read_rooms(root / "cmake/rooms.txt", errors)
    files = {str(path.relative_to(root)) for top in TOPS for path in (root / top).rglob("*") if path.suffix in SUFFIXES}
    includes = {path: set() for path in files}
    errors += [f"cmake/rooms.txt: {room} implements {header.split('/include/')[1]}, which does not exist"
               for header, room in owners.items() if header not in files]
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
            implementer = owners.get(target)
            if implementer and path.split("/")[0] == target.split("/")[0]:
                includer = owners.get(path, room)
                unused.discard((includer, implementer))
                if implementer not in rooms[includer] | {includer}:
                    errors.append(f"{path}:{number}: {includer} may not include {target}, which {implementer} implements (cmake/rooms.txt)")
            if other == room:
                continue
            if target == os.path.normpath(os.path.join(os.path.dirname(path), include.group(1))):
                errors.append(f"{path}:{number}: {include.group(1)} is of {other}: include it by its path from the root of the project")
            unused.discard((room, other))
            if other not in rooms[room]:
                errors.append(f"{path}:{number}: {room} may not include {other} (cmake/rooms.txt), but includes {target}")
    errors += [f"cmake/rooms.txt: {room} names {other}, and includes nothing of it: take the name away" for room, other in sorted(unused)]
    errors += [f"these files include each other in a circle: {' '.join(circle)}" for circle in circles(includes)]
    for error in errors:
        print(f"error: {error}")
    if not errors:
        print(f"{len(files)} files in {len(rooms)} rooms")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
