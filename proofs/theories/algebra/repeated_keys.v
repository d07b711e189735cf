(* SPDX-FileCopyrightText: 2026 The deltaproof authors *)
(* SPDX-License-Identifier: MIT *)
(*
  Chunks whose keys all have the same inner product with each other (one key repeated, or equal cosines) and one step: then
  A = c N with N strictly lower triangular of ones. The powers of A are binomials, so what doubling forms on the way is
  huge, while the inverse is a geometric sequence, at most 1 for 0 <= c <= 1: bounding the result bounds no intermediate. At
  c = 2, one unit key with b = 2, the bounds of ut_bounds.v are attained. For authors who choose an algorithm for the inverse
  and for the finding powers-are-binomials. Not claimed: the powers of A for other keys.
*)
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From deltaproof.algebra Require Import rank_one ordered_product non_expansive wy unit_lower ut ut_bounds.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section EqualOverlaps.
Variables (R : comUnitRingType) (n : nat) (c : R).

(** c below the diagonal, 0 elsewhere. *)
Definition equal_overlaps : 'M[R]_n.+1 := \matrix_(i, j) (c *+ (j < i)).

Lemma equal_overlaps_lower : strictly_lower equal_overlaps.
Proof. by move=> i j ij; rewrite mxE ltnNge ij. Qed.

(** C(0, p) + ... + C(m-1, p) = C(m, p+1). *)
Lemma hockey_stick m p : (\sum_(l < m) 'C(l, p) = 'C(m, p.+1))%N.
Proof.
elim: m => [|m IH]; first by rewrite big_ord0 bin0n.
by rewrite big_ord_recr /= IH binS.
Qed.

