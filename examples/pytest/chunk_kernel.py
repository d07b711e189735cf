# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""A chunk kernel of the delta rule in plain torch: bf16 in and out, sums in fp32, what a Triton kernel of this op does."""

import torch


def bf16(x):
    return x.bfloat16().float()


def inverse(L, between):
    """(I + L)^-1 by forward substitution in fp32. `between`: what each finished row is brought to before it is used."""
    X = torch.eye(L.shape[-1]).expand_as(L).clone()
    for i in range(1, L.shape[-1]):
        X[..., i, :i] = between(-(L[..., i, None, :i] @ X[..., :i, :i]).squeeze(-2))
    return X


def chunk_delta_rule(q, k, v, beta, scale, initial_state, C=64, between=lambda row: row):
    """Returns o [B,T,H,V], final_state [B,H,K,V] and the stages Ai, w, u, h, v_new."""
    q, k, v = (x.float().transpose(1, 2) for x in (q, k, v))
    beta, S = beta.float().transpose(1, 2)[..., None], initial_state.float()
    kept = {name: [] for name in ("o", "Ai", "w", "u", "h", "v_new")}
    for t in range(0, q.shape[2], C):
        qc, kc, vc, b = (x[:, :, t : t + C] for x in (q, k, v, beta))
        Ai = bf16(inverse((b * (kc @ kc.mT)).tril(-1), between))
        w, u, h = bf16(Ai @ bf16(b * kc)), bf16(Ai @ bf16(b * vc)), bf16(S)
        v_new = bf16(u - w @ h)
        o = scale * (qc @ h) + scale * (bf16((qc @ kc.mT).tril()) @ v_new)
        S = S + kc.mT @ v_new
        for name, x in zip(kept, (o, torch.nn.functional.pad(Ai, (0, C - Ai.shape[-1])), w, u, h, v_new)):
            kept[name].append(x.bfloat16())
    h = torch.stack(kept.pop("h"), 1)  # [B,NT,H,K,V]
    rows = {name: torch.cat(parts, 2).transpose(1, 2) for name, parts in kept.items()}
    return rows.pop("o"), S, {**rows, "h": h}
