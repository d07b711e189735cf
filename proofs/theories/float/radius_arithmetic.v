(* SPDX-FileCopyrightText: 2026 The deltaproof authors
   SPDX-License-Identifier: MIT *)

(** The radius's own arithmetic in fp64 with subnormals: line F where nothing underflows, and the floor where something may.

    A radius is computed from numbers that are not negative, by sums, products, roots and maxima. As long as no product falls below
    the smallest normal number but to 0 exactly, the fp64 numbers are those of unbounded exponents ([computed_in_fp64]), so that the
    slack of oracle_radius.v covers up to 62 operations ([slack_covers_in_fp64]). The last product, with u, may underflow:
    [floor_covers], the code's maximum with the smallest normal number.

    Not claimed: that products stay normal: the code holds its numbers within 2^-1000 and 2^900 to that end, on paper; overflow. *)
From Coq Require Import Reals ZArith Lra Lia Psatz.
From Flocq Require Import Core Plus_error.
From deltaproof.float Require Import vectors formats standard_model.
From deltaproof.float Require Import oracle_radius.
Open Scope R_scope.

Local Notation fl := fp64_round.
Local Notation unbounded := (round radix2 (FLX_exp 53) ZnearestE).
Local Notation smallest := (bpow radix2 (-1022)).
Local Notation slack := 1.0000000000000142108547152020037174224853515625.

Local Instance fp64_precision : Prec_gt_0 53.
Proof. red; lia. Qed.

(** What a value of the radius is given: numbers of fp64. *)
Fixpoint given_in_fp64 (e : expression) : Prop :=
  match e with
  | Given x => fmt 53 (-1074) x
  | Sum a b | Product a b | Largest a b => given_in_fp64 a /\ given_in_fp64 b
  | Root a => given_in_fp64 a
  end.

(** No product, and no root, is below the smallest normal number but 0. *)
Fixpoint stays_normal (e : expression) : Prop :=
  match e with
  | Given _ => True
  | Sum a b | Largest a b => stays_normal a /\ stays_normal b
  | Product a b => stays_normal a /\ stays_normal b /\
      (computed_value fl a * computed_value fl b = 0 \/ smallest <= Rabs (computed_value fl a * computed_value fl b))
  | Root a => stays_normal a /\ (sqrt (computed_value fl a) = 0 \/ smallest <= Rabs (sqrt (computed_value fl a)))
  end.

Lemma computed_in_format e : given_in_fp64 e -> fmt 53 (-1074) (computed_value fl e).
Proof.
induction e as [x|a IHa b IHb|a IHa b IHb|a IHa|a IHa b IHb]; simpl; intros H.
- exact H.
- apply fmt_of_round; lia.
- apply fmt_of_round; lia.
- apply fmt_of_round; lia.
- destruct H as [Ha Hb]. unfold Rmax. destruct (Rle_dec _ _); [apply IHb | apply IHa]; assumption.
Qed.

Lemma rounds_alike x : x = 0 \/ smallest <= Rabs x -> fl x = unbounded x.
Proof.
intros [->|H].
- unfold fmt_round. rewrite !round_0; try reflexivity; apply valid_rnd_N.
- apply (format_agrees_with_model 53 (-1074)). exact H.
Qed.

(** A sum of two numbers of fp64 is exact where it is small. *)
Lemma sums_round_alike x y : fmt 53 (-1074) x -> fmt 53 (-1074) y -> fl (x + y) = unbounded (x + y).
Proof.
intros Hx Hy. destruct (Rle_or_lt smallest (Rabs (x + y))) as [H|H].
- apply rounds_alike. right; exact H.
- assert (Hf : fmt 53 (-1074) (x + y)).
  { apply FLT_format_plus_small; [exact fp64_precision | exact Hx | exact Hy |].
    left. eapply Rlt_le_trans; [exact H|]. apply bpow_le; lia. }
  unfold fmt_round. rewrite (round_generic radix2 (FLT_exp (-1074) 53) ZnearestE (x + y)) by exact Hf.
  symmetry. apply round_generic; [apply valid_rnd_N|].
  apply generic_format_FLX_FLT with (1 := Hf).
Qed.

(** fp64 computes what unbounded exponents would. *)
Theorem computed_in_fp64 e : given_in_fp64 e -> stays_normal e -> computed_value fl e = computed_value unbounded e.
Proof.
induction e as [x|a IHa b IHb|a IHa b IHb|a IHa|a IHa b IHb]; simpl; intros Hf Hn.
- reflexivity.
- destruct Hf as [Fa Fb]; destruct Hn as [Na Nb]. rewrite <- IHa, <- IHb by assumption.
  apply sums_round_alike; apply computed_in_format; assumption.
