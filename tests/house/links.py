# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""links.py ROOT: every relative link of README.md, CONTRIBUTING.md, docs/ and the READMEs of examples/ and python/ leads to a file, and
its anchor to a heading, as GitHub names it."""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
pages = [root / "README.md", root / "CONTRIBUTING.md", root / "python/README.md"]
pages += [*sorted(root.glob("docs/*.md")), *sorted(root.glob("examples/**/README.md"))]


def anchors(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^#+ (.*)$", text, re.M)}


failures, followed = [], 0
for page in pages:
    text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        followed += 1
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        if not file.exists():
            failures.append(f"{page.relative_to(root)}: {target}: no such file")
        elif anchor and anchor not in anchors(file):
            failures.append(f"{page.relative_to(root)}: {target}: no such heading")
assert followed > 50, f"only {followed} relative links were found; more than 50 are expected"
print("\n".join(failures))
sys.exit(1 if failures else 0)
