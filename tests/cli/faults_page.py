# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""faults_page.py check|write PROGRAM ROOT: docs/faults.md is what `list faults` knows. `check` fails where the page is not what
`write` would write."""

import json
import pathlib
import subprocess
import sys

what, program, root = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
told = subprocess.run([program, "list", "faults", "--json", "-"], capture_output=True, text=True, check=True).stdout
faults = json.loads(told)["faults"]
EACH_BACKWARD = "a plan with [backward]; do or dfinal_state"  # said once, above the tables
assert faults, "list faults names none"

page = """# Planted faults

The mistakes that deltaproof plants in an emulated kernel. `check` runs those that can happen to a problem: which of them these inputs
would show is the *power* of a verdict, and which of them an error is like is its *diagnosis*. `deltaproof emulate --fault NAME` writes
the result of a kernel that makes one of them. This page is `deltaproof list faults`: `python3 tests/cli/faults_page.py write
build/release/deltaproof .` writes it, and a test compares the two.

- *first wrong*: the first stage that is wrong, by its name in the [exchange format](exchange-format.md); `inputs`: what the kernel reads.
- *acts*: `arithmetic`: another format, order or method than the plan's; `reads`: the kernel reads something else from its inputs;
  `before`: one stage reads something wrong, and no other does; `after`: what a stage leaves is wrong for everyone.
- *changes*: the results that it can change.
- *needs*: the path of the kernel, and what the problem must have. A fault of the backward pass needs a plan with a section
  `[backward]` and a problem with `do` or `dfinal_state`.
"""
for title, kind in (("Forward pass", "forward"), ("Backward pass", "backward")):
    page += f"\n## {title}\n\n| fault | what the kernel does | first wrong | acts | changes | needs |\n|---|---|---|---|---|---|\n"
    for one in faults:
        if one["pass"] != kind:
            continue
        path = "" if one["paths"] == "chunk, recurrent" else f"the {one['paths']} path"
        needs = ", ".join(filter(None, (path, "" if one["needs"] == "nothing" else one["needs"].removeprefix(EACH_BACKWARD).removeprefix(", "))))
        cells = (f"`{one['name']}`", one["statement"], f"`{one['first wrong']}`", one["acts"], one["changes"], needs)
        page += "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"

file = root / "docs/faults.md"
if what == "write":
    file.write_text(page)
elif file.read_text() != page:
    sys.exit(f"docs/faults.md is not what the program lists; python3 tests/cli/faults_page.py write {program} {root}")
