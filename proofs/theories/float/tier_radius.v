(* SPDX-FileCopyrightText: 2026 The deltaproof authors
   SPDX-License-Identifier: MIT *)

(** The radius of the fp64 tier, the one that runs (src/oracle/tiers/fp64_rows.cpp), with underflow.

    For whoever relies on a radius by tier fp64. One value row. A rounding obeys |fl x - x| <= u |x| + eta and <= u |fl x| + eta
    (rounding.v); fp64 does, with u = 2^-53 and eta = 2^-1075. Multiply-adds are fused, or rounded twice where a machine has none: the
    lines suppose of each operation only what both obey. A prediction is any number within P of the exact product with the computed
    row: [fused_product] gives P for a chain of fused operations, [gram_line] for the second step of a pair, which is predicted from the
    row before both, the product of the two keys and what the first step wrote. [step_line] is one step, [decay_line] a decay,
    [read_line] a read-out; [tier_state_radius] and [tier_output_radius] compose them over any number of steps with and without
    decays, and [block_line] is what is kept of a block of steps (line H): the product of its factors times the sum of its terms.
    [underflow_line]: the code's term 2^-1000 (1 + kappa+)(1 + beta+) u covers all that underflow costs a step in fp64.

    Not claimed: that the bounds M, kappa and rho hold (premises here; proofs/notes/oracle-radius.md derives the code's on paper,
    [half_square_line] is the part that is checked); that the radius as the code computes it is not below this one (on paper, line F);
    anything of the double-double, fixed-point and exact tiers. *)
From Coq Require Import Reals ZArith Lra Lia Psatz Permutation List.
From Flocq Require Import Core.
From deltaproof.float Require Import vectors formats standard_model rounding sum_trees.
From deltaproof.float Require oracle_radius.
Open Scope R_scope.

Section Tier.
Variables u eta : R.
Hypothesis u_small : 0 <= u <= / 1024.
Hypothesis eta_ge0 : 0 <= eta.
Variable K : nat.
(** gamma of the code: at least (1 + u)^K - 1. *)
Variable gamma : R.
Hypothesis gamma_bound : (1 + u)^K - 1 <= gamma.

Definition c_2 : R := 2 * u * (1 + 4 * u).
(** What underflow costs a product of two rows, and a row whose entries lose 2 eta each. *)
Definition lost_product : R := (1 + gamma) * (INR K * eta).
Definition lost_row : R := norm K (fun _ => 2 * eta).

Lemma gamma_ge0 : 0 <= gamma.
Proof. pose proof (pow_R1_Rle (1 + u) K ltac:(lra)). lra. Qed.
Lemma lost_product_ge0 : 0 <= lost_product.
Proof. unfold lost_product. pose proof gamma_ge0. pose proof (pos_INR K). apply Rmult_le_pos; [lra | apply Rmult_le_pos; assumption]. Qed.
Lemma lost_row_ge0 : 0 <= lost_row.
Proof. apply norm_ge0. Qed.
Lemma c_2_ge0 : 0 <= c_2.
Proof. unfold c_2; nra. Qed.

(** A chain of fused operations. *)
Theorem fused_product fl k x kappa M : rounding fl u eta -> norm K k <= kappa -> norm K x <= M ->
  Rabs (fdot_fused fl K k x - dot K k x) <= gamma * (kappa * M) + lost_product.
Proof.
intros Hfl Hk Hx. destruct (in_sequence_counts K) as [C1 [C2 C3]].
pose proof (dot_error_any_order k x (fun y => y) (fun _ => fl) 0 0 u eta
  (rounding_of_model _ _ exact_is_a_model) (fun _ => Hfl) (in_sequence K) K) as H.
rewrite in_sequence_terms, in_sequence_is_fused, C1, C2, C3 in H. specialize (H (Permutation_refl _)).
assert (E : starts_abs (in_sequence K) = 0).
{ clear. induction K as [|d IH]; simpl; [apply Rabs_R0 | rewrite IH; lra]. }
rewrite E, !Rplus_0_l, !Rplus_0_r, Rmult_1_r, Rmult_0_r, Rplus_0_l in H.
assert (Hn : dot_abs K k x <= kappa * M).
{ eapply Rle_trans; [apply dot_abs_le_norms|]. apply Rmult_le_compat; try apply norm_ge0; assumption. }
pose proof (dot_abs_ge0 K k x) as H0. pose proof (pow_R1_Rle (1 + u) K ltac:(lra)) as H1. set (Q := (1 + u)^K) in *.
assert ((Q - 1) * dot_abs K k x <= gamma * (kappa * M)) by (apply Rmult_le_compat; lra).
assert (0 <= INR K * eta) by (apply Rmult_le_pos; [apply pos_INR | exact eta_ge0]).
assert (Q * (INR K * eta) <= lost_product) by (apply Rmult_le_compat_r; lra). lra.
Qed.

(** ** Line D: a decay *)
Section Decay.
Variables (alpha alpha_hat s s_hat d_hat : nat -> R) (A e_alpha f_alpha e M_s M_d : R).
Hypothesis alpha_known : forall i, (i < K)%nat -> Rabs (alpha_hat i - alpha i) <= e_alpha * Rabs (alpha_hat i) + f_alpha.
Hypothesis alpha_max : forall i, (i < K)%nat -> Rabs (alpha_hat i) <= A.
Hypothesis e_alpha_ge0 : 0 <= e_alpha.
Hypothesis f_alpha_ge0 : 0 <= f_alpha.
Hypothesis A_ge0 : 0 <= A.
Hypothesis d_hat_rounded : forall i, (i < K)%nat -> Rabs (d_hat i - alpha_hat i * s_hat i) <= u * Rabs (d_hat i) + eta.
Hypothesis s_known : norm K (fun i => s_hat i - s i) <= e.
Hypothesis M_s_bound : norm K s_hat <= M_s.
Hypothesis M_d_bound : norm K d_hat <= M_d.

