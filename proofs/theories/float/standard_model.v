(* SPDX-FileCopyrightText: 2026 The deltaproof authors
   SPDX-License-Identifier: MIT *)

(** Sums of products in the standard model of rounding: |fl x - x| <= u |x| and |fl x - x| <= u |fl x|.

    For every bound on a dot product, a step or a substitution: a product of d terms, summed in sequence from 0, is within
    gamma_d = (1 + u)^d - 1 <= d u / (1 - d u) of the exact one, relative to the sum of absolute values; the same bound
    holds where the product is fused into the sum. Rounding to nearest with any precision is an instance.

    Not claimed: other orders of summation (sum_trees.v has them); anything near underflow: the model is obeyed by no format with a
    smallest number (rounding.v, which has the one that is); overflow. The constant gamma_d is attained to first order only in contrived cases. *)
From Coq Require Import Reals ZArith Lra Lia Psatz.
From Flocq Require Import Core Relative.
From deltaproof.float Require Import vectors formats.
Open Scope R_scope.

Record rounding_model (fl : R -> R) (u : R) : Prop := {
  model_u : 0 <= u < 1;
  model_argument : forall x, Rabs (fl x - x) <= u * Rabs x;
  model_result : forall x, Rabs (fl x - x) <= u * Rabs (fl x);
  model_idempotent : forall x, fl (fl x) = fl x
}.

(** Rounding to nearest with p digits and unbounded exponents is a model; so is exact arithmetic, with u = 0. *)
Theorem nearest_is_a_model p : (2 <= p)%Z -> rounding_model (round radix2 (FLX_exp p) ZnearestE) (unit_roundoff p).
Proof.
intros Hp; assert (Hpp : Prec_gt_0 p) by (red; lia).
assert (E : / 2 * bpow radix2 (- p + 1) = unit_roundoff p) by (unfold unit_roundoff; rewrite bpow_plus; simpl; lra).
pose proof (unit_roundoff_range p Hp) as Hu. constructor.
- lra.
- intros x; rewrite <- E; apply relative_error_N_FLX; exact Hpp.
- intros x; rewrite <- E. apply relative_error_N_FLX_round; exact Hpp.
- intros x; apply round_generic; [apply valid_rnd_N|]. apply generic_format_round; [apply FLX_exp_valid; exact Hpp | apply valid_rnd_N].
Qed.

Lemma exact_is_a_model : rounding_model (fun x => x) 0.
Proof. constructor; [lra | | |]; intros x; rewrite ?Rminus_diag_eq by reflexivity; rewrite ?Rabs_R0; try lra; reflexivity. Qed.

(** In the normal range a format with subnormals rounds as the model does. *)
Lemma format_agrees_with_model p emin x : smallest_normal p emin <= Rabs x ->
  fmt_round p emin x = round radix2 (FLX_exp p) ZnearestE x.
Proof. intros Hx; apply round_FLT_FLX; exact Hx. Qed.

Section Sums.
Variables (fl : R -> R) (u : R).
Hypothesis model : rounding_model fl u.

Lemma u_ge0 : 0 <= u. Proof. apply model. Qed.
Lemma u_lt1 : u < 1. Proof. apply model. Qed.

Lemma fl_zero : fl 0 = 0.
Proof.
pose proof (model_argument _ _ model 0) as H. rewrite Rabs_R0, Rmult_0_r, Rminus_0_r in H.
destruct (Req_dec (fl 0) 0) as [E|E]; [exact E|]. apply Rabs_pos_lt in E; lra.
Qed.

(** fl of a nearby argument. *)
Lemma fl_near x y e : Rabs (y - x) <= e -> Rabs (fl y - x) <= u * Rabs x + (1 + u) * e.
Proof.
intros H; pose proof (model_argument _ _ model y) as Hf; pose proof u_ge0.
assert (Hy : Rabs y <= Rabs x + e).
{ replace y with (x + (y - x)) by ring. eapply Rle_trans; [apply Rabs_triang | lra]. }
replace (fl y - x) with ((fl y - y) + (y - x)) by ring.
eapply Rle_trans; [apply Rabs_triang|]. nra.
Qed.

Definition gamma (n : nat) : R := (1 + u)^n - 1.

Lemma gamma_ge0 n : 0 <= gamma n.
Proof. unfold gamma; pose proof (pow_R1_Rle (1 + u) n); pose proof u_ge0; lra. Qed.

