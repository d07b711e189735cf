(* SPDX-FileCopyrightText: 2026 The deltaproof authors
   SPDX-License-Identifier: MIT *)

(** The rounding of EFLA's coefficient a = -expm1(-b n) / n, by Gappa's tactic on Flocq's rounding operators.

    For whoever computes a in fp32 and stores it in bf16 (or keeps it in fp32): with an expm1 within one unit in the last
    place (relative 2^-23) at the rounded argument b n, the quotient is within 21 2^-26 and the stored value within
    1026 2^-18 (1.002 u) of the exact (1 - e^(-b n))/n, relatively. E stands for 1 - e^(-x) at the rounded x = fl(b n), d for
    the error of expm1, c for what rounding x does to E: its relative condition number is at most 1
    ([one_minus_exp_condition]), so |c| <= 2^-24.

    Not claimed: that a library's expm1 is that good; values of n or E outside [2^-40, 2^40] and [2^-40, 1]; the naive form
    (1 - exp(-x))/n, which loses all digits near 0. *)
From Coq Require Import Reals ZArith Lra.
From Flocq Require Import Core.
From Gappa Require Import Gappa_tactic.
Open Scope R_scope.

Notation bf16_nearest := (round radix2 (FLT_exp (-133) 8) ZnearestE).
Notation fp32_nearest := (round radix2 (FLT_exp (-149) 24) ZnearestE).

(** The square of a rounded entry, relatively: 2u + u^2. *)
Theorem square_of_rounded_entry k : 1 / 1152921504606846976 <= k <= 1 ->
  Rabs ((bf16_nearest k * bf16_nearest k - k * k) / (k * k)) <= 513 / 65536.
Proof. intros H. gappa. Qed.

Theorem alpha_fp32 n E d c :
  1 / 1099511627776 <= n <= 1099511627776 -> 1 / 1099511627776 <= E <= 1 -> Rabs d <= 1 / 8388608 -> Rabs c <= 1 / 16777216 ->
  Rabs ((fp32_nearest (E * (1 + d) / n) - E * (1 + c) / n) / (E * (1 + c) / n)) <= 21 / 67108864.
Proof. intros Hn HE Hd Hc. gappa. Qed.

Theorem alpha_bf16 n E d c :
  1 / 1099511627776 <= n <= 1099511627776 -> 1 / 1099511627776 <= E <= 1 -> Rabs d <= 1 / 8388608 -> Rabs c <= 1 / 16777216 ->
  Rabs ((bf16_nearest (fp32_nearest (E * (1 + d) / n)) - E * (1 + c) / n) / (E * (1 + c) / n)) <= 1026 / 262144.
Proof. intros Hn HE Hd Hc. gappa. Qed.

(** Between a chord and the curve: 1 - e^(-s x) >= s (1 - e^(-x)). *)
Lemma one_minus_exp_concave x s : 0 <= s <= 1 -> s * (1 - exp (- x)) <= 1 - exp (- (s * x)).
Proof.
intros Hs; pose proof (exp_pos (- (s * x))) as Hm.
assert (H1 : exp (- (s * x)) * (1 + (- x - - (s * x))) <= exp (- x)).
{ replace (exp (- x)) with (exp (- (s * x)) * exp (- x - - (s * x))) by (rewrite <- exp_plus; f_equal; ring).
  apply Rmult_le_compat_l; [lra | apply exp_ineq1_le]. }
assert (H2 : exp (- (s * x)) * (1 + s * x) <= 1).
{ replace 1 with (exp (- (s * x)) * exp (s * x)) at 2 by (rewrite <- exp_plus, Rplus_opp_l; apply exp_0).
  apply Rmult_le_compat_l; [lra | apply exp_ineq1_le]. }
set (m := exp (- (s * x))) in *. set (e := exp (- x)) in *.
assert (s * (m * (1 + (- x - - (s * x)))) <= s * e) by (apply Rmult_le_compat_l; lra).
assert ((1 - s) * (m * (1 + s * x)) <= (1 - s) * 1) by (apply Rmult_le_compat_l; lra).
replace (s * (m * (1 + (- x - - (s * x))))) with (m * (s - s * x * (1 - s))) in * by ring.
replace ((1 - s) * (m * (1 + s * x))) with (m * ((1 - s) + s * x * (1 - s))) in * by ring. lra.
Qed.

(** A relative error w of the argument is at most a relative error w of 1 - e^(-x). *)
Theorem one_minus_exp_condition x y w : 0 < x -> 0 <= y -> Rabs (y - x) <= w * x ->
  Rabs ((1 - exp (- y)) - (1 - exp (- x))) <= w * (1 - exp (- x)).