Theorem decay_line :
  norm K (fun i => d_hat i - alpha i * s i) <=
  (A * (1 + e_alpha) + f_alpha) * e + (e_alpha / (1 - u) + u) * M_d + f_alpha * M_s + (1 + e_alpha) * lost_row.
Proof.
assert (HA : 0 <= A * (1 + e_alpha) + f_alpha) by (assert (0 <= A * (1 + e_alpha)) by (apply Rmult_le_pos; lra); lra).
assert (He : 0 <= e) by (eapply Rle_trans; [apply norm_ge0 | exact s_known]).
pose (main := fun i => alpha i * (s_hat i - s i)).
assert (H1 : norm K main <= (A * (1 + e_alpha) + f_alpha) * e).
{ apply Rle_trans with ((A * (1 + e_alpha) + f_alpha) * norm K (fun i => s_hat i - s i)).
  - apply oracle_radius.norm_scal_le; [exact HA|]. intros i Hi; unfold main; rewrite Rabs_mult.
    apply Rmult_le_compat_r; [apply Rabs_pos|]. pose proof (alpha_known i Hi) as Ha; pose proof (alpha_max i Hi) as Hm.
    assert (Rabs (alpha i) <= Rabs (alpha_hat i) + Rabs (alpha_hat i - alpha i)).
    { replace (alpha i) with (alpha_hat i + - (alpha_hat i - alpha i)) at 1 by ring. eapply Rle_trans; [apply Rabs_triang|].
      rewrite Rabs_Ropp; lra. }
    assert (e_alpha * Rabs (alpha_hat i) <= e_alpha * A) by (apply Rmult_le_compat_l; assumption). lra.
  - apply Rmult_le_compat_l; assumption. }
set (f := e_alpha / (1 - u) + u).
assert (Hf : 0 <= f).
{ unfold f. assert (0 <= e_alpha / (1 - u)) by (apply Rmult_le_pos; [assumption | left; apply Rinv_0_lt_compat; lra]). lra. }
pose (local := fun i => f * Rabs (d_hat i) + f_alpha * Rabs (s_hat i)).
pose (under := fun i : nat => (1 + e_alpha) * (2 * eta)).
assert (H2 : norm K local <= f * M_d + f_alpha * M_s).
{ eapply Rle_trans; [apply (oracle_radius.norm_le_sum K local (fun i => f * d_hat i) (fun i => f_alpha * s_hat i))|].
  - intros i _. unfold local. rewrite !Rabs_mult, (Rabs_pos_eq f), (Rabs_pos_eq f_alpha) by assumption.
    rewrite Rabs_pos_eq; [lra|]. apply Rplus_le_le_0_compat; apply Rmult_le_pos; try assumption; apply Rabs_pos.
  - rewrite !norm_scal, (Rabs_pos_eq f), (Rabs_pos_eq f_alpha) by assumption.
    apply Rplus_le_compat; apply Rmult_le_compat_l; assumption. }
assert (H3 : norm K under = (1 + e_alpha) * lost_row) by (unfold under, lost_row; rewrite norm_scal, Rabs_pos_eq by lra; reflexivity).
pose (both := fun i => Rabs (local i) + Rabs (under i)).
assert (H4 : norm K both <= f * M_d + f_alpha * M_s + (1 + e_alpha) * lost_row).
{ eapply Rle_trans; [apply (oracle_radius.norm_le_sum K both local under)|lra].
  intros i _. unfold both. rewrite Rabs_pos_eq; [lra|]. apply Rplus_le_le_0_compat; apply Rabs_pos. }
eapply Rle_trans; [apply (oracle_radius.norm_le_sum K _ main both)|lra].
intros i Hi. pose proof (alpha_known i Hi) as Ha. pose proof (d_hat_rounded i Hi) as Hr.
assert (Hp : Rabs (alpha_hat i) * Rabs (s_hat i) <= (1 + u) * Rabs (d_hat i) + eta).
{ rewrite <- Rabs_mult. replace (alpha_hat i * s_hat i) with (d_hat i + - (d_hat i - alpha_hat i * s_hat i)) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp; lra. }
replace (d_hat i - alpha i * s i) with (main i + ((alpha_hat i - alpha i) * s_hat i + (d_hat i - alpha_hat i * s_hat i))) by (unfold main; ring).
eapply Rle_trans; [apply Rabs_triang|]. apply Rplus_le_compat_l.
unfold both. rewrite (Rabs_pos_eq (Rabs (local i) + Rabs (under i))) by (apply Rplus_le_le_0_compat; apply Rabs_pos).
assert (Hl : local i <= Rabs (local i)) by apply Rle_abs. assert (Hu : under i <= Rabs (under i)) by apply Rle_abs.
eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_mult.
assert (Hx : Rabs (alpha_hat i - alpha i) * Rabs (s_hat i) <= (e_alpha * Rabs (alpha_hat i) + f_alpha) * Rabs (s_hat i))
  by (apply Rmult_le_compat_r; [apply Rabs_pos | exact Ha]).
assert (Hy : e_alpha * (Rabs (alpha_hat i) * Rabs (s_hat i)) <= e_alpha * ((1 + u) * Rabs (d_hat i) + eta)) by (apply Rmult_le_compat_l; assumption).
assert (Hq : e_alpha * (1 + u) <= e_alpha / (1 - u)).
{ unfold Rdiv; apply Rmult_le_compat_l; [exact e_alpha_ge0|]. apply Rmult_le_reg_r with (1 - u); [lra|]. rewrite Rinv_l by lra. nra. }
assert (Hz : e_alpha * (1 + u) * Rabs (d_hat i) <= e_alpha / (1 - u) * Rabs (d_hat i)) by (apply Rmult_le_compat_r; [apply Rabs_pos | exact Hq]).
assert (0 <= e_alpha * eta) by (apply Rmult_le_pos; assumption).
unfold local, under, f in *. lra.
Qed.
End Decay.

