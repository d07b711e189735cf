(* SPDX-FileCopyrightText: 2026 The deltaproof authors *)
(* SPDX-License-Identifier: MIT *)
(*
  How large the matrices of one chunk can be in exact arithmetic: the entries of (I + A)^-1 as inner products of keys
  with a transition between them, hence bounds on that inverse (B1), on T (B2), on w (B3), on the condition of I + A (B5), for
  decays of at most 1 in absolute value and any steps, the factors max(1, |1 - b |k|^2|) of expansive steps carried; B4 is
  non_expansive.run_norm. Then the forward error of whoever solves (I + A) Z = Y only up to a residual, or with a
  perturbed A: keys of length at most kap = 1 + delta and steps in [0, beta], so for beta = 2 each expansive step costs
  a factor rho = 2 (1 + delta)^2 - 1. For scan/chunk_bounds.hpp and for forward substitution in any arithmetic whose residual is
  bounded (theories/float). Not claimed: anything on what an algorithm forms on the way (repeated_keys.v), or that a
  kernel's residual is small.
*)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From deltaproof.algebra Require Import rank_one ordered_product non_expansive wy unit_lower ut.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section Entry.
Variables (R : comUnitRingType) (C d : nat).
Variables (D : nat -> 'M[R]_d) (x y : nat -> 'cV[R]_d).

(** Entry (r, j) of (I + A)^-1 is -y_j^T w_r of the run that starts behind row j: the transition between the two keys; in
    any commutative ring, with gates of any kind. *)
