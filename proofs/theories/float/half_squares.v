(* SPDX-FileCopyrightText: 2026 The deltaproof authors
   SPDX-License-Identifier: MIT *)

(** The half square that stands for a row's norm in the fp64 tier: what a step adds to it.

    The tier does not sum the squares of a row at every step. It carries H with |s|^2 / 2 <= H and adds w (p + w k2), k2 half the
    square of the key: exactly what an exact write adds. [half_square_line]: for the row as it is rounded, underflow included, that
    plus (gamma + 8 u) Z with Z = H + w^2 k2 is enough, up to what underflow costs. The code adds (K + 32) u Z and 2^-1000.

    Not claimed: the roundings of H itself (9 u Z, on paper), the bound over a block of pairs (on paper), decays. *)
From Coq Require Import Reals ZArith Lra Lia Psatz.
From Flocq Require Import Core.
From deltaproof.float Require Import vectors tier_radius.
From deltaproof.float Require oracle_radius.
Open Scope R_scope.

Section HalfSquare.
Variables u eta : R.
Hypothesis u_small : 0 <= u <= / 1024.
Hypothesis eta_ge0 : 0 <= eta.
Variable K : nat.
Variable gamma : R.
Hypothesis gamma_bound : (1 + u)^K - 1 <= gamma.
Variables (k_hat d_hat s_hat : nat -> R) (p w H k2 : R).
Hypothesis H_bound : sq K d_hat / 2 <= H.
Hypothesis k2_bound : sq K k_hat / 2 <= k2.
Hypothesis predicted : Rabs (p - dot K k_hat d_hat) <= gamma * (norm K k_hat * norm K d_hat) + lost_product eta K gamma.
Hypothesis s_rounded : forall i, (i < K)%nat ->
  Rabs (s_hat i - (d_hat i + k_hat i * w)) <= u * Rabs (s_hat i) + u * (Rabs (k_hat i) * Rabs w) + 2 * eta.

Definition scale_Z : R := H + w^2 * k2.

Theorem half_square_line :
  sq K s_hat / 2 <= H + w * (p + w * k2) + (gamma + 8 * u) * scale_Z
    + (Rabs w * lost_product eta K gamma + 3 * sqrt scale_Z * lost_row eta K + 2 * (lost_row eta K)^2).
Proof.
pose proof (gamma_ge0 u u_small K gamma gamma_bound) as Hg. pose proof (lost_row_ge0 eta K) as Hl.
pose proof (lost_product_ge0 u eta u_small eta_ge0 K gamma gamma_bound) as HL.
pose proof (sq_ge0 K d_hat) as Hsd. pose proof (sq_ge0 K k_hat) as Hsk.
assert (Hw2 : 0 <= w^2) by apply pow2_ge_0.
assert (HwK : w^2 * sq K k_hat <= 2 * (w^2 * k2)) by (replace (2 * (w^2 * k2)) with (w^2 * (2 * k2)) by ring; apply Rmult_le_compat_l; lra).
set (Z := scale_Z). assert (HZd : Z = H + w^2 * k2) by reflexivity.
assert (HwK0 : 0 <= w^2 * sq K k_hat) by (apply Rmult_le_pos; assumption).
assert (HZ0 : 0 <= Z) by lra.
set (Y := sqrt Z). assert (HY0 : 0 <= Y) by apply sqrt_pos. assert (HY : Y^2 = Z) by (unfold Y; rewrite <- Rsqr_pow2; apply Rsqr_sqrt; exact HZ0).
pose proof (norm_ge0 K k_hat) as Hnk. pose proof (norm_ge0 K d_hat) as Hnd.
pose proof (norm_sqr K k_hat) as Ek. pose proof (norm_sqr K d_hat) as Ed.
set (W := Rabs w). assert (HW : 0 <= W) by apply Rabs_pos. assert (EW : W^2 = w^2) by (unfold W; rewrite <- !Rsqr_pow2; symmetry; apply Rsqr_abs).
(* The written row before it is rounded. *)
pose (D := fun i => d_hat i + w * k_hat i).
assert (ED : sq K D = sq K d_hat + 2 * (w * dot K k_hat d_hat) + w^2 * sq K k_hat).
{ unfold D. rewrite sq_add, dot_scal_r, sq_scal.
  assert (E : dot K d_hat k_hat = dot K k_hat d_hat) by (unfold dot; apply Rsum_ext; intros; ring). rewrite E. ring. }
assert (Hcross : W * (norm K k_hat * norm K d_hat) <= Z).
{ assert (0 <= (W * norm K k_hat - norm K d_hat)^2) by apply pow2_ge_0.
  assert ((W * norm K k_hat)^2 = w^2 * sq K k_hat) by (rewrite Rpow_mult_distr, EW, Ek; reflexivity). nra. }
assert (Hdot : w * dot K k_hat d_hat <= w * p + W * (gamma * (norm K k_hat * norm K d_hat) + lost_product eta K gamma)).
{ assert (A : Rabs (w * (dot K k_hat d_hat - p)) <= W * (gamma * (norm K k_hat * norm K d_hat) + lost_product eta K gamma)).
  { rewrite Rabs_mult. fold W. apply Rmult_le_compat_l; [exact HW|]. rewrite Rabs_minus_sym. exact predicted. }
  apply Rabs_le_inv in A. lra. }