Lemma gamma_succ n : gamma (S n) = (1 + u) * gamma n + u.
Proof. unfold gamma; simpl; ring. Qed.

Lemma gamma_ge_u n : (1 <= n)%nat -> u <= gamma n.
Proof.
intros Hn; destruct n as [|n]; [lia|]. rewrite gamma_succ. pose proof (gamma_ge0 n); pose proof u_ge0.
assert (0 <= (1 + u) * gamma n) by (apply Rmult_le_pos; lra). lra.
Qed.

Lemma gamma_monotone m n : (m <= n)%nat -> gamma m <= gamma n.
Proof. intros H; unfold gamma; pose proof u_ge0. assert ((1 + u)^m <= (1 + u)^n) by (apply Rle_pow; [lra | exact H]). lra. Qed.

(** The closed form that the code computes. *)
Theorem gamma_bound n : INR n * u < 1 -> gamma n <= INR n * u / (1 - INR n * u).
Proof.
intros Hn; pose proof u_ge0 as Hu.
assert (H : (1 + u)^n * (1 - INR n * u) <= 1).
{ clear Hn; induction n as [|n IH]; [simpl; lra|].
  rewrite S_INR; simpl pow. assert (0 <= (1 + u)^n) by (apply pow_le; lra). pose proof (pos_INR n).
  replace ((1 + u) * (1 + u)^n * (1 - (INR n + 1) * u))
    with ((1 + u)^n * (1 - INR n * u) - (1 + u)^n * ((INR n + 1) * u^2)) by ring.
  assert (0 <= (1 + u)^n * ((INR n + 1) * u^2)) by (apply Rmult_le_pos; [assumption | apply Rmult_le_pos; [lra | apply pow2_ge_0]]). lra. }
unfold gamma; apply Rmult_le_reg_r with (1 - INR n * u); [lra|].
replace (INR n * u / (1 - INR n * u) * (1 - INR n * u)) with (INR n * u) by (field; lra). lra.
Qed.

(** Products rounded, then summed in sequence from 0. *)
Fixpoint fdot (d : nat) (k x : nat -> R) : R :=
  match d with O => 0 | S d' => fl (fdot d' k x + fl (k d' * x d')) end.

(** Products fused into the sum: one rounding a term. *)
Fixpoint fdot_fused (d : nat) (k x : nat -> R) : R :=
  match d with O => 0 | S d' => fl (fdot_fused d' k x + k d' * x d') end.

(** One more term: s is the exact sum so far, A that of absolute values, f the computed one, q the computed term. *)
Lemma dot_error_step n s A f t q : (1 <= n)%nat -> Rabs s <= A -> Rabs (f - s) <= gamma n * A -> Rabs (q - t) <= u * Rabs t ->
  Rabs (fl (f + q) - (s + t)) <= gamma (S n) * (A + Rabs t).
Proof.
intros Hn Hs Hf Hq; pose proof u_ge0 as Hu; pose proof (gamma_ge_u n Hn) as Hg; pose proof (Rabs_pos s); pose proof (Rabs_pos t).
assert (H1 : Rabs ((f + q) - (s + t)) <= gamma n * A + u * Rabs t).
{ replace ((f + q) - (s + t)) with ((f - s) + (q - t)) by ring. eapply Rle_trans; [apply Rabs_triang | lra]. }
eapply Rle_trans; [apply (fl_near _ _ _ H1)|]. rewrite gamma_succ.
assert (H2 : Rabs (s + t) <= A + Rabs t) by (eapply Rle_trans; [apply Rabs_triang | lra]).
assert (u * Rabs (s + t) <= u * (A + Rabs t)) by (apply Rmult_le_compat_l; lra).
assert (0 <= (1 + u) * (gamma n - u) * Rabs t) by (apply Rmult_le_pos; [apply Rmult_le_pos|]; lra). lra.
Qed.

Theorem dot_error d k x : Rabs (fdot d k x - dot d k x) <= gamma d * dot_abs d k x.
Proof.
destruct d as [|d]; [unfold dot, dot_abs; simpl; rewrite Rminus_0_r, Rabs_R0; lra|].
induction d as [|d IH].
- unfold dot, dot_abs; simpl. rewrite !Rplus_0_l, (model_idempotent _ _ model), <- Rabs_mult.
  replace (gamma 1) with u by (unfold gamma; simpl; ring). apply (model_argument _ _ model).
