# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""transformers: the torch functions that its models fall back to without fla. Everything is fp32 inside; q is scaled by K ** -0.5.
Where fla is installed transformers calls fla instead: the functions are taken from under that."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from ..exchange import Problem
from . import Kernel

TESTED = "5.23.0"


def _function(model: str, function: str) -> Any:
    def call(p: Problem) -> Any:
        module = importlib.import_module(f"transformers.models.{model}.modeling_{model}")
        given = {"initial_state": p.initial_state, "output_final_state": True, "use_qk_l2norm_in_kernel": p.qk_l2norm}
        return inspect.unwrap(getattr(module, function))(p.q, p.k, p.v, g=p.g, beta=p.beta, **given)

    return call


def _kernel(model: str, function: str, op: str, chunk_size: int | None = None) -> Kernel:
    return Kernel(
        f"transformers {model} {function}", "transformers", TESTED, (op,), _function(model, function), chunk_size=chunk_size,
        scale="default", l2norm=True, grouped=op == "gated_delta_rule",
    )  # fmt: skip


KERNELS = [
    *(_kernel(m, "torch_chunk_gated_delta_rule", "gated_delta_rule", 64) for m in ("qwen3_next", "qwen3_5", "olmo_hybrid")),
    *(_kernel(m, "torch_recurrent_gated_delta_rule", "gated_delta_rule") for m in ("qwen3_next", "qwen3_5", "olmo_hybrid")),
    *(_kernel(m, "chunk_kimi_delta_attention", "kda", 64) for m in ("kimi_linear", "bailing_hybrid", "glm5_next")),
    *(_kernel(m, "recurrent_kimi_delta_attention", "kda") for m in ("kimi_linear", "bailing_hybrid", "glm5_next")),
]
