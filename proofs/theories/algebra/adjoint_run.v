(* SPDX-FileCopyrightText: 2026 The deltaproof authors *)
(* SPDX-License-Identifier: MIT *)
(*
  Runs of rows (adjoint.v) without their intermediate states, in any commutative ring: the cotangent goes back through the product
  of transitions whose transpose the state goes forward through, and each column of either is a sum over what the rows write or
  read. And the identities of a whole run, between any two of its rows. For oracle/gradients/elements.cpp, which answers for single
  elements so, and for check/gradient_identities.hpp. Not claimed: anything about rounding.
*)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From deltaproof.algebra Require Import rank_one ordered_product adjoint.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory.
Local Open Scope ring_scope.

Section Products.
Variables (R : comRingType) (d e n : nat).
Variables (D : nat -> 'M[R]_d) (q k : nat -> 'cV[R]_d) (v c : nat -> 'cV[R]_e) (b : nat -> R).
Variables (S0 LT : 'M[R]_(d, e)).

(** Rows s .. r - 1, as a cotangent meets them on its way back. *)
Definition back s r : 'M[R]_d := ordered_product (fun t => (D t)^T *m step_transition (b t) (k t)) s r.

Lemma back_first s r : (s < r)%N -> back s r = (D s)^T *m step_transition (b s) (k s) *m back s.+1 r.
Proof. exact: ordered_product_first. Qed.

Lemma back_last s r : (s <= r)%N -> back s r.+1 = back s r *m ((D r)^T *m step_transition (b r) (k r)).
Proof. exact: ordered_product_last. Qed.

Lemma trmx_back_last s r : (s <= r)%N -> (back s r.+1)^T = step_transition (b r) (k r) *m D r *m (back s r)^T.
Proof. by move=> sr; rewrite back_last // trmx_mul (trmx_mul (D r)^T) trmxK trmx_step. Qed.

Lemma back_empty s : back s s = 1%:M.
Proof. exact: ordered_product_empty. Qed.

(** The product of transitions, transposed: forwards the rows act one by one, each by I - b k k^T after its decay, the last one
    outermost. *)
Theorem back_transposed s r :
  (back s r)^T = ordered_product (fun t => step_transition (b (s + r - t.+1)) (k (s + r - t.+1)) *m D (s + r - t.+1)) s r.
Proof.
rewrite /back ordered_product_transposed; apply: eq_ordered_product => t _.
by rewrite trmx_mul trmxK trmx_step.
Qed.

Local Notation state := (state D k v b).

Lemma state_step S r : state S r.+1 = step_transition (b r) (k r) *m (D r *m state S r) + (b r *: k r) *m (v r)^T.
Proof.
rewrite [LHS]/= /state_after /row_write /innovation /decayed; set X := D r *m _.
rewrite /step_transition /rank_one mulmxBl mul1mx linearZ /= linearB /= trmx_mul trmxK -scalemxAr -!scalemxAl mulmxBr mulmxA scalerBr.
by rewrite addrA addrAC.
Qed.

(** The state after rows 0 .. r - 1: the start through all of them, and what each wrote through those after it. *)
Theorem run_state r : state S0 r = (back 0 r)^T *m S0 + \sum_(0 <= i < r) (back i.+1 r)^T *m (b i *: k i) *m (v i)^T.
Proof.
elim: r => [|r IH]; first by rewrite back_empty trmx1 mul1mx big_geq // addr0.
rewrite state_step IH trmx_back_last // big_nat_recr //= back_empty trmx1 mul1mx addrA; congr (_ + _).
rewrite [in RHS](eq_big_nat _ _ (F2 := fun i => step_transition (b r) (k r) *m (D r *m ((back i.+1 r)^T *m (b i *: k i) *m (v i)^T)))).
  by rewrite -!mulmx_sumr -!mulmxA -!mulmxDr.
by move=> i /andP[_ ir]; rewrite trmx_back_last // !mulmxA.
Qed.

(** A change of the start goes forwards through the transpose ... *)
Theorem run_start_moved X r : state (S0 + X) r = state S0 r + (back 0 r)^T *m X.
Proof.
elim: r => [|r IH]; first by rewrite back_empty trmx1 mul1mx.
rewrite !state_step IH trmx_back_last //; move: (step_transition (b r) (k r)) => T.
by rewrite !mulmxDr !mulmxA addrAC.
Qed.

(** ... of what the cotangent goes back through: with what the rows read, it is the cotangent before row r. *)
Theorem run_cotangent r : (r <= n)%N ->
  cotangent_of n D q k c b LT r = back r n *m LT + \sum_(r <= i < n) back r i.+1 *m q i *m (c i)^T.
Proof.
move=> rn; rewrite -(subKn rn); move: (n - r)%N (leq_subr r n) => m; elim: m => [|m IH] mn.
  by rewrite subn0 cotangent_last back_empty mul1mx big_geq // addr0.
have lt : (n - m.+1 < n)%N by rewrite -subn_gt0 subKn.
have next : (n - m.+1).+1 = (n - m)%N by rewrite subnSK.
set r0 := (n - m.+1)%N in lt next *.
rewrite cotangent_next // next /cotangent_before cotangent_transition /cotangent (IH (ltnW mn)) -next.
rewrite (big_ltn lt) (back_first lt) (back_first (ltnSn r0)) back_empty mulmx1.
rewrite [in RHS](eq_big_nat _ _ (F2 := fun i => (D r0)^T *m (step_transition (b r0) (k r0) *m (back r0.+1 i.+1 *m q i *m (c i)^T)))).
  move: (step_transition (b r0) (k r0)) => T; rewrite -!mulmx_sumr -!mulmxA !mulmxDr -!addrA; congr (_ + _); exact: addrC.
by move=> i /andP[ri _]; rewrite back_first ?(leq_trans ri) // !mulmxA.
Qed.

(** A run may be cut anywhere: the cotangents of its head are those of a run by itself, from the cotangent before its tail. *)
Theorem cotangent_cut m r : (r <= m)%N -> (m <= n)%N ->
  cotangent_of n D q k c b LT r = cotangent_of m D q k c b (cotangent_of n D q k c b LT m) r.
Proof.
move=> rm mn; rewrite -(subKn rm); move: (m - r)%N (leq_subr r m) => j; elim: j => [|j IH] jm.
  by rewrite subn0 cotangent_last.
have lt : (m - j.+1 < m)%N by rewrite -subn_gt0 subKn.
have next : (m - j.+1).+1 = (m - j)%N by rewrite subnSK.
rewrite (cotangent_next _ _ _ _ _ _ (leq_trans lt mn)) (cotangent_next _ _ _ _ _ _ lt) next.
by rewrite IH // ltnW.
Qed.

(** What any vector x shows of a state, from its way back ... *)
Theorem state_along x r :
  (state S0 r)^T *m x = S0^T *m (back 0 r *m x) + \sum_(0 <= i < r) (b i * dot (k i) (back i.+1 r *m x)) *: v i.
Proof.
rewrite run_state linearD /= mulmxDl trmx_mul trmxK mulmxA; congr (_ + _).
rewrite raddf_sum /= mulmx_suml; apply: eq_bigr => i _.
rewrite !trmx_mul !trmxK -!mulmxA linearZ /= -scalemxAl trmx_mul_dot.
by rewrite -scalemxAr mul_mx_scalar scalerA mulrC.
Qed.

(** ... and of a cotangent, from its way on. *)
Theorem cotangent_along x r : (r <= n)%N ->
  (cotangent_of n D q k c b LT r)^T *m x
  = LT^T *m ((back r n)^T *m x) + \sum_(r <= i < n) dot (q i) ((back r i.+1)^T *m x) *: c i.
Proof.
move=> rn; rewrite run_cotangent // linearD /= mulmxDl trmx_mul !mulmxA; congr (_ + _).
rewrite raddf_sum /= mulmx_suml; apply: eq_bigr => i _.
by rewrite !trmx_mul !trmxK -!mulmxA trmx_mul_dot mul_mx_scalar.
Qed.

(** I3 over a run: the derivatives by log decays of rows r and s, added up over the channels, differ by what rows r .. s - 1 read
    less what they write. A run of n rows ends with <S_n, L_n>. *)
Definition log_decays r : R := inner (state S0 r) (cotangent_of n D q k c b LT r).

Theorem run_log_decays r s : (r <= s)%N -> (s <= n)%N ->
  log_decays r - log_decays s
  = \sum_(r <= i < s) (dot (output D q k v b S0 i) (c i) - dot (v i) (gradient_v n D q k c b LT i)).
Proof.
move=> rs sn.
have Hr := run_sums D q k v c b S0 LT (leq_trans rs sn); have Hs := run_sums D q k v c b S0 LT sn.
rewrite (big_cat_nat _ _ _ rs sn) /= [in X in _ = X](big_cat_nat _ _ _ rs sn) /= in Hr.
rewrite sumrB /log_decays; set A := \sum_(r <= i < s) dot (v i) _ in Hr *; set B := \sum_(r <= i < s) dot (output _ _ _ _ _ _ i) _ in Hr *.
set A' := \sum_(s <= i < n) dot (v i) _ in Hr Hs; set B' := \sum_(s <= i < n) dot (output _ _ _ _ _ _ i) _ in Hr Hs.
have -> : inner (state S0 r) (cotangent_of n D q k c b LT r) = inner (state S0 n) LT + (B + B') - (A + A').
  by rewrite -Hr addrK.
have -> : inner (state S0 s) (cotangent_of n D q k c b LT s) = inner (state S0 n) LT + B' - A' by rewrite -Hs addrK.
ring.
Qed.

(** The derivatives by the logarithms of the channels of row r, added up, are that number. *)
Theorem log_decays_of_row r : (r < n)%N ->
  inner (cotangent_decayed (q r) (k r) (c r) (b r) (cotangent_of n D q k c b LT r.+1)) (decayed (D r) (state S0 r)) = log_decays r.
Proof. by move=> rn; rewrite log_decays_sum /log_decays (cotangent_next _ _ _ _ _ _ rn). Qed.

(** I5 over a run: where decays are numbers, sum q dq^T + k dk^T + S_r L_r^T + L_n S_n^T is symmetric. *)
Definition key_sum i : 'M[R]_d :=
  q i *m (dq (D i) (k i) (v i) (c i) (b i) (state S0 i))^T
  + k i *m (dk (D i) (q i) (k i) (v i) (c i) (b i) (state S0 i) (cotangent_of n D q k c b LT i.+1))^T.

Theorem run_key_sums r (a : nat -> R) : (forall t, D t = (a t)%:M) -> (r <= n)%N ->
  let X := \sum_(r <= i < n) key_sum i + state S0 r *m (cotangent_of n D q k c b LT r)^T + LT *m (state S0 n)^T in X^T = X.
Proof.
move=> ED rn; rewrite /=; set Y := key_sum.
have regroup (x y s A l : 'M[R]_d) : x + y + s - l = (x + s - A) + (y + A - l).
  by apply/matrixP => i j; rewrite !mxE; ring.
have H : let Z := \sum_(r <= i < n) Y i + state S0 r *m (cotangent_of n D q k c b LT r)^T - state S0 n *m LT^T in Z^T = Z.
  rewrite -(subKn rn) /=; move: (n - r)%N (leq_subr r n) => m; elim: m => [|m IH] mn.
    by rewrite subn0 big_geq // add0r cotangent_last subrr trmx0.
  have lt : (n - m.+1 < n)%N by rewrite -subn_gt0 subKn.
  have next : (n - m.+1).+1 = (n - m)%N by rewrite subnSK.
  set r0 := (n - m.+1)%N in lt next *; rewrite (big_ltn lt) next.
  have row := @key_sums_symmetric R d e (D r0) (q r0) (k r0) (v r0) (c r0) (b r0) (state S0 r0) (cotangent_of n D q k c b LT r0.+1) (a r0) (ED r0).
  have IH' := IH (ltnW mn); rewrite -next in IH'.
  rewrite cotangent_next // -next; move: row IH'; rewrite /= -/(Y r0).
  set P := _ - state_after _ _ _ _ _ *m _; set Q := _ - state S0 n *m LT^T => HP HQ.
  have -> : Y r0 + \sum_(r0.+1 <= i < n) Y i + state S0 r0 *m (cotangent_before (D r0) (q r0) (k r0) (c r0) (b r0) (cotangent_of n D q k c b LT r0.+1))^T
            - state S0 n *m LT^T = P + Q.
    exact: regroup.
  by rewrite linearD /= HP HQ.
move: H; rewrite /=; set Z := _ - state S0 n *m LT^T => H.
have -> : \sum_(r <= i < n) Y i + state S0 r *m (cotangent_of n D q k c b LT r)^T + LT *m (state S0 n)^T
          = Z + (state S0 n *m LT^T + LT *m (state S0 n)^T) by rewrite addrA subrK.
by clearbody Z; rewrite linearD /= H linearD /= !trmx_mul !trmxK [LT *m _ + _]addrC.
Qed.
End Products.

(** A run from row s is a run from row 0 of the sequences shifted by s: what is shown of the first chunk holds of each. *)
Theorem cotangent_shift (R : comRingType) d e n (D : nat -> 'M[R]_d) (q k : nat -> 'cV[R]_d) (c : nat -> 'cV[R]_e) (b : nat -> R)
    (LT : 'M[R]_(d, e)) s r : (r <= n)%N ->
  cotangent_of (n + s) D q k c b LT (r + s) =
  cotangent_of n (fun t => D (t + s)%N) (fun t => q (t + s)%N) (fun t => k (t + s)%N) (fun t => c (t + s)%N) (fun t => b (t + s)%N) LT r.
Proof.
move=> rn; rewrite -(subKn rn); move: (n - r)%N (leq_subr r n) => j; elim: j => [|j IH] jn.
  by rewrite subn0 !cotangent_last.
have lt : (n - j.+1 < n)%N by rewrite -subn_gt0 subKn.
have next : (n - j.+1).+1 = (n - j)%N by rewrite subnSK.
have lts : (n - j.+1 + s < n + s)%N by rewrite ltn_add2r.
rewrite (cotangent_next _ _ _ _ _ _ lts) (cotangent_next _ _ _ _ _ _ lt) -addSn next.
by rewrite IH // ltnW.
Qed.