- change (fdot (S (S d)) k x) with (fl (fdot (S d) k x + fl (k (S d) * x (S d)))).
  change (dot (S (S d)) k x) with (dot (S d) k x + k (S d) * x (S d)).
  change (dot_abs (S (S d)) k x) with (dot_abs (S d) k x + Rabs (k (S d)) * Rabs (x (S d))).
  rewrite <- (Rabs_mult (k (S d))). apply dot_error_step; [lia | apply dot_le_dot_abs | exact IH | apply (model_argument _ _ model)].
Qed.

Theorem dot_fused_error d k x : Rabs (fdot_fused d k x - dot d k x) <= gamma d * dot_abs d k x.
Proof.
destruct d as [|d]; [unfold dot, dot_abs; simpl; rewrite Rminus_0_r, Rabs_R0; lra|].
induction d as [|d IH].
- unfold dot, dot_abs; simpl. rewrite !Rplus_0_l, <- Rabs_mult.
  replace (gamma 1) with u by (unfold gamma; simpl; ring). apply (model_argument _ _ model).
- change (fdot_fused (S (S d)) k x) with (fl (fdot_fused (S d) k x + k (S d) * x (S d))).
  change (dot (S (S d)) k x) with (dot (S d) k x + k (S d) * x (S d)).
  change (dot_abs (S (S d)) k x) with (dot_abs (S d) k x + Rabs (k (S d)) * Rabs (x (S d))).
  rewrite <- (Rabs_mult (k (S d))). apply dot_error_step; [lia | apply dot_le_dot_abs | exact IH |].
  rewrite Rminus_diag_eq, Rabs_R0 by reflexivity. apply Rmult_le_pos; [apply u_ge0 | apply Rabs_pos].
Qed.

