(* SPDX-FileCopyrightText: 2026 The deltaproof authors
   SPDX-License-Identifier: MIT *)

(** The row-norm radius of the reference: the lines D, W, S, R, O, N and F of proofs/notes/oracle-radius.md, and their sum over T steps.

    For whoever relies on the radius that `oracle/certify.hpp` carries beside a value, entry by entry in MPFR: one value row of the
    state, in the model of relative errors alone, every operation in that code's order, inputs known within the relative errors e_* and
    the floors f_* of the lowering. [decay_line], [write_line], [state_line], [factor_line], [read_line] and [norm_line] are the
    note's lines with its constants; [factor_computed] is the bound on the factor rho from the computed b |k|^2; [radius_run]
    composes them over any number of steps, and [radius_unrolled] writes the result as e_T <= e_0 prod g_t + sum r_t prod g_j;
    [slack_covers] is line F: an expression of sums, products, roots and maxima of m operations is low by at most (1 + u)^m.

    Not claimed: line U (products that underflow): [rounding_model] is obeyed by no format with a smallest number
    (rounding.no_format_is_a_model), so these lines hold where nothing underflows; tier_radius.v has the lines of the fp64 tier with
    underflow. Nor that the C++ computes these lines (tests compare the radius with exact rationals), that MPFR's arithmetic is the
    model's, or that the radius is small. *)
From Coq Require Import Reals Lra Lia Psatz.
From Flocq Require Import Core.
From deltaproof.float Require Import vectors formats standard_model.
Open Scope R_scope.

(** ** Norms *)
Lemma norm_le_sum d z a b : (forall i, (i < d)%nat -> Rabs (z i) <= Rabs (a i) + Rabs (b i)) -> norm d z <= norm d a + norm d b.
Proof.
intros H. apply Rle_trans with (norm d (fun i => Rabs (a i) + Rabs (b i))).
- apply norm_mono; intros i Hi. rewrite (Rabs_pos_eq (Rabs (a i) + Rabs (b i))); [apply H, Hi|].
  pose proof (Rabs_pos (a i)); pose proof (Rabs_pos (b i)); lra.
- eapply Rle_trans; [apply norm_triangle|]. rewrite !norm_abs; lra.
Qed.

Lemma norm_scal_le d c a z : 0 <= c -> (forall i, (i < d)%nat -> Rabs (z i) <= c * Rabs (a i)) -> norm d z <= c * norm d a.
Proof.
intros Hc H. rewrite <- (Rabs_pos_eq c) by exact Hc. rewrite <- norm_scal. apply norm_mono; intros i Hi.
rewrite Rabs_mult, (Rabs_pos_eq c) by exact Hc. apply H, Hi.
Qed.

(** ** Line R: the factor *)
(** The exact energy balance of I - b k k^T. *)
Lemma transition_energy d b k x :
  sq d (fun i => x i - b * dot d k x * k i) = sq d x - b * (2 - b * sq d k) * (dot d k x)^2.
Proof.
assert (E : sq d (fun i => x i - b * dot d k x * k i) = sq d (fun i => x i + (- (b * dot d k x)) * k i)).
{ unfold sq; apply Rsum_ext; intros; ring. }
rewrite E, sq_add, dot_scal_r, sq_scal.
assert (E2 : dot d x k = dot d k x) by (unfold dot; apply Rsum_ext; intros; ring). rewrite E2. ring.
Qed.

Theorem factor_line d b k x :
  norm d (fun i => x i - b * dot d k x * k i) <= Rmax 1 (Rabs (1 - b * sq d k)) * norm d x.
Proof.
assert (Hm : 0 <= Rmax 1 (Rabs (1 - b * sq d k))) by (apply Rle_trans with 1; [lra | apply Rmax_l]).
apply norm_le; [apply Rmult_le_pos; [exact Hm | apply norm_ge0]|].
rewrite Rpow_mult_distr, norm_sqr, transition_energy.
pose proof (cauchy_schwarz_sq d k x) as Hcs. pose proof (sq_ge0 d k) as Hk. pose proof (sq_ge0 d x) as Hx.
set (n := sq d k) in *; set (X := sq d x) in *; set (q := (dot d k x)^2) in *.
assert (Hq : 0 <= q) by apply pow2_ge_0.
assert (Hsq : forall c, Rabs c <= Rmax 1 (Rabs (1 - b * n)) -> c^2 <= (Rmax 1 (Rabs (1 - b * n)))^2).
{ intros c Hc. rewrite <- (Rsqr_pow2 c), Rsqr_abs, Rsqr_pow2. apply pow_incr; split; [apply Rabs_pos | exact Hc]. }
pose proof (Hsq 1 ltac:(rewrite Rabs_R1; apply Rmax_l)) as H1.
pose proof (Hsq (1 - b * n) ltac:(apply Rmax_r)) as H2.
set (m := (Rmax 1 (Rabs (1 - b * n)))^2) in *.
destruct (Rle_or_lt 0 (b * (2 - b * n))) as [Hs|Hs].
- assert (0 <= b * (2 - b * n) * q) by (apply Rmult_le_pos; assumption).
  assert (1 * X <= m * X) by (apply Rmult_le_compat_r; lra). lra.
- assert (H3 : - (b * (2 - b * n)) * q <= - (b * (2 - b * n)) * (n * X)) by (apply Rmult_le_compat_l; lra).
  assert (H4 : (1 - b * n)^2 * X <= m * X) by (apply Rmult_le_compat_r; assumption).
  replace ((1 - b * n)^2 * X) with (X + - (b * (2 - b * n)) * (n * X)) in H4 by ring. lra.
Qed.

(** The factor is the norm of the step: along k it is attained. *)
Example factor_line_attained d b k : 1 <= Rabs (1 - b * sq d k) ->
  norm d (fun i => k i - b * dot d k k * k i) = Rmax 1 (Rabs (1 - b * sq d k)) * norm d k.
Proof.
intros H; rewrite Rmax_right by exact H. rewrite <- norm_scal. apply norm_ext; intros i _.
assert (E : dot d k k = sq d k) by (unfold dot, sq; apply Rsum_ext; intros; ring). rewrite E; ring.
Qed.

Section Lines.
Variables (fl : R -> R) (u : R).
Hypothesis model : rounding_model fl u.
Variable K : nat.
Hypothesis K_small : INR K * u < 1.
Definition gamma_K : R := INR K * u / (1 - INR K * u).

Lemma gamma_K_ge0 : 0 <= gamma_K.
Proof.
unfold gamma_K; pose proof (u_ge0 fl u model); pose proof (pos_INR K).
apply Rmult_le_pos; [apply Rmult_le_pos; assumption | left; apply Rinv_0_lt_compat; lra].
Qed.

Lemma of_result x : Rabs x <= (1 + u) * Rabs (fl x).
Proof.
pose proof (model_result _ _ model x) as H. replace x with (fl x - (fl x - x)) by ring.
eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp. replace (fl x - (fl x - x)) with x by ring. lra.
Qed.

(** ** Line D: the decay *)
Section Decay.
Variables (alpha alpha_hat s s_hat d_hat : nat -> R) (A e_alpha f_alpha e M_s M_d : R).
Hypothesis alpha_known : forall i, (i < K)%nat -> Rabs (alpha_hat i - alpha i) <= e_alpha * Rabs (alpha_hat i) + f_alpha.
Hypothesis alpha_max : forall i, (i < K)%nat -> Rabs (alpha_hat i) <= A.
Hypothesis e_alpha_ge0 : 0 <= e_alpha.
Hypothesis f_alpha_ge0 : 0 <= f_alpha.
Hypothesis A_ge0 : 0 <= A.
Hypothesis d_hat_is : forall i, (i < K)%nat -> d_hat i = fl (alpha_hat i * s_hat i).
Hypothesis s_known : norm K (fun i => s_hat i - s i) <= e.
Hypothesis M_s_bound : norm K s_hat <= M_s.
Hypothesis M_d_bound : norm K d_hat <= M_d.

Theorem decay_line :
  norm K (fun i => d_hat i - alpha i * s i) <=
  (A * (1 + e_alpha) + f_alpha) * e + (e_alpha / (1 - u) + u) * M_d + f_alpha * M_s.
Proof.
pose proof (u_ge0 fl u model) as Hu; pose proof (u_lt1 fl u model) as Hu1.
assert (H1 : norm K (fun i => alpha i * (s_hat i - s i)) <= (A * (1 + e_alpha) + f_alpha) * e).
{ apply Rle_trans with ((A * (1 + e_alpha) + f_alpha) * norm K (fun i => s_hat i - s i)).
  - assert (Hf : 0 <= A * (1 + e_alpha) + f_alpha) by (assert (0 <= A * (1 + e_alpha)) by (apply Rmult_le_pos; lra); lra).
    apply norm_scal_le; [exact Hf|]. intros i Hi; rewrite Rabs_mult. apply Rmult_le_compat_r; [apply Rabs_pos|].
    pose proof (alpha_known i Hi) as Ha; pose proof (alpha_max i Hi) as Hm.
    replace (alpha i) with (alpha_hat i - (alpha_hat i - alpha i)) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp.
    replace (alpha_hat i - (alpha_hat i - alpha i)) with (alpha i) in * by ring.
    assert (e_alpha * Rabs (alpha_hat i) <= e_alpha * A) by (apply Rmult_le_compat_l; assumption). lra.
  - apply Rmult_le_compat_l; [|exact s_known]. assert (0 <= A * (1 + e_alpha)) by (apply Rmult_le_pos; lra). lra. }
assert (H2 : norm K (fun i => e_alpha * (1 + u) * d_hat i) <= e_alpha / (1 - u) * M_d).
{ rewrite norm_scal, Rabs_pos_eq by (apply Rmult_le_pos; lra).
  apply Rmult_le_compat; [apply Rmult_le_pos; lra | apply norm_ge0 | | exact M_d_bound].
  unfold Rdiv; apply Rmult_le_compat_l; [exact e_alpha_ge0|].
  apply Rmult_le_reg_r with (1 - u); [lra|]. rewrite Rinv_l by lra. nra. }
assert (H3 : norm K (fun i => f_alpha * s_hat i) <= f_alpha * M_s).
{ rewrite norm_scal, Rabs_pos_eq by exact f_alpha_ge0. apply Rmult_le_compat_l; assumption. }
assert (H4 : norm K (fun i => u * d_hat i) <= u * M_d).
{ rewrite norm_scal, Rabs_pos_eq by exact Hu. apply Rmult_le_compat_l; assumption. }
set (g := fun i => e_alpha * (1 + u) * Rabs (d_hat i) + f_alpha * Rabs (s_hat i)).
assert (Hg : norm K g <= e_alpha / (1 - u) * M_d + f_alpha * M_s).
{ eapply Rle_trans; [apply (norm_le_sum K g (fun i => e_alpha * (1 + u) * d_hat i) (fun i => f_alpha * s_hat i))|lra].
  intros i _; unfold g. rewrite !Rabs_mult, (Rabs_pos_eq e_alpha), (Rabs_pos_eq (1 + u)), (Rabs_pos_eq f_alpha) by lra.
  rewrite Rabs_pos_eq; [lra|]. pose proof (Rabs_pos (d_hat i)); pose proof (Rabs_pos (s_hat i)).
  assert (0 <= e_alpha * (1 + u) * Rabs (d_hat i)) by (apply Rmult_le_pos; [apply Rmult_le_pos|]; lra).
  assert (0 <= f_alpha * Rabs (s_hat i)) by (apply Rmult_le_pos; lra). lra. }
set (w := fun i => Rabs (g i) + Rabs (u * d_hat i)).
assert (Hw : norm K w <= e_alpha / (1 - u) * M_d + f_alpha * M_s + u * M_d).
{ eapply Rle_trans; [apply (norm_le_sum K w g (fun i => u * d_hat i))|lra].
  intros i _; unfold w. rewrite Rabs_pos_eq; [lra|]. pose proof (Rabs_pos (g i)); pose proof (Rabs_pos (u * d_hat i)); lra. }
eapply Rle_trans; [apply (norm_le_sum K _ (fun i => alpha i * (s_hat i - s i)) w)|lra].
intros i Hi. pose proof (alpha_known i Hi) as Ha.
pose proof (model_result _ _ model (alpha_hat i * s_hat i)) as Hr; pose proof (of_result (alpha_hat i * s_hat i)) as Ho.
rewrite <- (d_hat_is i Hi) in Hr, Ho.
replace (d_hat i - alpha i * s i)
  with (alpha i * (s_hat i - s i) + ((alpha_hat i - alpha i) * s_hat i + (d_hat i - alpha_hat i * s_hat i))) by ring.
eapply Rle_trans; [apply Rabs_triang|]. apply Rplus_le_compat_l.
eapply Rle_trans; [apply Rabs_triang|].
assert (Hgi : 0 <= g i).
{ unfold g. pose proof (Rabs_pos (d_hat i)); pose proof (Rabs_pos (s_hat i)).
  assert (0 <= e_alpha * (1 + u) * Rabs (d_hat i)) by (apply Rmult_le_pos; [apply Rmult_le_pos|]; lra).
  assert (0 <= f_alpha * Rabs (s_hat i)) by (apply Rmult_le_pos; lra). lra. }
unfold w. rewrite (Rabs_pos_eq (Rabs (g i) + Rabs (u * d_hat i)))
  by (pose proof (Rabs_pos (g i)); pose proof (Rabs_pos (u * d_hat i)); lra).
rewrite (Rabs_pos_eq (g i)) by exact Hgi. rewrite (Rabs_mult u), (Rabs_pos_eq u) by exact Hu.
apply Rplus_le_compat; [|exact Hr].
rewrite Rabs_mult. unfold g.
apply Rle_trans with ((e_alpha * Rabs (alpha_hat i) + f_alpha) * Rabs (s_hat i)).
- apply Rmult_le_compat_r; [apply Rabs_pos | exact Ha].
- rewrite Rabs_mult in Ho.
  assert (e_alpha * (Rabs (alpha_hat i) * Rabs (s_hat i)) <= e_alpha * ((1 + u) * Rabs (d_hat i))) by (apply Rmult_le_compat_l; assumption).
  lra.
Qed.
End Decay.

(** ** Lines W and S: the write and the state *)
Section Write.
Variables (b b_hat v : R) (k k_hat d d_hat : nat -> R).
Variables (e_b f_b e_k kappa M_d : R).
Hypothesis b_known : Rabs (b_hat - b) <= e_b * Rabs b_hat + f_b.
Hypothesis k_known : forall i, (i < K)%nat -> Rabs (k_hat i - k i) <= e_k * Rabs (k_hat i).
Hypothesis e_b_ge0 : 0 <= e_b.
Hypothesis f_b_ge0 : 0 <= f_b.
Hypothesis e_k_ge0 : 0 <= e_k.
Hypothesis kappa_bound : norm K k_hat <= kappa.
Hypothesis M_d_bound : norm K d_hat <= M_d.

Definition p_hat : R := fdot fl K k_hat d_hat.
Definition r_hat : R := fl (v - p_hat).
Definition w_hat : R := fl (b_hat * r_hat).

Definition kappa_plus : R := kappa * (1 + e_k).
Definition beta_plus : R := Rabs b_hat * (1 + e_b) + f_b.
Definition c_2 : R := 2 * u * (1 + 4 * u).
Definition bound_Y : R := (1 + c_2) * Rabs w_hat + Rabs b_hat * gamma_K * kappa * M_d.
Definition bound_X : R := (1 + u) * Rabs r_hat + gamma_K * kappa * M_d.
Definition bound_W : R :=
  c_2 * Rabs w_hat + Rabs b_hat * gamma_K * kappa * M_d + e_b * bound_Y + f_b * bound_X + beta_plus * e_k * kappa * M_d.

Lemma kappa_ge0 : 0 <= kappa.
Proof. eapply Rle_trans; [apply norm_ge0 | exact kappa_bound]. Qed.
Lemma M_d_ge0 : 0 <= M_d.
Proof. eapply Rle_trans; [apply norm_ge0 | exact M_d_bound]. Qed.

Lemma k_plus : norm K k <= kappa_plus.
Proof.
unfold kappa_plus; apply Rle_trans with ((1 + e_k) * norm K k_hat).
- apply norm_scal_le; [lra|]. intros i Hi. pose proof (k_known i Hi).
  replace (k i) with (k_hat i - (k_hat i - k i)) by ring. eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp.
  replace (k_hat i - (k_hat i - k i)) with (k i) by ring. lra.
- rewrite Rmult_comm. apply Rmult_le_compat_r; [lra | exact kappa_bound].
Qed.

Lemma k_difference : norm K (fun i => k_hat i - k i) <= e_k * kappa.
Proof.
apply Rle_trans with (e_k * norm K k_hat); [apply norm_scal_le; [exact e_k_ge0 | exact k_known]|].
apply Rmult_le_compat_l; [exact e_k_ge0 | exact kappa_bound].
Qed.

Lemma b_plus : Rabs b <= beta_plus.
Proof.
unfold beta_plus. replace b with (b_hat - (b_hat - b)) at 1 by ring. eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp; lra.
Qed.

Lemma prediction_error : Rabs (p_hat - dot K k_hat d_hat) <= gamma_K * kappa * M_d.
Proof.
eapply Rle_trans; [apply (dot_error_norms fl u model); exact K_small|]. fold gamma_K. rewrite Rmult_assoc.
apply Rmult_le_compat_l; [apply gamma_K_ge0|]. apply Rmult_le_compat; [apply norm_ge0 | apply norm_ge0 | exact kappa_bound | exact M_d_bound].
Qed.

(** The strength that is written, against the exact one on the computed state. *)
Theorem write_line : Rabs (w_hat - b * (v - dot K k d_hat)) <= bound_W.
Proof.
pose proof (u_ge0 fl u model) as Hu; pose proof prediction_error as Hp; pose proof kappa_ge0 as Hk0; pose proof M_d_ge0 as HM0.
set (G := gamma_K * kappa * M_d) in *.
set (p0 := dot K k_hat d_hat) in *. set (p1 := dot K k d_hat).
pose proof (model_result _ _ model (v - p_hat)) as Hr; fold r_hat in Hr.
pose proof (model_result _ _ model (b_hat * r_hat)) as Hw; fold w_hat in Hw.
pose proof (of_result (b_hat * r_hat)) as Hbr; fold w_hat in Hbr.
assert (Hw2 : Rabs (w_hat - b_hat * (v - p_hat)) <= c_2 * Rabs w_hat).
{ replace (w_hat - b_hat * (v - p_hat)) with ((w_hat - b_hat * r_hat) + b_hat * (r_hat - (v - p_hat))) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. rewrite (Rabs_mult b_hat).
  assert (Rabs b_hat * Rabs (r_hat - (v - p_hat)) <= u * ((1 + u) * Rabs w_hat)).
  { apply Rle_trans with (Rabs b_hat * (u * Rabs r_hat)); [apply Rmult_le_compat_l; [apply Rabs_pos | exact Hr]|].
    replace (Rabs b_hat * (u * Rabs r_hat)) with (u * (Rabs b_hat * Rabs r_hat)) by ring. rewrite <- Rabs_mult.
    apply Rmult_le_compat_l; assumption. }
  unfold c_2. pose proof (Rabs_pos w_hat). assert (0 <= u * u * Rabs w_hat) by (apply Rmult_le_pos; [apply Rmult_le_pos|]; assumption). nra. }
assert (Hc0 : 0 <= c_2) by (unfold c_2; nra).
assert (HbG : Rabs (b_hat * (v - p_hat) - b_hat * (v - p0)) <= Rabs b_hat * G).
{ replace (b_hat * (v - p_hat) - b_hat * (v - p0)) with (- (b_hat * (p_hat - p0))) by ring. rewrite Rabs_Ropp, Rabs_mult.
  apply Rmult_le_compat_l; [apply Rabs_pos | exact Hp]. }
assert (H1 : Rabs (w_hat - b_hat * (v - p0)) <= c_2 * Rabs w_hat + Rabs b_hat * G).
{ replace (w_hat - b_hat * (v - p0)) with ((w_hat - b_hat * (v - p_hat)) + (b_hat * (v - p_hat) - b_hat * (v - p0))) by ring.
  eapply Rle_trans; [apply Rabs_triang | lra]. }
assert (HY : Rabs (b_hat * (v - p0)) <= bound_Y).
{ replace (b_hat * (v - p0)) with (w_hat - (w_hat - b_hat * (v - p0))) by ring. eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp.
  replace (w_hat - (w_hat - b_hat * (v - p0))) with (b_hat * (v - p0)) in * by ring. unfold bound_Y.
  replace (Rabs b_hat * gamma_K * kappa * M_d) with (Rabs b_hat * G) by (unfold G; ring). lra. }
assert (HX : Rabs (v - p0) <= bound_X).
{ pose proof (of_result (v - p_hat)) as Ho; fold r_hat in Ho. replace (v - p0) with ((v - p_hat) + (p_hat - p0)) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. unfold bound_X. fold G. lra. }
assert (H2 : Rabs (b_hat * (v - p0) - b * (v - p0)) <= e_b * bound_Y + f_b * bound_X).
{ rewrite <- Rmult_minus_distr_r, Rabs_mult.
  apply Rle_trans with ((e_b * Rabs b_hat + f_b) * Rabs (v - p0)); [apply Rmult_le_compat_r; [apply Rabs_pos | exact b_known]|].
  rewrite Rabs_mult in HY.
  assert (e_b * (Rabs b_hat * Rabs (v - p0)) <= e_b * bound_Y) by (apply Rmult_le_compat_l; assumption).
  assert (f_b * Rabs (v - p0) <= f_b * bound_X) by (apply Rmult_le_compat_l; assumption). lra. }
assert (H3 : Rabs (b * (v - p0) - b * (v - p1)) <= beta_plus * e_k * kappa * M_d).
{ replace (b * (v - p0) - b * (v - p1)) with (- (b * (p0 - p1))) by ring. rewrite Rabs_Ropp, Rabs_mult.
  assert (Hd : Rabs (p0 - p1) <= e_k * kappa * M_d).
  { replace (p0 - p1) with (dot K (fun i => k_hat i - k i) d_hat).
    - eapply Rle_trans; [apply cauchy_schwarz|]. apply Rmult_le_compat; [apply norm_ge0 | apply norm_ge0 | exact k_difference | exact M_d_bound].
    - unfold p0, p1. assert (E : dot K k_hat d_hat = dot K (fun i => (k_hat i - k i) + k i) d_hat) by (unfold dot; apply Rsum_ext; intros; ring).
      rewrite E, (dot_plus_l K (fun i => k_hat i - k i) k d_hat); ring. }
  replace (beta_plus * e_k * kappa * M_d) with (beta_plus * (e_k * kappa * M_d)) by ring.
  apply Rmult_le_compat; [apply Rabs_pos | apply Rabs_pos | exact b_plus | exact Hd]. }
replace (w_hat - b * (v - p1)) with ((w_hat - b_hat * (v - p0)) + (b_hat * (v - p0) - b * (v - p0)) + (b * (v - p0) - b * (v - p1))) by ring.
eapply Rle_trans; [apply Rabs_triang|]. 
assert (Rabs (w_hat - b_hat * (v - p0) + (b_hat * (v - p0) - b * (v - p0))) <= c_2 * Rabs w_hat + Rabs b_hat * G + (e_b * bound_Y + f_b * bound_X))
  by (eapply Rle_trans; [apply Rabs_triang | lra]).
unfold bound_W. replace (Rabs b_hat * gamma_K * kappa * M_d) with (Rabs b_hat * G) by (unfold G; ring). lra.
Qed.

Variables (s_hat : nat -> R) (e_d rho M_n : R).
Hypothesis d_known : norm K (fun i => d_hat i - d i) <= e_d.
Hypothesis rho_bound : Rmax 1 (Rabs (1 - b * sq K k)) <= rho.
Hypothesis s_hat_is : forall i, (i < K)%nat -> s_hat i = fl (d_hat i + fl (k_hat i * w_hat)).
Hypothesis M_n_bound : norm K s_hat <= M_n.

(** One step of the exact recurrence. *)
Definition exact_step (i : nat) : R := d i + k i * (b * (v - dot K k d)).

Theorem state_line :
  norm K (fun i => s_hat i - exact_step i) <=
  rho * e_d + kappa_plus * bound_W + e_k * kappa * Rabs w_hat + u * (M_n + kappa * Rabs w_hat).
Proof.
pose proof (u_ge0 fl u model) as Hu; pose proof write_line as HW.
set (w := w_hat) in *. set (g := w - b * (v - dot K k d_hat)) in *.
assert (H1 : norm K (fun i => (d_hat i - d i) - b * dot K k (fun j => d_hat j - d j) * k i) <= rho * e_d).
{ eapply Rle_trans; [apply (factor_line K b k (fun i => d_hat i - d i))|].
  apply Rmult_le_compat; [|apply norm_ge0 | exact rho_bound | exact d_known]. apply Rle_trans with 1; [lra | apply Rmax_l]. }
assert (H2 : norm K (fun i => g * k i) <= kappa_plus * bound_W).
{ rewrite norm_scal, Rmult_comm. apply Rmult_le_compat; [apply norm_ge0 | apply Rabs_pos | exact k_plus | exact HW]. }
assert (H3 : norm K (fun i => w * (k_hat i - k i)) <= e_k * kappa * Rabs w).
{ rewrite norm_scal, Rmult_comm. apply Rmult_le_compat_r; [apply Rabs_pos | exact k_difference]. }
assert (H4 : norm K (fun i => s_hat i - (d_hat i + k_hat i * w)) <= u * (M_n + kappa * Rabs w)).
{ apply Rle_trans with (norm K (fun i => u * s_hat i) + norm K (fun i => u * w * k_hat i)).
  - apply norm_le_sum; intros i Hi. rewrite !Rabs_mult, (Rabs_pos_eq u) by exact Hu.
    pose proof (model_result _ _ model (d_hat i + fl (k_hat i * w))) as Ha. fold w in s_hat_is. rewrite <- (s_hat_is i Hi) in Ha.
    pose proof (model_argument _ _ model (k_hat i * w)) as Hb. rewrite Rabs_mult in Hb.
    replace (s_hat i - (d_hat i + k_hat i * w)) with ((s_hat i - (d_hat i + fl (k_hat i * w))) + (fl (k_hat i * w) - k_hat i * w)) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. lra.
  - rewrite !norm_scal, Rabs_mult, (Rabs_pos_eq u) by exact Hu.
    assert (u * norm K s_hat <= u * M_n) by (apply Rmult_le_compat_l; assumption).
    assert (u * Rabs w * norm K k_hat <= u * Rabs w * kappa).
    { apply Rmult_le_compat_l; [apply Rmult_le_pos; [exact Hu | apply Rabs_pos] | exact kappa_bound]. }
    lra. }
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
End Write.

(** ** Line O: the read-out *)
Section Read.
Variables (c : R) (q q_hat s s_hat : nat -> R) (e_q e chi M_n : R).
Hypothesis q_known : forall i, (i < K)%nat -> Rabs (q_hat i - q i) <= e_q * Rabs (q_hat i).
Hypothesis e_q_ge0 : 0 <= e_q.
Hypothesis chi_bound : norm K q_hat <= chi.
Hypothesis M_n_bound : norm K s_hat <= M_n.
Hypothesis s_known : norm K (fun i => s_hat i - s i) <= e.

Definition o_hat : R := fl (c * fdot fl K q_hat s_hat).

Theorem read_line :
  Rabs (o_hat - c * dot K q s) <= u * Rabs o_hat + Rabs c * ((gamma_K + e_q) * chi * M_n + chi * (1 + e_q) * e).
Proof.
pose proof (model_result _ _ model (c * fdot fl K q_hat s_hat)) as Hf; fold o_hat in Hf.
set (a := fdot fl K q_hat s_hat) in *.
assert (Hchi : 0 <= chi) by (eapply Rle_trans; [apply norm_ge0 | exact chi_bound]).
assert (HM : 0 <= M_n) by (eapply Rle_trans; [apply norm_ge0 | exact M_n_bound]).
assert (H1 : Rabs (a - dot K q_hat s_hat) <= gamma_K * chi * M_n).
{ eapply Rle_trans; [apply (dot_error_norms fl u model); exact K_small|]. fold gamma_K. rewrite Rmult_assoc.
  apply Rmult_le_compat_l; [apply gamma_K_ge0|]. apply Rmult_le_compat; [apply norm_ge0 | apply norm_ge0 | exact chi_bound | exact M_n_bound]. }
assert (H2 : Rabs (dot K (fun i => q_hat i - q i) s_hat) <= e_q * chi * M_n).
{ eapply Rle_trans; [apply cauchy_schwarz|]. apply Rmult_le_compat; [apply norm_ge0 | apply norm_ge0 | | exact M_n_bound].
  apply Rle_trans with (e_q * norm K q_hat); [apply norm_scal_le; [exact e_q_ge0 | exact q_known]|]. apply Rmult_le_compat_l; assumption. }
assert (Hq : norm K q <= chi * (1 + e_q)).
{ apply Rle_trans with ((1 + e_q) * norm K q_hat).
  - apply norm_scal_le; [lra|]. intros i Hi. pose proof (q_known i Hi).
    replace (q i) with (q_hat i - (q_hat i - q i)) by ring. eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp.
    replace (q_hat i - (q_hat i - q i)) with (q i) by ring. lra.
  - rewrite Rmult_comm. apply Rmult_le_compat_r; [lra | exact chi_bound]. }
assert (H3 : Rabs (dot K q (fun i => s_hat i - s i)) <= chi * (1 + e_q) * e).
{ eapply Rle_trans; [apply cauchy_schwarz|]. apply Rmult_le_compat; [apply norm_ge0 | apply norm_ge0 | exact Hq | exact s_known]. }
assert (E : dot K q_hat s_hat - dot K q s = dot K (fun i => q_hat i - q i) s_hat + dot K q (fun i => s_hat i - s i)).
{ assert (E1 : dot K q_hat s_hat = dot K (fun i => (q_hat i - q i) + q i) s_hat) by (unfold dot; apply Rsum_ext; intros; ring).
  assert (E2 : dot K q s_hat = dot K q (fun i => (s_hat i - s i) + s i)) by (unfold dot; apply Rsum_ext; intros; ring).
  rewrite E1, (dot_plus_l K (fun i => q_hat i - q i) q s_hat), E2, (dot_plus_r K q (fun i => s_hat i - s i) s); ring. }
assert (H4 : Rabs (a - dot K q s) <= (gamma_K + e_q) * chi * M_n + chi * (1 + e_q) * e).
{ replace (a - dot K q s) with ((a - dot K q_hat s_hat) + (dot K q_hat s_hat - dot K q s)) by ring. rewrite E.
  eapply Rle_trans; [apply Rabs_triang|].
  assert (Rabs (dot K (fun i => q_hat i - q i) s_hat + dot K q (fun i => s_hat i - s i)) <= e_q * chi * M_n + chi * (1 + e_q) * e)
    by (eapply Rle_trans; [apply Rabs_triang | lra]). lra. }
replace (o_hat - c * dot K q s) with ((o_hat - c * a) + c * (a - dot K q s)) by ring.
eapply Rle_trans; [apply Rabs_triang|]. rewrite (Rabs_mult c).
assert (Rabs c * Rabs (a - dot K q s) <= Rabs c * ((gamma_K + e_q) * chi * M_n + chi * (1 + e_q) * e)) by (apply Rmult_le_compat_l; [apply Rabs_pos | exact H4]).
lra.
Qed.
End Read.

(** ** Line N: norms from computed sums of squares *)
Theorem norm_line x : INR K * u <= / 2 -> norm K x <= sqrt (fdot fl K x x * (1 + (INR K + 8) * (2 * u))).
Proof.
intros HK; pose proof (sum_of_squares_low fl u model K x) as H; pose proof (u_ge0 fl u model) as Hu.
unfold norm; apply sqrt_le_1_alt. eapply Rle_trans; [exact H|]. rewrite Rmult_comm.
apply Rmult_le_compat_l; [apply (fdot_squares_ge0 fl u model)|].
pose proof (gamma_bound fl u model K ltac:(lra)) as Hg. unfold gamma in Hg.
assert (INR K * u / (1 - INR K * u) <= INR K * u * 2).
{ unfold Rdiv; apply Rmult_le_compat_l; [apply Rmult_le_pos; [apply pos_INR | exact Hu]|].
  apply Rmult_le_reg_r with (1 - INR K * u); [lra|]. rewrite Rinv_l by lra. lra. }
lra.
Qed.

(** ** Line R, computed: rho from x_hat = fl (b_hat * fl (k_hat . k_hat)) *)
Section Factor.
Variables (b b_hat : R) (k k_hat : nat -> R) (e_b f_b e_k : R).
Hypothesis b_known : Rabs (b_hat - b) <= e_b * Rabs b_hat + f_b.
Hypothesis k_known : forall i, (i < K)%nat -> Rabs (k_hat i - k i) <= e_k * Rabs (k_hat i).
Hypothesis e_b_small : 0 <= e_b <= 2 * u.
Hypothesis e_k_small : 0 <= e_k <= 2 * u.
Hypothesis f_b_ge0 : 0 <= f_b.
Hypothesis u_small : u <= / 8.

Let n_hat := fdot fl K k_hat k_hat.
Definition x_hat : R := fl (b_hat * fdot fl K k_hat k_hat).

Lemma square_known : (1 - 2 * u)^2 * sq K k_hat <= sq K k <= (1 + 2 * u)^2 * sq K k_hat.
Proof.
pose proof (u_ge0 fl u model) as Hu.
unfold sq; rewrite <- !Rsum_scal; split; apply Rsum_le; intros i Hi; pose proof (k_known i Hi) as H; pose proof (Rabs_pos (k_hat i)) as Hp.
- assert (Ha : (1 - 2 * u) * Rabs (k_hat i) <= Rabs (k i)).
  { assert (Rabs (k_hat i) <= Rabs (k i) + Rabs (k_hat i - k i)).
    { replace (k_hat i) with (k i + (k_hat i - k i)) at 1 by ring. apply Rabs_triang. }
    assert (e_k * Rabs (k_hat i) <= 2 * u * Rabs (k_hat i)) by (apply Rmult_le_compat_r; lra). lra. }
  assert (Hs : ((1 - 2 * u) * Rabs (k_hat i))^2 <= (Rabs (k i))^2) by (apply pow_incr; split; [apply Rmult_le_pos; lra | exact Ha]).
  rewrite Rpow_mult_distr in Hs. rewrite <- !(Rsqr_pow2 (Rabs _)), <- !Rsqr_abs, !Rsqr_pow2 in Hs. exact Hs.
- assert (Ha : Rabs (k i) <= (1 + 2 * u) * Rabs (k_hat i)).
  { assert (Rabs (k i) <= Rabs (k_hat i) + Rabs (k_hat i - k i)).
    { replace (k i) with (k_hat i + - (k_hat i - k i)) at 1 by ring. eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp; lra. }
    assert (e_k * Rabs (k_hat i) <= 2 * u * Rabs (k_hat i)) by (apply Rmult_le_compat_r; lra). lra. }
  assert (Hs : (Rabs (k i))^2 <= ((1 + 2 * u) * Rabs (k_hat i))^2) by (apply pow_incr; split; [apply Rabs_pos | exact Ha]).
  rewrite Rpow_mult_distr in Hs. rewrite <- !(Rsqr_pow2 (Rabs _)), <- !Rsqr_abs, !Rsqr_pow2 in Hs. exact Hs.
Qed.

(** c relative to the computed sum, from both sides. *)
Lemma square_computed : Rabs (n_hat - sq K k) <= ((1 + u)^(K + 6) - 1) * n_hat.
Proof.
pose proof (u_ge0 fl u model) as Hu; destruct square_known as [Hl Hh].
pose proof (sum_of_squares_low fl u model K k_hat) as H1; pose proof (sum_of_squares_high fl u model K k_hat) as H2.
fold n_hat in H1, H2. pose proof (fdot_squares_ge0 fl u model K k_hat) as Hn; fold n_hat in Hn.
pose proof (pow_R1_Rle (1 + u) K ltac:(lra)) as HP.
rewrite pow_add. set (P := (1 + u)^K) in *. set (Q := sq K k_hat) in *. assert (HQ : 0 <= Q) by apply sq_ge0.
assert (Hup : sq K k <= P * (1 + u)^6 * n_hat).
{ assert (A1 : (1 + 2 * u)^2 <= (1 + u)^6) by nra.
  assert (A2 : (1 + 2 * u)^2 * Q <= (1 + u)^6 * (P * n_hat)) by (apply Rmult_le_compat; [apply pow2_ge_0 | exact HQ | exact A1 | exact H1]).
  lra. }
assert (Hlow : (2 - P * (1 + u)^6) * n_hat <= sq K k).
{ assert (A1 : 1 <= (1 - 2 * u) * (1 + u)^3).
  { replace ((1 - 2 * u) * (1 + u)^3) with (1 + u * (1 - 3 * u - 5 * u^2 - 2 * u^3)) by ring.
    assert (0 <= 1 - 3 * u - 5 * u^2 - 2 * u^3) by nra. assert (0 <= u * (1 - 3 * u - 5 * u^2 - 2 * u^3)) by (apply Rmult_le_pos; assumption). lra. }
  assert (A2 : 1 <= (1 - 2 * u)^2 * (1 + u)^6).
  { replace ((1 - 2 * u)^2 * (1 + u)^6) with (((1 - 2 * u) * (1 + u)^3)^2) by ring. exact (pow_R1_Rle _ 2 A1). }
  set (V := (1 - 2 * u)^2) in *. set (Z := (1 + u)^6) in *.
  assert (HV : 0 < V) by (unfold V; apply pow_lt; lra). assert (HZ : 1 <= Z) by (apply pow_R1_Rle; lra).
  assert (A3 : (2 - P * Z) * P <= V).
  { apply Rmult_le_reg_r with Z; [lra|]. apply Rle_trans with 1; [|exact A2].
    pose proof (pow2_ge_0 (P * Z - 1)). replace ((2 - P * Z) * P * Z) with (1 - (P * Z - 1)^2) by ring. lra. }
  apply Rle_trans with (V * Q); [|exact Hl].
  destruct (Rle_or_lt (2 - P * Z) 0) as [Hneg|Hpos].
  - assert (0 <= V * Q) by (apply Rmult_le_pos; lra). nra.
  - apply Rle_trans with ((2 - P * Z) * (P * Q)); [apply Rmult_le_compat_l; lra|].
    rewrite <- Rmult_assoc. apply Rmult_le_compat_r; assumption. }
apply Rabs_le; split; lra.
Qed.

Theorem factor_computed : (INR K + 9) * u <= / 2 ->
  Rabs (b * sq K k - x_hat) <= Rabs x_hat * ((INR K + 16) * (2 * u)) + f_b * sq K k.
Proof.
intros HK; pose proof (u_ge0 fl u model) as Hu; pose proof square_computed as Hc.
pose proof (model_result _ _ model (b_hat * fdot fl K k_hat k_hat)) as Hx. fold x_hat in Hx. fold n_hat in Hx.
pose proof (of_result (b_hat * fdot fl K k_hat k_hat)) as Ho. fold x_hat in Ho. fold n_hat in Ho.
pose proof (fdot_squares_ge0 fl u model K k_hat) as Hn; fold n_hat in Hn. pose proof (sq_ge0 K k) as Hk.
rewrite Rabs_mult, (Rabs_pos_eq n_hat) in Ho by exact Hn.
set (c := (1 + u)^(K + 6) - 1) in *. assert (Hc0 : 0 <= c) by (unfold c; pose proof (pow_R1_Rle (1 + u) (K + 6) ltac:(lra)); lra).
set (B := Rabs b_hat) in *. set (X := Rabs x_hat) in *.
assert (HB : 0 <= B) by apply Rabs_pos. assert (HX : 0 <= X) by apply Rabs_pos.
assert (Hkn : sq K k <= (1 + c) * n_hat) by (apply Rabs_le_inv in Hc; lra).
assert (H1 : Rabs (b * sq K k - x_hat) <= (2 * u * B + f_b) * sq K k + B * (c * n_hat) + u * X).
{ replace (b * sq K k - x_hat) with (- ((b_hat - b) * sq K k) + (- (b_hat * (n_hat - sq K k)) + - (x_hat - b_hat * n_hat))) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp, Rabs_mult, (Rabs_pos_eq (sq K k)) by exact Hk.
  assert (A1 : Rabs (b_hat - b) * sq K k <= (2 * u * B + f_b) * sq K k).
  { apply Rmult_le_compat_r; [exact Hk|]. assert (e_b * B <= 2 * u * B) by (apply Rmult_le_compat_r; lra). unfold B in *; lra. }
  assert (A2 : Rabs (- (b_hat * (n_hat - sq K k)) + - (x_hat - b_hat * n_hat)) <= B * (c * n_hat) + u * X).
  { eapply Rle_trans; [apply Rabs_triang|]. rewrite !Rabs_Ropp, Rabs_mult. apply Rplus_le_compat; [|exact Hx].
    apply Rmult_le_compat_l; [exact HB | exact Hc]. }
  lra. }
eapply Rle_trans; [exact H1|].
assert (H2 : B * sq K k <= (1 + c) * ((1 + u) * X)).
{ apply Rle_trans with (B * ((1 + c) * n_hat)); [apply Rmult_le_compat_l; assumption|].
  replace (B * ((1 + c) * n_hat)) with ((1 + c) * (B * n_hat)) by ring. apply Rmult_le_compat_l; lra. }
assert (H3 : B * (c * n_hat) <= c * ((1 + u) * X)).
{ replace (B * (c * n_hat)) with (c * (B * n_hat)) by ring. apply Rmult_le_compat_l; assumption. }
assert (H4 : u + (1 + u) * (c + 2 * u * (1 + c)) <= (INR K + 16) * (2 * u)).
{ assert (Hg : (1 + u)^(K + 9) - 1 <= INR (K + 9) * u / (1 - INR (K + 9) * u)).
  { apply (gamma_bound fl u model). rewrite plus_INR. simpl (INR 9). lra. }
  rewrite plus_INR in Hg. simpl (INR 9) in Hg. replace (INR K + (1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1)) with (INR K + 9) in Hg by ring.
  assert (Hg2 : (INR K + 9) * u / (1 - (INR K + 9) * u) <= (INR K + 9) * u * 2).
  { pose proof (pos_INR K). unfold Rdiv; apply Rmult_le_compat_l; [apply Rmult_le_pos; lra|].
    apply Rmult_le_reg_r with (1 - (INR K + 9) * u); [lra|]. rewrite Rinv_l by lra. lra. }
  assert (E : (1 + u)^(K + 9) = (1 + c) * (1 + u)^3) by (unfold c; replace (K + 9)%nat with ((K + 6) + 3)%nat by lia; rewrite pow_add; ring).
  assert (A : u + (1 + u) * (c + 2 * u * (1 + c)) <= (1 + u)^(K + 9) - 1).
  { rewrite E. assert (0 <= u^2 * (1 + c)) by (apply Rmult_le_pos; [apply pow2_ge_0 | lra]). assert (0 <= u^3 * (1 + c)) by (apply Rmult_le_pos; [apply pow_le; lra | lra]). nra. }
  pose proof (pos_INR K). nra. }
assert (H5 : 2 * u * (B * sq K k) <= 2 * u * ((1 + c) * ((1 + u) * X))) by (apply Rmult_le_compat_l; lra).
assert (H6 : (u + (1 + u) * (c + 2 * u * (1 + c))) * X <= (INR K + 16) * (2 * u) * X) by (apply Rmult_le_compat_r; assumption).
lra.
Qed.

(** The factor the code carries. *)
Corollary factor_bound off : (INR K + 9) * u <= / 2 -> Rabs x_hat * ((INR K + 16) * (2 * u)) + f_b * sq K k <= off ->
  Rmax 1 (Rabs (1 - b * sq K k)) <= Rmax 1 (Rabs (1 - x_hat) + off).
Proof.
intros HK Hoff; pose proof (factor_computed HK) as H. apply Rmax_lub; [apply Rmax_l|].
eapply Rle_trans; [|apply Rmax_r].
replace (1 - b * sq K k) with ((1 - x_hat) + - (b * sq K k - x_hat)) by ring. eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp; lra.
Qed.
End Factor.
End Lines.

(** ** The whole run *)
(** The radius from step to step: e' = g e + r. *)
Fixpoint radius (e0 : R) (g r : nat -> R) (T : nat) : R :=
  match T with O => e0 | S t => g t * radius e0 g r t + r t end.

(** g (t) ... g (T - 1). *)
Fixpoint product_from (g : nat -> R) (t n : nat) : R :=
  match n with O => 1 | S n' => product_from g t n' * g (t + n')%nat end.

(** e_T = e_0 prod_{j < T} g_j + sum_{t < T} r_t prod_{t < j < T} g_j. *)
Theorem radius_unrolled e0 g r T :
  radius e0 g r T = e0 * product_from g 0 T + Rsum T (fun t => r t * product_from g (S t) (T - S t)).
Proof.
induction T as [|T IH]; [simpl; ring|]. cbn [radius Rsum]. rewrite IH.
replace (S T - S T)%nat with O by lia. cbn [product_from Nat.add].
rewrite (Rsum_ext T (fun t => r t * product_from g (S t) (S T - S t)) (fun t => g T * (r t * product_from g (S t) (T - S t)))).
- rewrite Rsum_scal. ring.
- intros t Ht. replace (S T - S t)%nat with (S (T - S t)) by lia. cbn [product_from].
  replace (S t + (T - S t))%nat with T by lia. ring.
Qed.

(** Linear in T where no factor exceeds 1. *)
Theorem radius_linear e0 g r T : 0 <= e0 -> (forall t, (t < T)%nat -> 0 <= g t <= 1) -> (forall t, (t < T)%nat -> 0 <= r t) ->
  radius e0 g r T <= e0 + Rsum T r.
Proof.
intros He Hg Hr; enough (H : 0 <= radius e0 g r T <= e0 + Rsum T r) by apply H.
induction T as [|T IH]; [simpl; lra|]. cbn [radius Rsum].
destruct IH as [H0 H1]; [intros; apply Hg; lia | intros; apply Hr; lia |].
destruct (Hg T ltac:(lia)) as [Hg0 Hg1]. pose proof (Hr T ltac:(lia)).
assert (0 <= g T * radius e0 g r T) by (apply Rmult_le_pos; assumption).
assert (g T * radius e0 g r T <= 1 * radius e0 g r T) by (apply Rmult_le_compat_r; assumption). lra.
Qed.

(** Any two runs whose distance obeys the lines step by step stay within the radius: rows s (exact) and s_hat (computed). *)
Theorem radius_run d (s s_hat : nat -> nat -> R) e0 g r T :
  norm d (fun i => s_hat O i - s O i) <= e0 ->
  (forall t e, (t < T)%nat -> norm d (fun i => s_hat t i - s t i) <= e -> norm d (fun i => s_hat (S t) i - s (S t) i) <= g t * e + r t) ->
  norm d (fun i => s_hat T i - s T i) <= radius e0 g r T.
Proof.
intros H0 Hs; induction T as [|T IH]; [exact H0|]. cbn [radius]. apply Hs; [lia|]. apply IH. intros t e Ht; apply Hs; lia.
Qed.

(** ** One token and many: the lines composed *)
(** What the code knows of one step: the exact inputs, the lowered ones, and the bounds it computes. *)
Record token := {
  alpha : nat -> R; alpha_hat : nat -> R; k : nat -> R; k_hat : nat -> R; b : R; b_hat : R; v : R;
  e_alpha : R; f_alpha : R; e_k : R; e_b : R; f_b : R;
  A : R; kappa : R; M_s : R; M_d : R; M_n : R; rho : R }.

Section Run.
Variables (fl : R -> R) (u : R).
Hypothesis model : rounding_model fl u.
Variable K : nat.
Hypothesis K_small : INR K * u < 1.

Definition decayed_hat (x : token) (s_hat : nat -> R) (i : nat) : R := fl (alpha_hat x i * s_hat i).
Definition written (x : token) (s_hat : nat -> R) : R := w_hat fl K (b_hat x) (v x) (k_hat x) (decayed_hat x s_hat).
Definition computed_token (x : token) (s_hat : nat -> R) (i : nat) : R :=
  fl (decayed_hat x s_hat i + fl (k_hat x i * written x s_hat)).
Definition exact_token (x : token) (s : nat -> R) : nat -> R := exact_step K (b x) (v x) (k x) (fun i => alpha x i * s i).

(** The lowering's promises and the bounds computed from the entries. *)
Definition bounds_hold (x : token) (s_hat : nat -> R) : Prop :=
  (forall i, (i < K)%nat -> Rabs (alpha_hat x i - alpha x i) <= e_alpha x * Rabs (alpha_hat x i) + f_alpha x) /\
  (forall i, (i < K)%nat -> Rabs (alpha_hat x i) <= A x) /\
  (forall i, (i < K)%nat -> Rabs (k_hat x i - k x i) <= e_k x * Rabs (k_hat x i)) /\
  Rabs (b_hat x - b x) <= e_b x * Rabs (b_hat x) + f_b x /\
  (0 <= e_alpha x /\ 0 <= f_alpha x /\ 0 <= A x /\ 0 <= e_b x /\ 0 <= f_b x /\ 0 <= e_k x) /\
  norm K (k_hat x) <= kappa x /\ norm K s_hat <= M_s x /\ norm K (decayed_hat x s_hat) <= M_d x /\
  norm K (computed_token x s_hat) <= M_n x /\ Rmax 1 (Rabs (1 - b x * sq K (k x))) <= rho x.

(** g and r of the line e' = g e + r. *)
Definition token_factor (x : token) : R := rho x * (A x * (1 + e_alpha x) + f_alpha x).
Definition token_local (x : token) (s_hat : nat -> R) : R :=
  let d_hat := decayed_hat x s_hat in let w := Rabs (written x s_hat) in
  rho x * ((e_alpha x / (1 - u) + u) * M_d x + f_alpha x * M_s x)
  + kappa_plus (e_k x) (kappa x) * bound_W fl u K (b_hat x) (v x) (k_hat x) d_hat (e_b x) (f_b x) (e_k x) (kappa x) (M_d x)
  + e_k x * kappa x * w + u * (M_n x + kappa x * w).

Theorem token_line x s s_hat e : bounds_hold x s_hat -> norm K (fun i => s_hat i - s i) <= e ->
  norm K (fun i => computed_token x s_hat i - exact_token x s i) <= token_factor x * e + token_local x s_hat.
Proof.
intros [Ha [HA [Hk [Hb [[Q1 [Q2 [Q3 [Q4 [Q5 Q6]]]]] [Hkappa [Hs [Hd [Hn Hr]]]]]]]]] He.
pose proof (decay_line fl u model K (alpha x) (alpha_hat x) s s_hat (decayed_hat x s_hat) (A x) (e_alpha x) (f_alpha x) e (M_s x) (M_d x)
  Ha HA Q1 Q2 Q3 (fun i _ => eq_refl) He Hs Hd) as HD.
pose proof (state_line fl u model K K_small (b x) (b_hat x) (v x) (k x) (k_hat x) (fun i => alpha x i * s i)
  (decayed_hat x s_hat) (e_b x) (f_b x) (e_k x) (kappa x) (M_d x)
  Hb Hk Q4 Q5 Q6 Hkappa Hd (computed_token x s_hat) _ (rho x) (M_n x) HD Hr (fun i _ => eq_refl) Hn) as HS.
eapply Rle_trans; [exact HS|].
unfold token_factor, token_local; cbv zeta. fold (written x s_hat). lra.
Qed.

(** The computed and the exact state after T tokens. *)
Variables (x : nat -> token) (s0 s0_hat : nat -> R).
Fixpoint computed_state (T : nat) : nat -> R := match T with O => s0_hat | S t => computed_token (x t) (computed_state t) end.
Fixpoint exact_state (T : nat) : nat -> R := match T with O => s0 | S t => exact_token (x t) (exact_state t) end.

(** The state's radius: e_T <= e_0 prod g + sum_t r_t prod_{j > t} g_j, with e_0 = 0 where the initial state is given. *)
Theorem state_radius e0 T : norm K (fun i => s0_hat i - s0 i) <= e0 ->
  (forall t, (t < T)%nat -> bounds_hold (x t) (computed_state t)) ->
  norm K (fun i => computed_state T i - exact_state T i) <=
  e0 * product_from (fun t => token_factor (x t)) 0 T
  + Rsum T (fun t => token_local (x t) (computed_state t) * product_from (fun t => token_factor (x t)) (S t) (T - S t)).
Proof.
intros H0 Hx.
rewrite <- (radius_unrolled e0 (fun t => token_factor (x t)) (fun t => token_local (x t) (computed_state t)) T).
apply (radius_run K exact_state computed_state); [exact H0|].
intros t e Ht He; apply (token_line (x t) (exact_state t) (computed_state t) e); [apply Hx; exact Ht | exact He].
Qed.

(** And the output's, read out after T tokens. *)
Theorem output_radius e0 T c q q_hat e_q chi M : norm K (fun i => s0_hat i - s0 i) <= e0 ->
  (forall t, (t < T)%nat -> bounds_hold (x t) (computed_state t)) ->
  (forall i, (i < K)%nat -> Rabs (q_hat i - q i) <= e_q * Rabs (q_hat i)) -> 0 <= e_q ->
  norm K q_hat <= chi -> norm K (computed_state T) <= M ->
  Rabs (o_hat fl K c q_hat (computed_state T) - c * dot K q (exact_state T)) <=
  u * Rabs (o_hat fl K c q_hat (computed_state T))
  + Rabs c * ((gamma_K u K + e_q) * chi * M
    + chi * (1 + e_q) * radius e0 (fun t => token_factor (x t)) (fun t => token_local (x t) (computed_state t)) T).
Proof.
intros H0 Hx Hq Heq Hchi HM.
apply (read_line fl u model K K_small c q q_hat (exact_state T) (computed_state T) e_q _ chi M); try assumption.
apply (radius_run K exact_state computed_state); [exact H0|].
intros t e Ht He; apply (token_line (x t) (exact_state t) (computed_state t) e); [apply Hx; exact Ht | exact He].
Qed.
End Run.

(** The promises can be kept: inputs given exactly, bounds equal to what they bound. *)
Definition given_token K (fl : R -> R) (k0 : nat -> R) (b0 v0 : R) (s_hat : nat -> R) : token :=
  let one := fun _ : nat => 1 in
  let d_hat := fun i => fl (1 * s_hat i) in
  let w := w_hat fl K b0 v0 k0 d_hat in
  {| alpha := one; alpha_hat := one; k := k0; k_hat := k0; b := b0; b_hat := b0; v := v0;
     e_alpha := 0; f_alpha := 0; e_k := 0; e_b := 0; f_b := 0; A := 1; kappa := norm K k0; M_s := norm K s_hat; M_d := norm K d_hat;
     M_n := norm K (fun i => fl (d_hat i + fl (k0 i * w))); rho := Rmax 1 (Rabs (1 - b0 * sq K k0)) |}.

Example bounds_hold_for_given K fl k0 b0 v0 s_hat : bounds_hold fl K (given_token K fl k0 b0 v0 s_hat) s_hat.
Proof.
unfold bounds_hold, given_token, computed_token, written, decayed_hat; simpl.
repeat split; intros; try lra; rewrite ?Rabs_R1; rewrite ?Rminus_diag_eq by reflexivity; rewrite ?Rabs_R0; lra.
Qed.

(** ** Line F: non-negative expressions are low by at most one factor 1 + u an operation *)
Inductive expression := Given (x : R) | Sum (a b : expression) | Product (a b : expression) | Root (a : expression) | Largest (a b : expression).

Fixpoint given_ge0 (e : expression) : Prop :=
  match e with
  | Given x => 0 <= x
  | Sum a b | Product a b | Largest a b => given_ge0 a /\ given_ge0 b
  | Root a => given_ge0 a
  end.

Fixpoint operations (e : expression) : nat :=
  match e with
  | Given _ => 0
  | Sum a b | Product a b => S (operations a + operations b)
  | Root a => S (operations a)
  | Largest a b => operations a + operations b
  end.

Fixpoint exact_value (e : expression) : R :=
  match e with
  | Given x => x
  | Sum a b => exact_value a + exact_value b
  | Product a b => exact_value a * exact_value b
  | Root a => sqrt (exact_value a)
  | Largest a b => Rmax (exact_value a) (exact_value b)
  end.

Fixpoint computed_value (fl : R -> R) (e : expression) : R :=
  match e with
  | Given x => x
  | Sum a b => fl (computed_value fl a + computed_value fl b)
  | Product a b => fl (computed_value fl a * computed_value fl b)
  | Root a => fl (sqrt (computed_value fl a))
  | Largest a b => Rmax (computed_value fl a) (computed_value fl b)
  end.

Theorem computed_expression_low fl u e : rounding_model fl u -> given_ge0 e ->
  0 <= exact_value e /\ 0 <= computed_value fl e /\ exact_value e <= (1 + u)^(operations e) * computed_value fl e.
Proof.
intros model; pose proof (u_ge0 fl u model) as Hu; assert (H1 : 1 <= 1 + u) by lra.
assert (Hle : forall m n c x, (m <= n)%nat -> 0 <= c -> x <= (1 + u)^m * c -> x <= (1 + u)^n * c).
{ intros m n c x Hmn Hc Hx; eapply Rle_trans; [exact Hx|]. apply Rmult_le_compat_r; [exact Hc | apply Rle_pow; assumption]. }
induction e as [x|a IHa b IHb|a IHa b IHb|a IHa|a IHa b IHb]; cbn [given_ge0 operations exact_value computed_value]; intros H.
- simpl; lra.
- destruct H as [Ha Hb]; destruct (IHa Ha) as [A1 [A2 A3]]; destruct (IHb Hb) as [B1 [B2 B3]].
  split; [lra|]. pose proof (le_fl fl u model (computed_value fl a + computed_value fl b) ltac:(lra)) as Hf.
  split; [apply (fl_ge0 fl u model); lra|].
  set (m := operations a) in *; set (n := operations b) in *.
  pose proof (Hle m (m + n)%nat _ _ ltac:(lia) A2 A3) as A4. pose proof (Hle n (m + n)%nat _ _ ltac:(lia) B2 B3) as B4.
  change ((1 + u)^(S (m + n))) with ((1 + u) * (1 + u)^(m + n)). assert (HP : 0 <= (1 + u)^(m + n)) by (apply pow_le; lra).
  set (P := (1 + u)^(m + n)) in *.
  assert (P * (computed_value fl a + computed_value fl b) <= P * ((1 + u) * fl (computed_value fl a + computed_value fl b))) by (apply Rmult_le_compat_l; assumption).
  lra.
- destruct H as [Ha Hb]; destruct (IHa Ha) as [A1 [A2 A3]]; destruct (IHb Hb) as [B1 [B2 B3]].
  split; [apply Rmult_le_pos; assumption|]. assert (Hp : 0 <= computed_value fl a * computed_value fl b) by (apply Rmult_le_pos; assumption).
  pose proof (le_fl fl u model _ Hp) as Hf. split; [apply (fl_ge0 fl u model); exact Hp|].
  change ((1 + u)^(S (operations a + operations b))) with ((1 + u) * (1 + u)^(operations a + operations b)). rewrite pow_add.
  assert (HA : 0 <= (1 + u)^(operations a)) by (apply pow_le; lra). assert (HB : 0 <= (1 + u)^(operations b)) by (apply pow_le; lra).
  set (P := (1 + u)^(operations a)) in *; set (Q := (1 + u)^(operations b)) in *.
  assert (G1 : exact_value a * exact_value b <= (P * computed_value fl a) * (Q * computed_value fl b)) by (apply Rmult_le_compat; assumption).
  assert (G2 : P * Q * (computed_value fl a * computed_value fl b) <= P * Q * ((1 + u) * fl (computed_value fl a * computed_value fl b)))
    by (apply Rmult_le_compat_l; [apply Rmult_le_pos|]; assumption).
  lra.
- destruct (IHa H) as [A1 [A2 A3]]. split; [apply sqrt_pos|].
  pose proof (le_fl fl u model (sqrt (computed_value fl a)) (sqrt_pos _)) as Hf. split; [apply (fl_ge0 fl u model), sqrt_pos|].
  change ((1 + u)^(S (operations a))) with ((1 + u) * (1 + u)^(operations a)). set (P := (1 + u)^(operations a)) in *.
  assert (HP : 1 <= P) by (apply pow_R1_Rle; exact H1).
  assert (G1 : sqrt (exact_value a) <= P * sqrt (computed_value fl a)).
  { apply Rle_trans with (sqrt (P * computed_value fl a)); [apply sqrt_le_1_alt; exact A3|].
    rewrite sqrt_mult_alt by lra. apply Rmult_le_compat_r; [apply sqrt_pos|].
    rewrite <- (sqrt_square P) at 2 by lra. apply sqrt_le_1_alt. nra. }
  assert (P * sqrt (computed_value fl a) <= P * ((1 + u) * fl (sqrt (computed_value fl a)))) by (apply Rmult_le_compat_l; lra). lra.
- destruct H as [Ha Hb]; destruct (IHa Ha) as [A1 [A2 A3]]; destruct (IHb Hb) as [B1 [B2 B3]].
  assert (HA : 0 <= Rmax (exact_value a) (exact_value b)) by (eapply Rle_trans; [exact A1 | apply Rmax_l]).
  assert (HB : 0 <= Rmax (computed_value fl a) (computed_value fl b)) by (eapply Rle_trans; [exact A2 | apply Rmax_l]).
  repeat split; [exact HA | exact HB |].
  pose proof (Hle (operations a) (operations a + operations b)%nat _ _ ltac:(lia) A2 A3) as A4.
  pose proof (Hle (operations b) (operations a + operations b)%nat _ _ ltac:(lia) B2 B3) as B4.
  assert (HP : 0 <= (1 + u)^(operations a + operations b)) by (apply pow_le; lra).
  apply Rmax_lub; (eapply Rle_trans; [eassumption|]); apply Rmult_le_compat_l; try exact HP; [apply Rmax_l | apply Rmax_r].
Qed.

(** What is low by at most (1 + u)^62 is covered by the code's slack, a multiplication by 1 + 2^-46. *)
Lemma slack_is_enough fl c y : rounding_model fl (bpow radix2 (-53)) -> 0 <= c -> y <= (1 + bpow radix2 (-53))^62 * c ->
  y <= fl (c * 1.0000000000000142108547152020037174224853515625).
Proof.
intros model H2 H4.
replace 1.0000000000000142108547152020037174224853515625 with (1 + bpow radix2 (-46)) by (simpl; lra).
set (u := bpow radix2 (-53)) in *. assert (Hu0 : 0 < u) by apply bpow_gt_0.
assert (Hs : bpow radix2 (-46) = 128 * u).
{ unfold u; change 128 with (bpow radix2 7). rewrite <- bpow_plus. reflexivity. }
assert (Hs1 : 128 * u <= / 64).
{ rewrite <- Hs. apply Rle_trans with (bpow radix2 (-6)); [apply bpow_le; lia | simpl; lra]. }
rewrite Hs. assert (Hc : 0 <= c * (1 + 128 * u)) by (apply Rmult_le_pos; lra).
pose proof (le_fl fl u model _ Hc) as Hf. set (f := fl (c * (1 + 128 * u))) in *.
assert (Hf0 : 0 <= f) by (apply (fl_ge0 fl u model); exact Hc).
assert (HP : (1 + u)^63 <= 1 + 128 * u).
{ pose proof (gamma_bound fl u model 63) as Hg. unfold gamma in Hg.
  replace (INR 63) with 63 in Hg by (rewrite INR_IZR_INZ; reflexivity).
  specialize (Hg ltac:(lra)).
  assert (63 * u / (1 - 63 * u) <= 128 * u).
  { apply Rmult_le_reg_r with (1 - 63 * u); [lra|]. replace (63 * u / (1 - 63 * u) * (1 - 63 * u)) with (63 * u) by (field; lra). nra. }
  lra. }
assert (H5 : (1 + u)^62 * (1 + 128 * u) * c <= (1 + u)^63 * f).
{ change ((1 + u)^63) with ((1 + u) * (1 + u)^62). assert (0 <= (1 + u)^62) by (apply pow_le; lra).
  assert ((1 + u)^62 * (c * (1 + 128 * u)) <= (1 + u)^62 * ((1 + u) * f)) by (apply Rmult_le_compat_l; assumption). lra. }
assert (H6 : (1 + u)^63 * f <= (1 + 128 * u) * f) by (apply Rmult_le_compat_r; assumption).
assert (H7 : (1 + u)^62 * c <= f).
{ apply Rmult_le_reg_r with (1 + 128 * u); [lra|]. lra. }
lra.
Qed.

(** The slack of the code: up to 62 operations of fp64 and the multiplication by 1 + 2^-46 itself. *)
Theorem slack_covers fl e : rounding_model fl (bpow radix2 (-53)) -> given_ge0 e -> (operations e <= 62)%nat ->
  exact_value e <= fl (computed_value fl e * 1.0000000000000142108547152020037174224853515625).
Proof.
intros model He Hm; destruct (computed_expression_low fl _ e model He) as [H1 [H2 H3]].
apply slack_is_enough; [exact model | exact H2|].
eapply Rle_trans; [exact H3|]. apply Rmult_le_compat_r; [exact H2 | apply Rle_pow; [|exact Hm]].
pose proof (bpow_ge_0 radix2 (-53)); lra.
Qed.

(** The factor as it is carried, 1 - x included: |1 - x| + off, off an expression of at most 60 operations, then the slack. *)
Theorem factor_carried fl x off : rounding_model fl (bpow radix2 (-53)) -> given_ge0 off -> (operations off <= 60)%nat ->
  Rabs (1 - x) + exact_value off
    <= fl (fl (Rabs (fl (1 - x)) + computed_value fl off) * 1.0000000000000142108547152020037174224853515625).
Proof.
intros model Ho Hm; destruct (computed_expression_low fl _ off model Ho) as [H1 [H2 H3]].
set (u := bpow radix2 (-53)) in *. assert (Hu0 : 0 < u) by apply bpow_gt_0.
pose proof (of_result fl u model (1 - x)) as Hx. pose proof (Rabs_pos (fl (1 - x))) as Hf.
set (f := Rabs (fl (1 - x))) in *. set (c := computed_value fl off) in *.
assert (Hfc : 0 <= f + c) by lra.
pose proof (le_fl fl u model _ Hfc) as Hs. pose proof (fl_ge0 fl u model _ Hfc) as Hs0. set (s := fl (f + c)) in *.
apply slack_is_enough; [exact model | exact Hs0|]. fold u.
assert (Hpow : forall m, (m <= 61)%nat -> (1 + u)^m <= (1 + u)^61) by (intros m Hm'; apply Rle_pow; [lra | exact Hm']).
assert (A1 : Rabs (1 - x) <= (1 + u)^61 * f).
{ apply Rle_trans with ((1 + u) * f); [exact Hx|]. apply Rmult_le_compat_r; [exact Hf|].
  replace (1 + u) with ((1 + u)^1) at 1 by ring. apply Hpow; lia. }
assert (A2 : exact_value off <= (1 + u)^61 * c).
{ eapply Rle_trans; [exact H3|]. apply Rmult_le_compat_r; [exact H2|]. apply Hpow; lia. }
change ((1 + u)^62) with ((1 + u) * (1 + u)^61). assert (HP : 0 <= (1 + u)^61) by (apply pow_le; lra).
set (P := (1 + u)^61) in *.
assert (P * (f + c) <= P * ((1 + u) * s)) by (apply Rmult_le_compat_l; assumption). lra.
Qed.

(** The lines are about something: one step from 0 with k = 1, b = 1/3 (not a number of fp64) and v = 1 has radius below 2^-51. *)
Example radius_of_one_step :
  let fl := round radix2 (FLX_exp 53) ZnearestE in
  let one := fun _ : nat => 1 in let nothing := fun _ : nat => 0 in
  let b := / 3 in let b_hat := fl b in
  norm 1 (fun i => fl (0 + fl (1 * w_hat fl 1 b_hat 1 one nothing)) - exact_step 1 b 1 one nothing i) <= bpow radix2 (-51).
Proof.
intros fl one nothing b b_hat; assert (M : rounding_model fl (unit_roundoff 53)) by (apply nearest_is_a_model; lia).
set (u := unit_roundoff 53) in *. assert (Hu : 0 < u <= / 1024).
{ unfold u, unit_roundoff; split; [apply bpow_gt_0|]. apply Rle_trans with (bpow radix2 (-10)); [apply bpow_le; lia | simpl; lra]. }
assert (F1 : fl 1 = 1).
{ apply round_generic; [apply valid_rnd_N|]. apply generic_format_FLX; exists (Float radix2 1 0); [unfold F2R; simpl; ring | simpl; lia]. }
assert (Ew : w_hat fl 1 b_hat 1 one nothing = b_hat).
{ unfold w_hat, r_hat, p_hat, one, nothing; simpl. rewrite Rmult_0_r, (fl_zero fl u M), Rplus_0_l, (fl_zero fl u M), Rminus_0_r, F1, Rmult_1_r.
  unfold b_hat; apply (model_idempotent _ _ M). }
rewrite Ew. assert (Eb : fl (0 + fl (1 * b_hat)) = b_hat).
{ rewrite Rmult_1_l, Rplus_0_l. unfold b_hat; rewrite !(model_idempotent _ _ M); reflexivity. }
rewrite Eb. assert (Ee : forall i, exact_step 1 b 1 one nothing i = b) by (intros i; unfold exact_step, dot, one, nothing; simpl; ring).
assert (H : norm 1 (fun i => b_hat - exact_step 1 b 1 one nothing i) = Rabs (b_hat - b)).
{ unfold norm, sq; simpl. rewrite Ee. replace (0 + (b_hat - b) * ((b_hat - b) * 1)) with (Rsqr (b_hat - b)) by (unfold Rsqr; ring). apply sqrt_Rsqr_abs. }
rewrite H. eapply Rle_trans; [apply (model_argument _ _ M)|]. fold u. unfold b. rewrite Rabs_pos_eq by lra.
replace (bpow radix2 (-51)) with (4 * u); [lra|]. unfold u, unit_roundoff. change 4 with (bpow radix2 2). rewrite <- bpow_plus. reflexivity.
Qed.

Example slack_covers_applies :
  1 * 1 + sqrt 2 <= round radix2 (FLX_exp 53) ZnearestE
    (computed_value (round radix2 (FLX_exp 53) ZnearestE) (Sum (Product (Given 1) (Given 1)) (Root (Given 2)))
     * 1.0000000000000142108547152020037174224853515625).
Proof.
apply (slack_covers (round radix2 (FLX_exp 53) ZnearestE) (Sum (Product (Given 1) (Given 1)) (Root (Given 2)))).
- apply nearest_is_a_model; lia.
- simpl; lra.
- simpl; lia.
Qed.
