# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""Fails on purpose: the inverse is rounded to bf16 between its steps. Random keys hide that; repeated keys do not, and the stored
stages name it at once. `pytest test_faulty_kernel.py` prints what one would send to the kernel's author."""

import deltaproof
import pytest
from chunk_kernel import bf16, chunk_delta_rule

CASES = deltaproof.pytest_cases("delta_rule", ["repeated"], T=160, K=32, V=32, H=2, HV=2)


@pytest.mark.parametrize("case", CASES)
def test_the_kernel_keeps_its_plan(case, deltaproof_check):
    p = case.problem
    o, final_state, stages = chunk_delta_rule(p.q, p.k, p.v, p.beta, p.scale, p.initial_state, between=bf16)
    result = deltaproof.Result(o, final_state, kernel="chunk_kernel.py", chunk_size=64, stages=stages)
    deltaproof_check(p, result, plan="fla-chunk-delta")
