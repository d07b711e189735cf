# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""jax-linear-attention (module jla): its token-by-token and chunked forms in plain JAX, in float32 with products of highest precision."""

from __future__ import annotations

import importlib
from typing import Any

from ..exchange import Problem
from . import Kernel

TESTED = "0.1.0"


def _function(module: str, function: str) -> Any:
    def call(p: Problem) -> Any:
        gates = [p.beta] if function == "delta_rule" else [p.g, p.beta]
        fn = getattr(importlib.import_module(f"jla.ops.{module}"), function)
        return fn(p.q, p.k, p.v, *gates, scale=p.scale, initial_state=p.initial_state, output_final_state=True)

    return call


def _kernel(module: str, op: str, chunk_size: int | None) -> Kernel:
    return Kernel(
        f"jax-linear-attention {module} {op}", "jax-linear-attention", TESTED, (op,), _function(module, op), library="jax",
        chunk_size=chunk_size, grouped=False,
    )  # fmt: skip


KERNELS = [
    _kernel(module, op, size)
    for module, size in (("reference", None), ("chunked", 64))
    for op in ("delta_rule", "gated_delta_rule", "kda")
]