Proof.
intros Hx Hy H.
assert (Hmono : forall s t, s <= t -> exp (- t) <= exp (- s)).
{ intros s t [Hst| ->]; [left; apply exp_increasing; lra | lra]. }
assert (Hf : 0 <= 1 - exp (- x)).
{ pose proof (Hmono 0 x ltac:(lra)) as H0. rewrite Ropp_0, exp_0 in H0. lra. }
assert (Hw : forall r, r * x <= w * x -> r <= w) by (intros r Hr; apply Rmult_le_reg_r with x; assumption).
destruct (Rle_or_lt y x) as [Hyx|Hyx].
- rewrite Rabs_left1 in H by lra. pose proof (Hmono y x Hyx). rewrite Rabs_left1 by lra.
  pose proof (one_minus_exp_concave x (y / x)) as Hc. replace (y / x * x) with y in Hc by (field; lra).
  assert (Hs : 0 <= y / x <= 1).
  { split; [apply Rmult_le_pos; [exact Hy | left; apply Rinv_0_lt_compat; exact Hx]|].
    apply Rmult_le_reg_r with x; [exact Hx|]. replace (y / x * x) with y by (field; lra). lra. }
  specialize (Hc Hs). assert (Hr : 1 - y / x <= w).
  { apply Hw. replace ((1 - y / x) * x) with (x - y) by (field; lra). lra. }
  assert ((1 - y / x) * (1 - exp (- x)) <= w * (1 - exp (- x))) by (apply Rmult_le_compat_r; assumption). lra.
- rewrite Rabs_pos_eq in H by lra. pose proof (Hmono x y ltac:(lra)). rewrite Rabs_pos_eq by lra.
  pose proof (one_minus_exp_concave y (x / y)) as Hc. replace (x / y * y) with x in Hc by (field; lra).
  assert (Hs : 0 <= x / y <= 1).
  { split; [apply Rmult_le_pos; [lra | left; apply Rinv_0_lt_compat; lra]|].
    apply Rmult_le_reg_r with y; [lra|]. replace (x / y * y) with x by (field; lra). lra. }
  specialize (Hc Hs).
  assert (Hy2 : 1 - exp (- y) <= y / x * (1 - exp (- x))).
  { apply Rmult_le_reg_l with (x / y); [apply Rdiv_lt_0_compat; lra|].
    replace (x / y * (y / x * (1 - exp (- x)))) with (1 - exp (- x)) by (field; lra). exact Hc. }
  assert (Hr : y / x - 1 <= w).
  { apply Hw. replace ((y / x - 1) * x) with (y - x) by (field; lra). lra. }
  assert ((y / x - 1) * (1 - exp (- x)) <= w * (1 - exp (- x))) by (apply Rmult_le_compat_r; assumption). lra.
Qed.

(** The whole chain: x = fl32 (b n), expm1 within d, one division in fp32, one store in bf16. *)
Theorem efla_coefficient_bf16 n b x d :
  1 / 1099511627776 <= n <= 1099511627776 -> 0 <= b -> 0 < x -> Rabs (b * n - x) <= 1 / 16777216 * x ->
  1 / 1099511627776 <= 1 - exp (- x) -> Rabs d <= 1 / 8388608 ->
  Rabs (bf16_nearest (fp32_nearest ((1 - exp (- x)) * (1 + d) / n)) - (1 - exp (- (b * n))) / n)
    <= 1026 / 262144 * ((1 - exp (- (b * n))) / n).
Proof.
intros Hn Hb Hx Hxb HE Hd.
assert (Hbn : 0 <= b * n) by (apply Rmult_le_pos; lra).
pose proof (one_minus_exp_condition x (b * n) (1 / 16777216) Hx Hbn Hxb) as Hc.
set (E := 1 - exp (- x)) in *. set (E0 := 1 - exp (- (b * n))) in *.
assert (HE1 : E <= 1) by (unfold E; pose proof (exp_pos (- x)); lra).
set (c := (E0 - E) / E).
assert (Hcb : Rabs c <= 1 / 16777216).
{ unfold c, Rdiv. rewrite Rabs_mult, (Rabs_pos_eq (/ E)) by (left; apply Rinv_0_lt_compat; lra).
  apply Rmult_le_reg_r with E; [lra|]. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra. exact Hc. }
assert (EE : E0 = E * (1 + c)) by (unfold c; field; lra).
pose proof (alpha_bf16 n E d c Hn (conj HE HE1) Hd Hcb) as H. rewrite <- EE in H.
assert (HE0 : 0 < E0).
{ rewrite EE. apply Rabs_le_inv in Hcb. apply Rmult_lt_0_compat; lra. }
assert (HA : 0 < E0 / n) by (apply Rdiv_lt_0_compat; lra).
set (a := bf16_nearest (fp32_nearest (E * (1 + d) / n))) in *. set (A := E0 / n) in *.
unfold Rdiv in H at 1. rewrite Rabs_mult, (Rabs_pos_eq (/ A)) in H by (left; apply Rinv_0_lt_compat; exact HA).
apply Rmult_le_reg_r with (/ A); [apply Rinv_0_lt_compat; exact HA|].
rewrite Rmult_assoc, Rinv_r, Rmult_1_r by lra. exact H.
Qed.

(** The ranges are inhabited: n = b = x = 1 with an exact expm1. *)
Example efla_coefficient_bf16_applies :
  Rabs (bf16_nearest (fp32_nearest ((1 - exp (- (1))) * (1 + 0) / 1)) - (1 - exp (- (1 * 1))) / 1)
    <= 1026 / 262144 * ((1 - exp (- (1 * 1))) / 1).
Proof.
assert (He : exp (- (1)) <= / 2).
{ rewrite exp_Ropp. apply Rinv_le_contravar; [lra|]. pose proof (exp_ineq1_le 1); lra. }
apply efla_coefficient_bf16; rewrite ?Rabs_R0; try lra.
rewrite Rmult_1_l, Rminus_diag_eq, Rabs_R0 by reflexivity; lra.
Qed.