(** ** Lines W and S: a step *)
Section Step.
Variables (b b_hat v p_hat r_hat w_hat : R) (k k_hat d d_hat s_hat : nat -> R).
Variables (e_b f_b e_k kappa M_d M_n V e_d rho P : R).
Hypothesis b_known : Rabs (b_hat - b) <= e_b * Rabs b_hat + f_b.
Hypothesis k_known : forall i, (i < K)%nat -> Rabs (k_hat i - k i) <= e_k * Rabs (k_hat i).
Hypothesis e_b_ge0 : 0 <= e_b.
Hypothesis f_b_ge0 : 0 <= f_b.
Hypothesis e_k_ge0 : 0 <= e_k.
Hypothesis kappa_bound : norm K k_hat <= kappa.
Hypothesis M_d_bound : norm K d_hat <= M_d.
Hypothesis M_n_bound : norm K s_hat <= M_n.
Hypothesis V_bound : Rabs v <= V.
Hypothesis d_known : norm K (fun i => d_hat i - d i) <= e_d.
Hypothesis rho_bound : Rmax 1 (Rabs (1 - b * sq K k)) <= rho.
Hypothesis predicted : Rabs (p_hat - dot K k_hat d_hat) <= P.
Hypothesis r_rounded : Rabs (r_hat - (v - p_hat)) <= u * Rabs r_hat + eta.
Hypothesis w_rounded : Rabs (w_hat - b_hat * r_hat) <= u * Rabs w_hat + eta.
Hypothesis s_rounded : forall i, (i < K)%nat ->
  Rabs (s_hat i - (d_hat i + k_hat i * w_hat)) <= u * Rabs (s_hat i) + u * (Rabs (k_hat i) * Rabs w_hat) + 2 * eta.

Definition kappa_plus : R := kappa * (1 + e_k).
Definition beta_plus : R := Rabs b_hat * (1 + e_b) + f_b.
(** What the two roundings of the write lose to underflow. *)
Definition lost_write : R := (1 + u) * eta + Rabs b_hat * eta.
Definition bound_W : R :=
  c_2 * Rabs w_hat + Rabs b_hat * P + lost_write
  + e_b * ((1 + c_2) * Rabs w_hat + Rabs b_hat * P + lost_write)
  + f_b * (V + kappa * M_d) + beta_plus * e_k * kappa * M_d.

Lemma kappa_ge0 : 0 <= kappa.
Proof. eapply Rle_trans; [apply norm_ge0 | exact kappa_bound]. Qed.
Lemma M_d_ge0 : 0 <= M_d.
Proof. eapply Rle_trans; [apply norm_ge0 | exact M_d_bound]. Qed.

Lemma k_plus : norm K k <= kappa_plus.
Proof.
unfold kappa_plus; apply Rle_trans with ((1 + e_k) * norm K k_hat).
- apply oracle_radius.norm_scal_le; [lra|]. intros i Hi. pose proof (k_known i Hi).
  replace (k i) with (k_hat i + - (k_hat i - k i)) by ring. eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp; lra.
- rewrite Rmult_comm. apply Rmult_le_compat_r; [lra | exact kappa_bound].
Qed.

Lemma k_difference : norm K (fun i => k_hat i - k i) <= e_k * kappa.
Proof.
apply Rle_trans with (e_k * norm K k_hat); [apply oracle_radius.norm_scal_le; [exact e_k_ge0 | exact k_known]|].
apply Rmult_le_compat_l; [exact e_k_ge0 | exact kappa_bound].
Qed.

Lemma b_plus : Rabs b <= beta_plus.
Proof.
unfold beta_plus. replace b with (b_hat + - (b_hat - b)) at 1 by ring. eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp; lra.
Qed.

(** The strength that is written, against the exact one on the computed row. *)
Theorem write_line : Rabs (w_hat - b * (v - dot K k d_hat)) <= bound_W.
Proof.
pose proof kappa_ge0 as Hk0; pose proof M_d_ge0 as HM0; pose proof c_2_ge0 as Hc0.
set (p0 := dot K k_hat d_hat) in *. set (p1 := dot K k d_hat).
set (B := Rabs b_hat). assert (HB : 0 <= B) by apply Rabs_pos.
set (W := Rabs w_hat) in *. assert (HW : 0 <= W) by apply Rabs_pos.
assert (Hbr : B * Rabs r_hat <= (1 + u) * W + eta).
{ unfold B. rewrite <- Rabs_mult. replace (b_hat * r_hat) with (w_hat + - (w_hat - b_hat * r_hat)) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp. fold W. lra. }
assert (Hw2 : Rabs (w_hat - b_hat * (v - p_hat)) <= c_2 * W + lost_write).
{ replace (w_hat - b_hat * (v - p_hat)) with ((w_hat - b_hat * r_hat) + b_hat * (r_hat - (v - p_hat))) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. rewrite (Rabs_mult b_hat). fold B.
  assert (B * Rabs (r_hat - (v - p_hat)) <= u * (B * Rabs r_hat) + B * eta).
  { replace (u * (B * Rabs r_hat) + B * eta) with (B * (u * Rabs r_hat + eta)) by ring. apply Rmult_le_compat_l; assumption. }
  assert (u * (B * Rabs r_hat) <= u * ((1 + u) * W + eta)) by (apply Rmult_le_compat_l; lra).
  assert (0 <= u * u * W) by (apply Rmult_le_pos; [apply Rmult_le_pos|]; lra).
  unfold lost_write, c_2. fold B. nra. }
