(* SPDX-FileCopyrightText: 2026 The deltaproof authors *)
(* SPDX-License-Identifier: MIT *)
(*
  What local errors become over a long horizon: a recurrence s_(t+1) = A_t s_t + f_t whose steps multiply lengths by at
  most rho_t, executed with a local error of length at most r_t, ends within e_0 prod rho + sum_t r_t prod_(j > t) rho_j of
  the exact one; where no step expands, errors only add up. Over any ordered field with square roots. For the oracle's
  radius and for horizon certificates. Not claimed: where the local errors come from (theories/float).
*)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From deltaproof.algebra Require Import rank_one ordered_product non_expansive.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section Norm.
Variables (R : rcfType) (d : nat).
Implicit Types x y : 'cV[R]_d.

(** |x|. *)
Definition norm x := Num.sqrt (squared_norm x).

Lemma norm_ge0 x : 0 <= norm x. Proof. exact: sqrtr_ge0. Qed.
Lemma norm0 : norm 0 = 0. Proof. by rewrite /norm squared_norm0 sqrtr0. Qed.
Lemma sqr_norm x : norm x ^+ 2 = squared_norm x. Proof. by rewrite sqr_sqrtr ?squared_norm_ge0. Qed.

Lemma dot_le_norms x y : dot x y <= norm x * norm y.
Proof.
rewrite -sqrtrM ?squared_norm_ge0 // (le_trans (ler_norm _)) // -sqrtr_sqr.
by rewrite ler_wsqrtr // cauchy_schwarz.
Qed.

(** |x + y| <= |x| + |y|. *)
Theorem triangle_inequality x y : norm (x + y) <= norm x + norm y.
Proof.
rewrite -(@ler_pexpn2r _ 2) ?nnegrE ?addr_ge0 ?norm_ge0 // sqr_norm -subr_ge0.
have -> : (norm x + norm y) ^+ 2 - squared_norm (x + y) = 2%:R * (norm x * norm y - dot x y).
  rewrite squared_norm_add -!sqr_norm.
  by move: (norm x) (norm y) (dot x y) => p q s; ring.
by rewrite mulr_ge0 // subr_ge0 dot_le_norms.
Qed.

Lemma norm_le_of_squared x y (rho : R) : 0 <= rho ->
  squared_norm x <= rho ^+ 2 * squared_norm y -> norm x <= rho * norm y.
Proof.
move=> rho0 h; rewrite -(@ler_pexpn2r _ 2) ?nnegrE ?mulr_ge0 ?norm_ge0 //.
by rewrite exprMn !sqr_norm.
Qed.
End Norm.

