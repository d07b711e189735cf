(* SPDX-FileCopyrightText: 2026 The deltaproof authors *)
(* SPDX-License-Identifier: MIT *)
(*
  EFLA is the exact flow of dS/dt = (v - S k) k^T with k and v frozen: the rank-one formula with the step
  alpha(n, t) = (1 - e^(-t n)) / n, n = |k|^2, solves the equation, is its only solution, has the eigenvalue e^(-t n) in
  (0, 1] along k, and its steps add up. Entry by entry, over the real numbers; vectors are functions of their indices. For the
  rule `exact` of rule/rules.hpp. Not claimed: anything about rounding (theories/float), or where k and v move within a step.
*)
From Coq Require Import Reals Lra Lia.
From Coquelicot Require Import Coquelicot.
From deltaproof.float Require Import vectors.
Open Scope R_scope.

Lemma is_derive_Rsum d (f : nat -> R -> R) (df : nat -> R) t :
  (forall j, is_derive (f j) t (df j)) -> is_derive (fun t => Rsum d (fun j => f j t)) t (Rsum d df).
Proof.
intros H; induction d; simpl.
- apply @is_derive_const.
- apply @is_derive_plus; [exact IHd | apply H].
Qed.

Lemma is_derive_times (f : R -> R) t df c : is_derive f t df -> is_derive (fun s => f s * c) t (df * c).
Proof. exact (@is_derive_scal_l R_AbsRing R_NormedModule f t df c). Qed.

Lemma exp_minus_le1 y : 0 <= y -> exp (- y) <= 1.
Proof.
intros H; rewrite <- exp_0; destruct H as [H|<-]; [left; apply exp_increasing; lra | right; f_equal; ring].
Qed.

