(* SPDX-FileCopyrightText: 2026 The deltaproof authors *)
(* SPDX-License-Identifier: MIT *)
(*
  The transition of one step, I - x y^T, over any commutative ring: what it does to a vector, its determinant,
  characteristic polynomial and spectrum, how steps along one key compose, its inverse, and that Longhorn's step is the
  implicit Euler method. The delta rule is x = b k, y = k ([step_transition b k]); gates, EFLA and both conventions of
  "negative eigenvalues" are other choices of x, y or b. For readers who cite eigenvalues of a step, and for every file
  below. Not claimed: anything about sizes (that is non_expansive.v), about rounding, about eigenvalues where the ring
  has zero divisors.
*)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory.
Local Open Scope ring_scope.

Section Apply.
Variable R : comRingType.

(** The inner product of two columns. *)
Definition dot d (x y : 'cV[R]_d) : R := \sum_i x i 0 * y i 0.

(** I - x y^T. *)
Definition rank_one d (x y : 'cV[R]_d) : 'M[R]_d := 1%:M - x *m y^T.

(** I - b k k^T, the transition of one step of the delta rule. *)
Definition step_transition d (b : R) (k : 'cV[R]_d) : 'M[R]_d := rank_one (b *: k) k.

Lemma trmx_mul_dot d (x y : 'cV[R]_d) : x^T *m y = (dot x y)%:M.
Proof.
apply/matrixP=> i j; rewrite !ord1 !mxE /dot eqxx mulr1n.
by apply: eq_bigr => l _; rewrite mxE.
Qed.

Lemma dotC d (x y : 'cV[R]_d) : dot x y = dot y x.
Proof. by apply: eq_bigr => i _; rewrite mulrC. Qed.

Lemma dotDl d (x y z : 'cV[R]_d) : dot (x + y) z = dot x z + dot y z.
Proof. by rewrite /dot -big_split; apply: eq_bigr => i _; rewrite mxE mulrDl. Qed.

Lemma dotZl d a (x z : 'cV[R]_d) : dot (a *: x) z = a * dot x z.
Proof. by rewrite /dot mulr_sumr; apply: eq_bigr => i _; rewrite mxE mulrA. Qed.

Lemma dotNl d (x z : 'cV[R]_d) : dot (- x) z = - dot x z.
Proof. by rewrite -scaleN1r dotZl mulN1r. Qed.

Lemma dotBl d (x y z : 'cV[R]_d) : dot (x - y) z = dot x z - dot y z.
Proof. by rewrite dotDl dotNl. Qed.

Lemma dot0l d (z : 'cV[R]_d) : dot 0 z = 0.
Proof. by rewrite -(scale0r 0) dotZl mul0r. Qed.

Lemma dot_suml d (c : nat -> 'cV[R]_d) m n (z : 'cV[R]_d) :
  dot (\sum_(m <= i < n) c i) z = \sum_(m <= i < n) dot (c i) z.
Proof. exact: (big_morph (fun p => dot p z) (fun p q => dotDl p q z) (dot0l z)). Qed.

Lemma dotZr d a (x z : 'cV[R]_d) : dot x (a *: z) = a * dot x z.
Proof. by rewrite dotC dotZl dotC. Qed.

Lemma dotBr d (x y z : 'cV[R]_d) : dot z (x - y) = dot z x - dot z y.
Proof. by rewrite dotC dotBl ![dot _ z]dotC. Qed.

Lemma outer_apply d e (u : 'cV[R]_e) (y z : 'cV[R]_d) : (u *m y^T) *m z = dot y z *: u.
Proof. by rewrite -mulmxA trmx_mul_dot mul_mx_scalar. Qed.

Lemma dot_trmx d (y z : 'cV[R]_d) (A : 'M[R]_d) : dot (A^T *m y) z = dot y (A *m z).
Proof.
have E : ((A^T *m y)^T *m z) 0 0 = (y^T *m (A *m z)) 0 0 by rewrite trmx_mul trmxK mulmxA.
by move: E; rewrite !trmx_mul_dot !mxE eqxx !mulr1n.
Qed.

(** (I - x y^T) z = z - (y^T z) x: a step needs one inner product and no matrix. *)
Theorem rank_one_apply d (x y z : 'cV[R]_d) : rank_one x y *m z = z - dot y z *: x.
Proof. by rewrite mulmxBl mul1mx outer_apply. Qed.

(** x is an eigenvector of I - x y^T, for 1 - y^T x. *)
Theorem rank_one_eigenvector d (x y : 'cV[R]_d) : rank_one x y *m x = (1 - dot y x) *: x.
Proof. by rewrite rank_one_apply scalerBl scale1r. Qed.

(** The hyperplane orthogonal to y is fixed, point by point. *)
Theorem rank_one_fixes_hyperplane d (x y z : 'cV[R]_d) : dot y z = 0 -> rank_one x y *m z = z.
Proof. by move=> yz; rewrite rank_one_apply yz scale0r subr0. Qed.

Lemma trmx_rank_one d (x y : 'cV[R]_d) : (rank_one x y)^T = rank_one y x.
Proof. by rewrite /rank_one linearB /= trmx1 trmx_mul trmxK. Qed.

Lemma step_apply d b (k z : 'cV[R]_d) : step_transition b k *m z = z - (b * dot k z) *: k.
Proof. by rewrite rank_one_apply scalerA mulrC. Qed.

Lemma trmx_step d b (k : 'cV[R]_d) : (step_transition b k)^T = step_transition b k.
Proof. by rewrite trmx_rank_one /step_transition /rank_one linearZ /= -scalemxAl -scalemxAr. Qed.

(** The key is an eigenvector of its own step, for 1 - b |k|^2. *)
Theorem step_eigenvector d b (k : 'cV[R]_d) : step_transition b k *m k = (1 - b * dot k k) *: k.
Proof. by rewrite step_apply scalerBl scale1r. Qed.

(** What is orthogonal to the key passes a step unchanged. *)
Theorem step_fixes_complement d b (k z : 'cV[R]_d) : dot k z = 0 -> step_transition b k *m z = z.
Proof. exact: rank_one_fixes_hyperplane. Qed.

(** n steps along one key multiply it by the n-th power of 1 - b |k|^2. *)
Theorem step_power_on_key d b (k : 'cV[R]_d) n :
  iter n (mulmx (step_transition b k)) k = (1 - b * dot k k) ^+ n *: k.
Proof.
elim: n => [|n IH]; first by rewrite expr0 scale1r.
by rewrite iterS IH -scalemxAr step_eigenvector scalerA exprSr.
Qed.
End Apply.

Section Determinant.
Variable R : comRingType.

Lemma det_scalar_plus_outer d (c : R) (u v : 'cV[R]_d) :
  c * \det (c%:M + u *m v^T) = c ^+ d * (c + dot v u).
Proof.
pose M : 'M[R]_(d + 1) := block_mx c%:M (- u) v^T 1%:M.
have e1 : M *m block_mx 1%:M 0 (- v^T) 1%:M = block_mx (c%:M + u *m v^T) (- u) 0 1%:M.
  rewrite mulmx_block !mulmx1 !mulmx0 !mul1mx !mulNmx !mulmxN opprK.
  by rewrite add0r addrN add0r.
have e2 : M *m block_mx 1%:M u 0 c%:M = block_mx c%:M 0 v^T (dot v u + c)%:M.
  rewrite mulmx_block !mulmx1 !mulmx0 !mul1mx !addr0 mul_scalar_mx mulNmx.
  by rewrite mul_mx_scalar addrN trmx_mul_dot -raddfD.
have := congr1 determinant e1; have := congr1 determinant e2.
rewrite !det_mulmx !det_ublock !det_lblock !det_scalar !expr1n !expr1.
by rewrite !mulr1 mul1r => e3 <-; rewrite mulrC e3 [_ + c]addrC.
Qed.

(** det (I - x y^T) = 1 - y^T x: the matrix determinant lemma, in any commutative ring. *)
Theorem rank_one_determinant d (x y : 'cV[R]_d) : \det (rank_one x y) = 1 - dot y x.
Proof.
have := det_scalar_plus_outer 1 (- x) y.
by rewrite mul1r expr1n mul1r mulNmx dotC dotNl dotC.
Qed.

(** det (I - b k k^T) = 1 - b |k|^2. *)
Theorem step_determinant d b (k : 'cV[R]_d) : \det (step_transition b k) = 1 - b * dot k k.
Proof. by rewrite rank_one_determinant dotZr. Qed.

End Determinant.

Section CharacteristicPolynomial.
Variable R : comRingType.

(** The characteristic polynomial of I - x y^T is (X - 1)^(d-1) (X - (1 - y^T x)). *)
Theorem rank_one_characteristic_polynomial d (x y : 'cV[R]_d.+1) :
  char_poly (rank_one x y) = ('X - 1) ^+ d * ('X - (1 - dot y x)%:P).
Proof.
have Xreg : GRing.lreg ('X - 1%:P : {poly R}) by apply/monic_lreg/monicXsubC.
apply: Xreg; rewrite mulrA -exprS /char_poly /char_poly_mx.
have -> : 'X%:M - map_mx polyC (rank_one x y) =
          ('X - 1%:P)%:M + map_mx polyC x *m (map_mx polyC y)^T.
  rewrite /rank_one map_mxB map_scalar_mx map_mxM map_trmx.
  by rewrite [in RHS]raddfB /= opprB addrA addrAC.
rewrite det_scalar_plus_outer; congr (_ * _); rewrite -addrA; congr (_ + _).
rewrite polyCB opprB addrC; congr (_ - _).
rewrite /dot rmorph_sum; apply: eq_bigr => i _.
by rewrite !mxE -polyCM.
Qed.

(** The characteristic polynomial of a step is (X - 1)^(d-1) (X - (1 - b |k|^2)). *)
Theorem step_characteristic_polynomial d (b : R) (k : 'cV[R]_d.+1) :
  char_poly (step_transition b k) = ('X - 1) ^+ d * ('X - (1 - b * dot k k)%:P).
Proof. by rewrite rank_one_characteristic_polynomial dotZr. Qed.
End CharacteristicPolynomial.

Section Spectrum.
Variable F : fieldType.

(** In two dimensions or more the eigenvalues of I - x y^T are 1 and 1 - y^T x, and no others. *)
Theorem rank_one_spectrum d (x y : 'cV[F]_d.+2) a :
  eigenvalue (rank_one x y) a = (a == 1) || (a == 1 - dot y x).
Proof.
by rewrite eigenvalue_root_char rank_one_characteristic_polynomial rootM root_exp_XsubC root_XsubC.
Qed.

(** In two dimensions or more the eigenvalues of a step are 1 and 1 - b |k|^2, and no others. *)
Theorem step_spectrum d (b : F) (k : 'cV[F]_d.+2) a :
  eigenvalue (step_transition b k) a = (a == 1) || (a == 1 - b * dot k k).
Proof. by rewrite rank_one_spectrum dotZr. Qed.
End Spectrum.

Section Compose.
Variables (R : comRingType) (d : nat).
Implicit Types (k x y : 'cV[R]_d) (a b : R).

Lemma outer_outer x y : (x *m y^T) *m (x *m y^T) = dot y x *: (x *m y^T).
Proof. by rewrite mulmxA outer_apply -scalemxAl. Qed.

(** Powers of x y^T are multiples of it: f(x y^T) is f(0) I and a multiple of x y^T for every polynomial f. *)
Theorem outer_power x y n : iter n (mulmx (x *m y^T)) (x *m y^T) = dot y x ^+ n *: (x *m y^T).
Proof.
elim: n => [|n IH]; first by rewrite expr0 scale1r.
by rewrite iterS IH -scalemxAr outer_outer scalerA exprSr.
Qed.

(** Two steps along one key are one: a, then b, is a + b - a b |k|^2. *)
Theorem step_composition a b k :
  step_transition a k *m step_transition b k = step_transition (a + b - a * b * dot k k) k.
Proof.
rewrite /step_transition /rank_one -!scalemxAl mulmxBl mul1mx mulmxBr mulmx1 -scalemxAl -scalemxAr outer_outer.
move: (k *m k^T) (dot k k) => M n; apply/matrixP => i j; rewrite !mxE; ring.
Qed.

(** b |k|^2 = 2 is a reflection: its own inverse. *)
Theorem step_reflection b k : b * dot k k = 2%:R -> step_transition b k *m step_transition b k = 1%:M.
Proof.
move=> h; rewrite step_composition -mulrA h.
have -> : b + b - b * 2%:R = 0 by ring.
by rewrite /step_transition /rank_one scale0r mul0mx subr0.
Qed.
End Compose.

Section Implicit.
Variables (F : fieldType) (d e : nat).
Implicit Types (k : 'cV[F]_d) (b : F).

(** (I + b k k^T)^-1 = I - b / (1 + b |k|^2) k k^T, wherever the denominator is not 0. *)
Theorem sherman_morrison b k : 1 + b * dot k k != 0 ->
  step_transition (- b) k *m step_transition (b / (1 + b * dot k k)) k = 1%:M.
Proof.
move=> h; rewrite step_composition.
have -> : - b + b / (1 + b * dot k k) - - b * (b / (1 + b * dot k k)) * dot k k = 0 by field.
by rewrite /step_transition /rank_one scale0r mul0mx subr0.
Qed.

(** Longhorn's step, b / (1 + b |k|^2), solves the implicit Euler equation S = S0 - b (S k - v) k^T. *)
Theorem longhorn_is_implicit_euler b k (v : 'cV[F]_e) (S0 : 'M[F]_(e, d)) :
  let c := b / (1 + b * dot k k) in
  let S := S0 *m step_transition c k + c *: (v *m k^T) in
  1 + b * dot k k != 0 -> S = S0 - b *: ((S *m k - v) *m k^T).
Proof.
move=> c S h.
have Sk : S *m k = (1 - c * dot k k) *: (S0 *m k) + (c * dot k k) *: v.
  by rewrite mulmxDl -mulmxA step_eigenvector -scalemxAr -scalemxAl outer_apply scalerA.
rewrite Sk {1}/S /step_transition /rank_one mulmxBr mulmx1 -scalemxAl -scalemxAr.
rewrite mulmxBl mulmxDl -!scalemxAl !mulmxA.
have hc : c = b * (1 - c * dot k k) by rewrite /c; field.
move: (S0 *m k *m k^T) (v *m k^T) => A B.
rewrite -addrA; congr (_ + _).
rewrite {1 2}hc; move: (c * dot k k) => z; apply/matrixP => i j; rewrite !mxE.
move: (A i j) (B i j) => p q; move: (z : F) (b : F) => {}z b'; ring.
Qed.

(** The implicit Euler equation has no other solution. *)
Theorem implicit_euler_unique b k (v : 'cV[F]_e) (S0 S : 'M[F]_(e, d)) :
  let c := b / (1 + b * dot k k) in
  1 + b * dot k k != 0 -> S = S0 - b *: ((S *m k - v) *m k^T) ->
  S = S0 *m step_transition c k + c *: (v *m k^T).
Proof.
move=> c h eqS.
have eqM : S *m step_transition (- b) k = S0 + b *: (v *m k^T).
  rewrite /step_transition /rank_one mulmxBr mulmx1 -scalemxAl -scalemxAr scaleNr opprK mulmxA.
  by rewrite {1}eqS mulmxBl scalerBr opprB addrA subrK.
have := congr1 (mulmx^~ (step_transition c k)) eqM.
rewrite -mulmxA sherman_morrison // mulmx1 mulmxDl => ->; congr (_ + _).
rewrite -scalemxAl -mulmxA.
have -> : k^T *m step_transition c k = (1 - c * dot k k) *: k^T.
  have := congr1 trmx (step_eigenvector c k).
  by rewrite trmx_mul trmx_step linearZ.
rewrite -scalemxAr scalerA; congr (_ *: _).
by rewrite /c; field.
Qed.
End Implicit.

(** Two channels, for examples. *)
Definition vec2 (R : Type) (a b : R) : 'cV[R]_2 := \col_(i < 2) (if (val i == 0)%N then a else b).

Lemma dot_vec2 (R : comRingType) (a b c d : R) : dot (vec2 a b) (vec2 c d) = a * c + b * d.
Proof. by rewrite /dot !big_ord_recl big_ord0 !mxE /= addr0. Qed.

(** The key (1, 2) with b = 2/5 is a reflection; with b = 1 its eigenvalue is -4. *)
Example step_reflection_instance :
  let k := vec2 1 2%:R : 'cV[rat]_2 in
  (2%:R / 5%:R) * dot k k = 2%:R /\ eigenvalue (step_transition 1 k) (- 4%:R).
Proof. by rewrite /= dot_vec2 step_spectrum dot_vec2; split; [apply/eqP|]. Qed.

(** The hyperplane of the key (1, 2) is not empty but for 0: (2, -1) lies in it. *)
Example step_fixes_complement_instance :
  let k := vec2 1 2%:R : 'cV[rat]_2 in let z := vec2 2%:R (-1) in dot k z = 0 /\ z != 0.
Proof.
rewrite /= dot_vec2; split; first by apply/eqP.
by apply/eqP => /matrixP /(_ 0 0); rewrite !mxE.
Qed.

(** The denominators of Sherman-Morrison and of Longhorn: 1 + b |k|^2 = 6 for the key (1, 2) and b = 1; it may be 0 only
    for b < 0, as for b = -1/5. *)
Example sherman_morrison_instance :
  let k := vec2 1 2%:R : 'cV[rat]_2 in
  1 + 1 * dot k k = 6%:R /\ 1 + 1 * dot k k != 0 /\ 1 + (- (1 / 5%:R)) * dot k k = 0.
Proof. by rewrite /= dot_vec2; split; [apply/eqP|split=> //; apply/eqP]. Qed.
