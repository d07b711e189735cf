# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""sizes.py ROOT: no file of src or include has more than 500 lines, no function more than 80. Functions are found by the
indentation that clang-format gives them: from the line that opens one to the line that closes it. Tables are not functions. First
the search is tried on a function that is too long and on one that is not."""

import pathlib
import re
import sys

MOST_LINES = 500
MOST_OF_A_FUNCTION = 80
# One loop over the limbs of a row: the vector kernel of fixed point.
KERNELS = {"src/oracle/tiers/integer_engine_steps.hpp"}
NO_FUNCTION = re.compile(r"\s*(namespace|struct|class|enum|union|extern|template)\b|.*(=|\(|\{|return|to_array[^;]*)\s*\{$|.*= \{$")


def long_functions(text):
    """(line, length) of each function that is too long."""
    lines = text.splitlines()
    for indent in ("", "  "):
        start = None
        for number, line in enumerate(lines):
            if start is None:
                at_depth = line.startswith(indent) and line[len(indent) :][:1] not in ("", " ", "}", "#", "/")
                if at_depth and line.endswith("{") and not NO_FUNCTION.match(line):
                    start = number
            elif line.startswith(indent + "}"):
                if number - start + 1 > MOST_OF_A_FUNCTION:
                    yield start + 1, number - start + 1
                start = None


def function_of(lines):
    return "int f(int x) {\n" + "  ++x;\n" * (lines - 2) + "}\n"


assert not list(long_functions(function_of(MOST_OF_A_FUNCTION))), "a function of 80 lines is not too long"
assert list(long_functions("\n" + function_of(MOST_OF_A_FUNCTION + 1))) == [(2, 81)], "a function of 81 lines is seen"

root = pathlib.Path(sys.argv[1])
found = []
for file in sorted(file for folder in ("src", "include") for file in (root / folder).rglob("*") if file.suffix in (".cpp", ".hpp", ".inc")):
    text, name = file.read_text(), str(file.relative_to(root))
    if len(text.splitlines()) > MOST_LINES:
        found.append(f"{name}: {len(text.splitlines())} lines; split it, {MOST_LINES} are allowed")
    if name in KERNELS:
        continue
    found += [f"{name}:{line}: a function of {length} lines; split it, {MOST_OF_A_FUNCTION} are allowed" for line, length in long_functions(text)]
print("\n".join(found), end="\n" if found else "")
sys.exit(bool(found))
