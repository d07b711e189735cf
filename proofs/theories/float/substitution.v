(* SPDX-FileCopyrightText: 2026 The deltaproof authors
   SPDX-License-Identifier: MIT *)

(** The residual of forward substitution for I + L in floating point.

    For whoever bounds a computed inverse or a computed UT transform: what substitution returns solves a nearby system,
    with a residual that any test can check. [inverse_residual] is for the inverse as `algebra/triangular.hpp` computes it
    (X_ij = -(L_ij + sum L_im X_mj), negation exact); [solve_residual] and [solve_sequential_residual] for (I + L) Z = Y with
    the sum formed first or subtracted term by term. In all of them gamma_n = (1 + u)^n - 1.

    Not claimed: the forward error, which needs a bound on the exact inverse (bridge/forward_error.v); block or
    Neumann forms; operands narrowed between rows. *)
From Coq Require Import Reals Lra Lia.
From deltaproof.float Require Import vectors standard_model.
Open Scope R_scope.

Section Substitution.
Variables (fl : R -> R) (u : R).
Hypothesis model : rounding_model fl u.

(** Column j of the inverse: 0 above the diagonal, 1 on it, a sum in sequence from row j below it. *)
Definition inverse_by_substitution (L X : nat -> nat -> R) (C : nat) : Prop :=
  forall i j, (i < C)%nat -> (j < C)%nat ->
    ((i < j)%nat -> X i j = 0) /\ (i = j -> X i j = 1) /\
    ((j < i)%nat -> X i j = - fdot fl (i - j) (fun m => L i (j + m)%nat) (fun m => X (j + m)%nat j)).

(** Entry (i, j) of (I + L) X - I. *)
Definition residual (L X : nat -> nat -> R) (i j : nat) : R :=
  X i j + dot i (L i) (fun m => X m j) - (if Nat.eqb i j then 1 else 0).

Theorem inverse_residual L X C i j : inverse_by_substitution L X C -> (i < C)%nat -> (j < C)%nat ->
  Rabs (residual L X i j) <= gamma u (i - j) * dot_abs i (L i) (fun m => X m j).
Proof.
intros HX Hi Hj; destruct (HX i j Hi Hj) as [H1 [H2 H3]]; unfold residual.
assert (Hzero : forall m, (m < j)%nat -> (m < i)%nat -> X m j = 0).
{ intros m Hm Hmi. apply (HX m j); lia. }
destruct (Nat.lt_trichotomy i j) as [H|[H|H]].
- rewrite H1 by exact H. replace (Nat.eqb i j) with false by (symmetry; apply Nat.eqb_neq; lia).
  assert (E : dot i (L i) (fun m => X m j) = 0).
  { unfold dot. rewrite (Rsum_ext i _ (fun _ => 0)); [rewrite Rsum_const; ring|]. intros m Hm; rewrite Hzero by lia; ring. }
  rewrite E, Rplus_0_r, Rminus_0_r, Rabs_R0. apply Rmult_le_pos; [apply (gamma_ge0 fl u model) | apply dot_abs_ge0].
- subst j. rewrite H2, Nat.eqb_refl by reflexivity.
  assert (E : dot i (L i) (fun m => X m i) = 0).
  { unfold dot. rewrite (Rsum_ext i _ (fun _ => 0)); [rewrite Rsum_const; ring|]. intros m Hm; rewrite Hzero by lia; ring. }
  rewrite E, Rplus_0_r, Rminus_diag_eq, Rabs_R0 by reflexivity. apply Rmult_le_pos; [apply (gamma_ge0 fl u model) | apply dot_abs_ge0].
- replace (Nat.eqb i j) with false by (symmetry; apply Nat.eqb_neq; lia). rewrite H3 by exact H.
  assert (Hsum : forall f g : nat -> R, (forall m, (m < j)%nat -> g m = 0) -> forall n,
    Rsum (j + n) (fun m => f m * g m) = Rsum n (fun m => f (j + m)%nat * g (j + m)%nat)).
  { intros f g Hg n; induction n as [|n IH].
    - rewrite Nat.add_0_r; simpl. rewrite (Rsum_ext j _ (fun _ => 0)); [rewrite Rsum_const; ring|].
      intros m Hm; rewrite Hg by exact Hm; ring.
    - rewrite Nat.add_succ_r; simpl. rewrite IH; reflexivity. }
  assert (Hg : forall m, (m < j)%nat -> X m j = 0) by (intros m Hm; apply Hzero; lia).
  assert (E : dot i (L i) (fun m => X m j) = dot (i - j) (fun m => L i (j + m)%nat) (fun m => X (j + m)%nat j)).
  { unfold dot. replace i with (j + (i - j))%nat at 1 by lia. apply (Hsum (L i) (fun m => X m j) Hg). }
  assert (E2 : dot_abs i (L i) (fun m => X m j) = dot_abs (i - j) (fun m => L i (j + m)%nat) (fun m => X (j + m)%nat j)).
  { unfold dot_abs. replace i with (j + (i - j))%nat at 1 by lia.
    apply (Hsum (fun m => Rabs (L i m)) (fun m => Rabs (X m j))). intros m Hm; rewrite Hg by exact Hm; apply Rabs_R0. }
  rewrite E, E2, Rminus_0_r.
  match goal with |- Rabs (- ?a + ?b) <= _ => replace (- a + b) with (- (a - b)) by ring end.
  rewrite Rabs_Ropp. apply (dot_error fl u model).
