(* SPDX-FileCopyrightText: 2026 The deltaproof authors
   SPDX-License-Identifier: MIT *)

(** The tactic [interval] over Coq's own integers, for files that enclose exp, ln and sqrt at given points.

    The tactic's default instance computes with primitive machine floats and brings some sixty axioms about them; this one
    brings none beyond those of the real numbers. Import [ITZ] and [Tactic(i_prec)], always pass a precision
    ([interval with (i_prec 60)]), and [clear] first: the tactic reads every hypothesis. Nothing is stated here. *)
From Interval Require Tactic.
From Interval Require Import Float.Specific_ops Float.Specific_stdz.

Module SFZ := SpecificFloat StdZRadix2.
Module ITZ := Tactic.IntervalTactic SFZ.
