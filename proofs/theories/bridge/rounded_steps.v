(* SPDX-FileCopyrightText: 2026 The deltaproof authors
   SPDX-License-Identifier: MIT *)

(** From ordered fields to rounded numbers: products of delta-rule steps whose keys were rounded to a format.

    For the verdict "beta below the clamp cannot diverge": the product of any number of exact steps with keys of length at
    most 1 rounded to a format, beta at most 2 (1 - 2u) and decays of at most 1 lengthens no vector
    ([rounded_run_non_expansive]); above the clamp one key repeated drives a state beyond every bound
    ([unclamped_run_diverges], and exactly for the key (3/5, 4/5) in bf16). Joins algebra/non_expansive.v and
    float/key_norm.v; over mathcomp's view of the real numbers, which adds the axiom epsilon_statement.

    Not claimed: steps whose own operations round (float/oracle_radius.v); keys normalised in the format. *)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.analysis Require Import Rstruct.
From Coq Require Import Reals Lra Lia Psatz ZArith.
From Flocq Require Import Core.
From deltaproof.algebra Require Import rank_one ordered_product non_expansive.
From deltaproof.float Require vectors formats key_norm.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.
Delimit Scope nat_scope with N.

Section Vectors.
Variable d : nat.
Implicit Types k : 'cV[R]_d.

(** A column as a function of its indices, 0 beyond them. *)
Definition entries k (i : nat) : R := if insub i is Some j then k j 0 else 0.

