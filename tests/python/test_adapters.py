# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""Every public kernel of deltaproof.adapters that is installed holds under the preset that lists it. `./run gallery test` installs them
at the versions they were read at; where one is absent, its test is skipped by its name."""

import json
import os
import subprocess
import sys
import warnings

import deltaproof
import numpy
import pytest
from deltaproof import adapters
from conftest import ROOT
from deltaproof.adapters import Kernel

ALL = adapters.kernels()
#: What the recordings of reports/gallery show: on these formats the kernel is refuted.
FAULTS = {("attention-gym naive_chunk_kda", "bf16"): "final_state"}


@pytest.mark.parametrize("dtype", ["bf16", "fp32"])
@pytest.mark.parametrize("kernel", ALL, ids=lambda k: k.name.replace(" ", "-"))
def test_a_public_kernel_keeps_its_plan(kernel, dtype, tmp_path):
    if kernel.version is None:
        assert not os.environ.get("DELTAPROOF_ADAPTERS"), f"{kernel.package} is not installed"
        pytest.skip(f"{kernel.name}: {kernel.package} {kernel.tested} is not installed")
    if dtype not in kernel.dtypes:
        pytest.skip(f"{kernel.name} does not take {dtype}")
    warnings.simplefilter("ignore")
    for op in kernel.ops:
        state = "normal" if kernel.state else "none"
        shape = {"T": 128, "K": 16, "V": 8, **dict.fromkeys("KV" if kernel.dims else "", max(kernel.dims, default=0))}
        case = next(deltaproof.cases(op, "typical", **shape, H=1, HV=1, dtype=dtype, initial_state=state, to=None))
        file = deltaproof.record(tmp_path / op, case.problem)[0]
        verdict = deltaproof.check(file, kernel.record(file), power=False)
        fault = FAULTS.get((kernel.name, dtype))
        assert verdict.word == ("refuted" if fault else "holds"), verdict.text
        assert verdict.plan == preset_of(kernel).name
        assert (not fault or fault in verdict.reason)


def preset_of(kernel):
    [plan] = [plan for plan in deltaproof.plans() if kernel.name in plan.kernels]
    return plan


def test_every_kernel_is_listed_by_one_preset():
    for kernel in ALL:
        plan = preset_of(kernel)
        assert set(kernel.ops) <= set(plan.ops) and kernel.package in plan.source.replace("mlx-lm 0", "mlx-lm")
        assert f"{kernel.package} {kernel.tested}" in plan.source and plan.path == (["chunk"] if kernel.chunk_size else ["recurrent"])


@pytest.mark.parametrize("script", sorted((ROOT / "reports/gallery/faults").glob("*.py")), ids=lambda path: path.stem)
def test_a_fault_is_shown_by_its_package_alone(script):
    package = next(kernel for kernel in ALL if script.stem.startswith(kernel.package.replace("-core", "").replace("-cpu", "")))
    if package.version is None:
        pytest.skip(f"{package.package} {package.tested} is not installed")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    printed = json.loads((ROOT / "reports/gallery/faults.json").read_text(encoding="utf-8"))
    assert done.stdout.strip().splitlines() == printed[script.stem]


def loop(p):
    """In numpy, states as [V, K], the gate as a decay."""
    q, k, v, beta, g = (numpy.asarray(x, "f8") for x in (p.q, p.k, p.v, p.beta, p.g))
    n = v.shape[2] // q.shape[2]
    q, k = q.repeat(n, 2), k.repeat(n, 2)
    S = numpy.swapaxes(numpy.asarray(p.initial_state, "f8"), -1, -2).copy()
    o = numpy.zeros(v.shape, "f4")
    for t in range(q.shape[1]):
        S *= g[:, t, :, None, None]
        S += numpy.einsum("bhv,bhk->bhvk", beta[:, t, :, None] * (v[:, t] - numpy.einsum("bhk,bhvk->bhv", k[:, t], S)), k[:, t])
        o[:, t] = p.scale * numpy.einsum("bhk,bhvk->bhv", q[:, t], S)
    return o, S.astype("f4")


MINE = Kernel("mine", "deltaproof", "", ("gated_delta_rule",), loop, library="numpy", gate="decay", state_layout="vk")


@pytest.fixture
def case():
    given = {"T": 40, "K": 16, "V": 8, "H": 1, "HV": 2, "dtype": "fp32", "initial_state": "normal"}
    return next(deltaproof.cases("gated_delta_rule", "typical", **given, to=None))


def test_a_kernel_of_one_s_own_is_called_in_its_units(case, tmp_path):
    assert deltaproof.check(case, MINE(case), plan="fp32")
    file = deltaproof.record(tmp_path / "case", case.problem)[0]
    verdict = deltaproof.check(file, MINE.record(file), plan="fp32").require()
    assert "gate given as decay" in verdict.json["result"]["producer"]


@pytest.mark.parametrize(
    "change,given,says",
    [
        ({"ops": ("kda",)}, {}, "computes kda, not gated_delta_rule"),
        ({"grouped": False}, {}, "as many heads of q and k as of v, not 1 and 2"),
        ({"state": False}, {}, "takes no initial state"),
        ({"chunk_size": 64, "whole_chunks": True}, {}, "multiples of 64 tokens"),
        ({"dtypes": ("bf16",)}, {}, "takes bf16, not fp32"),
        ({"dims": (64,)}, {}, "takes K and V of \\(64,\\), not 16 and 8"),
        ({"square": True}, {}, "takes K = V, not 16 and 8"),
        ({}, {"qk_l2norm": True}, "does not normalise"),
        ({"l2norm": True}, {"qk_l2norm": True, "l2norm_eps": 1e-5}, "normalises with l2norm_eps = 1e-06, not 1e-05"),
        ({}, {"rule": "exact"}, "has no rule exact"),
        ({}, {"gate_activation": "softplus", "A_log": numpy.zeros(2, "f4")}, "no gate_activation softplus"),
        ({}, {"beta_activation": "sigmoid"}, "no beta_activation sigmoid"),
        ({"scale": "default"}, {"scale": 1.0}, "has the scale 16 \\*\\* -0.5 alone, not 1.0"),
        ({"scale": "one"}, {"scale": 0.3}, "q times 0.3 would be rounded"),
    ],
)
def test_what_a_kernel_does_not_compute_is_refused(case, change, given, says):
    import dataclasses

    with pytest.raises(deltaproof.format_error, match=says):
        dataclasses.replace(MINE, **change)(dataclasses.replace(case.problem, **given))
    with pytest.raises(deltaproof.format_error, match="no adapter is called 'sglang'"):
        adapters.kernels("sglang")