Qed.

(** (I + L) z = y with the sum formed first. *)
Theorem solve_residual (L : nat -> nat -> R) (y z : nat -> R) i : z i = fl (y i - fdot fl i (L i) z) ->
  Rabs (y i - z i - dot i (L i) z) <= u * Rabs (z i) + gamma u i * dot_abs i (L i) z.
Proof.
intros Hz; pose proof (dot_error fl u model i (L i) z) as H0.
pose proof (model_result _ _ model (y i - fdot fl i (L i) z)) as H1. rewrite <- Hz in H1.
replace (y i - z i - dot i (L i) z) with (- (z i - (y i - fdot fl i (L i) z)) + (fdot fl i (L i) z - dot i (L i) z)) by ring.
eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp. lra.
Qed.

(** The same with the products subtracted from y one by one. *)
Fixpoint subtract_products (n : nat) (y : R) (k x : nat -> R) : R :=
  match n with O => y | S n' => fl (subtract_products n' y k x - fl (k n' * x n')) end.

Theorem solve_sequential_residual (L : nat -> nat -> R) (y z : nat -> R) i : z i = subtract_products i (y i) (L i) z ->
  Rabs (y i - z i - dot i (L i) z) <= gamma u i * (Rabs (z i) + dot_abs i (L i) z).
Proof.
intros Hz; pose proof (u_ge0 fl u model) as Hu.
enough (H : forall n, Rabs (y i - subtract_products n (y i) (L i) z - dot n (L i) z)
              <= gamma u n * (Rabs (subtract_products n (y i) (L i) z) + dot_abs n (L i) z)) by (rewrite Hz; apply H).
induction n as [|n IH].
- unfold dot, dot_abs, gamma; simpl. replace (y i - y i - 0) with 0 by ring. rewrite Rabs_R0. lra.
- simpl subtract_products. set (a := subtract_products n (y i) (L i) z) in *.
  change (dot (S n) (L i) z) with (dot n (L i) z + L i n * z n).
  change (dot_abs (S n) (L i) z) with (dot_abs n (L i) z + Rabs (L i n) * Rabs (z n)).
  pose proof (model_argument _ _ model (L i n * z n)) as Hq. rewrite <- Rabs_mult.
  set (t := L i n * z n) in *. set (q := fl t) in *.
  pose proof (model_result _ _ model (a - q)) as He. set (b := fl (a - q)) in *.
  set (S0 := dot n (L i) z) in *. set (A := dot_abs n (L i) z) in *.
  pose proof (gamma_ge0 fl u model n) as Hg. assert (HA : 0 <= A) by apply dot_abs_ge0.
  assert (Ha : Rabs a <= (1 + u) * Rabs b + (1 + u) * Rabs t).
  { replace a with (b + (q - t) + t - (b - (a - q))) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp.
    assert (Rabs (b + (q - t) + t) <= Rabs b + Rabs (q - t) + Rabs t).
    { eapply Rle_trans; [apply Rabs_triang|]. apply Rplus_le_compat_r. apply Rabs_triang. }
    lra. }
  replace (y i - b - (S0 + t)) with ((y i - a - S0) + (- (b - (a - q)) + (q - t))) by ring.
  eapply Rle_trans; [apply Rabs_triang|].
  assert (Rabs (- (b - (a - q)) + (q - t)) <= u * Rabs b + u * Rabs t).
  { eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp; lra. }
  assert (gamma u n * (Rabs a + A) <= gamma u n * ((1 + u) * Rabs b + (1 + u) * Rabs t + A)) by (apply Rmult_le_compat_l; lra).
  rewrite gamma_succ. pose proof (Rabs_pos b); pose proof (Rabs_pos t).
  assert (gamma u n * A <= ((1 + u) * gamma u n + u) * A).
  { apply Rmult_le_compat_r; [exact HA|]. assert (0 <= u * gamma u n) by (apply Rmult_le_pos; assumption). lra. }
  lra.
Qed.
End Substitution.

(** Substitution in exact arithmetic is such a computation, and then the residual is 0: for L with the one entry c. *)
Example inverse_residual_exact c :
  inverse_by_substitution (fun x => x) (fun i j => if Nat.eqb i 1 then c else 0)
    (fun i j => if Nat.eqb i j then 1 else if Nat.ltb i j then 0 else - c) 2.
Proof.
intros i j Hi Hj.
destruct i as [|[|i]]; [| |lia]; (destruct j as [|[|j]]; [| |lia]); simpl; repeat split; intros; try lia; try reflexivity; try ring.
Qed.
