(* SPDX-FileCopyrightText: 2026 The deltaproof authors *)
(* SPDX-License-Identifier: MIT *)
(*
  Inverses of I + L for strictly lower triangular L, as include/deltaproof/algebra/triangular.hpp computes them: forward
  substitution, the finite Neumann series, doubling, 2 x 2 blocks, and the general block recursion over blocks that do
  not commute. Over any ring where a theorem allows it. For authors of kernels who choose among them, and for ut.v. Not
  claimed: anything about the size of what an algorithm forms on the way (repeated_keys.v shows how large it can be) or
  about rounding.
*)
From mathcomp Require Import all_ssreflect all_algebra.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory.
Local Open Scope ring_scope.

(** Zeros on and above the diagonal. *)
Definition strictly_lower (R : ringType) C (L : 'M[R]_C) := forall i j : 'I_C, (i <= j)%N -> L i j = 0.

Lemma strictly_lower_opp (R : ringType) C (L : 'M[R]_C) : strictly_lower L -> strictly_lower (- L).
Proof. by move=> hL i j ij; rewrite mxE hL // oppr0. Qed.

Section Substitution.
Variables (R : comUnitRingType) (C : nat) (L : 'M[R]_C).
Hypothesis hL : strictly_lower L.

(** I + L has an inverse, in any commutative ring: its determinant is 1. *)
Theorem unit_lower_invertible : 1%:M + L \in unitmx.
Proof.
rewrite unitmxE det_trig; last first.
  by apply/is_trig_mxP => i j ij; rewrite !mxE (hL (ltnW ij)) -val_eqE /= ltn_eqF // addr0.
by rewrite big1 ?unitr1 // => i _; rewrite !mxE hL // eqxx addr0.
Qed.

Lemma row_strictly_lower n (Z : 'M[R]_(C, n)) r :
  row r (L *m Z) = \sum_(j < C | (j < r)%N) L r j *: row j Z.
Proof.
rewrite row_mul mulmx_sum_row [RHS]big_mkcond /=; apply: eq_bigr => j _.
by rewrite mxE; case: ltnP => // rj; rewrite hL // scale0r.
Qed.

(** Z solves (I + L) Z = Y exactly if each row is what forward substitution makes of the rows before it. *)
Theorem forward_substitution n (Y Z : 'M[R]_(C, n)) :
  (forall r, row r Z = row r Y - \sum_(j < C | (j < r)%N) L r j *: row j Z) <->
  Z = invmx (1%:M + L) *m Y.
Proof.
have E : (forall r, row r Z = row r Y - \sum_(j < C | (j < r)%N) L r j *: row j Z) <-> (1%:M + L) *m Z = Y.
  split=> [h|<- r]; last first.
    by rewrite mulmxDl mul1mx raddfD /= row_strictly_lower addrK.
  apply/row_matrixP => r; rewrite mulmxDl mul1mx raddfD /= row_strictly_lower.
  by rewrite {1}h subrK.
rewrite E; split => [<-|->]; first by rewrite mulKmx ?unit_lower_invertible.
by rewrite mulKVmx ?unit_lower_invertible.
Qed.
End Substitution.

Section Nilpotent.
Variables (R : ringType) (n : nat).
Implicit Types L : 'M[R]_n.+1.

Lemma strictly_lower_power L m (i j : 'I_n.+1) : strictly_lower L -> (i < j + m)%N -> (L ^+ m) i j = 0.
Proof.
move=> hL; elim: m i => [|m IH] i.
  by rewrite addn0 expr0 mxE => ij; rewrite -val_eqE /= ltn_eqF.
rewrite addnS ltnS exprS mxE => ij; apply: big1 => l _.
have [il|li] := leqP i l; first by rewrite hL // mul0r.
by rewrite IH ?mulr0 // (leq_trans li).
Qed.

(** L^C = 0 for a C x C matrix, in any ring. *)
Theorem strictly_lower_nilpotent L : strictly_lower L -> L ^+ n.+1 = 0.
Proof. by move=> hL; apply/matrixP => i j; rewrite strictly_lower_power ?mxE // ltn_addl. Qed.

(** The exponent is sharp: the shift by one row has L^(C-1) != 0. *)
Theorem nilpotency_is_sharp :
  let L : 'M[R]_n.+1 := \matrix_(i, j) (i == j.+1 :> nat)%:R in strictly_lower L /\ L ^+ n != 0.
Proof.
move=> L; split=> [i j ij|]; first by rewrite mxE ltn_eqF // ltnS.
have E m (i j : 'I_n.+1) : (L ^+ m) i j = (i == j + m :> nat)%N%:R.
  elim: m i => [|m IH] i; first by rewrite expr0 mxE addn0.
  rewrite exprS mxE.
  case: i => [[|i] hi].
    rewrite big1 ?addnS // => l _; by rewrite mxE mul0r.
  rewrite (bigD1 (Ordinal (ltnW hi))) //= IH !mxE /= eqxx mul1r addnS eqSS.
  rewrite big1 ?addr0 // => l; rewrite -val_eqE mxE /= eqSS eq_sym => /negPf ->.
  by rewrite mul0r.
apply/eqP => /matrixP /(_ ord_max ord0); rewrite E mxE /= add0n eqxx.
by move/eqP; rewrite oner_eq0.
Qed.
End Nilpotent.

Section Doubling.
Variables (R : ringType) (g : R).

Lemma geometric_right N : g ^+ N = 0 -> (1 - g) * (\sum_(i < N) g ^+ i) = 1.
Proof. by move=> h; have := subrX1 g N; rewrite h sub0r -opprB mulNr => /oppr_inj <-. Qed.

Lemma geometric_left N : g ^+ N = 0 -> (\sum_(i < N) g ^+ i) * (1 - g) = 1.
Proof.
move=> h; rewrite -[RHS](geometric_right h) mulr_suml mulr_sumr.
by apply: eq_bigr => i _; rewrite mulrBr mulrBl mulr1 mul1r -exprS exprSr.
Qed.

(** S_(j+1) = S_j (1 + G_j), G_(j+1) = G_j^2 from S_0 = 1, G_0 = g. *)
Fixpoint doubling m : R * R :=
  if m is m'.+1 then let sg := doubling m' in (sg.1 * (1 + sg.2), sg.2 * sg.2) else (1, g).

(** m steps of doubling sum the first 2^m powers and leave the next one; in any ring. *)
Theorem doubling_sums_powers m : doubling m = (\sum_(i < 2 ^ m) g ^+ i, g ^+ (2 ^ m)).
Proof.
elim: m => [|m IH] /=; first by rewrite expn0 big_ord1 expr0 expr1.
rewrite IH /= expnS mul2n -addnn exprD; congr pair.
rewrite big_split_ord /= mulrDr mulr1 mulr_suml; congr (_ + _).
by apply: eq_bigr => i _; rewrite -!exprD addnC.
Qed.
End Doubling.

Section Neumann.
Variables (R : comUnitRingType) (n : nat) (L : 'M[R]_n.+1).
Hypothesis hL : strictly_lower L.

(** (I + L)^-1 is the sum of the first C powers of -L. *)
Theorem neumann_series : (1 + L)^-1 = \sum_(i < n.+1) (- L) ^+ i.
Proof.
have h := strictly_lower_nilpotent (strictly_lower_opp hL).
have := geometric_right h; have := geometric_left h; rewrite opprK => hl hr.
have U : (1 + L) \is a GRing.unit by apply/unitrP; eexists; split; eassumption.
by apply: (mulrI U); rewrite divrr // hr.
Qed.

(** Doubling from -L is the inverse as soon as 2^m >= C. *)
Theorem doubling_inverts m : (n.+1 <= 2 ^ m)%N -> (doubling (- L) m).1 = (1 + L)^-1.
Proof.
move=> le_n; rewrite doubling_sums_powers /= neumann_series.
rewrite (big_ord_widen _ (fun i => (- L) ^+ i) le_n) [RHS]big_mkcond /=.
apply: eq_bigr => i _; case: ltnP => // ni.
by rewrite -(subnK ni) exprD (strictly_lower_nilpotent (strictly_lower_opp hL)) mulr0.
Qed.
End Neumann.

Section TwoBlocks.
Variable R : comUnitRingType.

(** [A 0; B D]^-1 = [A^-1 0; -D^-1 B A^-1, D^-1]. *)
Theorem two_by_two_blocks m n (A : 'M[R]_m) (B : 'M[R]_(n, m)) (D : 'M[R]_n) :
  A \in unitmx -> D \in unitmx ->
  invmx (block_mx A 0 B D) = block_mx (invmx A) 0 (- (invmx D *m B *m invmx A)) (invmx D).
Proof.
move=> uA uD.
have E : block_mx A 0 B D *m block_mx (invmx A) 0 (- (invmx D *m B *m invmx A)) (invmx D) = 1%:M.
  rewrite mulmx_block !mulmx0 !mul0mx !addr0 !mulmxV // mulmxN -!mulmxA.
  by rewrite mulKVmx // addrN add0r -scalar_mx_block.
have U : block_mx A 0 B D \in unitmx by rewrite unitmxE det_lblock unitrM -!unitmxE uA.
by rewrite -[RHS](mulKmx U) E mulmx1.
Qed.
End TwoBlocks.

Section GeneralBlocks.
(** Blocks are elements of a ring that need not commute. *)
Variables (U : unitRingType) (n : nat) (A B : 'M[U]_n).
Hypothesis A_lower : forall i j : 'I_n, (i < j)%N -> A i j = 0.
Hypothesis A_diagonal : forall i, A i i \is a GRing.unit.
Hypothesis AB : A *m B = 1%:M.

Lemma block_row (i j : 'I_n) : A i i * B i j = (i == j)%:R - \sum_(l < n | (l < i)%N) A i l * B l j.
Proof.
have := congr1 (fun M : 'M[U]_n => M i j) AB; rewrite !mxE => <-.
rewrite (bigID (fun l : 'I_n => (l < i)%N)) /= [X in X - _]addrC addrK.
rewrite (bigD1 i) ?ltnn //= big1 ?addr0 // => l /andP[].
rewrite -leqNgt leq_eqVlt => /orP[/eqP/val_inj->|il _]; first by rewrite eqxx.
by rewrite A_lower // mul0r.
Qed.

(** A right inverse of a block lower triangular matrix is block lower triangular ... *)
Theorem block_inverse_lower (i j : 'I_n) : (i < j)%N -> B i j = 0.
Proof.
elim/ltn_ind: {i}(i : nat) {-2}i (erefl (i : nat)) => i' IH i ei ij.
apply: (mulrI (A_diagonal i)); rewrite mulr0 block_row -val_eqE /= ltn_eqF // sub0r.
rewrite big1 ?oppr0 // => l li; rewrite (IH l) ?mulr0 //; first by rewrite -ei.
exact: ltn_trans li ij.
Qed.

(** ... has the inverses of the diagonal blocks on its diagonal ... *)
Theorem block_inverse_diagonal i : B i i = (A i i)^-1.
Proof.
apply: (mulrI (A_diagonal i)); rewrite divrr // block_row eqxx big1 ?subr0 // => l li.
by rewrite block_inverse_lower ?mulr0.
Qed.

(** ... and below it B_ij = -A_ii^-1 sum_(j <= l < i) A_il B_lj. *)
Theorem block_recursion (i j : 'I_n) : (j < i)%N ->
  B i j = - (A i i)^-1 * (\sum_(l < n | (j <= l < i)%N) A i l * B l j).
Proof.
move=> ji; apply: (mulrI (A_diagonal i)); rewrite mulNr mulrN mulrA divrr // mul1r.
rewrite block_row -val_eqE /= gtn_eqF // sub0r; congr (- _).
rewrite (bigID (fun l : 'I_n => (j <= l)%N)) /= [X in _ + X]big1 ?addr0.
  by apply: eq_bigl => l; rewrite andbC.
by move=> l /andP[_]; rewrite -ltnNge => lj; rewrite block_inverse_lower ?mulr0.
Qed.
End GeneralBlocks.

(** The C x C matrix with every entry below the diagonal 1. *)
Definition all_ones (R : ringType) C : 'M[R]_C := \matrix_(i, j) (j < i)%N%:R.

(** It is strictly lower. *)
Example strictly_lower_instance C : strictly_lower (all_ones [ringType of int] C).
Proof. by move=> i j ij; rewrite mxE ltnNge ij. Qed.

(** For C = 2 one step of doubling finds its inverse, with -1 below the diagonal. *)
Example doubling_inverts_instance :
  (doubling (- all_ones [ringType of rat] 2) 1).1 = (1 + all_ones [ringType of rat] 2)^-1
  /\ ((1 + all_ones [ringType of rat] 2)^-1) 1 0 = -1.
Proof.
have s : strictly_lower (all_ones [ringType of rat] 2) by move=> i j ij; rewrite mxE ltnNge ij.
split; first exact: (doubling_inverts s).
by rewrite -(doubling_inverts s (isT : (2 <= 2 ^ 1)%N)) /= mul1r !mxE /= add0r.
Qed.

(** Blocks that are numbers: [1 0; 1 1] and its inverse. *)
Example block_recursion_instance :
  let A : 'M[rat]_2 := 1%:M + all_ones [ringType of rat] 2 in
  (forall i j : 'I_2, (i < j)%N -> A i j = 0) /\ (forall i, A i i \is a GRing.unit) /\ A *m invmx A = 1%:M.
Proof.
have s : strictly_lower (all_ones [ringType of rat] 2) by move=> i j ij; rewrite mxE ltnNge ij.
split=> [i j ij|]; first by rewrite mxE s ?(ltnW ij) // mxE -val_eqE /= ltn_eqF // addr0.
split=> [i|]; first by rewrite mxE s // mxE eqxx addr0 unitr1.
by rewrite mulmxV // (unit_lower_invertible s).
Qed.

(** Diagonal blocks 1 x 1 and the block 5 below: the inverse has -5 there. *)
Example two_by_two_blocks_instance :
  invmx (block_mx (1%:M : 'M[rat]_1) 0 (5%:R)%:M 1%:M) = block_mx 1%:M 0 (- (5%:R)%:M) 1%:M.
Proof. by rewrite two_by_two_blocks ?unitmx1 // !invmx1 mul1mx mulmx1. Qed.
