# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""ci_recipe.py PROGRAM ROOT: the shell lines of examples/ci (workflow and README), run in a repository as they expect it: on recordings
that hold, then on one that a faulty kernel gave."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

import yaml

program, root = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
recipe = yaml.safe_load((root / "examples/ci/kernel-checks.yml").read_text())
steps = {step["name"]: step["run"] for step in recipe["jobs"]["deltaproof"]["steps"] if "run" in step}
assert list(steps) == ["Build", "Judge"], steps


def shell(line, code, cwd, **environment):
    # As a runner does it in a container.
    ran = subprocess.run(["sh", "-e", "-c", line], cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True)
    assert ran.returncode == code, f"{line}\nexit {ran.returncode}, not {code}\n{ran.stdout}{ran.stderr}"
    return ran.stdout


with tempfile.TemporaryDirectory() as folder:
    box = pathlib.Path(folder)
    recordings = box / "recordings"
    shutil.copytree(root / "tests/recordings", recordings)
    shutil.copy(root / "examples/ci/suite.toml", recordings)
    # In place of the second checkout: a `run` whose `build` leaves the program where the project's own does.
    (box / "deltaproof").mkdir()
    stub = box / "deltaproof/run"
    stub.write_text(
        f'#!/bin/sh\nset -eu\n[ "$*" = build ]\ncd "$(dirname "$0")"\nmkdir -p build/release\nln -s "{program}" build/release/deltaproof\n'
    )
    stub.chmod(0o755)
    assert re.search(r"^  build\)", (root / "run").read_text(), re.M)

    shell(steps["Build"], 0, box)
    once = re.search(r"```sh\n(.*?)```", (root / "examples/ci/README.md").read_text(), re.S).group(1)
    shell(once, 0, box)

    def judged(code):
        summary = box / "summary.md"
        summary.write_text("")  # the runner makes it
        said = shell(steps["Judge"], code, box, GITHUB_STEP_SUMMARY=str(summary))
        suite = xml.etree.ElementTree.parse(box / "deltaproof.xml").getroot().find("testsuite")
        failed = {case.get("name"): case.find("failure").get("message") for case in suite if case.find("failure") is not None}
        assert all("\nagain        deltaproof check recordings/" in case.find("failure").text for case in suite if case.get("name") in failed)
        assert suite.get("tests") == "3" and suite.get("failures") == str(len(failed)), suite.attrib
        return said, failed, summary.read_text(), json.loads((box / "deltaproof.json").read_text())

    said, failed, summary, report = judged(0)
    assert failed == {}, failed
    assert report["verdict"] == "holds" and "3 as expected" in summary and "BAD" not in summary, summary
    # docs/begin.md shows the same in one line.
    shown = re.search(r"^deltaproof (check recordings/suite.toml .*)$", (root / "docs/begin.md").read_text(), re.M).group(1)
    judge = re.sub(r"\\\n *", "", steps["Judge"]).strip()
    assert judge == "deltaproof/build/release/deltaproof " + shown.replace(" --markdown", " --json deltaproof.json --markdown"), judge
    # The same files and the same program: not a bit of a ratio moves.
    assert " 0 of " in said and "0 verdicts changed" in said, said

    shell(
        "deltaproof/build/release/deltaproof emulate recordings/grouped_heads.problem.safetensors --plan fla-chunk-gdn"
        " --fault o-mask-off-by-one -o recordings/grouped_heads.chunk.safetensors",
        0,
        box,
    )
    said, failed, summary, report = judged(1)
    assert list(failed) == ["gated, chunk"] and failed["gated, chunk"].startswith("refuted, expected holds: o: "), failed
    assert report["verdict"] == "refuted" and "| BAD | gated, chunk | refuted | holds |" in summary, summary
    assert "1 verdict changed" in said and "gated, chunk: holds -> refuted" in summary, said

    # A recording that went missing is no verdict, and hides none: the summary, which other steps write to as well, has all cases.
    (recordings / "grouped_heads.chunk.safetensors").unlink()
    (box / "summary.md").write_text("# an earlier step\n")
    shell(steps["Judge"], 2, box, GITHUB_STEP_SUMMARY=str(box / "summary.md"))
    summary = (box / "summary.md").read_text()
    assert summary.startswith("# an earlier step\n\n## ") and "| error | gated, chunk | no answer |" in summary, summary
    assert "2 as expected, 1 that could not be judged" in summary and "gated, chunk: holds -> no answer" in summary, summary
    suite = xml.etree.ElementTree.parse(box / "deltaproof.xml").getroot().find("testsuite")
    assert suite.get("errors") == "1" and suite.get("failures") == "0", suite.attrib