set (U0 := lost_write) in *.
assert (H1 : Rabs (w_hat - b_hat * (v - p0)) <= c_2 * W + B * P + U0).
{ replace (w_hat - b_hat * (v - p0)) with ((w_hat - b_hat * (v - p_hat)) + - (b_hat * (p_hat - p0))) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp, (Rabs_mult b_hat). fold B.
  assert (B * Rabs (p_hat - p0) <= B * P) by (apply Rmult_le_compat_l; assumption). lra. }
assert (HY : Rabs (b_hat * (v - p0)) <= (1 + c_2) * W + B * P + U0).
{ replace (b_hat * (v - p0)) with (w_hat + - (w_hat - b_hat * (v - p0))) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp. fold W. lra. }
assert (HX : Rabs (v - p0) <= V + kappa * M_d).
{ eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp. apply Rplus_le_compat; [exact V_bound|].
  eapply Rle_trans; [apply cauchy_schwarz|]. apply Rmult_le_compat; try apply norm_ge0; assumption. }
assert (H2 : Rabs (b_hat * (v - p0) - b * (v - p0)) <= e_b * ((1 + c_2) * W + B * P + U0) + f_b * (V + kappa * M_d)).
{ rewrite <- Rmult_minus_distr_r, Rabs_mult.
  apply Rle_trans with ((e_b * B + f_b) * Rabs (v - p0)); [apply Rmult_le_compat_r; [apply Rabs_pos | exact b_known]|].
  rewrite Rabs_mult in HY. fold B in HY.
  assert (e_b * (B * Rabs (v - p0)) <= e_b * ((1 + c_2) * W + B * P + U0)) by (apply Rmult_le_compat_l; assumption).
  assert (f_b * Rabs (v - p0) <= f_b * (V + kappa * M_d)) by (apply Rmult_le_compat_l; assumption). lra. }
assert (H3 : Rabs (b * (v - p0) - b * (v - p1)) <= beta_plus * e_k * kappa * M_d).
{ replace (b * (v - p0) - b * (v - p1)) with (- (b * (p0 - p1))) by ring. rewrite Rabs_Ropp, Rabs_mult.
  assert (Hd : Rabs (p0 - p1) <= e_k * kappa * M_d).
  { replace (p0 - p1) with (dot K (fun i => k_hat i - k i) d_hat).
    - eapply Rle_trans; [apply cauchy_schwarz|].
      apply Rmult_le_compat; [apply norm_ge0 | apply norm_ge0 | exact k_difference | exact M_d_bound].
    - unfold p0, p1. assert (E : dot K k_hat d_hat = dot K (fun i => (k_hat i - k i) + k i) d_hat)
        by (unfold dot; apply Rsum_ext; intros; ring).
      rewrite E, (dot_plus_l K (fun i => k_hat i - k i) k d_hat); ring. }
  replace (beta_plus * e_k * kappa * M_d) with (beta_plus * (e_k * kappa * M_d)) by ring.
  apply Rmult_le_compat; [apply Rabs_pos | apply Rabs_pos | exact b_plus | exact Hd]. }
replace (w_hat - b * (v - p1)) with ((w_hat - b_hat * (v - p0)) + ((b_hat * (v - p0) - b * (v - p0)) + (b * (v - p0) - b * (v - p1)))) by ring.
eapply Rle_trans; [apply Rabs_triang|].
pose proof (Rabs_triang (b_hat * (v - p0) - b * (v - p0)) (b * (v - p0) - b * (v - p1))).
unfold bound_W. fold W B U0. lra.
Qed.

(** One step of the exact recurrence. *)
Definition exact_step (i : nat) : R := d i + k i * (b * (v - dot K k d)).

Theorem step_line :
  norm K (fun i => s_hat i - exact_step i) <=
  rho * e_d + kappa_plus * bound_W + e_k * kappa * Rabs w_hat + u * (M_n + kappa * Rabs w_hat) + lost_row.
Proof.
pose proof write_line as HW. set (w := w_hat) in *. set (g := w - b * (v - dot K k d_hat)) in *.
assert (H1 : norm K (fun i => (d_hat i - d i) - b * dot K k (fun j => d_hat j - d j) * k i) <= rho * e_d).
{ eapply Rle_trans; [apply (oracle_radius.factor_line K b k (fun i => d_hat i - d i))|].
  apply Rmult_le_compat; [|apply norm_ge0 | exact rho_bound | exact d_known]. apply Rle_trans with 1; [lra | apply Rmax_l]. }
assert (H2 : norm K (fun i => g * k i) <= kappa_plus * bound_W).
{ rewrite norm_scal, Rmult_comm. apply Rmult_le_compat; [apply norm_ge0 | apply Rabs_pos | exact k_plus | exact HW]. }
assert (H3 : norm K (fun i => w * (k_hat i - k i)) <= e_k * kappa * Rabs w).
{ rewrite norm_scal, Rmult_comm. apply Rmult_le_compat_r; [apply Rabs_pos | exact k_difference]. }
pose (first := fun i => u * s_hat i). pose (second := fun i => u * w * k_hat i). pose (under := fun _ : nat => 2 * eta).
pose (two := fun i => Rabs (first i) + Rabs (second i)).
assert (Htwo : norm K two <= u * (M_n + kappa * Rabs w)).
{ eapply Rle_trans; [apply (oracle_radius.norm_le_sum K two first second)|].
  - intros i _. unfold two. rewrite Rabs_pos_eq; [lra|]. apply Rplus_le_le_0_compat; apply Rabs_pos.
  - unfold first, second. rewrite !norm_scal, Rabs_mult, (Rabs_pos_eq u) by lra.
    assert (u * norm K s_hat <= u * M_n) by (apply Rmult_le_compat_l; lra).
    assert (u * Rabs w * norm K k_hat <= u * Rabs w * kappa).
    { apply Rmult_le_compat_l; [apply Rmult_le_pos; [lra | apply Rabs_pos] | exact kappa_bound]. }
    lra. }
