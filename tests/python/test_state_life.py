# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""The table of reports/state-life.md with kernels of torch on the CPU: each invariant holds on a correct one, recorded call by
call by `record_set`, and is refuted on each of the table's faults."""

import functools
import json
import os
import subprocess
import sys

import deltaproof
import pytest
import torch
from conftest import ROOT

SMALL = ("--K", "16", "--V", "12", "--H", "2")
TOKENS = {"rollback": 160, "snapshot": 160, "cp": 200}
CHUNK, RECURRENT = "fla naive_chunk_gated_delta_rule", "fla naive_recurrent_gated_delta_rule"
ROWS = next(t for t in json.loads((ROOT / "reports/state-life.json").read_text())["tables"] if t["id"] == "servers")["rows"]
FAULTS = [row[:2] for row in ROWS if row[1] not in ("correct", "silent")]


def program(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "deltaproof", *map(str, arguments)], capture_output=True, text=True, check=False
    )


def spans(problem):
    """(batch, first token, last token) of each sequence."""
    batch, tokens = problem["q"].shape[:2]
    offsets = problem.get("cu_seqlens")
    if offsets is None:
        return [(b, 0, tokens) for b in range(batch)]
    return [(0, int(a), int(b)) for a, b in zip(offsets[:-1], offsets[1:])]


def start(problem, s):
    if problem.get("initial_state") is not None:
        return problem["initial_state"][s].float()
    return torch.zeros(problem["v"].shape[2], problem["k"].shape[-1], problem["v"].shape[-1])


def numbers(problem):
    return (problem[name].float() for name in ("q", "k", "v", "beta", "g"))


def chunked(problem, call=None, chunk=64):
    """The chunkwise form in fp32."""
    q, k, v, beta, g = (x.movedim(2, 1) for x in numbers(problem))  # [B, H, T, ...]
    o, states = torch.zeros_like(v), []
    for s, (b, first, last) in enumerate(spans(problem)):
        state = start(problem, s)
        for c in range(first, last, chunk):
            at = slice(c, min(c + chunk, last))
            total = g[b, :, at].cumsum(-1)
            decay = (total[:, :, None] - total[:, None, :]).tril().exp().tril()
            keys, scaled = k[b, :, at], q[b, :, at] * problem["scale"]
            weighted = keys * beta[b, :, at, None]
            lower = torch.eye(keys.shape[1]) + ((weighted @ keys.mT) * decay).tril(-1)
            u = torch.linalg.solve_triangular(lower, v[b, :, at] * beta[b, :, at, None], upper=False, unitriangular=True)
            w = torch.linalg.solve_triangular(lower, weighted * total.exp()[..., None], upper=False, unitriangular=True)
            new = u - w @ state
            o[b, :, at] = (scaled * total.exp()[..., None]) @ state + ((scaled @ keys.mT) * decay) @ new
            left = (total[:, -1:] - total).exp()[..., None]
            state = state * total[:, -1, None, None].exp() + (keys * left).mT @ new
        states.append(state)
    o = o.movedim(1, 2).to(problem["q"].dtype)
    return dict(o=o, final_state=torch.stack(states), kernel=CHUNK, path="chunk", chunk_size=chunk)


def decode(problem, call=None, fault=""):
    """The token recurrence in fp32."""
    q, k, v, beta, g = numbers(problem)
    o, states = torch.zeros_like(v), []
    rows = []
    for s, (b, first, last) in enumerate(spans(problem)):
        state = before = start(problem, s)
        for t in range(first, last):
            before = state
            gate = g[b, t].exp()[:, None, None]
            if fault != "token-decays-after-write":
                state = state * gate
            seen = (k[b, t][:, :, None] * state).sum(1) * (0 if fault == "token-predicts-nothing" else 1)
            step = beta[b, t][:, None]
            u = step * v[b, t] - seen if fault == "token-beta-on-v-only" else step * (v[b, t] - seen)
            read = state
            state = state + k[b, t][:, :, None] * u[:, None, :]
            if fault == "token-decays-after-write":
                state = state * gate
            read = read if fault == "token-reads-before-write" else state
            rows.append((b, t, (q[b, t][:, :, None] * problem["scale"] * read).sum(1)))
        states.append(before if fault == "token-state-stored-late" else state)
    o = torch.stack([row for _, _, row in rows]).reshape(v.shape)
    return dict(o=o.to(problem["q"].dtype), final_state=torch.stack(states), kernel=RECURRENT, path="recurrent")


def by_path(problem, call, fault=""):
    return decode(problem, call, fault) if call["path"] == "recurrent" else chunked(problem, call)


def first_tokens(problem, tokens):
    return {name: x[:, :tokens] if name in ("q", "k", "v", "beta", "g") else x for name, x in problem.items()}


def state_after(problem, tokens):
    return chunked(first_tokens(problem, tokens))["final_state"]


