# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""The referee over kernels that share no code with it (other_kernels.py): honest ones in any style that the plan leaves
open hold; one wrong line, also in one chunk, tile or head, is refuted at its stage, and from o and final_state alone
where it is larger there than what the plan costs."""

import dataclasses
from pathlib import Path

import deltaproof
import pytest
import torch
from jax_kernels import EasyDeL, MaxText, MaxTextStep, TpuInference
from other_kernels import LOG2E, OF, ByXla, Channels, DecayOnKeys, ForCpus, Gated, Recurrent, tf32

PLANS = Path(__file__).resolve().parents[1] / "plans"

SMALL = {"T": 150, "K": 32, "V": 16, "H": 1, "HV": 2, "initial_state": "normal"}


def case(op="gated_delta_rule", regime="typical", **given):
    given = {**SMALL, **given}
    if op == "gated_delta_product":
        given.setdefault("num_householder", 2)
    return next(deltaproof.cases(op, regime, seeds=[given.pop("seed", 7)], **given)).problem


def tf32_rz(x):
    return tf32(x, nearest=False)


def exactly(x):
    return x


@pytest.mark.parametrize(
    "op,style,options,given",
    [
        ("delta_rule", "library", {}, {}),
        ("delta_rule", "tensor-core", {"C": 32}, {"regime": "near-repeated", "beta": "near-one"}),
        ("delta_rule", "split", {}, {"T": 1}),
        ("gated_delta_rule", "library", {}, {"H": 2, "HV": 4}),
        ("gated_delta_rule", "pairwise", {"merge": tf32_rz}, {"regime": "strong-decay", "dtype": "fp16"}),
        ("gated_delta_rule", "backward", {"C": 16, "merge": exactly}, {"regime": "correlated", "V": 24}),
        ("gated_delta_rule", "fused", {}, {"cu_seqlens": [0, 64, 65, 65, 130, 137], "T": 137}),
        ("gated_delta_rule", "library", {"product": tf32, "store": False}, {"dtype": "fp32"}),
        ("gated_delta_rule", "library", {}, {"regime": "tiny-keys"}),
        ("delta_rule", "backward", {"block": 64}, {"regime": "correlated", "dtype": "fp16", "seed": 33, "T": 192, "K": 64, "V": 128}),
        ("kda", "library", {}, {}),
        ("kda", "sequential", {"C": 32, "off_diagonal": exactly}, {"regime": "slow-decay"}),
        ("gated_delta_product", "library", {}, {}),
    ],
)
def test_an_honest_chunk_kernel_holds(op, style, options, given):
    problem = case(op, **given)
    deltaproof.check(problem, OF[op](style, **options)(problem), power=False).require()


@pytest.mark.parametrize(
    "op,style,given",
    [
        ("gated_delta_rule", "sequential", {"gate": "reset", "dtype": "fp32"}),
        ("kda", "pairwise", {"regime": "model-gates", "H": 1, "HV": 3}),
        ("gated_delta_product", "backward", {"regime": "silu", "cu_seqlens": [0, 1, 1, 40]}),
        ("delta_rule", "wide", {"regime": "huge-keys"}),
    ],
)
def test_an_honest_kernel_by_tokens_holds(op, style, given):
    problem = case(op, **{"T": 40, **given})
    deltaproof.check(problem, Recurrent(style)(problem), power=False).require()


class ScaledFirst(Gated):
    def cumsum(self, g):
        return torch.cumsum(g * LOG2E, 2)


class ScannedChannels(Channels):
    """Gates summed as a parallel scan associates them, scaled first."""

    def cumsum(self, g):
        G, step = g * LOG2E, 1
        while step < G.shape[2]:
            G = torch.cat([G[:, :, :step], G[:, :, step:] + G[:, :, :-step]], 2)
            step *= 2
        return G


@pytest.mark.parametrize("kernel,op", [(ScaledFirst, "gated_delta_rule"), (ScannedChannels, "kda")])
def test_how_gates_are_summed_is_open(kernel, op):
    """Of gates in bf16 a sum in turn is all but exact; one of scaled gates, or by a scan, is not."""
    problem = case(op, "typical", T=192)
    problem = dataclasses.replace(problem, g=problem.g.bfloat16())
    deltaproof.check(problem, kernel()(problem), power=False).require()


class NaturalChannels(Channels):
    def exp2(self, x):
        return torch.exp(x * 0.6931471805599453)


class NaturalGated(Gated):
    exp2 = NaturalChannels.exp2


@pytest.mark.parametrize("kernel,op,wide", [(NaturalChannels, "kda", False), (NaturalGated, "gated_delta_rule", True)])
def test_exponentials_of_natural_logarithms_hold(kernel, op, wide):
    """They cost a strong gate as many roundings as it has units: in A, and wherever nothing else is rounded."""
    problem = case(op, "strong-decay", T=300, H=2, K=64, V=16)
    deltaproof.check(problem, kernel(wide=wide, merge=exactly)(problem), power=False).require()


@pytest.mark.parametrize("op", ["delta_rule", "gated_delta_rule", "gated_delta_product", "kda"])
def test_a_kernel_that_rounds_nothing_holds(op):
    """More than its plan promises at every stage at once, normalised rows too."""
    problem = dataclasses.replace(case(op, "huge-keys"), qk_l2norm=True)
    result = OF[op]("library", wide=True, store=True, merge=exactly, off_diagonal=exactly)(problem)
    deltaproof.check(problem, result, power=False).require()


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
@pytest.mark.parametrize("op", ["delta_rule", "gated_delta_rule", "gated_delta_product", "kda"])
def test_a_kernel_whose_w_multiplies_the_fp32_state_holds(op, dtype):
    """Its stored h is the copy that the plan speaks of; what w multiplies is more accurate than the plan's letter."""

    class ByState(OF[op]):
        store = True

        def state_of_w(self, S, h):
            return S

    problem = case(op, "typical", dtype=dtype, cu_seqlens=[0, 64, 150])
    result = ByState()(problem)
    deltaproof.check(problem, result).require()
    deltaproof.check(problem, dataclasses.replace(result, stages={})).require()


