(* SPDX-FileCopyrightText: 2026 The deltaproof authors
   SPDX-License-Identifier: MIT *)

(** Vectors over the real numbers as functions from their indices, with sum, dot product and Euclidean norm.

    For the files on rounding errors, which need sums in a stated order and norms, and real-number tactics rather than
    matrices. A vector of dimension [d] is a function [nat -> R] of which only the first [d] values are read. The
    statements are the elementary ones: linearity of sums, the inequality of Cauchy and Schwarz, the triangle
    inequality. Nothing here knows of rounding, and nothing is claimed of infinite sums. *)
From Coq Require Import Reals Lra Lia Psatz.
Open Scope R_scope.

(** f 0 + ... + f (d - 1), summed in that order. *)
Fixpoint Rsum (d : nat) (f : nat -> R) : R :=
  match d with O => 0 | S d' => Rsum d' f + f d' end.

Definition dot (d : nat) (x y : nat -> R) : R := Rsum d (fun i => x i * y i).
Definition dot_abs (d : nat) (x y : nat -> R) : R := Rsum d (fun i => Rabs (x i) * Rabs (y i)).
Definition sq (d : nat) (x : nat -> R) : R := Rsum d (fun i => (x i)^2).
Definition norm (d : nat) (x : nat -> R) : R := sqrt (sq d x).

Lemma Rsum_ext d f g : (forall i, (i < d)%nat -> f i = g i) -> Rsum d f = Rsum d g.
Proof. intros H; induction d; simpl; [reflexivity | rewrite IHd, H by (intros; try apply H; lia); reflexivity]. Qed.

Lemma Rsum_le d f g : (forall i, (i < d)%nat -> f i <= g i) -> Rsum d f <= Rsum d g.
Proof.
intros H; induction d; simpl; [lra|].
assert (f d <= g d) by (apply H; lia).
assert (Rsum d f <= Rsum d g) by (apply IHd; intros; apply H; lia). lra.
Qed.

Lemma Rsum_ge0 d f : (forall i, (i < d)%nat -> 0 <= f i) -> 0 <= Rsum d f.
Proof.
intros H; induction d; simpl; [lra|].
assert (0 <= f d) by (apply H; lia).
assert (0 <= Rsum d f) by (apply IHd; intros; apply H; lia). lra.
Qed.

Lemma Rsum_plus d f g : Rsum d (fun i => f i + g i) = Rsum d f + Rsum d g.
Proof. induction d; simpl; rewrite ?IHd; ring. Qed.

Lemma Rsum_scal d c f : Rsum d (fun i => c * f i) = c * Rsum d f.
Proof. induction d; simpl; rewrite ?IHd; ring. Qed.

Lemma Rsum_const d c : Rsum d (fun _ => c) = INR d * c.
Proof. induction d; [simpl; ring | rewrite S_INR; simpl; rewrite IHd; ring]. Qed.

Lemma Rsum_term d f i : (forall j, (j < d)%nat -> 0 <= f j) -> (i < d)%nat -> f i <= Rsum d f.
Proof.
intros H Hi; induction d as [|d IH]; [lia|]; simpl.
assert (0 <= f d) by (apply H; lia).
assert (0 <= Rsum d f) by (apply Rsum_ge0; intros; apply H; lia).
destruct (Nat.eq_dec i d) as [->|]; [lra|].
assert (f i <= Rsum d f) by (apply IH; [intros; apply H; lia | lia]). lra.
Qed.

Lemma Rsum_Rabs d f : Rabs (Rsum d f) <= Rsum d (fun i => Rabs (f i)).
Proof.
induction d; simpl; [rewrite Rabs_R0; lra|].
eapply Rle_trans; [apply Rabs_triang | lra].
Qed.

Lemma sq_ge0 d x : 0 <= sq d x.
Proof. apply Rsum_ge0; intros; apply pow2_ge_0. Qed.

Lemma norm_ge0 d x : 0 <= norm d x.
Proof. apply sqrt_pos. Qed.

Lemma norm_sqr d x : (norm d x)^2 = sq d x.
Proof. unfold norm; rewrite <- Rsqr_pow2; apply Rsqr_sqrt, sq_ge0. Qed.

Lemma sq_add d x y : sq d (fun i => x i + y i) = sq d x + 2 * dot d x y + sq d y.
Proof. unfold sq, dot; induction d as [|d IH]; cbn [Rsum]; [ring | rewrite IH; ring]. Qed.

Lemma sq_scal d c x : sq d (fun i => c * x i) = c^2 * sq d x.
Proof. unfold sq; rewrite <- Rsum_scal; apply Rsum_ext; intros; ring. Qed.

Lemma dot_scal_r d c x y : dot d x (fun i => c * y i) = c * dot d x y.
Proof. unfold dot; rewrite <- Rsum_scal; apply Rsum_ext; intros; ring. Qed.

Lemma dot_plus_r d x y z : dot d x (fun i => y i + z i) = dot d x y + dot d x z.
Proof. unfold dot; rewrite <- Rsum_plus; apply Rsum_ext; intros; ring. Qed.

Lemma dot_plus_l d x y z : dot d (fun i => x i + y i) z = dot d x z + dot d y z.
Proof. unfold dot; rewrite <- Rsum_plus; apply Rsum_ext; intros; ring. Qed.

Lemma dot_le_dot_abs d x y : Rabs (dot d x y) <= dot_abs d x y.
Proof.
unfold dot; eapply Rle_trans; [apply Rsum_Rabs|].
apply Rsum_le; intros; rewrite Rabs_mult; lra.
Qed.

