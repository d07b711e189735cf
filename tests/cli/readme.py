# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""readme.py PROGRAM ROOT brief|shortened: README's shell lines do what it says of them, and its transcripts, whole or
shortened, are what the program prints."""

import pathlib
import re
import subprocess
import sys
import tempfile

program, root = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
readme = (root / "README.md").read_text()


def section(title):
    return re.search(rf"^## {title}\n(.*?)(?=^## )", readme, re.M | re.S).group(1)


with tempfile.TemporaryDirectory() as folder:
    box = pathlib.Path(folder)
    (box / "build/release").mkdir(parents=True)
    (box / "build/release/deltaproof").symlink_to(program)
    (box / "tests").symlink_to(root / "tests")

    def run(line):
        ran = subprocess.run(["sh", "-c", line], cwd=box, capture_output=True, text=True)
        return ran.returncode, ran.stdout, ran.stderr

    def brief():
        # Where to begin: each use takes at most ten lines; those of the researcher, one after another.
        blocks = re.findall(r"```(\w+)\n(.*?)```", section("Where to begin"), re.S)
        assert [kind for kind, _ in blocks] == ["python", "sh", "sh"], [kind for kind, _ in blocks]
        assert all(len(text.splitlines()) <= 10 for _, text in blocks)
        codes = [run(line) for line in blocks[2][1].splitlines()]
        assert [code for code, _, _ in codes] == [1, 0, 0, 0], codes
        assert codes[0][1].startswith("verdict      unsafe: ") and (box / "mine/index.html").stat().st_size > 10_000

        # Transcripts: the command after "$ ", then what it prints.
        transcripts = [text for title in ("Judge a kernel", "Choose an inverse") for text in re.findall(r"```\n\$ (.*?)```", section(title), re.S)]
        assert len(transcripts) == 2
        for transcript in transcripts:
            line, _, shown = transcript.partition("\n")
            _, printed, refused = run(line)
            assert printed == shown, f"{line}\nprints\n{printed}{refused}\nREADME shows\n{shown}"

    def shortened():
        # A shortened one: each line shown is printed, up to its "..."; `deltaproof` is the program as it is installed.
        [transcript] = re.findall(r"```\n(\$ .*?)```", section("One key, three inverses"), re.S)
        printed = ""
        for line in transcript.splitlines():
            if line.startswith("$ deltaproof "):
                printed = run("build/release/" + line[2:])[1]
            else:
                shown = line.removesuffix(" ...").removesuffix("...")
                assert any(one.startswith(shown) for one in printed.splitlines()), f"README shows\n{line}\nbut there is\n{printed}"

    {"brief": brief, "shortened": shortened}[sys.argv[3]]()
