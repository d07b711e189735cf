# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""documents.py ROOT: src/claims/sentences.py cuts as it says, and the source documents, where they lie in DELTAPROOF_SEEDS or in
../shared/seeds, are those whose sentences the ledger numbers. Exits with 77 where they do not lie there."""

import hashlib
import os
import pathlib
import sys
import tomllib

root = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(root / "src/claims"))
from sentences import sentences  # noqa: E402

CUT = [
    # at a stop before a capital, and at the end of a line
    ['One thing.', 'Another thing?', 'Yes!', '"So it is."', 'Done'],
    # not within numbers, abbreviations and items
    ["It is 0.028.", "Then 1.92 follows."],
    ["See e.g. Higham, or (i.e. Both) vs. Other."],
    ["1. A list"],
    ["Small. then no capital."],
    # not within formulas
    ["Let $x. Y = 1$ be.", "Now $$A. B$$ too."],
    ["It is: \\begin{equation} a. B = 1 \\end{equation}", "From this, b.", "So"],
]
found = [f"src/claims/sentences.py cuts {' '.join(wanted)!r} as {got}; it should be {wanted}" for wanted in CUT if (got := sentences(" ".join(wanted))) != wanted]
for text, wanted in {
    "A heading\nand text\n\n\nmore": ["A heading", "and text", "more"],
    "  spaces  \r\n\ttab\t": ["spaces", "tab"],
    "": [],
    "第一句。第二句！第三句？完": ["第一句。", "第二句！", "第三句？", "完"],
    "他说“好。”然后走。": ["他说“好。”", "然后走。"],
    "Then:\n\\[\\begin{aligned}\na &= b. C\n\\\\&= d\n\\end{aligned}\\]\nSo it is.": [
        "Then:",
        "\\[\\begin{aligned} a &= b. C \\\\&= d \\end{aligned}\\]",
        "So it is.",
    ],
    # rows of a table, and not its rule
    "| a | b |\n|---|---|\n| 1 | two |": ["| a | b |", "| 1 | two |"],
    "---\n***\n…": ["…"],
}.items():
    if sentences(text) != wanted:
        found.append(f"src/claims/sentences.py cuts {text!r} as {sentences(text)}; it should be {wanted}")

seeds = pathlib.Path(os.environ.get("DELTAPROOF_SEEDS", root / "../shared/seeds"))
for document in tomllib.loads((root / "src/claims/ledger.toml").read_text())["document"] if seeds.is_dir() else []:
    content = (seeds / document["file"]).read_bytes()
    if hashlib.sha256(content).hexdigest() != document["sha256"]:
        found.append(f"{document['file']} is not the document that was read: its sha256 is another")
    if (count := len(sentences(content.decode()))) != document["sentences"]:
        found.append(f"{document['file']} has {count} sentences, not {document['sentences']}")
if found:
    sys.exit("\n".join(found))
if not seeds.is_dir():
    print(f"the source documents are not in {seeds}: their hashes and sentences were not compared")
    sys.exit(77)