@pytest.mark.parametrize(
    "kernel,plan,op,public,stage",
    [
        (ForCpus(), "cpu-bf16-chunk", "gated_delta_rule", "fla-chunk-gdn", "Ai"),
        (ByXla(), "tokamax-kda-xla", "kda", "fla-chunk-kda", "o"),
        (MaxText(), "maxtext-chunk", "gated_delta_rule", "fla-chunk-gdn", "A"),
        (TpuInference(), "tpu-inference-chunk", "gated_delta_rule", "fla-chunk-gdn", "A"),
        (EasyDeL(), "easydel-chunk", "gated_delta_rule", "fla-chunk-gdn", "g_cumsum_log2"),
        (DecayOnKeys(), "bf16-chunk-decay-on-k", "gated_delta_rule", "fla-chunk-gdn", "final_state"),
        (DecayOnKeys(decay_on_q=True), "bf16-chunk-decay-on-k", "gated_delta_rule", "fla-chunk-gdn", "o"),
        (DecayOnKeys(decay_on_q=True, w_by_state=True), "bf16-chunk-decay-on-k", "gated_delta_rule", "fla-chunk-gdn", "o"),
    ],
    ids=["cpu", "xla", "maxtext", "tpu-inference", "easydel", "decay on k", "and q", "and w by the state"],
)
def test_a_kernel_holds_under_a_plan_of_its_own(kernel, plan, op, public, stage):
    """What public kernels do otherwise than fla's, as a preset or a user writes it down; under fla's plan their stages say so."""
    regime = "slow-decay" if plan == "easydel-chunk" else "typical"  # sums of gates in bf16 leave little of strong ones
    problem = dataclasses.replace(case(op, regime, cu_seqlens=[0, 64, 150]), qk_l2norm=True)
    presets = [p.name for p in deltaproof.plans()]
    result, own = kernel(problem), plan if plan in presets else str(PLANS / f"{plan}.toml")
    deltaproof.check(problem, result, plan=own).require()
    deltaproof.check(problem, dataclasses.replace(result, stages={}), plan=own, power=False).require()
    other = deltaproof.check(problem, result, plan=public, power=False)
    assert other.word == "refuted", other.text
    assert other.stages[stage]["verdict"] == "refuted", other.text


