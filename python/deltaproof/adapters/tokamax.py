# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""tokamax: its KDA without a kernel, by chunks (xla_chunked) and token by token (xla). The functions beneath the op are called: the op
itself makes the gates of xla_chunked from raw ones, never below -5, and that step is left out. It takes beta from 0 to 1."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from ..exchange import Problem
from . import Kernel, bare

TESTED = "0.0.17"
_LEFT_OUT = {
    "a_log": None, "delta_time_bias": None, "output_final_state": True, "use_gate_in_kernel": False, "segment_ids": None,
    "lower_bound": None, "max_num_segments": None,
}  # fmt: skip


@functools.lru_cache
def _module(name: str) -> Any:
    package = "tokamax._src.ops.kda"
    bare("tokamax", package)
    return importlib.import_module(f"{package}.{name}")


def _function(module: str, function: str, **more: Any) -> Any:
    def call(p: Problem) -> Any:
        import jax.numpy as jnp

        given = (jnp.moveaxis(x, 2, 0) for x in (p.q, p.k, p.v, p.g, p.beta))
        state = None if p.initial_state is None else p.initial_state[:, None]
        o, state = getattr(_module(module), function)(
            *given, scale=p.scale, initial_state=state, use_qk_l2norm=p.qk_l2norm, **more, **_LEFT_OUT
        )
        return jnp.moveaxis(o, 0, 2), state[:, 0]

    return call


def _kernel(name: str, call: Any, **more: Any) -> Kernel:
    return Kernel(f"tokamax {name}", "tokamax", TESTED, ("kda",), call, library="jax", l2norm=True, grouped=False, unit_beta=True, **more)


KERNELS = [
    _kernel("xla", _function("reference", "kimi_delta_attention", context_parallel_metadata=None)),
    _kernel(
        "xla_chunked", _function("xla_chunked_fwd_kernel", "chunk_kda_fwd", chunk_size=64, safe_gate=True),
        chunk_size=64, whole_chunks=True, least_gate=-5, dtypes=("bf16", "fp16", "fp32"),
    ),
]  # fmt: skip
