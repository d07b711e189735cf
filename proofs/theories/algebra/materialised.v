(* SPDX-FileCopyrightText: 2026 The deltaproof authors *)
(* SPDX-License-Identifier: MIT *)
(*
  A transition stored as a matrix with rounded entries: where a diagonal entry has rounded to 1 and anything is left beside
  it, the stored matrix lengthens a vector, whatever the exact one did, and if it is symmetric it has an eigenvalue above
  1. For the findings materialised-expands and materialised-expands-surely. Not claimed: which keys round so.
*)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From deltaproof.algebra Require Import rank_one non_expansive.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section UnitDiagonal.
Variables (R : realFieldType) (d : nat) (A : 'M[R]_d) (i j : 'I_d).
Hypotheses (ij : i != j) (one : A i i = 1) (other : A j i != 0).

Lemma squared_norm_ge_two (z : 'cV[R]_d) : z i 0 ^+ 2 + z j 0 ^+ 2 <= squared_norm z.
Proof.
rewrite /squared_norm /dot (bigD1 i) //= (bigD1 j) ?(eq_sym j) //= addrA -!expr2 ler_addl.
by apply: sumr_ge0 => l _; rewrite -expr2 sqr_ge0.
Qed.

(** A 1 on the diagonal and anything else in its column lengthens a unit vector. *)
Theorem unit_diagonal_expands : squared_norm (delta_mx i 0 : 'cV[R]_d) < squared_norm (A *m delta_mx i 0).
Proof.
have e : squared_norm (delta_mx i 0 : 'cV[R]_d) = 1.
  rewrite /squared_norm /dot (bigD1 i) //= !mxE !eqxx mulr1 big1 ?addr0 // => l li.
  by rewrite !mxE (negPf li) mul0r.
rewrite e -colE; apply: lt_le_trans (squared_norm_ge_two _).
by rewrite !mxE one expr1n ltr_addl lt0r sqr_ge0 sqrf_eq0 other.
Qed.

(** A symmetric matrix with a 1 on its diagonal and anything else in that row has z^T A z > |z|^2 for some z, so an
    eigenvalue above 1. *)
Theorem unit_diagonal_exceeds_one : A i j = A j i ->
  exists z : 'cV[R]_d, squared_norm z < dot z (A *m z).
Proof.
move=> symmetric; set c := A j i; set m := A j j.
pose t := c / (1 + `|1 - m|); exists (delta_mx i 0 + t *: delta_mx j 0).
have den : 0 < 1 + `|1 - m| by apply: ltr_spaddl; [exact: ltr01 | exact: normr_ge0].
have entries l : (delta_mx i 0 + t *: delta_mx j 0 : 'cV[R]_d) l 0 = if l == i then 1 else if l == j then t else 0.
  rewrite !mxE eqxx !andbT; case: eqVneq => [->|_]; first by rewrite (negPf ij) mulr0 addr0.
  by case: eqVneq => _; rewrite add0r ?mulr1 ?mulr0.
have two (f : 'I_d -> R) : \sum_l (delta_mx i 0 + t *: delta_mx j 0 : 'cV[R]_d) l 0 * f l = f i + t * f j.
  rewrite (bigD1 i) //= (bigD1 j) ?(eq_sym j) //= !entries eqxx eq_sym (negPf ij) eqxx mul1r big1 ?addr0 // => l /andP[li lj].
  by rewrite entries (negPf li) (negPf lj) mul0r.
have ji : (j == i) = false by rewrite eq_sym (negPf ij).
rewrite /squared_norm /dot !two !entries eqxx ji eqxx !mxE.
rewrite [X in _ < X + _](eq_bigr (fun l : 'I_d =>
   (delta_mx i 0 + t *: delta_mx j 0 : 'cV[R]_d) l 0 * A i l)) => [|l _]; last by rewrite mulrC.
rewrite [X in _ < _ + t * X](eq_bigr (fun l : 'I_d =>
   (delta_mx i 0 + t *: delta_mx j 0 : 'cV[R]_d) l 0 * A j l)) => [|l _]; last by rewrite mulrC.
rewrite !two one symmetric -/c -/m -subr_gt0.
have -> : 1 + t * c + t * (c + t * m) - (1 + t * t) = t * (2%:R * c - t * (1 - m)) by ring.
have -> : t * (2%:R * c - t * (1 - m)) = c ^+ 2 / (1 + `|1 - m|) * (2%:R - (1 - m) / (1 + `|1 - m|)).
  by rewrite /t; field; rewrite gt_eqF.
rewrite mulr_gt0 //; first by rewrite divr_gt0 // lt0r sqr_ge0 sqrf_eq0 other.
rewrite subr_gt0 ltr_pdivr_mulr // mulrDr mulr1 (le_lt_trans (ler_norm _)) //.
by rewrite ltr_spaddl ?ltr0n // ler_pemull ?normr_ge0 // ler1n.
Qed.
End UnitDiagonal.

(** Three entries of a rounded transition: 1 on the diagonal and -1/8 beside it. *)
Example unit_diagonal_instance :
  let A : 'M[rat]_2 := \matrix_(i, j) (if i == j then 1 else - (1 / 8%:R)) in
  A 0 0 = 1 /\ A 1 0 != 0 /\ A 0 1 = A 1 0.
Proof. by rewrite /= !mxE. Qed.