- destruct Hf as [Fa Fb]; destruct Hn as [Na [Nb Hp]]. rewrite <- IHa, <- IHb by assumption. apply rounds_alike; exact Hp.
- destruct Hn as [Na Hp]. rewrite <- IHa by assumption. apply rounds_alike; exact Hp.
- destruct Hf as [Fa Fb]; destruct Hn as [Na Nb]. rewrite <- IHa, <- IHb by assumption. reflexivity.
Qed.

(** The slack of the code, in fp64. *)
Theorem slack_covers_in_fp64 e : given_ge0 e -> given_in_fp64 e -> stays_normal e -> (operations e <= 62)%nat ->
  computed_value fl e = 0 \/ smallest <= computed_value fl e ->
  exact_value e <= fl (computed_value fl e * slack).
Proof.
intros H0 Hf Hn Hm Hc.
assert (M : rounding_model unbounded (bpow radix2 (-53))) by (apply (nearest_is_a_model 53); lia).
pose proof (slack_covers unbounded e M H0 Hm) as H. rewrite <- computed_in_fp64 in H by assumption.
rewrite rounds_alike; [exact H|]. destruct Hc as [Hc|Hc]; [left; rewrite Hc; ring | right].
assert (smallest * 1 <= computed_value fl e * slack) by (apply Rmult_le_compat; pose proof (bpow_ge_0 radix2 (-1022)); lra).
rewrite Rabs_pos_eq; [lra|]. pose proof (bpow_ge_0 radix2 (-1022)); lra.
Qed.

(** The last product may underflow, the result not below the floor: a radius that is not 0 is at least the smallest normal number. *)
Theorem floor_covers y : 0 <= y -> y <= Rmax (fl (fl y * slack)) smallest.
Proof.
intros Hy. destruct (Rle_or_lt smallest y) as [H|H]; [|eapply Rle_trans; [|apply Rmax_r]; lra].
eapply Rle_trans; [|apply Rmax_l].
assert (Hs : 0 < smallest) by apply bpow_gt_0.
assert (M : rounding_model unbounded (bpow radix2 (-53))) by (apply (nearest_is_a_model 53); lia).
rewrite (rounds_alike y) by (right; rewrite Rabs_pos_eq; lra).
assert (Hge : smallest <= unbounded y).
{ rewrite <- (rounds_alike y) by (right; rewrite Rabs_pos_eq; lra).
  rewrite <- (round_of_fmt 53 (-1074) smallest).
  - apply round_monotone; [lia | exact H].
  - replace smallest with (IZR 1 * bpow radix2 (-1022)) by ring. apply fmt_dyadic; simpl; lia. }
rewrite rounds_alike.
- apply (slack_is_enough unbounded (unbounded y) y M); [lra|].
  pose proof (le_fl unbounded _ M y Hy) as Hl.
  pose proof (bpow_gt_0 radix2 (-53)) as Hu. set (u := bpow radix2 (-53)) in *.
  eapply Rle_trans; [exact Hl|]. apply Rmult_le_compat_r; [lra|].
  replace (1 + u) with ((1 + u)^1) at 1 by ring. apply Rle_pow; [lra | lia].
- right. assert (smallest * 1 <= unbounded y * slack) by (apply Rmult_le_compat; lra). rewrite Rabs_pos_eq; lra.
Qed.

(** The floor is needed: the smallest radius of all times u would be 0. *)
Example floor_is_needed : fl (bpow radix2 (-1074) * bpow radix2 (-53)) = 0 /\ 0 < bpow radix2 (-1074) * bpow radix2 (-53).
Proof.
rewrite <- bpow_plus. split; [|apply bpow_gt_0].
unfold fmt_round, round, scaled_mantissa, cexp. rewrite mag_bpow.
replace (FLT_exp (-1074) 53 (-1074 + -53 + 1)) with (-1074)%Z by reflexivity.
rewrite <- bpow_plus. rewrite (Znearest_imp _ _ 0); [unfold F2R; simpl; lra|].
rewrite Rminus_0_r, Rabs_pos_eq by apply bpow_ge_0. apply Rle_lt_trans with (bpow radix2 (-2)); [apply bpow_le; lia | simpl; lra].
Qed.