@pytest.mark.parametrize("K", [64, 48], ids=["a scale that bf16 has", "one that it has not"])
def test_a_step_with_beta_in_its_rows_holds_under_a_plan_of_its_own(K):
    problem = dataclasses.replace(case(T=60, K=K), qk_l2norm=True)
    result = MaxTextStep()(problem)
    assert deltaproof.check(problem, result, power=False).require().plan == "maxtext-recurrent"
    assert deltaproof.check(problem, result, plan="decode-fp32", power=False).word == "refuted"


class BetaTwice(MaxText):
    """beta goes into k, and multiplies the product again."""

    def grams(self, q, k, beta, G):
        A, Aqk = super().grams(q, k, beta, G)
        return A * beta.unsqueeze(3), Aqk


class ScaleOnce(MaxText):
    """The scale as it is, which for K = 48 is not a number of its format: one rounding less than the plan says."""

    factor = 1

    def rows_of(self, p, batch, start, end):
        scale = self.scale * self.factor
        return (self.X(Gated.rows_of(self, p, batch, start, end)[0] * scale), *super().rows_of(p, batch, start, end)[1:])


class ScaleTooLarge(ScaleOnce):
    """By as much as the next number of the plan's format."""

    factor = 1 + 2**-7


class ClippedAtTwo(EasyDeL):
    clip = 2


@pytest.mark.parametrize(
    "kernel,stage", [(BetaTwice, "A"), (ScaleTooLarge, "o"), (ClippedAtTwo, "A")], ids=lambda x: getattr(x, "__name__", x)
)
def test_faults_of_kernels_in_jax_are_named(kernel, stage):
    problem = case("gated_delta_rule", "model-gates", K=48)
    verdict = deltaproof.check(problem, kernel()(problem), power=False)
    assert verdict.word == "refuted" and verdict.stages[stage]["verdict"] == "refuted", verdict.text


def test_a_kernel_that_rounds_less_than_its_plan_holds():
    problem = case("gated_delta_rule", "model-gates", K=48)
    verdict = deltaproof.check(problem, ScaleOnce()(problem), power=False)
    assert verdict.word == "holds", verdict.text


def bf16(x):
    return x.bfloat16().float()


class CumsumInBf16(Gated):
    def cumsum(self, g):
        out, sum_ = torch.zeros_like(g), torch.zeros_like(g[:, :, 0])
        for i in range(g.shape[2]):
            out[:, :, i] = sum_ = bf16(sum_ + g[:, :, i])
        return out * 1.4426950408889634


class TruncatedLog2E(Gated):
    def cumsum(self, g):
        return torch.cumsum(g, 2) * 1.4427


class OddHeadsModulo(Gated):
    def head_of(self, i, groups):
        return i // groups if i % 2 == 0 else i % 2


class StaleTileOfTheInverse(Gated):
    def inverse(self, A):
        Ai = super().inverse(A)
        Ai[:, 1, 32:48, 16:32] = Ai[:, 0, 32:48, 16:32].clone()
        return Ai


class GateOnRowsOfW(Gated):
    def wu(self, Ai, k, v, beta, G):
        w = self.dot(Ai, self.X(self.times_beta(k, beta))) * self.exp2(G).unsqueeze(3)
        return self.X(w), super().wu(Ai, k, v, beta, G)[1]


class StaleAfterAFullChunk(Gated):
    """A sequence after one of 64 n tokens starts from the state that one left."""

    def first_state(self, p, sequence, shape):
        ends = p.cu_seqlens.tolist()
        if sequence > 0 and ends[sequence] > ends[sequence - 1] and (ends[sequence] - ends[sequence - 1]) % 64 == 0:
            return self.left.clone()
        return super().first_state(p, sequence, shape)

    def sequence(self, *rows):
        found = super().sequence(*rows)
        self.left = found[1]
        return found


class ZeroRowsOfOneWarp(Gated):
    def out(self, q, Aqk, h, v_new, G):
        v_new = v_new.clone()
        v_new[0, 1, 48:] = 0
        return super().out(q, Aqk, h, v_new, G)


class StrictMaskInOneTile(Gated):
    def grams(self, q, k, beta, G):
        A, Aqk = super().grams(q, k, beta, G)
        Aqk[:, 1, 16:32, 16:32] = Aqk[:, 1, 16:32, 16:32].tril(-1)
        return A, Aqk


class TailDecayOffByOne(Gated):
    def update(self, S, k, fresh, G, last):
        return super().update(S, k, fresh, G, last - (last < self.C - 1))