Section Accumulation.
Variables (R : rcfType) (d : nat).
Variables (A : nat -> 'M[R]_d) (rho : nat -> R).

(** The recurrence from s_0 with inputs f. *)
Fixpoint run (s0 : 'cV[R]_d) (f : nat -> 'cV[R]_d) t : 'cV[R]_d :=
  if t is t'.+1 then A t' *m run s0 f t' + f t' else s0.

Lemma run_difference s0 s0' f g t : run s0 f t - run s0' g t = run (s0 - s0') (fun i => f i - g i) t.
Proof. by elim: t => //= t <-; rewrite mulmxBr opprD addrACA. Qed.

Hypothesis rho_ge0 : forall t, 0 <= rho t.
Hypothesis factor : forall t x, norm (A t *m x) <= rho t * norm x.

(** |s_T| <= |s_0| prod rho + sum_t |f_t| prod_(j > t) rho_j: the forced state. *)
Theorem forced_state_bound s0 f T :
  norm (run s0 f T) <= norm s0 * \prod_(0 <= t < T) rho t + \sum_(0 <= t < T) norm (f t) * \prod_(t.+1 <= j < T) rho j.
Proof.
elim: T => [|T IH] /=; first by rewrite !big_geq // mulr1 addr0.
apply: le_trans (triangle_inequality _ _) _.
rewrite [\prod_(0 <= t < T.+1) _]big_nat_recr // [\sum_(0 <= t < T.+1) _]big_nat_recr //=.
rewrite [X in _ + (_ + _ * X)]big_geq // mulr1 addrA ler_add2r.
apply: le_trans (factor _ _) _.
have -> : \sum_(0 <= t < T) norm (f t) * \prod_(t.+1 <= j < T.+1) rho j
        = (\sum_(0 <= t < T) norm (f t) * \prod_(t.+1 <= j < T) rho j) * rho T.
  by rewrite mulr_suml; apply: eq_big_nat => t /andP[_ tT]; rewrite big_nat_recr //= mulrA.
by rewrite mulrA -mulrDl mulrC ler_wpmul2r.
Qed.

(** Local errors of length at most r_t and an initial one: e_T <= e_0 prod rho + sum_t r_t prod_(j > t) rho_j. *)
Theorem error_accumulation s0 s0' f g (r : nat -> R) T :
  (forall t, (t < T)%N -> norm (g t - f t) <= r t) ->
  norm (run s0' g T - run s0 f T)
    <= norm (s0' - s0) * \prod_(0 <= t < T) rho t + \sum_(0 <= t < T) r t * \prod_(t.+1 <= j < T) rho j.
Proof.
move=> hr; rewrite run_difference; apply: le_trans (forced_state_bound _ _ _) _.
rewrite ler_add2l big_nat [X in _ <= X]big_nat; apply: ler_sum => t tT.
by rewrite ler_wpmul2r ?hr // prodr_ge0.
Qed.

(** Where no step expands, errors only add. *)
Theorem errors_only_add s0 f g (r : nat -> R) T : (forall t, rho t <= 1) ->
  (forall t, (t < T)%N -> norm (g t - f t) <= r t) ->
  norm (run s0 g T - run s0 f T) <= \sum_(0 <= t < T) r t.
Proof.
move=> rho1 hr; apply: le_trans (error_accumulation s0 s0 hr) _.
rewrite subrr norm0 mul0r add0r big_nat [X in _ <= X]big_nat; apply: ler_sum => t tT.
have r0 : 0 <= r t by apply: le_trans (hr t tT); apply: norm_ge0.
rewrite -[X in _ <= X]mulr1 ler_wpmul2l //.
apply: (@le_trans _ _ (\prod_(t.+1 <= j < T) 1)); last by rewrite big1.
by apply: ler_prod => j _; rewrite rho_ge0 rho1.
Qed.
End Accumulation.

Section Delta.
Variables (R : rcfType) (d : nat).
Variables (b : nat -> R) (k : nat -> 'cV[R]_d) (a : nat -> 'rV[R]_d).
Hypothesis decays : forall t c, `|a t 0 c| <= 1.

(** The factor of one row of a gated delta rule, acting on a value row of the state: the decay, then the step. *)
Theorem decayed_step_factor t (x : 'cV[R]_d) :
  norm ((decayed_step b k a t)^T *m x) <= expansion (b t) (k t) * norm x.
Proof. by apply: norm_le_of_squared; [exact: expansion_ge0 | exact: transposed_decayed_step_norm]. Qed.

(** Stable steps and decays of at most 1: after T steps the error is at most the sum of the local errors. *)
Theorem delta_errors_only_add s0 f g (r : nat -> R) T :
  (forall t, 0 <= b t * squared_norm (k t) <= 2%:R) ->
  (forall t, (t < T)%N -> norm (g t - f t) <= r t) ->
  norm (run (fun t => (decayed_step b k a t)^T) s0 g T - run (fun t => (decayed_step b k a t)^T) s0 f T)
    <= \sum_(0 <= t < T) r t.
Proof.
move=> hb hr; apply: (errors_only_add (rho := fun t => expansion (b t) (k t))) hr => t.
- exact: expansion_ge0.
- exact: decayed_step_factor.
- by rewrite expansion_stable.
Qed.
End Delta.

(** The sum is attained: a zero key and the same error at every step. *)
Theorem errors_add_attained (R : rcfType) d (eps : 'cV[R]_d) T :
  norm (run (fun=> step_transition 0 0) 0 (fun=> eps) T - run (fun=> step_transition 0 0) 0 (fun=> 0) T)
  = \sum_(0 <= t < T) norm eps.
Proof.
have E : step_transition (0 : R) (0 : 'cV[R]_d) = 1%:M by rewrite /step_transition /rank_one scale0r mul0mx subr0.
have F t : run (fun=> step_transition 0 0) 0 (fun=> eps) t = t%:R *: eps.
  elim: t => [|t IH] /=; first by rewrite scale0r.
  by rewrite IH E mul1mx -[t.+1 in RHS]addn1 natrD scalerDl scale1r.
have Z t : run (fun=> step_transition 0 0) 0 (fun=> 0) t = 0 :> 'cV[R]_d.
  by elim: t => //= t ->; rewrite mulmx0 addr0.
rewrite F Z subr0 sumr_const_nat subn0 /norm squared_normZ sqrtrM ?sqr_ge0 // sqrtr_sqr ger0_norm ?ler0n //.
by rewrite mulr_natl.
Qed.
