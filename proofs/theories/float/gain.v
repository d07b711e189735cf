(* SPDX-FileCopyrightText: 2026 The deltaproof authors
   SPDX-License-Identifier: MIT *)

(** Why the exact flow (EFLA) needs no clamp: its coefficient tolerates large errors.

    The step of EFLA is a = (1 - e^(-b n)) / n with n = |k|^2 (a = b at n = 0). For whoever computes a and n in a low
    precision: the step stays non-expansive, 0 <= a n <= 2, with a relative error of up to 1/2 in a and of up to 1/4 in n,
    so in bf16, fp16 and fp32 it always is; and the constants of this trade are exact in the limit of large b n.

    Not claimed: that the result is accurate (float/alpha.v bounds the rounding of a); that a kernel's a has so small an
    error: the naive (1 - exp(-x))/n loses all digits near 0. *)
From Coq Require Import Reals Lra.
From Flocq Require Import Core.
Open Scope R_scope.

Definition is_gain (n b a : R) : Prop := a * n = 1 - exp (- (b * n)).

(** The defining equation has a solution: (1 - e^(-bn))/n, and any number, b in particular, where n = 0. *)
Lemma gain_exists n b : is_gain n b (if Req_EM_T n 0 then b else (1 - exp (- (b * n))) / n).
Proof.
unfold is_gain; destruct (Req_EM_T n 0) as [->|Hn].
- rewrite !Rmult_0_r, Ropp_0, exp_0; ring.
- field; exact Hn.
Qed.

Lemma gain_eigenvalue n b a : 0 <= b * n -> is_gain n b a -> 0 <= a * n < 1.
Proof.
unfold is_gain; intros Hx ->. pose proof (exp_pos (- (b * n))).
assert (exp (- (b * n)) <= 1); [|lra].
rewrite <- exp_0; destruct Hx as [Hx|Hx]; [left; apply exp_increasing; lra | right; f_equal; lra].
Qed.

(** n_hat: the squared norm as computed; a_hat: the coefficient, from n_hat, as computed. *)
Theorem gain_robust n n_hat b a a_hat e_n e_a :
  0 <= n -> 0 <= b -> n_hat = n * (1 + e_n) -> Rabs e_n <= / 4 -> is_gain n_hat b a -> a_hat = a * (1 + e_a) -> Rabs e_a <= / 2 ->
  0 <= a_hat * n <= 2.
Proof.
intros Hn Hb Hnh He Ha -> Hea; apply Rabs_le_inv in He, Hea.
assert (Hx : 0 <= b * n_hat) by (rewrite Hnh; apply Rmult_le_pos; [lra | apply Rmult_le_pos; lra]).
pose proof (gain_eigenvalue n_hat b a Hx Ha) as H. rewrite Hnh in H.
replace (a * (n * (1 + e_n))) with ((a * n) * (1 + e_n)) in H by ring.
set (q := a * n) in *. assert (Hq0 : 0 <= q).
{ apply Rmult_le_reg_r with (1 + e_n); lra. }
assert (Hq : q <= 4 / 3).
{ apply Rmult_le_reg_r with (3 / 4); [lra|]. assert (q * (3 / 4) <= q * (1 + e_n)) by (apply Rmult_le_compat_l; lra). lra. }
replace (a * (1 + e_a) * n) with (q * (1 + e_a)) by (unfold q; ring).
split; [apply Rmult_le_pos; lra|].
assert (q * (1 + e_a) <= 4 / 3 * (1 + e_a)) by (apply Rmult_le_compat_r; lra). lra.
Qed.

(** Sharp: with errors -1/4 in n and more than 1/2 in a, a large b n takes the step beyond 2. *)
Theorem gain_robust_sharp e_a : / 2 < e_a -> exists b a, 0 <= b /\ is_gain (3 / 4) b a /\ 2 < a * (1 + e_a) * 1.
Proof.
intros He.
assert (Hd : 0 < 1 - 3 / 2 / (1 + e_a)).
{ apply Rmult_lt_reg_r with (1 + e_a); [lra|]. replace ((1 - 3 / 2 / (1 + e_a)) * (1 + e_a)) with (1 + e_a - 3 / 2) by (field; lra). lra. }
set (t := (1 - 3 / 2 / (1 + e_a)) / 2). assert (Ht : 0 < t) by (unfold t; lra).
assert (Ht1 : t < 1).
{ unfold t. assert (0 < 3 / 2 / (1 + e_a)) by (apply Rdiv_lt_0_compat; lra). lra. }
exists (- ln t * (4 / 3)), ((1 - t) * (4 / 3)). repeat split.
- assert (ln t < 0) by (rewrite <- ln_1; apply ln_increasing; lra). lra.
- unfold is_gain. replace (- (- ln t * (4 / 3) * (3 / 4))) with (ln t) by field. rewrite exp_ln by exact Ht. field.
- rewrite Rmult_1_r. assert (E : (1 - t) * (1 + e_a) = (1 + e_a) / 2 + 3 / 4) by (unfold t; field; lra).
  replace ((1 - t) * (4 / 3) * (1 + e_a)) with ((1 - t) * (1 + e_a) * (4 / 3)) by ring. rewrite E. lra.
Qed.

(** The hypotheses are met, by any n >= 0 and b >= 0 with exact a and n for a start. *)
Example gain_robust_applies n b : 0 <= n -> 0 <= b ->
  0 <= (if Req_EM_T n 0 then b else (1 - exp (- (b * n))) / n) * n <= 2.
Proof.
intros Hn Hb; set (a := if Req_EM_T n 0 then b else (1 - exp (- (b * n))) / n).
apply (gain_robust n n b a a 0 0 Hn Hb); try (rewrite Rabs_R0; lra); try ring. apply gain_exists.
Qed.
