(* SPDX-FileCopyrightText: 2026 The deltaproof authors
   SPDX-License-Identifier: MIT *)

(** From which logit on the sigmoid, rounded once, is exactly 1.

    For the gate that bounds beta: sigmoid(x) = 1/(1 + e^-x) is below 1 for every x, yet in a format of precision p its
    correctly rounded value is 1 exactly from x = ln(2^(p+1) - 1) on, so that 2 sigmoid(x) is exactly 2 there. The instances
    give the two neighbouring numbers of each format on either side of that point.

    Not claimed: anything about a sigmoid computed from rounded parts (it saturates earlier), or about saturation at 0. *)
From Coq Require Import Reals ZArith Lra Lia Psatz.
From Flocq Require Import Core.
From deltaproof.float Require Import interval_z formats.
Import ITZ.
Import Tactic(i_prec).
Open Scope R_scope.

Definition sigmoid (x : R) : R := / (1 + exp (- x)).

Lemma sigmoid_range x : 0 < sigmoid x < 1.
Proof.
unfold sigmoid; pose proof (exp_pos (- x)); split; [apply Rinv_0_lt_compat; lra|].
rewrite <- Rinv_1 at 2; apply Rinv_lt_contravar; lra.
Qed.

Lemma sigmoid_monotone x y : x <= y -> sigmoid x <= sigmoid y.
Proof.
intros H; unfold sigmoid; pose proof (exp_pos (- y)).
apply Rinv_le_contravar; [lra|]. apply Rplus_le_compat_l.
destruct H as [H| ->]; [left; apply exp_increasing; lra | lra].
Qed.

Section AnyPrecision.
Variables p emin : Z.
Hypothesis p_ge2 : (2 <= p)%Z.
Hypothesis emin_small : (emin <= - p)%Z.
Local Notation rnd := (fmt_round p emin).
Local Notation u := (unit_roundoff p).

Lemma one_is_in_the_format : fmt p emin 1.
Proof.
replace 1 with (IZR 1 * bpow radix2 0) by (simpl; ring). apply fmt_dyadic; [|lia].
change (Z.abs 1) with (2 ^ 0)%Z. apply Z.pow_lt_mono_r; lia.
Qed.

Lemma below_one_is_in_the_format : fmt p emin (1 - u).
Proof.
replace (1 - u) with (IZR (2 ^ p - 1) * bpow radix2 (- p)).
- assert (0 < 2 ^ p)%Z by (apply Z.pow_pos_nonneg; lia). apply fmt_dyadic; lia.
- rewrite minus_IZR, (IZR_Zpower radix2) by lia. unfold unit_roundoff.
  rewrite Rmult_minus_distr_r, <- bpow_plus. replace (p + - p)%Z with 0%Z by lia. simpl (bpow radix2 0); ring.
Qed.

(** 1 - u/2 is the midpoint of 1 - u and 1; ties go to the even 1. *)
Lemma midpoint_below_one : rnd (1 - u / 2) = 1.
Proof.
pose proof (unit_roundoff_range p p_ge2) as Hu.
unfold fmt_round, round, scaled_mantissa, cexp.
rewrite (mag_unique radix2 (1 - u / 2) 0) by (rewrite Rabs_pos_eq; simpl; lra).
unfold FLT_exp; rewrite Z.max_l by lia. replace (- (0 - p))%Z with p by lia.
assert (E : (1 - u / 2) * bpow radix2 p = IZR (2 ^ p - 1) + / 2).
{ rewrite minus_IZR, (IZR_Zpower radix2) by lia. unfold unit_roundoff. rewrite bpow_opp.
  pose proof (bpow_gt_0 radix2 p). field; lra. }
rewrite E. unfold Znearest.
assert (Hf : Zfloor (IZR (2 ^ p - 1) + / 2) = (2 ^ p - 1)%Z) by (apply Zfloor_imp; rewrite plus_IZR; lra).
assert (Hc : Zceil (IZR (2 ^ p - 1) + / 2) = (2 ^ p)%Z) by (apply Zceil_imp; rewrite minus_IZR; lra).
rewrite Hf, Hc, Rcompare_Eq by lra.
assert (Ho : Z.even (2 ^ p - 1) = false).
{ rewrite Z.even_sub, Z.even_pow by lia. reflexivity. }
rewrite Ho; cbn [negb]. unfold F2R; cbn [Fnum Fexp].
rewrite (IZR_Zpower radix2), <- bpow_plus by lia. replace (p + (0 - p))%Z with 0%Z by lia. reflexivity.
Qed.

Lemma rounds_below_one s : s < 1 - u / 2 -> rnd s <= 1 - u.
Proof.
intros Hs; pose proof (unit_roundoff_range p p_ge2) as Hu.
assert (Hv : Valid_exp (FLT_exp emin p)) by (apply FLT_exp_valid; red; lia).
apply round_N_le_midp; [exact Hv | exact below_one_is_in_the_format |].
replace (succ radix2 (FLT_exp emin p) (1 - u)) with 1; [lra|].
rewrite succ_eq_pos by lra. rewrite ulp_neq_0 by lra. unfold cexp.
rewrite (mag_unique radix2 (1 - u) 0) by (rewrite Rabs_pos_eq; simpl; lra).
unfold FLT_exp; rewrite Z.max_l by lia. unfold unit_roundoff. replace (0 - p)%Z with (- p)%Z by lia. ring.
Qed.

