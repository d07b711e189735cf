(* SPDX-FileCopyrightText: 2026 The deltaproof authors *)
(* SPDX-License-Identifier: MIT *)
(*
  The gradient of the delta rule, row by row, in any commutative ring. States are (K, V), as in the code. A row decays the state
  S, writes k u^T with u = b (v - (D S)^T k), and is read by q:
      S' = D S + k u^T,   o = S'^T q.
  Backwards a cotangent L of S' and a cotangent c of o become those of all that the row was made of: dq, dk, dv, db, and
  [cotangent_before]. A row that is not read has c = 0, a row without a gate D = 1. For include/deltaproof/scan/adjoint.hpp and
  for whoever tests a backward pass without a reference. Proved: the reverse pass is the transpose of the derivative, of a row
  and of a run; and the identities that any gradient obeys, I1 to I5. Not claimed: anything about rounding, and nothing about what
  b is made of (rules, activations) or k (normalisation).
*)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From deltaproof.algebra Require Import rank_one.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory.
Local Open Scope ring_scope.

Section Inner.
Variable R : comRingType.

(** The inner product of two matrices. *)
Definition inner d e (A B : 'M[R]_(d, e)) : R := \tr (A^T *m B).

Lemma innerDl d e (A B C : 'M[R]_(d, e)) : inner (A + B) C = inner A C + inner B C.
Proof. by rewrite /inner linearD /= mulmxDl mxtraceD. Qed.

Lemma innerC d e (A B : 'M[R]_(d, e)) : inner A B = inner B A.
Proof. by rewrite /inner -mxtrace_tr trmx_mul trmxK. Qed.

Lemma innerDr d e (A B C : 'M[R]_(d, e)) : inner C (A + B) = inner C A + inner C B.
Proof. by rewrite innerC innerDl !(innerC C). Qed.

Lemma innerNl d e (A C : 'M[R]_(d, e)) : inner (- A) C = - inner A C.
Proof. by rewrite /inner linearN /= mulNmx raddfN. Qed.

Lemma innerBl d e (A B C : 'M[R]_(d, e)) : inner (A - B) C = inner A C - inner B C.
Proof. by rewrite innerDl innerNl. Qed.

Lemma inner_outer d e (x : 'cV[R]_d) (y : 'cV[R]_e) (B : 'M[R]_(d, e)) : inner (x *m y^T) B = dot x (B *m y).
Proof. by rewrite /inner trmx_mul trmxK -mulmxA mxtrace_mulC -mulmxA trmx_mul_dot mxtrace_scalar mulr1n. Qed.

Lemma inner_mull d n e (D : 'M[R]_(d, n)) (A : 'M[R]_(n, e)) (B : 'M[R]_(d, e)) : inner (D *m A) B = inner A (D^T *m B).
Proof. by rewrite /inner trmx_mul mulmxA. Qed.

Lemma dot_mx d e (A : 'M[R]_(d, e)) (x : 'cV[R]_d) (y : 'cV[R]_e) : dot x (A *m y) = dot (A^T *m x) y.
Proof.
have E : (x^T *m (A *m y)) 0 0 = ((A^T *m x)^T *m y) 0 0 by rewrite trmx_mul trmxK mulmxA.
by move: E; rewrite !trmx_mul_dot !mxE eqxx !mulr1n.
Qed.

Lemma dot_trmxr d e (A : 'M[R]_(d, e)) (x : 'cV[R]_e) (y : 'cV[R]_d) : dot x (A^T *m y) = dot (A *m x) y.
Proof. by rewrite dot_mx trmxK. Qed.

Lemma dotDr d (x y z : 'cV[R]_d) : dot z (x + y) = dot z x + dot z y.
Proof. by rewrite dotC dotDl ![dot _ z]dotC. Qed.

End Inner.

Section Row.
Variables (R : comRingType) (d e : nat).
Variables (D : 'M[R]_d) (q k : 'cV[R]_d) (v c : 'cV[R]_e) (b : R).
Variables (S : 'M[R]_(d, e)) (L : 'M[R]_(d, e)).

(** Forwards: the decayed state, what it predicts, the write, the state after the row, what q reads. *)
Definition decayed : 'M[R]_(d, e) := D *m S.
Definition innovation : 'cV[R]_e := v - decayed^T *m k.
Definition row_write : 'cV[R]_e := b *: innovation.
Definition state_after : 'M[R]_(d, e) := decayed + k *m row_write^T.
Definition read : 'cV[R]_e := state_after^T *m q.

(** Backwards, from the cotangents L of the state after the row and c of what was read. *)
Definition cotangent : 'M[R]_(d, e) := L + q *m c^T.
Definition by_key : 'cV[R]_e := cotangent^T *m k.
Definition dq : 'cV[R]_d := state_after *m c.
Definition dv : 'cV[R]_e := b *: by_key.
Definition db : R := dot by_key innovation.
Definition dk : 'cV[R]_d := cotangent *m row_write - decayed *m dv.
Definition cotangent_decayed : 'M[R]_(d, e) := cotangent - k *m dv^T.
Definition cotangent_before : 'M[R]_(d, e) := D^T *m cotangent_decayed.

(** The cotangent goes through the transpose of the row's transition, which is the transition itself. *)
Theorem cotangent_transition : cotangent_decayed = step_transition b k *m cotangent.
Proof.
rewrite /cotangent_decayed /step_transition /rank_one mulmxBl mul1mx; congr (_ - _).
by rewrite /dv linearZ /= /by_key trmx_mul trmxK -scalemxAr -mulmxA scalemxAl.
Qed.

(** The derivative of the row along a direction: products of it are differentiated one factor after the other. *)
Variables (D' : 'M[R]_d) (q' k' : 'cV[R]_d) (v' : 'cV[R]_e) (b' : R) (S' : 'M[R]_(d, e)).
Definition decayed' : 'M[R]_(d, e) := D' *m S + D *m S'.
Definition row_write' : 'cV[R]_e := b' *: innovation + b *: (v' - (decayed'^T *m k + decayed^T *m k')).
Definition state_after' : 'M[R]_(d, e) := decayed' + (k' *m row_write^T + k *m row_write'^T).
Definition read' : 'cV[R]_e := state_after'^T *m q + state_after^T *m q'.

(** The reverse pass is the transpose of the derivative: a change of the loss is what dq, dk, dv, db and the cotangent of the
    decayed state say. *)
Theorem row_transposed :
  dot c read' + inner L state_after'
  = dot dq q' + dot dk k' + dot dv v' + db * b' + inner cotangent_decayed decayed' :> R.
Proof.
have E : dot c read' + inner L state_after' = dot dq q' + inner cotangent state_after' :> R.
  by rewrite /read' dotDr /cotangent innerDl inner_outer /dq !dot_trmxr [dot q _]dotC; ring.
have Ew : b * dot by_key (decayed'^T *m k + decayed^T *m k') = inner (k *m dv^T) decayed' + dot (decayed *m dv) k' :> R.
  by rewrite inner_outer dotDr mulrDr -!dotZl -/dv !dot_trmxr [dot k _]dotC.
have Eu : dot k (cotangent *m row_write') = db * b' + (dot dv v' - (inner (k *m dv^T) decayed' + dot (decayed *m dv) k')) :> R.
  rewrite dot_mx -/by_key /row_write' dotDr !dotZr [dot by_key (v' - _)]dotBr mulrBr Ew.
  by rewrite -[b * dot by_key v']dotZl -/dv /db; ring.
rewrite E /state_after' [inner cotangent (decayed' + _)]innerDr [inner cotangent (_ *m _^T + _)]innerDr.
rewrite ![inner cotangent (_ *m _^T)]innerC !inner_outer Eu [dot k' _]dotC.
by rewrite /dk dotBl /cotangent_decayed [inner (cotangent - _) decayed']innerBl; ring.
Qed.

(** What a decay of one channel does: its logarithm moves by g', the decayed state by diag(g') times itself. *)
Theorem log_decay_transposed (g' : 'rV[R]_d) :
  inner cotangent_decayed (diag_mx g' *m decayed) = \sum_i g' 0 i * \sum_j cotangent_decayed i j * decayed i j.
Proof.
rewrite /inner /mxtrace; move: cotangent_decayed decayed => A B; under eq_bigr => j _ do rewrite mxE.
rewrite exchange_big /=; apply: eq_bigr => i _; rewrite mulr_sumr; apply: eq_bigr => j _.
by rewrite mul_diag_mx !mxE mulrCA.
Qed.

(** The state before the row moves the loss by the cotangent before it. *)
Theorem cotangent_before_transposed : inner cotangent_decayed (D *m S') = inner cotangent_before S'.
Proof. by rewrite innerC inner_mull innerC. Qed.

(** I1: q . dq = o . do, as o is linear in q. *)
Theorem reads_agree : dot q dq = dot read c.
Proof. by rewrite /dq /read [dot (_ *m q) c]dotC dot_trmxr dotC. Qed.

(** I2: k . dk + v . dv = 2 b db: k -> s k, v -> s v, b -> b / s^2 changes nothing. *)
Theorem writes_agree : dot k dk + dot v dv = 2%:R * b * db :> R.
Proof.
have E : dot k dk = b * db - b * dot by_key (decayed^T *m k).
  rewrite /dk dotBr dot_mx -/by_key /row_write dotZr -/db; congr (_ - _).
  by rewrite dotC -dot_trmxr /dv dotZl.
rewrite E [dot v _]dotC /dv dotZl {2}/db /innovation.
have -> : db = dot by_key v - dot by_key (decayed^T *m k) by rewrite /db /innovation dotBr.
rewrite dotBr; ring.
Qed.

(** I4M: S'^T L + o do^T = S^T L_before + v dv^T. *)
Theorem value_sums_agree : state_after^T *m L + read *m c^T = S^T *m cotangent_before + v *m dv^T.
Proof.
have -> : S^T *m cotangent_before = decayed^T *m cotangent_decayed.
  by rewrite /cotangent_before /decayed trmx_mul -mulmxA.
have -> : state_after^T *m L + read *m c^T = state_after^T *m cotangent.
  by rewrite /cotangent mulmxDr /read mulmxA.
have Ew : (k *m row_write^T)^T *m cotangent = innovation *m dv^T.
  rewrite trmx_mul trmxK -mulmxA /row_write /dv linearZ /= -scalemxAl -scalemxAr.
  by rewrite /by_key trmx_mul trmxK.
have -> : state_after^T = decayed^T + (k *m row_write^T)^T by rewrite /state_after linearD.
rewrite mulmxDl Ew /cotangent_decayed mulmxBr -addrA; congr (_ + _).
by rewrite {1}/innovation mulmxBl mulmxA addrC.
Qed.

(** I3 and I4, for one row: what the state holds grows by what is read and falls by what is written. *)
Theorem sums_agree : inner state_after L + dot read c = inner S cotangent_before + dot v dv.
Proof.
have E : \tr (state_after^T *m L + read *m c^T) = \tr (S^T *m cotangent_before + v *m dv^T) by rewrite value_sums_agree.
by move: E; rewrite !mxtraceD ![\tr (_ *m _^T)]mxtrace_mulC !trmx_mul_dot !mxtrace_scalar !mulr1n [dot c _]dotC [dot dv _]dotC.
Qed.

(** The derivatives by the logarithms of all channels add up to what the state before the row holds of its cotangent. *)
Theorem log_decays_sum : inner cotangent_decayed decayed = inner S cotangent_before.
Proof. by rewrite /decayed innerC inner_mull. Qed.

(** I5: where a decay is one number, q dq^T + k dk^T + S L_before^T - S' L^T is symmetric. *)
Theorem key_sums_symmetric a : D = a%:M ->
  let X := q *m dq^T + k *m dk^T + S *m cotangent_before^T - state_after *m L^T in X^T = X.
Proof.
move=> ED X.
have EL : state_after *m L^T = state_after *m cotangent^T - dq *m q^T.
  by rewrite /cotangent linearD /= mulmxDr trmx_mul trmxK mulmxA addrK.
have ES : S *m cotangent_before^T = decayed *m cotangent_decayed^T.
  by rewrite /cotangent_before /decayed ED tr_scalar_mx !mul_scalar_mx linearZ /= -scalemxAl -scalemxAr.
have EX : X = (q *m dq^T + dq *m q^T) - (k *m (decayed *m dv)^T + (decayed *m dv) *m k^T).
  rewrite /X EL ES /cotangent_decayed /dk {1}/state_after.
  rewrite (linearB _ cotangent) (linearB _ (cotangent *m _)) /= !trmx_mul !trmxK !mulmxBr mulmxDl !mulmxA.
  rewrite opprB !opprD !addrA.
  move: (q *m c^T *m _) (k *m row_write^T *m _) (k *m dv^T *m _ *m _) (decayed *m cotangent^T) => A W P C.
  move: (decayed *m dv *m _) (dq *m _) => Q B.
  by apply/matrixP => i j; rewrite !mxE; ring.
have sym (x y : 'cV[R]_d) : (x *m y^T + y *m x^T)^T = x *m y^T + y *m x^T by rewrite linearD /= !trmx_mul !trmxK addrC.
by rewrite EX linearB /= !sym.
Qed.

End Row.

(** A run: rows 0 .. n - 1 from S0, backwards from the cotangent LT of the last state. *)
Section Run.
Variables (R : comRingType) (d e n : nat).
Variables (D : nat -> 'M[R]_d) (q k : nat -> 'cV[R]_d) (v c : nat -> 'cV[R]_e) (b : nat -> R).
Variables (S0 LT : 'M[R]_(d, e)).

Fixpoint state r : 'M[R]_(d, e) := if r is r'.+1 then state_after (D r') (k r') (v r') (b r') (state r') else S0.

(** The cotangent of the state before row n - m. *)
Fixpoint reversed m : 'M[R]_(d, e) :=
  if m is m'.+1 then cotangent_before (D (n - m)) (q (n - m)) (k (n - m)) (c (n - m)) (b (n - m)) (reversed m') else LT.
Definition cotangent_of r : 'M[R]_(d, e) := reversed (n - r).

Lemma cotangent_last : cotangent_of n = LT.
Proof. by rewrite /cotangent_of subnn. Qed.

Lemma cotangent_next r : (r < n)%N -> cotangent_of r = cotangent_before (D r) (q r) (k r) (c r) (b r) (cotangent_of r.+1).
Proof.
move=> rn; have E : (n - r)%N = (n - r.+1).+1 by rewrite subnSK.
by rewrite /cotangent_of E /= -E subKn // ltnW.
Qed.

Definition gradient_v r : 'cV[R]_e := dv (q r) (k r) (c r) (b r) (cotangent_of r.+1).
Definition output r : 'cV[R]_e := read (D r) (q r) (k r) (v r) (b r) (state r).

(** I4M over a run: S_0^T L_0 + sum v dv^T = S_T^T L_T + sum o do^T, and so between any row and the end. *)
Theorem run_value_sums r : (r <= n)%N ->
  (state r)^T *m cotangent_of r + \sum_(r <= i < n) v i *m (gradient_v i)^T
  = (state n)^T *m LT + \sum_(r <= i < n) output i *m (c i)^T.
Proof.
move=> rn; rewrite -(subKn rn); move: (n - r)%N (leq_subr r n) => m; elim: m => [|m IH] mn.
  by rewrite subn0 !big_geq // cotangent_last.
have lt : (n - m.+1 < n)%N by rewrite -subn_gt0 subKn.
have next : (n - m.+1).+1 = (n - m)%N by rewrite subnSK.
rewrite !(big_ltn lt) next {1}/gradient_v next addrA cotangent_next // next -value_sums_agree.
have Es : state (n - m) = state_after (D (n - m.+1)) (k (n - m.+1)) (v (n - m.+1)) (b (n - m.+1)) (state (n - m.+1)).
  by rewrite -next.
by rewrite -/(output _) -Es [in RHS]addrCA -IH ?(ltnW mn) // [_ + output _ *m _]addrC addrA.
Qed.
(** I4 over a run: <S_0, L_0> + sum v . dv = <S_T, L_T> + sum o . do; and I3: a log decay's gradient is <S_r, L_r>. *)
Theorem run_sums r : (r <= n)%N ->
  inner (state r) (cotangent_of r) + \sum_(r <= i < n) dot (v i) (gradient_v i)
  = inner (state n) LT + \sum_(r <= i < n) dot (output i) (c i).
Proof.
move=> rn; have trace_outer (x y : nat -> 'cV[R]_e) : \tr (\sum_(r <= i < n) x i *m (y i)^T) = \sum_(r <= i < n) dot (x i) (y i).
  rewrite raddf_sum /=; apply: eq_bigr => i _.
  by rewrite mxtrace_mulC trmx_mul_dot mxtrace_scalar mulr1n dotC.
by rewrite -!trace_outer /inner -!mxtraceD run_value_sums.
Qed.

(** The reverse pass of a run is the transpose of its derivative, along any direction in which all that it is made of moves. *)
Variables (D' : nat -> 'M[R]_d) (q' k' : nat -> 'cV[R]_d) (v' : nat -> 'cV[R]_e) (b' : nat -> R) (S0' : 'M[R]_(d, e)).

Fixpoint slope r : 'M[R]_(d, e) :=
  if r is r'.+1 then state_after' (D r') (k r') (v r') (b r') (state r') (D' r') (k' r') (v' r') (b' r') (slope r') else S0'.
Definition output_slope r : 'cV[R]_e :=
  read' (D r) (q r) (k r) (v r) (b r) (state r) (D' r) (q' r) (k' r) (v' r) (b' r) (slope r).
Definition gradient_along r : R :=
  dot (dq (D r) (k r) (v r) (c r) (b r) (state r)) (q' r)
  + dot (dk (D r) (q r) (k r) (v r) (c r) (b r) (state r) (cotangent_of r.+1)) (k' r)
  + dot (gradient_v r) (v' r)
  + db (D r) (q r) (k r) (v r) (c r) (state r) (cotangent_of r.+1) * b' r
  + inner (cotangent_decayed (q r) (k r) (c r) (b r) (cotangent_of r.+1)) (D' r *m state r).

Theorem run_transposed r : (r <= n)%N ->
  inner (cotangent_of r) (slope r) + \sum_(r <= i < n) gradient_along i
  = inner LT (slope n) + \sum_(r <= i < n) dot (c i) (output_slope i).
Proof.
move=> rn; rewrite -(subKn rn); move: (n - r)%N (leq_subr r n) => m; elim: m => [|m IH] mn.
  by rewrite subn0 !big_geq // cotangent_last.
have lt : (n - m.+1 < n)%N by rewrite -subn_gt0 subKn.
have next : (n - m.+1).+1 = (n - m)%N by rewrite subnSK.
set r0 := (n - m.+1)%N in lt next *.
have row : dot (c r0) (output_slope r0) + inner (cotangent_of r0.+1) (slope r0.+1)
    = gradient_along r0 + inner (cotangent_of r0) (slope r0).
  rewrite /= row_transposed /gradient_along [decayed' _ _ _ _]/decayed' innerDr.
  by rewrite [inner _ (D r0 *m _)]cotangent_before_transposed -cotangent_next // addrA.
rewrite !(big_ltn lt) next addrA [_ + gradient_along _]addrC -row next [in RHS]addrCA -IH ?(ltnW mn) //.
by rewrite addrA.
Qed.

End Run.
