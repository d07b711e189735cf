(* SPDX-FileCopyrightText: 2026 The deltaproof authors
   SPDX-License-Identifier: MIT *)

(** What any rounding of the code obeys, underflow included: |fl x - x| <= u |x| + eta, and <= u |fl x| + eta.

    For every bound on numbers that may be tiny. [rounding_model] of standard_model.v, relative errors alone, is obeyed by no format
    of the code: [no_format_is_a_model]. The record [rounding] here is, with its u and eta: rounding to nearest, ties to even or away
    from zero (tf32 as hardware rounds it), rounding toward zero, each also with subnormal results flushed to zero, in bf16, fp16,
    tf32, e4m3, e5m2, fp32 and fp64.

    Not claimed: overflow, so nothing about values beyond the largest number of a format (448 in e4m3, which has no infinity);
    subnormal operands read as zero. *)
From Coq Require Import Reals ZArith Lra Lia Psatz.
From Flocq Require Import Core Relative.
From deltaproof.float Require Import formats standard_model.
Open Scope R_scope.

Record rounding (fl : R -> R) (u eta : R) : Prop := {
  rounding_u : 0 <= u < 1;
  rounding_eta : 0 <= eta;
  rounding_argument : forall x, Rabs (fl x - x) <= u * Rabs x + eta;
  rounding_result : forall x, Rabs (fl x - x) <= u * Rabs (fl x) + eta
}.

(** A model of relative errors is one with eta = 0. *)
Lemma rounding_of_model fl u : rounding_model fl u -> rounding fl u 0.
Proof. intros M; constructor; [apply M | lra | |]; intros x; rewrite Rplus_0_r; apply M. Qed.

Section Format.
Variables p emin : Z.
Hypothesis p_ge2 : (2 <= p)%Z.

Local Instance p_gt0 : Prec_gt_0 p.
Proof. red; lia. Qed.

(** A quarter of the smallest subnormal is rounded to 0: its relative error is 1. *)
Lemma quarter_is_lost : fmt_round p emin (bpow radix2 (emin - 2)) = 0.
Proof.
unfold fmt_round, round, scaled_mantissa, cexp. rewrite mag_bpow. unfold FLT_exp. rewrite Z.max_r by lia.
rewrite <- bpow_plus. replace (emin - 2 + - emin)%Z with (-2)%Z by lia.
rewrite (Znearest_imp _ _ 0); [unfold F2R; simpl; lra|]. simpl. rewrite Rabs_pos_eq; lra.
Qed.

(** Whatever u below 1: relative errors alone hold in no format with a smallest number. *)
Theorem no_format_is_a_model u : ~ rounding_model (fmt_round p emin) u.
Proof.
intros M. pose proof (model_argument _ _ M (bpow radix2 (emin - 2))) as H. rewrite quarter_is_lost in H.
pose proof (bpow_gt_0 radix2 (emin - 2)) as Hx. destruct (model_u _ _ M) as [H0 H1].
rewrite Rminus_0_l, Rabs_Ropp, Rabs_pos_eq in H by lra. nra.
Qed.

(** To nearest, ties as [choice] says. *)
Theorem nearest_rounding choice : rounding (round radix2 (FLT_exp emin p) (Znearest choice)) (bpow radix2 (- p)) (bpow radix2 emin / 2).
Proof.
assert (Hu : 0 < bpow radix2 (- p) <= / 4) by (apply (unit_roundoff_range p p_ge2)).
assert (Hh : 0 < bpow radix2 emin) by apply bpow_gt_0.
assert (E : / 2 * bpow radix2 (- p + 1) = bpow radix2 (- p)) by (rewrite bpow_plus; simpl; lra).
assert (small : forall x, Rabs x < bpow radix2 (emin + p - 1) ->
  Rabs (round radix2 (FLT_exp emin p) (Znearest choice) x - x) <= bpow radix2 emin / 2).
{ intros x Hx. pose proof (error_le_half_ulp radix2 (FLT_exp emin p) choice x) as H.
  rewrite ulp_FLT_small in H; [lra | exact p_gt0 |]. apply Rlt_le_trans with (1 := Hx). apply bpow_le; lia. }
