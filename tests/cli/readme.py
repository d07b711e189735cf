# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""readme.py PROGRAM ROOT brief|shortened: the shell lines of README.md and docs/ do what the pages say, and each transcript is what the
program prints: whole, or where the page calls it shortened, each line shown up to its "...". Tables of names have those that there are.
`shortened` runs the one that takes half a minute."""

import pathlib
import re
import subprocess
import sys
import tempfile

program, root = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
pages = {path.name: path.read_text() for path in (root / "README.md", *sorted((root / "docs").glob("*.md")))}
LONG = "Example: one key, three inverses"


def section(page, title):
    return re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", pages[page], re.M | re.S).group(1)


def transcripts(text):
    """Each with whether it is shortened, which the text after it then says."""
    found = re.finditer(r"```\n(\$ .*?)```\n*([^\n]*)", text, re.S)
    return [(one.group(1), one.group(2).startswith("(shortened")) for one in found]


with tempfile.TemporaryDirectory() as folder:
    box = pathlib.Path(folder)
    (box / "build/release").mkdir(parents=True)
    (box / "build/release/deltaproof").symlink_to(program)
    (box / "tests").symlink_to(root / "tests")

    def run(line):
        # `deltaproof` is the program as it is installed.
        line = re.sub(r"^deltaproof ", "build/release/deltaproof ", line)
        ran = subprocess.run(["sh", "-c", line], cwd=box, capture_output=True, text=True)
        return ran.returncode, ran.stdout, ran.stderr

    def compare(transcript, shortened, page):
        printed = shown = ""
        for line in [*transcript.splitlines(), "$ "]:
            if not line.startswith("$ "):
                shown += line + "\n"
                continue
            if shown and not shortened:
                assert printed == shown, f"{page} shows\n{shown}\nbut the program prints\n{printed}"
            rest = iter(printed.splitlines())
            for one in shown.splitlines() if shortened else []:
                begin = one.removesuffix("...").rstrip() if one.endswith("...") else one
                whole = not one.endswith("...")
                assert any(it == begin if whole else it.startswith(begin) for it in rest), f"{page} shows\n{one}\nbut the program prints\n{printed}"
            shown = ""
            printed = run(line[2:])[1] if line != "$ " else ""

    def brief():
        # Seven ways in, each of a few lines; those of the studies, one after another.
        blocks = re.findall(r"```(\w+)\n(.*?)```", pages["begin.md"], re.S)
        assert [kind for kind, _ in blocks] == ["python", "python", "python", "python", "cpp", "sh", "sh"], [kind for kind, _ in blocks]
        assert all(len(text.splitlines()) <= 12 for _, text in blocks)
        codes = [run(line) for line in blocks[-1][1].splitlines()]
        assert [code for code, _, _ in codes] == [1, 0, 0, 0], codes
        assert codes[0][1].startswith("verdict      unsafe: ") and (box / "mine/index.html").stat().st_size > 10_000

        # The tables of the pages name what the program has.
        def named(axis):
            return [line.split()[0] for line in run(f"deltaproof list {axis}")[1].splitlines()]

        verbs = run("deltaproof frobnicate")[2].strip().split("choose from ")[1].split(", ")
        shown = re.findall(r"`(\w+)[ `]", "".join(re.findall(r"^\| (.*?) \|", section("guide.md", "All commands"), re.M)))
        assert set(shown) == set(verbs), (
            f'docs/guide.md, "All commands": lacks {set(verbs) - set(shown)}, has {set(shown) - set(verbs)}, which are no verbs'
        )
        for key, axis in (("op", "ops"), ("rule", "rules")):
            row = re.search(rf"^\| `{key}` \| (.*?) \|", pages["exchange-format.md"], re.M).group(1)
            assert re.findall(r"`(\w+)`", row) == named(axis), f"exchange-format.md: {key} is {row}, but `deltaproof list {axis}` has {named(axis)}"
        stages = re.findall(r'\{"(\w+)",\s*stage_part::', (root / "include/deltaproof/files/stage_table.hpp").read_text())
        missing = [stage for stage in stages if f"`{stage}`" not in pages["exchange-format.md"]]
        assert len(stages) > 20 and not missing, f"exchange-format.md lacks {missing}"

        ran = 0
        for page, text in pages.items():
            if page == "guide.md":
                text = text.replace(section(page, LONG), "")
            for transcript, shortened in transcripts(text):
                compare(transcript, shortened, page)
                ran += 1
        assert ran == 3, f"{ran} transcripts were run, 3 are expected"

    def shortened():
        [(transcript, _)] = transcripts(section("guide.md", LONG))
        compare(transcript, True, "guide.md")

    {"brief": brief, "shortened": shortened}[sys.argv[3]]()