assert (H4 : norm K (fun i => s_hat i - (d_hat i + k_hat i * w)) <= u * (M_n + kappa * Rabs w) + lost_row).
{ eapply Rle_trans; [apply (oracle_radius.norm_le_sum K _ two under)|].
  - intros i Hi. pose proof (s_rounded i Hi) as Hs. fold w in Hs. unfold two, first, second, under.
    rewrite (Rabs_pos_eq (Rabs (u * s_hat i) + _)) by (apply Rplus_le_le_0_compat; apply Rabs_pos).
    rewrite !Rabs_mult, (Rabs_pos_eq u), (Rabs_pos_eq 2), (Rabs_pos_eq eta) by lra. lra.
  - fold lost_row. unfold under. change (norm K (fun _ => 2 * eta)) with lost_row. lra. }
pose (f12 := fun i => ((d_hat i - d i) - b * dot K k (fun j => d_hat j - d j) * k i) + g * k i).
pose (f123 := fun i => f12 i + w * (k_hat i - k i)).
assert (E : norm K (fun i => s_hat i - exact_step i) = norm K (fun i => f123 i + (s_hat i - (d_hat i + k_hat i * w)))).
{ apply norm_ext; intros i _. unfold f123, f12, exact_step, g.
  assert (Ed : dot K k (fun j => d_hat j - d j) = dot K k d_hat - dot K k d).
  { assert (E1 : dot K k d_hat = dot K k (fun j => (d_hat j - d j) + d j)) by (unfold dot; apply Rsum_ext; intros; ring).
    rewrite E1, (dot_plus_r K k (fun j => d_hat j - d j) d); ring. }
  rewrite Ed; ring. }
rewrite E. eapply Rle_trans; [apply norm_triangle|].
assert (norm K f123 <= norm K f12 + e_k * kappa * Rabs w) by (eapply Rle_trans; [apply norm_triangle | lra]).
assert (norm K f12 <= rho * e_d + kappa_plus * bound_W) by (eapply Rle_trans; [apply norm_triangle | lra]). lra.
Qed.
End Step.

(** ** Line G: the prediction of the second of two steps taken in one pass *)
Section Gram.
Variables (k_1 k_2 S_0 S_1 : nat -> R) (w h_hat g_hat p_hat M kappa_1 kappa_2 : R).
Hypothesis between : forall i, (i < K)%nat ->
  Rabs (S_1 i - (S_0 i + k_1 i * w)) <= u * Rabs (S_1 i) + u * (Rabs (k_1 i) * Rabs w) + 2 * eta.
Hypothesis kappa_1_bound : norm K k_1 <= kappa_1.
Hypothesis kappa_2_bound : norm K k_2 <= kappa_2.
Hypothesis S_0_bound : norm K S_0 <= M.
Hypothesis S_1_bound : norm K S_1 <= M.
Hypothesis h_known : Rabs (h_hat - dot K k_2 S_0) <= gamma * (kappa_2 * M) + lost_product.
Hypothesis g_known : Rabs (g_hat - dot K k_2 k_1) <= gamma * (kappa_2 * kappa_1) + lost_product.
Hypothesis p_rounded : Rabs (p_hat - (h_hat + g_hat * w)) <= u * Rabs p_hat + u * (Rabs g_hat * Rabs w) + 2 * eta.
Hypothesis gamma_small : gamma + 2 * u <= bpow radix2 (-30).

Definition lost_gram : R := 2 * (lost_product + (1 + u) * lost_product * Rabs w + kappa_2 * lost_row + 2 * eta).

Theorem gram_line :
  Rabs (p_hat - dot K k_2 S_1) <= (gamma + 2 * u * (1 + bpow radix2 (-30))) * (kappa_2 * (M + kappa_1 * Rabs w)) + lost_gram.
Proof.
pose proof gamma_ge0 as Hg0. pose proof lost_product_ge0 as HL. pose proof lost_row_ge0 as HR.
assert (Hk1 : 0 <= kappa_1) by (eapply Rle_trans; [apply norm_ge0 | exact kappa_1_bound]).
assert (Hk2 : 0 <= kappa_2) by (eapply Rle_trans; [apply norm_ge0 | exact kappa_2_bound]).
assert (HM : 0 <= M) by (eapply Rle_trans; [apply norm_ge0 | exact S_0_bound]).
set (W := Rabs w) in *. assert (HW : 0 <= W) by apply Rabs_pos.
pose (residue := fun i => S_1 i - (S_0 i + k_1 i * w)).
assert (Hres : norm K residue <= u * (M + kappa_1 * W) + lost_row).
{ pose (two := fun i => Rabs (u * S_1 i) + Rabs (u * w * k_1 i)).
  assert (Htwo : norm K two <= u * (M + kappa_1 * W)).
  { eapply Rle_trans; [apply (oracle_radius.norm_le_sum K two (fun i => u * S_1 i) (fun i => u * w * k_1 i))|].
    - intros i _. unfold two. rewrite Rabs_pos_eq; [lra|]. apply Rplus_le_le_0_compat; apply Rabs_pos.
    - rewrite !norm_scal, Rabs_mult, (Rabs_pos_eq u) by lra. fold W.
      assert (u * norm K S_1 <= u * M) by (apply Rmult_le_compat_l; lra).
      assert (u * W * norm K k_1 <= u * W * kappa_1) by (apply Rmult_le_compat_l; [apply Rmult_le_pos; lra | exact kappa_1_bound]). lra. }
  eapply Rle_trans; [apply (oracle_radius.norm_le_sum K residue two (fun _ => 2 * eta))|].
  - intros i Hi. pose proof (between i Hi) as Hb. unfold two, residue.
    rewrite (Rabs_pos_eq (Rabs (u * S_1 i) + _)) by (apply Rplus_le_le_0_compat; apply Rabs_pos).
    rewrite !Rabs_mult, (Rabs_pos_eq u), (Rabs_pos_eq 2), (Rabs_pos_eq eta) by lra. fold W. lra.
  - change (norm K (fun _ => 2 * eta)) with lost_row. lra. }
