# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""EasyDeL: the chunk form in plain JAX of its library ejkernel, which it runs on every device that has no kernel of its own. The scale
is K ** -0.5; the state comes back in the format of q."""

from __future__ import annotations

from typing import Any

from ..exchange import Problem
from . import Kernel

TESTED = "0.0.80.3"


def _chunk(p: Problem) -> Any:
    from ejkernel.kernels._xla.gated_delta_rule import gated_delta_rule

    return gated_delta_rule(p.q, p.k, p.v, p.beta, p.g, chunk_size=64, initial_state=p.initial_state, use_qk_l2norm=p.qk_l2norm)


KERNELS = [
    Kernel(
        "ejkernel gated_delta_rule xla", "ejkernel", TESTED, ("gated_delta_rule",), _chunk, library="jax", chunk_size=64,
        scale="default", l2norm=True, grouped=False, dtypes=("bf16", "fp32"),
    )
]  # fmt: skip
