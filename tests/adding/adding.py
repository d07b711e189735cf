# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""adding.py PROGRAM LIBRARIES CMAKE COMPILER EIGEN ROOT: each diff of examples/adding applies alone, touches the place
that CONTRIBUTING names and nothing else, two files and 60 lines at most; with all of them applied every list has what each of
them adds, and only that; and the rule, the format, the inverse, the metric, the op and the verb do what they are there for."""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

program, library, cmake, compiler, eigen, root = sys.argv[1:]
root = pathlib.Path(root)

# diff: (axis of `list`, what it adds, where); a verb is listed by --help
ADDED = {
    "op": ("ops", "kda_product", ["include/deltaproof/oracle/problem.hpp"]),
    "verb": (None, "hash", ["src/cli/hash.cpp", "src/cli/verbs.hpp"]),
    "rule": ("rules", "theta34", ["include/deltaproof/rule/rules.hpp", "tests/rule/truth.hpp"]),
    "format": ("formats", "pxr24", ["include/deltaproof/number/format.hpp", "tests/number/truth.hpp"]),
    "inverse": ("inverses", "forward32+block2", ["include/deltaproof/algebra/triangular.hpp"]),
    "metric": ("metrics", "mean_abs", ["include/deltaproof/oracle/measure.hpp", "src/oracle/measure.cpp"]),
    "regime": ("regimes", "idle", ["src/inputs/regimes.cpp"]),
    "plan": ("plans", "decode-bf16-state", ["src/plan/presets/decode-bf16-state.toml"]),
    "fault": ("faults", "o-first-token-lost", ["src/emulate/faults_output.cpp"]),
    "study": ("studies", "half-life", ["src/studies/half_life/page.md", "src/studies/half_life/study.cpp"]),
    "claim": ("claims", "transition-trace", ["src/claims/checks/step.cpp", "src/claims/step.toml"]),
}
diffs = {path.stem: path for path in (root / "examples/adding").glob("*.diff")}
assert diffs.keys() == ADDED.keys(), diffs.keys()


def run(*command, code=0, cwd=None):
    # What lies in a folder of the repository is not git's to look at: a diff is applied to files.
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(pathlib.Path(cwd).parent)} if cwd else None
    ran = subprocess.run([str(word) for word in command], cwd=cwd, env=environment, capture_output=True, text=True)
    assert ran.returncode == code, f"{command}\nexit {ran.returncode}\n{ran.stdout}{ran.stderr}"
    return ran.stdout


def names(lists, axis):
    return [line.split()[0] for line in run(lists, "list", axis).splitlines()]


with tempfile.TemporaryDirectory() as folder:
    boxes = {name: pathlib.Path(folder) / name for name in ("sources", "metric")}
    box = boxes["sources"]
    for copy in boxes.values():
        for part in ("include", "src", "cmake", "tests/number", "tests/rule"):
            shutil.copytree(root / part, copy / part)
    contributing = (root / "CONTRIBUTING.md").read_text()
    for name, diff in diffs.items():
        run("git", "apply", "--check", diff, cwd=box)
        changes = [line.split("\t") for line in run("git", "apply", "--numstat", diff, cwd=box).splitlines()]
        touched = [path for _, _, path in changes]
        assert touched == ADDED[name][2], f"{name}.diff touches {touched}"
        assert len(touched) <= 2 and sum(int(added) for added, _, _ in changes) <= 60, f"{name}.diff is long: {changes}"
        assert f"examples/adding/{name}.diff" in contributing, f"CONTRIBUTING.md lacks {name}.diff"
    # A metric is a member of what `measure` returns: it is tried beside the library, whose objects know the old size.
    metric = diffs.pop("metric")
    run("git", "apply", metric, cwd=boxes["metric"])
    run("git", "apply", *diffs.values(), cwd=box)

    changed = {path for name in diffs for path in ADDED[name][2] if path.startswith("src/") and path.endswith(".cpp")}
    shutil.copy(root / "tests/adding/project.cmake", box / "CMakeLists.txt")
    build = box / "build"
    run(cmake, "-S", box, "-B", build, "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={compiler}", f"-DROOT={root}", f"-DLIBRARY={library}",
        f"-DEIGEN={eigen}", "-DCHANGED=" + ";".join(sorted(changed)), f"-DMETRIC={boxes['metric']}")
    run(cmake, "--build", build, "-j", "1")

    run(build / "uses", folder)
    printed = run(build / "metric")
    assert "mean_abs  mean |error|" in printed, printed
    for name, (axis, what, _) in ADDED.items():
        if axis is None or name == "metric":
            continue
        before, after = names(program, axis), names(build / "deltaproof", axis)
        assert what not in before and [one for one in after if one != what] == before, f"{name}: {set(before) ^ set(after)}"
        assert after.count(what) == 1, f"{name}: list {axis} lacks {what}"
        assert run(build / "deltaproof", "explain", what).strip(), what
    # The verb is a row of the table, with its help line, and does what it says.
    problem = pathlib.Path(folder) / "problem.safetensors"
    assert run(build / "deltaproof", "hash", problem).strip() == hashlib.sha256(problem.read_bytes()).hexdigest()
    assert "SHA-256 of a problem" in run(build / "deltaproof", "--help")
    explained = run(build / "deltaproof", "explain", "transition-trace")
    assert "blog-en 16" in explained and "equal is yes: found yes, as the verdict requires" in explained, explained
    # A study's page is filled and holds what it expects.
    page = run(build / "deltaproof", "study", "half-life")
    assert "**After how many tokens is half of the state gone?**" in page and "after 693 tokens" in page, page
    assert "| -0.001 | 693.1 |" in page and "Not so" not in page, page
    # The typed tests of the rules take it up by themselves, and it passes them.
    assert len(re.findall(r"\[       OK \] rule/theta34\.", run(build / "rules"))) >= 5

    # The page shows what the program prints.
    shown = (root / "examples/adding/README.md").read_text()
    assert run(build / "deltaproof", "explain", "theta34") in shown, "examples/adding/README.md shows another theta34"
