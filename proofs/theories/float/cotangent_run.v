(* SPDX-FileCopyrightText: 2026 The deltaproof authors
   SPDX-License-Identifier: MIT *)

(** The radius of cotangents over a run, with underflow.

    For whoever relies on a gradient's radius: lines A, W, S and D, composed. One column of the cotangent. A row, backwards: what it
    read joins (line A of adjoint_radius.v), the row's step acts, which is the forward step with v = 0 (tier_run.v), then its decay, or
    none. [cotangent_radius] is n rows: e' = g e + r, as forwards. A row that is not read has q = 0 and c = 0.

    Not claimed: as in tier_run.v. The norms M and the factor rho are premises, and so is that the radius at hand is at least this one.
    That gradients are made of cotangents and states as adjoint_radius.v's lines say is algebra (algebra/adjoint.v), of matrices there
    and of columns here. *)
From Coq Require Import Reals ZArith Lra Lia Psatz.
From deltaproof.float Require Import vectors formats standard_model rounding tier_radius tier_run adjoint_radius.
From deltaproof.float Require oracle_radius.
Open Scope R_scope.

(** A row as the backward pass meets it: what is read, the step, the decay. *)
Record back := {
  q : nat -> R; q_hat : nat -> R; c : R; c_hat : R; e_q : R; chi : R; M_read : R;
  step_of : step;
  gated : bool; a : nat -> R; a_hat : nat -> R; e_a : R; f_a : R; a_max : R; M_step : R; M_gate : R }.

Section Run.
Variables u eta : R.
Hypothesis u_small : 0 <= u <= / 1024.
Hypothesis eta_ge0 : 0 <= eta.
Variable K : nat.
Variable gamma : R.
Hypothesis gamma_bound : (1 + u)^K - 1 <= gamma.

(** What the code is known to do: from the cotangent L to G, what was read in it, to S behind the step, to the next one. *)
Definition reads_known (x : back) (L_hat G_hat : nat -> R) : Prop :=
  0 <= e_q x /\ (forall i, (i < K)%nat -> Rabs (q_hat x i - q x i) <= e_q x * Rabs (q_hat x i)) /\
  Rabs (c_hat x - c x) <= u * Rabs (c_hat x) /\ norm K (q_hat x) <= chi x /\ norm K G_hat <= M_read x /\
  (forall i, (i < K)%nat ->
     Rabs (G_hat i - (L_hat i + q_hat x i * c_hat x)) <= u * Rabs (G_hat i) + u * (Rabs (q_hat x i) * Rabs (c_hat x)) + 2 * eta).
Definition gate_known (x : back) (S_hat L_next : nat -> R) : Prop :=
  if gated x then
    (forall i, (i < K)%nat -> Rabs (a_hat x i - a x i) <= e_a x * Rabs (a_hat x i) + f_a x) /\
    (forall i, (i < K)%nat -> Rabs (a_hat x i) <= a_max x) /\ 0 <= e_a x /\ 0 <= f_a x /\ 0 <= a_max x /\
    (forall i, (i < K)%nat -> Rabs (L_next i - a_hat x i * S_hat i) <= u * Rabs (L_next i) + eta) /\
    norm K S_hat <= M_step x /\ norm K L_next <= M_gate x
  else forall i, (i < K)%nat -> a x i = 1 /\ L_next i = S_hat i.
Definition back_facts (x : back) (L_hat G_hat d_hat S_hat L_next : nat -> R) (p r w P : R) : Prop :=
  reads_known x L_hat G_hat /\ v (step_of x) = 0 /\ step_facts u eta K (step_of x) G_hat d_hat S_hat p r w P /\ gate_known x S_hat L_next.

(** One row of the exact backward pass. *)
Definition exact_before (x : back) (L : nat -> R) : nat -> R :=
  fun i => a x i * exact_next K (step_of x) (fun i => L i + q x i * c x) i.

(** With v = 0 a step is (I - b k k^T) after its decay. *)
Theorem exact_before_transition x L i : v (step_of x) = 0 ->
  exact_before x L i = a x i * (let G := fun i => alpha (step_of x) i * (L i + q x i * c x) in
                                G i - b (step_of x) * dot K (k (step_of x)) G * k (step_of x) i).
Proof. intros H. unfold exact_before, exact_next, tier_radius.exact_step. rewrite H. cbv zeta. ring. Qed.

Definition read_local (x : back) : R :=
  u * M_read x + (2 * u + e_q x * (1 + u)) * (chi x * Rabs (c_hat x)) + norm K (fun _ => 2 * eta).
Definition gate_factor (x : back) : R := if gated x then a_max x * (1 + e_a x) + f_a x else 1.
Definition gate_local (x : back) : R :=
  if gated x then (e_a x / (1 - u) + u) * M_gate x + f_a x * M_step x + (1 + e_a x) * lost_row eta K else 0.
Definition back_factor (x : back) : R := gate_factor x * factor (step_of x).
Definition back_local (x : back) (w P : R) : R :=
  gate_factor x * (factor (step_of x) * read_local x + local u eta K (step_of x) w P) + gate_local x.

