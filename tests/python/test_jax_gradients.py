# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""Gradients of JAX functions, by jax.vjp."""

import dataclasses

import deltaproof
import pytest

jax = pytest.importorskip("jax", reason="jax is not installed: gradients by jax.vjp are not tested")


@pytest.fixture
def problem():
    asked = dict(T=40, K=8, V=6, H=1, HV=2, dtype="fp32", gate="-0.05", initial_state="normal", cotangents=True)
    return next(deltaproof.cases("gated_delta_rule", "typical", **asked)).problem


def loop(p):
    """The recurrence by lax.scan, a head and a token at a time, in fp32."""
    exact = jax.lax.Precision.HIGHEST

    def head(k, v, beta, g, state, q):
        def step(state, token):
            q, k, v, beta, g = token
            state = state * jax.numpy.exp(g)
            u = beta * (v - jax.numpy.dot(k, state, precision=exact))
            state = state + jax.numpy.outer(k, u)
            return state, p.scale * jax.numpy.dot(q, state, precision=exact)

        state, out = jax.lax.scan(step, state, (q, k, v, beta, g))
        return out, state

    over = jax.vmap(head, in_axes=(None, 1, 1, 1, 0, None), out_axes=(1, 0))
    o, state = over(p.k[0, :, 0], p.v[0], p.beta[0], p.g[0], p.initial_state[0], p.q[0, :, 0])
    return o[None], state[None]


def test_a_scan_is_judged_by_a_plan(problem, deltaproof_check):
    words = {"path": "recurrent"}
    for given, library in ((problem, "jax"), (problem.jax(), None)):
        verdict = deltaproof_check.gradients(loop, given, "fp32", library=library, words=words, power=False)
        for name in ("o", "final_state", "dq", "dk", "dv", "dbeta", "dg", "dinitial_state"):
            assert verdict.tensors[name]["verdict"] == "holds", name

    def without_the_gradient_of_beta(p):
        return loop(dataclasses.replace(p, beta=jax.lax.stop_gradient(p.beta)))

    faulty = deltaproof.check_gradients(
        without_the_gradient_of_beta, problem, "fp32", library="jax", words=words, power=False
    )
    assert faulty.word == "refuted" and faulty.tensors["dbeta"]["verdict"] == "refuted", faulty.text
    assert faulty.tensors["dk"]["verdict"] == "holds"


def test_bfloat16_and_no_final_state(problem):
    asked = dict(T=40, K=8, V=6, H=1, HV=2, gate="-0.05", initial_state="none", cotangents=True)
    given = next(deltaproof.cases("gated_delta_rule", "typical", **asked)).problem
    given = dataclasses.replace(given, dfinal_state=None)

    def rounded(p):
        wide = {n: getattr(p, n).astype("float32") for n in ("q", "k", "v", "beta", "g")}
        state = jax.numpy.zeros((1, 2, 8, 6), "float32")
        return loop(dataclasses.replace(p, initial_state=state, **wide))[0].astype(p.q.dtype)

    result = deltaproof.differentiate(rounded, given, library="jax", path="recurrent")
    assert result.final_state is None and set(result.gradients) == {"dq", "dk", "dv", "dbeta", "dg"}
    assert result.gradients["dk"].dtype.name == "bfloat16"
    verdict = deltaproof.check(given, result, plan=False, max_error="rel_fro=0.02", because="bf16 gradients of an fp32 loop")
    assert verdict, verdict.text
    with pytest.raises(deltaproof.format_error, match="returns no final_state"):
        deltaproof.differentiate(rounded, problem, library="jax")
