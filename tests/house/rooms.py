# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""rooms.py ROOT: a folder is a room, in include/deltaproof and in src alike. Fails, with file, line and what is included, where
an include runs upward, two folders include each other, a room reads a private header of another (one in src), a study includes
the folder of another study, or bench/, which the tests do not build, includes what is not there."""

import collections
import pathlib
import re
import sys

# From the ground up. Rooms of one line stand beside each other: neither includes the other.
ROOMS = [
    ["support"],
    ["number"],
    ["algebra"],
    ["rule"],
    ["scan"],
    ["oracle"],
    ["files"],
    ["inputs"],
    ["plan"],
    ["inverse"],
    ["emulate"],
    ["stages"],
    ["referee"],
    ["check"],
    ["sweep"],
    ["testing"],
    ["study"],
    ["claims", "studies"],
    ["cli"],
]
# Headers of src that other rooms may read, beside all of src/support: what one room does for the others, and no user calls.
SHARED = {
    "oracle/solve/stream.hpp",  # files: golden files are written block by block
    "oracle/gradients/by_group.hpp",  # files: golden gradients are rounded group by group
    "oracle/pair_field.hpp",  # studies: the certified adjoint in double-double
    "oracle/tiers/lower_double_double.hpp",  # check: the low-precision loop reads heads as the oracle does
    "inputs/regime_draft.hpp",  # inverse: its matrices are made of the regimes' keys
    "emulate/products.hpp",  # referee, check, studies: rounding at run time
    "emulate/lane_rounding.hpp",  # check: the low-precision loop rounds in vectors
    "emulate/packs.hpp",  # check: and adds in them
    "emulate/fault.hpp",  # referee: what each planted fault needs
    "study/markdown.hpp",  # claims: their ledger is a page
    "study/toml_section.hpp",  # claims: they are rows of TOML
}
HEIGHT = {room: height for height, line in enumerate(ROOMS) for room in line}
INCLUDE = re.compile(r'\s*#\s*include\s*["<]([^">]+)[">]')

root = pathlib.Path(sys.argv[1])
found = []


def includes_of(file):
    """Line, words and, where it is one of ours, file of each include."""
    for number, line in enumerate(file.read_text().splitlines(), 1):
        if match := INCLUDE.match(line):
            places = (base / match[1] for base in (file.parent, root / "include", root / "src", root))
            yield number, match[1], next((place.resolve() for place in places if place.is_file()), None)


def parts_of(file):
    """room, and the path below it"""
    for base in (root / "include/deltaproof", root / "src"):
        if file.is_relative_to(base):
            return file.relative_to(base).parts
    return ()


def files_of(*folders):
    kinds = {".cpp", ".hpp", ".inc"}
    return sorted(file for folder in folders for file in (root / folder).rglob("*") if file.suffix in kinds)


root = root.resolve()
edges = collections.defaultdict(list)  # (folder, folder): places
for file in files_of("include/deltaproof", "src"):
    here = parts_of(file)
    if here == ("deltaproof.hpp",):  # the umbrella
        continue
    if here[0] not in HEIGHT:
        found.append(f"{file}: src and include have no room {here[0]}; add it to the rooms of tests/house/rooms.py")
        continue
    for number, words, other in includes_of(file):
        there = parts_of(other) if other else ()
        place = f"{file}:{number}: includes {other or words}"
        if not there or there[0] not in HEIGHT:
            continue
        if here[0] != there[0] and HEIGHT[there[0]] >= HEIGHT[here[0]]:
            found.append(f"{place}: room {here[0]} may not include room {there[0]}, which does not lie below it (ROOMS in tests/house/rooms.py)")
        private = there[0] not in (here[0], "support") and other.is_relative_to(root / "src")
        if private and str(other.relative_to(root / "src")) not in SHARED:
            found.append(f"{place}: a private header of room {there[0]}; include its headers of include/deltaproof, or add it with the reason to SHARED in tests/house/rooms.py")
        if here[0] == there[0] == "studies":
            mine, theirs = (pathlib.PurePath(part[1]).stem for part in (here, there))
            if theirs not in (mine, "shared"):
                found.append(f"{place}: study {mine} includes the folder of study {theirs}; what two studies use lies in shared")
        if file.parent != other.parent:
            edges[file.parent, other.parent].append(place)

# Folders that reach each other, directly or through others.
reached = collections.defaultdict(set)
for start in {folder for folder, _ in edges}:
    ahead = [start]
    while ahead:
        last = ahead.pop()
        for a, b in edges:
            if a == last and b not in reached[start]:
                reached[start].add(b)
                ahead.append(b)
for (a, b), places in sorted(edges.items()):
    if a in reached[b]:
        found += [f"{place}: folders {a.relative_to(root)} and {b.relative_to(root)} include each other, directly or through others" for place in places]

for file in files_of("bench"):
    for number, words, other in includes_of(file):
        if other is None and '"' in file.read_text().splitlines()[number - 1]:
            found.append(f"{file}:{number}: includes {words}, which is not there")

print("\n".join(found), end="\n" if found else "")
sys.exit(bool(found))
