# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""Gradients of torch functions: what autograd makes of a token loop, beside the certified adjoint and the identities."""

import dataclasses

import deltaproof
import pytest

torch = pytest.importorskip("torch")


@pytest.fixture
def problem():
    asked = dict(T=40, K=8, V=6, H=1, HV=1, dtype="fp32", gate="-0.05", initial_state="normal", cotangents=True)
    return next(deltaproof.cases("gated_delta_rule", "typical", **asked)).problem


def loop(p):
    """The recurrence, one token after the other, in fp64, rounded to fp32 at the end."""
    q, k, v, beta, g = (x.double() for x in (p.q, p.k, p.v, p.beta, p.g))
    state, out = p.initial_state.double()[0, 0], []
    for t in range(q.shape[1]):
        state = state * g[0, t, 0].exp()
        u = beta[0, t, 0] * (v[0, t, 0] - k[0, t, 0] @ state)
        state = state + torch.outer(k[0, t, 0], u)
        out.append(p.scale * (q[0, t, 0] @ state))
    return torch.stack(out)[None, :, None].float(), state[None, None].float()


def test_a_token_loop_has_the_true_gradients(problem):
    assert problem.do.shape == problem.v.shape
    verdict = deltaproof.check_gradients(
        loop, problem, plan=False, max_error="rel_fro=1e-6", because="fp32 outputs of an fp64 loop", words={"path": "recurrent"}
    )
    assert verdict.word == "holds", verdict.text
    assert {"o", "dq", "dk", "dv", "dbeta", "dg", "dinitial_state"} <= set(verdict.tensors)


def test_a_plan_judges_outputs_and_gradients_in_one_verdict(problem, deltaproof_check):
    words = {"path": "recurrent"}
    verdict = deltaproof_check.gradients(loop, problem, "fp32", words=words, power=False)
    assert verdict.json["false_alarm"]["gradients"]["tests"] > 0
    for name in ("o", "final_state", "dq", "dk", "dv", "dbeta", "dg", "dinitial_state"):
        assert verdict.tensors[name]["buckets"], name
        assert verdict.tensors[name]["verdict"] == "holds", name

    def without_the_decay_of_keys(p):
        return loop(dataclasses.replace(p, g=p.g.detach() + 0 * p.g))

    faulty = deltaproof.check_gradients(without_the_decay_of_keys, problem, "fp32", words=words, power=False)
    assert faulty.word == "refuted" and faulty.first_bad_stage == "dg", faulty.text
    assert not faulty.tensors["dk"]["verdict"] == "refuted"


def test_identities_hold_and_show_a_fault(problem):
    result = deltaproof.differentiate(loop, problem)
    verdict = deltaproof.gradient_identities(problem, result)
    assert verdict, verdict.text
    assert [i["name"] for i in verdict.json["gradients"]["identities"]] == ["I1", "I2", "I3", "I4", "I4M", "I5"]
    for name, wrong in (
        ("dg", result.gradients["dg"].flip(1)),
        ("dk", -result.gradients["dk"]),
        ("dbeta", 2 * result.gradients["dbeta"]),
        ("dq", torch.zeros_like(result.gradients["dq"])),
    ):
        faulty = dataclasses.replace(result, gradients={**result.gradients, name: wrong})
        assert deltaproof.gradient_identities(problem, faulty).word == "refuted", name


def test_gradients_are_written_and_read_again(problem, tmp_path):
    result = deltaproof.differentiate(loop, problem)
    names = deltaproof.record(tmp_path / "case", problem, result)
    again = deltaproof.load(names[0], to="torch")
    assert torch.equal(again.do, problem.do) and torch.equal(again.dfinal_state, problem.dfinal_state)
    back = deltaproof.read_result(names[1], names[0], to="torch")
    assert all(torch.equal(back.gradients[name], result.gradients[name]) for name in result.gradients)
    alone = dataclasses.replace(result, o=None, final_state=None)
    assert deltaproof.gradient_identities(problem, alone).word == "holds"


def test_an_emulated_pass_holds_and_its_fault_is_refuted(problem):
    right = deltaproof.emulate(problem, "fp32", path="recurrent", gradients=True)
    assert set(right.gradients) == {"dq", "dk", "dv", "dbeta", "dg", "dinitial_state"}
    assert deltaproof.check(problem, right, "fp32", power=False)
    wrong = deltaproof.emulate(problem, "fp32", "dht-ignored", path="recurrent", gradients=True)
    assert deltaproof.check(problem, wrong, "fp32", power=False).word == "refuted"
    with pytest.raises(deltaproof.format_error, match="gradients=True"):
        deltaproof.emulate(problem, "fp32", "dht-ignored")


def test_an_input_that_is_detached_has_a_gradient_of_zeros(problem):
    detached = lambda p: loop(dataclasses.replace(p, g=p.g.detach()))
    result = deltaproof.differentiate(detached, problem)
    assert not result.gradients["dg"].any()
    verdict = deltaproof.check_gradients(detached, problem, "fp32", power=False, words={"path": "recurrent"})
    assert verdict.word == "refuted" and verdict.first_bad_stage == "dg"
    without = {name: dx for name, dx in result.gradients.items() if name != "dg"}
    rest = deltaproof.check(problem, dataclasses.replace(result, gradients=without), "fp32", power=False)
    assert rest and "gradients that the result lacks are not judged: dg" in rest.reason


class last_keys_unwritten(torch.autograd.Function):
    """The identity on k. Its backward pass leaves the rows of the last tokens as it finds them."""

    @staticmethod
    def forward(ctx, k):
        return k.clone()

    @staticmethod
    def backward(ctx, dk):
        out = torch.empty_like(dk)
        out[:, :-8] = dk[:, :-8]
        return out


def test_a_gradient_that_is_not_written_is_refuted_whatever_lay_in_memory(problem):
    def tail_unwritten(p):
        return loop(dataclasses.replace(p, k=last_keys_unwritten.apply(p.k)))

    found = deltaproof.differentiate(tail_unwritten, problem).gradients["dk"]
    assert found[:, -8:].isnan().all() and not found[:, :-8].isnan().any()
    verdict = deltaproof.check_gradients(tail_unwritten, problem, plan=False, words={"path": "recurrent"})
    assert verdict.word == "refuted" and "dk" in verdict.reason, verdict.text
    given = deltaproof.differentiate(loop, problem, poison=False).gradients
    assert all(torch.equal(x, given[name]) for name, x in deltaproof.differentiate(loop, problem).gradients.items())


def test_what_is_missing_is_said(problem):
    silent = dataclasses.replace(problem, do=None, dfinal_state=None)
    with pytest.raises(deltaproof.format_error, match="cotangents=True"):
        deltaproof.differentiate(loop, silent)
    result = deltaproof.differentiate(loop, problem)
    with pytest.raises(deltaproof.format_error, match="neither do nor dfinal_state"):
        deltaproof.gradient_identities(silent, dataclasses.replace(result, problem_sha256=""))
    with pytest.raises(deltaproof.format_error, match="no gradient is called 'dw'"):
        deltaproof.gradient_identities(problem, dataclasses.replace(result, gradients={"dw": problem.q}))
    with pytest.raises(deltaproof.format_error, match="returns no final_state"):
        deltaproof.differentiate(lambda p: loop(p)[0], problem)
    with pytest.raises(deltaproof.format_error, match="'torch' or 'jax'"):
        deltaproof.differentiate(loop, problem, library="numpy")
