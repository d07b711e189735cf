# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""Errors of recorded gradients, relative in the Frobenius norm, against automatic differentiation of a token loop in float64.

    PYTHONPATH=../../python/deltaproof python3 gradients.py PROBLEM.safetensors RESULT.safetensors [PROBLEM RESULT ...]
"""

import sys

import torch
from recorder import read

OF = {"q": "dq", "k": "dk", "v": "dv", "beta": "dbeta", "g": "dg", "initial_state": "dinitial_state"}


def token_loop(p):
    """o and final_state of a problem with rule euler, one step at a time."""
    steps, q, k, v, beta = p.get("num_householder", 1), p["q"], p["k"], p["v"], p["beta"]
    if p.get("qk_l2norm"):
        q, k = (x * (x.square().sum(-1, keepdim=True) + 1e-6).rsqrt() for x in (q, k))
    if p.get("beta_activation", "none") != "none":
        beta = beta.sigmoid() * (2 if p["beta_activation"] == "two_sigmoid" else 1)
    batches, tokens, heads, channels = q.shape
    q, k = (x.repeat_interleave(v.shape[2] // heads, 2) for x in (q, k))
    offsets = p["cu_seqlens"].tolist() if "cu_seqlens" in p else [0, tokens]
    o, states = [], []
    for n, (begin, end) in enumerate(zip(offsets, offsets[1:])):
        S = q.new_zeros(batches, *v.shape[2:3], channels, v.shape[3])
        if "initial_state" in p:
            S = p["initial_state"][n : n + 1] if "cu_seqlens" in p else p["initial_state"]
        for t in range(begin, end):
            if "g" in p:
                e = p["g"][:, t].exp()
                S = S * (e[..., None, None] if e.dim() == 2 else e[..., None])
            for i in range(t * steps, (t + 1) * steps):
                missing = v[:, i] - torch.einsum("bhk,bhkv->bhv", k[:, i], S)
                S = S + k[:, i, :, :, None] * (beta[:, i, :, None] * missing)[:, :, None]
            o.append(p["scale"] * torch.einsum("bhk,bhkv->bhv", q[:, t], S))
        states.append(S)
    return torch.stack(o, 1), torch.cat(states)


def exact(problem):
    """Gradients in float64, by their names."""
    p = {n: x.double() if isinstance(x, torch.Tensor) and n != "cu_seqlens" else x for n, x in problem.items()}
    leaves = {n: p[n].requires_grad_() for n in OF if n in p}
    outputs = list(zip(token_loop(p), (p.get("do"), p.get("dfinal_state"))))
    torch.autograd.backward([x for x, d in outputs if d is not None], [d for _, d in outputs if d is not None])
    return {OF[n]: x.grad for n, x in leaves.items()}


def errors(problem, result):
    due = exact(problem)
    return {n: float((result[n].double() - due[n]).norm() / due[n].norm()) for n in due if n in result}


if __name__ == "__main__":
    for one, other in zip(sys.argv[1::2], sys.argv[2::2]):
        print(other, *(f"{name} {x:.2e}" for name, x in errors(read(one), read(other)).items()), flush=True)