Lemma entriesE k (i : 'I_d) : entries k i = k i 0.
Proof. by rewrite /entries valK. Qed.

Lemma sum_is_big (f : nat -> R) : vectors.Rsum d f = \sum_(i < d) f i.
Proof. by elim: d => [|n IH]; rewrite ?big_ord0 // big_ord_recr /= IH. Qed.

Lemma squared_norm_entries k : squared_norm k = vectors.sq d (entries k).
Proof.
rewrite /vectors.sq sum_is_big /squared_norm /dot; apply: eq_bigr => i _.
by rewrite entriesE /= Rmult_1_r.
Qed.

(** The key after its entries were rounded to a format. *)
Definition rounded p emin k : 'cV[R]_d := \col_i formats.fmt_round p emin (k i 0).

Lemma squared_norm_rounded p emin k :
  squared_norm (rounded p emin k) = vectors.sq d (fun i => formats.fmt_round p emin (entries k i)).
Proof.
rewrite /vectors.sq sum_is_big /squared_norm /dot; apply: eq_bigr => i _.
by rewrite entriesE !mxE /= Rmult_1_r.
Qed.
End Vectors.

Section Runs.
Variables (p emin : Z) (d : nat).
Hypothesis precision : (2 <= p)%Z.
Hypothesis dimension : Rle (INR d) (bpow radix2 (- 2 * emin - 3 * p)).
Variables (b : nat -> R) (k : nat -> 'cV[R]_d) (a : nat -> 'rV[R]_d).

Lemma rounded_step_is_stable t : squared_norm (k t) <= 1 ->
  Rle 0 (b t) -> Rle (b t) (Rmult 2 (Rminus 1 (Rmult 2 (formats.unit_roundoff p)))) ->
  0 <= b t * squared_norm (rounded p emin (k t)) <= 2%:R.
Proof.
move=> k1 b0 b1; have k2 : Rle (vectors.sq d (entries (k t))) (Rplus 1 (Rmult 4 (pow (formats.unit_roundoff p) 2))).
  move: k1; rewrite squared_norm_entries => /RleP k1; apply: Rle_trans k1 _.
  change (Rle R1 (Rplus R1 (Rmult 4 (pow (formats.unit_roundoff p) 2)))).
  by have := pow2_ge_0 (formats.unit_roundoff p); lra.
have [h0 h2] := @key_norm.safe_step p emin precision d (entries (k t)) (b t) dimension k2 (conj b0 b1).
by rewrite squared_norm_rounded; apply/andP; split; apply/RleP.
Qed.

(** Any product of clamped steps with rounded unit keys and decays of at most 1 is non-expansive, from both sides. *)
Theorem rounded_run_non_expansive s r z : (s <= r)%N ->
  (forall t, (s <= t < r)%N -> squared_norm (k t) <= 1 /\ Rle 0 (b t) /\
     Rle (b t) (Rmult 2 (Rminus 1 (Rmult 2 (formats.unit_roundoff p))))) ->
  (forall t c, (s <= t < r)%N -> `|a t 0 c| <= 1) ->
  squared_norm (ordered_product (decayed_step b (fun t => rounded p emin (k t)) a) s r *m z) <= squared_norm z
  /\ squared_norm ((ordered_product (decayed_step b (fun t => rounded p emin (k t)) a) s r)^T *m z) <= squared_norm z.
Proof.
move=> sr hb ha; apply: (run_non_expansive z sr) => // t st.
by have [k1 [b0 b1]] := hb t st; apply: rounded_step_is_stable.
Qed.
End Runs.

(** bf16 with its number. *)
Theorem bf16_run_non_expansive d b (k : nat -> 'cV[R]_d) (a : nat -> 'rV[R]_d) T z : (Z.of_nat d <= 32768)%Z ->
  (forall t, (t < T)%N -> squared_norm (k t) <= 1 /\ Rle 0 (b t) /\ Rle (b t) 1.984375) ->
  (forall t c, (t < T)%N -> `|a t 0 c| <= 1) ->
  squared_norm (ordered_product (decayed_step b (fun t => rounded 8 (-133) (k t)) a) 0 T *m z) <= squared_norm z.
Proof.
move=> hd hb ha.
have h8 : (2 <= 8)%Z by [].
have h15 : (15 <= - 2 * -133 - 3 * 8)%Z by [].
have hu : formats.unit_roundoff 8 = Rinv 256 by rewrite /formats.unit_roundoff /=; lra.
have hb' t : (0 <= t < T)%N -> squared_norm (k t) <= 1 /\ Rle 0 (b t) /\ Rle (b t) (Rmult 2 (Rminus 1 (Rmult 2 (formats.unit_roundoff 8)))).
  by move=> tT; have [k1 [b0 b1]] := hb t tT; split=> //; split=> //; rewrite hu; apply: Rle_trans b1 _; lra.
have [h _] := @rounded_run_non_expansive 8 (-133) d h8 (@key_norm.long_dimension 8 (-133) d hd h15) b k a 0 T z isT hb' (fun t c tT => ha t c tT).
exact: h.
Qed.

Lemma two_is_two : (2%:R : R) = IZR 2.
Proof. by rewrite mulr2n; change (Rplus R1 R1 = IZR 2); lra. Qed.

(** One key repeated without the clamp: its eigenvalue is below -1, and the state leaves every bound. *)
Lemma diverges_if p emin d (k : 'cV[R]_d) (b : R) M :
  Rlt (Rminus 1 (Rmult b (vectors.sq d (fun i => formats.fmt_round p emin (entries k i))))) (-1) ->
  exists n, M < squared_norm (ssrnat.iter n (mulmx (step_transition b (rounded p emin k))) (rounded p emin k)).
Proof.
move=> h; have h1 : 1 - b * squared_norm (rounded p emin k) =
    Rminus 1 (Rmult b (vectors.sq d (fun i => formats.fmt_round p emin (entries k i)))) by rewrite squared_norm_rounded.
apply: repeated_key_diverges; last first.
  rewrite h1; apply/RltP; change (Rlt R1 (Rabs (Rminus 1 (Rmult b (vectors.sq d (fun i => formats.fmt_round p emin (entries k i))))))).
  by rewrite Rabs_left; lra.
rewrite -squared_norm_eq0; apply/eqP => h0; move: h1; rewrite h0 mulr0 subr0 => h1.
by move: h; rewrite -h1; change (Rlt R1 (-1) -> False); lra.
Qed.

Theorem unclamped_run_diverges p emin M : (8 <= p)%Z -> (emin <= - p - 2)%Z ->
  exists k : 'cV[R]_16, squared_norm k <= 1 /\
    exists n, M < squared_norm (ssrnat.iter n (mulmx (step_transition (2%:R : R) (rounded p emin k))) (rounded p emin k)).
Proof.
move=> hp he; pose k : 'cV[R]_16 := \col_i key_norm.long_key p i.
have ek i : (i < 16)%coq_nat -> entries k i = key_norm.long_key p i.
  by move/ssrnat.ltP => hi; rewrite -[i]/(val (Ordinal hi)) entriesE mxE.
exists k; split.
  rewrite squared_norm_entries; apply/RleP.
  have -> : vectors.sq 16 (entries k) = vectors.sq 16 (key_norm.long_key p).
    by apply: vectors.Rsum_ext => i hi; rewrite ek.
  exact: key_norm.long_key_length.
apply: diverges_if.
have -> : vectors.sq 16 (fun i => formats.fmt_round p emin (entries k i)) = vectors.sq 16 (fun i => formats.fmt_round p emin (key_norm.long_key p i)).
  by apply: vectors.Rsum_ext => i hi; rewrite ek.
have hp2 : (2 <= p)%Z by lia.
have := key_norm.unclamped_step_expands p emin hp2 hp he.
have u0 : Rlt 0 (formats.unit_roundoff p) by apply: bpow_gt_0.
by rewrite two_is_two; lra.
Qed.

(** In bf16 the unit key (3/5, 4/5): eigenvalue -32973/32768 at beta = 2. *)
Definition key_3_4 : 'cV[R]_2 := \col_i key_norm.key_3_4 i.

Lemma key_3_4_entries i : (i < 2)%coq_nat -> entries key_3_4 i = key_norm.key_3_4 i.
Proof. by move/ssrnat.ltP => hi; rewrite -[i]/(val (Ordinal hi)) entriesE mxE. Qed.

Theorem bf16_key_3_4_diverges M : squared_norm key_3_4 = 1 /\
  exists n, M < squared_norm (ssrnat.iter n (mulmx (step_transition (2%:R : R) (rounded 8 (-133) key_3_4))) (rounded 8 (-133) key_3_4)).
Proof.
have [h1 h2] := key_norm.bf16_key_3_4; split.
  by rewrite squared_norm_entries -[RHS]h1; apply: vectors.Rsum_ext => i hi; rewrite key_3_4_entries.
apply: diverges_if.
have -> : vectors.sq 2 (fun i => formats.fmt_round 8 (-133) (entries key_3_4 i)) = vectors.sq 2 (fun i => formats.fmt_round 8 (-133) (key_norm.key_3_4 i)).
  by apply: vectors.Rsum_ext => i hi; rewrite key_3_4_entries.
by rewrite two_is_two h2; lra.
Qed.

(** The hypotheses of the clamp are met: the first unit vector, beta = 1.984375, no decay. *)
Example bf16_run_non_expansive_applies T (z : 'cV[R]_2) :
  squared_norm (ordered_product (decayed_step (fun=> 1.984375%R) (fun=> rounded 8 (-133) key_3_4) (fun=> const_mx 1)) 0 T *m z)
    <= squared_norm z.
Proof.
apply: (@bf16_run_non_expansive 2 (fun=> 1.984375%R) (fun=> key_3_4) (fun=> const_mx 1)) => // t => [_|c _].
  have [h _] := bf16_key_3_4_diverges 0; rewrite h lexx; split=> //; split; lra.
by rewrite mxE normr1.
Qed.
