(* SPDX-FileCopyrightText: 2026 The deltaproof authors *)
(* SPDX-License-Identifier: MIT *)
(*
  From the derivatives of a row by its own numbers (adjoint.v) to those by what a problem file holds, in any commutative ring: the
  step is b = beta phi(x) with x = beta |k|^2, so that a key moves the loss through b too, and a normalised key or query is r times
  the given one, r^2 (|x|^2 + eps) = 1. For src/oracle/gradients/chain.hpp and check/gradient_identities.hpp. The slopes g = phi(x),
  g' = phi'(x) of each rule, and that r moves by -r^3 x . x', are premises here: ode/gain_slopes.v has them over the real numbers.
  Not claimed: anything about rounding.
*)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From deltaproof.algebra Require Import rank_one adjoint adjoint_run.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory.
Local Open Scope ring_scope.

(** (x phi)' = -R', for the gain of any polynomial rule, R = 1 - x phi. *)
Theorem stability_slope (R : comRingType) (phi : {poly R}) : (1 - 'X * phi)^`() = - (phi + 'X * phi^`()).
Proof. by rewrite derivB derivM derivX mul1r -polyC1 derivC sub0r. Qed.

Section Rule.
Variables (R : comRingType) (d e : nat).
Variables (D : 'M[R]_d) (q k : 'cV[R]_d) (v c : 'cV[R]_e).
Variables (S : 'M[R]_(d, e)) (L : 'M[R]_(d, e)).
(** beta, phi(x) and phi'(x). *)
Variables (beta g g' : R).

Definition argument : R := beta * dot k k.
Definition rule_step : R := beta * g.
(** (x phi)' = -R'(x): what db/dbeta is. *)
Definition by_beta : R := g + argument * g'.
(** db/dk is this times k. *)
Definition by_key_factor : R := 2%:R * beta ^+ 2 * g'.

Let db := db D q k v c S L.

(** The derivatives by beta and by the key. *)
Definition rule_dbeta : R := by_beta * db.
Definition rule_dk : 'cV[R]_d := dk D q k v c rule_step S L + (by_key_factor * db) *: k.

(** The derivative of the step along directions of beta and of the key: x moves by beta' |k|^2 + 2 beta k . k', phi(x) by g' times
    that. *)
Variables (D' : 'M[R]_d) (q' k' : 'cV[R]_d) (v' : 'cV[R]_e) (beta' : R) (S' : 'M[R]_(d, e)).
Definition argument' : R := beta' * dot k k + beta * (2%:R * dot k k').
Definition rule_step' : R := beta' * g + beta * (g' * argument').

(** The step moves by by_beta beta' and by_key_factor k . k'. *)
Theorem rule_step_moves : rule_step' = by_beta * beta' + by_key_factor * dot k k'.
Proof. by rewrite /rule_step' /argument' /by_beta /by_key_factor /argument; ring. Qed.

(** The reverse pass of a row whose step is that of a rule is the transpose of its derivative. *)
Theorem rule_row_transposed :
  dot c (read' D q k v rule_step S D' q' k' v' rule_step' S')
  + inner L (state_after' D k v rule_step S D' k' v' rule_step' S')
  = dot (dq D k v c rule_step S) q' + dot rule_dk k' + dot (dv q k c rule_step L) v' + rule_dbeta * beta'
    + inner (cotangent_decayed q k c rule_step L) (decayed' D S D' S') :> R.
Proof. by rewrite row_transposed -/db rule_step_moves /rule_dk dotDl dotZl /rule_dbeta; ring. Qed.

(** I2 for every rule: k . dk + v . dv = 2 beta dbeta. *)
Theorem rule_writes_agree : dot k rule_dk + dot v (dv q k c rule_step L) = 2%:R * beta * rule_dbeta :> R.
Proof.
have H := writes_agree D q k v c rule_step S L.
rewrite /rule_dk [dot k (_ + _)]dotDr dotZr addrAC H -/db /rule_dbeta /by_beta /by_key_factor /argument /rule_step; ring.
Qed.
End Rule.

(** A run of such rows: the reverse pass, with beta's and the key's derivatives through the rule, is the transpose of its
    derivative. *)
Section RuleRun.
Variables (R : comRingType) (d e n : nat).
Variables (D : nat -> 'M[R]_d) (q k : nat -> 'cV[R]_d) (v c : nat -> 'cV[R]_e) (beta g g' : nat -> R) (S0 LT : 'M[R]_(d, e)).
Variables (D' : nat -> 'M[R]_d) (q' k' : nat -> 'cV[R]_d) (v' : nat -> 'cV[R]_e) (beta' : nat -> R) (S0' : 'M[R]_(d, e)).
Let b t := rule_step (beta t) (g t).
Let b' t := rule_step' (k t) (beta t) (g t) (g' t) (k' t) (beta' t).
Let S := state D k v b S0.
Let L := cotangent_of n D q k c b LT.

Definition rule_gradient_along r : R :=
  dot (dq (D r) (k r) (v r) (c r) (b r) (S r)) (q' r)
  + dot (rule_dk (D r) (q r) (k r) (v r) (c r) (S r) (L r.+1) (beta r) (g r) (g' r)) (k' r)
  + dot (dv (q r) (k r) (c r) (b r) (L r.+1)) (v' r)
  + rule_dbeta (D r) (q r) (k r) (v r) (c r) (S r) (L r.+1) (beta r) (g r) (g' r) * beta' r
  + inner (cotangent_decayed (q r) (k r) (c r) (b r) (L r.+1)) (D' r *m S r).

Theorem rule_run_transposed r : (r <= n)%N ->
  inner (L r) (slope D k v b S0 D' k' v' b' S0' r) + \sum_(r <= i < n) rule_gradient_along i
  = inner LT (slope D k v b S0 D' k' v' b' S0' n)
    + \sum_(r <= i < n) dot (c i) (output_slope D q k v b S0 D' q' k' v' b' S0' i).
Proof.
move=> rn; rewrite -(@run_transposed R d e n D q k v c b S0 LT D' q' k' v' b' S0' r rn); congr (_ + _).
apply: eq_bigr => i _; rewrite /rule_gradient_along /gradient_along /gradient_v -/S -/L.
have -> : b' i = by_beta (k i) (beta i) (g i) (g' i) * beta' i + by_key_factor (beta i) (g' i) * dot (k i) (k' i) by exact: rule_step_moves.
rewrite /rule_dk /rule_dbeta dotDl dotZl -/(b i); ring.
Qed.
End RuleRun.

(** I5 for every rule: what the rule adds to dk is along the key, so the sum over a run stays symmetric. *)
Theorem rule_key_sums (R : comRingType) d e n (D : nat -> 'M[R]_d) (q k : nat -> 'cV[R]_d) (v c : nat -> 'cV[R]_e)
    (beta g g' : nat -> R) (S0 LT : 'M[R]_(d, e)) r (a : nat -> R) :
  (forall t, D t = (a t)%:M) -> (r <= n)%N ->
  let b t := rule_step (beta t) (g t) in let S := state D k v b S0 in let L := cotangent_of n D q k c b LT in
  let X := \sum_(r <= i < n) (q i *m (dq (D i) (k i) (v i) (c i) (b i) (S i))^T
                              + k i *m (rule_dk (D i) (q i) (k i) (v i) (c i) (S i) (L i.+1) (beta i) (g i) (g' i))^T)
           + S r *m (L r)^T + LT *m (S n)^T in X^T = X.
Proof.
move=> ED rn b S L; have H := run_key_sums q k v c b S0 LT ED rn; rewrite /= -/S -/L in H *.
pose w i : 'M[R]_d := k i *m ((by_key_factor (beta i) (g' i) * db (D i) (q i) (k i) (v i) (c i) (S i) (L i.+1)) *: k i)^T.
have sym_w : (\sum_(r <= i < n) w i)^T = \sum_(r <= i < n) w i.
  rewrite raddf_sum /=; apply: eq_bigr => i _; rewrite /w; move: (_ * _) => s.
  by rewrite trmx_mul trmxK linearZ /= -scalemxAl -scalemxAr.
rewrite (eq_bigr (fun i => key_sum n D q k v c b S0 LT i + w i)); last first.
  by move=> i _; rewrite /key_sum /w /rule_dk [(_ + _ *: _)^T]linearD /= mulmxDr addrA.
rewrite big_split /= -!addrA [X in _ + X]addrC !addrA.
move: H; set Z := _ + LT *m _ => H.
by rewrite linearD /= sym_w H.
Qed.

(** The normalisation of keys and queries, x -> y = r x. *)
Section Normalised.
Variables (R : comRingType) (d : nat) (x : 'cV[R]_d) (r : R).

Definition normalised : 'cV[R]_d := r *: x.
(** From a cotangent dy of y: dx = r (dy - y (y . dy)). *)
Definition through_norm (dy : 'cV[R]_d) : 'cV[R]_d := r *: (dy - dot normalised dy *: normalised).

(** The derivative of y along x', where r moves by -r^3 x . x'. *)
Definition normalised' (x' : 'cV[R]_d) : 'cV[R]_d := (- r ^+ 3 * dot x x') *: x + r *: x'.

(** [through_norm] is its transpose. *)
Theorem norm_transposed dy x' : dot dy (normalised' x') = dot (through_norm dy) x'.
Proof.
rewrite /normalised' /through_norm /normalised dotDr !dotZr dotZl dotBl !dotZl [dot dy x]dotC; ring.
Qed.

(** It is symmetric. *)
Theorem norm_symmetric dy dz : dot (through_norm dy) dz = dot dy (through_norm dz).
Proof.
rewrite /through_norm /normalised !dotZl !dotZr dotBl dotBr !dotZl !dotZr [dot dy x]dotC; ring.
Qed.

(** What eps leaves of I1 and I2: x . dx = r^2 eps y . dy, r^2 eps = eps / (|x|^2 + eps). *)
Theorem norm_radial dy eps : r ^+ 2 * (dot x x + eps) = 1 -> dot x (through_norm dy) = r ^+ 2 * eps * dot normalised dy.
Proof.
move=> H; have -> : r ^+ 2 * eps = 1 - r ^+ 2 * dot x x by rewrite -H; ring.
rewrite /through_norm /normalised dotZr dotBr !dotZl !dotZr; ring.
Qed.
End Normalised.

(** Longhorn's rule at beta = 1, k = 1: b = 1/2, phi' = -1/4, and with v = 1, c = 1, q = 1 from a state of zeros db = 1, dbeta = 1/4,
    dk = 1/2 - 1/2 = 0: k . dk + v . dv = 2 beta dbeta reads 0 + 1/2 = 1/2. *)
Example rule_instance :
  let one : 'cV[rat]_1 := 1%:M in let half := 1 / 2%:R in
  rule_dbeta 1%:M one one one one 0 0 1 half (- (half ^+ 2)) = half ^+ 2
  /\ dot one (rule_dk 1%:M one one one one 0 0 1 half (- (half ^+ 2))) = 0.
Proof.
rewrite /= /rule_dk /rule_dbeta /by_beta /by_key_factor /argument /rule_step /dk /db /dv /row_write /innovation /by_key /cotangent /decayed.
by rewrite !(mul1mx, mulmx1, trmx0, mul0mx, mulmx0, subr0, add0r, trmx1, addr0) /dot !big_ord1 !mxE /= !(mulr1, mul1r).
Qed.