Lemma dot_abs_ge0 d x y : 0 <= dot_abs d x y.
Proof. apply Rsum_ge0; intros; apply Rmult_le_pos; apply Rabs_pos. Qed.

Lemma cauchy_schwarz_sq d x y : (dot d x y)^2 <= sq d x * sq d y.
Proof.
pose proof (sq_ge0 d x) as Hx; pose proof (sq_ge0 d y) as Hy.
assert (H : forall t, 0 <= sq d x + 2 * t * dot d x y + t^2 * sq d y).
{ intros t. pose proof (sq_ge0 d (fun i => x i + t * y i)) as H.
  rewrite sq_add, dot_scal_r, sq_scal in H. lra. }
destruct Hy as [Hy|Hy].
- pose proof (H (- dot d x y / sq d y)) as Ht.
  assert (E : sq d x + 2 * (- dot d x y / sq d y) * dot d x y + (- dot d x y / sq d y)^2 * sq d y
              = (sq d x * sq d y - (dot d x y)^2) / sq d y) by (field; lra).
  rewrite E in Ht.
  assert (0 <= (sq d x * sq d y - (dot d x y)^2) / sq d y * sq d y) by (apply Rmult_le_pos; lra).
  replace ((sq d x * sq d y - (dot d x y)^2) / sq d y * sq d y) with (sq d x * sq d y - (dot d x y)^2) in * by (field; lra).
  lra.
- rewrite <- Hy in *; rewrite Rmult_0_r.
  set (p := dot d x y) in *; set (s := sq d x) in *.
  destruct (Req_dec p 0) as [->|Hp]; [simpl; lra|].
  exfalso. pose proof (H (- (s + 1) / (2 * p))) as Ht.
  replace (s + 2 * (- (s + 1) / (2 * p)) * p + (- (s + 1) / (2 * p))^2 * 0) with (-1) in Ht by (field; exact Hp).
  lra.
Qed.

Theorem cauchy_schwarz d x y : Rabs (dot d x y) <= norm d x * norm d y.
Proof.
pose proof (cauchy_schwarz_sq d x y) as H.
apply Rsqr_incr_0; [|apply Rabs_pos | apply Rmult_le_pos; apply norm_ge0].
rewrite <- Rsqr_abs, !Rsqr_pow2, Rpow_mult_distr, !norm_sqr; exact H.
Qed.

Lemma norm_le d x c : 0 <= c -> sq d x <= c^2 -> norm d x <= c.
Proof. intros Hc H; apply Rsqr_incr_0; [rewrite !Rsqr_pow2, norm_sqr; exact H | apply norm_ge0 | exact Hc]. Qed.

Lemma sq_le_of_norm d x c : norm d x <= c -> sq d x <= c^2.
Proof. intros H; rewrite <- norm_sqr; apply pow_incr; split; [apply norm_ge0 | exact H]. Qed.

Theorem norm_triangle d x y : norm d (fun i => x i + y i) <= norm d x + norm d y.
Proof.
pose proof (norm_ge0 d x); pose proof (norm_ge0 d y).
apply norm_le; [lra|]. rewrite sq_add.
assert (dot d x y <= norm d x * norm d y) by (eapply Rle_trans; [apply Rle_abs | apply cauchy_schwarz]).
pose proof (norm_sqr d x); pose proof (norm_sqr d y). nra.
Qed.

Lemma norm_ext d x y : (forall i, (i < d)%nat -> x i = y i) -> norm d x = norm d y.
Proof. intros H; unfold norm, sq; f_equal; apply Rsum_ext; intros i Hi; rewrite H by exact Hi; reflexivity. Qed.

Lemma norm_scal d c x : norm d (fun i => c * x i) = Rabs c * norm d x.
Proof. unfold norm; rewrite sq_scal, sqrt_mult_alt by apply pow2_ge_0; rewrite <- Rsqr_pow2, sqrt_Rsqr_abs; reflexivity. Qed.

Lemma norm_mono d x y : (forall i, (i < d)%nat -> Rabs (x i) <= Rabs (y i)) -> norm d x <= norm d y.
Proof.
intros H; unfold norm; apply sqrt_le_1_alt; apply Rsum_le; intros i Hi.
rewrite <- !Rsqr_pow2; apply Rsqr_le_abs_1, H, Hi.
Qed.

Lemma norm_opp d x : norm d (fun i => - x i) = norm d x.
Proof. unfold norm, sq; f_equal; apply Rsum_ext; intros; ring. Qed.

Lemma norm_abs d x : norm d (fun i => Rabs (x i)) = norm d x.
Proof. unfold norm, sq; f_equal; apply Rsum_ext; intros; rewrite <- !Rsqr_pow2, <- Rsqr_abs; reflexivity. Qed.

Lemma dot_abs_le_norms d x y : dot_abs d x y <= norm d x * norm d y.
Proof.
rewrite <- (norm_abs d x), <- (norm_abs d y).
eapply Rle_trans; [|apply cauchy_schwarz]. apply Rle_abs.
Qed.

(** Both inequalities are attained, and the norm is not trivial: (3, 4) has norm 5. *)
Example norm_3_4 : norm 2 (fun i => match i with O => 3 | _ => 4 end) = 5.
Proof. unfold norm, sq; simpl. replace (_ + _) with (5 * 5) by ring. apply sqrt_square; lra. Qed.

Example cauchy_schwarz_attained d x : Rabs (dot d x x) = norm d x * norm d x.
Proof.
assert (E : dot d x x = sq d x) by (unfold dot, sq; apply Rsum_ext; intros; ring).
rewrite E, Rabs_pos_eq by apply sq_ge0. rewrite <- norm_sqr; ring.
Qed.