Theorem inverse_entry (r j : 'I_C) :
  chunk_Ai C D x y r j = if (r < j)%N then 0 else if r == j then 1 else - dot (y j) (w D x y j.+1 r).
Proof.
pose f (s t : nat) : R := if (s < t)%N then 0 else if s == t then 1 else - dot (y t) (w D x y t.+1 s).
pose X : 'M[R]_C := \matrix_(s, t) f s t.
have hX : X = chunk_Ai C D x y *m 1%:M; last by rewrite -[LHS](congr1 (fun M : 'M_C => M r j) (mulmx1 _)) -hX mxE.
apply/(forward_substitution (@chunk_A_lower _ _ _ D x y)) => s; apply/rowP => t.
rewrite !mxE summxE.
rewrite (eq_bigr (fun i : 'I_C => overlap D y i s (x s) * f i t)); last first.
  by move=> i is_; rewrite !mxE is_ mulr1n.
rewrite -(big_ord_widen C (fun i => overlap D y i s (x s) * f i t)) ?(ltnW (ltn_ord s)) //.
rewrite -(big_mkord xpredT (fun i => overlap D y i s (x s) * f i t)) -val_eqE /=.
have zero n : (n <= t)%N -> \sum_(0 <= i < n) overlap D y i s (x s) * f i t = 0.
  by move=> nt; rewrite big_nat big1 // => i /andP[_ it]; rewrite /f (leq_trans it nt) mulr0.
rewrite {1}/f; case: ltnP => st; first by rewrite zero ?(ltnW st) // subr0 ltn_eqF.
case: eqVneq => [E|st']; first by rewrite zero ?E // subr0.
have {st st'}ts : (t < s)%N by rewrite ltn_neqAle eq_sym st'.
rewrite sub0r (big_cat_nat _ _ _ (leq0n t) (ltnW ts)) /= zero // add0r big_ltn // {1}/f ltnn eqxx mulr1.
rewrite w_recursion // dotBr opprB -[in RHS]/(overlap D y t s (x s)) opprD addrC; congr (_ + _).
rewrite -sumrN dotC dot_suml; apply: eq_big_nat => i /andP[ti _].
rewrite dotZl dotC /f ltnNge (ltnW ti) /= gtn_eqF // mulrN opprK.
by [].
Qed.
End Entry.

Section Bounds.
Variables (R : realFieldType) (C d : nat).
Variables (b : nat -> R) (k : nat -> 'cV[R]_d) (a : nat -> 'rV[R]_d).
Hypothesis decays : forall t c, `|a t 0 c| <= 1.
Let D t : 'M[R]_d := diag_mx (a t).
Let x t : 'cV[R]_d := b t *: k t.
Let A := chunk_A C D x k.
Let Ai := chunk_Ai C D x k.
Let rho t := expansion (b t) (k t).

Lemma transition_is_product s r : transition D x k s r = ordered_product (decayed_step b k a) s r.
Proof. by []. Qed.

(** B3: |w_r| <= b_r |k_r| times the factors of the rows before it; in squares, and for a run from any row. *)
Theorem w_norm s r : (s <= r)%N ->
  squared_norm (w D x k s r) <= (b r * \prod_(s <= t < r) rho t) ^+ 2 * squared_norm (k r).
Proof.
move=> sr; rewrite /w transition_is_product -mulmxA.
have [h _] := @run_norm R d b k a s r (D r *m x r) sr (fun t c _ => decays t c).
apply: le_trans h _; rewrite mulrC exprMn [X in _ <= X]mulrAC ler_wpmul2r ?sqr_ge0 // -squared_normZ.
exact: decay_non_expansive.
Qed.

(** B1: an entry of the inverse below the diagonal is at most b_r |k_r| |k_j| times the factors of the rows between. *)
Theorem inverse_entry_bound (r j : 'I_C) : (j < r)%N ->
  Ai r j ^+ 2 <= (b r * \prod_(j.+1 <= t < r) rho t) ^+ 2 * (squared_norm (k r) * squared_norm (k j)).
Proof.
move=> jr; rewrite /Ai inverse_entry ltnNge (ltnW jr) /= -val_eqE /= gtn_eqF // sqrrN.
apply: le_trans (cauchy_schwarz _ _) _; rewrite mulrA mulrC ler_wpmul2r ?squared_norm_ge0 //.
exact: w_norm.
Qed.

(** B2: the same for T = (I + A)^-1 diag(b), which is b_r on the diagonal. *)
Theorem t_entry_bound (r j : 'I_C) : (j < r)%N ->
  (Ai r j * b j) ^+ 2
    <= (b r * b j * \prod_(j.+1 <= t < r) rho t) ^+ 2 * (squared_norm (k r) * squared_norm (k j)).
Proof.
move=> jr; have h := ler_wpmul2r (sqr_ge0 (b j)) (inverse_entry_bound jr).
rewrite exprMn; apply: le_trans h _; rewrite le_eqVlt; apply/orP; left; apply/eqP; ring.
Qed.

(** T has the steps on its diagonal, T_rr = b_r. *)
Theorem t_diagonal (r : 'I_C) : Ai r r * b r = b r.
Proof. by rewrite /Ai inverse_entry ltnn eqxx mul1r. Qed.

(** Stable steps: |T_rj| <= b_r b_j |k_r| |k_j|, so at most 4 for unit keys and b <= 2. *)
Theorem t_entry_bound_stable (r j : 'I_C) : (j < r)%N ->
  (forall t, 0 <= b t * squared_norm (k t) <= 2%:R) ->
  (Ai r j * b j) ^+ 2 <= (b r * b j) ^+ 2 * (squared_norm (k r) * squared_norm (k j)).
Proof.
move=> jr hb; have := t_entry_bound jr; rewrite [X in _ <= (_ * X) ^+ 2 * _]big1 ?mulr1 // => t _.
exact: expansion_stable.
Qed.

(** From here: steps in [0, beta], keys of length at most kap, and a factor rho that no step exceeds. *)
Variables (beta kap growth : R).
Hypotheses (steps : forall t, 0 <= b t <= beta) (keys : forall t, squared_norm (k t) <= kap ^+ 2).
Hypotheses (growth_ge1 : 1 <= growth) (growth_is_enough : beta * kap ^+ 2 - 1 <= growth).
Let scale := beta * kap ^+ 2.

Lemma beta_ge0 : 0 <= beta.
Proof. by have /andP[h0] := steps 0; apply: le_trans. Qed.

Lemma scale_ge0 : 0 <= scale.
Proof. by rewrite mulr_ge0 ?beta_ge0 ?sqr_ge0. Qed.

Lemma growth_ge0 : 0 <= growth.
Proof. exact: le_trans ler01 growth_ge1. Qed.

Lemma expansion_le t : rho t <= growth.
Proof.
have /andP[b0 b1] := steps t; have k0 := squared_norm_ge0 (k t).
have bk : b t * squared_norm (k t) <= scale by rewrite ler_pmul.
rewrite /rho le_maxl growth_ge1 /= ler_norml; apply/andP; split; last first.
  by rewrite ler_subl_addr (le_trans growth_ge1) // ler_addl mulr_ge0.
rewrite ler_oppl opprB (le_trans _ growth_is_enough) //.
by rewrite ler_add2r.
Qed.

Lemma prod_expansion_le s r : \prod_(s <= t < r) rho t <= growth ^+ (r - s).
Proof.
rewrite -prodr_const_nat; apply: ler_prod => t _.
by rewrite expansion_ge0 expansion_le.
Qed.

Lemma abs_of_sqr (p q : R) : 0 <= q -> p ^+ 2 <= q ^+ 2 -> `|p| <= q.
Proof. by move=> q0; rewrite -sqr_normr ler_sqr ?nnegrE ?normr_ge0. Qed.

Lemma key_product_le s r : squared_norm (k s) * squared_norm (k r) <= (kap ^+ 2) ^+ 2.
Proof. by rewrite expr2 ler_pmul ?squared_norm_ge0. Qed.

(** B1 with keys of length at most kap = 1 + delta: |(I + A)^-1_rj| <= beta kap^2 rho^(r - j - 1) below the diagonal. *)
Theorem inverse_entry_growth (r j : 'I_C) : (j < r)%N -> `|Ai r j| <= scale * growth ^+ (r - j.+1).
Proof.
move=> jr; apply: abs_of_sqr; first by rewrite mulr_ge0 ?scale_ge0 ?exprn_ge0 ?growth_ge0.
apply: le_trans (inverse_entry_bound jr) _.
have /andP[b0 b1] := steps r.
have p0 : 0 <= \prod_(j.+1 <= t < r) rho t by apply: prodr_ge0 => t _; apply: expansion_ge0.
have -> : (scale * growth ^+ (r - j.+1)) ^+ 2 = (beta * growth ^+ (r - j.+1)) ^+ 2 * (kap ^+ 2) ^+ 2.
  by rewrite /scale; ring.
apply: ler_pmul; rewrite ?sqr_ge0 ?mulr_ge0 ?squared_norm_ge0 ?key_product_le //.
rewrite ler_sqr ?nnegrE ?mulr_ge0 ?exprn_ge0 ?growth_ge0 ?beta_ge0 //.
by apply: ler_pmul => //; apply: prod_expansion_le.
Qed.

(** An entry of A is at most beta kap^2. *)
Theorem overlap_bound (r j : 'I_C) : `|A r j| <= scale.
Proof.
rewrite mxE; case: ltnP => jr; last by rewrite mulr0n normr0 scale_ge0.
rewrite mulr1n; apply: abs_of_sqr; first exact: scale_ge0.
apply: le_trans (cauchy_schwarz _ _) _.
apply: (@le_trans _ _ (squared_norm (k j) * (b r ^+ 2 * squared_norm (k r)))).
  rewrite ler_wpmul2l ?squared_norm_ge0 // -squared_normZ -/(x r).
  have h (t : nat) z' : (j.+1 <= t < r.+1)%N -> squared_norm (D t *m z') <= 1 ^+ 2 * squared_norm z'.
    by move=> _; rewrite expr1n mul1r; apply: decay_non_expansive.
  have := @product_norm R d D (fun=> 1) j.+1 r.+1 (x r) (leqW jr) h.
  by rewrite big1 // expr1n mul1r.
have /andP[b0 b1] := steps r.
rewrite mulrCA /scale exprMn; apply: ler_pmul; rewrite ?sqr_ge0 ?mulr_ge0 ?squared_norm_ge0 ?key_product_le //.
by rewrite ler_sqr ?nnegrE ?beta_ge0.
Qed.

Lemma sum_upto (r : 'I_C) (f : nat -> R) (g : R) :
  \sum_(j < C) (if (j < r)%N then f j else if r == j then g else 0) = \sum_(0 <= j < r) f j + g.
Proof.
rewrite (bigD1 r) //= ltnn eqxx addrC; congr (_ + _).
rewrite big_mkord (big_ord_widen C) ?(ltnW (ltn_ord r)) // [LHS]big_mkcond [RHS]big_mkcond /=.
apply: eq_bigr => j _; rewrite [r == j]eq_sym.
by case: eqVneq => [->|] /=; rewrite ?ltnn.
Qed.

Lemma sum_powers_reversed r : \sum_(0 <= j < r) growth ^+ (r - j.+1) = \sum_(0 <= m < r) growth ^+ m.
Proof. by rewrite big_nat_rev /= !big_mkord; apply: eq_bigr => j _; rewrite add0n subnSK // subKn // ltnW. Qed.

(** The absolute row sum of the inverse, and so its norm: 1 + beta kap^2 (1 + rho + ... + rho^(r-1)). *)
Theorem inverse_row_sum (r : 'I_C) : \sum_j `|Ai r j| <= 1 + scale * \sum_(0 <= m < r) growth ^+ m.
Proof.
apply: (@le_trans _ _ (\sum_(j < C) (if (j < r)%N then scale * growth ^+ (r - j.+1) else if r == j then 1 else 0))).
  apply: ler_sum => j _; case: ltnP => jr; first exact: inverse_entry_growth.
  rewrite /Ai inverse_entry; case: ltnP => [rj|jr']; first by rewrite normr0 -val_eqE ltn_eqF.
  have -> : r == j by rewrite -val_eqE eqn_leq jr jr'.
  by rewrite normr1.
by rewrite (sum_upto r (fun j => scale * growth ^+ (r - j.+1))) -mulr_sumr sum_powers_reversed addrC.
Qed.

(** The absolute row sum of I + A. *)
Theorem overlap_row_sum (r : 'I_C) : \sum_j `|(1%:M + A) r j| <= 1 + scale * r%:R.
Proof.
apply: (@le_trans _ _ (\sum_(j < C) (if (j < r)%N then scale else if r == j then 1 else 0))); last first.
  by rewrite (sum_upto r (fun=> scale)) sumr_const_nat subn0 addrC mulr_natr.
apply: ler_sum => j _; rewrite mxE [1%:M r j]mxE.
case: ltnP => jr; first by rewrite -val_eqE gtn_eqF // mulr0n add0r overlap_bound.
rewrite [A r j]mxE ltnNge jr mulr0n addr0.
by case: eqVneq; rewrite ?normr1 ?normr0.
Qed.

Let last_row (r : 'I_C) : (r <= C.-1)%N. Proof. by case: C r => [[]|n [r]] //=. Qed.
Let norm_of_inverse := 1 + scale * \sum_(0 <= m < C.-1) growth ^+ m.

Lemma norm_of_inverse_ge1 : 1 <= norm_of_inverse.
Proof. by rewrite ler_addl mulr_ge0 ?scale_ge0 // sumr_ge0 // => m _; rewrite exprn_ge0 ?growth_ge0. Qed.

Lemma inverse_row_sum_uniform (r : 'I_C) : \sum_j `|Ai r j| <= norm_of_inverse.
Proof.
apply: le_trans (inverse_row_sum r) _; rewrite ler_add2l ler_wpmul2l ?scale_ge0 //.
rewrite (big_cat_nat _ _ _ (leq0n r) (last_row r)) /= ler_addl sumr_ge0 // => m _.
by rewrite exprn_ge0 ?growth_ge0.
Qed.

(** B5: the condition number of I + A in the maximum norm. *)
Theorem condition_bound (r s : 'I_C) :
  (\sum_j `|(1%:M + A) r j|) * (\sum_j `|Ai s j|) <= (1 + scale * C.-1%:R) * norm_of_inverse.
Proof.
apply: ler_pmul; rewrite ?sumr_ge0 ?inverse_row_sum_uniform //.
apply: le_trans (overlap_row_sum r) _.
by rewrite ler_add2l ler_wpmul2l ?scale_ge0 // ler_nat.
Qed.

(** Whoever solves (I + A) Z = Y only up to a residual E. *)
Section ForwardError.
Variables (n : nat) (Y Z E : 'M[R]_(C, n)).
Hypothesis residual : (1%:M + A) *m Z = Y + E.

Lemma sub_entry p1 p2 (P Q : 'M[R]_(p1, p2)) i j : (P - Q) i j = P i j - Q i j.
Proof. by rewrite !mxE. Qed.

Lemma solution_error : Z - Ai *m Y = Ai *m E.
Proof.
have -> : E = (1%:M + A) *m Z - Y by rewrite residual addrAC subrr add0r.
by rewrite mulmxBr /Ai /chunk_Ai mulKmx // (unit_lower_invertible (@chunk_A_lower _ _ _ _ _ _)).
Qed.

Lemma entry_of_product (r : 'I_C) c eps :
  (forall j, `|E j c| <= eps) -> `|(Ai *m E) r c| <= eps * \sum_j `|Ai r j|.
Proof.
move=> hE; rewrite mxE; apply: le_trans (ler_norm_sum _ _ _) _; rewrite mulr_sumr.
by apply: ler_sum => j _; rewrite normrM mulrC ler_wpmul2r.
Qed.

(** The forward error: a residual of at most eps moves row r by at most eps (1 + beta kap^2 (1 + rho + ... + rho^(r-1))). *)
Theorem forward_error (r : 'I_C) c eps : (forall j, `|E j c| <= eps) ->
  `|(Z - Ai *m Y) r c| <= eps * (1 + scale * \sum_(0 <= m < r) growth ^+ m).
Proof.
move=> hE; rewrite solution_error; apply: le_trans (entry_of_product r hE) _.
by rewrite ler_wpmul2l ?inverse_row_sum // (le_trans _ (hE r)).
Qed.

(** If the residual is at most h times the largest entry of the computed column, and q = h N < 1 with N the bound on the
    norm of the inverse, then nothing of the computed Z is needed: |Z - Ai Y| <= q m / (1 - q), m the largest entry of
    the true column. *)
Theorem forward_error_a_priori c h m : 0 <= h -> h * norm_of_inverse < 1 ->
  (forall M, (forall j, `|Z j c| <= M) -> forall j, `|E j c| <= h * M) ->
  (forall j, `|(Ai *m Y) j c| <= m) ->
  forall r, `|(Z - Ai *m Y) r c| <= h * norm_of_inverse * m / (1 - h * norm_of_inverse)
         /\ `|Z r c| <= m / (1 - h * norm_of_inverse).
Proof.
move=> h0 q1 hE hm r; set q := h * norm_of_inverse.
have q0 : 0 <= q by rewrite mulr_ge0 // (le_trans ler01 norm_of_inverse_ge1).
have q1' : 0 < 1 - q by rewrite subr_gt0.
case: (@Order.TotalTheory.arg_maxP _ _ _ r xpredT (fun j => `|Z j c|) isT) => i0 _ largest.
have {}largest j : `|Z j c| <= `|Z i0 c| by apply: largest.
have moved j : `|(Z - Ai *m Y) j c| <= q * `|Z i0 c|.
  rewrite solution_error; apply: le_trans (entry_of_product j (hE _ largest)) _.
  rewrite mulrAC ler_wpmul2r ?normr_ge0 // ler_wpmul2l //; exact: inverse_row_sum_uniform.
have bound_i0 : `|Z i0 c| <= m / (1 - q).
  have Ze : Z i0 c = (Ai *m Y) i0 c + (Z - Ai *m Y) i0 c by rewrite sub_entry addrC subrK.
  have h2 : `|Z i0 c| <= `|(Ai *m Y) i0 c| + `|(Z - Ai *m Y) i0 c| by rewrite {1}Ze ler_norm_add.
  rewrite ler_pdivl_mulr // mulrBr mulr1 ler_subl_addr; apply: le_trans h2 _.
  by rewrite ler_add ?hm // mulrC moved.
split; last exact: le_trans (largest r) bound_i0.
by apply: le_trans (moved r) _; rewrite -mulrA ler_wpmul2l.
Qed.
End ForwardError.

(** Forward substitution in a rounded arithmetic: its residual is at most g (|Z| + |A| |Z|) entry by entry (float/, or
    Higham's theorem 8.5), so h = g (1 + beta kap^2 (C - 1)). *)
Theorem substitution_forward_error n (Y Z E : 'M[R]_(C, n)) c g m : 0 <= g ->
  (1%:M + A) *m Z = Y + E ->
  (forall j, `|E j c| <= g * (`|Z j c| + \sum_(i < C | (i < j)%N) `|A j i| * `|Z i c|)) ->
  (forall j, `|(Ai *m Y) j c| <= m) ->
  let q := g * (1 + scale * C.-1%:R) * norm_of_inverse in q < 1 ->
  forall r, `|(Z - Ai *m Y) r c| <= q * m / (1 - q) /\ `|Z r c| <= m / (1 - q).
Proof.
move=> g0 res hE hm q q1 r.
apply: (forward_error_a_priori res) => // [|M hM j].
  by rewrite mulr_ge0 // addr_ge0 ?ler01 // mulr_ge0 ?scale_ge0 ?ler0n.
have M0 : 0 <= M by apply: le_trans (hM j); apply: normr_ge0.
apply: le_trans (hE j) _; rewrite -mulrA ler_wpmul2l // mulrDl mul1r ler_add ?hM //.
apply: (@le_trans _ _ (\sum_(i < C | (i < j)%N) scale * M)).
  by apply: ler_sum => i _; rewrite ler_pmul ?normr_ge0 ?overlap_bound.
rewrite -(big_ord_widen C (fun=> scale * M) (ltnW (ltn_ord j))) sumr_const card_ord -mulr_natr mulrAC.
by rewrite ler_wpmul2r // ler_wpmul2l ?scale_ge0 // ler_nat last_row.
Qed.

(** A perturbed system, (I + A + P) Z = Y with P strictly lower and its entries at most tau: h = tau (C - 1). *)
Theorem perturbed_forward_error n (Y Z : 'M[R]_(C, n)) (P : 'M[R]_C) c tau m : 0 <= tau ->
  (1%:M + A + P) *m Z = Y -> strictly_lower P -> (forall r j, `|P r j| <= tau) ->
  (forall j, `|(Ai *m Y) j c| <= m) ->
  let q := tau * C.-1%:R * norm_of_inverse in q < 1 ->
  forall r, `|(Z - Ai *m Y) r c| <= q * m / (1 - q) /\ `|Z r c| <= m / (1 - q).
Proof.
move=> tau0 res lower hP hm q q1 r.
have res' : (1%:M + A) *m Z = Y + - (P *m Z) by rewrite -res [in RHS]mulmxDl addrK.
apply: (forward_error_a_priori res') => // [|M hM j]; first by rewrite mulr_ge0 ?ler0n.
have M0 : 0 <= M by apply: le_trans (hM j); apply: normr_ge0.
rewrite mxE normrN mxE; apply: le_trans (ler_norm_sum _ _ _) _.
rewrite (bigID (fun i : 'I_C => (i < j)%N)) /= [X in _ + X]big1 ?addr0; last first.
  by move=> i; rewrite -leqNgt => ji; rewrite lower // mul0r normr0.
apply: (@le_trans _ _ (\sum_(i < C | (i < j)%N) tau * M)).
  by apply: ler_sum => i _; rewrite normrM ler_pmul ?normr_ge0.
rewrite -(big_ord_widen C (fun=> tau * M) (ltnW (ltn_ord j))) sumr_const card_ord -mulr_natr mulrAC.
by rewrite ler_wpmul2r // ler_wpmul2l // ler_nat last_row.
Qed.
End Bounds.

(** The case a chunk kernel is in: keys rounded to length at most 1 + delta, steps in [0, 2]. *)
Section NearlyUnitKeys.
Variables (R : realFieldType) (C d n : nat).
Variables (b : nat -> R) (k : nat -> 'cV[R]_d) (a : nat -> 'rV[R]_d).
Hypotheses (decays : forall t c, `|a t 0 c| <= 1) (steps : forall t, 0 <= b t <= 2%:R).
Let D t : 'M[R]_d := diag_mx (a t).
Let x t : 'cV[R]_d := b t *: k t.
Variables (Y Z E : 'M[R]_(C, n)).
Hypothesis residual : (1%:M + chunk_A C D x k) *m Z = Y + E.

(** Keys of length at most 1 + delta: a residual of at most eps moves row r by at most
    eps (1 + 2 (1 + delta)^2 (1 + rho + ... + rho^(r-1))), rho = 2 (1 + delta)^2 - 1. *)
Theorem forward_error_nearly_unit_keys delta (r : 'I_C) c eps : 0 <= delta ->
  (forall t, squared_norm (k t) <= (1 + delta) ^+ 2) -> (forall j, `|E j c| <= eps) ->
  `|(Z - chunk_Ai C D x k *m Y) r c|
    <= eps * (1 + 2%:R * (1 + delta) ^+ 2 * \sum_(0 <= m < r) (2%:R * (1 + delta) ^+ 2 - 1) ^+ m).
Proof.
move=> d0 hk hE; apply: (forward_error decays steps hk _ _ residual) => //.
rewrite ler_subr_addr (_ : 1 + 1 = 2%:R * 1); last by rewrite mulr1.
by rewrite ler_pmul2l ?ltr0n // exprn_ege1 // ler_addl.
Qed.

(** Keys of length at most 1: row r moves by at most (1 + 2 r) eps. *)
Theorem forward_error_unit_keys (r : 'I_C) c eps :
  (forall t, squared_norm (k t) <= 1) -> (forall j, `|E j c| <= eps) ->
  `|(Z - chunk_Ai C D x k *m Y) r c| <= eps * (1 + 2%:R * r%:R).
Proof.
move=> hk hE.
have hk' t : squared_norm (k t) <= (1 + 0) ^+ 2 by rewrite addr0 expr1n.
apply: le_trans (forward_error_nearly_unit_keys r (lexx 0) hk' hE) _.
rewrite addr0 expr1n mulr1 (_ : 2%:R - 1 = 1 :> R); last by ring.
rewrite (eq_bigr (fun=> 1)) => [|m _]; last by rewrite expr1n.
by rewrite sumr_const_nat subn0.
Qed.
End NearlyUnitKeys.

(** All hypotheses at once: keys (3/2, 0), of length 3/2, steps 2, decays (1, -1/2), rho = 2 (3/2)^2 - 1 = 7/2; and keys of
    length 1 in two rows with a perturbation of 1/100, where q = 3/100. *)
Example bounds_instance :
  let k (_ : nat) : 'cV[rat]_2 := vec2 (3%:R / 2%:R) 0 in let a (_ : nat) : 'rV[rat]_2 := (vec2 1 (- (1 / 2%:R)))^T in
  [/\ forall t c, `|a t 0 c| <= 1, forall t, squared_norm (k t) <= (3%:R / 2%:R) ^+ 2, 0 <= (2%:R : rat) <= 2%:R
    & 2%:R * (3%:R / 2%:R) ^+ 2 - 1 <= (7%:R / 2%:R : rat)]
  /\ (1 / 100%:R) * 1%:R * (1 + 2%:R * \sum_(0 <= m < 1) 1 ^+ m) < (1 : rat).
Proof.
split; last by rewrite big_nat1.
split=> // [t c|t]; first by rewrite !mxE; case: (val c == 0)%N.
by rewrite /squared_norm dot_vec2.
Qed.

(** Whatever the perturbation, there is a Z that solves the perturbed system. *)
Example perturbed_system_instance (R : realFieldType) C d (b : nat -> R) (k : nat -> 'cV[R]_d) (P : 'M[R]_C) :
  strictly_lower P ->
  let A := chunk_A C (fun=> 1%:M) (fun t => b t *: k t) k in
  (1%:M + A + P) *m invmx (1%:M + (A + P)) = 1%:M.
Proof.
move=> hP A; rewrite -addrA mulmxV // unit_lower_invertible // => i j ij.
by rewrite mxE hP // addr0 chunk_A_lower.
Qed.