constructor; [lra | lra | |]; intros x.
- destruct (Rle_or_lt (bpow radix2 (emin + p - 1)) (Rabs x)) as [Hx|Hx].
  + pose proof (relative_error_N_FLT radix2 emin p p_gt0 choice x Hx) as H. rewrite E in H. lra.
  + pose proof (small x Hx). assert (0 <= bpow radix2 (- p) * Rabs x) by (apply Rmult_le_pos; [lra | apply Rabs_pos]). lra.
- destruct (Rle_or_lt (bpow radix2 (emin + p - 1)) (Rabs x)) as [Hx|Hx].
  + pose proof (relative_error_N_FLT_round radix2 emin p p_gt0 choice x Hx) as H. rewrite E in H. lra.
  + pose proof (small x Hx).
    assert (0 <= bpow radix2 (- p) * Rabs (round radix2 (FLT_exp emin p) (Znearest choice) x))
      by (apply Rmult_le_pos; [lra | apply Rabs_pos]). lra.
Qed.

(** Toward zero: u and eta are twice as large. *)
Theorem toward_zero_rounding : rounding (round radix2 (FLT_exp emin p) Ztrunc) (bpow radix2 (1 - p)) (bpow radix2 emin).
Proof.
assert (Hu : 0 < bpow radix2 (1 - p) <= / 2).
{ split; [apply bpow_gt_0|]. apply Rle_trans with (bpow radix2 (-1)); [apply bpow_le; lia | simpl; lra]. }
assert (Hh : 0 < bpow radix2 emin) by apply bpow_gt_0.
assert (E : bpow radix2 (- p + 1) = bpow radix2 (1 - p)) by (f_equal; lia).
assert (small : forall x, Rabs x < bpow radix2 (emin + p - 1) -> Rabs (round radix2 (FLT_exp emin p) Ztrunc x - x) <= bpow radix2 emin).
{ intros x Hx. pose proof (error_le_ulp radix2 (FLT_exp emin p) Ztrunc x) as H.
  rewrite ulp_FLT_small in H; [exact H | exact p_gt0 |]. apply Rlt_le_trans with (1 := Hx). apply bpow_le; lia. }
constructor; [lra | lra | |]; intros x.
- destruct (Rle_or_lt (bpow radix2 (emin + p - 1)) (Rabs x)) as [Hx|Hx].
  + pose proof (relative_error_FLT radix2 emin p p_gt0 Ztrunc x Hx) as H. rewrite E in H. lra.
  + pose proof (small x Hx). assert (0 <= bpow radix2 (1 - p) * Rabs x) by (apply Rmult_le_pos; [lra | apply Rabs_pos]). lra.
- destruct (Rle_or_lt (bpow radix2 (emin + p - 1)) (Rabs x)) as [Hx|Hx].
  + pose proof (abs_round_ge_generic radix2 (FLT_exp emin p) Ztrunc (bpow radix2 (emin + p - 1)) x) as Hr.
    assert (Hg : generic_format radix2 (FLT_exp emin p) (bpow radix2 (emin + p - 1))).
    { apply generic_format_bpow. unfold FLT_exp. lia. }
    specialize (Hr Hg Hx).
    pose proof (error_le_ulp radix2 (FLT_exp emin p) Ztrunc x) as H.
    eapply Rle_trans; [exact H|].
    assert (H2 : ulp radix2 (FLT_exp emin p) x <= ulp radix2 (FLT_exp emin p) (round radix2 (FLT_exp emin p) Ztrunc x)).
    { assert (Hz : round radix2 (FLT_exp emin p) Ztrunc x <> 0).
      { intros Hz; rewrite Hz, Rabs_R0 in Hr; pose proof (bpow_gt_0 radix2 (emin + p - 1)); lra. }
      assert (Hx0 : x <> 0) by (intros Hx0; rewrite Hx0, Rabs_R0 in Hx; pose proof (bpow_gt_0 radix2 (emin + p - 1)); lra).
      rewrite !ulp_neq_0 by assumption. unfold cexp.
      pose proof (mag_round_ZR radix2 (FLT_exp emin p) x Hz) as Hm. rewrite Hm. apply Rle_refl. }
    pose proof (ulp_FLT_le radix2 emin p (round radix2 (FLT_exp emin p) Ztrunc x)) as H3.
    assert (H4 : bpow radix2 (emin + p - 1) <= Rabs (round radix2 (FLT_exp emin p) Ztrunc x)) by exact Hr.
    specialize (H3 H4). rewrite <- E. replace (- p + 1)%Z with (1 - p)%Z by lia.
    rewrite Rmult_comm. lra.
  + pose proof (small x Hx).
    assert (0 <= bpow radix2 (1 - p) * Rabs (round radix2 (FLT_exp emin p) Ztrunc x)) by (apply Rmult_le_pos; [lra | apply Rabs_pos]). lra.