(** The entry of A^p that lies i - j rows below the diagonal is c^p C(i - j - 1, p - 1): the number of paths of p steps. *)
Theorem powers_are_binomials p (i j : 'I_n.+1) :
  (equal_overlaps ^+ p.+1) i j = (c ^+ p.+1) *+ ((j < i) * 'C((i - j).-1, p)).
Proof.
elim: p i j => [|p IH] i j; first by rewrite expr1 mxE bin0 muln1 expr1.
rewrite exprS mxE.
rewrite (eq_bigr (fun l : 'I_n.+1 =>
   (c ^+ p.+2) *+ (if (l < i)%N && (j < l)%N then 'C((l - j).-1, p) else 0%N))); last first.
  move=> l _; rewrite mxE IH mulrnAl mulrnAr -mulrnA -exprS; congr (_ *+ _).
  by case: (j < l)%N; case: (l < i)%N; rewrite ?mul0n ?muln0 ?mul1n ?muln1.
rewrite sumrMnr; congr (_ *+ _); rewrite -big_mkcond /=.
rewrite -(big_mkord (fun l => (l < i)%N && (j < l)%N) (fun l => 'C((l - j).-1, p))).
have [ji|ij] := ltnP j i; last first.
  by rewrite mul0n big1 // => l /andP[li jl]; move: (ltn_trans jl li); rewrite ltnNge ij.
rewrite mul1n -(big_nat_widenl j.+1 0 n.+1 (fun l => (l < i)%N)) //.
rewrite -(big_nat_widen j.+1 i n.+1 xpredT) ?(ltnW (ltn_ord i)) //.
rewrite -[j.+1]add0n big_addn big_mkord -subnS -hockey_stick.
by apply: eq_bigr => l _; rewrite addnS subSn ?leq_addl //= addnK.
Qed.

(** Ones on the diagonal and -c (1 - c)^(i - j - 1) below it. *)
Definition geometric_inverse : 'M[R]_n.+1 :=
  \matrix_(i, j) ((i == j)%:R - (c * (1 - c) ^+ (i - j).-1) *+ (j < i)).

Lemma geometric_sum m : c * (\sum_(l < m) (1 - c) ^+ l) = 1 - (1 - c) ^+ m.
Proof.
have := subrX1 (1 - c) m; rewrite addrAC subrr sub0r mulNr => h.
by rewrite -[LHS]opprK -h opprB.
Qed.

Lemma equal_overlaps_times_inverse : (1 + equal_overlaps) *m geometric_inverse = 1.
Proof.
apply/matrixP => i j; rewrite mulmxDl mul1mx !mxE.
under eq_bigr => l _ do rewrite !mxE mulrBr.
rewrite sumrB (bigD1 j) //= eqxx mulr1 big1 ?addr0; last first.
  by move=> l /negPf ->; rewrite mulr0.
have -> : \sum_(l < n.+1) (c *+ (l < i)) * ((c * (1 - c) ^+ (l - j).-1) *+ (j < l))
        = (c * (1 - (1 - c) ^+ (i - j).-1)) *+ (j < i).
  rewrite (eq_bigr (fun l : 'I_n.+1 => if (l < i)%N && (j < l)%N
     then c * c * (1 - c) ^+ (l - j).-1 else 0)); last first.
    by move=> l _; case: (l < i)%N; case: (j < l)%N;
       rewrite ?mulr0n ?mulr1n ?mul0r ?mulr0 ?mulrA.
  rewrite -big_mkcond /= -(big_mkord (fun l => (l < i)%N && (j < l)%N)
    (fun l => c * c * (1 - c) ^+ (l - j).-1)).
  have [ji|ij] := ltnP j i; last first.
    by rewrite big1 // => l /andP[li jl]; move: (ltn_trans jl li); rewrite ltnNge ij.
  rewrite -(big_nat_widenl j.+1 0 n.+1 (fun l => (l < i)%N)) //.
  rewrite -(big_nat_widen j.+1 i n.+1 xpredT) ?(ltnW (ltn_ord i)) //.
  rewrite -[j.+1]add0n big_addn big_mkord -geometric_sum mulr1n -mulr_sumr mulrA.
  congr (_ * _); rewrite subnS; apply: eq_bigr => l _.
  by rewrite addnS subSn ?leq_addl //= addnK.
rewrite -mulrnBl mulrBr mulr1 opprB addrCA subrr addr0 subrK //.
Qed.

(** (I + A)^-1 has the entries -c (1 - c)^(i - j - 1) below its diagonal. *)
Theorem inverse_is_geometric : invmx (1%:M + equal_overlaps) = geometric_inverse.
Proof.
have U := unit_lower_invertible equal_overlaps_lower.
by rewrite -[RHS](mulKmx U) [X in _ = _ *m X]equal_overlaps_times_inverse mulmx1.
Qed.
End EqualOverlaps.

Section EqualKeys.
Variables (R : comUnitRingType) (n d : nat) (b overlap_of_keys : R) (k : nat -> 'cV[R]_d).
Hypothesis equal : forall i j, i != j -> dot (k i) (k j) = overlap_of_keys.

(** Keys with equal inner products, one step b and no gate have A = b <k, k'> N. *)
Theorem equal_keys_overlaps :
  chunk_A n.+1 (fun=> 1%:M) (fun t => b *: k t) k = equal_overlaps n (b * overlap_of_keys).
Proof.
apply/matrixP => i j; rewrite !mxE; case: ltnP => ji; last by rewrite !mulr0n.
by rewrite !mulr1n ungated_overlap ?(ltnW ji) // dotZr equal // ltn_eqF.
Qed.
End EqualKeys.

Section Attained.
Variables (R : realFieldType) (n d : nat) (k : 'cV[R]_d).
Hypothesis unit_key : squared_norm k = 1.
Let Ai := chunk_Ai n.+1 (fun=> 1%:M) (fun=> 2%:R *: k) (fun=> k).

Lemma reflected_inverse (i j : 'I_n.+1) : (j < i)%N -> Ai i j = - (2%:R * (-1) ^+ (i - j).-1).
Proof.
move=> ji; rewrite /Ai /chunk_Ai (@equal_keys_overlaps _ _ _ _ 1) => [|? ? _]; last exact: unit_key.
by rewrite mulr1 inverse_is_geometric mxE -val_eqE gtn_eqF // ji mulr1n sub0r (_ : 1 - 2%:R = -1 :> R) //; ring.
Qed.

(** One unit key repeated with b = 2 attains B1 and B2: every entry of the inverse below the diagonal is +-2, of T +-4. *)
Theorem inverse_bounds_attained (i j : 'I_n.+1) : (j < i)%N -> `|Ai i j| = 2%:R /\ `|Ai i j * 2%:R| = 4%:R.
Proof.
move=> ji; have E : `|Ai i j| = 2%:R.
  by rewrite reflected_inverse // normrN normrM normrX normrN1 expr1n mulr1 ger0_norm ?ler0n.
by rewrite normrM E ger0_norm ?ler0n // -natrM.
Qed.

(** ... some residual of at most eps moves the last row by (2 C - 1) eps: the forward error is attained ... *)
Theorem forward_error_attained (eps : R) : 0 <= eps ->
  exists E : 'M[R]_(n.+1, 1), (forall j, `|E j 0| <= eps) /\ `|(Ai *m E) ord_max 0| = eps * (\sum_j `|Ai ord_max j|).
Proof.
move=> eps0; exists (\matrix_(j, c) (eps * Num.sg (Ai ord_max j))); split=> [j|].
  rewrite mxE normrM (ger0_norm eps0) -[X in _ <= X]mulr1 ler_wpmul2l // normr_sg.
  by case: (_ != 0); rewrite ?lexx ?ler01.
rewrite mxE (eq_bigr (fun j => eps * `|Ai ord_max j|)) => [|j _].
  by rewrite -mulr_sumr ger0_norm // mulr_ge0 ?sumr_ge0.
by rewrite mxE mulrCA [in RHS]normrEsg [_ * Num.sg _]mulrC.
Qed.

(** ... and B5: the last rows of I + A and of the inverse have the absolute sum 2 C - 1. *)
Theorem condition_attained :
  \sum_j `|Ai ord_max j| = (2 * n).+1%:R
  /\ \sum_j `|(1%:M + chunk_A n.+1 (fun=> 1%:M) (fun=> 2%:R *: k) (fun=> k)) ord_max j| = (2 * n).+1%:R.
Proof.
have count (f : 'I_n.+1 -> R) : f ord_max = 1 -> (forall j : 'I_n.+1, (j < n)%N -> f j = 2%:R) ->
    \sum_j f j = (2 * n).+1%:R.
  move=> f1 f2; rewrite big_ord_recr /= f1 (eq_bigr (fun=> 2%:R)) => [|j _]; last by rewrite f2 //= ltn_ord.
  by rewrite sumr_const card_ord -mulrnA -[(2 * n).+1]addn1 natrD.
split; apply: count.
- by rewrite /Ai inverse_entry ltnn eqxx normr1.
- by move=> j jn; have [] := @inverse_bounds_attained ord_max j jn.
- by rewrite !mxE eqxx ltnn mulr0n addr0 normr1.
- move=> j jn; rewrite mxE [1%:M _ _]mxE [chunk_A _ _ _ _ _ _]mxE -val_eqE gtn_eqF //= jn mulr0n add0r mulr1n.
  by rewrite ungated_overlap ?(ltnW jn) // dotZr (_ : dot k k = 1) // mulr1 ger0_norm ?ler0n.
Qed.
End Attained.

Section StoredInverse.
Variables (R : realFieldType) (n : nat) (x u : R) (X : 'M[R]_n.+1).
Hypotheses (u0 : 0 <= u) (x1 : 1 <= x) (x2 : x < 2%:R).
Hypothesis stored : forall i j : 'I_n.+1, (j < i)%N ->
  `|X i j - geometric_inverse n x i j| <= u * `|geometric_inverse n x i j|.
Hypothesis kept : forall i j : 'I_n.+1, (i <= j)%N -> X i j = geometric_inverse n x i j.

Lemma stored_row (i : 'I_n.+1) :
  \sum_j `|X i j - geometric_inverse n x i j| <= u * (x / (2%:R - x)).
Proof.
have q0 : 0 <= x - 1 by rewrite subr_ge0.
have x0 : 0 <= x by exact: le_trans ler01 x1.
have d0 : 0 < 2%:R - x by rewrite subr_gt0.
apply: (@le_trans _ _ (\sum_(j < n.+1 | (j < i)%N) u * (x * (x - 1) ^+ (i - j).-1))).
  rewrite (bigID (fun j : 'I_n.+1 => (j < i)%N)) /= [X in _ + X]big1 ?addr0; last first.
    by move=> j; rewrite -leqNgt => ij; rewrite kept // subrr normr0.
  apply: ler_sum => j ji; apply: le_trans (stored ji) _; rewrite ler_wpmul2l //.
  rewrite mxE -val_eqE gtn_eqF // ji mulr1n sub0r normrN normrM normrX (ger0_norm x0).
  by rewrite -[1 - x]opprB normrN (ger0_norm q0).
rewrite -mulr_sumr ler_wpmul2l // -mulr_sumr ler_wpmul2l //.
rewrite -(big_ord_widen n.+1 (fun j => (x - 1) ^+ (i - j).-1) (ltnW (ltn_ord i))).
rewrite (reindex_inj rev_ord_inj) /= (eq_bigr (fun j : 'I_i => (x - 1) ^+ j)); last first.
  by move=> j _; rewrite subKn // ltnW.
rewrite -[X in _ <= X]mul1r ler_pdivl_mulr // mulrC.
have := geometric_sum (2%:R - x) i; rewrite (_ : 1 - (2%:R - x) = x - 1); last by ring.
by move=> ->; rewrite ger_addl oppr_le0 exprn_ge0.
Qed.

(** One key repeated, x = b |k|^2 in [1, 2): an inverse stored within a relative u below its diagonal moves the eigenvalue of
    the chunk along the key, 1 - x sum_ij X_ij, by at most C u x^2 / (2 - x). *)
Theorem stored_inverse_moves_eigenvalue :
  `|(1 - x * \sum_i \sum_j X i j) - (1 - x * \sum_i \sum_j geometric_inverse n x i j)|
    <= n.+1%:R * (u * (x ^+ 2 / (2%:R - x))).
Proof.
have x0 : 0 <= x by exact: le_trans ler01 x1.
have -> : (1 - x * \sum_i \sum_j X i j) - (1 - x * \sum_i \sum_j geometric_inverse n x i j)
        = - (x * \sum_i \sum_j (X i j - geometric_inverse n x i j)).
  have -> : \sum_i \sum_j (X i j - geometric_inverse n x i j)
          = \sum_i \sum_j X i j - \sum_i \sum_j geometric_inverse n x i j.
    by rewrite -sumrB; apply: eq_bigr => i _; rewrite sumrB.
  by move: (\sum_i _) (\sum_i _) => p q; ring.
rewrite normrN normrM (ger0_norm x0).
have -> : n.+1%:R * (u * (x ^+ 2 / (2%:R - x))) = x * (n.+1%:R * (u * (x / (2%:R - x)))) by rewrite expr2; ring.
rewrite ler_wpmul2l //; apply: le_trans (ler_norm_sum _ _ _) _.
apply: (@le_trans _ _ (\sum_(i < n.+1) u * (x / (2%:R - x)))); last by rewrite sumr_const card_ord mulr_natl.
apply: ler_sum => i _; apply: le_trans (ler_norm_sum _ _ _) _; exact: stored_row.
Qed.
End StoredInverse.

(** Three significant bits, u = 1/8, and two rows: at x = 5/4 the movement is at most 25/48, so the chunk cannot explode. *)
Example stored_inverse_instance :
  2%:R * ((1 / 8%:R) * ((5%:R / 4%:R) ^+ 2 / (2%:R - 5%:R / 4%:R))) = (25%:R / 48%:R : rat).
Proof. by apply/eqP. Qed.

(** Sixteen rows of one unit key with b = 1: A^8 holds 3432 = C(14, 7), while (I + A)^-1 holds nothing above 1. *)
Example powers_are_binomials_instance :
  ((equal_overlaps 15 1 : 'M[rat]_16) ^+ 8) ord_max ord0 = 3432%:R
  /\ forall i j, `|(geometric_inverse 15 1 : 'M[rat]_16) i j| <= 1.
Proof.
split; first by rewrite powers_are_binomials expr1n /=; congr (_ *+ _); vm_compute.
move=> i j; rewrite mxE subrr; case: ltnP => ji; last by rewrite mulr0n subr0; case: eqP; rewrite ?normr1 ?normr0.
rewrite -val_eqE gtn_eqF // mulr1n mul1r sub0r normrN normrX normr0 expr0n; by case: eqP.
Qed.

(** The key (3/5, 4/5) has length 1. *)
Example unit_key_instance : squared_norm (vec2 (3%:R / 5%:R) (4%:R / 5%:R) : 'cV[rat]_2) = 1.
Proof. by rewrite /squared_norm dot_vec2; apply/eqP. Qed.
