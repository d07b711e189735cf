(* SPDX-FileCopyrightText: 2026 The deltaproof authors *)
(* SPDX-License-Identifier: MIT *)
(*
  The backward pass chunk by chunk, with its stages as scan/chunk_adjoint.hpp and production kernels have them, is the recurrent
  adjoint (adjoint.v): one chunk of C rows, in any commutative ring, with the UT transform of ut.v. Decays are one number a
  channel, which may all be the same (a scalar gate) or 1 (none); a row that is not read has a cotangent of 0. Rows are counted
  from the start of the chunk, h is the state before it and dh the cotangent of the state after it: wy.run_cut, run_shift and
  adjoint_run's cotangent_cut, cotangent_shift string chunks together. For authors of chunkwise kernels. Not claimed: anything
  about rounding.
*)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From deltaproof.algebra Require Import rank_one ordered_product unit_lower.
From deltaproof.algebra Require wy ut.
From deltaproof.algebra Require Import adjoint adjoint_run.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory.
Local Open Scope ring_scope.

Section Lower.
Variables (R : comUnitRingType) (C : nat).

Lemma rowT_mul n (M : 'M[R]_C) (f : nat -> 'cV[R]_n) (r : 'I_C) :
  (row r (M *m ut.rows C f))^T = \sum_(i < C) M r i *: f i.
Proof.
rewrite row_mul mulmx_sum_row linear_sum; apply: eq_bigr => i _.
by rewrite ut.row_rows linearZ /= trmxK mxE.
Qed.

Lemma inverse_lower (A : 'M[R]_C) (i j : 'I_C) : strictly_lower A -> (i < j)%N -> invmx (1%:M + A) i j = 0.
Proof.
move=> hA; have [m im] := ubnP (i : nat); elim: m i im => // m IH i im ij.
have /(forward_substitution hA) E : invmx (1%:M + A) = invmx (1%:M + A) *m 1%:M by rewrite mulmx1.
have : row i (invmx (1%:M + A)) 0 j = 0; last by rewrite mxE.
rewrite E !mxE -val_eqE /= (ltn_eqF ij) summxE big1 ?subr0 // => l li.
by rewrite !mxE IH ?mulr0 // ?(ltn_trans li ij) // (leq_trans li).
Qed.

Lemma on_and_below_inside (P U : 'M[R]_C) (r j : 'I_C) : (forall a i : 'I_C, (a < i)%N -> P a i = 0) -> (j < r)%N ->
  (P^T *m ut.on_and_below U *m P^T) r j = (P^T *m U *m P^T) r j.
Proof.
move=> hP jr; rewrite !mxE; apply: eq_bigr => i _; rewrite !mxE !mulr_suml; apply: eq_bigr => a _; rewrite !mxE.
case: (leqP i a) => [_|ai]; first by rewrite mulr1n.
have [ji|ij] := ltnP j i; first by rewrite (hP j i ji) !mulr0.
by rewrite (hP a r (leq_trans ai (leq_trans ij (ltnW jr)))) !mul0r.
Qed.
End Lower.

Section Chunk.
Variables (R : comUnitRingType) (C d e : nat).
Variables (a : nat -> 'rV[R]_d) (q k : nat -> 'cV[R]_d) (v c : nat -> 'cV[R]_e) (b : nat -> R).
Variables (h dh : 'M[R]_(d, e)).

Definition decay t : 'M[R]_d := diag_mx (a t).
(** D_[s, r): the decays of rows s .. r - 1. *)
Definition ratio s r : 'M[R]_d := wy.ratio decay s r.

(** The recurrent adjoint of these rows. *)
Definition rec_state r : 'M[R]_(d, e) := state decay k v b h r.
Definition rec_cotangent r : 'M[R]_(d, e) := cotangent_of C decay q k c b dh r.
Definition rec_write r : 'cV[R]_e := row_write (decay r) (k r) (v r) (b r) (rec_state r).
Definition rec_by_key r : 'cV[R]_e := by_key (q r) (k r) (c r) (rec_cotangent r.+1).
Definition rec_dq r : 'cV[R]_d := dq (decay r) (k r) (v r) (c r) (b r) (rec_state r).
Definition rec_dk r : 'cV[R]_d := dk (decay r) (q r) (k r) (v r) (c r) (b r) (rec_state r) (rec_cotangent r.+1).
Definition rec_dv r : 'cV[R]_e := dv (q r) (k r) (c r) (b r) (rec_cotangent r.+1).
Definition rec_db r : R := db (decay r) (q r) (k r) (v r) (c r) (rec_state r) (rec_cotangent r.+1).

(** The stages of the forward pass (ut.v), states (K, V). *)
Definition scaled t : 'cV[R]_d := b t *: k t.
Definition Ai : 'M[R]_C := ut.chunk_Ai C decay scaled k.
Definition Aqk : 'M[R]_C := ut.chunk_Aqk C decay k q.
Definition w : 'M[R]_(C, d) := ut.chunk_w C decay scaled k.
Definition v_new : 'M[R]_(C, e) := ut.chunk_v_new C decay scaled k (fun t => b t *: v t) h^T.
Definition kb : 'M[R]_(C, d) := ut.rows C (fun r => ratio 0 r.+1 *m scaled r).
Definition vb : 'M[R]_(C, e) := ut.rows C (fun r => b r *: v r).
Definition d_o : 'M[R]_(C, e) := ut.rows C c.

(** The stages of the backward pass. *)
Definition dv_local : 'M[R]_(C, e) := Aqk^T *m d_o.
Definition dv2 : 'M[R]_(C, e) := dv_local + ut.rows C (fun j => dh^T *m (ratio j.+1 C *m k j)).
Definition dw : 'M[R]_(C, d) := - (dv2 *m h^T).
Definition dAqk : 'M[R]_C := ut.on_and_below (d_o *m v_new^T).
Definition dkb : 'M[R]_(C, d) := Ai^T *m dw.
Definition dvb : 'M[R]_(C, e) := Ai^T *m dv2.
Definition dA : 'M[R]_C := ut.below (- (Ai^T *m ut.on_and_below (dw *m kb^T + dv2 *m vb^T) *m Ai^T)).

Lemma trmx_ratio s r : (ratio s r)^T = ratio s r.
Proof. by rewrite /ratio /wy.ratio /decay channel_decay_ratio tr_diag_mx. Qed.

Lemma ratio_empty s : ratio s s = 1%:M.
Proof. exact: wy.ratio_empty. Qed.

Lemma ratio_next s r : (s <= r)%N -> decay r *m ratio s r = ratio s r.+1.
Proof.
move=> sr; rewrite -[LHS]trmxK trmx_mul trmx_ratio [(decay r)^T]tr_diag_mx -wy.ratio_next //.
exact: trmx_ratio.
Qed.

Lemma ratio_first s r : (s < r)%N -> ratio s r = decay s *m ratio s.+1 r.
Proof. exact: ordered_product_first. Qed.

(** The state and the cotangent over the rows that wrote and read. *)
Lemma state_sum r : rec_state r = ratio 0 r *m h + \sum_(0 <= j < r) ratio j.+1 r *m k j *m (rec_write j)^T.
Proof.
rewrite /rec_state; elim: r => [|r IH]; first by rewrite ratio_empty mul1mx big_geq // addr0.
rewrite [LHS]/= /state_after -/(rec_state r) -/(rec_write r) big_nat_recr //= ratio_empty mul1mx addrA; congr (_ + _).
rewrite /decayed [rec_state r]IH mulmxDr mulmxA ratio_next //; congr (_ + _).
by rewrite mulmx_sumr; apply: eq_big_nat => j /andP[_ jr]; rewrite !mulmxA ratio_next.
Qed.

Lemma decayed_sum r :
  decayed (decay r) (rec_state r) = ratio 0 r.+1 *m h + \sum_(0 <= j < r) ratio j.+1 r.+1 *m k j *m (rec_write j)^T.
Proof.
rewrite /decayed state_sum mulmxDr mulmxA ratio_next //; congr (_ + _).
by rewrite mulmx_sumr; apply: eq_big_nat => j /andP[_ jr]; rewrite !mulmxA ratio_next.
Qed.

Lemma cotangent_sum r : (r <= C)%N ->
  rec_cotangent r = ratio r C *m dh + \sum_(r <= i < C) ratio r i.+1 *m (q i *m (c i)^T - k i *m (rec_dv i)^T).
Proof.
move=> rC; rewrite -(subKn rC); move: (C - r)%N (leq_subr r C) => m; elim: m => [|m IH] mC.
  by rewrite subn0 /rec_cotangent cotangent_last ratio_empty mul1mx big_geq // addr0.
have lt : (C - m.+1 < C)%N by rewrite -subn_gt0 subKn.
have next : (C - m.+1).+1 = (C - m)%N by rewrite subnSK.
set r0 := (C - m.+1)%N in lt next *.
rewrite /rec_cotangent (cotangent_next _ _ _ _ _ _ lt) -/(rec_cotangent _) /cotangent_before /cotangent_decayed -/(rec_dv r0) /cotangent.
rewrite [(decay r0)^T]tr_diag_mx -/(decay r0) -addrA next (IH (ltnW mC)) -next.
rewrite (big_ltn lt) (ratio_first lt) (ratio_first (ltnSn r0)) ratio_empty mulmx1.
rewrite [in RHS](eq_big_nat _ _ (F2 := fun i => decay r0 *m (ratio r0.+1 i.+1 *m (q i *m (c i)^T - k i *m (rec_dv i)^T)))).
  rewrite -mulmx_sumr -mulmxA -!mulmxDr -!addrA; congr (_ *m (_ + _)); by rewrite addrC addrA.
by move=> i /andP[ri _]; rewrite ratio_first ?(leq_trans ri) // mulmxA.
Qed.

Lemma v_new_rows : v_new = ut.rows C rec_write.
Proof.
rewrite /v_new ut.chunk_v_new_rows; apply: ut.eq_rows => r.
have E t : wy.state decay scaled k (fun t => b t *: v t) 0 h^T t = (rec_state t)^T.
  elim: t => [|t IH]; first by rewrite wy.state_start.
  rewrite wy.state_next // IH /rec_state state_step [RHS]linearD /= -/(step_transition (b t) (k t)).
  rewrite [in RHS]trmx_mul trmx_step [in RHS]trmx_mul [(decay t)^T]tr_diag_mx; congr (_ + _).
  by rewrite [in RHS]trmx_mul trmxK linearZ /= -scalemxAl -scalemxAr.
rewrite E /rec_write /row_write /innovation /decayed trmx_mul [(decay r)^T]tr_diag_mx scalerBr /scaled.
by rewrite -scalemxAr.
Qed.

Lemma row_v_new r : row r v_new = (rec_write r)^T.
Proof. by rewrite v_new_rows ut.row_rows. Qed.

Lemma scaled_A : strictly_lower (ut.chunk_A C decay scaled k).
Proof. exact: ut.chunk_A_lower. Qed.

(** d(b v): what the write shows of its key is Ai^T dv2, and so dv = b times it. *)
Theorem dvb_rows : dvb = ut.rows C rec_by_key.
Proof.
rewrite /dvb /Ai /ut.chunk_Ai; set A := ut.chunk_A _ _ _ _.
have I : 1%:M + A^T \in unitmx.
  by rewrite -(trmx1 _ C) -linearD /= unitmx_tr; apply: unit_lower_invertible scaled_A.
rewrite trmx_inv [(1%:M + A)^T]linearD /= trmx1; apply: (canLR (mulKmx I)).
apply/row_matrixP => j; apply: trmx_inj; rewrite mulmxDl mul1mx.
rewrite /dv2 /dv_local /d_o [row j (ut.rows C _ + _)]raddfD /= [row j (_ *m _ + _)]raddfD /= !ut.row_rows !linearD /= !trmxK.
rewrite !rowT_mul {1}/rec_by_key /by_key /cotangent cotangent_sum // linearD /= mulmxDl linearD /= mulmxDl.
rewrite !trmx_mul !trmxK trmx_ratio -!mulmxA [(q j)^T *m k j]trmx_mul_dot mul_mx_scalar.
rewrite raddf_sum /= mulmx_suml big_geq_mkord /=.
have L (i : 'I_C) : (ratio j.+1 i.+1 *m (q i *m (c i)^T - k i *m (rec_dv i)^T))^T *m k j
   = dot (k j) (ratio j.+1 i.+1 *m q i) *: c i - (b i * dot (k j) (ratio j.+1 i.+1 *m k i)) *: rec_by_key i.
  rewrite mulmxBr linearB /= mulmxBl !mulmxA !trmx_mul !trmxK -!mulmxA !trmx_mul_dot !mul_mx_scalar.
  by rewrite !dot_trmxr ![dot (ratio _ _ *m _) (k j)]dotC /rec_dv /dv scalerA mulrC.
rewrite (eq_bigr _ (fun i _ => L i)) sumrB.
have EA : \sum_(i < C) A^T j i *: rec_by_key i
   = \sum_(i < C | (j < i)%N) (b i * dot (k j) (ratio j.+1 i.+1 *m k i)) *: rec_by_key i.
  rewrite [RHS]big_mkcond /=; apply: eq_bigr => i _; rewrite !mxE /wy.overlap /scaled -scalemxAr dotZr.
  by case: ltnP => _; rewrite ?mulr1n // mulr0n scale0r.
have EQ : \sum_(i < C) Aqk^T j i *: c i
   = dot (k j) (q j) *: c j + \sum_(i < C | (j < i)%N) dot (k j) (ratio j.+1 i.+1 *m q i) *: c i.
  rewrite (bigD1 j) //= [X in _ + X]big_mkcond [X in _ = _ + X]big_mkcond /=; congr (_ + _).
    by rewrite !mxE leqnn mulr1n /wy.overlap -/(ratio j.+1 j.+1) ratio_empty mul1mx.
  apply: eq_bigr => i _; rewrite !mxE /wy.overlap -val_eqE /= eq_sym.
  rewrite -/(ratio j.+1 i.+1); move: (dot (k j) _) => z.
  by case: (ltngtP j i) => _; rewrite ?mulr1n ?mulr0n ?scale0r.
rewrite EA EQ [dot (q j) (k j)]dotC.
have regroup (x p f y : 'cV[R]_e) : p + f + x = x + (f - y) + p + y by apply/colP => i; rewrite !mxE; ring.
exact: regroup.
Qed.

Lemma rec_dv_of_stage (r : 'I_C) : rec_dv r = b r *: (row r dvb)^T.
Proof. by rewrite dvb_rows ut.row_rows trmxK. Qed.

Lemma dkb_eq : dkb = - (dvb *m h^T).
Proof. by rewrite /dkb /dw mulmxN mulmxA. Qed.

Lemma row_dkb (r : 'I_C) : (row r dkb)^T = - (h *m rec_by_key r).
Proof. by rewrite dkb_eq raddfN /= row_mul dvb_rows ut.row_rows linearN /= trmx_mul !trmxK. Qed.

Lemma rows_mulT n (f g : nat -> 'cV[R]_n) (r j : 'I_C) : (ut.rows C f *m (ut.rows C g)^T) r j = dot (f r) (g j).
Proof. by rewrite mxE /dot; apply: eq_bigr => i _; rewrite !mxE. Qed.

(** The cotangent of the state before the chunk. *)
Theorem dh_before :
  rec_cotangent 0 = ratio 0 C *m dh + (ut.rows C (fun r => ratio 0 r.+1 *m q r))^T *m d_o - w^T *m dv2.
Proof.
have -> : w^T *m dv2 = kb^T *m dvb by rewrite /w /ut.chunk_w -/kb -/Ai trmx_mul -mulmxA.
rewrite dvb_rows /kb /d_o -!ut.sum_outer_rows cotangent_sum // -addrA; congr (_ + _).
rewrite big_mkord -sumrB; apply: eq_bigr => i _.
rewrite mulmxBr !mulmxA; congr (_ - _).
by rewrite /rec_dv /dv /scaled linearZ /= -!scalemxAr -scalemxAl.
Qed.

(** dAqk below the diagonal and on it: what each output's cotangent shows of each write. *)
Lemma dAqk_entry (r j : 'I_C) : dAqk r j = dot (c r) (rec_write j) *+ (j <= r)%N.
Proof. by rewrite mxE v_new_rows rows_mulT. Qed.

(** dA: minus what the write of a later row shows of an earlier one's. *)
Theorem dA_entry (r j : 'I_C) : dA r j = - dot (rec_by_key r) (rec_write j) *+ (j < r)%N.
Proof.
rewrite mxE; case: ltnP => jr; last by rewrite !mulr0n.
rewrite !mulr1n mxE on_and_below_inside //; last by move=> i l il; apply: inverse_lower scaled_A il.
have -> : Ai^T *m (dw *m kb^T + dv2 *m vb^T) *m Ai^T = dvb *m v_new^T; last by rewrite dvb_rows v_new_rows rows_mulT.
have -> : v_new = Ai *m (vb - kb *m h).
  by rewrite /v_new /ut.chunk_v_new /ut.chunk_u /ut.chunk_w -/kb -/vb -/Ai trmxK mulmxBr mulmxA.
rewrite trmx_mul mulmxA; congr (_ *m _); rewrite /dvb -mulmxA; congr (_ *m _).
by rewrite /dw linearB /= trmx_mul mulmxBr mulNmx mulmxA addrC.
Qed.

Lemma from_row n (f : nat -> 'cV[R]_n) (x : nat -> R) r :
  \sum_(r <= i < C) x i *: f i = \sum_(i < C) (x i *+ (r <= i)%N) *: f i.
Proof.
rewrite big_geq_mkord /= big_mkcond /=; apply: eq_bigr => i _.
by case: leqP => _; rewrite ?mulr1n // mulr0n scale0r.
Qed.

Lemma upto_row n (f : nat -> 'cV[R]_n) (x : nat -> R) r : (r <= C)%N ->
  \sum_(0 <= i < r) x i *: f i = \sum_(i < C) (x i *+ (i < r)%N) *: f i.
Proof.
move=> rC; rewrite big_mkord (big_ord_widen C (fun i => x i *: f i)) // big_mkcond /=; apply: eq_bigr => i _.
by case: ltnP => _; rewrite ?mulr1n // mulr0n scale0r.
Qed.

(** dq. *)
Theorem dq_of_stages (r : 'I_C) :
  rec_dq r = ratio 0 r.+1 *m (h *m c r) + \sum_(j < C) dAqk r j *: (ratio j.+1 r.+1 *m k j).
Proof.
have -> : rec_dq r = rec_state r.+1 *m c r by [].
rewrite state_sum mulmxDl -mulmxA; congr (_ + _); rewrite mulmx_suml.
rewrite (eq_bigr (fun j => dot (c r) (rec_write j) *: (ratio j.+1 r.+1 *m k j))); last first.
  by move=> j _; rewrite outer_apply dotC.
rewrite (upto_row (fun j => ratio j.+1 r.+1 *m k j) (fun j => dot (c r) (rec_write j))) ?ltn_ord //.
by apply: eq_bigr => j _; rewrite dAqk_entry ltnS.
Qed.

(** dk. *)
Theorem dk_of_stages (r : 'I_C) :
  rec_dk r = ratio r.+1 C *m (dh *m (row r v_new)^T)
             + \sum_(i < C) dAqk i r *: (ratio r.+1 i.+1 *m q i)
             + b r *: (ratio 0 r.+1 *m (row r dkb)^T)
             + \sum_(j < C) (b r * dA r j) *: (ratio j.+1 r.+1 *m k j)
             + \sum_(i < C) (b i * dA i r) *: (ratio r.+1 i.+1 *m k i).
Proof.
rewrite row_v_new trmxK row_dkb /rec_dk /dk -/(rec_write r) -/(rec_dv r) /cotangent mulmxDl cotangent_sum // mulmxDl -mulmxA.
rewrite decayed_sum mulmxDl -mulmxA.
have -> : \sum_(i < C) dAqk i r *: (ratio r.+1 i.+1 *m q i)
   = dot (c r) (rec_write r) *: q r + \sum_(r.+1 <= i < C) dot (c i) (rec_write r) *: (ratio r.+1 i.+1 *m q i).
  rewrite (from_row (fun i => ratio r.+1 i.+1 *m q i) (fun i => dot (c i) (rec_write r))) (bigD1 r) //=.
  rewrite [X in _ = _ + X](bigD1 r) //= ltnn mulr0n scale0r add0r dAqk_entry leqnn mulr1n ratio_empty mul1mx; congr (_ + _).
  by apply: eq_bigr => i ir; rewrite dAqk_entry leq_eqVlt val_eqE [r == i]eq_sym (negPf ir).
have -> : \sum_(i < C) (b i * dA i r) *: (ratio r.+1 i.+1 *m k i)
   = - \sum_(r.+1 <= i < C) dot (rec_dv i) (rec_write r) *: (ratio r.+1 i.+1 *m k i).
  rewrite (from_row (fun i => ratio r.+1 i.+1 *m k i) (fun i => dot (rec_dv i) (rec_write r))) -sumrN; apply: eq_bigr => i _.
  rewrite dA_entry /rec_dv /dv dotZl -/(rec_by_key i) -scaleNr -mulNrn -mulrN mulrnAr; congr (_ *: _).
have -> : \sum_(j < C) (b r * dA r j) *: (ratio j.+1 r.+1 *m k j)
   = - \sum_(0 <= j < r) dot (rec_dv r) (rec_write j) *: (ratio j.+1 r.+1 *m k j).
  rewrite (upto_row (fun j => ratio j.+1 r.+1 *m k j) (fun j => dot (rec_dv r) (rec_write j))) ?(ltnW (ltn_ord r)) // -sumrN.
  apply: eq_bigr => j _.
  by rewrite dA_entry /rec_dv /dv dotZl -/(rec_by_key r) -scaleNr -mulNrn -mulrN mulrnAr.
have -> : b r *: (ratio 0 r.+1 *m - (h *m rec_by_key r)) = - (ratio 0 r.+1 *m (h *m rec_dv r)).
  by rewrite mulmxN scalerN /rec_dv /dv -/(rec_by_key r) -!scalemxAr.
have -> : (\sum_(r.+1 <= i < C) ratio r.+1 i.+1 *m (q i *m (c i)^T - k i *m (rec_dv i)^T)) *m rec_write r
   = \sum_(r.+1 <= i < C) dot (c i) (rec_write r) *: (ratio r.+1 i.+1 *m q i)
     - \sum_(r.+1 <= i < C) dot (rec_dv i) (rec_write r) *: (ratio r.+1 i.+1 *m k i).
  by rewrite mulmx_suml -sumrB; apply: eq_bigr => i _; rewrite mulmxBr mulmxBl !mulmxA !outer_apply.
have -> : (\sum_(0 <= j < r) ratio j.+1 r.+1 *m k j *m (rec_write j)^T) *m rec_dv r
   = \sum_(0 <= j < r) dot (rec_dv r) (rec_write j) *: (ratio j.+1 r.+1 *m k j).
  by rewrite mulmx_suml; apply: eq_bigr => j _; rewrite outer_apply dotC.
rewrite [q r *m _]mulmxA outer_apply -[ratio 0 r.+1 *m h *m _]mulmxA.
have regroup (x s p t y z : 'cV[R]_d) : x + (s - p) + t - (y + z) = x + (t + s) - y - z - p.
  by apply/colP => i; rewrite !mxE; ring.
exact: regroup.
Qed.

(** db. *)
Theorem db_of_stages (r : 'I_C) :
  rec_db r = dot (v r) (row r dvb)^T + dot (k r) (ratio 0 r.+1 *m (row r dkb)^T)
             + \sum_(j < C) dA r j * dot (k j) (ratio j.+1 r.+1 *m k r).
Proof.
rewrite row_dkb dvb_rows ut.row_rows trmxK /rec_db /db -/(rec_by_key r) /innovation dotBr [dot _ (v r)]dotC decayed_sum.
rewrite linearD /= mulmxDl dotDr opprD addrA; congr (_ + _ + _).
  by rewrite mulmxN [RHS]dotC dotNl [in RHS]dotC dot_trmxr -mulmxA [in RHS]dotC.
rewrite [(\sum_(0 <= j < r) _)^T]linear_sum /= mulmx_suml.
have -> : dot (rec_by_key r) (\sum_(0 <= j < r) (ratio j.+1 r.+1 *m k j *m (rec_write j)^T)^T *m k r)
   = \sum_(0 <= j < r) dot (rec_by_key r) (rec_write j) * dot (k j) (ratio j.+1 r.+1 *m k r).
  rewrite dotC dot_suml; apply: eq_bigr => j _.
  by rewrite trmx_mul trmxK outer_apply dotZl [dot _ (rec_by_key r)]dotC mulrC -{1}(trmx_ratio j.+1 r.+1) dot_trmx.
rewrite big_mkord (big_ord_widen C (fun j => dot (rec_by_key r) (rec_write j) * dot (k j) (ratio j.+1 r.+1 *m k r))) ?(ltnW (ltn_ord r)) //.
rewrite big_mkcond -sumrN /=; apply: eq_bigr => j _; rewrite dA_entry.
by case: ltnP => _; rewrite ?mulr1n ?mulr0n ?mulNr ?mul0r ?oppr0.
Qed.

(** The derivatives by the logarithms of decays, channel by channel. *)
Section Channel.
Variable x : 'I_d.
(** D_[s, r) in channel x. *)
Definition kept s r : R := \prod_(s <= t < r) a t 0 x.

(** What row r gives the logarithm of its own decay in the recurrent adjoint ... *)
Definition rec_dg r : R :=
  \sum_l cotangent_decayed (q r) (k r) (c r) (b r) (rec_cotangent r.+1) x l * decayed (decay r) (rec_state r) x l.

(** ... and in the chunk: what moves with D_(j, r], what the key of row r leaves in the last state, and all that moves with
    D_[0, r]; the last row has what the chunk keeps to its end. *)
Definition pair_log (r j : 'I_C) : R := (dAqk r j * q r x 0 + b r * dA r j * k r x 0) * (kept j.+1 r.+1 * k j x 0).
Definition kept_log (r : 'I_C) : R := k r x 0 * (kept r.+1 C * (dh *m (row r v_new)^T) x 0).
Definition dg_local (r : 'I_C) : R :=
  q r x 0 * (kept 0 r.+1 * (h *m c r) x 0) + b r * k r x 0 * (kept 0 r.+1 * dkb r x)
  + (\sum_j pair_log r j - \sum_i pair_log i r) - kept_log r
  + (\sum_j kept_log j + kept 0 C * \sum_l h x l * dh x l) *+ (r.+1 == C).

Lemma kept_cut s m r : (s <= m)%N -> (m <= r)%N -> kept s m * kept m r = kept s r.
Proof. by move=> sm mr; rewrite /kept -big_cat_nat. Qed.

Lemma ratio_entry n s r (M : 'M[R]_(d, n)) l : (ratio s r *m M) x l = kept s r * M x l.
Proof. by rewrite /ratio /wy.ratio /decay channel_decay_ratio mul_diag_mx !mxE. Qed.

Lemma addE n (M N : 'M[R]_(d, n)) l : (M + N) x l = M x l + N x l.
Proof. by rewrite mxE. Qed.

Lemma outerE n (y : 'cV[R]_d) (z : 'cV[R]_n) l : (y *m z^T) x l = y x 0 * z l 0.
Proof. by rewrite mxE big_ord1 mxE. Qed.

Lemma pairE i l : (q i *m (c i)^T - k i *m (rec_dv i)^T) x l = q i x 0 * c i l 0 - k i x 0 * rec_dv i l 0.
Proof. by rewrite addE outerE; congr (_ + _); rewrite mxE outerE. Qed.

Lemma cotangent_entry (r : 'I_C) l :
  cotangent_decayed (q r) (k r) (c r) (b r) (rec_cotangent r.+1) x l
  = kept r.+1 C * dh x l + \sum_(i < C | (r <= i)%N) kept r.+1 i.+1 * (q i x 0 * c i l 0 - k i x 0 * rec_dv i l 0).
Proof.
rewrite /cotangent_decayed /cotangent -/(rec_dv r) cotangent_sum // -addrA addE pairE addE ratio_entry -addrA; congr (_ + _).
have E (F : nat -> R) : \sum_(i < C | (r <= i)%N) F i = \sum_(r <= i < C) F i by rewrite big_geq_mkord.
rewrite (E (fun i => kept r.+1 i.+1 * (q i x 0 * c i l 0 - k i x 0 * rec_dv i l 0))) (big_ltn (ltn_ord r)) /kept [in RHS]big_geq // mul1r addrC summxE; congr (_ + _).
by apply: eq_bigr => i _; rewrite ratio_entry pairE.
Qed.

Lemma decayed_entry (r : 'I_C) l :
  decayed (decay r) (rec_state r) x l
  = kept 0 r.+1 * h x l + \sum_(j < C | (j < r)%N) kept j.+1 r.+1 * (k j x 0 * rec_write j l 0).
Proof.
rewrite decayed_sum addE ratio_entry summxE; congr (_ + _).
rewrite big_mkord (big_ord_widen C (fun j => (ratio j.+1 r.+1 *m k j *m (rec_write j)^T) x l)) ?(ltnW (ltn_ord r)) //.
by apply: eq_bigr => j _; rewrite -mulmxA ratio_entry outerE.
Qed.

Lemma pair_of_rows (i j r : 'I_C) : (j < r)%N -> (r <= i)%N ->
  \sum_l (kept r.+1 i.+1 * (q i x 0 * c i l 0 - k i x 0 * rec_dv i l 0)) * (kept j.+1 r.+1 * (k j x 0 * rec_write j l 0))
  = pair_log i j.
Proof.
move=> jr ri; rewrite /pair_log dAqk_entry dA_entry (leq_trans jr ri) (ltnW (leq_trans jr ri)) !mulr1n.
rewrite -(kept_cut (s := j.+1) (m := r.+1) (r := i.+1)) ?ltnS ?(ltnW jr) //.
have -> : b i * - dot (rec_by_key i) (rec_write j) = - dot (rec_dv i) (rec_write j) by rewrite mulrN -dotZl.
rewrite /dot -sumrN !mulr_suml -big_split /= mulr_suml; apply: eq_bigr => l _; ring.
Qed.

(** dg: from the end of the chunk the derivatives by the logarithms of D_[0, i] add up. *)
Theorem dg_of_stages (r : 'I_C) : \sum_(i < C | (r <= i)%N) dg_local i = rec_dg r.
Proof.
have Cpos : (C.-1 < C)%N by case: (C) r => // [[]].
pose last := Ordinal Cpos.
have last_next : last.+1 = C by rewrite /= (ltn_predK Cpos).
have at_last (X : R) : \sum_(i < C | (r <= i)%N) X *+ (i.+1 == C) = X.
  rewrite (bigD1 last) /=; last by rewrite -ltnS last_next.
  rewrite last_next eqxx mulr1n big1 ?addr0 // => i /andP[_ il].
  by rewrite -{2}last_next eqSS val_eqE (negPf il).
have halves (F : 'I_C -> R) : \sum_j F j = \sum_(j < C | (j < r)%N) F j + \sum_(j < C | (r <= j)%N) F j.
  by rewrite (bigID (fun j : 'I_C => (j < r)%N)) /=; congr (_ + _); apply: eq_bigl => j; rewrite -leqNgt.
have pairs : \sum_(i < C | (r <= i)%N) \sum_j pair_log i j + \sum_(i < C | (r <= i)%N) - (\sum_j pair_log j i)
   = \sum_(i < C | (r <= i)%N) \sum_(j < C | (j < r)%N) pair_log i j.
  rewrite sumrN (eq_bigr _ (fun i _ => halves (pair_log i))) big_split /= -addrA [X in _ + X](_ : _ = 0) ?addr0 //.
  apply/eqP; rewrite subr_eq0; apply/eqP; rewrite [RHS](eq_bigr (fun i => \sum_(j < C | (r <= j)%N) pair_log j i)).
    exact: exchange_big.
  move=> i ri; rewrite halves big1 ?add0r // => j jr.
  by rewrite /pair_log dAqk_entry dA_entry leqNgt (leq_trans jr ri) /= (ltnNge i j) (ltnW (leq_trans jr ri)) !mulr0n !(mul0r, mulr0, addr0).
rewrite /dg_local !big_split /= at_last pairs sumrN halves.
rewrite /rec_dg (eq_bigr _ (fun l _ => congr2 *%R (cotangent_entry r l) (decayed_entry r l))).
under [RHS]eq_bigr => l _ do rewrite mulrDl !mulrDr.
rewrite !big_split /=.
have -> : \sum_l kept r.+1 C * dh x l * (kept 0 r.+1 * h x l) = kept 0 C * \sum_l h x l * dh x l.
  by rewrite -(kept_cut (leq0n r.+1) (ltn_ord r)) mulr_sumr; apply: eq_bigr => l _; ring.
have regroup (f g m p t : R) : f * g * (m * (p * t)) = p * (m * f * (g * t)) by ring.
have -> : \sum_l kept r.+1 C * dh x l * (\sum_(j < C | (j < r)%N) kept j.+1 r.+1 * (k j x 0 * rec_write j l 0))
   = \sum_(j < C | (j < r)%N) kept_log j.
  under eq_bigr => l _ do rewrite mulr_sumr.
  rewrite exchange_big /=; apply: eq_bigr => j jr; rewrite /kept_log row_v_new trmxK mxE mulr_sumr mulr_sumr.
  by rewrite -(kept_cut (s := j.+1) (m := r.+1) (r := C)) ?ltnS ?(ltnW jr) //; apply: eq_bigr => l _; exact: regroup.
have -> : \sum_l (\sum_(i < C | (r <= i)%N) kept r.+1 i.+1 * (q i x 0 * c i l 0 - k i x 0 * rec_dv i l 0)) * (kept 0 r.+1 * h x l)
   = \sum_(i < C | (r <= i)%N) (q i x 0 * (kept 0 i.+1 * (h *m c i) x 0) + b i * k i x 0 * (kept 0 i.+1 * dkb i x)).
  under eq_bigr => l _ do rewrite mulr_suml.
  rewrite exchange_big /=; apply: eq_bigr => i ri.
  have -> : dkb i x = - (h *m rec_by_key i) x 0 
    by have -> : dkb i x = (row i dkb)^T x 0; [rewrite !mxE | rewrite row_dkb mxE].
  have -> : b i * k i x 0 * (kept 0 i.+1 * - (h *m rec_by_key i) x 0) = - (k i x 0 * (kept 0 i.+1 * (h *m rec_dv i) x 0)).
    have move (p f g y : R) : p * f * (g * - y) = - (f * (g * (p * y))) by ring.
    have scaled_entry (s : R) (y : 'cV[R]_d) : (s *: y) x 0 = s * y x 0 by rewrite mxE.
    by rewrite /rec_dv /dv -/(rec_by_key i) -scalemxAr scaled_entry; exact: move.
  have move (f g p s t u y : R) : f * (p * s - t * u) * (g * y) = p * (g * f * (y * s)) + - (t * (g * f * (y * u))) by ring.
  rewrite -(kept_cut (leq0n r.+1) (r := i.+1)) ?ltnS // [(h *m c i) x 0]mxE [(h *m rec_dv i) x 0]mxE.
  rewrite !mulr_sumr -sumrN -big_split /=; apply: eq_bigr => l _; exact: move.
have -> : \sum_l (\sum_(i < C | (r <= i)%N) kept r.+1 i.+1 * (q i x 0 * c i l 0 - k i x 0 * rec_dv i l 0))
                * (\sum_(j < C | (j < r)%N) kept j.+1 r.+1 * (k j x 0 * rec_write j l 0))
   = \sum_(i < C | (r <= i)%N) \sum_(j < C | (j < r)%N) pair_log i j.
  under eq_bigr => l _ do rewrite mulr_suml.
  rewrite exchange_big /=; apply: eq_bigr => i ri.
  under eq_bigr => l _ do rewrite mulr_sumr.
  by rewrite exchange_big /=; apply: eq_bigr => j jr; rewrite pair_of_rows.
have move (f g p s t u : R) : f + g + p - s + (t + s + u) = u + t + (f + g + p) by ring.
rewrite big_split /=; exact: move.
Qed.
End Channel.

End Chunk.
