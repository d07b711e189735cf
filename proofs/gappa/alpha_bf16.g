# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
#
# EFLA's coefficient a = -expm1(-b n) / n: every operation in fp32, the store in bf16. E = 1 - e^-x at the rounded x = fl(b n),
# d the relative error of expm1 (one unit in the last place), c what rounding x does to E (relative condition at most 1).
# The same bounds as theorems alpha_fp32 and alpha_bf16 of theories/float/alpha.v, by Gappa alone.
@f32 = float<ieee_32,ne>;
@b16 = float<8,-133,ne>;
Eh = E * (1 + d);
E0 = E * (1 + c);
q f32= Eh / n;
a = b16(q);
A = E0 / n;
{ n in [1b-40, 1b40] /\ E in [1b-40, 1] /\ |d| <= 1b-23 /\ |c| <= 1b-24
  -> |q -/ A| <= 21b-26 /\ |a -/ A| <= 1026b-18 }
