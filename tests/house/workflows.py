# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""workflows.py ROOT: the workflow runs `./run test` in debian:12 and nothing else, as .ci/run does; actions are pinned by commit and
nothing may write. Then the same checks on workflows with one thing wrong each."""

import copy
import pathlib
import re
import sys

import yaml

root = pathlib.Path(sys.argv[1])


def steps_of(workflow):
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def complaints(workflow):
    """Of any workflow of ours."""
    if workflow.get("permissions") != {"contents": "read"}:
        yield "permissions are not contents: read alone"
    for name, job in workflow["jobs"].items():
        if job.get("container") != "debian:12":
            yield f"job {name} runs in {job.get('container')}, not in debian:12"
        if "permissions" in job:
            yield f"job {name} has permissions of its own"
        if "timeout-minutes" not in job:
            yield f"job {name} has no time limit"
    for step in steps_of(workflow):
        action, _, version = step.get("uses", "none@" + "0" * 40).partition("@")
        if not re.fullmatch("[0-9a-f]{40}", version):
            yield f"{action} is not pinned by its commit"
        if action == "actions/checkout" and step.get("with", {}).get("persist-credentials") is not False:
            yield "a checkout leaves its credentials"


def complaints_of_ours(workflow):
    yield from complaints(workflow)
    commands = [step["run"] for step in steps_of(workflow) if "run" in step]
    if commands != ["./run test --output-junit junit.xml"]:
        yield f"runs {commands}, not ./run test alone"
    uploads = [step["with"]["path"] for step in steps_of(workflow) if step.get("uses", "").startswith("actions/upload-artifact@")]
    if uploads != ["build/release/junit.xml"]:
        yield f"uploads {uploads}: ctest puts junit.xml into the build folder"
    actions = {step["uses"].split("@")[0] for step in steps_of(workflow) if "uses" in step}
    if actions != {"actions/checkout", "actions/upload-artifact"}:
        yield f"uses {sorted(actions)}"


ours = yaml.safe_load((root / ".github/workflows/ci.yml").read_text())
recipe = yaml.safe_load((root / "examples/ci/kernel-checks.yml").read_text())
found = list(complaints_of_ours(ours)) + [f"recipe: {one}" for one in complaints(recipe)]
if "./run test" not in (root / ".ci/run").read_text().splitlines():
    found.append(".ci/run does not run ./run test")

planted = {
    "another image": lambda w: w["jobs"]["test"].update(container="debian:13"),
    "no container": lambda w: w["jobs"]["test"].pop("container"),
    "another command": lambda w: w["jobs"]["test"]["steps"].append({"run": "./run deep"}),
    "no command": lambda w: w["jobs"]["test"]["steps"].pop(1),
    "an action by its tag": lambda w: w["jobs"]["test"]["steps"][0].update(uses="actions/checkout@v4"),
    "another action": lambda w: w["jobs"]["test"]["steps"].append({"uses": "actions/cache@" + "0" * 40}),
    "credentials left": lambda w: w["jobs"]["test"]["steps"][0].pop("with"),
    "a right to write": lambda w: w.update(permissions={"contents": "write"}),
    "a job's own rights": lambda w: w["jobs"]["test"].update(permissions="write-all"),
    "no time limit": lambda w: w["jobs"]["test"].pop("timeout-minutes"),
    "no artefact": lambda w: w["jobs"]["test"]["steps"].pop(),
}
for what, plant in planted.items():
    spoilt = copy.deepcopy(ours)
    plant(spoilt)
    if not list(complaints_of_ours(spoilt)):
        found.append(f"unseen: {what}")
sys.exit("\n".join(found) or 0)
