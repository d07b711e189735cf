# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""The gradients that lie in tests/recordings/fla-0.6 are those of a correct kernel, to what its formats cost."""

import sys

import pytest
from conftest import ROOT

sys.path[:0] = [str(ROOT / "python/deltaproof"), str(ROOT / "examples/recording-fla")]
from gradients import errors, exact  # noqa: E402
from recorder import BACKWARD_STAGES, GRADIENTS, read  # noqa: E402

FOLDER = ROOT / "tests/recordings/fla-0.6"
RESULTS = sorted(path for path in FOLDER.glob("*.safetensors") if ".problem." not in path.name)


def recorded(path):
    return read(FOLDER / f"{path.name.split('.')[0]}.problem.safetensors"), read(path)


def test_there_are_recordings():
    assert len(RESULTS) == 7


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.name)
def test_gradients_are_near_those_of_a_float64_loop(path):
    problem, result = recorded(path)
    found = errors(problem, result)
    assert set(found) == set(GRADIENTS) - (set() if "g" in problem else {"dg"})
    assert result["pass_"] == "both" and set(result) & set(BACKWARD_STAGES) >= {"dh", "dv2", "dv_local"}
    limit = 1e-3 if "fp16" in path.name else 2e-2
    assert all(x < limit for x in found.values()), found


def test_a_fault_in_a_gradient_would_show():
    problem, result = recorded(FOLDER / "gdn_ordinary.chunk.safetensors")
    due = exact(problem)
    for wrong in (
        {"dg": result["dg"].flip(1)},  # the cumulative sum from the wrong end
        {"dk": result["dk"] - due["dk"].mean(1, keepdim=True)},
        {"dinitial_state": result["dinitial_state"].mT},
        {"dq": result["dq"] * problem["scale"]},
    ):
        found = errors(problem, {**result, **wrong})
        assert all((x > 2e-2) == (name in wrong) for name, x in found.items()), found
