# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""A torch kernel on the CPU, recorded call by call as `gen --for` asks, holds every invariant; faulty caches are refuted."""

import json
import subprocess
import sys

import deltaproof
import pytest
import torch
from conftest import ROOT

SMALL = ("--T", "70", "--K", "16", "--V", "8", "--H", "2")


def program(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "deltaproof", *map(str, arguments)], capture_output=True, text=True, check=False
    )


def decode(problem, call=None):
    """The token recurrence in fp32, each sequence by itself."""
    q, k, v, beta, g = (problem[name].float() for name in ("q", "k", "v", "beta", "g"))
    batch, tokens = q.shape[:2]
    offsets = problem.get("cu_seqlens")
    spans = [(b, 0, tokens) for b in range(batch)]
    if offsets is not None:
        spans = [(0, int(a), int(b)) for a, b in zip(offsets[:-1], offsets[1:])]
    o = torch.zeros(*v.shape)
    states = []
    for s, (b, first, last) in enumerate(spans):
        state = torch.zeros(v.shape[2], k.shape[-1], v.shape[-1])
        if problem.get("initial_state") is not None:
            state = problem["initial_state"][s].float().clone()
        for t in range(first, last):
            state = state * g[b, t].exp()[:, None, None]
            u = beta[b, t][:, None] * (v[b, t] - (k[b, t][:, :, None] * state).sum(1))
            state = state + k[b, t][:, :, None] * u[:, None, :]
            o[b, t] = (q[b, t][:, :, None] * problem["scale"] * state).sum(1)
        states.append(state)
    return dict(
        o=o.to(problem["q"].dtype), final_state=torch.stack(states), kernel="fla fused_recurrent_gated_delta_rule", path="recurrent"
    )


def judged(folder, kind):
    return program("invariant", kind, folder, "--plan", "fla-recurrent-gdn")


@pytest.mark.parametrize("kind", ["snapshot", "rollback", "split", "batch"])
def test_a_correct_kernel_holds(tmp_path, kind):
    folder = tmp_path / kind
    assert program("gen", "--for", kind, *SMALL, "--dir", folder).returncode == 0
    names = deltaproof.record_set(folder, decode)
    assert len(names) == len(json.loads((folder / "manifest.json").read_text())["calls"])
    done = judged(folder, kind)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_decode_trace_is_one_token_a_call(tmp_path):
    assert program("gen", "--for", "split", "--calls", 12, "--T", 12, *SMALL[2:], "--dir", tmp_path / "trace").returncode == 0
    assert len(deltaproof.record_set(tmp_path / "trace", decode)) == 13
    done = program("invariant", "split", tmp_path / "trace", "--plan", "fla-recurrent-gdn", "--no-power")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "fault",
    [
        lambda problem, result, tokens: result["final_state"],  # keeps the draft
        lambda problem, result, tokens: problem["initial_state"],  # begins again
        lambda problem, result, tokens: torch.zeros_like(result["final_state"]),
    ],
)
def test_faulty_caches_are_refuted(tmp_path, fault):
    assert program("gen", "--for", "rollback", *SMALL, "--dir", tmp_path / "set").returncode == 0
    deltaproof.record_set(tmp_path / "set", decode, keep=fault)
    done = judged(tmp_path / "set", "rollback")
    assert done.returncode == 1, done.stdout + done.stderr


def test_numpy_alone_records_a_set(tmp_path):
    assert program("gen", "--for", "repeat", "--dtype", "fp32", *SMALL, "--dir", tmp_path / "set").returncode == 0
    script = (
        "import sys; sys.modules['torch'] = None; sys.modules['deltaproof'] = None\n"
        f"sys.path.insert(0, {str(ROOT / 'python/deltaproof')!r})\n"
        "import recorder\n"
        "kernel = lambda p, call: dict(o=p['v'] * 2, path='recurrent', kernel='k')\n"
        f"recorder.record_set({str(tmp_path / 'set')!r}, kernel, to='numpy', apart=False)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert program("invariant", "repeat", tmp_path / "set").returncode == 0


def test_what_cannot_be_recorded_is_refused(tmp_path):
    with pytest.raises(ValueError, match="gen --for"):
        deltaproof.record_set(tmp_path / "nowhere", decode)
    assert program("gen", "--for", "rollback", *SMALL, "--dir", tmp_path / "set").returncode == 0
    with pytest.raises(ValueError, match="fn gave NoneType for whole"):
        deltaproof.record_set(tmp_path / "set", lambda problem, call: None)
    with pytest.raises(ValueError, match="keep returned None for call rest"):
        deltaproof.record_set(tmp_path / "set", decode, keep=lambda problem, result, tokens: None)
    def unaccepted(problem, call):
        return {name: x for name, x in decode(problem, call).items() if (name, call["name"]) != ("final_state", "draft")}

    with pytest.raises(ValueError, match="fn returned no final_state for the accepted tokens of call draft"):
        deltaproof.record_set(tmp_path / "set", unaccepted)
    # A slot that was never written is the server's fault; NaN in a tensor that nobody restored is a bad file.
    deltaproof.record_set(tmp_path / "set", decode, keep=lambda problem, result, tokens: 0 * problem["initial_state"] / 0)
    done = judged(tmp_path / "set", "rollback")
    assert done.returncode == 1 and "never written" in done.stdout, done.stdout + done.stderr