class StateInBf16OfOneHead(Gated):
    def carry(self, S, c):
        S = S.clone()
        S[1] = bf16(S[1])
        return S


class FinalStateBeforeTheTail(Gated):
    def states(self, *given):
        h, v_new, _ = super().states(*given)
        return h, v_new, h[:, -1].clone()


class ColumnsOfAnotherHead(Gated):
    def made(self, p, o, states, stages):
        o[:, :, 1, 8:] = o[:, :, 0, 8:].clone()


class NeighbouringChannelInOneTile(Channels):
    def grams(self, q, k, beta, G):
        G = G.clone()
        G[:, :, 16:32, 0:16] = G[:, :, 16:32, 1:17]
        return super().grams(q, k, beta, G)


VARLEN = {"cu_seqlens": [0, 64, 100, 228, 229], "T": 229}


@pytest.mark.parametrize(
    "kernel,stage,alone,given",
    [
        (CumsumInBf16, "g_cumsum_log2", "o", {}),
        (TruncatedLog2E, "g_cumsum_log2", None, {}),  # 4e-6 of each gate: far below the roundings of o
        (OddHeadsModulo, "A", "o", {"H": 2, "HV": 4}),
        (StaleTileOfTheInverse, "Ai", "o", {}),
        (GateOnRowsOfW, "w", "o", {}),
        (StaleAfterAFullChunk, "h", "o", VARLEN),
        (StateInBf16OfOneHead, "h", None, {}),  # what o reads is rounded to bf16 anyway
        (ZeroRowsOfOneWarp, "o", "o", {}),
        (StrictMaskInOneTile, "o", "o", {}),
        (TailDecayOffByOne, "final_state", "final_state", {}),
        (FinalStateBeforeTheTail, "final_state", "final_state", {}),
        (ColumnsOfAnotherHead, "o", "o", {}),
        (NeighbouringChannelInOneTile, "A", "o", {"op": "kda"}),
    ],
)
def test_one_wrong_line_is_refuted_at_its_stage(kernel, stage, alone, given):
    problem = case(**given)
    result = kernel()(problem)
    with_stages = deltaproof.check(problem, result, power=False)
    assert (with_stages.word, with_stages.first_bad_stage) == ("refuted", stage), with_stages.text
    verdict = deltaproof.check(problem, dataclasses.replace(result, stages={}), power=False)
    assert verdict.first_bad_stage == alone and verdict.word == ("refuted" if alone else "holds"), verdict.text


def test_a_wrong_column_is_like_no_planted_fault():
    """Merges in tf32 to nearest leave another rounding in final_state than the plan's first variant: no diagnosis."""
    problem = case(T=80)
    verdict = deltaproof.check(problem, ColumnsOfAnotherHead()(problem))
    assert verdict.first_bad_stage == "o" and not [d for d in verdict.diagnosis if d["stage"] == "Ai"], verdict.text


class ReadBeforeWrite(Recurrent):
    def sequence(self, q, k, v, beta, g, S):
        o = torch.zeros_like(v)
        for t in range(k.shape[1]):
            S = S * self.decay(g, t)
            o[:, t] = self.read(S, q[:, t])
            S = self.write(S, k[:, t], v[:, t], beta[:, t])
        return o, S, {}


class StateInBf16EveryEighthToken(Recurrent):
    tokens = 0

    def write(self, S, k, v, beta):
        self.tokens += 1
        S = super().write(S, k, v, beta)
        return S if self.tokens % 8 else bf16(S)


class PredictionDropsChannels(Recurrent):
    def write(self, S, k, v, beta):
        seen = k.clone()
        seen[1, 28:] = 0
        error = v - self.mm(seen.unsqueeze(1), S).squeeze(1)
        return S + k.unsqueeze(2) * (beta[:, None] * error).unsqueeze(1)


@pytest.mark.parametrize(
    "kernel,stage",
    [(ReadBeforeWrite, "o"), (StateInBf16EveryEighthToken, "final_state"), (PredictionDropsChannels, "o")],
)
def test_one_wrong_line_by_tokens_is_refuted(kernel, stage):
    problem = case(T=40)
    verdict = deltaproof.check(problem, kernel()(problem), power=False)
    assert verdict.word == "refuted" and verdict.first_bad_stage == stage, verdict.text
