# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""The gradients that lie in tests/recordings/fla-0.6 and h100 are those of a correct kernel, to what its formats cost."""

import sys

import deltaproof
import pytest
from conftest import ROOT

sys.path[:0] = [str(ROOT / "python/deltaproof"), str(ROOT / "examples/recording-fla")]
from gradients import errors, exact  # noqa: E402
from recorder import BACKWARD_STAGES, GRADIENTS, read, record_result  # noqa: E402

FOLDER = ROOT / "tests/recordings/fla-0.6"
H100 = ROOT / "tests/recordings/h100"
RESULTS = sorted(
    path
    for folder in (FOLDER, H100)
    for path in folder.glob("*.safetensors")
    if ".problem." not in path.name and "dq" in read(path)
)


def recorded(path):
    return read(path.parent / f"{path.name.split('.')[0]}.problem.safetensors"), read(path)


def test_there_are_recordings():
    assert len(RESULTS) == 18


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.name)
def test_gradients_are_near_those_of_a_float64_loop(path):
    problem, result = recorded(path)
    found = errors(problem, result)
    assert set(found) == set(GRADIENTS) - (set() if "g" in problem else {"dg"})
    assert result["pass_"] == "both"
    if path.parent == FOLDER:
        assert set(result) & set(BACKWARD_STAGES) >= {"dh", "dv2", "dv_local"}
    # attention-gym stores dh in bf16 where q, k and v are fp16.
    limit = 3.2e-3 if path.name == "gdn_fp16.attention_gym.safetensors" else 1e-3 if "fp16" in path.name else 2.4e-2
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
        assert all((x > 2.1e-2) == (name in wrong) for name, x in found.items()), found


# One fault a stage, and none that a rounding could explain.
FAULTS = {
    "delta_steps_near_two.chunk": (None, {"u": lambda x: x.roll(1, 1), "dk": lambda x: x.roll(1, 1)}),
    "gdn_correlated.tilelang": ("fla-chunk-gdn-tilelang", {"h": lambda x: x.mT.contiguous(), "dg": lambda x: x.flip(1)}),
    "gdn_wide.flashqla": ("flashqla", {"o": lambda x: x.roll(1, 1), "dv": lambda x: x.roll(1, 1)}),
    "kda_correlated.tilelang": ("fla-chunk-kda-tilelang", {"Ai": lambda x: x * 1.02, "dbeta": lambda x: x * 1.05}),
    "kda_one_chunk.tilelang": ("fla-chunk-kda-tilelang", {"dk": lambda x: x.roll(1, 1), "dAkk": lambda x: x * 1.02}),
    "gdn_correlated.attention_gym": ("attention-gym-gdn", {"o": lambda x: x.roll(1, 1), "dg": lambda x: x.flip(1)}),
    "gdn_wide.flashinfer": ("flashinfer-gdn", {"o": lambda x: x.roll(1, 1), "final_state": lambda x: x.mT.contiguous()}),
    "gdn_decode.sglang": ("sglang-packed-decode", {"o": lambda x: x * 1.05, "final_state": lambda x: x.mT.contiguous()}),
    "gdn_correlated.llama": (None, {"o": lambda x: x.roll(1, 1), "final_state": lambda x: x.mT.contiguous()}),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_faulty_twin_of_a_recording_from_the_card_is_refuted(name, tmp_path):
    plan, faults = FAULTS[name]
    problem = H100 / f"{name.split('.')[0]}.problem.safetensors"
    result = read(H100 / f"{name}.safetensors")
    for tensor, fault in faults.items():
        wrong = tmp_path / f"{tensor}.safetensors"
        record_result(problem, {**result, tensor: fault(result[tensor])}, out=wrong)
        verdict = deltaproof.check(problem, wrong, plan=plan, power=False)
        assert verdict.word == "refuted", (tensor, verdict.reason)