Qed.

(** Results below the smallest normal number become 0. *)
Definition flush (rnd : R -> Z) (x : R) : R :=
  let y := round radix2 (FLT_exp emin p) rnd x in if Rlt_bool (Rabs y) (bpow radix2 (emin + p - 1)) then 0 else y.

(** Flushing costs at most the smallest normal number, whatever the rounding. *)
Theorem flushed_rounding rnd u eta : Valid_rnd rnd -> rounding (round radix2 (FLT_exp emin p) rnd) u eta ->
  rounding (flush rnd) u (Rmax eta (bpow radix2 (emin + p - 1))).
Proof.
intros Hv [Hu He Ha Hr]. set (N := bpow radix2 (emin + p - 1)). assert (HN : 0 < N) by apply bpow_gt_0.
pose proof (Rmax_l eta N) as M1; pose proof (Rmax_r eta N) as M2.
assert (Hg : generic_format radix2 (FLT_exp emin p) N) by (apply generic_format_bpow; unfold FLT_exp; lia).
assert (lost : forall x, Rabs (round radix2 (FLT_exp emin p) rnd x) < N -> Rabs x <= N).
{ intros x Hx. destruct (Rle_or_lt N (Rabs x)) as [H|H]; [|lra].
  pose proof (abs_round_ge_generic radix2 (FLT_exp emin p) rnd N x Hg H). lra. }
constructor; [exact Hu | lra | |]; intros x; unfold flush; cbv zeta; fold N; destruct (Rlt_bool_spec (Rabs (round radix2 (FLT_exp emin p) rnd x)) N) as [H|H].
- rewrite Rminus_0_l, Rabs_Ropp. pose proof (lost x H). assert (0 <= u * Rabs x) by (apply Rmult_le_pos; [lra | apply Rabs_pos]). lra.
- pose proof (Ha x). lra.
- rewrite Rminus_0_l, Rabs_Ropp, Rabs_R0, Rmult_0_r. pose proof (lost x H). lra.
- pose proof (Hr x). lra.
Qed.
End Format.

(** ** The formats of the code, as each is rounded *)
Notation tf32_away := (round radix2 (FLT_exp (-136) 11) ZnearestA).
Notation e4m3_round := (fmt_round 4 (-9)).
Notation e5m2_round := (fmt_round 3 (-16)).
Notation toward_zero p emin := (round radix2 (FLT_exp emin p) Ztrunc).

Theorem tf32_away_rounding : rounding tf32_away (bpow radix2 (-11)) (bpow radix2 (-136) / 2).
Proof. apply (nearest_rounding 11 (-136)); lia. Qed.

Theorem tf32_toward_zero_rounding : rounding (toward_zero 11 (-136)) (bpow radix2 (-10)) (bpow radix2 (-136)).
Proof. apply (toward_zero_rounding 11 (-136)); lia. Qed.

