# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""tpu-inference: its chunk form of the gated delta rule in plain JAX, and the decoding step. Nothing else of the package is loaded,
which needs a TPU. The inverse is a kernel for TPUs: its body is called on arrays in place of references. beta and g are made from
what the layer gives, of which these are the inverse functions: within an ulp or two of fp32, and beta is rounded to q's format."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from ..exchange import Problem
from . import Kernel, bare

TESTED = "0.32.0"


@functools.lru_cache
def _module() -> Any:
    package = "tpu_inference.kernels.gdn.reference"
    bare("tpu-inference", package)
    return importlib.import_module(f"{package}.ragged_gated_delta_rule_chunked")


def _inverse(A: Any) -> Any:
    import jax.numpy as jnp
    import numpy

    x = numpy.zeros((A.size // A.shape[-1] ** 2, *A.shape[-2:]), "f4")
    _module().triangle_solver.decompose_triangular_matrix_inverse_pallas_kernel(A.reshape(x.shape), x)
    return jnp.asarray(x).reshape(A.shape)


def chunk(p: Problem) -> Any:
    import jax.numpy as jnp

    _, T, H, K = p.q.shape
    V = p.v.shape[3]
    beta, g = jnp.asarray(p.beta[0], jnp.float32), jnp.asarray(p.g[0], jnp.float32)
    slots = jnp.zeros((2, H, K, V), jnp.float32)
    if p.initial_state is not None:
        slots = slots.at[1].set(p.initial_state[0])
    slots, o = _module().ragged_gated_delta_rule_mixed_prefill(
        p.q[0], p.k[0], p.v[0], jnp.log(beta) - jnp.log1p(-beta), jnp.where(g < -20, -g, jnp.log(jnp.expm1(-g))),
        jnp.zeros(H), jnp.zeros(H), jnp.array([0, T]), slots, jnp.array([1]), jnp.array([0, 0, 1]), None, 64, p.qk_l2norm,
        compute_dtype=p.q.dtype, triangle_solver_impl=_inverse,
    )  # fmt: skip
    return o.reshape(1, T, H, V), slots[1:]


def step(p: Problem) -> Any:
    import jax.numpy as jnp

    module, state, out = _module(), p.initial_state, []
    q, k = (module.l2norm(x) if p.qk_l2norm else x for x in (p.q, p.k))
    for t in range(p.q.shape[1]):
        o, state = module.recurrent_gated_delta_rule_step(q[:, t], k[:, t], p.v[:, t], p.g[:, t], p.beta[:, t], state)
        out.append(o)
    return jnp.stack(out, 1), state


def _kernel(name: str, call: Any, chunk_size: int | None, unit_beta: bool) -> Kernel:
    return Kernel(
        f"tpu-inference {name}", "tpu-inference", TESTED, ("gated_delta_rule",), call, library="jax", chunk_size=chunk_size,
        scale="default", l2norm=True, grouped=False, dtypes=("bf16", "fp32"), unit_beta=unit_beta,
    )  # fmt: skip


KERNELS = [
    _kernel("ragged_gated_delta_rule_mixed_prefill", chunk, 64, True),
    _kernel("recurrent_gated_delta_rule_step", step, None, False),
]
