# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""MaxText: the chunk forms of the gated delta rule in plain JAX, and the decoding step. Of the package only the text of these functions
and of their norm is run; the rest of it needs flax and a configuration. Nothing there calls the naive form, whose norm in the inputs'
format is left out."""

from __future__ import annotations

import ast
import functools
import importlib.metadata
import typing
from typing import Any

from ..exchange import Problem
from . import Kernel

TESTED = "0.2.5"


@functools.lru_cache
def _function(name: str) -> Any:
    import jax
    import jax.numpy as jnp

    names = {"jax": jax, "jnp": jnp, "lax": jax.lax, "Array": jax.Array, **vars(typing)}
    for file, wanted in (("layers/normalizations.py", "l2norm"), ("models/qwen3.py", name)):
        path = importlib.metadata.distribution("maxtext").locate_file(f"maxtext/{file}")
        with open(str(path), encoding="utf-8") as text:
            found = [node for node in ast.parse(text.read()).body if isinstance(node, ast.FunctionDef) and node.name == wanted]
        exec(compile(ast.Module(found, []), str(path), "exec"), names)
    return names[name]


def _chunk(name: str) -> Any:
    def call(p: Problem) -> Any:
        # As the layer calls it, in the format of its inputs.
        more = {} if name.startswith("naive") else {"compute_dtype": p.q.dtype}
        return _function(name)(
            p.q, p.k, p.v, p.g, p.beta, chunk_size=64, initial_state=p.initial_state, use_qk_norm_in_gdn=p.qk_l2norm, **more
        )

    return call


def step(p: Problem) -> Any:
    import jax.numpy as jnp

    B, T, H, K = p.q.shape
    state, out = p.initial_state, []
    if state is None:
        state = jnp.zeros((B, H, K, p.v.shape[3]), jnp.float32)
    for t in range(T):
        given = (x[:, t : t + 1] for x in (p.q, p.k, p.v, p.g, p.beta))
        o, state = _function("jax_ar_gated_delta_rule")(*given, state, p.qk_l2norm, p.q.dtype)
        out.append(o)
    return jnp.concatenate(out, 1), state


def _kernel(name: str, call: Any, chunk_size: int | None, l2norm: bool = True) -> Kernel:
    return Kernel(
        f"maxtext {name}", "maxtext", TESTED, ("gated_delta_rule",), call, library="jax", chunk_size=chunk_size, scale="default",
        l2norm=l2norm, grouped=False, dtypes=("bf16", "fp32"),
    )  # fmt: skip


KERNELS = [
    _kernel("naive_jax_chunk_gated_delta_rule", _chunk("naive_jax_chunk_gated_delta_rule"), 64, False),
    _kernel("jax_chunk_gated_delta_rule", _chunk("jax_chunk_gated_delta_rule"), 64),
    _kernel("jax_ar_gated_delta_rule", step, None),
]
