(* SPDX-FileCopyrightText: 2026 The deltaproof authors *)
(* SPDX-License-Identifier: MIT *)
(*
  The chunkwise form, in any commutative ring with gates of any kind: the matrices A, Ai, w, u, v_new, Aqk of one chunk of
  C rows, as include/deltaproof/scan/chunkwise.hpp computes them, give the state and the outputs of the recurrence. Without
  gates this is the UT transform, W = T K and U = T V with T = (I + diag(b) stril(K K^T))^-1 diag(b). Rows are counted
  from the start of the chunk; wy.run_shift carries it to every other chunk, wy.run_cut strings chunks together. For
  authors of chunkwise kernels. Not claimed: anything about rounding; sizes are in ut_bounds.v.
*)
From mathcomp Require Import all_ssreflect all_algebra.
From deltaproof.algebra Require Import rank_one ordered_product wy unit_lower.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory.
Local Open Scope ring_scope.

Section Rows.
Variables (R : comRingType) (C : nat).

(** The first C columns of a sequence as the rows of a matrix. *)
Definition rows n (c : nat -> 'cV[R]_n) : 'M[R]_(C, n) := \matrix_(i, j) c i j 0.

Lemma eq_rows n (c c' : nat -> 'cV[R]_n) : c =1 c' -> rows c = rows c'.
Proof. by move=> h; apply/matrixP => i j; rewrite [LHS]mxE [RHS]mxE h. Qed.

Lemma row_rows n (c : nat -> 'cV[R]_n) i : row i (rows c) = (c i)^T.
Proof. by apply/rowP => j; rewrite !mxE. Qed.

Lemma sum_outer_rows m n (p : nat -> 'cV[R]_m) (c : nat -> 'cV[R]_n) :
  \sum_(i < C) p i *m (c i)^T = (rows p)^T *m rows c.
Proof.
apply/matrixP => i j; rewrite summxE mxE; apply: eq_bigr => l _.
by rewrite !mxE big_ord1 !mxE.
Qed.

(** The entries below the diagonal, and those on it too. *)
Definition below (A : 'M[R]_C) : 'M[R]_C := \matrix_(i, j) (A i j *+ (j < i)).
Definition on_and_below (A : 'M[R]_C) : 'M[R]_C := \matrix_(i, j) (A i j *+ (j <= i)).
End Rows.

Section Chunk.
Variables (R : comUnitRingType) (C d e : nat).
Variables (D : nat -> 'M[R]_d) (x y : nat -> 'cV[R]_d) (z : nat -> 'cV[R]_e) (q : nat -> 'cV[R]_d).

(** A: what earlier keys show to x_r, below the diagonal. *)
Definition chunk_A : 'M[R]_C := \matrix_(r, j) (overlap D y j r (x r) *+ (j < r)).

(** Ai = (I + A)^-1. *)
Definition chunk_Ai : 'M[R]_C := invmx (1%:M + chunk_A).

(** w = Ai (D_[0, r] x_r), u = Ai z, v_new = u - w S0^T. *)
Definition chunk_w : 'M[R]_(C, d) := chunk_Ai *m rows C (fun r => ratio D 0 r.+1 *m x r).
Definition chunk_u : 'M[R]_(C, e) := chunk_Ai *m rows C z.
Definition chunk_v_new (S0 : 'M[R]_(e, d)) : 'M[R]_(C, e) := chunk_u - chunk_w *m S0^T.

(** Aqk: what keys show to the query of row r, the diagonal included. *)
Definition chunk_Aqk : 'M[R]_C := \matrix_(r, j) (overlap D y j r (q r) *+ (j <= r)).

(** Row i: the key y_i as the end of the chunk sees it, D_(i, C)^T y_i. *)
Definition chunk_keys : 'M[R]_(C, d) := rows C (fun i => (ratio D i.+1 C)^T *m y i).

Lemma chunk_A_lower : strictly_lower chunk_A.
Proof. by move=> i j ij; rewrite mxE ltnNge ij. Qed.

(** Whoever satisfies the recursion of the WY vectors is Ai times its right-hand side. *)
Theorem chunk_solution n (p c : nat -> 'cV[R]_n) :
  (forall r, c r = p r - \sum_(0 <= i < r) overlap D y i r (x r) *: c i) -> rows C c = chunk_Ai *m rows C p.
Proof.
move=> h; apply/(forward_substitution chunk_A_lower) => r; rewrite !row_rows {1}h linearB /=.
congr (_ - _); rewrite big_mkord raddf_sum /=.
rewrite (big_ord_widen C (fun i => (overlap D y i r (x r) *: c i)^T)) ?(ltnW (ltn_ord r)) //.
by apply: eq_bigr => i ir; rewrite row_rows mxE ir mulr1n linearZ.
Qed.

(** The stage w holds the WY vectors w_r ... *)
Theorem chunk_w_rows : chunk_w = rows C (w D x y 0).
Proof. by apply/esym/chunk_solution => r; rewrite w_recursion. Qed.

(** ... and the stage u the vectors u_r. *)
Theorem chunk_u_rows : chunk_u = rows C (u D x y z 0).
Proof. by apply/esym/chunk_solution => r; rewrite u_recursion. Qed.

Lemma row_v_new S0 r : row r (chunk_v_new S0) = (u D x y z 0 r - S0 *m w D x y 0 r)^T.
Proof.
rewrite /chunk_v_new chunk_u_rows chunk_w_rows [LHS]raddfB /= row_mul !row_rows.
by rewrite [RHS]linearB /= [in RHS]trmx_mul.
Qed.

(** Row r of v_new is the recurrence's own correction z_r - S_r D_r x_r. *)
Theorem chunk_v_new_rows S0 :
  chunk_v_new S0 = rows C (fun r => z r - state D x y z 0 S0 r *m D r *m x r).
Proof.
by apply/row_matrixP => r; rewrite row_rows -wy_correction // row_v_new.
Qed.

(** The state after a chunk: S_C = S_0 D_[0, C) + v_new^T keys. *)
Theorem chunk_state S0 :
  state D x y z 0 S0 C = S0 *m ratio D 0 C + (chunk_v_new S0)^T *m chunk_keys.
Proof.
rewrite wy_state //; congr (_ + _); rewrite big_mkord.
have -> : chunk_v_new S0 = rows C (fun i => u D x y z 0 i - S0 *m w D x y 0 i).
  by apply/row_matrixP => r; rewrite row_rows row_v_new.
rewrite -sum_outer_rows; apply: eq_bigr => i _.
by rewrite trmx_mul trmxK mulmxA.
Qed.

(** The output of row r: o_r = row r of (queries with their decay) S_0^T + Aqk v_new. *)
Theorem chunk_output S0 (r : 'I_C) :
  (state D x y z 0 S0 r.+1 *m q r)^T =
  row r (rows C (fun i => ratio D 0 i.+1 *m q i) *m S0^T + chunk_Aqk *m chunk_v_new S0).
Proof.
rewrite wy_output // linearD /= [RHS]raddfD /= !row_mul row_rows trmx_mul; congr (_ + _).
rewrite mulmx_sum_row raddf_sum /= big_mkord.
rewrite (big_ord_widen C (fun i => (overlap D y i r (q r) *: (u D x y z 0 i - S0 *m w D x y 0 i))^T)) //.
rewrite big_mkcond /=; apply: eq_bigr => i _; rewrite ltnS !mxE.
case: leqP => _; last by rewrite mulr0n scale0r.
by rewrite mulr1n linearZ /= row_v_new.
Qed.

(** Any inverse X of I + A will do: what is proved of one algorithm's result holds of the others'. *)
Theorem chunk_Ai_unique (X : 'M[R]_C) : (1%:M + chunk_A) *m X = 1%:M -> X = chunk_Ai.
Proof. by move=> h; rewrite -[LHS](mulKmx (unit_lower_invertible chunk_A_lower)) h mulmx1. Qed.
End Chunk.

(** One step a row, no gate: the formulas as the papers print them. *)
Section Ungated.
Variables (R : comUnitRingType) (C d e : nat).
Variables (b : nat -> R) (k : nat -> 'cV[R]_d) (v : nat -> 'cV[R]_e) (q : nat -> 'cV[R]_d).
Let no_gate (_ : nat) : 'M[R]_d := 1%:M.
Let B : 'M[R]_C := diag_mx (\row_i b i).
Let K := rows C k.

(** T = (I + diag(b) stril(K K^T))^-1 diag(b). *)
Definition ut_T : 'M[R]_C := invmx (1%:M + B *m below (K *m K^T)) *m B.

Lemma ungated_A : chunk_A C no_gate (fun t => b t *: k t) k = B *m below (K *m K^T).
Proof.
apply/matrixP => i j; rewrite mul_diag_mx !mxE.
case: ltnP => ji; last by rewrite !mulr0n mulr0.
rewrite !mulr1n ungated_overlap ?(ltnW ji) // dotZr; congr (_ * _).
by rewrite /dot; apply: eq_bigr => l _; rewrite !mxE mulrC.
Qed.

Lemma rows_scaled n (c : nat -> 'cV[R]_n) : rows C (fun t => b t *: c t) = B *m rows C c.
Proof. by apply/matrixP => i j; rewrite mul_diag_mx !mxE. Qed.

(** The UT transform: W = T K. *)
Theorem ut_w : rows C (w no_gate (fun t => b t *: k t) k 0) = ut_T *m K.
Proof.
rewrite -chunk_w_rows /chunk_w /chunk_Ai ungated_A /ut_T -mulmxA -rows_scaled; congr (_ *m _).
by apply: eq_rows => i; rewrite /ratio ordered_product_one mul1mx.
Qed.

(** The UT transform: U = T V. *)
Theorem ut_u : rows C (u no_gate (fun t => b t *: k t) k (fun t => b t *: v t) 0) = ut_T *m rows C v.
Proof. by rewrite -chunk_u_rows /chunk_u /chunk_Ai ungated_A /ut_T -mulmxA -rows_scaled. Qed.

(** S_C = S_0 + (U - W S_0^T)^T K. *)
Theorem ut_state S0 :
  state no_gate (fun t => b t *: k t) k (fun t => b t *: v t) 0 S0 C
  = S0 + (ut_T *m rows C v - ut_T *m K *m S0^T)^T *m K.
Proof.
have E : chunk_keys C no_gate k = K.
  by apply: eq_rows => i; rewrite /ratio ordered_product_one trmx1 mul1mx.
have G : ratio no_gate 0 C = 1%:M by exact: ordered_product_one.
by rewrite chunk_state E G mulmx1 /chunk_v_new chunk_u_rows chunk_w_rows ut_u ut_w.
Qed.

(** o_r = row r of Q S_0^T + tril(Q K^T) (U - W S_0^T). *)
Theorem ut_output S0 (r : 'I_C) :
  (state no_gate (fun t => b t *: k t) k (fun t => b t *: v t) 0 S0 r.+1 *m q r)^T
  = row r (rows C q *m S0^T + on_and_below (rows C q *m K^T) *m (ut_T *m rows C v - ut_T *m K *m S0^T)).
Proof.
have E1 : rows C (fun i => ratio no_gate 0 i.+1 *m q i) = rows C q.
  by apply: eq_rows => i; rewrite /ratio ordered_product_one mul1mx.
have E2 : chunk_Aqk C no_gate k q = on_and_below (rows C q *m K^T).
  apply/matrixP => i j; rewrite !mxE; case: leqP => ji; last by rewrite !mulr0n.
  by rewrite !mulr1n ungated_overlap // /dot; apply: eq_bigr => l _; rewrite !mxE mulrC.
by rewrite chunk_output E1 E2 /chunk_v_new chunk_u_rows chunk_w_rows ut_u ut_w.
Qed.
End Ungated.

(** Two equal unit keys in one channel with steps 1: T = [1 0; -1 1], over the integers. *)
Example ut_T_instance :
  let k (_ : nat) : 'cV[int]_1 := 1%:M in let T := ut_T 2 (fun=> 1) k in
  T 0 0 = 1 /\ T 1 0 = -1 /\ T 0 1 = 0 /\ T 1 1 = 1.
Proof.
move=> k T; pose X : 'M[int]_2 := \matrix_(i, j) (if (j < i)%N then -1 else (i == j)%:R).
have one : diag_mx (\row_(i < 2) 1) = 1%:M :> 'M[int]_2.
  by apply/matrixP => i j; rewrite !mxE.
have -> : T = X; last by rewrite !mxE.
rewrite /T /ut_T one mulmx1 mul1mx.
have L1 : strictly_lower (below (rows 2 k *m (rows 2 k)^T)) by move=> i j ij; rewrite mxE ltnNge ij.
rewrite -[RHS](mulKmx (unit_lower_invertible L1)) -[LHS]mulmx1; congr (_ *m _); apply/matrixP.
by case=> [[|[|//]] ?] [[|[|//]] ?]; rewrite !(mxE, big_ord_recl, big_ord0).
Qed.
