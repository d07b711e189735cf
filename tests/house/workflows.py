# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""workflows.py ROOT: the workflows run verbs of `./run` in debian:12 and nothing else, ci.yml first what .ci/run does; actions are
pinned by commit and nothing may write. Then the same checks on workflows with one thing wrong each."""

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


verbs = set(re.findall(r"^  ([a-z|]+)\)$", (root / "run").read_text(), re.M))


def commands_of(workflow):
    """Each command, with what a matrix puts into it."""
    for job in workflow["jobs"].values():
        of_matrix = job.get("strategy", {}).get("matrix", {}).get("verb", [""])
        for step in job["steps"]:
            if "run" in step:
                yield from (step["run"].replace("${{ matrix.verb }}", verb) for verb in of_matrix)


def verb_of(command):
    return "".join(command.split()[1:2])


def complaints_of_commands(workflow):
    yield from complaints(workflow)
    for command in commands_of(workflow):
        if command.split()[:1] != ["./run"] or verb_of(command) not in verbs:
            yield f"runs {command}; only verbs of ./run are expected"


def complaints_of_ours(workflow):
    yield from complaints_of_commands(workflow)
    commands = list(commands_of(workflow))
    others = {verb_of(command) for command in commands[1:]}
    first, rest = "./run test --output-junit junit.xml", {"gcc", "sanitize", "python", "docs", "fuzz"}
    if commands[:1] != [first] or others != rest:
        yield f"runs {commands}; expected are {first} and then ./run with {', '.join(sorted(rest))}"
    uploads = [step["with"]["path"] for step in steps_of(workflow) if step.get("uses", "").startswith("actions/upload-artifact@")]
    if uploads != ["build/release/junit.xml"]:
        yield f"uploads {uploads}: ctest puts junit.xml into the build folder"
    actions = {step["uses"].split("@")[0] for step in steps_of(workflow) if "uses" in step}
    if actions != {"actions/checkout", "actions/upload-artifact"}:
        yield f"uses {sorted(actions)}; expected are actions/checkout and actions/upload-artifact alone"


ours = yaml.safe_load((root / ".github/workflows/ci.yml").read_text())
recipe = yaml.safe_load((root / "examples/ci/kernel-checks.yml").read_text())
nightly = yaml.safe_load((root / ".github/workflows/nightly.yml").read_text())
found = [f"ci.yml: {one}" for one in complaints_of_ours(ours)]
found += [f"nightly.yml: {one}" for one in complaints_of_commands(nightly)]
if {verb_of(command) for command in commands_of(nightly)} != {"proofs", "deep"}:
    found.append(f"nightly.yml: runs {list(commands_of(nightly))}; expected are ./run proofs and ./run deep")
found += [f"examples/ci/kernel-checks.yml: {one}" for one in complaints(recipe)]
if "./run test" not in (root / ".ci/run").read_text().splitlines():
    found.append(".ci/run does not run ./run test")

planted = {
    "another image": lambda w: w["jobs"]["test"].update(container="debian:13"),
    "no container": lambda w: w["jobs"]["test"].pop("container"),
    "another command": lambda w: w["jobs"]["test"]["steps"].append({"run": "make"}),
    "a verb that is none": lambda w: w["jobs"]["other"]["strategy"]["matrix"]["verb"].append("walk"),
    "no sanitizers": lambda w: w["jobs"]["other"]["strategy"]["matrix"]["verb"].remove("sanitize"),
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
        found.append(f"this test did not notice a planted mistake: {what}")
sys.exit("\n".join(found) or 0)
