# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
import deltaproof
import pytest
from chunk_kernel import chunk_delta_rule

CASES = deltaproof.pytest_cases("delta_rule", ["typical", "repeated"], T=160, K=32, V=32, H=2, HV=2)


@pytest.mark.parametrize("case", CASES)
def test_the_kernel_keeps_its_plan(case, deltaproof_check):
    p = case.problem
    o, final_state, stages = chunk_delta_rule(p.q, p.k, p.v, p.beta, p.scale, p.initial_state)
    # On a GPU: o, final_state = my_kernel(*(x.cuda() for x in (p.q, p.k, p.v, p.beta))), then o.cpu(), final_state.cpu()
    result = deltaproof.Result(o, final_state, kernel="chunk_kernel.py", chunk_size=64, stages=stages)
    deltaproof_check(p, result, plan="fla-chunk-delta")
