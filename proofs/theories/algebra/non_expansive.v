(* SPDX-FileCopyrightText: 2026 The deltaproof authors *)
(* SPDX-License-Identifier: MIT *)
(*
  How long a vector can become under steps of the delta rule, over any ordered field: the exact energy balance of one
  step, the norm max(1, |1 - b |k|^2|) and that it is attained, decays of at most 1 in absolute value, one number or one
  a channel (GDN, KDA), products of any length with the factors of expansive steps carried, divergence where
  |1 - b |k|^2| > 1, and that eigenvalues in the unit disc decide nothing for I - x y^T. For the verdicts that say "the
  exact transition cannot expand" and for the oracle's radius. Norms are stated through their squares, so that no root
  is needed. Not claimed: that a product shrinks; anything about rounded steps (theories/float).
*)
From mathcomp Require Import all_ssreflect fingroup perm all_algebra.
From mathcomp Require Import ring.
From deltaproof.algebra Require Import rank_one ordered_product.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section SquaredNorm.
Variable R : realFieldType.
Implicit Types (d : nat) (b : R).

(** |x|^2. *)
Definition squared_norm d (x : 'cV[R]_d) := dot x x.

Lemma squared_norm_ge0 d (x : 'cV[R]_d) : 0 <= squared_norm x.
Proof. by apply: sumr_ge0 => i _; rewrite -expr2 sqr_ge0. Qed.

Lemma squared_norm0 d : squared_norm (0 : 'cV[R]_d) = 0.
Proof. exact: dot0l. Qed.

Lemma squared_normZ d a (x : 'cV[R]_d) : squared_norm (a *: x) = a ^+ 2 * squared_norm x.
Proof. by rewrite /squared_norm dotZl dotZr mulrA expr2. Qed.

Lemma squared_norm_sub d a (x y : 'cV[R]_d) :
  squared_norm (x - a *: y) = squared_norm x - 2%:R * a * dot y x + a ^+ 2 * squared_norm y.
Proof. by rewrite /squared_norm dotBl !dotBr !(dotZl, dotZr) (dotC x y); ring. Qed.

Lemma squared_norm_add d (x y : 'cV[R]_d) :
  squared_norm (x + y) = squared_norm x + 2%:R * dot x y + squared_norm y.
Proof.
have -> : x + y = x - (-1) *: y by rewrite scaleN1r opprK.
by rewrite squared_norm_sub (dotC y x); ring.
Qed.

Lemma squared_norm_eq0 d (x : 'cV[R]_d) : (squared_norm x == 0) = (x == 0).
Proof.
apply/eqP/eqP => [|->]; last exact: squared_norm0.
move=> /psumr_eq0P h; apply/colP => i; rewrite mxE.
have /eqP : x i 0 * x i 0 = 0 by apply: h => // j _; rewrite -expr2 sqr_ge0.
by rewrite mulf_eq0 orbb => /eqP.
Qed.

Lemma squared_norm_gt0 d (x : 'cV[R]_d) : x != 0 -> 0 < squared_norm x.
Proof. by move=> x0; rewrite lt0r squared_norm_eq0 x0 squared_norm_ge0. Qed.

(** (x^T y)^2 <= |x|^2 |y|^2. *)
Theorem cauchy_schwarz d (x y : 'cV[R]_d) : dot x y ^+ 2 <= squared_norm x * squared_norm y.
Proof.
have [->|y0] := eqVneq y 0.
  by rewrite dotC dot0l squared_norm0 mulr0 expr0n.
have y_gt0 := squared_norm_gt0 y0.
have := squared_norm_ge0 (x - (dot y x / squared_norm y) *: y); rewrite squared_norm_sub (dotC x y).
have -> : squared_norm x - 2%:R * (dot y x / squared_norm y) * dot y x
          + (dot y x / squared_norm y) ^+ 2 * squared_norm y
        = (squared_norm x * squared_norm y - dot y x ^+ 2) / squared_norm y by field; rewrite gt_eqF.
by rewrite pmulr_lge0 ?invr_gt0 // subr_ge0.
Qed.

(** |(I - b k k^T) z|^2 = |z|^2 - b (2 - b |k|^2) (k^T z)^2: what one step takes from a vector, exactly. *)
Theorem energy_balance d b (k z : 'cV[R]_d) :
  squared_norm (step_transition b k *m z)
  = squared_norm z - b * (2%:R - b * squared_norm k) * dot k z ^+ 2.
Proof. by rewrite step_apply squared_norm_sub; ring. Qed.

(** A step with 0 <= b |k|^2 <= 2 lengthens no vector. *)
Theorem step_non_expansive d b (k z : 'cV[R]_d) :
  0 <= b * squared_norm k <= 2%:R -> squared_norm (step_transition b k *m z) <= squared_norm z.
Proof.
case/andP=> bk0 bk2; rewrite energy_balance ger_addl oppr_le0.
have [->|k0] := eqVneq k 0; first by rewrite dot0l expr0n mulr0.
have b0 : 0 <= b by rewrite -(pmulr_lge0 _ (squared_norm_gt0 k0)).
by rewrite mulr_ge0 ?sqr_ge0 // mulr_ge0 // subr_ge0.
Qed.

Lemma sqr_normr (t : R) : `|t| ^+ 2 = t ^+ 2.
Proof. by rewrite real_normK ?num_real. Qed.

Lemma abs_one_minus_le1 (t : R) : (`|1 - t| <= 1) = (0 <= t <= 2%:R).
Proof. by rewrite ler_norml ger_addl oppr_le0 andbC ler_subr_addr addrC ler_subl_addr -mulr2n. Qed.

(** The factor of a step, max(1, |1 - b |k|^2|). *)
Definition expansion d b (k : 'cV[R]_d) : R := Num.max 1 `|1 - b * squared_norm k|.

Lemma expansion_ge1 d b (k : 'cV[R]_d) : 1 <= expansion b k.
Proof. by rewrite le_maxr lexx. Qed.

Lemma expansion_ge0 d b (k : 'cV[R]_d) : 0 <= expansion b k.
Proof. exact: le_trans ler01 (expansion_ge1 b k). Qed.

Lemma expansion_stable d b (k : 'cV[R]_d) : 0 <= b * squared_norm k <= 2%:R -> expansion b k = 1.
Proof.
by move=> h; apply/max_idPl; rewrite abs_one_minus_le1.
Qed.

(** For any b and k a step multiplies lengths by at most max(1, |1 - b |k|^2|). *)
Theorem step_norm d b (k z : 'cV[R]_d) :
  squared_norm (step_transition b k *m z) <= expansion b k ^+ 2 * squared_norm z.
Proof.
have [h|h] := boolP (0 <= b * squared_norm k <= 2%:R).
  apply: le_trans (step_non_expansive z h) _.
  by rewrite -{1}[squared_norm z]mul1r ler_wpmul2r ?squared_norm_ge0 // exprn_ege1 ?expansion_ge1.
have kz := cauchy_schwarz k z.
apply: (@le_trans _ _ ((1 - b * squared_norm k) ^+ 2 * squared_norm z)); last first.
  rewrite ler_wpmul2r ?squared_norm_ge0 // -(ger0_norm (sqr_ge0 _)) normrX.
  by rewrite ler_expn2r ?nnegrE ?normr_ge0 ?expansion_ge0 // le_maxr lexx orbT.
rewrite energy_balance -subr_ge0.
have -> : (1 - b * squared_norm k) ^+ 2 * squared_norm z
          - (squared_norm z - b * (2%:R - b * squared_norm k) * dot k z ^+ 2)
  = b * (b * squared_norm k - 2%:R) * (squared_norm k * squared_norm z - dot k z ^+ 2) by ring.
rewrite mulr_ge0 ?subr_ge0 //.
move: h; rewrite negb_and -!ltNge => /orP[h|h].
  have b0 : b < 0.
    by rewrite ltNge; apply: contraTN h => b0; rewrite -leNgt mulr_ge0 // squared_norm_ge0.
  by rewrite mulr_le0 ?(ltW b0) // subr_le0 (le_trans (ltW h)) ?ler0n.
have b0 : 0 < b.
  rewrite ltNge; apply/negP => b0; move: h; rewrite ltNge.
  by rewrite (le_trans (mulr_le0_ge0 b0 (squared_norm_ge0 k))) ?ler0n.
by rewrite mulr_ge0 ?(ltW b0) // subr_ge0 ltW.
Qed.

(** The factor is attained: by the key where it exceeds 1 ... *)
Theorem step_norm_attained d b (k : 'cV[R]_d) :
  squared_norm (step_transition b k *m k) = (1 - b * squared_norm k) ^+ 2 * squared_norm k.
Proof. by rewrite step_eigenvector squared_normZ. Qed.

(** ... so a step is non-expansive exactly if 0 <= b |k|^2 <= 2. *)
Theorem step_non_expansive_iff d b (k : 'cV[R]_d) :
  (forall z, squared_norm (step_transition b k *m z) <= squared_norm z) <-> 0 <= b * squared_norm k <= 2%:R.
Proof.
split=> [h|h z]; last exact: step_non_expansive.
have [->|k0] := eqVneq k 0; first by rewrite squared_norm0 mulr0 lexx ler0n.
have k_gt0 := squared_norm_gt0 k0.
have := h k; rewrite step_norm_attained -[X in _ <= X]mul1r ler_pmul2r //.
by rewrite -[X in X <= _]sqr_normr expr_le1 ?normr_ge0 // abs_one_minus_le1.
Qed.

(** A decay of at most 1 in absolute value, channel by channel, lengthens nothing. *)
Theorem decay_non_expansive d (a : 'rV[R]_d) (z : 'cV[R]_d) :
  (forall c, `|a 0 c| <= 1) -> squared_norm (diag_mx a *m z) <= squared_norm z.
Proof.
move=> ha; apply: ler_sum => c _; rewrite mul_diag_mx mxE mulrACA -!expr2.
rewrite -[X in _ <= X]mul1r ler_wpmul2r ?sqr_ge0 //.
by rewrite -sqr_normr exprn_ile1 ?normr_ge0.
Qed.

(** One decayed step, diag(a) then I - b k k^T, lengthens nothing if 0 <= b |k|^2 <= 2 and |a| <= 1: gates per channel
    (KDA) keep the norm, though the matrix is not symmetric. *)
Theorem decayed_step_non_expansive d b (k z : 'cV[R]_d) (a : 'rV[R]_d) :
  0 <= b * squared_norm k <= 2%:R -> (forall c, `|a 0 c| <= 1) ->
  squared_norm (step_transition b k *m (diag_mx a *m z)) <= squared_norm z.
Proof. by move=> hb ha; apply: le_trans (step_non_expansive _ hb) (decay_non_expansive _ ha). Qed.
End SquaredNorm.

Section Products.
Variables (R : realFieldType) (d : nat).
Implicit Types (z : 'cV[R]_d) (A : nat -> 'M[R]_d).

(** If every factor multiplies lengths by at most rho_t, a product multiplies them by at most the product of the rho_t. *)
Theorem product_norm A (rho : nat -> R) s r z : (s <= r)%N ->
  (forall t z', (s <= t < r)%N -> squared_norm (A t *m z') <= rho t ^+ 2 * squared_norm z') ->
  squared_norm (ordered_product A s r *m z) <= (\prod_(s <= t < r) rho t) ^+ 2 * squared_norm z.
Proof.
move=> sr h; elim: r sr z h => [|r IH] sr z h; first by rewrite /= big_geq // expr1n mul1mx mul1r.
move: sr; rewrite leq_eqVlt => /orP[/eqP->|sr].
  by rewrite ordered_product_empty // big_geq // expr1n mul1mx mul1r.
rewrite ordered_product_last // -mulmxA big_nat_recr //= exprMn -mulrA.
apply: le_trans (IH _ _ _) _ => // [t z' /andP[st tr]|]; first by rewrite h // st ltnW.
by rewrite ler_wpmul2l ?sqr_ge0 // h // -ltnS sr ltnSn.
Qed.

(** The same for the transpose, the product in the other order: rows and columns of a state. *)
Theorem transposed_product_norm A (rho : nat -> R) s r z : (s <= r)%N ->
  (forall t z', (s <= t < r)%N -> squared_norm ((A t)^T *m z') <= rho t ^+ 2 * squared_norm z') ->
  squared_norm ((ordered_product A s r)^T *m z) <= (\prod_(s <= t < r) rho t) ^+ 2 * squared_norm z.
Proof.
move=> sr h; elim: r sr h => [|r IH] sr h; first by rewrite /= big_geq // expr1n trmx1 mul1mx mul1r.
move: sr; rewrite leq_eqVlt => /orP[/eqP->|sr].
  by rewrite ordered_product_empty // big_geq // expr1n trmx1 mul1mx mul1r.
rewrite ordered_product_last // trmx_mul -mulmxA big_nat_recr //= exprMn [_ * rho r ^+ 2]mulrC -mulrA.
apply: le_trans (h r _ _) _; first by rewrite -ltnS sr ltnSn.
rewrite ler_wpmul2l ?sqr_ge0 // IH // => t z' /andP[st tr]; by rewrite h // st ltnW.
Qed.

Variables (b : nat -> R) (k : nat -> 'cV[R]_d) (a : nat -> 'rV[R]_d).

(** One row of a gated sequence: the decay, then the step. *)
Definition decayed_step t : 'M[R]_d := diag_mx (a t) *m step_transition (b t) (k t).

Lemma decayed_step_norm t z : (forall c, `|a t 0 c| <= 1) ->
  squared_norm (decayed_step t *m z) <= expansion (b t) (k t) ^+ 2 * squared_norm z.
Proof. by move=> ha; rewrite /decayed_step -mulmxA; apply: le_trans (decay_non_expansive _ ha) (step_norm _ _ _). Qed.

Lemma transposed_decayed_step_norm t z : (forall c, `|a t 0 c| <= 1) ->
  squared_norm ((decayed_step t)^T *m z) <= expansion (b t) (k t) ^+ 2 * squared_norm z.
Proof.
move=> ha; rewrite /decayed_step trmx_mul trmx_step tr_diag_mx -mulmxA.
by apply: le_trans (step_norm _ _ _) _; rewrite ler_wpmul2l ?sqr_ge0 ?decay_non_expansive.
Qed.

(** A run of decayed steps multiplies lengths by at most the product of max(1, |1 - b |k|^2|): expansive steps are carried,
    stable ones cost nothing. From both sides. *)
Theorem run_norm s r z : (s <= r)%N -> (forall t c, (s <= t < r)%N -> `|a t 0 c| <= 1) ->
  squared_norm (ordered_product decayed_step s r *m z)
    <= (\prod_(s <= t < r) expansion (b t) (k t)) ^+ 2 * squared_norm z
  /\ squared_norm ((ordered_product decayed_step s r)^T *m z)
    <= (\prod_(s <= t < r) expansion (b t) (k t)) ^+ 2 * squared_norm z.
Proof.
move=> sr ha; split.
  by apply: product_norm => // t z' st; apply: decayed_step_norm => c; apply: ha.
by apply: transposed_product_norm => // t z' st; apply: transposed_decayed_step_norm => c; apply: ha.
Qed.

(** A run of stable steps with decays of at most 1 lengthens nothing, whatever its length: KDA and all below it. *)
Theorem run_non_expansive s r z : (s <= r)%N ->
  (forall t, (s <= t < r)%N -> 0 <= b t * squared_norm (k t) <= 2%:R) ->
  (forall t c, (s <= t < r)%N -> `|a t 0 c| <= 1) ->
  squared_norm (ordered_product decayed_step s r *m z) <= squared_norm z
  /\ squared_norm ((ordered_product decayed_step s r)^T *m z) <= squared_norm z.
Proof.
move=> sr hb ha; have := run_norm z sr ha.
have -> : \prod_(s <= t < r) expansion (b t) (k t) = 1.
  by rewrite big_nat big1 // => t st; rewrite expansion_stable ?hb.
by rewrite expr1n mul1r.
Qed.

(** If every 1 - b |k|^2 is at least -(1 + dl), T steps lengthen by at most (1 + dl)^T. *)
Theorem run_growth dl T z : 0 <= dl ->
  (forall t, (t < T)%N -> 0 <= b t * squared_norm (k t) <= 2%:R + dl) ->
  (forall t c, (t < T)%N -> `|a t 0 c| <= 1) ->
  squared_norm (ordered_product decayed_step 0 T *m z) <= (1 + dl) ^+ (2 * T) * squared_norm z.
Proof.
move=> dl0 hb ha; have [h _] := run_norm z (leq0n T) (fun t c tT => ha t c tT).
apply: le_trans h _; rewrite ler_wpmul2r ?squared_norm_ge0 // mulnC exprM ler_expn2r ?nnegrE ?prodr_ge0 //.
- by move=> t _; apply: expansion_ge0.
- by rewrite exprn_ge0 // addr_ge0.
rewrite -[T in X in _ <= X]subn0 -prodr_const_nat big_nat [X in _ <= X]big_nat.
apply: ler_prod => t tT; rewrite expansion_ge0 /= le_maxl ler_addl dl0 /=.
have /andP[h0 h2] := hb t tT; rewrite ler_norml opprD; apply/andP; split.
  by rewrite ler_subr_addl -ler_subr_addr (le_trans h2) // -subr_ge0 (_ : _ - _ = 0) ?lexx //; ring.
by rewrite ler_add2l (le_trans _ dl0) // oppr_le0.
Qed.

(** (1 + dl)^T is attained: one key repeated with b |k|^2 = 2 + dl. *)
Theorem run_growth_attained dl T (b' : R) (k' : 'cV[R]_d) : b' * squared_norm k' = 2%:R + dl ->
  squared_norm (iter T (mulmx (step_transition b' k')) k') = (1 + dl) ^+ (2 * T) * squared_norm k'.
Proof.
move=> h; rewrite step_power_on_key squared_normZ -/(squared_norm k') h.
have -> : 1 - (2%:R + dl) = - (1 + dl) by ring.
by rewrite -exprM mulnC exprM sqrrN -exprM.
Qed.
End Products.

Section GrowthFromBelow.
Variables (R : realFieldType) (d : nat).

Lemma determinant_le_entries (P : 'M[R]_d) N :
  0 <= N -> (forall i j, `|P i j| <= N) -> `|\det P| <= d`!%:R * N ^+ d.
Proof.
move=> N0 small; apply: le_trans (ler_norm_sum _ _ _) _.
apply: (@le_trans _ _ (\sum_(s : 'S_d) N ^+ d)); last by rewrite sumr_const card_Sn mulr_natl.
apply: ler_sum => s _; rewrite normrM normrX normrN1 expr1n mul1r normr_prod -[d in _ ^+ d]card_ord -prodr_const.
by apply: ler_prod => i _; rewrite normr_ge0 small.
Qed.

(** Whatever the keys, the product of |1 - b |k|^2| over T steps is at most d! times the d-th power of the largest entry of
    their product: with one factor |R| a step, entries are at least (|R|^T / d!)^(1/d). *)
Theorem product_growth_at_least (b : nat -> R) (k : nat -> 'cV[R]_d) T N : 0 <= N ->
  (forall i j, `|ordered_product (fun t => step_transition (b t) (k t)) 0 T i j| <= N) ->
  \prod_(0 <= t < T) `|1 - b t * squared_norm (k t)| <= d`!%:R * N ^+ d.
Proof.
move=> N0 small; have := determinant_le_entries N0 small.
rewrite ordered_product_determinant normr_prod; apply: le_trans.
by rewrite le_eqVlt; apply/orP; left; apply/eqP/eq_bigr => t _; rewrite step_determinant.
Qed.
End GrowthFromBelow.

Section Divergence.
Variable R : archiFieldType.

Lemma bernoulli (x : R) n : 0 <= x -> 1 + x *+ n <= (1 + x) ^+ n.
Proof.
move=> x0; elim: n => [|n IH]; first by rewrite mulr0n addr0 expr0.
rewrite exprS mulrS; apply: (@le_trans _ _ ((1 + x) * (1 + x *+ n))); last first.
  by rewrite ler_wpmul2l // addr_ge0 ?ler01.
rewrite -subr_ge0.
have -> : (1 + x) * (1 + x *+ n) - (1 + (x + x *+ n)) = x * x *+ n.
  by rewrite -(mulr_natr x) -(mulr_natr (x * x)); ring.
by rewrite mulrn_wge0 // mulr_ge0.
Qed.

Lemma power_unbounded (q M : R) : 1 < q -> exists n, M < q ^+ n.
Proof.
move=> q1; have x0 : 0 < q - 1 by rewrite subr_gt0.
pose y := `|M / (q - 1)|; exists (Num.bound y).
have := archi_boundP (normr_ge0 (M / (q - 1))); rewrite -/y => h.
have {}h : M / (q - 1) < (Num.bound y)%:R by apply: le_lt_trans (ler_norm _) h.
rewrite ltr_pdivr_mulr // mulr_natl in h.
apply: lt_le_trans h _.
have := bernoulli (Num.bound y) (ltW x0); rewrite [1 + (q - 1)]addrC subrK.
by apply: le_trans; rewrite ler_addr ler01.
Qed.

(** One key repeated with |1 - b |k|^2| > 1 drives itself beyond every bound. *)
Theorem repeated_key_diverges d b (k : 'cV[R]_d) M :
  k != 0 -> 1 < `|1 - b * squared_norm k| ->
  exists n, M < squared_norm (iter n (mulmx (step_transition b k)) k).
Proof.
move=> k0 h; have k_gt0 := squared_norm_gt0 k0.
have h2 : 1 < `|1 - b * squared_norm k| ^+ 2 by rewrite exprn_egt1.
have [n hn] := power_unbounded (M / squared_norm k) h2.
exists n; rewrite step_power_on_key squared_normZ -ltr_pdivr_mulr //.
by rewrite -sqr_normr normrX -exprM mulnC exprM.
Qed.

(** Steps that all have |1 - b |k|^2| >= q > 1 make some entry of their product exceed every bound, whatever the keys. *)
Theorem expansive_product_unbounded d (b : nat -> R) (k : nat -> 'cV[R]_d) q M :
  1 < q -> (forall t, q <= `|1 - b t * squared_norm (k t)|) ->
  exists T i j, M < `|ordered_product (fun t => step_transition (b t) (k t)) 0 T i j|.
Proof.
move=> q1 hq; pose P := ordered_product (fun t => step_transition (b t) (k t)) 0.
pose N : R := Num.max M 0.
have N0 : 0 <= N by rewrite le_maxr lexx orbT.
have [T hT] := power_unbounded (d`!%:R * N ^+ d) q1; exists T.
case: (boolP [exists i, exists j, M < `|P T i j|]) => [/existsP[i /existsP[j h]]|].
  by exists i, j.
rewrite negb_exists => /forallP none.
have small i j : `|P T i j| <= N.
  by have := none i; rewrite negb_exists => /forallP /(_ j); rewrite -leNgt le_maxr => ->.
have := product_growth_at_least N0 small; rewrite leNgt => /negP[].
apply: lt_le_trans hT _; rewrite -[T in q ^+ T]subn0 -prodr_const_nat.
apply: ler_prod => t _; rewrite (ltW (lt_trans ltr01 q1)) /=; exact: hq.
Qed.
End Divergence.

(** Eigenvalues in the unit disc are not enough for I - x y^T. *)
Section EigenvaluesDoNotBound.
Local Definition e1 : 'cV[rat]_2 := vec2 1 0.
Local Definition ones : 'cV[rat]_2 := vec2 1 1.
Local Definition e2 : 'cV[rat]_2 := vec2 0 1.

(** I - x y^T with x = (1, 0), y = (1, 1), and its transpose, have the eigenvalues 1 and 0 alone; n of each in turn
    multiply (0, 1) by 2^n. *)
Theorem projections_in_turn_grow n :
  (forall a, eigenvalue (rank_one e1 ones) a = (a == 1) || (a == 0)) /\
  (forall a, eigenvalue (rank_one ones e1) a = (a == 1) || (a == 0)) /\
  iter n (fun z => rank_one ones e1 *m (rank_one e1 ones *m z)) e2 = 2%:R ^+ n *: e2.
Proof.
split=> [a|]; first by rewrite rank_one_spectrum dot_vec2 mulr1 mulr0 addr0 subrr.
split=> [a|]; first by rewrite rank_one_spectrum dot_vec2 mulr1 mul0r addr0 subrr.
elim: n => [|n IH]; first by rewrite expr0 scale1r.
rewrite iterS IH -!scalemxAr exprSr -scalerA; congr (_ *: _).
rewrite !rank_one_apply dotBr dotZr !dot_vec2.
apply/colP => i; rewrite !mxE.
by case: (val i == 0)%N; apply/eqP.
Qed.

(** I - x y^T with y^T x = 0 has the eigenvalue 1 alone, and its n-th power is I - n x y^T: one matrix, repeated, grows
    without bound. *)
Theorem shear_power_grows (R : comRingType) d (x y : 'cV[R]_d.+1) n : dot y x = 0 ->
  char_poly (rank_one x y) = ('X - 1) ^+ d.+1
  /\ iter n (mulmx (rank_one x y)) 1%:M = 1%:M - n%:R *: (x *m y^T).
Proof.
move=> yx; split; first by rewrite rank_one_characteristic_polynomial yx subr0 -exprSr.
elim: n => [|n IH]; first by rewrite scale0r subr0.
rewrite iterS IH /rank_one mulmxBl mul1mx mulmxBr mulmx1 -scalemxAr outer_outer yx scale0r scaler0 subr0.
by rewrite -[n.+1 in RHS]addn1 natrD scalerDl scale1r opprD addrA.
Qed.

Local Definition gated : 'M[rat]_2 := step_transition 1 (vec2 1 2%:R) *m diag_mx (vec2 1 (1 / 16%:R))^T.
Local Definition exchanged : 'M[rat]_2 := step_transition 1 (vec2 2%:R 1) *m diag_mx (vec2 (1 / 16%:R) 1)^T.

(** A gated step, (I - k k^T) diag(1, 1/16) with k = (1, 2): trace -3/16, determinant -1/4, so both eigenvalues lie inside
    the unit disc; alternating with the same step on exchanged channels it multiplies a vector by at least 4 every
    two tokens. Here b |k|^2 = 5: the step itself expands. *)
Theorem gated_steps_in_turn_grow n :
  \tr gated = - (3%:R / 16%:R) /\ \det gated = - (1 / 4%:R) /\
  iter n (fun z => exchanged *m (gated *m z)) e1 = 4%:R ^+ n *: e1.
Proof.
split.
  rewrite /gated mul_mx_diag /step_transition /rank_one /mxtrace !(big_ord_recl, big_ord0, mxE) /=; exact/eqP.
split.
  rewrite /gated det_mulmx step_determinant dot_vec2 det_diag !(big_ord_recl, big_ord0, mxE) /=; exact/eqP.
elim: n => [|n IH]; first by rewrite expr0 scale1r.
rewrite iterS IH -!scalemxAr exprSr -scalerA; congr (_ *: _).
rewrite /exchanged /gated -!mulmxA !step_apply !mul_diag_mx.
apply/colP => i; rewrite /dot !(big_ord_recl, big_ord0, mxE) /=.
by case: (val i == 0)%N; apply/eqP.
Qed.
End EigenvaluesDoNotBound.

(** A key of length 1 with b = 2 is at the edge, with b = 3 beyond it; decays (1/2, -1) are at most 1. *)
Example step_non_expansive_instance :
  let k := vec2 (3%:R / 5%:R) (4%:R / 5%:R) : 'cV[rat]_2 in
  0 <= 2%:R * squared_norm k <= 2%:R /\ k != 0 /\ 1 < `|1 - 3%:R * squared_norm k|
  /\ forall c, `|(vec2 (1 / 2%:R) (-1) : 'cV[rat]_2)^T 0 c| <= 1.
Proof.
rewrite /squared_norm /= dot_vec2; split=> //; split; first by apply/eqP => /matrixP /(_ 0 0); rewrite !mxE.
by split=> // c; rewrite !mxE; case: (val c == 0)%N.
Qed.

(** Growth by 3/2 a step: the same key with b = 5/2. *)
Example run_growth_instance :
  let k := vec2 (3%:R / 5%:R) (4%:R / 5%:R) : 'cV[rat]_2 in
  (5%:R / 2%:R) * squared_norm k = 2%:R + 1 / 2%:R.
Proof. by rewrite /squared_norm /= dot_vec2; apply/eqP. Qed.