assert (Hd : Rabs (dot K k_2 residue) <= kappa_2 * (u * (M + kappa_1 * W) + lost_row)).
{ eapply Rle_trans; [apply cauchy_schwarz|]. apply Rmult_le_compat; try apply norm_ge0; assumption. }
assert (E : dot K k_2 S_1 = dot K k_2 S_0 + dot K k_2 k_1 * w + dot K k_2 residue).
{ assert (E1 : dot K k_2 S_1 = dot K k_2 (fun i => (S_0 i + w * k_1 i) + residue i))
    by (unfold dot; apply Rsum_ext; intros i Hi; unfold residue; ring).
  rewrite E1, (dot_plus_r K k_2 (fun i => S_0 i + w * k_1 i) residue), (dot_plus_r K k_2 S_0 (fun i => w * k_1 i)), dot_scal_r; ring. }
assert (HS1 : Rabs (dot K k_2 S_1) <= kappa_2 * M).
{ eapply Rle_trans; [apply cauchy_schwarz|]. apply Rmult_le_compat; try apply norm_ge0; assumption. }
assert (Hgg : Rabs g_hat <= (1 + gamma) * (kappa_2 * kappa_1) + lost_product).
{ assert (Rabs (dot K k_2 k_1) <= kappa_2 * kappa_1).
  { eapply Rle_trans; [apply cauchy_schwarz|]. apply Rmult_le_compat; try apply norm_ge0; assumption. }
  replace g_hat with ((g_hat - dot K k_2 k_1) + dot K k_2 k_1) by ring. eapply Rle_trans; [apply Rabs_triang | lra]. }
set (t := dot K k_2 S_1) in *. set (Z := kappa_2 * (M + kappa_1 * W)).
assert (Hkm : 0 <= kappa_2 * M) by (apply Rmult_le_pos; assumption).
assert (Hkw : 0 <= kappa_2 * kappa_1 * W) by (apply Rmult_le_pos; [apply Rmult_le_pos|]; assumption).
assert (HZ : Z = kappa_2 * M + kappa_2 * kappa_1 * W) by (unfold Z; ring).
assert (Hgw : Rabs ((g_hat - dot K k_2 k_1) * w) <= (gamma * (kappa_2 * kappa_1) + lost_product) * W).
{ rewrite Rabs_mult; fold W. apply Rmult_le_compat_r; assumption. }
assert (Hug : u * (Rabs g_hat * W) <= u * (((1 + gamma) * (kappa_2 * kappa_1) + lost_product) * W)).
{ apply Rmult_le_compat_l; [lra|]. apply Rmult_le_compat_r; assumption. }
assert (H1 : Rabs (h_hat + g_hat * w - t) <= gamma * Z + u * Z + lost_product + lost_product * W + kappa_2 * lost_row).
{ replace (h_hat + g_hat * w - t) with ((h_hat - dot K k_2 S_0) + ((g_hat - dot K k_2 k_1) * w + - dot K k_2 residue)) by (rewrite E; ring).
  eapply Rle_trans; [apply Rabs_triang|].
  assert (Rabs ((g_hat - dot K k_2 k_1) * w + - dot K k_2 residue)
    <= Rabs ((g_hat - dot K k_2 k_1) * w) + Rabs (dot K k_2 residue)) by (eapply Rle_trans; [apply Rabs_triang | rewrite Rabs_Ropp; lra]).
  rewrite HZ. lra. }
set (e := Rabs (p_hat - t)).
assert (H2 : e <= u * Rabs p_hat + u * (Rabs g_hat * W) + 2 * eta + Rabs (h_hat + g_hat * w - t)).
{ unfold e. replace (p_hat - t) with ((p_hat - (h_hat + g_hat * w)) + (h_hat + g_hat * w - t)) by ring.
  eapply Rle_trans; [apply Rabs_triang | lra]. }
assert (H3 : Rabs p_hat <= kappa_2 * M + e).
{ unfold e. replace p_hat with (t + (p_hat - t)) at 1 by ring. eapply Rle_trans; [apply Rabs_triang | lra]. }
assert (H4 : u * Rabs p_hat <= u * (kappa_2 * M + e)) by (apply Rmult_le_compat_l; lra).
set (L := lost_product + (1 + u) * lost_product * W + kappa_2 * lost_row + 2 * eta).
assert (HL0 : 0 <= L).
{ unfold L. assert (0 <= (1 + u) * lost_product * W) by (apply Rmult_le_pos; [apply Rmult_le_pos|]; lra).
  assert (0 <= kappa_2 * lost_row) by (apply Rmult_le_pos; assumption). lra. }
assert (H5 : (1 - u) * e <= (gamma + 2 * u + u * gamma) * Z + L).
{ assert (u * gamma * (kappa_2 * kappa_1 * W) <= u * gamma * Z).
  { apply Rmult_le_compat_l; [apply Rmult_le_pos; lra | lra]. }
  unfold L. rewrite HZ in *. lra. }
apply Rmult_le_reg_l with (1 - u); [lra|]. eapply Rle_trans; [exact H5|].
assert (HZ0 : 0 <= Z) by (rewrite HZ; lra).
set (t30 := bpow radix2 (-30)) in *. assert (Ht30 : 0 < t30) by apply bpow_gt_0.
assert (Ht1 : t30 <= 1) by (unfold t30; apply Rle_trans with (bpow radix2 0); [apply bpow_le; lia | simpl; lra]).
assert (H6 : (gamma + 2 * u + u * gamma) * Z <= (1 - u) * (gamma + 2 * u * (1 + t30)) * Z).
{ apply Rmult_le_compat_r; [exact HZ0|].
  assert (0 <= u * (t30 - gamma - 2 * u)) by (apply Rmult_le_pos; lra).
  assert (0 <= u * u * (1 - t30)) by (apply Rmult_le_pos; [apply Rmult_le_pos; lra | lra]). lra. }
