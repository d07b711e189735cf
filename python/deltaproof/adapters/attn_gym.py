# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""attention-gym (distribution attn-gym): its eager references. KDA takes log2 of the decay; states are [V, K]."""

from __future__ import annotations

from typing import Any

from ..exchange import Problem
from . import Kernel

TESTED = "0.0.17"


def _state(p: Problem) -> Any:
    return None if p.initial_state is None else p.initial_state.transpose(-1, -2).contiguous()


def _kda(function: str) -> Any:
    def call(p: Problem) -> Any:
        from attn_gym.linear.kda import naive

        fn = getattr(naive, function)
        return fn(p.q, p.k, p.v, p.g, p.beta, scale=p.scale, initial_state=_state(p), output_final_state=True)

    return call


def _gdn(function: str) -> Any:
    def call(p: Problem) -> Any:
        from attn_gym.linear.gdn import api

        words = {"scale": p.scale, "output_final_state": True, "impl": "reference"}
        return getattr(api, function)(p.q, p.k, p.v, p.g, p.beta, _state(p), **words)

    return call


def _kernel(name: str, op: str, call: Any, **more: Any) -> Kernel:
    return Kernel(f"attention-gym {name}", "attn-gym", TESTED, (op,), call, state_layout="vk", **more)


KERNELS = [
    _kernel("naive_recurrent_kda", "kda", _kda("naive_recurrent_kda"), gate="log2", grouped=False),
    _kernel("naive_chunk_kda", "kda", _kda("naive_chunk_kda"), gate="log2", chunk_size=64, grouped=False),
    _kernel("recurrent_gdn reference", "gated_delta_rule", _gdn("recurrent_gdn")),
    _kernel("chunk_gdn reference", "gated_delta_rule", _gdn("chunk_gdn"), chunk_size=64),
]
