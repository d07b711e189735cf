(* SPDX-FileCopyrightText: 2026 The deltaproof authors *)
(* SPDX-License-Identifier: MIT *)
(*
  Derivatives over the real numbers of what lies between the tensors of a problem and the numbers of a row: b = beta phi(x) with
  x = beta |k|^2 for every rule of rule/rules.hpp, the sigmoid of beta, and r = (|x|^2 + eps)^(-1/2). They are the slopes that
  algebra/gradient_chain.v supposes, and what src/oracle/gradients/chain.cpp evaluates. Not claimed: anything about rounding
  (chain.cpp encloses each operation).
*)
From Coq Require Import Reals Lra Lia Psatz.
From Coquelicot Require Import Coquelicot.
From deltaproof.float Require Import vectors sigmoid.
From deltaproof.ode Require Import exact_flow stability.
Open Scope R_scope.

(** ** Any gain *)
Ltac derived H := lazymatch type of H with is_derive _ ?x ?l =>
  match goal with |- context [Derive ?f x] => replace (Derive f x) with l by (symmetry; apply is_derive_unique; exact H) end end.

Section AnyGain.
Variables (phi : R -> R) (x phi' : R).
Hypothesis slope : is_derive phi x phi'.

(** (x phi)' = -R' for R = 1 - x phi. *)
Theorem stability_slope : is_derive (fun x => 1 - x * phi x) x (- (phi x + x * phi')).
Proof. auto_derive; [eexists; exact slope|]. derived slope; ring. Qed.

(** Along any curves of beta and of n = |k|^2 with beta n = x, b = beta phi(beta n) moves by (phi + x phi') beta' + beta^2 phi' n'. *)
Theorem step_slope (beta n : R -> R) (t beta' n' : R) : beta t * n t = x -> is_derive beta t beta' -> is_derive n t n' ->
  is_derive (fun t => beta t * phi (beta t * n t)) t ((phi x + x * phi') * beta' + (beta t)^2 * phi' * n').
Proof.
intros E Hb Hn. rewrite <- E in *.
auto_derive.
- split; [eexists; exact Hb|]. split; [eexists; exact slope|]. split; [eexists; exact Hb|]. split; [eexists; exact Hn|exact I].
- derived slope; derived Hb; derived Hn; ring.
Qed.
End AnyGain.

(** |k|^2 moves by 2 k . k'. *)
Theorem squared_norm_slope d (k k' : nat -> R) t :
  is_derive (fun t => sq d (fun i => k i + t * k' i)) t (2 * dot d (fun i => k i + t * k' i) k').
Proof.
unfold sq, dot. rewrite <- Rsum_scal.
apply (is_derive_Rsum d (fun i t => (k i + t * k' i)^2) (fun i => 2 * ((k i + t * k' i) * k' i))).
intros j. auto_derive; [exact I | ring].
Qed.

(** ** The rules *)
Definition implicit_gain x := / (1 + x).
Definition crank_nicolson_gain x := 2 / (2 + x).
Definition rk2_gain x := 1 - x/2.
Definition rk3_gain x := 1 - x/2 + x^2/6.
Definition rk4_gain x := 1 - x/2 + x^2/6 - x^3/24.
Definition exact_gain x := flow_step x 1.

(** R = 1 - x phi for each. *)
Theorem gains_are_those_of_the_rules x :
  euler x = 1 - x * 1 /\ rk2 x = 1 - x * rk2_gain x /\ rk3 x = 1 - x * rk3_gain x /\ rk4 x = 1 - x * rk4_gain x
  /\ (1 + x <> 0 -> implicit_euler x = 1 - x * implicit_gain x) /\ (2 + x <> 0 -> crank_nicolson x = 1 - x * crank_nicolson_gain x)
  /\ exact x = 1 - x * exact_gain x.
Proof.
unfold euler, rk2, rk3, rk4, rk2_gain, rk3_gain, rk4_gain, implicit_euler, implicit_gain, crank_nicolson, crank_nicolson_gain, exact, exact_gain.
repeat split; try (intros; field; assumption); try field.
pose proof (flow_step_eigenvalue x 1) as H. rewrite Rmult_1_l in H. rewrite <- H; ring.
Qed.

Theorem implicit_slopes x : 1 + x <> 0 ->
  is_derive implicit_gain x (- (implicit_gain x)^2) /\ implicit_gain x + x * - (implicit_gain x)^2 = (implicit_gain x)^2.
Proof. intros H; split; unfold implicit_gain; [auto_derive; [exact H | field; exact H] | field; exact H]. Qed.

Theorem crank_nicolson_slopes x : 2 + x <> 0 ->
  is_derive crank_nicolson_gain x (- (crank_nicolson_gain x)^2 / 2)
  /\ crank_nicolson_gain x + x * (- (crank_nicolson_gain x)^2 / 2) = (crank_nicolson_gain x)^2.
Proof. intros H; split; unfold crank_nicolson_gain; [auto_derive; [exact H | field; exact H] | field; exact H]. Qed.

(** phi' and (x phi)' of the Runge-Kutta rules: the latter is R of the rule with a stage less. *)
Theorem runge_kutta_slopes x :
  is_derive rk2_gain x (- 1/2) /\ rk2_gain x + x * (- 1/2) = euler x
  /\ is_derive rk3_gain x (- 1/2 + x/3) /\ rk3_gain x + x * (- 1/2 + x/3) = rk2 x
  /\ is_derive rk4_gain x (- 1/2 + x/3 - x^2/8) /\ rk4_gain x + x * (- 1/2 + x/3 - x^2/8) = rk3 x.
Proof.
unfold rk2_gain, rk3_gain, rk4_gain, euler, rk2, rk3.
refine (conj _ (conj _ (conj _ (conj _ (conj _ _))))); try field; auto_derive; try exact I; field.
Qed.

(** ** The exact flow: phi = sum (-x)^m / (m + 1)!, for every x *)
Definition exact_coefficient (m : nat) : R := (-1)^m / INR (fact (S m)).
(** phi' as a series: coefficient m of it is (m + 1) times coefficient m + 1 of phi. *)
Definition slope_coefficient (m : nat) : R := INR (S m) * exact_coefficient (S m).

Lemma exp_coefficient m : (-1)^m / INR (fact m) = / INR (fact m) * (-1)^m.
Proof. unfold Rdiv; ring. Qed.

Lemma is_exp_series (x : R) : is_pseries (fun m => (-1)^m / INR (fact m)) x (exp (- x)).
Proof.
pose proof (is_exp_Reals (- x)) as H. unfold is_pseries in *.
eapply is_series_ext; [|exact H]. intros m.
assert (P : forall y : R, pow_n (K := R_AbsRing) y m = y^m) by (intros y; apply pow_n_pow).
change (pow_n (K := R_AbsRing) (- x) m * / INR (fact m) = pow_n (K := R_AbsRing) x m * ((-1)^m / INR (fact m))). rewrite (P (- x)), (P x).
replace (- x) with ((-1) * x) by ring. rewrite Rpow_mult_distr. unfold Rdiv; ring.
Qed.

Lemma exact_gain_series (x : R) : is_pseries exact_coefficient x (exact_gain x).
Proof.
destruct (Req_dec x 0) as [->|Hx].
- assert (E : exact_gain 0 = exact_coefficient 0).
  { unfold exact_gain, flow_step, exact_coefficient. destruct (Req_EM_T 0 0) as [_|n]; [simpl; field | contradiction]. }
  rewrite E. exact (@is_pseries_0 R_AbsRing R_NormedModule exact_coefficient).
- pose proof (is_exp_series x) as H.
  assert (Y : mult (/ x) x = one) by (change (/ x * x = 1); field; exact Hx).
  pose proof (is_pseries_opp _ _ _ (is_pseries_decr_1 _ _ _ _ Y H)) as G.
  replace (exact_gain x) with (opp (scal (/ x) (plus (exp (- x)) (opp ((-1)^0 / INR (fact 0)))))).
  + eapply is_series_ext; [|exact G]. intros m. apply (f_equal (scal (pow_n x m))).
    change (- ((-1)^(S m) / INR (fact (S m))) = exact_coefficient m). unfold exact_coefficient. simpl pow. unfold Rdiv; ring.
  + change (- (/ x * (exp (- x) + - ((-1)^0 / INR (fact 0)))) = exact_gain x).
    unfold exact_gain, flow_step. destruct (Req_EM_T x 0) as [e|_]; [contradiction|]. rewrite Rmult_1_l. simpl; field; exact Hx.
Qed.

Lemma exact_radius : CV_radius exact_coefficient = p_infty.
Proof.
apply CV_radius_infinite_DAlembert.
- intros m. unfold exact_coefficient. apply Rmult_integral_contrapositive_currified; [apply pow_nonzero; lra|].
  apply Rinv_neq_0_compat, not_0_INR, fact_neq_0.
- apply is_lim_seq_ext with (fun m => / INR (m + 2)).
  + intros m. unfold exact_coefficient.
    assert (Hf : 0 < INR (fact (S m))) by apply lt_0_INR, lt_O_fact.
    replace ((-1)^(S m) / INR (fact (S (S m))) / ((-1)^m / INR (fact (S m)))) with (- / INR (m + 2)).
    * rewrite Rabs_Ropp, Rabs_pos_eq; [reflexivity|]. left; apply Rinv_0_lt_compat, lt_0_INR; lia.
    * replace (fact (S (S m))) with ((m + 2) * fact (S m))%nat by (rewrite (Nat.add_comm m 2); reflexivity).
      rewrite mult_INR. assert (0 < INR (m + 2)) by (apply lt_0_INR; lia). assert ((-1)^m <> 0) by (apply pow_nonzero; lra).
      simpl pow. field. repeat split; lra.
  + apply (is_lim_seq_incr_n (fun m => / INR m) 2). replace (Finite 0) with (Rbar_inv p_infty) by reflexivity.
    apply is_lim_seq_inv; [apply is_lim_seq_INR | discriminate].
Qed.

(** The slope of the exact flow's gain, everywhere, is its series. *)
Theorem exact_gain_slope (x : R) : is_derive exact_gain x (PSeries slope_coefficient x).
Proof.
assert (E : forall y, PSeries exact_coefficient y = exact_gain y) by (intros y; apply is_pseries_unique, exact_gain_series).
apply is_derive_ext with (PSeries exact_coefficient); [exact E|].
apply (is_derive_PSeries exact_coefficient x). rewrite exact_radius. exact I.
Qed.

(** (x phi)' = e^-x, and off 0 phi' = (e^-x - phi) / x. *)
Theorem exact_slopes (x : R) :
  exact_gain x + x * PSeries slope_coefficient x = exp (- x)
  /\ (x <> 0 -> PSeries slope_coefficient x = (exp (- x) - exact_gain x) / x).
Proof.
assert (H : exact_gain x + x * PSeries slope_coefficient x = exp (- x)).
{ pose proof (stability_slope exact_gain x _ (exact_gain_slope x)) as H1.
  assert (H2 : is_derive (fun y => 1 - y * exact_gain y) x (- exp (- x))).
  { apply is_derive_ext with (fun y => exp (- y)).
    - intros y. pose proof (gains_are_those_of_the_rules y) as G. destruct G as [_ [_ [_ [_ [_ [_ G]]]]]]. exact G.
    - auto_derive; [exact I | ring]. }
  apply is_derive_unique in H1. apply is_derive_unique in H2. rewrite H1 in H2. lra. }
split; [exact H|]. intros Hx. rewrite <- H. field. exact Hx.
Qed.

Lemma slope_term_bound x m : Rabs x <= 1 -> Rabs (slope_coefficient m * x^m) <= 2 / INR (fact (S m)) - 2 / INR (fact (S (S m))).
Proof.
intros Hx. unfold slope_coefficient, exact_coefficient.
assert (F : 0 < INR (fact (S m))) by apply lt_0_INR, lt_O_fact.
assert (E : INR (fact (S (S m))) = INR (S (S m)) * INR (fact (S m))) by (rewrite <- mult_INR; reflexivity).
assert (P : 2 <= INR (S (S m))) by (rewrite !S_INR; pose proof (pos_INR m); lra).
assert (N : INR (S (S m)) = INR (S m) + 1) by apply S_INR.
rewrite Rabs_mult, <- RPow_abs.
assert (X : Rabs x ^ m <= 1) by (rewrite <- (pow1 m); apply pow_incr; split; [apply Rabs_pos | exact Hx]).
assert (A : Rabs (INR (S m) * ((-1)^(S m) / INR (fact (S (S m))))) = INR (S m) / INR (fact (S (S m)))).
{ unfold Rdiv. rewrite !Rabs_mult, <- RPow_abs. replace (Rabs (-1)) with 1 by (rewrite Rabs_left; lra). rewrite pow1, Rmult_1_l.
  rewrite (Rabs_pos_eq (INR (S m))) by apply pos_INR. rewrite Rabs_pos_eq; [reflexivity|].
  left; apply Rinv_0_lt_compat. rewrite E. apply Rmult_lt_0_compat; lra. }
rewrite A. set (T := INR (S m) / INR (fact (S (S m)))).
assert (T0 : 0 <= T) by (unfold T; apply Rmult_le_pos; [apply pos_INR | left; apply Rinv_0_lt_compat; rewrite E; apply Rmult_lt_0_compat; lra]).
apply Rle_trans with (T * 1); [apply Rmult_le_compat_l; assumption|]. rewrite Rmult_1_r. unfold T. rewrite E.
apply Rmult_le_reg_r with (INR (S (S m)) * INR (fact (S m))); [apply Rmult_lt_0_compat; lra|].
replace (INR (S m) / (INR (S (S m)) * INR (fact (S m))) * (INR (S (S m)) * INR (fact (S m)))) with (INR (S m)) by (field; lra).
replace ((2 / INR (fact (S m)) - 2 / (INR (S (S m)) * INR (fact (S m)))) * (INR (S (S m)) * INR (fact (S m))))
  with (2 * INR (S (S m)) - 2) by (field; lra).
rewrite N. pose proof (pos_INR (S m)). lra.
Qed.

(** What M terms of the series of phi' leave for |x| <= 1. *)
Theorem exact_slope_tail x M : Rabs x <= 1 ->
  Rabs (PSeries slope_coefficient x - Rsum M (fun m => slope_coefficient m * x^m)) <= 2 / INR (fact (S M)).
Proof.
intros Hx. set (f := fun m => slope_coefficient m * x^m).
assert (P : forall N, Rabs (Rsum (M + N) f - Rsum M f) <= 2 / INR (fact (S M)) - 2 / INR (fact (S (M + N)))).
{ induction N as [|N IH].
  - rewrite Nat.add_0_r, !Rminus_eq_0, Rabs_R0; lra.
  - replace (M + S N)%nat with (S (M + N)) by lia. cbn [Rsum].
    replace (Rsum (M + N) f + f (M + N)%nat - Rsum M f) with ((Rsum (M + N) f - Rsum M f) + f (M + N)%nat) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. pose proof (slope_term_bound x (M + N) Hx). unfold f at 3. lra. }
assert (C : is_series f (PSeries slope_coefficient x)).
{ assert (D : ex_pseries slope_coefficient x).
  { apply CV_radius_inside. change slope_coefficient with (PS_derive exact_coefficient). rewrite CV_radius_derive, exact_radius. exact I. }
  pose proof (PSeries_correct _ _ D) as H. eapply is_series_ext; [|exact H]. intros m.
  assert (Q : pow_n (K := R_AbsRing) x m = x^m) by apply pow_n_pow.
  change (pow_n (K := R_AbsRing) x m * slope_coefficient m = f m). rewrite Q. unfold f; ring. }
assert (L : is_lim_seq (fun N => Rsum (M + S N) f) (PSeries slope_coefficient x)).
{ apply is_lim_seq_ext with (fun N => sum_n f (N + M)).
  - intros N. replace (M + S N)%nat with (S (N + M)) by lia. generalize (N + M)%nat as n. intros n.
    induction n as [|n IH]; [rewrite sum_O; simpl; ring|]. rewrite sum_Sn, IH. reflexivity.
  - apply (is_lim_seq_incr_n (sum_n f) M). exact C. }
assert (B : is_lim_seq (fun N => Rabs (Rsum (M + S N) f - Rsum M f)) (Rabs (PSeries slope_coefficient x - Rsum M f))).
{ apply (is_lim_seq_abs (fun N => Rsum (M + S N) f - Rsum M f) (Finite (PSeries slope_coefficient x - Rsum M f))).
  apply is_lim_seq_minus'; [exact L | apply is_lim_seq_const]. }
assert (U : forall N, Rabs (Rsum (M + S N) f - Rsum M f) <= 2 / INR (fact (S M))).
{ intros N. pose proof (P (S N)) as H1.
  assert (0 < 2 / INR (fact (S (M + S N)))) by (apply Rdiv_lt_0_compat; [lra | apply lt_0_INR, lt_O_fact]). lra. }
exact (is_lim_seq_le _ _ _ (Finite (2 / INR (fact (S M)))) U B (is_lim_seq_const _)).
Qed.

(** Enough terms for a number of bits. *)
Theorem exact_slope_terms x M bits : Rabs x <= 1 -> (1 <= M)%nat -> 2^bits <= INR (fact M) ->
  Rabs (PSeries slope_coefficient x - Rsum M (fun m => slope_coefficient m * x^m)) <= / 2^bits.
Proof.
intros Hx HM H. assert (P : 0 < 2^bits) by (apply pow_lt; lra).
eapply Rle_trans; [apply exact_slope_tail; exact Hx|].
assert (E : INR (fact (S M)) = INR (S M) * INR (fact M)) by (rewrite <- mult_INR; reflexivity).
assert (N : 2 <= INR (S M)) by (apply (le_INR 2); lia).
apply Rle_trans with (/ INR (fact M)); [|apply Rinv_le_contravar; assumption].
rewrite E. apply Rmult_le_reg_r with (INR (S M) * INR (fact M)); [apply Rmult_lt_0_compat; lra|].
replace (2 / (INR (S M) * INR (fact M)) * (INR (S M) * INR (fact M))) with 2 by (field; lra).
replace (/ INR (fact M) * (INR (S M) * INR (fact M))) with (INR (S M)) by (field; lra). exact N.
Qed.

(** ** The sigmoid, and the normalisation *)

(** sigma' = E / (1 + E)^2 = sigma (1 - sigma), E = e^-|x|; sigma = 1 / (1 + E), or E / (1 + E) below 0. *)
Theorem sigmoid_slope x : let E := exp (- Rabs x) in
  is_derive sigmoid x (E / (1 + E)^2) /\ E / (1 + E)^2 = sigmoid x * (1 - sigmoid x)
  /\ (0 <= x -> sigmoid x = / (1 + E)) /\ (x < 0 -> sigmoid x = E / (1 + E)).
Proof.
intros E. assert (HE : 0 < E) by apply exp_pos. pose proof (exp_pos (- x)) as Hx.
assert (V : E / (1 + E)^2 = sigmoid x * (1 - sigmoid x)).
{ unfold sigmoid. destruct (Rle_or_lt 0 x) as [H|H].
  - unfold E in *. rewrite Rabs_pos_eq in * by exact H. field; lra.
  - unfold E in *. rewrite Rabs_left in * by exact H. rewrite Ropp_involutive in *.
    replace (exp (- x)) with (/ exp x) in * by (symmetry; apply exp_Ropp). field; lra. }
assert (D : is_derive sigmoid x (E / (1 + E)^2)).
{ rewrite V. unfold sigmoid. auto_derive; [lra | field; lra]. }
refine (conj D (conj V (conj _ _))); intros H; unfold sigmoid, E.
- rewrite Rabs_pos_eq by exact H. reflexivity.
- rewrite Rabs_left by exact H. rewrite Ropp_involutive, exp_Ropp. pose proof (exp_pos x). field; lra.
Qed.

(** r = (|x|^2 + eps)^(-1/2) moves by -r^3 x . x'. *)
Theorem norm_slope d (x x' : nat -> R) eps t : let n := fun t => sq d (fun i => x i + t * x' i) + eps in 0 < n t ->
  is_derive (fun t => / sqrt (n t)) t (- (/ sqrt (n t))^3 * dot d (fun i => x i + t * x' i) x').
Proof.
intros n H. pose proof (squared_norm_slope d x x' t) as G. set (m := dot d (fun i => x i + t * x' i) x') in *.
assert (G' : is_derive n t (2 * m)).
{ unfold n. replace (2 * m) with (plus (2 * m) 0) by apply Rplus_0_r. apply (is_derive_plus (fun t => sq d (fun i => x i + t * x' i)) (fun _ => eps)); [exact G | exact (@is_derive_const R_AbsRing R_NormedModule eps t)]. }
assert (Q : 0 < sqrt (n t)) by (apply sqrt_lt_R0; exact H).
clearbody n. auto_derive.
- split; [eexists; exact G'|]. split; [exact H|]. split; [lra | exact I].
- derived G'. assert (S : sqrt (n t) * sqrt (n t) = n t) by (apply sqrt_sqrt; lra). field. lra.
Qed.

(** The exact flow at x = 0: phi = 1 and phi' = -1/2. *)
Example exact_slope_at_0 : exact_gain 0 = 1 /\ PSeries slope_coefficient 0 = - 1/2.
Proof.
split; [unfold exact_gain, flow_step; destruct (Req_EM_T 0 0) as [_|n]; [reflexivity | contradiction]|].
rewrite PSeries_0. unfold slope_coefficient, exact_coefficient. simpl. field.
Qed.
