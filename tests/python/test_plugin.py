# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""The pytest plugin on tests as an author writes them, and the example of examples/pytest."""

import re
import shlex
import shutil
import subprocess
import sys
import textwrap
import xml.etree.ElementTree as xml

import pytest
from conftest import ROOT

AUTHOR = """
import deltaproof, pytest
CASES = deltaproof.pytest_cases("delta_rule", ["typical"], T=40, K=16, V=16, H=1, HV=1, seeds=[0, 1])

@pytest.mark.parametrize("fault", [None, "inverse-bf16-between-steps"])
@pytest.mark.parametrize("case", CASES)
def test_kernel(case, fault, deltaproof_check):
    result = deltaproof.emulate(case, "fla-chunk-delta", fault)
    deltaproof_check(case, result, power=False)

def test_measured(deltaproof_check):
    problem = CASES[0].values[0].problem
    deltaproof_check(problem, {"o": problem.v}, plan=False, accept=("measured",))
"""


def properties(junit):
    out = {}
    for case in xml.parse(junit).getroot().iter("testcase"):
        out[case.get("name")] = [(p.get("name"), p.get("value")) for p in case.iter("property")]
    return out


@pytest.mark.parametrize("workers", [0, 2])
def test_verdicts_witnesses_and_properties(pytester, program, workers):
    if workers:
        pytest.importorskip("xdist")
    pytester.makepyfile(AUTHOR)
    done = pytester.runpytest_subprocess(
        "--deltaproof-witness-dir=found", "--junitxml=j.xml", *(["-n", str(workers)] if workers else [])
    )
    done.assert_outcomes(passed=3, failed=2)
    done.stdout.fnmatch_lines(
        [
            "*verdict      refuted: Ai: *",
            "*first bad    Ai*",
            "again        deltaproof replay *",
            "deltaproof: 2 holds, 1 measured, 2 refuted",
        ]
    )
    done.stdout.no_fnmatch_line("*Warning*")
    witnesses = sorted((pytester.path / "found").iterdir())
    assert len(witnesses) == 2
    for one in witnesses:
        code, text, _ = program("replay", one)
        assert "refuted" in text and code == 1, text
    # The command that the failure printed, as it stands: with the package comes the program.
    printed = {line.partition("again ")[2].strip() for line in done.outlines if line.startswith("again  ")}
    assert len(printed) == 2
    for command in printed:
        verb, *words = shlex.split(command)
        again = subprocess.run(
            [sys.executable, "-m", verb, *words], cwd=pytester.path, capture_output=True, text=True, check=False
        )
        assert again.returncode == 1 and again.stdout.startswith("replay       reproduced"), again
    found = properties(pytester.path / "j.xml")
    assert len(found) == 5
    for name, stated in found.items():
        stated = dict(stated)
        expected = "measured" if name == "test_measured" else "refuted" if "inverse" in name else "holds"
        assert stated["deltaproof.verdict"] == expected and len(stated["deltaproof.problem_sha256"]) == 64
        assert ("deltaproof.witness" in stated) == (expected == "refuted")


def test_without_an_answer_a_test_fails(pytester):
    pytester.makepyfile(
        """
        import deltaproof
        def test_measured_is_no_pass(deltaproof_check):
            problem = next(deltaproof.cases("delta_rule", "typical", T=8, K=4, V=4)).problem
            deltaproof_check(problem, {"o": problem.v}, plan=False)
        def test_unknown_kernel(deltaproof_check):
            problem = next(deltaproof.cases("delta_rule", "typical", T=8, K=4, V=4)).problem
            deltaproof_check(problem, {"o": problem.v})
        """
    )
    done = pytester.runpytest_subprocess("--deltaproof-no-witness")
    done.assert_outcomes(failed=2)
    done.stdout.fnmatch_lines(["deltaproof: measured", "*format_error:*plan*"])


@pytest.mark.parametrize(("fault", "passed"), [(None, 2), ("o-mask-off-by-one", 0)])
def test_the_lines_of_the_documentation(pytester, fault, passed):
    page = (ROOT / "docs/begin.md").read_text().split("## pytest")[1]
    lines = re.search(r"```python\n(.*?)```", page, re.S).group(1)
    assert len(lines.splitlines()) <= 10
    # What stands for the author's kernel.
    kernel = f"""
        def my_kernel(q, k, v, g, beta, scale, initial_state):
            p = deltaproof.Problem(q, k, v, beta, g, op="gated_delta_rule", scale=scale, initial_state=initial_state)
            r = deltaproof.emulate(p, "fla-chunk-gdn", {fault!r}, chunk=64)
            return r.o, r.final_state
        """
    pytester.makepyfile(lines + textwrap.dedent(kernel))
    done = pytester.runpytest_subprocess("--deltaproof-witness-dir=found")
    done.assert_outcomes(passed=passed, failed=2 - passed)
    assert len(list((pytester.path / "found").glob("*"))) == 2 - passed


@pytest.mark.parametrize(("name", "code"), [("correct", 0), ("faulty", 1)])
def test_the_example(pytester, name, code):
    for file in ("chunk_kernel.py", f"test_{name}_kernel.py"):
        shutil.copy(ROOT / "examples/pytest" / file, pytester.path)
        assert len((ROOT / "examples/pytest" / file).read_text().splitlines()) <= 40
    done = pytester.runpytest_subprocess()
    assert done.ret == code
    if code:
        done.stdout.fnmatch_lines(
            [
                "*verdict      refuted: Ai: *",
                "first bad    Ai, the inverse*",
                "diagnosis    inverse-bf16-between-steps*",
                "again        deltaproof replay *",
            ]
        )
