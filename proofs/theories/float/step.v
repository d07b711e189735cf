(* SPDX-FileCopyrightText: 2026 The deltaproof authors
   SPDX-License-Identifier: MIT *)

(** One floating-point delta-rule step against the exact one, entry by entry.

    For whoever judges a single token: s' = s + k (b (v - k.s)) with every operation rounded in the standard model, in the
    order of `scan/recurrent.hpp`: the prediction summed in sequence, one subtraction, one multiplication by b, one by k_i,
    one addition. The error of an entry is u |s'_i| plus a term proportional to |b k_i|, from the prediction.

    Not claimed: accumulation over many steps (oracle_radius.v has that, in norms); chunkwise evaluation; underflow. *)
From Coq Require Import Reals Lra Lia.
From deltaproof.float Require Import vectors standard_model.
Open Scope R_scope.

(** One value row of the state: its entries are indexed by the channels of the key. *)
Definition step (d : nat) (b v : R) (k s : nat -> R) (i : nat) : R := s i + k i * (b * (v - dot d k s)).

Section Step.
Variables (fl : R -> R) (u : R).
Hypothesis model : rounding_model fl u.

Definition fstep (d : nat) (b v : R) (k s : nat -> R) (i : nat) : R :=
  fl (s i + fl (k i * fl (b * fl (v - fdot fl d k s)))).

Theorem step_error d b v k s i :
  Rabs (fstep d b v k s i - step d b v k s i) <=
  u * Rabs (step d b v k s i)
  + (1 + u) * Rabs (b * k i) * (gamma u 3 * Rabs (v - dot d k s) + (1 + u)^3 * gamma u d * dot_abs d k s).
Proof.
unfold fstep, step; pose proof (dot_error fl u model d k s) as H0; pose proof (u_ge0 fl u model) as Hu.
set (g := gamma u d * dot_abs d k s) in *. set (p := dot d k s) in *. set (r := v - p).
assert (H1 : Rabs (fl (v - fdot fl d k s) - r) <= u * Rabs r + (1 + u) * g).
{ apply (fl_near fl u model). unfold r. replace (v - fdot fl d k s - (v - p)) with (- (fdot fl d k s - p)) by ring.
  rewrite Rabs_Ropp; exact H0. }
set (e1 := u * Rabs r + (1 + u) * g) in *.
assert (H2 : Rabs (b * fl (v - fdot fl d k s) - b * r) <= Rabs b * e1).
{ rewrite <- Rmult_minus_distr_l, Rabs_mult. apply Rmult_le_compat_l; [apply Rabs_pos | exact H1]. }
apply (fl_near fl u model) in H2. rewrite Rabs_mult in H2.
set (e2 := u * (Rabs b * Rabs r) + (1 + u) * (Rabs b * e1)) in *.
assert (H3 : Rabs (k i * fl (b * fl (v - fdot fl d k s)) - k i * (b * r)) <= Rabs (k i) * e2).
{ rewrite <- Rmult_minus_distr_l, Rabs_mult. apply Rmult_le_compat_l; [apply Rabs_pos | exact H2]. }
apply (fl_near fl u model) in H3. rewrite !Rabs_mult in H3.
set (e3 := u * (Rabs (k i) * (Rabs b * Rabs r)) + (1 + u) * (Rabs (k i) * e2)) in *.
assert (H4 : Rabs (s i + fl (k i * fl (b * fl (v - fdot fl d k s))) - (s i + k i * (b * r))) <= e3).
{ replace (s i + fl (k i * fl (b * fl (v - fdot fl d k s))) - (s i + k i * (b * r)))
    with (fl (k i * fl (b * fl (v - fdot fl d k s))) - k i * (b * r)) by ring. exact H3. }
apply (fl_near fl u model) in H4. eapply Rle_trans; [exact H4|].
apply Rplus_le_compat_l. right. unfold e3, e2, e1, gamma, g. rewrite Rabs_mult. unfold gamma; ring.
Qed.
End Step.

(** With u = 0 the bound says that the step is exact. *)
Example step_error_exact d b v k s i : fstep (fun x => x) d b v k s i = step d b v k s i.
Proof.
pose proof (step_error _ _ exact_is_a_model d b v k s i) as H. unfold gamma in H.
rewrite !Rplus_0_r, !pow1 in H.
match type of H with _ <= ?r => replace r with 0 in H by ring end.
apply Rminus_diag_uniq. destruct (Req_dec (fstep (fun x => x) d b v k s i - step d b v k s i) 0) as [E|E]; [exact E|].
apply Rabs_pos_lt in E; lra.
Qed.
