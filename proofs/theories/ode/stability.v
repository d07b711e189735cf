(* SPDX-FileCopyrightText: 2026 The deltaproof authors *)
(* SPDX-License-Identifier: MIT *)
(*
  The stability functions R(x), x = beta |k|^2, of the rules in rule/rules.hpp: where |R(x)| <= 1, exactly for Euler and
  RK2, and for RK3 and RK4 to the last bit of the double that the code states as `limit`; the rules that are stable for every
  x >= 0; and how they compare: 1 - x <= CN <= e^(-x) <= 1 / (1 + x). For rules.hpp and the studies of eigenvalues and
  horizon. Not claimed: R as it is rounded; stability of varying x (non_expansive.v has that for any steps).
*)
From Coq Require Import Reals Lra Psatz.
From Coquelicot Require Import Coquelicot.
From deltaproof.float Require Import interval_z.
From deltaproof.ode Require Import exact_flow.
Import ITZ.
Import Tactic(i_prec, i_taylor, i_degree).
Open Scope R_scope.

Definition euler x := 1 - x.
Definition rk2 x := 1 - x + x^2/2.
Definition rk3 x := 1 - x + x^2/2 - x^3/6.
Definition rk4 x := 1 - x + x^2/2 - x^3/6 + x^4/24.
Definition implicit_euler x := / (1 + x).
Definition crank_nicolson x := (2 - x) / (2 + x).
Definition exact x := exp (- x).

