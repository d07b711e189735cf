(* SPDX-FileCopyrightText: 2026 The deltaproof authors
   SPDX-License-Identifier: MIT *)

(** Sums of products in a format with subnormals: what the standard model leaves out.

    For line U of the oracle's radius and for any sum whose products may be tiny: in a format with subnormals only a product can
    lose its relative accuracy, by at most half the smallest subnormal, while a sum of two numbers of the format never does.
    A dot product of d terms is then within gamma_d sum |x||y| + d (1 + u)^d h / 2.

    Not claimed: overflow; the other lines of the radius with underflow (tier_radius.v has those of the fp64 tier, the note's line U the
    others, on paper). *)
From Coq Require Import Reals ZArith Lra Lia Psatz.
From Flocq Require Import Core Relative Plus_error.
From deltaproof.float Require Import vectors formats standard_model.
Open Scope R_scope.

Section Underflow.
Variables p emin : Z.
Hypothesis p_ge2 : (2 <= p)%Z.
Local Notation fl := (fmt_round p emin).
Local Notation u := (unit_roundoff p).
Local Notation h := (smallest_subnormal emin).

Local Instance precision_gt0 : Prec_gt_0 p.
Proof. red; lia. Qed.

(** Any rounding, a product's in particular: relative, or half the smallest subnormal. *)
Theorem product_error x : Rabs (fl x - x) <= u * Rabs x + h / 2.
Proof.
pose proof (unit_roundoff_range p p_ge2) as Hu; assert (Hh : 0 < h) by apply bpow_gt_0. pose proof (Rabs_pos x) as Hx0.
assert (0 <= u * Rabs x) by (apply Rmult_le_pos; lra).
destruct (Rle_or_lt (smallest_normal p emin) (Rabs x)) as [Hx|Hx].
- destruct (relative_error p emin p_ge2 x Hx) as [H1 _].
  assert (u / (1 + u) * Rabs x <= u * Rabs x).
  { apply Rmult_le_compat_r; [exact Hx0|]. apply Rmult_le_reg_r with (1 + u); [lra|].
    replace (u / (1 + u) * (1 + u)) with u by (field; lra). nra. }
  lra.
- pose proof (subnormal_error p emin p_ge2 x Hx). lra.
Qed.

(** A sum of two numbers of the format does not underflow. *)
Theorem sum_error x y : fmt p emin x -> fmt p emin y -> Rabs (fl (x + y) - (x + y)) <= u * Rabs (x + y).
Proof.
intros Hx Hy; pose proof (unit_roundoff_range p p_ge2) as Hu.
destruct (FLT_plus_error_N_ex radix2 emin p (fun n => negb (Z.even n)) x y Hx Hy) as [e [He Hr]].
rewrite u_ro_is_unit_roundoff in He. unfold fmt_round. rewrite Hr.
replace ((x + y) * (1 + e) - (x + y)) with (e * (x + y)) by ring. rewrite Rabs_mult.
apply Rmult_le_compat_r; [apply Rabs_pos|]. eapply Rle_trans; [exact He|].
apply Rmult_le_reg_r with (1 + u); [lra|]. replace (u / (1 + u) * (1 + u)) with u by (field; lra). nra.
Qed.

Lemma fdot_in_format d k x : fmt p emin (fdot fl d k x).
Proof. destruct d; simpl; [apply generic_format_0 | apply fmt_of_round; exact p_ge2]. Qed.

Theorem dot_error_with_underflow d k x :
  Rabs (fdot fl d k x - dot d k x) <= gamma u d * dot_abs d k x + INR d * (1 + u)^d * (h / 2).
Proof.
pose proof (unit_roundoff_range p p_ge2) as Hu; assert (Hh : 0 < h) by apply bpow_gt_0.
destruct d as [|d]; [unfold dot, dot_abs; simpl; rewrite Rminus_0_r, Rabs_R0; lra|].
induction d as [|d IH].
- unfold dot, dot_abs; simpl. rewrite !Rplus_0_l, round_idempotent, <- Rabs_mult by exact p_ge2.
  pose proof (product_error (k O * x O)). replace (gamma u 1) with u by (unfold gamma; simpl; ring).
  assert (0 <= u * (h / 2)) by (apply Rmult_le_pos; lra). lra.
- change (fdot fl (S (S d)) k x) with (fl (fdot fl (S d) k x + fl (k (S d) * x (S d)))).
  change (dot (S (S d)) k x) with (dot (S d) k x + k (S d) * x (S d)).
  change (dot_abs (S (S d)) k x) with (dot_abs (S d) k x + Rabs (k (S d)) * Rabs (x (S d))).
  rewrite <- (Rabs_mult (k (S d))). pose proof (dot_le_dot_abs (S d) k x) as Hs.
  pose proof (product_error (k (S d) * x (S d))) as Hq. set (t := k (S d) * x (S d)) in *.
  pose proof (sum_error (fdot fl (S d) k x) (fl t) (fdot_in_format (S d) k x) (fmt_of_round p emin p_ge2 t)) as Hf.
  set (f := fdot fl (S d) k x) in *. set (s := dot (S d) k x) in *. set (A := dot_abs (S d) k x) in *.
  rewrite gamma_succ. set (g := gamma u (S d)) in *.
  assert (Hg : u <= g).
  { unfold g; rewrite gamma_succ. assert (0 <= gamma u d) by (unfold gamma; pose proof (pow_R1_Rle (1 + u) d ltac:(lra)); lra).
    assert (0 <= (1 + u) * gamma u d) by (apply Rmult_le_pos; lra). lra. }
  set (P := (1 + u)^(S d)) in *. change ((1 + u)^(S (S d))) with ((1 + u) * P).
  assert (HP : 1 <= P) by (apply pow_R1_Rle; lra). rewrite (S_INR (S d)). set (n := INR (S d)) in *.
  assert (Hn : 0 <= n) by apply pos_INR.
  pose proof (Rabs_pos t) as Ht; pose proof (Rabs_pos s) as Hs0.
  assert (H1 : Rabs ((f + fl t) - (s + t)) <= g * A + n * P * (h / 2) + u * Rabs t + h / 2).
  { replace ((f + fl t) - (s + t)) with ((f - s) + (fl t - t)) by ring. eapply Rle_trans; [apply Rabs_triang | lra]. }
  assert (H2 : Rabs (s + t) <= A + Rabs t) by (eapply Rle_trans; [apply Rabs_triang | lra]).
  assert (H3 : Rabs (f + fl t) <= Rabs (s + t) + Rabs ((f + fl t) - (s + t))).
  { replace (f + fl t) with ((s + t) + ((f + fl t) - (s + t))) at 1 by ring. apply Rabs_triang. }
  replace (fl (f + fl t) - (s + t)) with ((fl (f + fl t) - (f + fl t)) + ((f + fl t) - (s + t))) by ring.
  eapply Rle_trans; [apply Rabs_triang|].
  assert (H4 : u * Rabs (f + fl t) <= u * ((A + Rabs t) + (g * A + n * P * (h / 2) + u * Rabs t + h / 2))) by (apply Rmult_le_compat_l; lra).
  assert (H5 : 0 <= (1 + u) * (g - u) * Rabs t) by (apply Rmult_le_pos; [apply Rmult_le_pos|]; lra).
  assert (H6 : (1 + u) * (h / 2) <= (1 + u) * P * (h / 2)).
  { rewrite Rmult_assoc. apply Rmult_le_compat_l; [lra|]. rewrite <- (Rmult_1_l (h / 2)) at 1. apply Rmult_le_compat_r; lra. }
  lra.
Qed.
End Underflow.

(** fp64, with the number that line U compares with: K products lose at most K (1 + u)^K 2^-1075. *)
Corollary fp64_dot_error_with_underflow d k x :
  Rabs (fdot fp64_round d k x - dot d k x)
    <= gamma (bpow radix2 (-53)) d * dot_abs d k x + INR d * (1 + bpow radix2 (-53))^d * bpow radix2 (-1075).
Proof.
pose proof (dot_error_with_underflow 53 (-1074) ltac:(lia) d k x) as H.
replace (bpow radix2 (-1075)) with (smallest_subnormal (-1074) / 2); [exact H|].
unfold smallest_subnormal. replace (-1074)%Z with (-1075 + 1)%Z by lia. rewrite bpow_plus. change (bpow radix2 1) with 2. lra.
Qed.

(** Attained in the first order: in bf16 the product 2^-67 2^-67 is lost whole, and that is half the smallest subnormal. *)
Example underflow_occurs :
  Rabs (bf16_round (bpow radix2 (-67) * bpow radix2 (-67)) - bpow radix2 (-67) * bpow radix2 (-67)) = smallest_subnormal (-133) / 2.
Proof. rewrite <- bpow_plus. exact bf16_subnormal_error_sharp. Qed.
