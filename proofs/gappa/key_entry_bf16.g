# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
#
# The square of one key entry after rounding to bf16: relative error at most 2u + u^2 (theorem square_of_rounded_entry).
@b16 = float<8,-133,ne>;
kh = b16(k);
{ |k| in [1b-60, 1] -> |kh -/ k| <= 1b-8 /\ |kh * kh -/ (k * k)| <= 513b-16 }
