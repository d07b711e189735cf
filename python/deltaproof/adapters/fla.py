# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""fla: the naive torch forms that its tests compare with (distribution fla-core). Its Triton kernels need a GPU, or Triton's
interpreter as examples/recording-fla completes it."""

from __future__ import annotations

import importlib
from typing import Any

from ..exchange import Problem
from . import Kernel

TESTED = "0.6.0"


def _naive(module: str, function: str) -> Any:
    return getattr(importlib.import_module(f"fla.ops.{module}.naive"), function)


def _gated(module: str, function: str) -> Any:
    def call(p: Problem) -> Any:
        words = {"scale": p.scale, "initial_state": p.initial_state, "output_final_state": True}
        return _naive(module, function)(q=p.q, k=p.k, v=p.v, g=p.g, beta=p.beta, **words)

    return call


def _heads_first(*tensors: Any) -> Any:
    return (x.movedim(2, 1) for x in tensors)


def _recurrence(p: Problem) -> Any:
    q, k, v, beta = _heads_first(p.q, p.k, p.v, p.beta)
    o, state = _naive("delta_rule", "delta_rule_recurrence")(q, k, v, beta, initial_state=p.initial_state)
    return o.movedim(1, 2), state


def _chunkwise(p: Problem) -> Any:
    o, state = _naive("delta_rule", "delta_rule_chunkwise")(*_heads_first(p.q, p.k, p.v, p.beta), chunk_size=32)
    return o.movedim(1, 2), state


def _kernel(name: str, op: str, call: Any, **more: Any) -> Kernel:
    return Kernel(f"fla {name}", "fla-core", TESTED, (op,), call, **more)


KERNELS = [
    _kernel(
        "naive_recurrent_gated_delta_rule",
        "gated_delta_rule",
        _gated("gated_delta_rule", "naive_recurrent_gated_delta_rule"),
        grouped=False,
    ),
    _kernel(
        "naive_chunk_gated_delta_rule",
        "gated_delta_rule",
        _gated("gated_delta_rule", "naive_chunk_gated_delta_rule"),
        chunk_size=64,
        grouped=False,
    ),
    _kernel("naive_recurrent_kda", "kda", _gated("kda", "naive_recurrent_kda")),
    _kernel("naive_chunk_kda", "kda", _gated("kda", "naive_chunk_kda"), chunk_size=64, whole_chunks=True),
    _kernel("delta_rule_recurrence", "delta_rule", _recurrence, scale="default", grouped=False),
    _kernel(
        "delta_rule_chunkwise",
        "delta_rule",
        _chunkwise,
        chunk_size=32,
        scale="default",
        grouped=False,
        whole_chunks=True,
        state=False,
        dtypes=("fp32",),
    ),
]
