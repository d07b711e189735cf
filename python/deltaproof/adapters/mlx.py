# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""mlx-lm: gated_delta_ops, what its models run where there is no Metal. It takes the decay itself, scalar or for each channel, has no
scale, and its state is [V, K]."""

from __future__ import annotations

from typing import Any

from ..exchange import Problem
from . import Kernel

TESTED = "0.32.2"


def _ops(p: Problem) -> Any:
    import mlx.core
    from mlx_lm.models.gated_delta import gated_delta_ops

    state = None if p.initial_state is None else mlx.core.swapaxes(p.initial_state, -1, -2)
    return gated_delta_ops(p.q * p.scale, p.k, p.v, p.g, p.beta, state)


KERNELS = [
    Kernel(
        "mlx-lm gated_delta_ops",
        "mlx-lm",
        TESTED,
        ("gated_delta_rule", "kda"),
        _ops,
        library="mlx",
        gate="decay",
        state_layout="vk",
        scale="one",
    )  # fmt: skip
]