assert (H7 : L <= (1 - u) * (2 * L)) by (assert (0 <= (1 - 2 * u) * L) by (apply Rmult_le_pos; lra); lra).
unfold lost_gram. fold W. fold L. fold Z. lra.
Qed.
End Gram.

(** ** Line O: a read-out *)
Section Read.
Variables (c a_hat o_hat : R) (q q_hat s s_hat : nat -> R) (e_q e chi M_n : R).
Hypothesis q_known : forall i, (i < K)%nat -> Rabs (q_hat i - q i) <= e_q * Rabs (q_hat i).
Hypothesis e_q_ge0 : 0 <= e_q.
Hypothesis chi_bound : norm K q_hat <= chi.
Hypothesis M_n_bound : norm K s_hat <= M_n.
Hypothesis s_known : norm K (fun i => s_hat i - s i) <= e.
Hypothesis a_known : Rabs (a_hat - dot K q_hat s_hat) <= gamma * (chi * M_n) + lost_product.
Hypothesis o_rounded : Rabs (o_hat - c * a_hat) <= u * Rabs o_hat + eta.

Theorem read_line :
  Rabs (o_hat - c * dot K q s) <=
  u * Rabs o_hat + eta + Rabs c * ((gamma + e_q) * (chi * M_n) + lost_product + chi * (1 + e_q) * e).
Proof.
assert (Hchi : 0 <= chi) by (eapply Rle_trans; [apply norm_ge0 | exact chi_bound]).
assert (HM : 0 <= M_n) by (eapply Rle_trans; [apply norm_ge0 | exact M_n_bound]).
assert (H2 : Rabs (dot K (fun i => q_hat i - q i) s_hat) <= e_q * (chi * M_n)).
{ eapply Rle_trans; [apply cauchy_schwarz|]. rewrite <- Rmult_assoc. apply Rmult_le_compat; [apply norm_ge0 | apply norm_ge0 | | exact M_n_bound].
  apply Rle_trans with (e_q * norm K q_hat); [apply oracle_radius.norm_scal_le; assumption|]. apply Rmult_le_compat_l; assumption. }
assert (Hq : norm K q <= chi * (1 + e_q)).
{ apply Rle_trans with ((1 + e_q) * norm K q_hat).
  - apply oracle_radius.norm_scal_le; [lra|]. intros i Hi. pose proof (q_known i Hi).
    replace (q i) with (q_hat i + - (q_hat i - q i)) by ring. eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp; lra.
  - rewrite Rmult_comm. apply Rmult_le_compat_r; [lra | exact chi_bound]. }
assert (H3 : Rabs (dot K q (fun i => s_hat i - s i)) <= chi * (1 + e_q) * e).
{ eapply Rle_trans; [apply cauchy_schwarz|]. apply Rmult_le_compat; [apply norm_ge0 | apply norm_ge0 | exact Hq | exact s_known]. }
assert (E : dot K q_hat s_hat - dot K q s = dot K (fun i => q_hat i - q i) s_hat + dot K q (fun i => s_hat i - s i)).
{ assert (E1 : dot K q_hat s_hat = dot K (fun i => (q_hat i - q i) + q i) s_hat) by (unfold dot; apply Rsum_ext; intros; ring).
  assert (E2 : dot K q s_hat = dot K q (fun i => (s_hat i - s i) + s i)) by (unfold dot; apply Rsum_ext; intros; ring).
  rewrite E1, (dot_plus_l K (fun i => q_hat i - q i) q s_hat), E2, (dot_plus_r K q (fun i => s_hat i - s i) s); ring. }
assert (H4 : Rabs (a_hat - dot K q s) <= (gamma + e_q) * (chi * M_n) + lost_product + chi * (1 + e_q) * e).
{ replace (a_hat - dot K q s) with ((a_hat - dot K q_hat s_hat) + (dot K q_hat s_hat - dot K q s)) by ring. rewrite E.
  eapply Rle_trans; [apply Rabs_triang|].
  pose proof (Rabs_triang (dot K (fun i => q_hat i - q i) s_hat) (dot K q (fun i => s_hat i - s i))). lra. }
replace (o_hat - c * dot K q s) with ((o_hat - c * a_hat) + c * (a_hat - dot K q s)) by ring.
eapply Rle_trans; [apply Rabs_triang|]. rewrite (Rabs_mult c).
pose proof (Rmult_le_compat_l (Rabs c) _ _ (Rabs_pos c) H4). lra.
Qed.
End Read.

(** ** The step in the numbers that the code carries *)
(** A prediction is within g kappa M_d + rest: g is gamma, or gamma + 2 u (1 + 2^-30) behind a Gram product. *)
Definition from_norm (b_hat e_b f_b e_k kappa g : R) : R :=
  kappa_plus e_k kappa * (Rabs b_hat * g * kappa * (1 + e_b) + f_b * kappa + beta_plus b_hat e_b f_b * e_k * kappa).
Definition from_write (e_b e_k kappa : R) : R := kappa_plus e_k kappa * (c_2 + e_b * (1 + c_2)) + (u + e_k) * kappa.
Definition constant (b_hat e_b f_b e_k kappa V rest : R) : R :=
  kappa_plus e_k kappa * f_b * V + kappa_plus e_k kappa * (1 + e_b) * (Rabs b_hat * rest + lost_write b_hat) + lost_row.

Lemma step_in_the_code_s_numbers b_hat w_hat e_b f_b e_k kappa M_d M_n V e_d rho g rest :
  rho * e_d + kappa_plus e_k kappa * bound_W b_hat w_hat e_b f_b e_k kappa M_d V (g * (kappa * M_d) + rest)
  + e_k * kappa * Rabs w_hat + u * (M_n + kappa * Rabs w_hat) + lost_row
  = rho * e_d + from_norm b_hat e_b f_b e_k kappa g * M_d + from_write e_b e_k kappa * Rabs w_hat + u * M_n
    + constant b_hat e_b f_b e_k kappa V rest.