assert (Hgam : gamma * (W * (norm K k_hat * norm K d_hat)) <= gamma * Z) by (apply Rmult_le_compat_l; assumption).
assert (HhalfD : sq K D / 2 <= H + w * (p + w * k2) + gamma * Z + W * lost_product eta K gamma) by lra.
assert (HN : norm K D <= 2 * Y).
{ apply norm_le; [lra|]. replace ((2 * Y)^2) with (4 * Y^2) by ring. rewrite HY, ED.
  assert (A : w * dot K k_hat d_hat <= W * (norm K k_hat * norm K d_hat)).
  { eapply Rle_trans; [apply Rle_abs|]. rewrite Rabs_mult. fold W. apply Rmult_le_compat_l; [exact HW | apply cauchy_schwarz]. }
  lra. }
(* What rounding it adds. *)
pose (res := fun i => s_hat i - D i). pose (kw := fun i => w * k_hat i).
assert (HQ : norm K kw <= 3 / 2 * Y).
{ apply norm_le; [lra|]. replace ((3 / 2 * Y)^2) with (9 / 4 * Y^2) by field. rewrite HY. unfold kw. rewrite sq_scal. lra. }
set (l := lost_row eta K) in *.
assert (HR : norm K res <= u * norm K s_hat + u * norm K kw + l).
{ pose (two := fun i => Rabs (u * s_hat i) + Rabs (u * kw i)).
  assert (Htwo : norm K two <= u * norm K s_hat + u * norm K kw).
  { eapply Rle_trans; [apply (oracle_radius.norm_le_sum K two (fun i => u * s_hat i) (fun i => u * kw i))|].
    - intros i _. unfold two. rewrite Rabs_pos_eq; [lra|]. apply Rplus_le_le_0_compat; apply Rabs_pos.
    - rewrite !norm_scal, (Rabs_pos_eq u) by lra. lra. }
  eapply Rle_trans; [apply (oracle_radius.norm_le_sum K res two (fun _ => 2 * eta))|].
  - intros i Hi. pose proof (s_rounded i Hi) as Hs. unfold two, res, D, kw.
    rewrite (Rabs_pos_eq (Rabs (u * s_hat i) + _)) by (apply Rplus_le_le_0_compat; apply Rabs_pos).
    rewrite !Rabs_mult, (Rabs_pos_eq u), (Rabs_pos_eq 2), (Rabs_pos_eq eta) by lra.
    replace (d_hat i + w * k_hat i) with (d_hat i + k_hat i * w) by ring. lra.
  - change (norm K (fun _ => 2 * eta)) with l. lra. }
assert (HX : norm K s_hat <= norm K D + norm K res).
{ eapply Rle_trans; [|apply norm_triangle]. right. apply norm_ext. intros i _. unfold res. ring. }
set (X := norm K s_hat) in *. set (N := norm K D) in *. set (r := norm K res) in *.
assert (HN0 : 0 <= N) by apply norm_ge0. assert (HR0 : 0 <= r) by apply norm_ge0. assert (HX0 : 0 <= X) by apply norm_ge0.
assert (HR1 : r <= (351 / 100) * (u * Y) + (101 / 100) * l).
{ assert (u * X <= u * (N + r)) by (apply Rmult_le_compat_l; lra).
  assert (u * norm K kw <= u * (3 / 2 * Y)) by (apply Rmult_le_compat_l; lra).
  assert (u * N <= u * (2 * Y)) by (apply Rmult_le_compat_l; lra).
  assert (u * r <= / 1024 * r) by (apply Rmult_le_compat_r; lra).
  assert (0 <= u * Y) by (apply Rmult_le_pos; lra). lra. }
assert (Hs : sq K s_hat <= (N + r)^2) by (apply sq_le_of_norm; exact HX).
assert (HNR : N * r <= 2 * Y * ((351 / 100) * (u * Y) + (101 / 100) * l)) by (apply Rmult_le_compat; lra).
assert (HRR : r^2 <= 2 * ((351 / 100) * (u * Y))^2 + 2 * ((101 / 100) * l)^2).
{ assert (0 <= u * Y) by (apply Rmult_le_pos; lra).
  assert (r^2 <= ((351 / 100) * (u * Y) + (101 / 100) * l)^2) by (apply pow_incr; lra).
  assert (0 <= ((351 / 100) * (u * Y) - (101 / 100) * l)^2) by apply pow2_ge_0. lra. }
assert (HNN : N^2 = sq K D) by apply norm_sqr.
assert (Huu : (u * Y)^2 <= / 1024 * (u * Z)).
{ replace ((u * Y)^2) with (u * (u * Y^2)) by ring. rewrite HY. apply Rmult_le_compat_r; [apply Rmult_le_pos; lra | lra]. }
assert (Hyl : 0 <= Y * l) by (apply Rmult_le_pos; assumption).
assert (HuZ : 0 <= u * Z) by (apply Rmult_le_pos; lra).
assert (E1 : 2 * Y * ((351 / 100) * (u * Y) + (101 / 100) * l) = (702 / 100) * (u * Z) + (202 / 100) * (Y * l)) by (rewrite <- HY; field).
assert (Hll : 0 <= l^2) by apply pow2_ge_0.
replace (((351 / 100) * (u * Y))^2) with ((123201 / 10000) * (u * Y)^2) in HRR by field.
replace (((101 / 100) * l)^2) with ((10201 / 10000) * l^2) in HRR by field.
fold W. fold Z. fold Y. lra.
Qed.
End HalfSquare.
