# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""Candidates for `judge`: an honest kernel of the gated delta rule, and what earns a reward without one where a judge is naive.
In a file of their own, as a candidate has to be: nothing here imports deltaproof."""

import ctypes
import gc
import threading
import time

import torch


def honest(q, k, v, beta, g, scale, initial_state):
    """Token by token in fp32, the state kept in fp32, o rounded once."""
    n = v.shape[2] // q.shape[2]
    q, k = (x.float().repeat_interleave(n, 2) for x in (q, k))
    v, beta, decay = v.float(), beta.float(), g.float().exp()
    S = (
        torch.zeros(v.shape[0], v.shape[2], k.shape[3], v.shape[3])
        if initial_state is None
        else initial_state.float().clone()
    )
    o = torch.empty(v.shape)
    for t in range(q.shape[1]):
        S = S * decay[:, t, :, None, None]
        missing = v[:, t] - torch.einsum("bhk,bhkv->bhv", k[:, t], S)
        S = S + torch.einsum("bhk,bhv->bhkv", k[:, t], beta[:, t, :, None] * missing)
        o[:, t] = scale * torch.einsum("bhk,bhkv->bhv", q[:, t], S)
    return o, S


def rounded(p):
    o, S = honest(p.q, p.k, p.v, p.beta, p.g, p.scale, p.initial_state)
    return o.to(p.q.dtype), S


def by_chunks(p, C=64):
    """Chunkwise in fp32, its inverse by a triangular solve; heads of q and k are repeated."""
    n = p.v.shape[2] // p.q.shape[2]
    heads = lambda x: x.float().movedim(2, 1)
    q, k = (heads(x.repeat_interleave(n, 2)) for x in (p.q, p.k))
    v, beta, g = heads(p.v), heads(p.beta), heads(p.g)
    S = torch.zeros(*v.shape[:2], k.shape[3], v.shape[3]) if p.initial_state is None else p.initial_state.float().clone()
    out = []
    for t in range(0, q.shape[2], C):
        c = slice(t, t + C)
        G, K, b = g[:, :, c].cumsum(2), k[:, :, c], beta[:, :, c, None]
        decay = (G[..., :, None] - G[..., None, :]).tril().exp().tril()
        L = torch.tril(b * (K @ K.mT) * decay, -1)
        rows = b * (v[:, :, c] - (K * G.exp()[..., None]) @ S)
        u = torch.linalg.solve_triangular(L + torch.eye(L.shape[-1]), rows, upper=False)
        Q = q[:, :, c] * p.scale
        out.append((Q * G.exp()[..., None]) @ S + ((Q @ K.mT) * decay) @ u)
        S = S * G[..., -1:].exp()[..., None] + (K * (G[..., -1:] - G).exp()[..., None]).mT @ u
    return torch.cat(out, 2).movedim(1, 2).to(p.q.dtype), S


def writes_its_state_alone(q, k, v, beta, g, scale, initial_state, final_state):
    """Returns no o."""
    final_state[...] = honest(q, k, v, beta, g, scale, initial_state)[1]


def into_buffers(q, k, v, beta, g, scale, initial_state, o, final_state):
    """Writes where it is told to."""
    found, S = honest(q, k, v, beta, g, scale, initial_state)
    o.copy_(found)
    final_state.copy_(S)


def all_zeros(p):
    return torch.zeros_like(p.v), torch.zeros(p.v.shape[0], p.v.shape[2], p.k.shape[3], p.v.shape[3])


def constant_output(p):
    """One tensor for each shape, whatever it is given."""
    draw = torch.Generator().manual_seed(1)
    state = (p.v.shape[0], p.v.shape[2], p.k.shape[3], p.v.shape[3])
    return torch.randn(p.v.shape, generator=draw).to(p.v.dtype), torch.randn(state, generator=draw)


_by_pointer = {}


def cached_by_pointer(p):
    key = tuple((x.data_ptr(), tuple(x.shape)) for x in (p.q, p.k, p.v))
    if key not in _by_pointer:
        _by_pointer[key] = rounded(p)
    return _by_pointer[key]


_by_version = {}


def cached_by_version(p):
    """As cached_by_pointer, and the tensors' own count of changes."""
    key = tuple((id(x), x.data_ptr(), x._version) for x in (p.q, p.k, p.v))
    if key not in _by_version:
        _by_version[key] = rounded(p)
    return _by_version[key]


