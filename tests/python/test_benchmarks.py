# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""Kernel benchmarks by their published interfaces: a correct kernel is good, one of all zeros is not."""

import inspect
from types import SimpleNamespace

import cheats
import deltaproof
import pytest
import torch
from deltaproof import Problem, Result
from deltaproof.compat.gpumode import checking
from deltaproof.compat.kernelbench import correctness


@pytest.fixture(scope="module")
def p():
    return next(deltaproof.cases("gated_delta_rule", "slow-decay", T=96, K=16, V=8, H=1, HV=1, initial_state="none")).problem


def data_of(p):
    return p.q, p.k, p.v, p.beta, p.g


def test_gpu_mode(p):
    """custom_kernel(data) and check_implementation(data, output) -> (bool, str), as its eval.py calls them."""
    check_implementation = checking(
        lambda data: Problem(*data, op="gated_delta_rule", scale=p.scale), lambda o: Result(*o), plan="fp32"
    )
    assert list(inspect.signature(check_implementation).parameters) == ["data", "output"]
    assert check_implementation(data_of(p), cheats.rounded(p)) == (True, "")
    good, message = check_implementation(data_of(p), cheats.all_zeros(p))
    assert not good and message.startswith("verdict      refuted")
    good, message = check_implementation(data_of(p), (cheats.rounded(p)[0][:, :5],))
    assert not good and "shape" in message


def test_kernelbench_hard(p):
    """check_correctness(reference_out, solution_out, dtype=None, override=None) -> (bool, str)."""
    check_correctness = correctness(p, plan="fp32")
    names = {n: q.default for n, q in inspect.signature(check_correctness).parameters.items()}
    assert (
        list(names) == ["reference_out", "solution_out", "dtype", "override"] and names["dtype"] is names["override"] is None
    )
    due = cheats.rounded(p)[0]
    passed, message = check_correctness(due, due.clone(), dtype=torch.bfloat16)
    assert passed and message.startswith("ok")
    # Its own rule, allclose with 1e-2, takes noise of 1e-2, and zeros on small outputs.
    noisy = cheats.tolerance_sized_noise(p)[0]
    assert torch.allclose(due.float(), noisy.float(), atol=1e-2, rtol=1e-2)
    for wrong in (noisy, torch.zeros_like(due), torch.full_like(due, float("nan"))):
        assert check_correctness(due, wrong)[0] is False
    assert check_correctness(due, due[:, :4]) == (False, "shape mismatch: ref=(1, 96, 1, 8) sol=(1, 4, 1, 8)")


def test_flashinfer_bench(p):
    default = pytest.importorskip("flashinfer_bench.bench.evaluators.default", reason="flashinfer-bench is not installed")
    from deltaproof.compat.flashinfer_bench import evaluator
    from flashinfer_bench.data import Definition, EvaluationStatus

    axes = {name: {"type": "const", "value": value} for name, value in (("B", 1), ("T", 96), ("H", 1), ("K", 16), ("V", 8))}
    like = {"q": "BTHK", "k": "BTHK", "v": "BTHV", "beta": "BTH", "g": "BTH"}
    definition = Definition(
        name="gdn", op_type="gdn", axes=axes,
        inputs={n: {"shape": list(s), "dtype": "float32" if n in ("beta", "g") else "bfloat16"} for n, s in like.items()},
        outputs={"o": {"shape": list("BTHV"), "dtype": "bfloat16"}, "final_state": {"shape": list("BHKV"), "dtype": "float32"}},
        reference="def run(q, k, v, beta, g):\n    return v, v\n",
    )  # fmt: skip
    cls = evaluator(
        lambda definition: definition.op_type == "gdn",
        lambda *given: Problem(*given, op="gated_delta_rule", scale=p.scale),
        lambda o, state: Result(o, state),
        plan="fp32",
    )
    assert issubclass(cls, default.DefaultEvaluator) and cls.can_evaluate(definition)
    theirs = inspect.signature(default.DefaultEvaluator.check_correctness).parameters
    assert list(inspect.signature(cls.check_correctness).parameters) == list(theirs)

    class Solution:
        metadata = SimpleNamespace(destination_passing_style=False)

        def __init__(self, kernel):
            self.kernel = kernel

        def __call__(self, q, k, v, beta, g):
            return self.kernel(SimpleNamespace(q=q, k=k, v=v, beta=beta, g=g, scale=p.scale, initial_state=None))

    for kernel, status in (
        (cheats.rounded, None),
        (cheats.all_zeros, EvaluationStatus.INCORRECT_NUMERICAL),
        (cheats.nan_as_wildcard, EvaluationStatus.INCORRECT_NUMERICAL),
        (cheats.crashes, EvaluationStatus.RUNTIME_ERROR),
    ):
        found, evaluation = cls.check_correctness(definition, Solution(kernel), [list(data_of(p))], [[]], None, "", "cpu")
        assert (evaluation.status if evaluation else None) == status
        assert (found is None) == (status == EvaluationStatus.RUNTIME_ERROR)
