(* SPDX-FileCopyrightText: 2026 The deltaproof authors *)
(* SPDX-License-Identifier: MIT *)
(*
  The WY form of a run of rows, in any commutative ring, for any row of the form
      S <- S D_t (I - x_t y_t^T) + z_t y_t^T
  with states (V, K): x = b k, y = k, z = b v is the delta rule; D_t the identity, a multiple of it or a diagonal is no
  gate, GDN or KDA; rows inside a token have D_t = I (gated DeltaProduct); x = 2 b k with z = b v or 2 b v are the two
  conventions of negative eigenvalues. Ratios of decays are products over a range, never quotients: nothing is divided,
  a decay of 0 is no special case, and this is the form of include/deltaproof/scan/wy.hpp and chunkwise.hpp. Runs start
  at any row s, so that every chunk is covered. Not claimed: anything about rounding, and nothing about other forms of row.
*)
From mathcomp Require Import all_ssreflect all_algebra.
From deltaproof.algebra Require Import rank_one ordered_product.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory.
Local Open Scope ring_scope.

Section Run.
Variables (R : comRingType) (d e : nat).
Variables (D : nat -> 'M[R]_d) (x y : nat -> 'cV[R]_d) (z : nat -> 'cV[R]_e).

(** D_[s, r), the decay that acts between two rows. *)
Definition ratio s r : 'M[R]_d := ordered_product D s r.

(** The transition of rows s .. r - 1. *)
Definition transition s r : 'M[R]_d := ordered_product (fun t => D t *m rank_one (x t) (y t)) s r.

(** The state before row r of a run that starts from S0 at row s. *)
Fixpoint state s (S0 : 'M[R]_(e, d)) r : 'M[R]_(e, d) :=
  if r is r'.+1 then
    if (s <= r')%N then state s S0 r' *m D r' *m rank_one (x r') (y r') + z r' *m (y r')^T else S0
  else S0.

(** What the run writes into a state of zeros. *)
Definition write s r : 'M[R]_(e, d) := state s 0 r.

Lemma state_start s S0 : state s S0 s = S0.
Proof. by case: s => //= s; rewrite ltnn. Qed.

Lemma state_next s S0 r : (s <= r)%N ->
  state s S0 r.+1 = state s S0 r *m D r *m rank_one (x r) (y r) + z r *m (y r)^T.
Proof. by move=> /= ->. Qed.

(** What key j shows to a vector q at row r: y_j^T D_(j, r] q, all decays after row j up to r's own. *)
Definition overlap j r (q : 'cV[R]_d) : R := dot (y j) (ratio j.+1 r.+1 *m q).

(** The WY vectors in closed form. *)
Definition w s r : 'cV[R]_d := transition s r *m D r *m x r.
Definition u s r : 'cV[R]_e := z r - write s r *m D r *m x r.

Lemma ratio_empty r : ratio r r = 1%:M.
Proof. exact: ordered_product_empty. Qed.

Lemma ratio_next s r : (s <= r)%N -> ratio s r.+1 = ratio s r *m D r.
Proof. exact: ordered_product_last. Qed.

Lemma sum_outer_apply n (c : nat -> 'cV[R]_n) s r r' (q : 'cV[R]_d) :
  (\sum_(s <= i < r) c i *m (y i)^T *m ratio i.+1 r') *m q
  = \sum_(s <= i < r) dot (y i) (ratio i.+1 r' *m q) *: c i.
Proof. by rewrite mulmx_suml; apply: eq_bigr => i _; rewrite -mulmxA outer_apply. Qed.

Lemma sum_ratio_next n (c : nat -> 'cV[R]_n) s r :
  (\sum_(s <= i < r) c i *m (y i)^T *m ratio i.+1 r) *m D r
  = \sum_(s <= i < r) c i *m (y i)^T *m ratio i.+1 r.+1.
Proof.
rewrite mulmx_suml; apply: eq_big_nat => i /andP[_ ir].
by rewrite -mulmxA ratio_next.
Qed.

(** The transition of a run is D_[s, r) - sum_i w_i y_i^T D_(i, r). *)
Theorem wy_transition s r : (s <= r)%N ->
  transition s r = ratio s r - \sum_(s <= i < r) w s i *m (y i)^T *m ratio i.+1 r.
Proof.
elim: r => [|r IH]; first by rewrite leqn0 => /eqP->; rewrite big_geq ?subr0.
rewrite leq_eqVlt => /orP[/eqP<-|sr]; first by rewrite big_geq // subr0 /transition /ratio !ordered_product_empty.
rewrite /transition ordered_product_last // -/(transition s r) mulmxA.
rewrite [X in _ = _ - X]big_nat_recr //= ratio_empty mulmx1 opprD addrA.
by rewrite -sum_ratio_next ratio_next // -mulmxBl -IH // /rank_one mulmxBr mulmx1 /w !mulmxA.
Qed.

(** What a run writes is sum_i u_i y_i^T D_(i, r). *)
Theorem wy_write s r : (s <= r)%N -> write s r = \sum_(s <= i < r) u s i *m (y i)^T *m ratio i.+1 r.
Proof.
elim: r => [|r IH]; first by rewrite leqn0 => /eqP->; rewrite big_geq.
rewrite leq_eqVlt => /orP[/eqP<-|sr]; first by rewrite big_geq // /write state_start.
rewrite /write state_next // -/(write s r) big_nat_recr //= ratio_empty mulmx1.
rewrite -sum_ratio_next -IH // /rank_one mulmxBr mulmx1 -addrA; congr (_ + _).
by rewrite /u mulmxBl addrC !mulmxA.
Qed.

(** w_r = D_[s, r] x_r - sum_i (y_i^T D_(i, r] x_r) w_i: the recursion of the code. *)
Theorem w_recursion s r : (s <= r)%N ->
  w s r = ratio s r.+1 *m x r - \sum_(s <= i < r) overlap i r (x r) *: w s i.
Proof.
move=> sr; rewrite {1}/w wy_transition // mulmxBl sum_ratio_next mulmxBl.
by rewrite -ratio_next // sum_outer_apply.
Qed.

(** u_r = z_r - sum_i (y_i^T D_(i, r] x_r) u_i: the same recursion, with the values. *)
Theorem u_recursion s r : (s <= r)%N ->
  u s r = z r - \sum_(s <= i < r) overlap i r (x r) *: u s i.
Proof. by move=> sr; rewrite {1}/u wy_write // sum_ratio_next sum_outer_apply. Qed.

(** A recursion of this form has one solution, whatever its coefficients: w and u are what any algorithm finds. *)
Theorem wy_recursion_unique n (c : nat -> nat -> R) (p a b : nat -> 'cV[R]_n) s :
  (forall r, (s <= r)%N -> a r = p r - \sum_(s <= i < r) c i r *: a i) ->
  (forall r, (s <= r)%N -> b r = p r - \sum_(s <= i < r) c i r *: b i) ->
  forall r, (s <= r)%N -> a r = b r.
Proof.
move=> ha hb r; elim/ltn_ind: r => r IH sr; rewrite ha // hb //.
by congr (_ - _); apply: eq_big_nat => i /andP[si ir]; rewrite IH.
Qed.

(** A run is affine in its start: S_r = S_0 P + H. *)
Theorem state_is_affine s S0 r : (s <= r)%N -> state s S0 r = S0 *m transition s r + write s r.
Proof.
elim: r => [|r IH].
  by rewrite leqn0 => /eqP->; rewrite /write /transition ordered_product_empty // mulmx1 /= addr0.
rewrite leq_eqVlt => /orP[/eqP<-|sr].
  by rewrite /write !state_start /transition ordered_product_empty // mulmx1 addr0.
rewrite /write !state_next // IH // /transition ordered_product_last //.
by rewrite !mulmxDl !mulmxA -addrA.
Qed.

(** S_r = S_0 D_[s, r) + sum_i (u_i - S_0 w_i) y_i^T D_(i, r): the state after a run, without the transition. *)
Theorem wy_state s S0 r : (s <= r)%N ->
  state s S0 r = S0 *m ratio s r + \sum_(s <= i < r) (u s i - S0 *m w s i) *m (y i)^T *m ratio i.+1 r.
Proof.
move=> sr; rewrite state_is_affine // wy_transition // wy_write // mulmxBr -addrA; congr (_ + _).
rewrite addrC mulmx_sumr -sumrB; apply: eq_bigr => i _.
by rewrite !mulmxBl !mulmxA.
Qed.

(** o_r = S_(r+1) q = S_0 D_[s, r] q + sum_(i <= r) (y_i^T D_(i, r] q) (u_i - S_0 w_i): outputs without states. *)
Theorem wy_output s S0 r (q : 'cV[R]_d) : (s <= r)%N ->
  state s S0 r.+1 *m q =
  S0 *m (ratio s r.+1 *m q) + \sum_(s <= i < r.+1) overlap i r q *: (u s i - S0 *m w s i).
Proof. by move=> sr; rewrite wy_state ?leqW // mulmxDl sum_outer_apply -mulmxA. Qed.

(** What row r subtracts, u_r - S_0 w_r, is the recurrence's own correction z_r - S_r D_r x_r. *)
Theorem wy_correction s S0 r : (s <= r)%N -> u s r - S0 *m w s r = z r - state s S0 r *m D r *m x r.
Proof.
move=> sr; rewrite state_is_affine // /u /w !mulmxDl !mulmxA opprD addrA.
by rewrite [RHS]addrAC.
Qed.

(** A run cut anywhere is its head, then its tail from the state of the head: chunks one after the other. *)
Theorem run_cut s m S0 r : (s <= m)%N -> (m <= r)%N -> state m (state s S0 m) r = state s S0 r.
Proof.
move=> sm; elim: r => [|r IH]; first by rewrite leqn0 => /eqP mE; rewrite mE.
rewrite leq_eqVlt => /orP[/eqP->|mr]; first by rewrite state_start.
by rewrite !state_next ?(leq_trans sm) // IH.
Qed.
End Run.

(** A run from row s is a run from row 0 of the sequences shifted by s: what is shown of the first chunk holds of each. *)
Theorem run_shift (R : comRingType) d e (D : nat -> 'M[R]_d) (x y : nat -> 'cV[R]_d) (z : nat -> 'cV[R]_e) s S0 r :
  state D x y z s S0 (r + s) =
  state (fun t => D (t + s)%N) (fun t => x (t + s)%N) (fun t => y (t + s)%N) (fun t => z (t + s)%N) 0 S0 r.
Proof.
elim: r => [|r IH]; first by rewrite add0n state_start.
by rewrite addSn !state_next ?leq_addl // IH.
Qed.

(** The rows this file is about are those of the delta rule: x = b k, y = k, z = b v is S - b (S k - v) k^T. *)
Theorem delta_rule_row (R : comRingType) d e (b : R) (k : 'cV[R]_d) (v : 'cV[R]_e) (S : 'M[R]_(e, d)) :
  S *m rank_one (b *: k) k + (b *: v) *m k^T = S - b *: ((S *m k - v) *m k^T).
Proof.
rewrite /rank_one mulmxBr mulmx1 -scalemxAl -scalemxAr -scalemxAl mulmxBl scalerBr mulmxA.
by rewrite opprB addrA addrAC.
Qed.

(** Negative eigenvalues, both terms doubled: the delta rule with step 2 b. Only the transition doubled: the delta rule with
    step 2 b and values v / 2. *)
Theorem negative_eigenvalue_conventions (F : fieldType) d e (b : F) (k : 'cV[F]_d) (v : 'cV[F]_e) (S : 'M[F]_(e, d)) :
  (2%:R : F) != 0 ->
  S *m rank_one ((2%:R * b) *: k) k + ((2%:R * b) *: v) *m k^T = S - (2%:R * b) *: ((S *m k - v) *m k^T)
  /\ S *m rank_one ((2%:R * b) *: k) k + (b *: v) *m k^T
     = S - (2%:R * b) *: ((S *m k - 2%:R^-1 *: v) *m k^T).
Proof.
move=> two; split; first exact: delta_rule_row.
rewrite -delta_rule_row; congr (_ + _ *m _).
by rewrite scalerA mulrAC mulfV // mul1r.
Qed.

(** The three gates, in the form the code computes them. *)
Section Gates.
Variables (R : comRingType) (d : nat) (k : nat -> 'cV[R]_d).

(** Without a gate the overlap is the inner product of the keys. *)
Theorem ungated_overlap j r q : (j <= r)%N -> overlap (fun=> 1%:M) k j r q = dot (k j) q.
Proof. by move=> _; rewrite /overlap /ratio ordered_product_one mul1mx. Qed.

(** One decay a token: the inner product times the product of the decays over (j, r]. *)
Theorem scalar_gate_overlap (a : nat -> R) j r q : (j <= r)%N ->
  overlap (fun t => (a t)%:M) k j r q = (\prod_(j.+1 <= t < r.+1) a t) * dot (k j) q.
Proof. by move=> _; rewrite /overlap /ratio scalar_decay_ratio mul_scalar_mx dotZr. Qed.

(** One decay a channel: the product over (j, r] stands inside the sum over channels. *)
Theorem channel_gate_overlap (a : nat -> 'rV[R]_d) j r q : (j <= r)%N ->
  overlap (fun t => diag_mx (a t)) k j r q =
  \sum_c k j c 0 * ((\prod_(j.+1 <= t < r.+1) a t 0 c) * q c 0).
Proof.
move=> _; rewrite /overlap /ratio channel_decay_ratio /dot; apply: eq_bigr => c _.
by rewrite mul_diag_mx !mxE.
Qed.
End Gates.

(** One channel, keys 1, values 1, steps 1, and a decay of 0 before row 1: w = (1, 0), and whatever the start, the state
    is 1 after two rows. Nothing is divided by the 0. *)
Example decay_zero_instance (R : comRingType) (S0 : 'M[R]_1) :
  let D t : 'M[R]_1 := (if t == 1%N then 0 else 1)%:M in
  let one (_ : nat) : 'cV[R]_1 := 1%:M in
  w D one one 0 0 = 1%:M /\ w D one one 0 1 = 0 /\ state D one one one 0 S0 2 = 1%:M.
Proof.
have r0 : rank_one (1%:M : 'cV[R]_1) 1%:M = 0 by rewrite /rank_one trmx1 mulmx1 subrr.
rewrite /w /transition /= r0 !(mulmx0, mul0mx, mulmx1, mul1mx, trmx1, add0r, raddf0).
by do !split.
Qed.
