(* SPDX-FileCopyrightText: 2026 The deltaproof authors
   SPDX-License-Identifier: MIT *)

(** The forward error of forward substitution for I + A in floating point: the residual of float/substitution.v put into
    the bound of algebra/ut_bounds.v.

    For whoever judges a computed UT transform: A the exact matrix of a chunk with keys of length at most kap, steps in
    [0, beta] and decays of at most 1, (I + A) Z = Y solved row by row with every product and difference rounded, u the
    unit roundoff. With N the bound on the exact inverse and q = gamma_C (1 + beta kap^2 (C - 1)) N < 1, every entry of the
    computed column is within q m / (1 - q) of the true one, m the largest entry of the true column.

    Not claimed: rounding of A itself ([perturbed_forward_error] of ut_bounds.v has that); sums formed before they are
    subtracted (the same residual with a smaller constant, float/substitution.v); block or Neumann forms. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.analysis Require Import Rstruct.
From Coq Require Import Reals Lra Lia ZArith.
From deltaproof.algebra Require Import rank_one ordered_product non_expansive wy unit_lower ut ut_bounds.
From deltaproof.float Require vectors standard_model substitution.
From deltaproof.bridge Require Import rounded_steps.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.
Delimit Scope nat_scope with N.

Section Residual.
Variables (C n : nat) (A : 'M[R]_C) (Y Z : 'M[R]_(C, n)) (c : 'I_n).
Hypothesis lower : strictly_lower A.
Let a_row (r : 'I_C) : nat -> R := entries (row r A)^T.
Let z_col : nat -> R := entries (col c Z).

Lemma sum_below (r : 'I_C) (f : nat -> R) : vectors.Rsum r f = \sum_(i < C | (i < r)%N) f i.
Proof. by rewrite sum_is_big (big_ord_widen C f (ltnW (ltn_ord r))). Qed.

Lemma dot_below (r : 'I_C) : (A *m Z) r c = vectors.dot r (a_row r) z_col.
Proof.
rewrite /vectors.dot sum_below mxE (bigID (fun i : 'I_C => (i < r)%N)) /= [X in _ + X]big1 ?addr0; last first.
  by move=> i; rewrite -leqNgt => ri; rewrite lower // mul0r.
by apply: eq_bigr => i _; rewrite /a_row /z_col !entriesE !mxE.
Qed.

Lemma dot_abs_below (r : 'I_C) :
  vectors.dot_abs r (a_row r) z_col = \sum_(i < C | (i < r)%N) `|A r i| * `|Z i c|.
Proof. by rewrite /vectors.dot_abs sum_below; apply: eq_bigr => i _; rewrite /a_row /z_col !entriesE !mxE. Qed.

(** Column c of Z as a rounded arithmetic computes it, row after row. *)
Definition substituted (fl : R -> R) := forall r : 'I_C,
  Z r c = substitution.subtract_products fl r (Y r c) (a_row r) z_col.

Theorem substitution_residual (fl : R -> R) (u : R) (r : 'I_C) : standard_model.rounding_model fl u -> substituted fl ->
  `|((1%:M + A) *m Z - Y) r c| <= standard_model.gamma u C * (`|Z r c| + \sum_(i < C | (i < r)%N) `|A r i| * `|Z i c|).
Proof.
move=> model computed; rewrite mulmxDl mul1mx !mxE -[\sum_j _]/(\sum_j A r j * Z j c).
have -> : \sum_j A r j * Z j c = (A *m Z) r c by rewrite mxE.
rewrite dot_below -dot_abs_below.
have zr : z_col r = Z r c by rewrite /z_col entriesE mxE.
have := @substitution.solve_sequential_residual fl u model (fun _ => a_row r) (fun _ => Y r c) z_col r.
rewrite zr => /(_ (computed r)) => h.
have -> : Z r c + vectors.dot r (a_row r) z_col - Y r c = - (Rminus (Rminus (Y r c) (Z r c)) (vectors.dot r (a_row r) z_col)).
  by change (Rplus (Rplus (Z r c) (vectors.dot r (a_row r) z_col)) (Ropp (Y r c)) = Ropp (Rminus (Rminus (Y r c) (Z r c)) (vectors.dot r (a_row r) z_col))); lra.
rewrite normrN; apply/RleP; apply: Rle_trans h _.
apply: Rmult_le_compat_r; last by apply: (standard_model.gamma_monotone _ _ model); apply/ssrnat.leP; apply: ltnW.
apply: Rplus_le_le_0_compat; first exact: Rabs_pos.
exact: vectors.dot_abs_ge0.
Qed.
End Residual.

(** The forward error of a rounded substitution. *)
Theorem rounded_substitution_error C d n (b : nat -> R) (k : nat -> 'cV[R]_d) (a : nat -> 'rV[R]_d) (Y Z : 'M[R]_(C, n)) (c : 'I_n)
    (fl : R -> R) (u beta kap growth m : R) :
  let A := chunk_A C (fun t => diag_mx (a t)) (fun t => b t *: k t) k in
  let Ai := chunk_Ai C (fun t => diag_mx (a t)) (fun t => b t *: k t) k in
  (forall t i, `|a t 0 i| <= 1) -> (forall t, 0 <= b t <= beta) -> (forall t, squared_norm (k t) <= kap ^+ 2) ->
  1 <= growth -> beta * kap ^+ 2 - 1 <= growth ->
  standard_model.rounding_model fl u -> substituted A Y Z c fl -> (forall j, `|(Ai *m Y) j c| <= m) ->
  let q := standard_model.gamma u C * (1 + beta * kap ^+ 2 * C.-1%:R) * (1 + beta * kap ^+ 2 * (\sum_(0 <= m0 < C.-1) growth ^+ m0)) in
  q < 1 -> forall r, `|(Z - Ai *m Y) r c| <= q * m / (1 - q) /\ `|Z r c| <= m / (1 - q).
Proof.
move=> A Ai decays steps keys g1 g2 model computed hm q q1 r.
apply: (@substitution_forward_error _ C d b k a decays beta kap growth steps keys g1 g2 n Y Z ((1%:M + A) *m Z - Y) c
  (standard_model.gamma u C) m) => //.
- by apply/RleP; apply: (standard_model.gamma_ge0 _ _ model).
- by rewrite addrCA subrr addr0.
- move=> j; exact: (substitution_residual (@chunk_A_lower _ _ _ _ _ _) j model computed).
Qed.

(** Exact arithmetic is one such arithmetic, with gamma = 0: then the bound says that Z is the exact solution. *)
Example rounded_substitution_exact C d n (b : nat -> R) (k : nat -> 'cV[R]_d) (a : nat -> 'rV[R]_d) (Y Z : 'M[R]_(C, n)) (c : 'I_n) (m : R) :
  (forall t i, `|a t 0 i| <= 1) -> (forall t, 0 <= b t <= 1) -> (forall t, squared_norm (k t) <= 1) ->
  substituted (chunk_A C (fun t => diag_mx (a t)) (fun t => b t *: k t) k) Y Z c id ->
  (forall j, `|(chunk_Ai C (fun t => diag_mx (a t)) (fun t => b t *: k t) k *m Y) j c| <= m) ->
  forall r, Z r c = (chunk_Ai C (fun t => diag_mx (a t)) (fun t => b t *: k t) k *m Y) r c.
Proof.
move=> decays steps keys computed hm r.
have g0 : standard_model.gamma 0 C = 0.
  by rewrite /standard_model.gamma Rplus_0_r pow1; apply: Rminus_diag_eq.
have keys' t : squared_norm (k t) <= 1 ^+ 2 by rewrite expr1n.
have one_le : 1 * 1 ^+ 2 - 1 <= 1 :> R by rewrite expr1n mul1r subrr ler01.
have H := @rounded_substitution_error C d n b k a Y Z c id 0 1 1 1 m decays steps keys' (lexx 1) one_le standard_model.exact_is_a_model computed hm.
cbv zeta in H; rewrite g0 !mul0r in H; have [h _] := H ltr01 r.
by move: h; rewrite ?mul0r normr_le0 mxE [X in _ + X]mxE subr_eq0 => /eqP.
Qed.