def late_writes(p):
    """Returns at once; a thread does the work where nobody takes the time."""
    given = [x.clone() if isinstance(x, torch.Tensor) else x for x in (p.q, p.k, p.v, p.beta, p.g, p.scale, p.initial_state)]
    o = torch.zeros_like(p.v)

    def work():
        time.sleep(0.01)
        o.copy_(honest(*given)[0])

    threading.Thread(target=work).start()
    return o


def mutates_inputs(p):
    """Right, but leaves its state in the caller's q."""
    o = rounded(p)
    p.q.zero_()
    return o


def searches_memory(p):
    """Takes any tensor of the right shape that was not given to it for the reference."""
    given = {x.data_ptr() for x in vars(p).values() if isinstance(x, torch.Tensor)}
    for x in gc.get_objects():
        if type(x) is torch.Tensor and x.shape == p.v.shape and x.data_ptr() not in given and x.any():
            return x.clone()
        if type(x) is list and len(x) < 100:
            for y in x:
                if type(y) is torch.Tensor and y.shape == p.v.shape and y.data_ptr() not in given and y.any():
                    return y.clone()
    return torch.zeros_like(p.v)


class Lazy(torch.Tensor):
    """Computes when somebody looks."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return super().__torch_function__(function, types, args, kwargs or {})


def lazy_subclass(p):
    return rounded(p)[0].as_subclass(Lazy)


def skipped_recurrence(p):
    """Each chunk of 64 from an empty state: right wherever gates forget a chunk."""
    out = []
    for t in range(0, p.q.shape[1], 64):
        c = slice(t, t + 64)
        state = p.initial_state if t == 0 else None
        o, S = honest(p.q[:, c], p.k[:, c], p.v[:, c], p.beta[:, c], p.g[:, c], p.scale, state)
        out.append(o)
    return torch.cat(out, 1).to(p.q.dtype), S


def tolerance_sized_noise(p):
    """Within 1e-2 of the truth, as many benchmarks ask."""
    o, S = honest(p.q, p.k, p.v, p.beta, p.g, p.scale, p.initial_state)
    return (o * (1 + 0.01 * (2 * torch.rand(o.shape, generator=torch.Generator().manual_seed(2)) - 1))).to(p.q.dtype), S


def nan_as_wildcard(p):
    """NaN wherever a comparison might say that nothing is larger than the tolerance."""
    o, S = rounded(p)
    o[:, -1] = float("nan")
    return o, S


def leaves_its_buffers(q, k, v, beta, g, scale, o, final_state):
    """Writes the first half, and hopes that the rest is left from another run."""
    half = q.shape[1] // 2
    found, S = honest(q[:, :half], k[:, :half], v[:, :half], beta[:, :half], g[:, :half], scale, None)
    o[:, :half] = found
    final_state.copy_(S)


def expanded(p):
    """One row in memory, shown as many."""
    return rounded(p)[0][:, :1].expand(p.v.shape)


def returns_its_input(p):
    p.v.copy_(rounded(p)[0])
    return p.v


def not_repeatable(p):
    """As sums by atomic additions are: other bits each time."""
    o, S = rounded(p)
    S = S + S * 1e-6 * torch.rand(S.shape, generator=torch.Generator().manual_seed(time.time_ns() % 2**31))
    return o, S


def reads_the_future(p):
    """Centres q over the whole sequence."""
    q = p.q.float() - p.q.float().mean(1, keepdim=True)
    o, S = honest(q, p.k, p.v, p.beta, p.g, p.scale, p.initial_state)
    return o.to(p.q.dtype), S


def short_only(p):
    """Right up to 200 tokens, where it is looked at; then a state of the last 64."""
    if p.q.shape[1] <= 200:
        return rounded(p)
    return skipped_recurrence(p)


def adds_a_little(p):
    """Right to within the rounding, and not 0 where everything is."""
    o, S = rounded(p)
    return torch.where(o == 0, torch.full_like(o, 1e-30), o), S


def crashes(p):
    raise RuntimeError("no kernel for this card")


def kills_itself(p):
    ctypes.string_at(0)


def hangs(p):
    time.sleep(1000)


def imports_the_referee(p):
    import deltaproof

    return deltaproof.oracle(p)
