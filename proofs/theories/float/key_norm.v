(* SPDX-FileCopyrightText: 2026 The deltaproof authors
   SPDX-License-Identifier: MIT *)

(** What rounding its entries does to the length of a key, and which write strengths remain safe.

    For whoever clamps beta: a key of length 1 comes out with a squared length of at most 1 + 2u, so that
    beta <= 2 (1 - 2u) keeps the eigenvalue 1 - beta |k|^2 of a delta-rule step in [-1, 1], in every format; no larger beta
    of the key's format does ([safe_step_sharp]), and without the clamp the eigenvalue may leave by 4u, no more.
    First any precision, then bf16, fp16, tf32 and fp32 with their numbers.

    Not claimed: that a kernel's normalisation gives vectors of length at most 1: it is a hypothesis here, with slack 4 u^2.
    Anything about keys normalised in the format itself, or about the rounding of the eigenvalue's own computation. *)
From Coq Require Import Reals ZArith Lra Lia Psatz.
From Flocq Require Import Core.
From deltaproof.float Require Import interval_z vectors formats.
Import ITZ.
Import Tactic(i_prec).
Open Scope R_scope.

Section AnyPrecision.
Variables p emin : Z.
Hypothesis p_ge2 : (2 <= p)%Z.
Local Notation rnd := (fmt_round p emin).
Local Notation u := (unit_roundoff p).
Local Notation h := (smallest_subnormal emin).
Local Notation N := (smallest_normal p emin).

(** One entry: relative in the normal range, half a subnormal below it. *)
Lemma rounded_square x : (rnd x)^2 <= (1 + u / (1 + u))^2 * x^2 + h * (N + h / 4).
Proof.
pose proof (unit_roundoff_range p p_ge2) as Hu.
assert (Hh : 0 < h) by apply bpow_gt_0. assert (HN : 0 < N) by apply bpow_gt_0.
assert (Hw : 0 <= u / (1 + u)) by (apply Rmult_le_pos; [lra | left; apply Rinv_0_lt_compat; lra]).
set (w := u / (1 + u)) in *.
assert (Hx2 : x^2 = (Rabs x)^2) by (rewrite <- !Rsqr_pow2; apply Rsqr_abs).
assert (Hr2 : (rnd x)^2 = (Rabs (rnd x))^2) by (rewrite <- !Rsqr_pow2; apply Rsqr_abs).
pose proof (Rabs_pos x) as Hax; pose proof (Rabs_pos (rnd x)) as Har.
assert (Hs : 0 <= h * (N + h / 4)) by (apply Rmult_le_pos; lra).
assert (Htri : Rabs (rnd x) <= Rabs x + Rabs (rnd x - x)).
{ replace (rnd x) with (x + (rnd x - x)) at 1 by ring. apply Rabs_triang. }
rewrite Hx2, Hr2.
destruct (Rle_or_lt N (Rabs x)) as [Hx|Hx].
- destruct (relative_error p emin p_ge2 x Hx) as [H _]. fold w in H.
  assert (Rabs (rnd x) <= (1 + w) * Rabs x) by lra.
  assert ((Rabs (rnd x))^2 <= ((1 + w) * Rabs x)^2) by (apply pow_incr; lra).
  rewrite Rpow_mult_distr in H1. lra.
- pose proof (subnormal_error p emin p_ge2 x Hx) as H.
  assert ((Rabs (rnd x))^2 <= (Rabs x + h / 2)^2) by (apply pow_incr; lra).
  assert (Rabs x * h <= N * h) by (apply Rmult_le_compat_r; lra).
  assert (1 * (Rabs x)^2 <= (1 + w)^2 * (Rabs x)^2) by (apply Rmult_le_compat_r; [apply pow2_ge_0 | nra]).
  nra.
Qed.

Theorem key_norm_after_rounding d k :
  sq d (fun i => rnd (k i)) <= (1 + u / (1 + u))^2 * sq d k + INR d * (h * (N + h / 4)).
Proof.
unfold sq. rewrite <- Rsum_scal, <- Rsum_const, <- Rsum_plus. apply Rsum_le; intros i _; apply rounded_square.
Qed.

(** The condition that the C++ study evaluates in rationals (`safe_step_is_proved`). *)
Theorem safe_step_condition d k b :
  (1 - 2 * u) * ((1 + u)^2 + INR d * (h * (N + h / 4))) <= 1 ->
  sq d k <= 1 -> 0 <= b <= 2 * (1 - 2 * u) -> 0 <= b * sq d (fun i => rnd (k i)) <= 2.
Proof.
intros Hc Hk Hb; pose proof (key_norm_after_rounding d k) as Hn.
pose proof (unit_roundoff_range p p_ge2) as Hu.
set (n := sq d (fun i => rnd (k i))) in *; set (s := INR d * (h * (N + h / 4))) in *.
assert (H0 : 0 <= n) by apply sq_ge0.
assert (Hw : (1 + u / (1 + u))^2 * sq d k <= (1 + u)^2).
{ pose proof (sq_ge0 d k) as Hk0.
  assert (0 <= u / (1 + u) <= u).
  { split; [apply Rmult_le_pos; [lra | left; apply Rinv_0_lt_compat; lra]|].
    apply Rmult_le_reg_r with (1 + u); [lra|]. field_simplify; nra. }
  assert ((1 + u / (1 + u))^2 <= (1 + u)^2) by (apply pow_incr; lra).
  assert (0 <= (1 + u / (1 + u))^2) by apply pow2_ge_0. nra. }
split; [apply Rmult_le_pos; lra|].
apply Rle_trans with (2 * ((1 - 2 * u) * ((1 + u)^2 + s))); [|lra].
apply Rle_trans with (2 * (1 - 2 * u) * n); [apply Rmult_le_compat_r; lra|].
assert ((1 - 2 * u) * n <= (1 - 2 * u) * ((1 + u)^2 + s)) by (apply Rmult_le_compat_l; lra). lra.
Qed.

(** Up to this dimension subnormal entries do not matter. *)
Lemma subnormal_entries_negligible d :
  INR d <= bpow radix2 (- 2 * emin - 3 * p) -> INR d * (h * (N + h / 4)) <= 9 / 16 * u^2.
Proof.
intros Hd. pose proof (unit_roundoff_range p p_ge2) as Hu.
assert (E : bpow radix2 (- 2 * emin - 3 * p) * (h * (N + h / 4)) = u^2 / 2 + u^3 / 4).
{ unfold smallest_subnormal, smallest_normal, unit_roundoff.
  replace (- 2 * emin - 3 * p)%Z with ((- emin) + (- emin) + (- p) + (- p) + (- p))%Z by lia.
  replace (emin + p - 1)%Z with (emin + p + (-1))%Z by lia.
  rewrite !bpow_plus, !bpow_opp. change (bpow radix2 (-1)) with (/ 2). pose proof (bpow_gt_0 radix2 emin). pose proof (bpow_gt_0 radix2 p).
  field. lra. }
assert (Hs : 0 <= h * (N + h / 4)).
{ assert (0 < h) by apply bpow_gt_0. assert (0 < N) by apply bpow_gt_0. apply Rmult_le_pos; lra. }
apply Rle_trans with (bpow radix2 (- 2 * emin - 3 * p) * (h * (N + h / 4))); [apply Rmult_le_compat_r; assumption|].
rewrite E. nra.
Qed.

(** A key of length at most 1 + delta keeps |k|^2 <= (1 + 2u)(1 + delta). *)
Theorem unit_key_after_rounding d k delta :
  0 <= delta -> INR d <= bpow radix2 (- 2 * emin - 3 * p) -> sq d k <= 1 + delta ->
  sq d (fun i => rnd (k i)) <= (1 + 2 * u) * (1 + delta).
Proof.
intros Hdelta Hd Hk; pose proof (key_norm_after_rounding d k) as Hn; pose proof (subnormal_entries_negligible d Hd) as Hs.
pose proof (unit_roundoff_range p p_ge2) as Hu.
set (s := INR d * (h * (N + h / 4))) in *.
assert (Hw : (1 + u / (1 + u))^2 + 9 / 16 * u^2 <= 1 + 2 * u).
{ apply Rmult_le_reg_r with ((1 + u)^2); [apply pow_lt; lra|].
  replace (((1 + u / (1 + u))^2 + 9 / 16 * u^2) * (1 + u)^2) with ((1 + 2 * u)^2 + 9 / 16 * u^2 * (1 + u)^2) by (field; lra).
  assert (0 <= u^2) by apply pow2_ge_0.
  replace ((1 + 2 * u) * (1 + u)^2) with ((1 + 2 * u)^2 + u^2 * (1 + 2 * u)) by ring.
  enough (9 / 16 * u^2 * (1 + u)^2 <= u^2 * (1 + 2 * u)) by lra.
  replace (9 / 16 * u^2 * (1 + u)^2) with (u^2 * (9 / 16 * (1 + u)^2)) by ring. apply Rmult_le_compat_l; [assumption | nra]. }
assert (0 <= (1 + u / (1 + u))^2) by apply pow2_ge_0.
assert ((1 + u / (1 + u))^2 * sq d k <= (1 + u / (1 + u))^2 * (1 + delta)) by (apply Rmult_le_compat_l; assumption).
assert (0 <= u^2) by apply pow2_ge_0.
assert (9 / 16 * u^2 * 1 <= 9 / 16 * u^2 * (1 + delta)) by (apply Rmult_le_compat_l; lra).
assert (((1 + u / (1 + u))^2 + 9 / 16 * u^2) * (1 + delta) <= (1 + 2 * u) * (1 + delta)) by (apply Rmult_le_compat_r; lra).
lra.
Qed.

(** The clamp: beta <= 2 (1 - 2u) is safe for every key of squared length up to 1 + 4 u^2. *)
Theorem safe_step d k b :
  INR d <= bpow radix2 (- 2 * emin - 3 * p) -> sq d k <= 1 + 4 * u^2 -> 0 <= b <= 2 * (1 - 2 * u) ->
  0 <= b * sq d (fun i => rnd (k i)) <= 2.
Proof.
intros Hd Hk Hb; pose proof (unit_roundoff_range p p_ge2) as Hu.
assert (Hu2 : 0 <= u^2) by apply pow2_ge_0.
pose proof (unit_key_after_rounding d k (4 * u^2) ltac:(lra) Hd Hk) as Hn.
set (n := sq d (fun i => rnd (k i))) in *. assert (H0 : 0 <= n) by apply sq_ge0.
split; [apply Rmult_le_pos; lra|].
apply Rle_trans with (2 * (1 - 2 * u) * n); [apply Rmult_le_compat_r; lra|].
assert ((1 - 2 * u) * n <= (1 - 2 * u) * ((1 + 2 * u) * (1 + 4 * u^2))) by (apply Rmult_le_compat_l; lra).
replace ((1 - 2 * u) * ((1 + 2 * u) * (1 + 4 * u^2))) with (1 - 16 * (u^2)^2) in H by ring.
pose proof (pow2_ge_0 (u^2)). lra.
Qed.

(** Without it: the eigenvalue stays above -(1 + 4u). *)
Theorem eigenvalue_without_clamp d k b :
  INR d <= bpow radix2 (- 2 * emin - 3 * p) -> sq d k <= 1 -> 0 <= b <= 2 ->
  - (1 + 4 * u) <= 1 - b * sq d (fun i => rnd (k i)) <= 1.
Proof.
intros Hd Hk Hb; pose proof (unit_key_after_rounding d k 0 ltac:(lra) Hd ltac:(lra)) as Hn.
set (n := sq d (fun i => rnd (k i))) in *. assert (H0 : 0 <= n) by apply sq_ge0.
assert (b * n <= 2 * n) by (apply Rmult_le_compat_r; lra). assert (0 <= b * n) by (apply Rmult_le_pos; lra). lra.
Qed.

(** Fifteen entries just above the midpoint (1 + u)/4 and one below 1/4: length at most 1, rounded beyond 1 + 1.75u. *)
Definition long_key (j : nat) : R := if Nat.ltb j 15 then (1 + u + u^2) / 4 else (1 - 16 * u) / 4.

Lemma long_key_length : (8 <= p)%Z -> sq 16 long_key <= 1.
Proof.
intros Hp; assert (Hu : 0 < u <= / 256).
{ unfold unit_roundoff; split; [apply bpow_gt_0|]. apply Rle_trans with (bpow radix2 (-8)); [apply bpow_le; lia | simpl; lra]. }
unfold sq, long_key; cbn [Rsum Nat.ltb Nat.leb].
assert (0 <= u * (2 - 301 * u - 30 * u^2 - 15 * u^3)) by (apply Rmult_le_pos; [lra | nra]). nra.
Qed.

Lemma long_key_entry_up : (8 <= p)%Z -> (emin <= - p - 2)%Z -> rnd ((1 + u + u^2) / 4) = (1 + 2 * u) / 4.
Proof.
intros Hp He; assert (Hu : 0 < u <= / 256).
{ unfold unit_roundoff; split; [apply bpow_gt_0|]. apply Rle_trans with (bpow radix2 (-8)); [apply bpow_le; lia | simpl; lra]. }
assert (Hb : bpow radix2 (p - -1) = 2 / u).
{ unfold unit_roundoff. replace (p - -1)%Z with (p + 1)%Z by lia. rewrite bpow_plus, bpow_opp.
  pose proof (bpow_gt_0 radix2 p). change (bpow radix2 1) with 2. field. lra. }
assert (Hi : IZR (2 ^ (p - 1) + 1) = / (2 * u) + 1).
{ rewrite plus_IZR, (IZR_Zpower radix2) by lia. unfold unit_roundoff. replace (p - 1)%Z with (p + -1)%Z by lia.
  rewrite bpow_plus, bpow_opp. change (bpow radix2 (-1)) with (/ 2). pose proof (bpow_gt_0 radix2 p). field. lra. }
rewrite (round_eval p emin _ (-1) (2 ^ (p - 1) + 1)).
- rewrite Hi. replace (-1 - p)%Z with (- (p - -1))%Z by lia. rewrite bpow_opp, Hb. field. lra.
- simpl; nra.
- lia.
- rewrite Hb, Hi. replace ((1 + u + u^2) / 4 * (2 / u) - (/ (2 * u) + 1)) with (- (/ 2) + u / 2) by (field; lra).
  apply Rabs_lt; lra.
Qed.

Lemma long_key_entry_exact : (8 <= p)%Z -> (emin <= - p - 2)%Z -> rnd ((1 - 16 * u) / 4) = (1 - 16 * u) / 4.
Proof.
intros Hp He; apply round_of_fmt.
replace ((1 - 16 * u) / 4) with (IZR (2 ^ p - 16) * bpow radix2 (- p - 2)).
- apply fmt_dyadic; [| lia].
  assert (2 ^ 8 <= 2 ^ p)%Z by (apply Z.pow_le_mono_r; lia). lia.
- rewrite minus_IZR, (IZR_Zpower radix2) by lia. unfold unit_roundoff.
  replace (- p - 2)%Z with (- p + -2)%Z by lia. rewrite bpow_plus, !bpow_opp. change (bpow radix2 (-2)) with (/ 4).
  pose proof (bpow_gt_0 radix2 p). field. lra.
Qed.

Theorem long_key_after_rounding : (8 <= p)%Z -> (emin <= - p - 2)%Z ->
  sq 16 (fun j => rnd (long_key j)) = 1 + 7 / 4 * u + 79 / 4 * u^2.
Proof.
intros Hp He; unfold sq, long_key; cbn [Rsum Nat.ltb Nat.leb].
rewrite (long_key_entry_up Hp He), (long_key_entry_exact Hp He). field.
Qed.

(** No larger beta is safe: at 2 (1 - u), the number of the format after 2 (1 - 2u), some key of length at most 1 leaves. *)
Theorem safe_step_sharp : (8 <= p)%Z -> (emin <= - p - 2)%Z ->
  exists k, sq 16 k <= 1 /\ 2 < 2 * (1 - u) * sq 16 (fun j => rnd (k j)).
Proof.
intros Hp He; exists long_key; split; [exact (long_key_length Hp)|].
rewrite (long_key_after_rounding Hp He).
assert (Hu : 0 < u <= / 256).
{ unfold unit_roundoff; split; [apply bpow_gt_0|]. apply Rle_trans with (bpow radix2 (-8)); [apply bpow_le; lia | simpl; lra]. }
assert (0 < u * (3 / 4 + 18 * u - 79 / 4 * u^2)) by (apply Rmult_lt_0_compat; [lra | nra]). nra.
Qed.

(** And the unclamped step diverges for it: eigenvalue below -(1 + 3.5u) at beta = 2. *)
Theorem unclamped_step_expands : (8 <= p)%Z -> (emin <= - p - 2)%Z ->
  1 - 2 * sq 16 (fun j => rnd (long_key j)) < - (1 + 7 / 2 * u).
Proof.
intros Hp He; rewrite (long_key_after_rounding Hp He).
assert (0 < u) by apply bpow_gt_0. nra.
Qed.
End AnyPrecision.

(** ** Instances: the clamp of each format, the next number of the format, and how far the eigenvalue may leave without it. *)
Lemma long_dimension p emin d : (Z.of_nat d <= 32768)%Z -> (15 <= - 2 * emin - 3 * p)%Z ->
  INR d <= bpow radix2 (- 2 * emin - 3 * p).
Proof.
intros Hd He; apply Rle_trans with (bpow radix2 15); [|apply bpow_le; exact He].
rewrite INR_IZR_INZ; change (bpow radix2 15) with (IZR 32768); apply IZR_le; exact Hd.
Qed.

Theorem bf16_safe_step d k b : (Z.of_nat d <= 32768)%Z -> sq d k <= 1 + / 16384 -> 0 <= b <= 1.984375 ->
  0 <= b * sq d (fun i => bf16_round (k i)) <= 2.
Proof.
intros Hd Hk Hb; apply safe_step; [lia | apply long_dimension; [exact Hd | lia] | |]; unfold unit_roundoff; simpl; lra.
Qed.

Theorem bf16_safe_step_sharp : exists k, sq 16 k <= 1 /\ 2 < 1.9921875 * sq 16 (fun i => bf16_round (k i)).
Proof.
destruct (safe_step_sharp 8 (-133) ltac:(lia) ltac:(lia) ltac:(lia)) as [k [H1 H2]].
exists k; split; [exact H1|]. eapply Rlt_le_trans; [exact H2|]. right; f_equal. unfold unit_roundoff; simpl; lra.
Qed.

Theorem bf16_eigenvalue_without_clamp d k b : (Z.of_nat d <= 32768)%Z -> sq d k <= 1 -> 0 <= b <= 2 ->
  - (1 + / 64) <= 1 - b * sq d (fun i => bf16_round (k i)) <= 1.
Proof.
intros Hd Hk Hb; pose proof (eigenvalue_without_clamp 8 (-133) ltac:(lia) d k b (long_dimension 8 (-133) d Hd ltac:(lia)) Hk Hb) as H.
assert (E : unit_roundoff 8 = / 256) by (unfold unit_roundoff; simpl; lra). rewrite E in H; lra.
Qed.

Theorem fp16_safe_step d k b : (Z.of_nat d <= 32768)%Z -> sq d k <= 1 -> 0 <= b <= 1.998046875 ->
  0 <= b * sq d (fun i => fp16_round (k i)) <= 2.
Proof.
intros Hd Hk Hb; apply safe_step; [lia | apply long_dimension; [exact Hd | lia] | |]; unfold unit_roundoff; simpl; lra.
Qed.

Theorem fp16_safe_step_sharp : exists k, sq 16 k <= 1 /\ 2 < 1.9990234375 * sq 16 (fun i => fp16_round (k i)).
Proof.
destruct (safe_step_sharp 11 (-24) ltac:(lia) ltac:(lia) ltac:(lia)) as [k [H1 H2]].
exists k; split; [exact H1|]. eapply Rlt_le_trans; [exact H2|]. right; f_equal. unfold unit_roundoff; simpl; lra.
Qed.

Theorem fp32_safe_step d k b : (Z.of_nat d <= 32768)%Z -> sq d k <= 1 -> 0 <= b <= 1.9999997615814208984375 ->
  0 <= b * sq d (fun i => fp32_round (k i)) <= 2.
Proof.
intros Hd Hk Hb; apply safe_step; [lia | apply long_dimension; [exact Hd | lia] | |]; unfold unit_roundoff; simpl; lra.
Qed.

Theorem fp32_safe_step_sharp : exists k, sq 16 k <= 1 /\ 2 < 1.99999988079071044921875 * sq 16 (fun i => fp32_round (k i)).
Proof.
destruct (safe_step_sharp 24 (-149) ltac:(lia) ltac:(lia) ltac:(lia)) as [k [H1 H2]].
exists k; split; [exact H1|]. eapply Rlt_le_trans; [exact H2|]. right; f_equal. unfold unit_roundoff; simpl; lra.
Qed.

(** ** Exact examples in bf16, with rational unit vectors of the plane: regression tests on the C++ side. *)
Definition key_3_4 (j : nat) : R := match j with O => 3 / 5 | _ => 4 / 5 end.
Definition key_161_240 (j : nat) : R := match j with O => 161 / 289 | _ => 240 / 289 end.

(** The unit vector (3/5, 4/5) has the eigenvalue -32973/32768 at beta = 2: 112 steps double a state. *)
Theorem bf16_key_3_4 : sq 2 key_3_4 = 1 /\ 1 - 2 * sq 2 (fun j => bf16_round (key_3_4 j)) = - 32973 / 32768.
Proof.
split; unfold sq; simpl; [field|].
rewrite (round_eval 8 (-133) (3 / 5) 0 154), (round_eval 8 (-133) (4 / 5) 0 205); simpl; try lia; try lra; apply Rabs_lt; lra.
Qed.

(** And (161/289, 240/289) is unsafe at the number of the format after the clamp already. *)
Theorem bf16_key_161_240 : sq 2 key_161_240 = 1 /\ 2 < 1.9921875 * sq 2 (fun j => bf16_round (key_161_240 j)).
Proof.
split; unfold sq; simpl; [field|].
rewrite (round_eval 8 (-133) (161 / 289) 0 143), (round_eval 8 (-133) (240 / 289) 0 213); simpl; try lia; try lra; apply Rabs_lt; lra.
Qed.

(** The clamp holds for it, and with less than one part in a hundred to spare: 0.992 ... of 2. *)
Example bf16_safe_step_applies :
  0 <= 1.984375 * sq 2 (fun i => bf16_round (key_3_4 i)) <= 2 /\ 1.99 < 1.984375 * sq 2 (fun i => bf16_round (key_3_4 i)).
Proof.
destruct bf16_key_3_4 as [H1 H2]; split.
- apply bf16_safe_step; [simpl; lia | rewrite H1; lra | lra].
- lra.
Qed.