Theorem e4m3_rounding : rounding e4m3_round (bpow radix2 (-4)) (bpow radix2 (-9) / 2).
Proof. apply (nearest_rounding 4 (-9)); lia. Qed.

Theorem e5m2_rounding : rounding e5m2_round (bpow radix2 (-3)) (bpow radix2 (-16) / 2).
Proof. apply (nearest_rounding 3 (-16)); lia. Qed.

Theorem bf16_rounding : rounding bf16_round (bpow radix2 (-8)) (bpow radix2 (-133) / 2).
Proof. apply (nearest_rounding 8 (-133)); lia. Qed.

Theorem fp16_rounding : rounding fp16_round (bpow radix2 (-11)) (bpow radix2 (-24) / 2).
Proof. apply (nearest_rounding 11 (-24)); lia. Qed.

Theorem fp32_rounding : rounding fp32_round (bpow radix2 (-24)) (bpow radix2 (-149) / 2).
Proof. apply (nearest_rounding 24 (-149)); lia. Qed.

Theorem fp64_rounding : rounding fp64_round (bpow radix2 (-53)) (bpow radix2 (-1074) / 2).
Proof. apply (nearest_rounding 53 (-1074)); lia. Qed.

(** fp32 on a unit that flushes: to nearest, and as tensor cores cut off. *)
Theorem fp32_flushed_rounding : rounding (flush 24 (-149) ZnearestE) (bpow radix2 (-24)) (bpow radix2 (-126)).
Proof.
replace (bpow radix2 (-126)) with (Rmax (bpow radix2 (-149) / 2) (bpow radix2 (-149 + 24 - 1))).
- apply flushed_rounding; [lia | exact _ | apply fp32_rounding].
- change (-149 + 24 - 1)%Z with (-126)%Z. apply Rmax_right. pose proof (bpow_gt_0 radix2 (-149)).
  assert (bpow radix2 (-149) <= bpow radix2 (-126)) by (apply bpow_le; lia). lra.
Qed.

Theorem fp32_toward_zero_rounding : rounding (toward_zero 24 (-149)) (bpow radix2 (-23)) (bpow radix2 (-149)).
Proof. apply (toward_zero_rounding 24 (-149)); lia. Qed.

Theorem fp32_toward_zero_flushed_rounding : rounding (flush 24 (-149) Ztrunc) (bpow radix2 (-23)) (bpow radix2 (-126)).
Proof.
replace (bpow radix2 (-126)) with (Rmax (bpow radix2 (-149)) (bpow radix2 (-149 + 24 - 1))).
- apply flushed_rounding; [lia | exact _ | apply fp32_toward_zero_rounding].
- change (-149 + 24 - 1)%Z with (-126)%Z. apply Rmax_right. apply bpow_le; lia.
Qed.

(** Ties away differ from ties to even: tf32 rounds 1 + 2^-11 up, and toward zero down. *)
Example tf32_tie : tf32_away (2049 / 2048) = 1025 / 1024 /\ tf32_round (2049 / 2048) = 1.
Proof.
split.
- unfold round, scaled_mantissa, cexp. rewrite (mag_unique radix2 _ 1) by (rewrite Rabs_pos_eq; simpl; lra).
  change (FLT_exp (-136) 11 1) with (-10)%Z. replace (2049 / 2048 * bpow radix2 (- (-10))) with (IZR 1024 + / 2) by (simpl; lra).
  unfold Znearest. assert (Hf : Zfloor (IZR 1024 + / 2) = 1024%Z) by (apply Zfloor_imp; rewrite plus_IZR; lra).
  rewrite Hf, Rcompare_Eq by lra.
  assert (Hc : Zceil (IZR 1024 + / 2) = 1025%Z) by (apply Zceil_imp; rewrite minus_IZR; simpl; lra).
  rewrite Hc. change (0 <=? 1024)%Z with true. cbv iota. unfold F2R; simpl; lra.
- replace (2049 / 2048) with (1 + unit_roundoff 11) by (unfold unit_roundoff; simpl; lra). apply midpoint_rounds_to_one; lia.
Qed.