Theorem one_row_back x L L_hat G_hat d_hat S_hat L_next p r w P e :
  back_facts x L_hat G_hat d_hat S_hat L_next p r w P -> norm K (fun i => L_hat i - L i) <= e ->
  norm K (fun i => L_next i - exact_before x L i) <= back_factor x * e + back_local x w P.
Proof.
intros [[Heq [Hq [Hc [Hchi [HM HG]]]]] [_ [Hstep Hgate]]] He.
pose proof (read_back_line u eta u_small eta_ge0 K (q x) (q_hat x) L L_hat G_hat (c x) (c_hat x) (e_q x) e (chi x) (M_read x)
  Heq Hq Hc HG He Hchi HM) as HA.
assert (HA' : norm K (fun i => G_hat i - (L i + q x i * c x)) <= e + read_local x) by (unfold read_local; lra).
pose proof (one_step u eta u_small eta_ge0 K (step_of x) (fun i => L i + q x i * c x) G_hat d_hat S_hat p r w P _ Hstep HA') as HS.
set (E := factor (step_of x) * (e + read_local x) + local u eta K (step_of x) w P) in HS.
assert (HD : norm K (fun i => L_next i - exact_before x L i) <= gate_factor x * E + gate_local x).
{ unfold gate_factor, gate_local, gate_known, exact_before in *. destruct (gated x).
  - destruct Hgate as [G1 [G2 [G3 [G4 [G5 [G6 [G7 G8]]]]]]].
    pose proof (tier_radius.decay_line u eta u_small eta_ge0 K (a x) (a_hat x) (exact_next K (step_of x) (fun i => L i + q x i * c x)) S_hat L_next
      (a_max x) (e_a x) (f_a x) E (M_step x) (M_gate x) G1 G2 G3 G4 G5 G6 HS G7 G8). lra.
  - rewrite Rmult_1_l, Rplus_0_r. eapply Rle_trans; [|exact HS]. right. apply norm_ext. intros i Hi.
    destruct (Hgate i Hi) as [-> ->]. ring. }
eapply Rle_trans; [exact HD|]. right. unfold back_factor, back_local, E. ring.
Qed.

Variables (x : nat -> back) (L0 : nat -> R) (L_hat G_hat d_hat S_hat : nat -> nat -> R) (p r w P : nat -> R).
(** Rows 0, 1, ... as they are met on the way back. *)
Fixpoint exact_cotangent (n : nat) : nat -> R := match n with O => L0 | S t => exact_before (x t) (exact_cotangent t) end.
Definition cotangent_bound (e0 : R) (n : nat) : R :=
  oracle_radius.radius e0 (fun t => back_factor (x t)) (fun t => back_local (x t) (w t) (P t)) n.

(** The radius of the cotangent after n rows. *)
Theorem cotangent_radius e0 n : norm K (fun i => L_hat O i - L0 i) <= e0 ->
  (forall t, (t < n)%nat -> back_facts (x t) (L_hat t) (G_hat t) (d_hat t) (S_hat t) (L_hat (S t)) (p t) (r t) (w t) (P t)) ->
  norm K (fun i => L_hat n i - exact_cotangent n i) <= cotangent_bound e0 n.
Proof.
intros H0 Hx. apply (oracle_radius.radius_run K exact_cotangent L_hat); [exact H0|].
intros t e Ht He.
apply (one_row_back (x t) (exact_cotangent t) (L_hat t) (G_hat t) (d_hat t) (S_hat t) (L_hat (S t)) (p t) (r t)); [apply Hx; exact Ht | exact He].
Qed.

(** And what a cotangent is found to show of a key: y = k^T G, known to within what its cotangent is. *)
Theorem by_key_radius e0 n k0 k_hat0 y e_k0 kappa0 M : norm K (fun i => L_hat O i - L0 i) <= e0 ->
  (forall t, (t < n)%nat -> back_facts (x t) (L_hat t) (G_hat t) (d_hat t) (S_hat t) (L_hat (S t)) (p t) (r t) (w t) (P t)) ->
  0 <= e_k0 -> (forall i, (i < K)%nat -> Rabs (k_hat0 i - k0 i) <= e_k0 * Rabs (k_hat0 i)) ->
  norm K k_hat0 <= kappa0 -> norm K (L_hat n) <= M ->
  Rabs (y - dot K k_hat0 (L_hat n)) <= gamma * (kappa0 * M) + lost_product eta K gamma ->
  Rabs (y - dot K k0 (exact_cotangent n)) <= (gamma + e_k0) * (kappa0 * M) + kappa0 * (1 + e_k0) * cotangent_bound e0 n + lost_product eta K gamma.
Proof.
intros H0 Hx Hek Hk Hkappa HM Hy.
apply (prediction_line K k0 k_hat0 (exact_cotangent n) (L_hat n) y e_k0 kappa0 M (cotangent_bound e0 n) gamma (lost_product eta K gamma));
  try assumption.
- apply cotangent_radius; assumption.
- pose proof (pow_R1_Rle (1 + u) K ltac:(lra)). lra.
Qed.
End Run.
