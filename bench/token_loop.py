# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""Token loops in fp64 as kernel authors write them, timed on request: one line "NAME d T" in, seconds out.

A worker of bench/oracle.cpp, so that its rows fall among the others of one run. The first line it prints names what is
there ("numpy 1.24.2 torch 1.13.1"). One thread; processor time of this thread.
"""
import sys
import time

found = []
try:
    import numpy
    found.append("numpy " + numpy.__version__)
except ImportError:
    numpy = None
try:
    import torch
    torch.set_num_threads(1)
    found.append("torch " + torch.__version__)
except ImportError:
    torch = None
print(" ".join(found), flush=True)


def inputs(d, T):
    generator = numpy.random.Generator(numpy.random.Philox(1)) if numpy is not None else None
    if generator is not None:
        q, k, v = (generator.standard_normal((T, d)) for _ in range(3))
        k /= numpy.sqrt((k * k).sum(1, keepdims=True))
        return q, k, v, generator.uniform(size=T)
    generator = torch.Generator().manual_seed(1)
    q, k, v = (torch.randn(T, d, generator=generator, dtype=torch.float64) for _ in range(3))
    return q, k / k.norm(dim=1, keepdim=True), v, torch.rand(T, generator=generator, dtype=torch.float64)


def loop_numpy(q, k, v, beta):
    S = numpy.zeros((k.shape[1], v.shape[1]))
    o = numpy.empty_like(v)
    for t in range(len(k)):
        w = beta[t] * (v[t] - k[t] @ S)
        S += numpy.outer(k[t], w)
        o[t] = q[t] @ S
    return o


def loop_torch_naive(q, k, v, beta):
    """Elementwise products and sums over an axis, the state made anew each step."""
    S = torch.zeros(k.shape[1], v.shape[1], dtype=torch.float64)
    o = torch.empty_like(v)
    for t in range(len(k)):
        w = (v[t] - (S * k[t][:, None]).sum(0)) * beta[t]
        S = S + k[t][:, None] * w[None, :]
        o[t] = (S * q[t][:, None]).sum(0)
    return o


def loop_torch_in_place(q, k, v, beta):
    """Matrix-vector products and a rank-one update in place."""
    S = torch.zeros(k.shape[1], v.shape[1], dtype=torch.float64)
    o = torch.empty_like(v)
    for t in range(len(k)):
        w = beta[t] * (v[t] - k[t] @ S)
        S.addr_(k[t], w)
        torch.mv(S.T, q[t], out=o[t])
    return o


def loop_torch_autograd(q, k, v, beta):
    """Gradients of a sum over outputs, by autograd through the first of these loops."""
    given = [x.clone().requires_grad_() for x in (q, k, v, beta)]
    q, k, v, beta = given
    S = torch.zeros(k.shape[1], v.shape[1], dtype=torch.float64)
    o = []
    for t in range(len(k)):
        w = (v[t] - k[t] @ S) * beta[t]
        S = S + k[t][:, None] * w[None, :]
        o.append(q[t] @ S)
    torch.stack(o).sum().backward()
    return [x.grad for x in given]


loops = {"numpy": loop_numpy, "torch_naive": loop_torch_naive, "torch_in_place": loop_torch_in_place,
         "torch_autograd": loop_torch_autograd}
kept = {}
for line in sys.stdin:
    name, d, T = line.split()
    key = (name.startswith("torch"), int(d), int(T))
    if key not in kept:
        tensors = inputs(key[1], key[2])
        if key[0] and numpy is not None:
            tensors = [torch.from_numpy(x) for x in tensors]
        kept = {key: tensors}
    start = time.thread_time()
    loops[name](*kept[key])
    print(time.thread_time() - start, flush=True)
