#!/usr/bin/env python3
"""Checks that the rooms of the libraries do not use each other in a circle: links.py SOURCE_FOLDER OBJECTS

cmake/rooms.py looks at includes. A room can also use another one through a public header that declares what the other room
defines. So this test reads the symbols of the object files. An arrow goes from the room that uses a symbol to the room that
defines it, and from a room to each room whose files it may include. It is an error if these arrows make a circle. It is also
an error if the table says that a room implements a public header, but another room defines a function of it. OBJECTS is a file with
the paths of the libraries' object files, one a line.
"""
import collections
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(sys.argv[1], "cmake")))
import rooms as table  # noqa: E402


def room_of_object(item, root, allowed):
    """Returns the room of an object file's sources, or None if they are generated or in several rooms."""
    # A path is <build>/executor/CMakeFiles/chorale_executor_in_<room>.dir/<source>.o. Sources that are compiled together are in "Unity".
    found = re.search(r"/([^/]+)/CMakeFiles/[^/]+[.]dir/(.+)[.]o$", item)
    if not found:
        return None
    library, source = found.groups()
    sources = [f"{library}/{source}"]
    if source.startswith("Unity/"):
        text = pathlib.Path(item).with_suffix("").read_text()
        sources = [os.path.relpath(name, root) for name in re.findall(r'#include "([^"]+)"', text)]
    found = {table.room_of(name, allowed) for name in sources}
    return found.pop() if len(found) == 1 else None


def symbols_of(item):
    """Returns the symbols that an object file defines, and those that it uses and does not define."""
    defined, used = set(), set()
    for line in subprocess.run(["nm", item], text=True, capture_output=True, check=True).stdout.splitlines():
        words = line.split()
        if len(words) == 3 and words[1] in "BDRT":
            defined.add(words[2])
        elif len(words) == 2 and words[0] == "U":
            used.add(words[1])
    return defined, used


def defined_elsewhere(root, owners, defined_in):
    """Yields an error for each function of a public header that other rooms define, and not the one that implements the header."""
    symbols = list(defined_in)
    names = subprocess.run(["c++filt"], input="\n".join(symbols), text=True, capture_output=True, check=True).stdout.splitlines()
    rooms_of = collections.defaultdict(set)
    for symbol, name in zip(symbols, names):
        rooms_of[re.sub(r"\[abi:\w+\]", "", name).partition("(")[0]].add(defined_in[symbol])
    for header, (room, word) in sorted(owners.items()):
        if word != "implements":
            continue
        for name in dict.fromkeys(table.functions((root / header).read_text())[0]):
            if rooms_of[name] and room not in rooms_of[name]:
                yield f"{header}: {room} implements it (cmake/rooms.txt), but {', '.join(sorted(rooms_of[name]))} defines {name}()"


def circle_in(arrows):
    """Returns the rooms of a circle, each with an arrow to the next and the last with one to the first, or None."""
    done = set()

    def search(path):
        for other in sorted(arrows[path[-1]]):
            if other in path:
                return path[path.index(other):]
            found = other not in done and search([*path, other])
            if found:
                return found
        done.add(path[-1])
        return None

    for room in sorted(arrows):
        found = room not in done and search([room])
        if found:
            return found
    return None


def main(root, objects):
    errors = []
    allowed, rows = table.read_rooms(root / "cmake/rooms.txt", errors)
    headers = {str(path.relative_to(root)) for top in table.TOPS for path in (root / top / "include").rglob("*")}
    owners = table.read_owners(rows, headers, errors)
    defined_in, uses = {}, collections.defaultdict(set)
    for item in map(os.path.normpath, objects.read_text().splitlines()):
        room = room_of_object(item, root, allowed)
        if room is None:
            continue
        defined, used = symbols_of(item)
        defined_in.update(dict.fromkeys(defined, room))
        uses[room] |= used
    if len(uses) < 20:
        print(f"error: only {len(uses)} rooms have object files in {objects}")
        return 1
    errors += defined_elsewhere(root, owners, defined_in)
    for error in errors:
        print(f"error: {error}")
    arrows, example = collections.defaultdict(set), {}
    for room, symbols in uses.items():
        for symbol in symbols:
            other = defined_in.get(symbol, room)
            if other != room:
                arrows[room].add(other)
                example[room, other] = symbol
        arrows[room] |= {other for other in allowed[room] if not other.endswith("/include")}
    circle = circle_in(arrows)
    if not circle:
        print(f"{sum(map(len, arrows.values()))} arrows between {len(arrows)} rooms")
        return 1 if errors else 0
    print("error: these rooms use each other in a circle:")
    for room, other in zip(circle, [*circle[1:], circle[0]]):
        symbol = example.get((room, other))
        what = subprocess.run(["c++filt", symbol], text=True, capture_output=True).stdout.strip() if symbol else "an include"
        print(f"  {room} uses {other}: {what}")
    print("help: move a function that uses a higher room into that room, or what it uses into a lower room")
    return 1


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