(** Euler, DeltaNet's rule, is stable exactly for 0 <= x <= 2. *)
Theorem euler_stable x : Rabs (euler x) <= 1 <-> 0 <= x <= 2.
Proof. unfold euler; split; [intros H%Rabs_le_between | intros H; apply Rabs_le_between]; lra. Qed.

(** 2 is the end of Euler's interval of stability ... *)
Theorem euler_limit : (forall x, 0 <= x <= 2 -> Rabs (euler x) <= 1) /\ (forall x, 2 < x -> 1 < Rabs (euler x)).
Proof.
split; intros x H; [apply euler_stable; exact H|].
unfold euler; rewrite Rabs_left; lra.
Qed.

(** RK2 too is stable exactly for 0 <= x <= 2. *)
Theorem rk2_stable x : Rabs (rk2 x) <= 1 <-> 0 <= x <= 2.
Proof. unfold rk2; split; [intros H%Rabs_le_between | intros H; apply Rabs_le_between]; nra. Qed.

(** ... and of RK2's. *)
Theorem rk2_limit : (forall x, 0 <= x <= 2 -> Rabs (rk2 x) <= 1) /\ (forall x, 2 < x -> 1 < Rabs (rk2 x)).
Proof.
split; intros x H; [apply rk2_stable; exact H|].
unfold rk2; rewrite Rabs_right; nra.
Qed.

(** The edge of RK3 is the real root of x^3 - 3 x^2 + 6 x - 12, where R = -1. *)
Definition rk3_cubic x := x^3 - 3*x^2 + 6*x - 12.

Lemma rk3_plus_one x : rk3 x + 1 = - rk3_cubic x / 6.
Proof. unfold rk3, rk3_cubic; field. Qed.

Lemma rk3_cubic_increasing x y : x < y -> rk3_cubic x < rk3_cubic y.
Proof.
intros H; enough (0 < (y - x) * (x^2 + x*y + y^2 - 3*(x+y) + 6)) by (unfold rk3_cubic; nra).
apply Rmult_lt_0_compat; [lra|].
pose proof (pow2_ge_0 (x - y)); pose proof (pow2_ge_0 (x + y - 2)); nra.
Qed.

(** RK3 is stable exactly for x >= 0 with x^3 - 3 x^2 + 6 x - 12 <= 0. *)
Theorem rk3_stable x : Rabs (rk3 x) <= 1 <-> 0 <= x /\ rk3_cubic x <= 0.
Proof.
pose proof (rk3_plus_one x) as E.
assert (D : 1 - rk3 x = x * (1 - x/2 + x^2/6)) by (unfold rk3; field).
assert (P : 0 < 1 - x/2 + x^2/6) by nra.
split.
- intros H%Rabs_le_between; split; [|lra].
  destruct (Rle_or_lt 0 x) as [|N]; [assumption|].
  assert (x * (1 - x/2 + x^2/6) < 0) by nra. lra.
- intros [H0 Hc]; apply Rabs_le_between.
  assert (0 <= x * (1 - x/2 + x^2/6)) by (apply Rmult_le_pos; lra). lra.
Qed.

(** The double nearest to 2.5127453266183286 is the largest X for which RK3 is stable on [0, X]: there it is, at the next
    double it is not. *)
Theorem rk3_limit :
  Rabs (2.5127453266183286 - 5658199458317630 / 2^51) < / 2^52
  /\ (forall x, 0 <= x <= 5658199458317630 / 2^51 -> Rabs (rk3 x) <= 1)
  /\ (forall x, 5658199458317631 / 2^51 <= x -> 1 < Rabs (rk3 x)).
Proof.
split; [apply Rabs_lt_between; lra|].
assert (L : rk3_cubic (5658199458317630 / 2^51) < 0) by (unfold rk3_cubic; lra).
assert (U : 0 < rk3_cubic (5658199458317631 / 2^51)) by (unfold rk3_cubic; lra).
split; intros x H.
- apply rk3_stable; split; [lra|].
  destruct (Rle_lt_or_eq_dec x _ (proj2 H)) as [h| ->]; [|lra].
  pose proof (rk3_cubic_increasing _ _ h); lra.
- assert (0 < rk3_cubic x).
  { destruct (Rle_lt_or_eq_dec _ x H) as [h|<-]; [|exact U].
    pose proof (rk3_cubic_increasing _ _ h); lra. }
  pose proof (rk3_plus_one x). rewrite Rabs_left; lra.
Qed.

(** The edge of RK4 is the real root of x^3 - 4 x^2 + 12 x - 24, where R = 1. *)
Definition rk4_cubic x := x^3 - 4*x^2 + 12*x - 24.

Lemma rk4_minus_one x : rk4 x - 1 = x / 24 * rk4_cubic x.
Proof. unfold rk4, rk4_cubic; field. Qed.

Lemma rk4_cubic_increasing x y : x < y -> rk4_cubic x < rk4_cubic y.
Proof.
intros H; enough (0 < (y - x) * (x^2 + x*y + y^2 - 4*(x+y) + 12)) by (unfold rk4_cubic; nra).
apply Rmult_lt_0_compat; [lra|].
pose proof (pow2_ge_0 (x - y)); pose proof (pow2_ge_0 (x + y - 8/3)); nra.
Qed.

(** RK4 is positive everywhere: it never reflects. *)
Theorem rk4_positive x : 0 < rk4 x.
Proof. unfold rk4; nra. Qed.

(** RK4 is stable exactly for x >= 0 with x^3 - 4 x^2 + 12 x - 24 <= 0. *)
Theorem rk4_stable x : Rabs (rk4 x) <= 1 <-> 0 <= x /\ rk4_cubic x <= 0.
Proof.
pose proof (rk4_minus_one x) as E; pose proof (rk4_positive x) as P.
rewrite Rabs_right by lra.
assert (N : x <= 0 -> rk4_cubic x < 0) by (intros h; unfold rk4_cubic; nra).
split.
- intros H; assert (x / 24 * rk4_cubic x <= 0) by lra.
  destruct (Rle_or_lt 0 x) as [h0|h0]; [split; [exact h0|]|].
  + destruct (Rle_or_lt (rk4_cubic x) 0) as [|hc]; [assumption|].
    destruct h0 as [h0|<-]; [nra|]; apply Rlt_le, N; lra.
  + pose proof (N (Rlt_le _ _ h0)); nra.
- intros [H0 Hc]; assert (x / 24 * rk4_cubic x <= 0) by nra. lra.
Qed.

(** The double nearest to 2.7852935634052813 is the largest X for which RK4 is stable on [0, X]. *)
Theorem rk4_limit :
  Rabs (2.7852935634052813 - 6271923527134733 / 2^51) < / 2^52
  /\ (forall x, 0 <= x <= 6271923527134733 / 2^51 -> Rabs (rk4 x) <= 1)
  /\ (forall x, 6271923527134734 / 2^51 <= x -> 1 < Rabs (rk4 x)).
Proof.
split; [apply Rabs_lt_between; lra|].
assert (L : rk4_cubic (6271923527134733 / 2^51) < 0) by (unfold rk4_cubic; lra).
assert (U : 0 < rk4_cubic (6271923527134734 / 2^51)) by (unfold rk4_cubic; lra).
split; intros x H.
- apply rk4_stable; split; [lra|].
  destruct (Rle_lt_or_eq_dec x _ (proj2 H)) as [h| ->]; [|lra].
  pose proof (rk4_cubic_increasing _ _ h); lra.
- assert (0 < rk4_cubic x).
  { destruct (Rle_lt_or_eq_dec _ x H) as [h|<-]; [|exact U].
    pose proof (rk4_cubic_increasing _ _ h); lra. }
  pose proof (rk4_minus_one x).
  assert (0 < x / 24 * rk4_cubic x) by (apply Rmult_lt_0_compat; lra).
  rewrite Rabs_right; lra.
Qed.

(** Implicit Euler, Longhorn, stays in (0, 1] for every x >= 0. *)
Theorem implicit_euler_range x : 0 <= x -> 0 < implicit_euler x <= 1.
Proof.
intros H; unfold implicit_euler; split; [apply Rinv_0_lt_compat; lra|].
rewrite <- Rinv_1; apply Rinv_le_contravar; lra.
Qed.

(** Crank-Nicolson stays in (-1, 1] for every x >= 0, and is negative exactly beyond 2. *)
Theorem crank_nicolson_range x : 0 <= x -> -1 < crank_nicolson x <= 1 /\ (crank_nicolson x < 0 <-> 2 < x).
Proof.
intros H; unfold crank_nicolson; assert (D : 0 < 2 + x) by lra; split; [split|split].
- apply Rmult_lt_reg_r with (1 := D); field_simplify; lra.
- apply Rmult_le_reg_r with (1 := D); field_simplify; lra.
- intros N; apply (Rmult_lt_compat_r _ _ _ D) in N; field_simplify in N; lra.
- intros N; apply Rmult_lt_reg_r with (1 := D); field_simplify; lra.
Qed.

(** The exact flow stays in (0, 1] for every x >= 0. *)
Theorem exact_range x : 0 <= x -> 0 < exact x <= 1.
Proof. intros H; unfold exact; split; [apply exp_pos | apply exp_minus_le1, H]. Qed.

(** A function that grows from 0 on: the derivative is not negative. *)
Lemma increasing_from_0 (f df : R -> R) :
  (forall x, 0 <= x -> is_derive f x (df x)) -> (forall x, 0 <= x -> 0 <= df x) -> forall x, 0 <= x -> f 0 <= f x.
Proof.
intros Hd Hp x Hx.
destruct (MVT_gen f 0 x df) as [c [Hc He]].
- intros y Hy; apply Hd; rewrite Rmin_left in Hy; lra.
- intros y Hy; apply continuity_pt_filterlim.
  apply (@ex_derive_continuous R_AbsRing R_NormedModule f y).
  exists (df y); apply Hd; rewrite Rmin_left in Hy; lra.
- rewrite Rmin_left, Rmax_right in Hc by lra.
  assert (0 <= df c) by (apply Hp; lra). nra.
Qed.

(** 1 - x <= e^(-x). *)
Theorem euler_below_exact x : 0 <= x -> euler x <= exact x.
Proof.
intros Hx; unfold euler, exact; enough (0 <= exp (-x) - (1 - x)) by lra.
replace 0 with ((fun x => exp (-x) - (1 - x)) 0) by (simpl; rewrite Ropp_0, exp_0; ring).
apply (increasing_from_0 (fun x => exp (-x) - (1 - x)) (fun x => 1 - exp (-x))); [| |exact Hx].
- intros y _; auto_derive; [exact I | ring].
- intros y Hy; pose proof (exp_minus_le1 y Hy); lra.
Qed.

(** e^(-x) <= 1 - x + x^2 / 2. *)
Theorem exact_below_rk2 x : 0 <= x -> exact x <= rk2 x.
Proof.
intros Hx; unfold rk2, exact; enough (0 <= (1 - x + x^2/2) - exp (-x)) by lra.
replace 0 with ((fun x => (1 - x + x^2/2) - exp (-x)) 0) by (simpl; rewrite Ropp_0, exp_0; field).
apply (increasing_from_0 (fun x => (1 - x + x^2/2) - exp (-x)) (fun x => exp (-x) - (1 - x))); [| |exact Hx].
- intros y _; auto_derive; [exact I | field].
- intros y Hy; pose proof (euler_below_exact y Hy); unfold euler, exact in *; lra.
Qed.

(** Euler's local error is at most x^2 / 2. *)
Theorem euler_local_error x : 0 <= x -> Rabs (euler x - exact x) <= x^2/2.
Proof.
intros H; pose proof (euler_below_exact x H); pose proof (exact_below_rk2 x H).
unfold rk2, euler in *; apply Rabs_le_between; lra.
Qed.

(** e^(-x) <= 1 / (1 + x). *)
Theorem exact_below_implicit_euler x : 0 <= x -> exact x <= implicit_euler x.
Proof.
intros H; unfold exact, implicit_euler; rewrite exp_Ropp.
apply Rinv_le_contravar; [lra|].
pose proof (exp_ineq1_le x); lra.
Qed.

(** 1 - x <= (2 - x) / (2 + x). *)
Theorem euler_below_crank_nicolson x : 0 <= x -> euler x <= crank_nicolson x.
Proof.
intros H; unfold euler, crank_nicolson.
apply Rmult_le_reg_r with (2 + x); [lra|]. field_simplify; nra.
Qed.

(** (2 - x) / (2 + x) <= e^(-x). *)
Theorem crank_nicolson_below_exact x : 0 <= x -> crank_nicolson x <= exact x.
Proof.
intros H; unfold crank_nicolson, exact.
apply Rmult_le_reg_r with (2 + x); [lra|].
replace ((2 - x) / (2 + x) * (2 + x)) with (2 - x) by (field; lra).
enough (0 <= exp (-x) * (2 + x) - (2 - x)) by lra.
replace 0 with ((fun x => exp (-x) * (2 + x) - (2 - x)) 0) by (simpl; rewrite Ropp_0, exp_0; field).
apply (increasing_from_0 (fun x => exp (-x) * (2 + x) - (2 - x)) (fun x => 1 - exp (-x) * (1 + x))); [| |exact H].
- intros y _; auto_derive; [exact I | field].
- intros y Hy; pose proof (exp_ineq1_le y); pose proof (exp_pos (-y)).
  assert (exp (-y) * exp y = 1) by (rewrite <- exp_plus, Rplus_opp_l; apply exp_0).
  nra.
Qed.

(** RK4 is within 1/120 of the exact flow for x <= 1 ... *)
Theorem rk4_accuracy x : 0 <= x <= 1 -> Rabs (rk4 x - exact x) <= 1/120.
Proof. unfold rk4, exact; intros H; interval with (i_taylor x, i_degree 8, i_prec 60). Qed.

(** ... and within 0.2 for x <= 2. *)
Theorem rk4_accuracy_wide x : 0 <= x <= 2 -> Rabs (rk4 x - exact x) <= 0.2.
Proof. unfold rk4, exact; intros H; interval with (i_taylor x, i_prec 60). Qed.

(** At the edge of its stability Euler is more than 1.13 away from the exact flow. *)
Theorem euler_gap : Rabs (euler 2 - exact 2) >= 1.13.
Proof. unfold euler, exact; interval with (i_prec 60). Qed.

(** Where the comparison is strict: at x = 1 the four values are 0, 1/3, e^(-1) and 1/2. *)
Example comparison_instance :
  euler 1 = 0 /\ crank_nicolson 1 = 1/3 /\ 0.36 < exact 1 < 0.37 /\ implicit_euler 1 = 1/2.
Proof.
unfold euler, crank_nicolson, exact, implicit_euler.
split; [lra|split; [field|split; [|field]]]; split; interval with (i_prec 60).
Qed.

(** Both edges are crossed: at x = 3 RK3 and RK4 have left [-1, 1], as Euler has. *)
Example edges_instance : euler 3 = -2 /\ rk3 3 = -2 /\ rk4 3 = 11/8.
Proof. unfold euler, rk3, rk4; lra. Qed.