Proof. unfold bound_W, from_norm, from_write, constant. ring. Qed.
End Tier.

(** The code's 2^-1000 (1 + kappa+)(1 + beta+) u is more than what underflow costs a step of up to 2^20 channels in fp64. *)
Theorem underflow_line K gamma b_hat e_b f_b e_k kappa : (Z.of_nat K <= 2^20)%Z -> 0 <= gamma <= 1 -> 0 <= e_b <= 1 -> 0 <= f_b -> 0 <= e_k -> 0 <= kappa ->
  let u := bpow radix2 (-53) in let eta := bpow radix2 (-1074) / 2 in
  kappa_plus e_k kappa * (1 + e_b) * (Rabs b_hat * lost_product eta K gamma + lost_write u eta b_hat) + lost_row eta K
  <= bpow radix2 (-1000) * ((1 + kappa_plus e_k kappa) * (1 + beta_plus b_hat e_b f_b)) * u.
Proof.
intros HK Hg Heb Hfb Hek Hk u eta.
assert (He : eta = bpow radix2 (-1075)).
{ unfold eta. replace (-1074)%Z with (-1075 + 1)%Z by lia. rewrite bpow_plus. simpl (bpow radix2 1). lra. }
assert (He0 : 0 < eta) by (rewrite He; apply bpow_gt_0).
assert (Hu : 0 < u <= 1) by (unfold u; split; [apply bpow_gt_0 | apply Rle_trans with (bpow radix2 0); [apply bpow_le; lia | simpl; lra]]).
assert (HKR : 0 <= INR K <= 1048576).
{ split; [apply pos_INR|]. rewrite INR_IZR_INZ. apply IZR_le. exact HK. }
assert (HR : lost_row eta K <= INR K * (2 * eta)).
{ unfold lost_row. apply norm_le; [apply Rmult_le_pos; lra|]. unfold sq. rewrite Rsum_const.
  destruct K as [|n]; [simpl; lra|]. assert (1 <= INR (S n)) by (rewrite S_INR; pose proof (pos_INR n); lra).
  assert (0 <= (2 * eta)^2) by apply pow2_ge_0.
  replace ((INR (S n) * (2 * eta))^2) with (INR (S n)^2 * (2 * eta)^2) by ring.
  assert (INR (S n) <= INR (S n)^2) by nra. apply Rmult_le_compat_r; assumption. }
assert (HP : lost_product eta K gamma <= 2097152 * eta).
{ unfold lost_product. replace (2097152 * eta) with (2 * (1048576 * eta)) by ring.
  apply Rmult_le_compat; [lra | apply Rmult_le_pos; lra | lra | apply Rmult_le_compat_r; lra]. }
set (B := Rabs b_hat). assert (HB : 0 <= B) by apply Rabs_pos.
set (kp := kappa_plus e_k kappa). assert (Hkp : 0 <= kp) by (unfold kp, kappa_plus; apply Rmult_le_pos; lra).
set (bp := beta_plus b_hat e_b f_b).
assert (Hbp : B * (1 + e_b) <= bp) by (unfold bp, beta_plus; fold B; lra).
assert (Hbp0 : 0 <= bp) by (assert (0 <= B * (1 + e_b)) by (apply Rmult_le_pos; lra); lra).
assert (H1 : (1 + e_b) * (B * lost_product eta K gamma + lost_write u eta b_hat) <= (2097153 * bp + 4) * eta).
{ unfold lost_write. fold B.
  assert (A1 : B * lost_product eta K gamma <= B * (2097152 * eta)) by (apply Rmult_le_compat_l; assumption).
  assert (A2 : (1 + e_b) * (B * lost_product eta K gamma) <= (1 + e_b) * (B * (2097152 * eta))) by (apply Rmult_le_compat_l; lra).
  assert (A3 : B * (1 + e_b) * (2097153 * eta) <= bp * (2097153 * eta)) by (apply Rmult_le_compat_r; lra).
  assert (A4 : (1 + e_b) * (1 + u) <= 4) by (apply Rle_trans with (2 * 2); [apply Rmult_le_compat; lra | lra]).
  assert (A5 : (1 + e_b) * (1 + u) * eta <= 4 * eta) by (apply Rmult_le_compat_r; lra). lra. }
assert (H2 : kp * ((1 + e_b) * (B * lost_product eta K gamma + lost_write u eta b_hat)) <= kp * ((2097153 * bp + 4) * eta))
  by (apply Rmult_le_compat_l; assumption).
assert (H3 : lost_row eta K <= 2097152 * eta).
{ eapply Rle_trans; [exact HR|]. assert (INR K * (2 * eta) <= 1048576 * (2 * eta)) by (apply Rmult_le_compat_r; lra). lra. }
assert (Hx : bpow radix2 (-1000) * u = 4194304 * eta).
{ unfold u. rewrite He, <- bpow_plus. change 4194304 with (bpow radix2 22). rewrite <- bpow_plus. reflexivity. }
replace (bpow radix2 (-1000) * ((1 + kp) * (1 + bp)) * u) with (bpow radix2 (-1000) * u * ((1 + kp) * (1 + bp))) by ring.
rewrite Hx.
assert (H4 : 0 <= kp * bp) by (apply Rmult_le_pos; assumption).
assert (H5 : 0 <= (kp * bp) * eta) by (apply Rmult_le_pos; lra).
assert (H6 : 0 <= kp * eta) by (apply Rmult_le_pos; lra). assert (H7 : 0 <= bp * eta) by (apply Rmult_le_pos; lra).
lra.
Qed.
