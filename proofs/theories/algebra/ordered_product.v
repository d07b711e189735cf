(* SPDX-FileCopyrightText: 2026 The deltaproof authors *)
(* SPDX-License-Identifier: MIT *)
(*
  Products of matrices in the order of time, A_s A_(s+1) ... A_(r-1), over any ring: how they are cut and prolonged, and
  what they are for scalar and for diagonal factors, that is, for the two kinds of decay. For wy.v and non_expansive.v,
  whose ratios of decays and chunk transitions are such products: no factor is ever inverted. Not claimed: anything about
  products from the other side but their transpose.
*)
From mathcomp Require Import all_ssreflect all_algebra.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory.
Local Open Scope ring_scope.

Section OrderedProduct.
Variables (R : ringType) (d : nat).
Implicit Types (A : nat -> 'M[R]_d) (s m r : nat).

(** A_s A_(s+1) ... A_(r-1); the identity where r <= s. *)
Fixpoint ordered_product A s r : 'M[R]_d :=
  if r is r'.+1 then if (s <= r')%N then ordered_product A s r' *m A r' else 1%:M else 1%:M.

Lemma ordered_product_empty A s r : (r <= s)%N -> ordered_product A s r = 1%:M.
Proof. by case: r => //= r rs; rewrite leqNgt rs. Qed.

Lemma ordered_product_last A s r : (s <= r)%N -> ordered_product A s r.+1 = ordered_product A s r *m A r.
Proof. by move=> /= ->. Qed.

(** A product may be cut anywhere. *)
Theorem ordered_product_cut A s m r : (s <= m)%N -> (m <= r)%N ->
  ordered_product A s m *m ordered_product A m r = ordered_product A s r.
Proof.
move=> sm; elim: r => [|r IH]; first by rewrite leqn0 => /eqP->; rewrite ordered_product_empty ?mulmx1.
rewrite leq_eqVlt => /orP[/eqP->|mr]; first by rewrite (ordered_product_empty A (leqnn _)) mulmx1.
by rewrite !ordered_product_last ?(leq_trans sm) // mulmxA IH.
Qed.

Lemma ordered_product_single A s : ordered_product A s s.+1 = A s.
Proof. by rewrite ordered_product_last // ordered_product_empty // mul1mx. Qed.

Lemma ordered_product_first A s r : (s < r)%N -> ordered_product A s r = A s *m ordered_product A s.+1 r.
Proof. by move=> sr; rewrite -(ordered_product_cut A (leqnSn s) sr) ordered_product_single. Qed.

Lemma eq_ordered_product A B s r :
  (forall t, (s <= t < r)%N -> A t = B t) -> ordered_product A s r = ordered_product B s r.
Proof.
elim: r => //= r IH h; case: leqP => // sr; rewrite h ?sr ?leqnn // IH // => t /andP[st tr].
by rewrite h // st ltnW.
Qed.

Lemma ordered_product_one s r : ordered_product (fun=> 1%:M) s r = 1%:M.
Proof. by elim: r => //= r IH; case: leqP => // _; rewrite IH mulmx1. Qed.

(** One decay a token: the ratio is the product of the numbers over the range. *)
Theorem scalar_decay_ratio (a : nat -> R) s r :
  ordered_product (fun t => (a t)%:M) s r = (\prod_(s <= t < r) a t)%:M.
Proof.
elim: r => [|r IH]; first by rewrite big_geq.
case: (leqP s r) => sr; last by rewrite ordered_product_empty // big_geq.
by rewrite ordered_product_last // IH -scalar_mxM big_nat_recr.
Qed.

(** One decay a channel: the ratio is, channel by channel, the product over the range. *)
Theorem channel_decay_ratio (a : nat -> 'rV[R]_d) s r :
  ordered_product (fun t => diag_mx (a t)) s r = diag_mx (\row_c \prod_(s <= t < r) a t 0 c).
Proof.
have one : diag_mx (\row_c 1) = 1%:M :> 'M[R]_d.
  by rewrite -diag_const_mx; congr diag_mx; apply/rowP => c; rewrite !mxE.
elim: r => [|r IH].
  by rewrite /= -one; congr diag_mx; apply/rowP => c; rewrite !mxE big_geq.
case: (leqP s r) => sr; last first.
  by rewrite ordered_product_empty // -one; congr diag_mx; apply/rowP => c; rewrite !mxE big_geq.
rewrite ordered_product_last // IH mulmx_diag; congr diag_mx.
by apply/rowP => c; rewrite !mxE big_nat_recr.
Qed.
End OrderedProduct.

Section Transpose.
Variables (R : comRingType) (d : nat).

(** The determinant of a product is the product of the determinants. *)
Theorem ordered_product_determinant (A : nat -> 'M[R]_d) s r :
  \det (ordered_product A s r) = \prod_(s <= t < r) \det (A t).
Proof.
elim: r => [|r IH]; first by rewrite det1 big_geq.
case: (leqP s r) => sr; last by rewrite ordered_product_empty // det1 big_geq.
by rewrite ordered_product_last // det_mulmx IH big_nat_recr.
Qed.

Lemma ordered_product_shift (A : nat -> 'M[R]_d) s r : ordered_product A s.+1 r.+1 = ordered_product (fun t => A t.+1) s r.
Proof.
elim: r => [|r IH]; first by rewrite ordered_product_empty.
case: (leqP s r) => sr; last by rewrite !ordered_product_empty.
by rewrite (@ordered_product_last _ _ A s.+1 r.+1) // IH [RHS]ordered_product_last.
Qed.

(** The transpose of a product is the product of the transposes, against the order of time. *)
Theorem ordered_product_transposed (A : nat -> 'M[R]_d) s r :
  (ordered_product A s r)^T = ordered_product (fun t => (A (s + r - t.+1)%N)^T) s r.
Proof.
case: (leqP r s) => [rs|/ltnW sr]; first by rewrite !ordered_product_empty // trmx1.
rewrite -(subnKC sr); move: (r - s)%N => m; elim: m => [|m IH]; first by rewrite addn0 !ordered_product_empty // trmx1.
rewrite addnS ordered_product_last ?leq_addr // trmx_mul IH [RHS]ordered_product_first ?ltnS ?leq_addr //.
by rewrite ordered_product_shift addnS subSS addKn.
Qed.
End Transpose.

(** A decay of 0 is a factor like any other: what comes before it is forgotten. *)
Example scalar_decay_ratio_instance :
  \prod_(1 <= t < 4) (if t == 2%N then 0 else 3%:R : int) = 0
  /\ \prod_(3 <= t < 5) (if t == 2%N then 0 else 3%:R : int) = 9%:R.
Proof. by rewrite unlock. Qed.