(** By Cauchy and Schwarz, with the constant of the oracle's radius. *)
Theorem dot_error_norms d k x : INR d * u < 1 ->
  Rabs (fdot d k x - dot d k x) <= INR d * u / (1 - INR d * u) * (norm d k * norm d x).
Proof.
intros Hd; eapply Rle_trans; [apply dot_error|].
apply Rmult_le_compat; [apply gamma_ge0 | apply dot_abs_ge0 | apply gamma_bound; exact Hd | apply dot_abs_le_norms].
Qed.

(** Leading zeros cost nothing: a sum that starts at row j gives the same bits as one that starts at 0. *)
Lemma fdot_leading_zeros j n k x : (forall i, (i < j)%nat -> x i = 0) ->
  fdot (j + n) k x = fdot n (fun i => k (j + i)%nat) (fun i => x (j + i)%nat).
Proof.
intros Hx; induction n as [|n IH].
- rewrite Nat.add_0_r; simpl. induction j as [|j IHj]; [reflexivity|]. simpl.
  rewrite IHj by (intros; apply Hx; lia). rewrite Hx by lia. rewrite Rmult_0_r, fl_zero, Rplus_0_r; apply fl_zero.
- rewrite Nat.add_succ_r; simpl. rewrite IH. reflexivity.
Qed.

Lemma fl_ge0 x : 0 <= x -> 0 <= fl x.
Proof.
intros Hx; pose proof (model_argument _ _ model x) as H; pose proof u_lt1. rewrite (Rabs_pos_eq x) in H by exact Hx.
apply Rabs_le_inv in H. assert (u * x <= 1 * x) by (apply Rmult_le_compat_r; lra). lra.
Qed.

Lemma le_fl x : 0 <= x -> x <= (1 + u) * fl x.
Proof.
intros Hx; pose proof (model_result _ _ model x) as H. rewrite (Rabs_pos_eq (fl x)) in H by (apply fl_ge0; exact Hx).
apply Rabs_le_inv in H. lra.
Qed.

Lemma fl_le x : 0 <= x -> fl x <= (1 + u) * x.
Proof.
intros Hx; pose proof (model_argument _ _ model x) as H. rewrite (Rabs_pos_eq x) in H by exact Hx.
apply Rabs_le_inv in H. lra.
Qed.

Lemma fdot_squares_ge0 d x : 0 <= fdot d x x.
Proof.
induction d as [|d IH]; simpl; [lra|]. apply fl_ge0. assert (0 <= fl (x d * x d)) by (apply fl_ge0; nra). lra.
Qed.

(** A computed sum of squares may be low by a factor (1 + u)^d, no more. *)
Theorem sum_of_squares_low d x : sq d x <= (1 + u)^d * fdot d x x.
Proof.
destruct d as [|d]; [unfold sq; simpl; lra|]. pose proof u_ge0 as Hu.
induction d as [|d IH].
- unfold sq; simpl. rewrite !Rplus_0_l, (model_idempotent _ _ model), !Rmult_1_r. apply le_fl; nra.
- change (fdot (S (S d)) x x) with (fl (fdot (S d) x x + fl (x (S d) * x (S d)))).
  change (sq (S (S d)) x) with (sq (S d) x + (x (S d))^2). replace ((x (S d))^2) with (x (S d) * x (S d)) by ring.
  set (t := x (S d) * x (S d)) in *. assert (Ht : 0 <= t) by (unfold t; nra).
  pose proof (le_fl t Ht) as Hq. pose proof (fl_ge0 t Ht) as Hq0. pose proof (fdot_squares_ge0 (S d) x) as Hf0.
  set (f := fdot (S d) x x) in *. pose proof (le_fl (f + fl t) ltac:(lra)) as Hs.
  assert (Hp : 1 + u <= (1 + u)^(S d)).
  { simpl. pose proof (pow_R1_Rle (1 + u) d ltac:(lra)).
    assert ((1 + u) * 1 <= (1 + u) * (1 + u)^d) by (apply Rmult_le_compat_l; lra). lra. }
  change ((1 + u)^(S (S d))) with ((1 + u) * (1 + u)^(S d)). set (P := (1 + u)^(S d)) in *.
  assert ((1 + u) * fl t <= P * fl t) by (apply Rmult_le_compat_r; assumption).
  assert (P * (f + fl t) <= P * ((1 + u) * fl (f + fl t))) by (apply Rmult_le_compat_l; lra). lra.
Qed.

Theorem sum_of_squares_high d x : fdot d x x <= (1 + u)^d * sq d x.
Proof.
pose proof (dot_error d x x) as H.
assert (E : dot d x x = sq d x) by (unfold dot, sq; apply Rsum_ext; intros; ring).
assert (E2 : dot_abs d x x = sq d x).
{ unfold dot_abs, sq; apply Rsum_ext; intros i _. rewrite <- Rabs_mult, Rabs_pos_eq by nra. ring. }
rewrite E, E2 in H. apply Rabs_le_inv in H. unfold gamma in H. lra.
Qed.
End Sums.

(** The bounds speak of something: in bf16 arithmetic 1 + 1/257 is lost, an error of nearly u. *)
Example dot_error_occurs :
  let fl := round radix2 (FLX_exp 8) ZnearestE in
  fdot fl 2 (fun _ => 1) (fun i => match i with O => 1 | _ => / 256 end) = 1 /\
  dot 2 (fun _ => 1) (fun i => match i with O => 1 | _ => / 256 end) = 257 / 256.
Proof.
intros fl; split; [|unfold dot; simpl; lra].
assert (M : rounding_model fl (unit_roundoff 8)) by (apply nearest_is_a_model; lia).
assert (E : forall x, bpow radix2 (-126) <= Rabs x -> fl x = fmt_round 8 (-133) x).
{ intros x Hx; symmetry; apply format_agrees_with_model; exact Hx. }
assert (Hmin : bpow radix2 (-126) <= / 256).
{ apply Rle_trans with (bpow radix2 (-8)); [apply bpow_le; lia | simpl; lra]. }
simpl. rewrite !Rmult_1_l, Rplus_0_l, (model_idempotent _ _ M).
assert (F1 : fl 1 = 1).
{ rewrite E by (rewrite Rabs_R1; lra). apply round_of_fmt. replace 1 with (IZR 1 * bpow radix2 0) by (simpl; ring). apply fmt_dyadic; simpl; lia. }
assert (F2 : fl (/ 256) = / 256).
{ rewrite E by (rewrite Rabs_pos_eq; lra). apply round_of_fmt. replace (/ 256) with (IZR 1 * bpow radix2 (-8)) by (simpl; lra). apply fmt_dyadic; simpl; lia. }
rewrite F1, F2, E by (rewrite Rabs_pos_eq; lra).
replace (1 + / 256) with (1 + unit_roundoff 8) by (unfold unit_roundoff; simpl; lra).
apply midpoint_rounds_to_one; lia.
Qed.