Lemma rounds_to_one s : s <= 1 -> (rnd s = 1 <-> 1 - u / 2 <= s).
Proof.
intros Hs; pose proof (unit_roundoff_range p p_ge2) as Hu; split.
- intros H; destruct (Rle_or_lt (1 - u / 2) s) as [|Hlt]; [assumption|].
  pose proof (rounds_below_one s Hlt); lra.
- intros H; apply Rle_antisym.
  + rewrite <- (round_of_fmt p emin 1 one_is_in_the_format). apply round_monotone; [exact p_ge2 | exact Hs].
  + rewrite <- midpoint_below_one. apply round_monotone; [exact p_ge2 | exact H].
Qed.

(** The sigmoid saturates exactly from ln(2^(p+1) - 1) on. *)
Theorem sigmoid_saturates_from x : rnd (sigmoid x) = 1 <-> ln (bpow radix2 (p + 1) - 1) <= x.
Proof.
pose proof (unit_roundoff_range p p_ge2) as Hu; pose proof (sigmoid_range x) as Hs.
assert (Hb : bpow radix2 (p + 1) = 2 / u).
{ unfold unit_roundoff. rewrite bpow_plus, bpow_opp. change (bpow radix2 1) with 2. pose proof (bpow_gt_0 radix2 p). field; lra. }
assert (Hu2 : 8 <= 2 / u).
{ apply Rmult_le_reg_r with u; [lra|]. replace (2 / u * u) with 2 by (field; lra). lra. }
rewrite rounds_to_one, Hb by lra.
assert (E : 1 - u / 2 <= sigmoid x <-> 2 / u - 1 <= exp x).
{ unfold sigmoid; rewrite exp_Ropp. pose proof (exp_pos x) as Hx.
  replace (/ (1 + / exp x)) with (exp x / (exp x + 1)) by (field; lra). split; intros H.
  - assert (H2 : (1 - u / 2) * (exp x + 1) <= exp x).
    { apply Rmult_le_reg_r with (/ (exp x + 1)); [apply Rinv_0_lt_compat; lra|].
      replace ((1 - u / 2) * (exp x + 1) * / (exp x + 1)) with (1 - u / 2) by (field; lra). exact H. }
    apply Rmult_le_reg_r with u; [lra|]. replace ((2 / u - 1) * u) with (2 - u) by (field; lra). lra.
  - apply Rmult_le_reg_r with (exp x + 1); [lra|].
    replace (exp x / (exp x + 1) * (exp x + 1)) with (exp x) by (field; lra).
    assert (H2 : (2 / u - 1) * u <= exp x * u) by (apply Rmult_le_compat_r; lra).
    replace ((2 / u - 1) * u) with (2 - u) in H2 by (field; lra). lra. }
rewrite E; split; intros H.
- rewrite <- (ln_exp x). destruct H as [H|H]; [left; apply ln_increasing; lra | right; f_equal; exact H].
- rewrite <- (exp_ln (2 / u - 1)) by lra. destruct H as [H| <-]; [left; apply exp_increasing; exact H | lra].
Qed.
End AnyPrecision.

(** ** Instances: the first number that saturates and the last that does not, each a number of the input format. *)
Lemma saturates_at p emin a b x : (2 <= p)%Z -> (emin <= - p)%Z ->
  a < ln (bpow radix2 (p + 1) - 1) <= b ->
  (b <= x -> fmt_round p emin (sigmoid x) = 1) /\ (x <= a -> fmt_round p emin (sigmoid x) < 1).
Proof.
intros Hp He H; split; intros Hx.
- apply sigmoid_saturates_from; [exact Hp | exact He | lra].
- assert (Hn : fmt_round p emin (sigmoid x) <> 1).
  { intros Hn; apply (sigmoid_saturates_from p emin Hp He) in Hn; lra. }
  assert (fmt_round p emin (sigmoid x) <= 1); [|lra].
  rewrite <- (round_of_fmt p emin 1 (one_is_in_the_format p emin Hp He)).
  apply round_monotone; [exact Hp | left; apply sigmoid_range].
Qed.

Theorem bf16_sigmoid_saturates x :
  (6.25 <= x -> bf16_round (sigmoid x) = 1) /\ (x <= 6.21875 -> bf16_round (sigmoid x) < 1).
Proof. apply saturates_at; [lia | lia |]. clear; simpl; split; interval with (i_prec 60). Qed.

Theorem fp16_sigmoid_saturates x :
  (8.3203125 <= x -> fp16_round (sigmoid x) = 1) /\ (x <= 8.3125 -> fp16_round (sigmoid x) < 1).
Proof. apply saturates_at; [lia | lia |]. clear; simpl; split; interval with (i_prec 60). Qed.

Theorem fp32_sigmoid_saturates x :
  (17.3286800384521484375 <= x -> fp32_round (sigmoid x) = 1) /\ (x <= 17.328678131103515625 -> fp32_round (sigmoid x) < 1).
Proof. apply saturates_at; [lia | lia |]. clear; simpl; split; interval with (i_prec 80). Qed.

(** A bf16 logit through an fp32 sigmoid. *)
Theorem bf16_logit_fp32_sigmoid_saturates x :
  (17.375 <= x -> fp32_round (sigmoid x) = 1) /\ (x <= 17.25 -> fp32_round (sigmoid x) < 1).
Proof.
destruct (fp32_sigmoid_saturates x) as [H1 H2]; split; intros H; [apply H1 | apply H2]; lra.
Qed.
