(* SPDX-FileCopyrightText: 2026 The deltaproof authors
   SPDX-License-Identifier: MIT *)

(** What one rounding to a binary format costs: unit roundoff, relative error with its sharp constant, subnormals.

    For whoever bounds a rounding error: a format is its precision [p] and the exponent [emin] of its smallest subnormal,
    2^emin, and [fmt_round p emin] rounds to nearest, ties to even. First any format, then bf16, fp16, tf32, fp32 and
    fp64 as instances, with the numbers that the C++ table `number/format.hpp` holds (its `emin` is the exponent of the
    smallest normal number, emin + p - 1 here).

    Not claimed: anything about overflow. The formats here have no largest number; for a value below 2^emax the result is
    that of the real format, since rounding is monotone and 2^emax is in both. Nothing about other rounding modes, NaN
    or signed zeros: the files under golden/ have those. *)
From Coq Require Import Reals ZArith Lra Lia Psatz.
From Flocq Require Import Core Relative.
Open Scope R_scope.

Definition fmt (p emin : Z) : R -> Prop := generic_format radix2 (FLT_exp emin p).
Definition fmt_round (p emin : Z) : R -> R := round radix2 (FLT_exp emin p) ZnearestE.
Definition unit_roundoff (p : Z) : R := bpow radix2 (- p).
Definition smallest_subnormal (emin : Z) : R := bpow radix2 emin.
Definition smallest_normal (p emin : Z) : R := bpow radix2 (emin + p - 1).

Section Format.
Variables p emin : Z.
Hypothesis p_ge2 : (2 <= p)%Z.

Local Instance p_gt0 : Prec_gt_0 p.
Proof. red; lia. Qed.

Local Notation rnd := (fmt_round p emin).
Local Notation u := (unit_roundoff p).
Local Notation h := (smallest_subnormal emin).

Lemma unit_roundoff_range : 0 < u <= / 4.
Proof.
unfold unit_roundoff; split; [apply bpow_gt_0|].
apply Rle_trans with (bpow radix2 (-2)); [apply bpow_le; lia | simpl; lra].
Qed.

Lemma smallest_subnormal_gt0 : 0 < h.
Proof. apply bpow_gt_0. Qed.

Lemma u_ro_is_unit_roundoff : u_ro radix2 p = u.
Proof. unfold u_ro, unit_roundoff. rewrite bpow_plus; simpl; lra. Qed.

(** Every number m 2^e with |m| < 2^p and e >= emin is in the format. *)
Lemma fmt_dyadic m e : (Z.abs m < 2 ^ p)%Z -> (emin <= e)%Z -> fmt p emin (IZR m * bpow radix2 e).
Proof. intros Hm He; apply generic_format_FLT; exists (Float radix2 m e); [reflexivity | exact Hm | exact He]. Qed.

Lemma round_of_fmt x : fmt p emin x -> rnd x = x.
Proof. intros Hx; apply round_generic; [apply valid_rnd_N | exact Hx]. Qed.

Lemma fmt_of_round x : fmt p emin (rnd x).
Proof. apply generic_format_round; [apply FLT_exp_valid; exact p_gt0 | apply valid_rnd_N]. Qed.

Lemma round_idempotent x : rnd (rnd x) = rnd x.
Proof. apply round_of_fmt, fmt_of_round. Qed.

Lemma round_monotone x y : x <= y -> rnd x <= rnd y.
Proof. apply round_le; [apply FLT_exp_valid; exact p_gt0 | apply valid_rnd_N]. Qed.

Lemma round_opposite x : rnd (- x) = - rnd x.
Proof. apply round_NE_opp. Qed.

Lemma round_zero : rnd 0 = 0.
Proof. apply round_0, valid_rnd_N. Qed.

(** One rounding by hand: x in the binade below 2^e, nearest to m units. *)
Lemma round_eval x e m :
  bpow radix2 (e - 1) <= x < bpow radix2 e -> (emin <= e - p)%Z ->
  Rabs (x * bpow radix2 (p - e) - IZR m) < / 2 -> rnd x = IZR m * bpow radix2 (e - p).