def in_batch(problem, call, fault=""):
    if call["name"] != "turned":
        return chunked(problem)
    state = problem["initial_state"]
    if fault == "slot-reused":
        return chunked({**problem, "initial_state": state.roll(1, 0)})
    result = chunked(problem)
    if fault == "state-runs-on":
        return chunked({**problem, "initial_state": torch.cat([state[:1], result["final_state"][:-1]])})
    if fault == "output-of-neighbour":
        result["o"] = result["o"].roll(result["o"].shape[1] // len(state), 1)
    if fault == "state-of-neighbour":
        result["final_state"] = result["final_state"].roll(1, 0)
    return result


def again(problem, call, fault=""):
    result = chunked(problem, chunk=32 if fault == "other-chunk" and call["name"] == "again-2" else 64)
    result["chunk_size"] = 64
    if call["name"] != "again-2":
        return result
    if fault == "state-left-over":
        result = chunked({**problem, "initial_state": result["final_state"]})
    if fault == "unwritten-row":
        result["o"][:, -1, -1] = 0
    if fault == "one-last-bit":
        flat = result["final_state"].view(-1)
        flat[7] = flat[7] * (1 + 2**-22)
    return result


def of_its_process(problem, call):
    """Gives other bits in another process, as a kernel does that is tuned anew in each."""
    chunk = 32 if os.environ.setdefault("CALLED_BEFORE", call["name"]) == "again-2" else 64
    return dict(chunked(problem, chunk=chunk), chunk_size=64)


def kept_after_draft(fault, problem, result, tokens):
    accepted = tokens[0]
    return {
        "draft-kept": lambda: result["final_state"],
        "one-token-early": lambda: state_after(problem, accepted - 1),
        "one-token-late": lambda: state_after(problem, accepted + 1),
        "whole-chunks-only": lambda: state_after(problem, accepted // 64 * 64),
        "begins-again": lambda: problem["initial_state"],
        "gate-twice": lambda: state_after(problem, accepted) * problem["g"][:, accepted - 1].exp()[..., None, None],
    }[fault]()


def in_e4m3(x):
    mantissa, exponent = torch.frexp(x)
    return torch.ldexp(torch.round(mantissa * 16) / 16, exponent)


def saved(fault, problem, result, tokens):
    state = result["final_state"]
    other = {**problem, "v": problem["v"].flip(1)}
    row = torch.ones_like(state)
    row[0, 0, 5] = 1.5
    return {
        "slot-of-another-sequence": lambda: chunked(other)["final_state"],
        "slot-of-another-head": lambda: state.flip(1),
        "never-restored": lambda: torch.zeros_like(state),
        "never-written": lambda: torch.full_like(state, torch.nan),
        "call-before": lambda: problem["initial_state"],
        "saved-before-last-token": lambda: state_after(problem, tokens[0] - 1),
        "transposed": lambda: state.reshape(*state.shape[:2], state.shape[3], state.shape[2]).mT.contiguous(),
        "scale-of-another-tile": lambda: state * row,
        "undeclared-e4m3": lambda: in_e4m3(state),
    }[fault]()


def replayed(state, entries):
    for k, u, g in entries:
        state = state * g.exp()[:, None, None]
        state = state + k[:, :, None] * u[:, None, :]
    return state


def ring(problem, call, fault=""):
    """Decode from the state before a window and a ring of the (k, u, g) since; every L tokens the ring is replayed into the state."""
    every = call["flush_every"]
    if every is None:
        return decode(problem)
    if every != 16:
        fault = ""
    q, k, v, beta, g = numbers(problem)
    base, entries, lap, o, windows, held = start(problem, 0), [], [], [], [], []
    for t in range(q.shape[1]):
        if t % every == 0:
            windows.append(base)
        state = replayed(base, entries) * g[0, t].exp()[:, None, None]
        u = beta[0, t][:, None] * (v[0, t] - (k[0, t][:, :, None] * state).sum(1))
        entries.append((k[0, t], u, g[0, t]))
        held.append(entries[-1])
        o.append((q[0, t][:, :, None] * problem["scale"] * replayed(base, entries)).sum(1))
        if (t + 1) % every == 0:
            now = fault if len(windows) == 2 else ""
            kept = {"last-entry-lost": entries[:-1], "flush-early": entries[:-2], "lost-flush": []}.get(now, entries)
            if now == "entry-of-last-lap":
                kept = [(*lap[0][:2], entries[0][2]), *entries[1:]]
            base = replayed(base, kept)
            if now == "gate-twice":
                base = base * g[0, t].exp()[:, None, None]
            if now == "scale-of-another-row":
                base = torch.cat([base[:, :1] * 1.5, base[:, 1:]], 1)
            lap, entries = entries, []
    last = base if fault == "unsaved-tail" else replayed(base, entries)
    ring_k, ring_u, ring_g = (torch.stack(x)[None] for x in zip(*held))
    stored = dict(ring_k=ring_k, ring_u=ring_u, ring_g=ring_g, ring_state=torch.stack(windows)[None])
    o = torch.stack(o)[None].to(problem["q"].dtype)
    return dict(o=o, final_state=last[None], kernel=RECURRENT, path="recurrent", **stored)


def rank(problem, call, fault=""):
    result = chunked(problem)
    if not call["name"].startswith("rank"):
        return result
    fault = fault if call["name"] == "rank-2" else ""
    keys, heads = problem["k"].shape[-1], problem["v"].shape[2]
    of = first_tokens(problem, problem["q"].shape[1] - 1) if fault == "summary-without-last-token" else problem
    begin = {} if fault == "summary-not-from-zeros" else {"initial_state": torch.zeros_like(problem["initial_state"])}
    alone = chunked({**of, **begin})["final_state"]
    moved = {**of, "v": torch.zeros(*of["v"].shape[:3], keys), "initial_state": torch.eye(keys).repeat(1, heads, 1, 1)}
    transition = chunked(moved)["final_state"]
    if fault == "summary-of-another-head":
        alone, transition = alone.flip(1), transition.flip(1)
    return dict(result, rank_state=alone, rank_transition=transition)


def folded(fault, problem, result, tokens):
    """The state that the next rank starts from."""
    transition, state, begin = result["rank_transition"], result["rank_state"], problem["initial_state"]
    if fault == "transition-transposed":
        transition = transition.mT
    if fault == "history-lost":
        return state
    if fault == "rank-skipped":
        return begin
    after = transition @ begin + state
    return after * problem["g"][:, -1].exp()[..., None, None] if fault == "gate-twice" else after


def backward(problem, call, fault=""):
    """Gradients by autograd through the token recurrence."""
    names = ("q", "k", "v", "beta", "g", "initial_state")
    leaves = {name: problem[name].float().requires_grad_() for name in names}
    given = {**problem, **leaves}
    result = decode(given)
    o, d_o = result["o"].float(), problem["do"].float()
    if fault == "do-of-next-head":
        d_o = d_o.roll(-1, 2)
    if fault == "do-late-by-a-token":
        d_o = torch.cat([torch.zeros_like(d_o[:, :1]), d_o[:, :-1]], 1)
    last = problem["dfinal_state"].float() * (0 if fault == "dht-ignored" else 1)
    found = torch.autograd.grad([o, result["final_state"]], list(leaves.values()), [d_o, last])
    gradients = {f"d{name}": x.to(problem[name].dtype) for name, x in zip(names, found)}
    if fault == "dh0-unwritten":
        gradients["dinitial_state"] = torch.zeros_like(gradients["dinitial_state"])
    if fault == "dg-without-cumsum":
        dg = gradients["dg"]
        gradients["dg"] = torch.cat([dg[:, :-1] - dg[:, 1:], dg[:, -1:]], 1)
    return dict({name: x.detach() if torch.is_tensor(x) else x for name, x in result.items()}, **gradients)


KERNELS = {"batch": in_batch, "repeat": again, "path": by_path, "flush": ring, "cp": rank, "gradients": backward}
KEPT = {"rollback": kept_after_draft, "snapshot": saved, "cp": folded}


def judged(tmp_path, kind, fault="", **how):
    folder = tmp_path / kind
    made = program("gen", "--for", kind, "--T", TOKENS.get(kind, 70), *SMALL, "--dir", folder)
    assert made.returncode == 0, made.stderr
    kernel = functools.partial(KERNELS[kind], fault=fault) if kind in KERNELS else chunked
    keep = functools.partial(KEPT[kind], fault) if kind in KEPT and (fault or kind == "cp") else None
    deltaproof.record_set(folder, kernel, keep, **how)
    return program("invariant", kind, folder, *([] if kind in ("repeat", "gradients") else ["--no-power"]))


@pytest.mark.parametrize("kind", sorted({row[0] for row in ROWS}))
def test_a_correct_kernel_holds(tmp_path, kind):
    done = judged(tmp_path, kind)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "holds" in done.stdout


@pytest.mark.parametrize("kind, fault", FAULTS)
def test_each_fault_of_the_table_is_refuted(tmp_path, kind, fault):
    done = judged(tmp_path, kind, fault, **({"apart": False} if kind == "repeat" else {}))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "refuted" in done.stdout


def test_the_table_has_three_faults_of_each_invariant():
    for kind in ("batch", "repeat", "path", "rollback", "snapshot", "flush", "cp", "gradients"):
        assert sum(row[0] == kind for row in FAULTS) >= 3, kind


def test_repeats_run_in_processes_of_their_own(tmp_path, monkeypatch):
    monkeypatch.delenv("CALLED_BEFORE", raising=False)
    for apart, word in ((False, "holds"), (None, "refuted")):
        folder = tmp_path / word
        assert program("gen", "--for", "repeat", "--T", "70", *SMALL, "--dir", folder).returncode == 0
        deltaproof.record_set(folder, of_its_process, apart=apart)
        monkeypatch.delenv("CALLED_BEFORE", raising=False)
        assert word in program("invariant", "repeat", folder).stdout


def test_what_no_other_process_can_have_is_refused(tmp_path):
    assert program("gen", "--for", "repeat", "--T", "70", *SMALL, "--dir", tmp_path / "set").returncode == 0
    with pytest.raises(ValueError, match="apart=False"):
        deltaproof.record_set(tmp_path / "set", lambda problem, call: chunked(problem))