(** The length of EFLA's step, (1 - e^(-t n)) / n, and t where n = 0. *)
Definition flow_step (n t : R) : R := if Req_EM_T n 0 then t else (1 - exp (- (t * n))) / n.

(** 1 - alpha n = e^(-t n): the eigenvalue along the key. *)
Theorem flow_step_eigenvalue n t : 1 - flow_step n t * n = exp (- (t * n)).
Proof.
unfold flow_step; destruct (Req_EM_T n 0) as [->|Hn].
- rewrite !Rmult_0_r, Ropp_0, exp_0; ring.
- field; exact Hn.
Qed.

(** e^(-t n) lies in (0, 1] for every step length t >= 0 and every key. *)
Theorem flow_eigenvalue_range n t : 0 <= n -> 0 <= t -> 0 < 1 - flow_step n t * n <= 1.
Proof.
intros Hn Ht; rewrite flow_step_eigenvalue; split; [apply exp_pos|].
apply exp_minus_le1, Rmult_le_pos; assumption.
Qed.

Lemma flow_step_0 n : flow_step n 0 = 0.
Proof.
unfold flow_step; destruct (Req_EM_T n 0) as [->|Hn]; [reflexivity|].
rewrite Rmult_0_l, Ropp_0, exp_0; field; exact Hn.
Qed.

(** Two steps along one key add up as rank-one steps do: alpha(s + t) = alpha(s) + alpha(t) - alpha(s) alpha(t) n. *)
Theorem flow_step_composition n s t :
  flow_step n (s + t) = flow_step n s + flow_step n t - flow_step n s * flow_step n t * n.
Proof.
unfold flow_step; destruct (Req_EM_T n 0) as [->|Hn]; [ring|].
replace (- ((s + t) * n)) with (- (s * n) + - (t * n)) by ring.
rewrite exp_plus; field; exact Hn.
Qed.

Lemma is_derive_flow_step n t : is_derive (flow_step n) t (1 - flow_step n t * n).
Proof.
rewrite flow_step_eigenvalue; unfold flow_step; destruct (Req_EM_T n 0) as [->|Hn].
- rewrite Rmult_0_r, Ropp_0, exp_0; apply @is_derive_id.
- auto_derive; [exact I | field; exact Hn].
Qed.

Section Solution.
Variables (d : nat) (k : nat -> R) (v : nat -> R) (S0 : nat -> nat -> R).
Let n := Rsum d (fun j => k j * k j).
Let S0k i := Rsum d (fun j => S0 i j * k j).

(** Entry (i, j) of EFLA's state after time t. *)
Definition exact_flow (i j : nat) (t : R) : R := S0 i j + flow_step n t * ((v i - S0k i) * k j).

(** What a trajectory predicts for the key: (S k)_i. *)
Definition prediction (X : nat -> nat -> R -> R) i t := Rsum d (fun j => X i j t * k j).

Lemma exact_flow_prediction i t : prediction exact_flow i t = S0k i + flow_step n t * n * (v i - S0k i).
Proof.
unfold prediction, exact_flow.
rewrite (Rsum_ext _ _ (fun j => S0 i j * k j + (flow_step n t * (v i - S0k i)) * (k j * k j))) by (intros; ring).
rewrite Rsum_plus, Rsum_scal; fold n; fold (S0k i); ring.
Qed.

(** X solves dS/dt = (v - S k) k^T on [0, T]. *)
Definition solves (X : nat -> nat -> R -> R) (T : R) : Prop :=
  forall i j t, 0 <= t <= T -> is_derive (X i j) t ((v i - prediction X i t) * k j).

(** EFLA starts at S0 ... *)
Theorem exact_flow_start i j : exact_flow i j 0 = S0 i j.
Proof. unfold exact_flow; rewrite flow_step_0; ring. Qed.

(** ... solves the equation ... *)
Theorem exact_flow_solves T : solves exact_flow T.
Proof.
intros i j t _; rewrite exact_flow_prediction.
replace ((v i - (S0k i + flow_step n t * n * (v i - S0k i))) * k j)
  with (0 + (1 - flow_step n t * n) * ((v i - S0k i) * k j)) by ring.
apply (@is_derive_plus R_AbsRing R_NormedModule (fun _ => S0 i j)).
- apply @is_derive_const.
- apply is_derive_times, is_derive_flow_step.
Qed.

(** ... and is the only solution. *)
Theorem exact_flow_unique X T :
  0 < T -> solves X T -> (forall i j, X i j 0 = S0 i j) -> forall i j, X i j T = exact_flow i j T.
Proof.
intros HT HX HX0.
pose (E i j t := X i j t - exact_flow i j t).
assert (HE : forall i j t, 0 <= t <= T -> is_derive (E i j) t (- prediction E i t * k j)).
{ intros i j t Ht; unfold E at 1.
  replace (- prediction E i t * k j) with
    ((v i - prediction X i t) * k j - (v i - prediction exact_flow i t) * k j).
  - apply @is_derive_minus; [apply HX | apply (exact_flow_solves T)]; exact Ht.
  - enough (prediction E i t = prediction X i t - prediction exact_flow i t) as -> by ring.
    unfold prediction, E.
    rewrite (Rsum_ext _ _ (fun j => X i j t * k j + (-1) * (exact_flow i j t * k j))) by (intros; ring).
    rewrite Rsum_plus, Rsum_scal; ring. }
assert (HE0 : forall i j, E i j 0 = 0).
{ intros i j; unfold E; rewrite HX0, exact_flow_start; ring. }
(* e^(n t) (E k)_i is constant, hence 0. *)
assert (HA : forall i t, 0 <= t <= T -> prediction E i t = 0).
{ intros i t Ht.
  assert (HdA : forall s, 0 <= s <= T -> is_derive (prediction E i) s (- n * prediction E i s)).
  { intros s Hs; unfold prediction at 1.
    replace (- n * prediction E i s) with (Rsum d (fun j => (- prediction E i s * k j) * k j)).
    - apply (is_derive_Rsum d (fun j s => E i j s * k j)); intros j.
      apply is_derive_times, HE; exact Hs.
    - rewrite (Rsum_ext _ _ (fun j => (- prediction E i s) * (k j * k j))) by (intros; ring).
      rewrite Rsum_scal; fold n; ring. }
  assert (Hc : exp (n * 0) * prediction E i 0 = exp (n * t) * prediction E i t).
  { destruct (Rle_lt_or_eq_dec 0 t (proj1 Ht)) as [Ht0 | <-]; [|reflexivity].
    apply (eq_is_derive (fun s => exp (n * s) * prediction E i s)); [|exact Ht0].
    intros s Hs.
    assert (Hs' : 0 <= s <= T) by lra.
    replace (@zero R_NormedModule)
      with (n * exp (n * s) * prediction E i s + exp (n * s) * (- n * prediction E i s))
      by (change (@zero R_NormedModule) with 0; ring).
    apply (is_derive_mult (fun s => exp (n * s)) (prediction E i)).
    - auto_derive; [exact I | ring].
    - apply HdA; exact Hs'.
    - intros; apply Rmult_comm. }
  assert (H0 : prediction E i 0 = 0).
  { unfold prediction; rewrite (Rsum_ext _ _ (fun j => 0 * k j)) by (intros; rewrite HE0; ring).
    rewrite Rsum_scal; ring. }
  rewrite H0, Rmult_0_r in Hc.
  symmetry in Hc; apply Rmult_integral in Hc; destruct Hc as [Hc|Hc]; [|exact Hc].
  pose proof (exp_pos (n * t)); lra. }
intros i j.
enough (H : E i j 0 = E i j T) by (rewrite HE0 in H; unfold E in H; lra).
apply eq_is_derive; [|exact HT].
intros t Ht; replace (@zero R_NormedModule) with (- prediction E i t * k j).
- apply HE; exact Ht.
- rewrite HA by exact Ht; change (@zero R_NormedModule) with 0; ring.
Qed.
End Solution.

(** One channel, key 2, value 1, from 0: the state after time 1 is (1 - e^-4) / 2, neither 0 nor its limit 1/2. *)
Example exact_flow_instance :
  exact_flow 1 (fun _ => 2) (fun _ => 1) (fun _ _ => 0) 0 0 1 = (1 - exp (- 4)) / 2
  /\ 0 < (1 - exp (- 4)) / 2 < 1 / 2.
Proof.
split.
- unfold exact_flow, flow_step; simpl; destruct (Req_EM_T (0 + 2 * 2) 0) as [H|_]; [lra|].
  replace (- (1 * (0 + 2 * 2))) with (- 4) by ring; field.
- pose proof (exp_pos (- 4)); assert (exp (- 4) < exp 0) by (apply exp_increasing; lra).
  rewrite exp_0 in *; lra.
Qed.
