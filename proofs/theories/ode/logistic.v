(* SPDX-FileCopyrightText: 2026 The deltaproof authors *)
(* SPDX-License-Identifier: MIT *)
(*
  The logistic analogy: the exact flow of x' = a x - b x^2 (Beverton-Holt), which is monotone and stays in (0, a/b] for
  every step, and its Euler map, which is conjugate to the logistic map with r = 1 + a h, loses its fixed point at a h = 2,
  has period 2 beyond r = 3, period 3 and Li and Yorke's hypothesis at r = 3.84, and doubles angles at r = 4. The multipliers at the
  fixed point are 1 - a h and e^(-a h), the stability functions of Euler and EFLA. For study horizon's section on the
  logistic map. Not claimed: chaos itself (Li and Yorke's theorem is not proved here), or that the delta rule, which is
  linear in its state, can be chaotic: it cannot.
*)
From Coq Require Import Reals Lra Psatz.
From Coquelicot Require Import Coquelicot.
From deltaproof.ode Require Import exact_flow.
Open Scope R_scope.

Section Logistic.
Variables a b : R.
Hypothesis (ha : 0 < a) (hb : 0 < b).
Let K := a / b.

(** The state after time t from x, written with e^(-a t) so that it cannot overflow. *)
Definition logistic_flow (t x : R) : R := a * x / (b * x * (1 - exp (- (a * t))) + a * exp (- (a * t))).

Lemma decay_range t : 0 <= t -> 0 < exp (- (a * t)) <= 1.
Proof. intros H; split; [apply exp_pos | apply exp_minus_le1; nra]. Qed.

Lemma denominator_positive t x : 0 <= t -> 0 < x -> 0 < b * x * (1 - exp (- (a * t))) + a * exp (- (a * t)).
Proof. intros Ht Hx; pose proof (decay_range t Ht). assert (0 < b * x) by nra. nra. Qed.

(** It solves x' = a x - b x^2 ... *)
Theorem logistic_flow_solves t x : 0 <= t -> 0 < x ->
  is_derive (fun t => logistic_flow t x) t (a * logistic_flow t x - b * (logistic_flow t x)^2).
Proof.
intros Ht Hx; pose proof (denominator_positive t x Ht Hx) as Hd.
unfold logistic_flow; auto_derive; [lra | field; lra].
Qed.

(** ... from x ... *)
Theorem logistic_flow_start x : 0 < x -> logistic_flow 0 x = x.
Proof. intros Hx; unfold logistic_flow; rewrite Rmult_0_r, Ropp_0, exp_0; field; lra. Qed.

(** ... stays in (0, a/b] for every step length ... *)
Theorem logistic_flow_range t x : 0 <= t -> 0 < x <= K -> 0 < logistic_flow t x <= K.
Proof.
intros Ht [Hx HxK]; pose proof (denominator_positive t x Ht Hx) as Hd; pose proof (decay_range t Ht).
assert (Hbx : b * x <= a).
{ unfold K in HxK; apply Rmult_le_compat_r with (r := b) in HxK; [|lra].
  replace (a / b * b) with a in HxK by (field; lra); lra. }
unfold logistic_flow; split; [apply Rdiv_lt_0_compat; nra|].
unfold K; apply Rmult_le_reg_r with (1 := Hd).
replace (a * x / (b * x * (1 - exp (- (a * t))) + a * exp (- (a * t))) *
  (b * x * (1 - exp (- (a * t))) + a * exp (- (a * t)))) with (a * x) by (field; lra).
replace (a / b * (b * x * (1 - exp (- (a * t))) + a * exp (- (a * t))))
  with (a * x + a * exp (- (a * t)) * (a / b - x)) by (field; lra).
assert (0 <= a / b - x) by (unfold K in HxK; lra).
assert (0 <= a * exp (- (a * t)) * (a / b - x)) by (apply Rmult_le_pos; [nra|lra]).
lra.
Qed.

(** ... is monotone in x for every step length ... *)
Theorem logistic_flow_monotone t x y : 0 <= t -> 0 < x -> x < y -> logistic_flow t x < logistic_flow t y.
Proof.
intros Ht Hx Hxy; pose proof (denominator_positive t x Ht Hx) as Hd.
pose proof (denominator_positive t y Ht (Rlt_trans _ _ _ Hx Hxy)) as Hd'.
pose proof (decay_range t Ht) as [HE _]. unfold logistic_flow.
set (E := exp (- (a * t))) in *.
apply Rminus_lt_0.
replace (a * y / (b * y * (1 - E) + a * E) - a * x / (b * x * (1 - E) + a * E))
  with (a * a * E * (y - x) / ((b * y * (1 - E) + a * E) * (b * x * (1 - E) + a * E)))
  by (field; lra).
apply Rdiv_lt_0_compat; [|nra].
apply Rmult_lt_0_compat; [|lra]. apply Rmult_lt_0_compat; nra.
Qed.

(** ... and steps add up. *)
Theorem logistic_flow_semigroup s t x : 0 <= s -> 0 <= t -> 0 < x ->
  logistic_flow s (logistic_flow t x) = logistic_flow (s + t) x.
Proof.
intros Hs Ht Hx.
assert (Hst : 0 <= s + t) by lra.
pose proof (denominator_positive t x Ht Hx) as H1; pose proof (denominator_positive (s+t) x Hst Hx) as H2.
unfold logistic_flow in *.
replace (- (a * (s + t))) with (- (a * s) + - (a * t)) in * by ring.
rewrite exp_plus in *.
set (E := exp (- (a * t))) in *; set (F := exp (- (a * s))) in *.
field; split; [lra|split; [lra|]].
replace (b * (a * x) * (1 - F) + a * F * (b * x * (1 - E) + a * E))
  with (a * (b * x * (1 - F * E) + a * (F * E))) by ring.
apply Rgt_not_eq, Rmult_lt_0_compat; lra.
Qed.

(** Its multiplier at a/b is e^(-a t), EFLA's stability function at x = a t. *)
Theorem logistic_flow_multiplier t : 0 <= t -> is_derive (logistic_flow t) K (exp (- (a * t))).
Proof.
intros Ht; assert (HK : 0 < K) by (apply Rdiv_lt_0_compat; lra).
pose proof (denominator_positive t K Ht HK) as Hd; pose proof (decay_range t Ht).
assert (Hd' : b * K * (1 - exp (- (a * t))) + a * exp (- (a * t)) = a) by (unfold K; field; lra).
unfold logistic_flow; auto_derive; [lra|]. rewrite ?Hd'. unfold K; field; lra.
Qed.

(** One Euler step. *)
Definition euler_map h x := x + h * (a * x - b * x^2).
Definition logistic_map r y := r * y * (1 - y).

(** The Euler map is the logistic map with r = 1 + a h in another unit. *)
Theorem euler_map_conjugate h x : 0 < h ->
  let c := b * h / (1 + a * h) in c * euler_map h x = logistic_map (1 + a * h) (c * x).
Proof. intros Hh c; unfold c, euler_map, logistic_map; field. nra. Qed.

(** Its fixed points are 0 and a/b, whatever the step. *)
Theorem euler_map_fixed_points h x : 0 < h -> euler_map h x = x <-> x = 0 \/ x = K.
Proof.
intros Hh; unfold euler_map, K; split.
- intros H. assert (H0 : x * (a - b * x) = 0) by nra.
  apply Rmult_integral in H0 as [H0|H0]; [left; exact H0 | right].
  apply Rmult_eq_reg_r with b; [field_simplify; lra | lra].
- intros [->| ->]; field; lra.
Qed.

(** The exact distance from a/b after one step. *)
Theorem euler_map_at_fixed_point h x : euler_map h x - K = (x - K) * (1 - a * h - b * h * (x - K)).
Proof. unfold euler_map, K; field; lra. Qed.

(** Its multiplier at a/b is 1 - a h, Euler's stability function at x = a h. *)
Theorem euler_map_multiplier h : is_derive (euler_map h) K (1 - a * h).
Proof. unfold euler_map; auto_derive; [exact I|]. unfold K; field; lra. Qed.

(** For 0 < a h < 2 the fixed point attracts. *)
Theorem euler_map_stable h : 0 < a * h < 2 ->
  exists q eps, q < 1 /\ 0 < eps /\
    forall x, Rabs (x - K) <= eps -> Rabs (euler_map h x - K) <= q * Rabs (x - K).
Proof.
intros Hah. assert (hh : 0 < h) by nra.
set (m := Rabs (1 - a * h)). assert (Hm : m < 1) by (apply Rabs_lt_between; lra).
exists ((1 + m) / 2), ((1 - m) / (2 * (b * h))).
assert (Hbh : 0 < b * h) by nra.
split; [lra|split; [apply Rdiv_lt_0_compat; lra|]].
intros x Hx; rewrite euler_map_at_fixed_point, Rabs_mult, Rmult_comm.
apply Rmult_le_compat_r; [apply Rabs_pos|].
eapply Rle_trans; [apply Rabs_triang|].
rewrite Rabs_Ropp, Rabs_mult, (Rabs_right (b * h)) by lra. fold m.
apply Rmult_le_compat_l with (r := b * h) in Hx; [|lra].
replace (b * h * ((1 - m) / (2 * (b * h)))) with ((1 - m) / 2) in Hx by (field; nra).
lra.
Qed.

(** For a h > 2 it repels. *)
Theorem euler_map_unstable h : 2 < a * h ->
  exists q eps, 1 < q /\ 0 < eps /\
    forall x, Rabs (x - K) <= eps -> q * Rabs (x - K) <= Rabs (euler_map h x - K).
Proof.
intros Hah. assert (hh : 0 < h) by nra.
assert (Hbh : 0 < b * h) by nra.
exists (a * h / 2), ((a * h / 2 - 1) / (b * h)).
split; [lra|split; [apply Rdiv_lt_0_compat; lra|]].
intros x Hx; rewrite euler_map_at_fixed_point, Rabs_mult, (Rmult_comm (a * h / 2)).
apply Rmult_le_compat_l; [apply Rabs_pos|].
apply Rmult_le_compat_l with (r := b * h) in Hx; [|lra].
replace (b * h * ((a * h / 2 - 1) / (b * h))) with (a * h / 2 - 1) in Hx by (field; nra).
assert (Hu : Rabs (b * h * (x - K)) <= a * h / 2 - 1).
{ rewrite Rabs_mult, (Rabs_right (b * h)) by lra; exact Hx. }
apply Rabs_le_between in Hu.
rewrite <- Rabs_Ropp, Rabs_right; lra.
Qed.
End Logistic.

(** Beyond r = 3 two points follow each other. *)
Theorem period_two r : 3 < r ->
  let s := sqrt ((r - 3) * (r + 1)) in
  let p := (r + 1 + s) / (2 * r) in let q := (r + 1 - s) / (2 * r) in
  logistic_map r p = q /\ logistic_map r q = p /\ p <> q.
Proof.
intros Hr s p q.
assert (Hs : s * s = (r - 3) * (r + 1)) by (apply sqrt_sqrt; nra).
assert (Hs0 : 0 < s) by (apply sqrt_lt_R0; nra).
unfold logistic_map, p, q; repeat split.
- apply Rmult_eq_reg_r with (4 * r); [|lra]. field_simplify; [|lra|lra]. nra.
- apply Rmult_eq_reg_r with (4 * r); [|lra]. field_simplify; [|lra|lra]. nra.
- intros H. apply Rmult_eq_compat_r with (r := 2 * r) in H.
  field_simplify in H; lra.
Qed.

(** Li and Yorke's hypothesis at r = 3.84 on exact rationals: f^3(x) <= x < f(x) < f^2(x) at x = 0.1495. *)
Theorem li_yorke_hypothesis :
  let f := logistic_map 3.84 in let x := 0.1495 in f (f (f x)) <= x /\ x < f x /\ f x < f (f x).
Proof. unfold logistic_map; simpl; lra. Qed.

(** A point of period three at r = 3.84, between 0.14 and 0.1495. *)
Theorem period_three : exists x, 0.14 <= x <= 0.1495 /\
  let f := logistic_map 3.84 in f (f (f x)) = x /\ f x <> x.
Proof.
pose (f := logistic_map 3.84).
destruct (IVT_gen (fun x => f (f (f x)) - x) 0.14 0.1495 0) as [x [Hx He]].
- intros x; unfold f, logistic_map; reg.
- rewrite Rmin_right, Rmax_left; unfold f, logistic_map; lra.
- rewrite Rmin_left, Rmax_right in Hx by lra.
  exists x; split; [exact Hx|]; fold f; split; [lra|].
  unfold f, logistic_map; nra.
Qed.

Fixpoint iterate (n : nat) (f : R -> R) x := match n with O => x | S m => f (iterate m f x) end.

(** At r = 4 an orbit doubles an angle at each step: x_n = sin^2(2^n th), so a small difference doubles too. *)
Theorem orbit_at_four n th : iterate n (logistic_map 4) ((sin th)^2) = (sin (2^n * th))^2.
Proof.
induction n as [|n IH]; [cbn [iterate]; now rewrite pow_O, Rmult_1_l|].
change (iterate (S n) (logistic_map 4) ((sin th)^2)) with (logistic_map 4 (iterate n (logistic_map 4) ((sin th)^2))).
rewrite IH; unfold logistic_map.
replace (2 ^ S n * th) with (2 * (2 ^ n * th)) by (simpl; ring).
rewrite sin_2a; pose proof (sin2_cos2 (2^n * th)) as H; unfold Rsqr in H.
replace (1 - sin (2 ^ n * th) ^ 2) with (cos (2^n * th) ^ 2) by nra. ring.
Qed.

(** a = b = 1: from 1/2 the state after time 1 lies between 1/2 and 1; a h = 1 attracts, a h = 3 repels. *)
Example logistic_instance : 1/2 < logistic_flow 1 1 1 (1/2) < 1 /\ 0 < 1 * 1 < 2 /\ 2 < 1 * 3.
Proof.
split; [|lra]. unfold logistic_flow.
assert (H : 0 < exp (- (1 * 1)) < 1).
{ split; [apply exp_pos|]. assert (L : exp (- (1 * 1)) < exp 0) by (apply exp_increasing; lra). rewrite exp_0 in L; exact L. }
set (E := exp (- (1 * 1))) in *.
replace (1 * (1 / 2) / (1 * (1 / 2) * (1 - E) + 1 * E)) with (/ (1 + E)) by (field; lra).
split; apply Rmult_lt_reg_r with (1 + E); try lra; rewrite Rinv_l by lra; lra.
Qed.

(** At r = 10/3 the two points of period two are (13/3 +- sqrt(13)/3) / (20/3): what stands under the root is positive. *)
Example period_two_instance : 3 < 10/3 /\ (10/3 - 3) * (10/3 + 1) = 13/9.
Proof. lra. Qed.
