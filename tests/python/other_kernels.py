# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""Kernels of the delta rule written from the texts of the plans alone (`deltaproof explain`), none of the library's
code in them: a chunk kernel for every op and a token-by-token one, in styles that their plans leave open. A kernel is a
class whose stages are methods; a faulty kernel overrides one."""

import torch
from deltaproof import Problem, Result

LOG2E = 1.4426950408889634


def sums(style):
    """a @ b in fp32, its sums made in one of the ways that a plan leaves open."""

    def sequential(a, b, order=1):
        acc = torch.zeros(*torch.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
        for i in range(a.shape[-1])[::order]:
            acc = acc + a[..., :, i, None] * b[..., i, None, :]
        return acc

    def fused(a, b):
        acc = torch.zeros(*torch.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
        for i in range(a.shape[-1]):
            acc = (acc.double() + a[..., :, i, None].double() * b[..., i, None, :].double()).float()
        return acc

    def pairwise(a, b):
        terms = a.unsqueeze(-1) * b.unsqueeze(-3)
        while terms.shape[-2] > 1:
            if terms.shape[-2] % 2:
                terms = torch.nn.functional.pad(terms, (0, 0, 0, 1))
            terms = terms[..., 0::2, :] + terms[..., 1::2, :]
        return terms[..., 0, :]

    def split(a, b):
        half = a.shape[-1] // 2
        return a[..., half:] @ b[..., half:, :] + a[..., :half] @ b[..., :half, :]

    def tensor_core(a, b, bits=25):
        """Blocks of 16 aligned to the largest exponent, truncated, summed, rounded toward zero (MMA-Sim's Hopper)."""
        acc = torch.zeros(*torch.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
        for i in range(0, a.shape[-1], 16):
            terms = (a[..., i : i + 16].unsqueeze(-1) * b[..., i : i + 16, :].unsqueeze(-3)).double()
            terms = torch.cat([terms, acc.double().unsqueeze(-2)], -2)
            unit = 2.0 ** (torch.frexp(terms.abs().amax(-2, keepdim=True)).exponent - 1 - bits).double()
            total = (torch.trunc(terms / unit) * unit).sum(-2)
            near = total.float()
            acc = torch.where(near.double().abs() > total.abs(), torch.nextafter(near, torch.zeros_like(near)), near)
        return acc

    return {
        "library": lambda a, b: a @ b,
        "sequential": sequential,
        "backward": lambda a, b: sequential(a, b, -1),
        "fused": fused,
        "pairwise": pairwise,
        "split": split,
        "wide": lambda a, b: (a.double() @ b.double()).float(),
        "tensor-core": tensor_core,
    }[style]


def tf32(x, nearest=True):
    """To nearest with ties away from zero (cvt.rna), or the low bits dropped."""
    bits = x.contiguous().view(torch.int32)
    return ((bits + 0x1000 if nearest else bits) & ~0x1FFF).view(torch.float32)


class Kernel:
    """What both paths share: heads, sequences, activations."""

    name = ""
    wide = False  # True: nothing but o is rounded to the problem's format, and stages are kept in fp32
    epsilon = 1e-6  # of the l2norm

    def __init__(self, style="library", final=True, **options):
        self.mm, self.final = sums(style), final
        self.__dict__.update(options)

    def X(self, x):
        return x if self.wide else x.to(self.dtype).float()

    def normalised(self, x):
        return x * torch.rsqrt((x * x).sum(-1, keepdim=True) + self.epsilon)

    def head_of(self, i, groups):
        return i // groups

    def sequences(self, p):
        """(batch, first token, end) of each sequence."""
        if p.cu_seqlens is None:
            return [(b, 0, p.q.shape[1]) for b in range(p.q.shape[0])]
        ends = p.cu_seqlens.tolist()
        return [(0, a, b) for a, b in zip(ends, ends[1:])]

    def rows_of(self, p, batch, start, end):
        """q, k, v, beta, g of one sequence as [HV, rows, ...] in fp32."""
        n, HV, H = p.num_householder, p.v.shape[2], p.q.shape[2]
        heads = [self.head_of(i, HV // H) for i in range(HV)]
        at = lambda x, m: x[batch, start * m : end * m].float().movedim(1, 0)
        q, k, v, beta = at(p.q, 1)[heads], at(p.k, n)[heads], at(p.v, n), at(p.beta, n)
        g = None if p.g is None else at(p.g, 1)
        if p.beta_activation != "none":
            beta = torch.sigmoid(beta) * (2 if p.beta_activation == "two_sigmoid" else 1)
        if p.qk_l2norm:
            q, k = self.normalised(q), self.normalised(k)
        if p.rule == "exact":
            squared = (k * k).sum(-1)
            beta = torch.where(squared == 0, beta, -torch.expm1(-beta * squared) / squared)
        if n > 1:
            q = torch.stack([torch.zeros_like(q)] * (n - 1) + [q], 2).flatten(1, 2)
            g = None if g is None else torch.stack([g] + [torch.zeros_like(g)] * (n - 1), 2).flatten(1, 2)
        return q, k, v, beta, g

    def first_state(self, p, sequence, shape):
        return torch.zeros(shape) if p.initial_state is None else p.initial_state[sequence].float().clone()

    def __call__(self, p: Problem) -> Result:
        self.dtype, self.scale = p.q.dtype, float(p.scale if p.scale is not None else p.q.shape[-1] ** -0.5)
        self.beta_dtype = p.beta.dtype
        B, T, HV, V, K, n = *p.q.shape[:2], p.v.shape[2], p.v.shape[3], p.q.shape[3], p.num_householder
        o, states, stages = torch.zeros(B, T, HV, V), [], {}
        for index, (batch, start, end) in enumerate(self.sequences(p)):
            S = self.first_state(p, index, (HV, K, V))
            if end > start:
                found, S, kept = self.sequence(*self.rows_of(p, batch, start, end), S)
                o[batch, start:end] = found[:, n - 1 :: n].movedim(0, 1)
                for name, x in kept.items():
                    stages.setdefault(name, {}).setdefault(batch, []).append(x.movedim(0, 1))
            states.append(S)
        stages = {name: torch.stack([torch.cat(x[b]) for b in sorted(x)]) for name, x in stages.items()}
        self.made(p, o, states, stages)
        return Result(
            o.to(self.dtype),
            torch.stack(states) if self.final else None,
            kernel=self.name,
            path=self.path,
            chunk_size=getattr(self, "C", None),
            stages=stages if getattr(self, "store", True) else {},
        )

    def made(self, p, o, states, stages):
        """What a fault of the epilogue may still change."""


class Recurrent(Kernel):
    """Token by token in fp32. l2norm in registers."""

    name, path = "decode-fp32", "recurrent"

    def decay(self, g, t):
        return torch.exp(g[:, t]).reshape(g.shape[0], -1, 1)

    def write(self, S, k, v, beta):
        error = v - self.mm(k.unsqueeze(1), S).squeeze(1)
        return S + k.unsqueeze(2) * (beta[:, None] * error).unsqueeze(1)

    def read(self, S, q):
        return self.mm((q * self.scale).unsqueeze(1), S).squeeze(1)

    def sequence(self, q, k, v, beta, g, S):
        o = torch.zeros_like(v)
        for t in range(k.shape[1]):
            if g is not None:
                S = S * self.decay(g, t)
            S = self.write(S, k[:, t], v[:, t], beta[:, t])
            o[:, t] = self.read(S, q[:, t])
        return o, S, {}


class Chunk(Kernel):
    """The chunk kernels of fla, scalar gates or none; `Channels` has KDA's. Tensors are [HV, chunks, rows, ...]."""

    path, C, block, merge = "chunk", 64, 16, staticmethod(lambda x: x)
    kept_in_fp32 = ()  # stages that are stored so
    product = staticmethod(lambda x: x)  # operands of the products that ask for no precision, where inputs are fp32

    def normalised(self, x):
        return self.X(super().normalised(x))

    def chunked(self, x):
        rows = x.shape[1]
        pad = torch.zeros(x.shape[0], -rows % self.C, *x.shape[2:])
        return torch.cat([x, pad], 1).reshape(x.shape[0], -1, self.C, *x.shape[2:])

    def cumsum(self, g):
        return torch.cumsum(g, 2) * LOG2E

    def exp2(self, x):
        return torch.exp2(x)

    def ratios(self, G):
        d = G.unsqueeze(3) - G.unsqueeze(2)
        return self.exp2(torch.where(torch.ones(self.C, self.C).tril().bool(), d, torch.tensor(-float("inf"))))

    def dot(self, a, b):
        return self.mm(self.product(a), self.product(b))

    def grams(self, q, k, beta, G):
        """A, strictly lower, and Aqk."""
        kk, qk = self.dot(k, k.transpose(2, 3)), self.dot(q, k.transpose(2, 3)).tril()
        if G is not None:
            kk, qk = kk * self.ratios(G), qk * self.ratios(G)
        return (kk * beta.unsqueeze(3)).tril(-1), self.X(qk)

    def diagonal(self, L):
        """(I + L)^-1 of a diagonal block by forward substitution."""
        inverse = torch.eye(L.shape[-1]).expand(L.shape).clone()
        for i in range(1, L.shape[-1]):
            inverse[..., i, :i] = -self.mm(L[..., i, None, :i], inverse[..., :i, :i]).squeeze(-2)
        return inverse

    def inverse(self, A):
        b, n = self.block, self.C // self.block
        at = lambda x, i, j: x[..., i * b : (i + 1) * b, j * b : (j + 1) * b]
        m, out = lambda x, y: self.mm(self.merge(x), self.merge(y)), torch.zeros_like(A)
        for i in range(n):
            at(out, i, i).copy_(self.diagonal(at(A, i, i)))
        for gap in range(1, n):
            for i in range(gap, n):
                j = i - gap
                if gap == 1:
                    at(out, i, j).copy_(-m(m(at(out, i, i), at(A, i, j)), at(out, j, j)))
                else:
                    inner = m(at(A, i, j), at(out, j, j))
                    for l in range(j + 1, i):
                        inner = inner + m(at(A, i, l), at(out, l, j))
                    at(out, i, j).copy_(-m(at(out, i, i), inner))
        return self.X(out)

    def times_beta(self, x, beta):
        y = x * beta.unsqueeze(3)
        return y if self.beta_dtype == torch.float32 else self.X(y)

    def wu(self, Ai, k, v, beta, G):
        kb = self.times_beta(k, beta)
        if G is not None:
            kb = kb * self.exp2(G).reshape(*G.shape[:3], -1)
        return self.X(self.dot(Ai, self.X(kb))), self.X(self.mm(Ai, self.X(v * beta.unsqueeze(3))))

    def update(self, S, k, fresh, G, last):
        """The state after a chunk; `fresh` is v_new in fp32, `last` the last row there is."""
        if G is None:
            return S + self.dot(k.transpose(1, 2), self.X(fresh))
        fresh = fresh * self.exp2(G[:, last, None] - G).unsqueeze(2)
        return S * self.exp2(G[:, last]).reshape(-1, 1, 1) + self.dot(k.transpose(1, 2), self.X(fresh))

    def carry(self, S, c):
        return S

    def state_of_w(self, S, h):
        """What w multiplies: the state as it is stored."""
        return h

    def stored_value(self, fresh):
        return self.X(fresh)

    def stored_state(self, S):
        return self.X(S)

    def states(self, S, k, w, u, G, rows):
        h, v_new = [], []
        for c in range(k.shape[1]):
            S = self.carry(S, c)
            h.append(self.stored_state(S))
            fresh = u[:, c] - self.dot(w[:, c], self.state_of_w(S, h[c]))
            v_new.append(self.stored_value(fresh))
            last = min(self.C, rows - c * self.C) - 1
            S = self.update(S, k[:, c], fresh, None if G is None else G[:, c], last)
        return torch.stack(h, 1), torch.stack(v_new, 1), S

    def out(self, q, Aqk, h, v_new, G):
        read = self.dot(q, h)
        if G is not None:
            read = read * self.exp2(G).unsqueeze(3)
        return self.scale * read + self.scale * self.dot(Aqk, v_new)

    def sequence(self, q, k, v, beta, g, S):
        rows = k.shape[1]
        q, k, v, beta = (self.chunked(x) for x in (q, k, v, beta))
        G = None if g is None else self.cumsum(self.chunked(g))
        A, Aqk = self.grams(q, k, beta, G)
        Ai = self.inverse(A)
        w, u = self.wu(Ai, k, v, beta, G)
        h, v_new, S = self.states(S, k, w, u, G, rows)
        o = self.out(q, Aqk, h, v_new, G)
        to = torch.float32 if self.wide else self.dtype
        kept = {"A": A, **{name: x if name in self.kept_in_fp32 else x.to(to) for name, x in (("Ai", Ai), ("w", w), ("u", u), ("v_new", v_new))}}
        if g is not None:
            kept["g_cumsum_log2"] = G
        if isinstance(self, Channels):
            kept["Aqk"] = Aqk.to(to)
        kept = {name: x.flatten(1, 2)[:, :rows] for name, x in kept.items()}
        kept["h"] = h if "h" in self.kept_in_fp32 else h.to(to)
        return o.flatten(1, 2)[:, :rows], S, kept


class Channels(Chunk):
    """KDA: elementwise sums in diagonal blocks, between blocks products about the gate of the block's first row."""

    name = "fla chunk_kda"
    merge = off_diagonal = staticmethod(tf32)

    def grams(self, q, k, beta, G):
        b, kk, qk = self.block, [], []
        for i in range(0, self.C, b):
            rows = slice(i, i + b)
            Gi, row = G[:, :, rows], [[], []]
            for j in range(0, i, b):
                R = Gi[:, :, :1]
                right = self.off_diagonal(k[:, :, j : j + b] * self.exp2(R - G[:, :, j : j + b])).transpose(2, 3)
                for x, into in ((k, row[0]), (q, row[1])):
                    into.append(self.mm(self.off_diagonal(x[:, :, rows] * self.exp2(Gi - R)), right))
            d = Gi.unsqueeze(3) - Gi.unsqueeze(2)
            low = torch.ones(b, b).tril().bool().unsqueeze(-1)
            ratio = self.exp2(torch.where(low, d, torch.tensor(-float("inf"))))
            for x, into in ((k, row[0]), (q, row[1])):
                into.append((x[:, :, rows].unsqueeze(3) * k[:, :, rows].unsqueeze(2) * ratio).sum(-1))
            for parts, into in zip(row, (kk, qk)):
                parts.append(torch.zeros(*k.shape[:2], b, self.C - i - b))
                into.append(torch.cat(parts, 3))
        return (torch.cat(kk, 2) * beta.unsqueeze(3)).tril(-1), self.X(torch.cat(qk, 2).tril() * self.scale)

    def wu(self, Ai, k, v, beta, G):
        w, u = super().wu(Ai, k, v, beta, G)
        return w, u if self.dtype != torch.float32 else self.dot(Ai, v * beta.unsqueeze(3))

    def update(self, S, k, fresh, G, last):
        kg = self.X(k * self.exp2(G[:, last, None] - G))
        return S * self.exp2(G[:, last]).unsqueeze(2) + self.dot(kg.transpose(1, 2), self.X(fresh))

    def out(self, q, Aqk, h, v_new, G):
        return self.scale * self.dot(self.X(q * self.exp2(G)), h) + self.dot(Aqk, v_new)


class Delta(Chunk):
    name = "fla chunk_delta_rule"


class Gated(Chunk):
    name, merge = "fla chunk_gated_delta_rule", staticmethod(tf32)


class Product(Chunk):
    """Reads out at every chunk of rows, fla's kernel at chunks of tokens: its stage o differs, and none are stored."""

    name, store = "fla chunk_gated_delta_product", False


OF = {"delta_rule": Delta, "gated_delta_rule": Gated, "kda": Channels, "gated_delta_product": Product}


class DecayOnKeys(Gated):
    """The gated delta rule as JAX programs write it: one substitution a chunk, the decay of the update on k."""

    name, C, block = "jax_chunk_gated_delta_rule", 32, 32
    decay_on_q = w_by_state = False

    def state_of_w(self, S, h):
        return S if self.w_by_state else h

    def update(self, S, k, fresh, G, last):
        kg = self.X(k * self.exp2(G[:, last, None] - G).unsqueeze(2))
        return S * self.exp2(G[:, last]).reshape(-1, 1, 1) + self.dot(kg.transpose(1, 2), self.X(fresh))

    def out(self, q, Aqk, h, v_new, G):
        if not self.decay_on_q:
            return super().out(q, Aqk, h, v_new, G)
        return self.scale * (self.dot(self.X(q * self.exp2(G).unsqueeze(3)), h) + self.dot(Aqk, v_new))


class ForCpus(DecayOnKeys):
    """On bf16 tiles: rows of the inverse are rounded one by one, u is not, and 1e-5 is added under the root of the norm."""

    name, C, block, epsilon, decay_on_q, kept_in_fp32 = "chunk_gated_delta_rule_cpu", 64, 64, 1e-5, True, ("u",)

    def diagonal(self, L):
        inverse = torch.eye(L.shape[-1]).expand(L.shape).clone()
        for i in range(1, L.shape[-1]):
            inverse[..., i, :i] = self.X(-self.mm(L[..., i, None, :i], inverse[..., :i, :i]).squeeze(-2))
        return inverse

    def wu(self, Ai, k, v, beta, G):
        kb = self.times_beta(k, beta) * self.exp2(G).unsqueeze(3)
        return self.X(self.dot(Ai, self.X(kb))), self.mm(Ai, self.X(v * beta.unsqueeze(3)))


class ByXla(Channels):
    """KDA: fp32 but for what is stored between the steps; a product of two factors in bf16 leaves in bf16."""

    name, kept_in_fp32 = "tokamax xla_chunked", ("v_new",)

    def state_of_w(self, S, h):
        return S

    def stored_value(self, fresh):
        return fresh

    def grams(self, q, k, beta, G):
        b, kk, qk = self.block, torch.zeros(*k.shape[:2], self.C, self.C), torch.zeros(*k.shape[:2], self.C, self.C)
        for i in range(0, self.C, b):
            middle = G[:, :, i + b // 2, None]
            right = (k[:, :, : i + b] * self.exp2(middle - G[:, :, : i + b])).transpose(2, 3)
            rows = slice(i, i + b)
            kk[:, :, rows, : i + b] = self.mm(k[:, :, rows] * self.exp2(G[:, :, rows] - middle), right)
            qk[:, :, rows, : i + b] = self.mm(q[:, :, rows] * self.exp2(G[:, :, rows] - middle), right)
        return (kk * beta.unsqueeze(3)).tril(-1), self.X(qk.tril() * self.scale)

    def inverse(self, A):
        return self.diagonal(A)

    def wu(self, Ai, k, v, beta, G):
        kb = k * beta.unsqueeze(3) * self.exp2(G)
        return self.X(self.mm(Ai, kb)), self.X(self.mm(Ai, v * beta.unsqueeze(3)))

    def update(self, S, k, fresh, G, last):
        kg = self.X(k * self.exp2(G[:, last, None] - G))
        return S * self.exp2(G[:, last]).unsqueeze(2) + self.mm(kg.transpose(1, 2), fresh)

    def out(self, q, Aqk, h, v_new, G):
        return self.scale * self.X(self.mm(self.X(q * self.exp2(G)), h)) + self.mm(Aqk, v_new)
