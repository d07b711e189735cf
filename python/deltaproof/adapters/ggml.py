# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""llama.cpp: the operator of ggml that its models of the gated delta rule and of KDA run, token by token, on a CPU (distribution
ggml-python, which has ggml as llama.cpp has it). It computes in fp32, takes K = V, and its state as [V, K]; it has the scale K ** -0.5."""

from __future__ import annotations

from typing import Any

from ..exchange import Problem
from . import Kernel

TESTED = "0.0.45"


def _operator(p: Problem) -> Any:
    import ggml
    import numpy
    from ggml import utils

    B, T, HV, V = p.v.shape
    first = numpy.zeros((B, HV, V, V), "f4") if p.initial_state is None else p.initial_state.swapaxes(-1, -2)
    held = [
        numpy.ascontiguousarray(x, "f4")
        for x in (p.q, p.k, p.v, p.g.reshape(B, T, HV, -1), p.beta.reshape(B, T, HV, 1), first)
    ]
    room = ggml.ggml_tensor_overhead() * 16 + ggml.ggml_graph_overhead() + 8 * sum(x.nbytes for x in held) + (1 << 20)
    context = ggml.ggml_init(ggml.ggml_init_params(mem_size=room, mem_buffer=None, no_alloc=False))
    try:
        inputs = []
        for x in held:
            tensor = ggml.ggml_new_tensor_4d(context, ggml.GGML_TYPE_F32, *x.shape[::-1])
            utils.to_numpy(tensor)[...] = x.reshape(utils.to_numpy(tensor).shape)
            inputs.append(tensor)
        out = ggml.ggml_gated_delta_net(context, *inputs, 1)
        graph = ggml.ggml_new_graph(context)
        ggml.ggml_build_forward_expand(graph, out)
        ggml.ggml_graph_compute_with_ctx(context, graph, 1)
        found = utils.to_numpy(out).reshape(-1).copy()
    finally:
        ggml.ggml_free(context)
    o = found[: B * T * HV * V].reshape(B, T, HV, V)
    return o, found[o.size : o.size + B * HV * V * V].reshape(B, HV, V, V)


KERNELS = [
    Kernel(
        "llama.cpp gated_delta_net", "ggml-python", TESTED, ("gated_delta_rule", "kda"), _operator, library="numpy",
        state_layout="vk", scale="default", grouped=False, dtypes=("fp32", "bf16", "fp16"), dims=(16, 32, 64, 128), square=True,
    )
]  # fmt: skip