Proof.
intros Hx He Hm; unfold fmt_round, round, scaled_mantissa, cexp.
assert (Hp : 0 < x) by (pose proof (bpow_gt_0 radix2 (e - 1)); lra).
rewrite (mag_unique radix2 x e) by (rewrite Rabs_pos_eq; lra).
unfold FLT_exp; rewrite Z.max_l by lia.
replace (- (e - p))%Z with (p - e)%Z by lia.
rewrite (Znearest_imp _ _ m Hm). reflexivity.
Qed.

(** Every rounding is a relative error of at most u/(1 + u) or an absolute one of at most half a subnormal. *)
Theorem standard_model x : exists e t,
  Rabs e <= u / (1 + u) /\ Rabs t <= h / 2 /\ e * t = 0 /\ rnd x = x * (1 + e) + t.
Proof.
destruct (relative_error_N_FLT'_ex radix2 emin p p_gt0 (fun n => negb (Z.even n)) x) as [e [t [He [Ht [Het Hr]]]]].
rewrite u_ro_is_unit_roundoff in He.
exists e, t; repeat split; [exact He | | exact Het | exact Hr].
eapply Rle_trans; [exact Ht|]. unfold smallest_subnormal; lra.
Qed.

(** In the normal range the error is relative, to the argument and to the result. *)
Theorem relative_error x : smallest_normal p emin <= Rabs x ->
  Rabs (rnd x - x) <= u / (1 + u) * Rabs x /\ Rabs (rnd x - x) <= u * Rabs (rnd x).
Proof.
intros Hx; split.
- pose proof (relative_error_N_FLX' radix2 p p_gt0 (fun n => negb (Z.even n)) x) as H.
  rewrite u_ro_is_unit_roundoff in H.
  replace (rnd x) with (round radix2 (FLX_exp p) ZnearestE x); [exact H|].
  symmetry; apply round_FLT_FLX; exact Hx.
- pose proof (relative_error_N_FLT_round radix2 emin p p_gt0 (fun n => negb (Z.even n)) x Hx) as H.
  replace u with (/ 2 * bpow radix2 (- p + 1)); [exact H|].
  unfold unit_roundoff. rewrite bpow_plus; simpl; lra.
Qed.

(** Below it, the error is at most half the distance of subnormals. *)
Theorem subnormal_error x : Rabs x < smallest_normal p emin -> Rabs (rnd x - x) <= h / 2.
Proof.
intros Hx. pose proof (error_le_half_ulp radix2 (FLT_exp emin p) (fun n => negb (Z.even n)) x) as H.
rewrite ulp_FLT_small in H; [| exact p_gt0 |].
- unfold smallest_subnormal. change (round radix2 (FLT_exp emin p) (Znearest (fun n => negb (Z.even n))) x) with (rnd x) in H. lra.
- apply Rlt_le_trans with (1 := Hx). apply bpow_le; lia.
Qed.

(** The midpoint 1 + u rounds to 1: both constants of [relative_error] are attained. *)
Lemma midpoint_rounds_to_one : (emin <= 1 - p)%Z -> rnd (1 + u) = 1.
Proof.
intros He; pose proof unit_roundoff_range as Hu.
unfold fmt_round, round, scaled_mantissa, cexp.
rewrite (mag_unique radix2 (1 + u) 1) by (rewrite Rabs_pos_eq; simpl; lra).
unfold FLT_exp; rewrite Z.max_l by lia.
assert (E : (1 + u) * bpow radix2 (- (1 - p)) = IZR (2 ^ (p - 1)) + / 2).
{ rewrite (IZR_Zpower radix2) by lia. unfold unit_roundoff.
  rewrite Rmult_plus_distr_r, Rmult_1_l, <- bpow_plus.
  replace (- p + - (1 - p))%Z with (-1)%Z by lia. replace (- (1 - p))%Z with (p - 1)%Z by lia. simpl; lra. }
rewrite E. unfold Znearest.
assert (Hf : Zfloor (IZR (2 ^ (p - 1)) + / 2) = (2 ^ (p - 1))%Z) by (apply Zfloor_imp; rewrite plus_IZR; lra).
rewrite Hf, Rcompare_Eq by lra.
assert (Hev : Z.even (2 ^ (p - 1)) = true) by (apply Z.even_spec; exists (2 ^ (p - 2))%Z; rewrite <- Z.pow_succ_r by lia; f_equal; lia).
rewrite Hev; cbn [negb]. unfold F2R; cbn [Fnum Fexp].
rewrite (IZR_Zpower radix2) by lia. rewrite <- bpow_plus. replace (p - 1 + (1 - p))%Z with 0%Z by lia. reflexivity.
Qed.

(** u is the least bound of the error relative to the result, u/(1 + u) the least relative to the argument. *)
Theorem unit_roundoff_is_least c : (emin <= 1 - p)%Z ->
  ((forall x, smallest_normal p emin <= Rabs x -> Rabs (rnd x - x) <= c * Rabs (rnd x)) <-> u <= c) /\
  ((forall x, smallest_normal p emin <= Rabs x -> Rabs (rnd x - x) <= c * Rabs x) <-> u / (1 + u) <= c).
Proof.
intros He; pose proof unit_roundoff_range as Hu.
assert (Hn : smallest_normal p emin <= Rabs (1 + u)).
{ rewrite Rabs_pos_eq by lra. apply Rle_trans with (bpow radix2 0); [apply bpow_le; lia | simpl; lra]. }
split; split.
- intros H; specialize (H _ Hn). rewrite midpoint_rounds_to_one, Rabs_R1, Rabs_minus_sym, Rabs_pos_eq in H by (exact He || lra). lra.
- intros Hc x Hx; eapply Rle_trans; [exact (proj2 (relative_error x Hx))|]. apply Rmult_le_compat_r; [apply Rabs_pos | exact Hc].
- intros H; specialize (H _ Hn).
  rewrite midpoint_rounds_to_one, Rabs_minus_sym, !Rabs_pos_eq in H by (exact He || lra).
  apply Rmult_le_reg_r with (1 + u); [lra|]. replace (u / (1 + u) * (1 + u)) with (1 + u - 1) by (field; lra). exact H.
- intros Hc x Hx; eapply Rle_trans; [exact (proj1 (relative_error x Hx))|]. apply Rmult_le_compat_r; [apply Rabs_pos | exact Hc].
Qed.
End Format.

(** ** Instances *)
Notation bf16_round := (fmt_round 8 (-133)).
Notation fp16_round := (fmt_round 11 (-24)).
Notation tf32_round := (fmt_round 11 (-136)).
Notation fp32_round := (fmt_round 24 (-149)).
Notation fp64_round := (fmt_round 53 (-1074)).

(** c is the unit roundoff of the format: the least bound of |round x - x| relative to |round x| in its normal range. *)
Definition is_unit_roundoff (p emin : Z) (c : R) : Prop :=
  (forall x, smallest_normal p emin <= Rabs x -> Rabs (fmt_round p emin x - x) <= c * Rabs (fmt_round p emin x)) /\
  (forall c', (forall x, smallest_normal p emin <= Rabs x ->
     Rabs (fmt_round p emin x - x) <= c' * Rabs (fmt_round p emin x)) -> c <= c').

Lemma unit_roundoff_correct p emin : (2 <= p)%Z -> (emin <= 1 - p)%Z -> is_unit_roundoff p emin (unit_roundoff p).
Proof.
intros Hp He; split.
- intros x Hx; apply (relative_error p emin Hp x Hx).
- intros c' Hc'; apply (unit_roundoff_is_least p emin Hp c' He); exact Hc'.
Qed.

Theorem bf16_unit_roundoff : is_unit_roundoff 8 (-133) 0.00390625.
Proof. replace 0.00390625 with (unit_roundoff 8) by (unfold unit_roundoff; simpl; lra). apply unit_roundoff_correct; lia. Qed.

Theorem fp16_unit_roundoff : is_unit_roundoff 11 (-24) 0.00048828125.
Proof. replace 0.00048828125 with (unit_roundoff 11) by (unfold unit_roundoff; simpl; lra). apply unit_roundoff_correct; lia. Qed.

Theorem tf32_unit_roundoff : is_unit_roundoff 11 (-136) 0.00048828125.
Proof. replace 0.00048828125 with (unit_roundoff 11) by (unfold unit_roundoff; simpl; lra). apply unit_roundoff_correct; lia. Qed.

Theorem fp32_unit_roundoff : is_unit_roundoff 24 (-149) 0.000000059604644775390625.
Proof. replace 0.000000059604644775390625 with (unit_roundoff 24) by (unfold unit_roundoff; simpl; lra). apply unit_roundoff_correct; lia. Qed.

Theorem fp64_unit_roundoff : is_unit_roundoff 53 (-1074) 0.00000000000000011102230246251565404236316680908203125.
Proof.
replace 0.00000000000000011102230246251565404236316680908203125 with (unit_roundoff 53) by (unfold unit_roundoff; simpl; lra).
apply unit_roundoff_correct; lia.
Qed.

(** bf16: at most one part in 257, and no better. *)
Theorem bf16_relative_error x : bpow radix2 (-126) <= Rabs x -> Rabs (bf16_round x - x) <= / 257 * Rabs x.
Proof.
intros Hx. assert (H2 : (2 <= 8)%Z) by lia.
destruct (relative_error 8 (-133) H2 x Hx) as [H _].
replace (/ 257) with (unit_roundoff 8 / (1 + unit_roundoff 8)); [exact H|].
assert (E : unit_roundoff 8 = / 256) by (unfold unit_roundoff; simpl; lra). rewrite E; field.
Qed.

Theorem bf16_relative_error_sharp : Rabs (bf16_round (257 / 256) - 257 / 256) = / 257 * Rabs (257 / 256).
Proof.
assert (E : 257 / 256 = 1 + unit_roundoff 8) by (unfold unit_roundoff; simpl; lra).
rewrite E at 1; rewrite midpoint_rounds_to_one by lia.
rewrite (Rabs_left (1 - 257 / 256)), (Rabs_pos_eq (257 / 256)) by lra; lra.
Qed.

(** Rounding does round: 1/3 is no bf16 number, and goes to 171/512. *)
Example bf16_round_one_third : bf16_round (/ 3) = 171 / 512.
Proof.
rewrite (round_eval 8 (-133) (/ 3) (-1) 171); simpl; try lia; try lra. apply Rabs_lt; lra.
Qed.

(** The subnormal bound is attained too: half of the smallest subnormal goes to 0. *)
Example bf16_subnormal_error_sharp :
  Rabs (bf16_round (bpow radix2 (-134)) - bpow radix2 (-134)) = smallest_subnormal (-133) / 2.
Proof.
assert (E : bf16_round (bpow radix2 (-134)) = 0).
{ unfold fmt_round, round, scaled_mantissa, cexp. rewrite mag_bpow.
  replace (FLT_exp (-133) 8 (-134 + 1)) with (-133)%Z by reflexivity.
  rewrite <- bpow_plus. replace (-134 + - -133)%Z with (-1)%Z by lia.
  replace (bpow radix2 (-1)) with (/ 2) by (simpl; lra).
  unfold Znearest. assert (Hf : Zfloor (/ 2) = 0%Z) by (apply Zfloor_imp; simpl; lra).
  rewrite Hf, Rcompare_Eq by lra. unfold F2R; simpl; lra. }
rewrite E, Rminus_0_l, Rabs_Ropp, Rabs_pos_eq by apply bpow_ge_0.
unfold smallest_subnormal. replace (-133)%Z with (-134 + 1)%Z by reflexivity. rewrite bpow_plus; simpl (bpow radix2 1); lra.
Qed.
