# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""The gated delta rule as programs in JAX compute it (MaxText, tpu-inference, EasyDeL), written from the texts of their plans in torch.
None of their code is in here."""

import torch
from other_kernels import LOG2E, Gated, Recurrent


class OfJax(Gated):
    """beta goes into k and the scale into q, each rounded; the inverse and the state stay in fp32."""

    C = block = 64
    kept_in_fp32 = ("Ai", "v_new", "h")
    product_kept = False  # True: a product of two factors in X is not rounded to X

    def rows_of(self, p, batch, start, end):
        q, k, v, beta, g = super().rows_of(p, batch, start, end)
        return self.X(q * self.X(torch.tensor(self.scale))), k, v, self.X(beta), g

    def leaves(self, product):
        return product if self.product_kept else self.X(product)

    def weights(self, x):
        return self.X(x)

    def carried(self, x):
        """A row with its decay, as it is multiplied."""
        return self.X(x)

    def grams(self, q, k, beta, G):
        kb = self.X(k * beta.unsqueeze(3))
        kk = self.leaves(self.mm(kb, k.transpose(2, 3))) * self.ratios(G)
        qk = self.leaves(self.mm(q, k.transpose(2, 3))) * self.ratios(G)
        return kk.tril(-1), self.weights(qk.tril())

    def inverse(self, A):
        return self.diagonal(A)

    def wu(self, Ai, k, v, beta, G):
        kb = self.X(k * beta.unsqueeze(3)) * self.exp2(G).unsqueeze(3)
        return self.X(self.mm(Ai, kb)), self.X(self.mm(Ai, self.X(v * beta.unsqueeze(3))))

    def stored_state(self, S):
        return S

    def stored_value(self, fresh):
        return fresh

    def update(self, S, k, fresh, G, last):
        kg = self.carried(k * self.exp2(G[:, last, None] - G).unsqueeze(2))
        return S * self.exp2(G[:, last]).reshape(-1, 1, 1) + self.mm(kg.transpose(1, 2), fresh)

    def out(self, q, Aqk, h, v_new, G):
        return self.mm(self.carried(q * self.exp2(G).unsqueeze(3)), h) + self.mm(Aqk, v_new)


class TpuInference(OfJax):
    name, product_kept = "tpu-inference ragged_gated_delta_rule_mixed_prefill", True


class RoundedNorm:
    def normalised(self, x):
        inverse = self.X(torch.rsqrt(self.X(self.X(x * x).sum(-1, keepdim=True) + self.epsilon)))
        return self.X(x * inverse)


class MaxText(RoundedNorm, OfJax):
    """q e^G, k with its decay and q k^T with its decay stay in fp32."""

    name = "maxtext jax_chunk_gated_delta_rule"

    def weights(self, x):
        return x

    carried = weights


class EasyDeL(RoundedNorm, OfJax):
    """Gates, their sums and their exponentials in X, exponents clipped, and the state leaves in X."""

    name, clip = "ejkernel gated_delta_rule xla", 20

    def cumsum(self, g):
        out, total = torch.zeros_like(g), torch.zeros_like(g[:, :, 0])
        for i in range(g.shape[2]):
            out[:, :, i] = total = self.X(total + self.X(g[:, :, i]))
        return out * LOG2E

    def exp2(self, x):
        return self.X(torch.exp(self.X(x / LOG2E).clamp(-self.clip, self.clip)))

    def ratios(self, G):
        return super().ratios(G).tril()

    def made(self, p, o, states, stages):
        states[:] = [self.X(S) for S in states]


class MaxTextStep(RoundedNorm, Recurrent):
    """Token by token: o from the state before the token, and q k times what is written."""

    name = "maxtext jax_ar_gated_delta_rule"

    def sequence(self, q, k, v, beta, g, S):
        q, beta = self.X(q * self.X(torch.tensor(self.scale))), self.X(beta).unsqueeze(2)
        kb, vb, o = self.X(k * beta), self.X(v * beta), torch.zeros_like(v)
        for t in range(k.shape[1]):
            e = torch.exp(g[:, t]).reshape(-1, 1)
            fresh = vb[:, t] - self.mm((kb[:, t] * e).unsqueeze(1), S).squeeze(1)
            o[:, t] = self.mm((q[:, t] * e).unsqueeze(1), S).squeeze(1) + (q[:, t] * k[:, t]).sum(-1, keepdim=True) * fresh
            S = S * e.unsqueeze(2) + k[:, t].unsqueeze(2) * fresh.unsqueeze(1)
        return o, S, {}
