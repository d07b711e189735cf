(* SPDX-FileCopyrightText: 2026 The deltaproof authors
   SPDX-License-Identifier: MIT *)

(** The radius of gradients (proofs/notes/oracle-radius.md, "Gradients" and "Gradients by columns").

    For whoever relies on a gradient's radius. First lines A and P over any rounding of [rounding.v]: what reading backwards adds to a
    cotangent, and sums of products of numbers that are known to within errors. Then the grids of pairs of doubles, line G1 to G5,
    over FLT(53, -1074): W = 2^w is a window, g = 2^-51 W its grid, and adding to 3 W rounds to multiples of g. The rounding that
    the pairs' lines name, u = 2^-100, makes 2^-53 g = W u / 16 ([grid_unit]).

    Not claimed: that the C++ computes these lines; the composition of a whole adjoint (its step is the forward step with v = 0, lines
    D, W and S of tier_radius.v); second orders (2^-46 and less of what they widen: line F); the sizes of windows and norms, premises
    here; machines without a fused multiply-add, which run no pairs. *)
From Coq Require Import Reals ZArith Lra Lia Psatz.
From Flocq Require Import Core.
From deltaproof.float Require Import vectors formats standard_model rounding underflow.
From deltaproof.float Require oracle_radius.
Open Scope R_scope.

(** ** Lines P and A *)
Section Lines.
Variables u eta : R.
Hypothesis u_range : 0 <= u <= / 1024.
Hypothesis eta_ge0 : 0 <= eta.

Lemma product_known a a_hat b b_hat e_a e_b : Rabs (a_hat - a) <= e_a -> Rabs (b_hat - b) <= e_b ->
  Rabs (a_hat * b_hat - a * b) <= e_a * Rabs b_hat + Rabs a_hat * e_b + e_a * e_b.
Proof.
intros Ha Hb.
replace (a_hat * b_hat - a * b) with ((a_hat - a) * b_hat + a_hat * (b_hat - b) - (a_hat - a) * (b_hat - b)) by ring.
pose proof (Rabs_pos (a_hat - a)). pose proof (Rabs_pos (b_hat - b)).
eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp.
apply Rplus_le_compat.
- eapply Rle_trans; [apply Rabs_triang|]. rewrite !Rabs_mult.
  apply Rplus_le_compat; [apply Rmult_le_compat_r; [apply Rabs_pos | exact Ha] | apply Rmult_le_compat_l; [apply Rabs_pos | exact Hb]].
- rewrite Rabs_mult. apply Rmult_le_compat; assumption.
Qed.

(** P: a computed sum of products of numbers with errors. *)
Theorem product_sum_line n (a a_hat b b_hat e_a e_b : nat -> R) s_hat gamma lost :
  Rabs (s_hat - dot n a_hat b_hat) <= gamma * dot_abs n a_hat b_hat + lost ->
  (forall v, (v < n)%nat -> Rabs (a_hat v - a v) <= e_a v) -> (forall v, (v < n)%nat -> Rabs (b_hat v - b v) <= e_b v) ->
  Rabs (s_hat - dot n a b) <=
  Rsum n (fun v => e_a v * Rabs (b_hat v) + Rabs (a_hat v) * e_b v + e_a v * e_b v + gamma * (Rabs (a_hat v) * Rabs (b_hat v))) + lost.
Proof.
intros Hs Ha Hb. rewrite Rsum_plus, Rsum_scal. change (Rsum n (fun i => Rabs (a_hat i) * Rabs (b_hat i))) with (dot_abs n a_hat b_hat).
replace (s_hat - dot n a b) with ((s_hat - dot n a_hat b_hat) + (dot n a_hat b_hat - dot n a b)) by ring.
eapply Rle_trans; [apply Rabs_triang|].
assert (H : Rabs (dot n a_hat b_hat - dot n a b) <= Rsum n (fun v => e_a v * Rabs (b_hat v) + Rabs (a_hat v) * e_b v + e_a v * e_b v)).
{ replace (dot n a_hat b_hat - dot n a b) with (Rsum n (fun v => a_hat v * b_hat v - a v * b v)).
  - eapply Rle_trans; [apply Rsum_Rabs|]. apply Rsum_le. intros v Hv. apply product_known; [apply Ha | apply Hb]; exact Hv.
  - unfold dot. rewrite <- (Rplus_0_r (Rsum n (fun v => a_hat v * b_hat v - a v * b v))).
    replace 0 with (Rsum n (fun i => a i * b i) - Rsum n (fun i => a i * b i)) by ring.
    unfold Rminus. rewrite <- Rplus_assoc, <- Rsum_plus. f_equal. apply Rsum_ext; intros; ring. }
lra.
Qed.

(** y = k^T G and p = k^T S: a product of a key, known to within e_k of itself, and a column, known to within e. *)
Theorem prediction_line K (k k_hat x x_hat : nat -> R) p_hat e_k kappa M e gamma lost : 0 <= e_k ->
  (forall i, (i < K)%nat -> Rabs (k_hat i - k i) <= e_k * Rabs (k_hat i)) ->
  norm K k_hat <= kappa -> norm K x_hat <= M -> norm K (fun i => x_hat i - x i) <= e -> 0 <= gamma ->
  Rabs (p_hat - dot K k_hat x_hat) <= gamma * (kappa * M) + lost ->
  Rabs (p_hat - dot K k x) <= (gamma + e_k) * (kappa * M) + kappa * (1 + e_k) * e + lost.
Proof.
intros Hek Hk Hkappa HM He Hg Hp.
assert (H1 : Rabs (dot K (fun i => k_hat i - k i) x_hat) <= e_k * kappa * M).
{ eapply Rle_trans; [apply cauchy_schwarz|]. apply Rmult_le_compat; try apply norm_ge0; [|exact HM].
  eapply Rle_trans; [apply (oracle_radius.norm_scal_le K e_k k_hat (fun i => k_hat i - k i) Hek Hk)|].
  apply Rmult_le_compat_l; assumption. }
assert (Hkn : norm K k <= kappa * (1 + e_k)).
{ apply Rle_trans with ((1 + e_k) * norm K k_hat).
  - apply oracle_radius.norm_scal_le; [lra|]. intros i Hi. pose proof (Hk i Hi).
    replace (k i) with (k_hat i + - (k_hat i - k i)) by ring. eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp; lra.
  - rewrite Rmult_comm. apply Rmult_le_compat_r; [lra | exact Hkappa]. }
assert (H2 : Rabs (dot K k (fun i => x_hat i - x i)) <= kappa * (1 + e_k) * e).
{ eapply Rle_trans; [apply cauchy_schwarz|]. apply Rmult_le_compat; try apply norm_ge0; assumption. }
assert (E : dot K k_hat x_hat - dot K k x = dot K (fun i => k_hat i - k i) x_hat + dot K k (fun i => x_hat i - x i)).
{ assert (A : dot K k_hat x_hat = dot K (fun i => (k_hat i - k i) + k i) x_hat) by (unfold dot; apply Rsum_ext; intros; ring).
  assert (B : dot K k x_hat = dot K k (fun i => (x_hat i - x i) + x i)) by (unfold dot; apply Rsum_ext; intros; ring).
  rewrite A, (dot_plus_l K (fun i => k_hat i - k i) k x_hat), B, (dot_plus_r K k (fun i => x_hat i - x i) x). ring. }
replace (p_hat - dot K k x) with ((p_hat - dot K k_hat x_hat) + (dot K k_hat x_hat - dot K k x)) by ring. rewrite E.
eapply Rle_trans; [apply Rabs_triang|].
pose proof (Rabs_triang (dot K (fun i => k_hat i - k i) x_hat) (dot K k (fun i => x_hat i - x i))).
replace ((gamma + e_k) * (kappa * M)) with (gamma * (kappa * M) + e_k * kappa * M) by ring. lra.
Qed.

(** A: the cotangent of what is read joins that of the state. *)
Theorem read_back_line K (q q_hat L L_hat G_hat : nat -> R) c c_hat e_q e chi M : 0 <= e_q ->
  (forall i, (i < K)%nat -> Rabs (q_hat i - q i) <= e_q * Rabs (q_hat i)) -> Rabs (c_hat - c) <= u * Rabs c_hat ->
  (forall i, (i < K)%nat -> Rabs (G_hat i - (L_hat i + q_hat i * c_hat)) <= u * Rabs (G_hat i) + u * (Rabs (q_hat i) * Rabs c_hat) + 2 * eta) ->
  norm K (fun i => L_hat i - L i) <= e -> norm K q_hat <= chi -> norm K G_hat <= M ->
  norm K (fun i => G_hat i - (L i + q i * c)) <= e + u * M + (2 * u + e_q * (1 + u)) * (chi * Rabs c_hat) + norm K (fun _ => 2 * eta).
Proof.
intros Heq Hq Hc HG He Hchi HM. set (f := 2 * u + e_q * (1 + u)).
assert (Hf : 0 <= f) by (unfold f; assert (0 <= e_q * (1 + u)) by (apply Rmult_le_pos; lra); lra).
pose (local := fun i => u * Rabs (G_hat i) + f * (Rabs (q_hat i) * Rabs c_hat)).
assert (H1 : norm K local <= u * M + f * (chi * Rabs c_hat)).
{ eapply Rle_trans; [apply (oracle_radius.norm_le_sum K local (fun i => u * G_hat i) (fun i => (f * Rabs c_hat) * q_hat i))|].
  - intros i _. unfold local. rewrite !Rabs_mult, Rabs_Rabsolu, (Rabs_pos_eq u), (Rabs_pos_eq f) by (assumption || lra).
    rewrite Rabs_pos_eq; [lra|].
    apply Rplus_le_le_0_compat; [apply Rmult_le_pos; [lra | apply Rabs_pos]|].
    apply Rmult_le_pos; [exact Hf | apply Rmult_le_pos; apply Rabs_pos].
  - rewrite !norm_scal, (Rabs_pos_eq u) by lra. rewrite Rabs_mult, Rabs_Rabsolu, (Rabs_pos_eq f) by exact Hf.
    apply Rplus_le_compat; [apply Rmult_le_compat_l; [lra | exact HM]|].
    replace (f * (chi * Rabs c_hat)) with (f * Rabs c_hat * chi) by ring.
    apply Rmult_le_compat_l; [apply Rmult_le_pos; [exact Hf | apply Rabs_pos] | exact Hchi]. }
pose (both := fun i => Rabs (local i) + Rabs (2 * eta)).
assert (H2 : norm K both <= u * M + f * (chi * Rabs c_hat) + norm K (fun _ => 2 * eta)).
{ eapply Rle_trans; [apply (oracle_radius.norm_le_sum K both local (fun _ => 2 * eta))|lra].
  intros i _. unfold both. rewrite Rabs_pos_eq; [lra|]. apply Rplus_le_le_0_compat; apply Rabs_pos. }
eapply Rle_trans; [apply (oracle_radius.norm_le_sum K _ (fun i => L_hat i - L i) both)|lra].
intros i Hi. pose proof (Hq i Hi) as Hqi. pose proof (HG i Hi) as HGi.
replace (G_hat i - (L i + q i * c))
  with ((L_hat i - L i) + ((G_hat i - (L_hat i + q_hat i * c_hat)) + (q_hat i * (c_hat - c) + (q_hat i - q i) * c))) by ring.
eapply Rle_trans; [apply Rabs_triang|]. apply Rplus_le_compat_l.
unfold both. rewrite (Rabs_pos_eq (Rabs (local i) + Rabs (2 * eta))) by (apply Rplus_le_le_0_compat; apply Rabs_pos).
rewrite (Rabs_pos_eq (2 * eta)) by lra. assert (Hl : local i <= Rabs (local i)) by apply Rle_abs.
eapply Rle_trans; [apply Rabs_triang|].
assert (H3 : Rabs (q_hat i * (c_hat - c) + (q_hat i - q i) * c) <= Rabs (q_hat i) * (u * Rabs c_hat) + e_q * Rabs (q_hat i) * ((1 + u) * Rabs c_hat)).
{ eapply Rle_trans; [apply Rabs_triang|]. rewrite !Rabs_mult. apply Rplus_le_compat; [apply Rmult_le_compat_l; [apply Rabs_pos | exact Hc]|].
  apply Rmult_le_compat; try apply Rabs_pos; [exact Hqi|].
  replace c with (c_hat + - (c_hat - c)) at 1 by ring. eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp. lra. }
unfold local, f in *. lra.
Qed.
End Lines.

(** ** Grids *)
Lemma within x m : Rabs x <= m <-> - m <= x <= m.
Proof. split; [intros H; split; revert H; unfold Rabs; destruct (Rcase_abs x); lra | intros H; apply Rabs_le; exact H]. Qed.

Local Instance precision_gt0 : Prec_gt_0 53.
Proof. red; lia. Qed.

Section Grid.
Variable w : Z.
Hypothesis w_low : (-1021 <= w)%Z.
Local Notation fl := fp64_round.
Definition window : R := bpow radix2 w.
Definition grid : R := bpow radix2 (w - 51).
Definition on_grid (x : R) : Prop := exists n : Z, x = IZR n * grid.
Local Notation u := (bpow radix2 (-53)).
Local Notation eta := (bpow radix2 (-1075)).

Lemma grid_gt0 : 0 < grid.
Proof. apply bpow_gt_0. Qed.
Lemma window_is : window = 2251799813685248 * grid.
Proof. unfold window, grid. change 2251799813685248 with (bpow radix2 51). rewrite <- bpow_plus. f_equal. lia. Qed.
Lemma u_is : u = / 9007199254740992.
Proof. change 9007199254740992 with (bpow radix2 53). rewrite <- bpow_opp. reflexivity. Qed.
Lemma eta_small : eta <= grid / 8.
Proof.
replace (grid / 8) with (bpow radix2 (w - 51 - 3)); [apply bpow_le; lia|].
unfold grid. replace (w - 51 - 3)%Z with (w - 51 + -3)%Z by lia. rewrite bpow_plus. change (bpow radix2 (-3)) with (/ 8). reflexivity.
Qed.

(** The unit of the lines below, where u is that of the pairs. *)
Theorem grid_unit : u * grid = bpow radix2 (-100) * window / 16.
Proof.
replace 16 with (bpow radix2 4) by reflexivity. unfold window, grid, Rdiv. rewrite <- bpow_opp, <- !bpow_plus. f_equal. lia.
Qed.

Lemma on_grid_plus x y : on_grid x -> on_grid y -> on_grid (x + y).
Proof. intros [n ->] [m ->]. exists (n + m)%Z. rewrite plus_IZR. ring. Qed.
Lemma on_grid_minus x y : on_grid x -> on_grid y -> on_grid (x - y).
Proof. intros [n ->] [m ->]. exists (n - m)%Z. rewrite minus_IZR. ring. Qed.
Lemma on_grid_base : on_grid (3 * window).
Proof. exists (3 * 2251799813685248)%Z. rewrite window_is, mult_IZR. ring. Qed.

Lemma format_of_grid x : on_grid x -> Rabs x <= 4 * window -> fmt 53 (-1074) x.
Proof.
intros [n ->] H. pose proof grid_gt0 as Hg.
rewrite Rabs_mult, (Rabs_pos_eq grid), window_is in H by lra.
assert (Hn : Rabs (IZR n) <= 9007199254740992).
{ apply Rmult_le_reg_r with grid; [exact Hg | lra]. }
rewrite <- abs_IZR in Hn. apply le_IZR in Hn.
destruct (Z.eq_dec (Z.abs n) 9007199254740992) as [E|E].
- assert (G : IZR n * grid = IZR (Z.sgn n) * bpow radix2 (w + 2)).
  { replace n with (Z.sgn n * Z.abs n)%Z at 1 by (rewrite Z.mul_comm; apply Z.abs_sgn). rewrite E, mult_IZR.
    change 9007199254740992 with (bpow radix2 53). unfold grid. rewrite Rmult_assoc, <- bpow_plus. do 2 f_equal. lia. }
  rewrite G. apply fmt_dyadic; [destruct n; simpl; lia | lia].
- apply fmt_dyadic; [change (2^53)%Z with 9007199254740992%Z; lia | lia].
Qed.

Lemma exact_on_grid x : on_grid x -> Rabs x <= 4 * window -> fl x = x.
Proof. intros H1 H2. apply round_of_fmt. exact (format_of_grid x H1 H2). Qed.

(** Between 2 W and 4 W doubles are the multiples of g. *)
Theorem rounded_to_grid x : 2 * window <= x <= 4 * window -> on_grid (fl x) /\ Rabs (fl x - x) <= grid / 2 /\ 2 * window <= fl x <= 4 * window.
Proof.
intros [H1 H2]. pose proof grid_gt0 as Hg.
assert (B : forall z : Z, on_grid (IZR z * window)).
{ intros z. exists (z * 2251799813685248)%Z. rewrite window_is, mult_IZR. ring. }
assert (W0 : 0 < window) by apply bpow_gt_0.
assert (R2 : fl (2 * window) = 2 * window) by (apply exact_on_grid; [apply (B 2%Z) | rewrite Rabs_pos_eq; lra]).
assert (R4 : fl (4 * window) = 4 * window) by (apply exact_on_grid; [apply (B 4%Z) | rewrite Rabs_pos_eq; lra]).
assert (M : 2 * window <= fl x <= 4 * window).
{ split; [rewrite <- R2 | rewrite <- R4]; apply round_monotone; lia || assumption. }
destruct (Req_dec x (4 * window)) as [E|E].
{ rewrite E, R4. split; [apply (B 4%Z)|]. split; [rewrite Rminus_eq_0, Rabs_R0; lra | lra]. }
assert (Hmag : mag radix2 x = (w + 2)%Z :> Z).
{ apply mag_unique. rewrite Rabs_pos_eq by lra. replace (w + 2 - 1)%Z with (w + 1)%Z by lia. rewrite !bpow_plus. simpl. unfold window in *. lra. }
assert (Hc : cexp radix2 (FLT_exp (-1074) 53) x = (w - 51)%Z).
{ unfold cexp, FLT_exp. rewrite Hmag. lia. }
split; [|split; [|exact M]].
- exists (ZnearestE (scaled_mantissa radix2 (FLT_exp (-1074) 53) x)).
  unfold fl, fmt_round, round, F2R; simpl. rewrite Hc. reflexivity.
- pose proof (error_le_half_ulp radix2 (FLT_exp (-1074) 53) (fun n => negb (Z.even n)) x) as H.
  rewrite ulp_neq_0, Hc in H by lra. unfold fl, fmt_round, grid. lra.
Qed.

(** One rounding, and one sum of doubles: it cannot underflow. *)
Lemma rounding_error x : Rabs (fl x - x) <= u * Rabs x + eta.
Proof.
pose proof (product_error 53 (-1074) ltac:(lia) x) as H. unfold unit_roundoff, smallest_subnormal in H.
replace (bpow radix2 (-1074) / 2) with eta in H; [exact H|].
replace (-1074)%Z with (-1075 + 1)%Z by lia. rewrite bpow_plus. change (bpow radix2 1) with 2. lra.
Qed.
Lemma addition_error x y : fmt 53 (-1074) x -> fmt 53 (-1074) y -> Rabs (fl (x + y) - (x + y)) <= u * Rabs (x + y).
Proof. exact (sum_error 53 (-1074) ltac:(lia) x y). Qed.
Lemma within_format x m : Rabs x <= m -> fmt 53 (-1074) m -> Rabs (fl x) <= m.
Proof.
intros H F. apply within in H. apply within. split.
- rewrite <- (round_of_fmt 53 (-1074) m F), <- round_opposite. apply round_monotone; [lia | lra].
- rewrite <- (round_of_fmt 53 (-1074) m F). apply round_monotone; [lia | lra].
Qed.
Lemma halves_are_format (n : Z) : (Z.abs n < 2^53)%Z -> fmt 53 (-1074) (IZR n * (grid / 2)).
Proof.
intros H. replace (grid / 2) with (bpow radix2 (w - 52)); [apply fmt_dyadic; [exact H | lia]|].
unfold grid. replace (w - 51)%Z with (w - 52 + 1)%Z by lia. rewrite bpow_plus. change (bpow radix2 1) with 2. lra.
Qed.

(** One product on a grid: from p, a multiple of g, to [now], and what that leaves. *)
Lemma product_on_grid p a b : on_grid p -> 2 * window <= p <= 4 * window -> 2 * window <= p + a * b <= 4 * window ->
  let now := fl (a * b + p) in let kept := fl (now - p) in
  on_grid now /\ 2 * window <= now <= 4 * window /\ kept = now - p /\ on_grid kept /\ Rabs (a * b - kept) <= grid / 2.
Proof.
intros Hp [P1 P2] Hx now kept. pose proof grid_gt0.
destruct (rounded_to_grid (a * b + p)) as [G [E B]]; [lra|]. fold now in G, E, B.
assert (D : on_grid (now - p)) by (apply on_grid_minus; assumption).
assert (K : kept = now - p) by (apply exact_on_grid; [exact D | apply within; lra]).
repeat split; try assumption; try lra; [rewrite K; exact D|]. rewrite K.
replace (a * b - (now - p)) with (- (now - (a * b + p))) by ring. rewrite Rabs_Ropp. exact E.
Qed.

(** *** G1: an entry takes a product *)
Section Entry.
Variables high low a_hi a_lo b_hi b_lo l : R.
Hypothesis high_on_grid : on_grid high.
Hypothesis high_in_window : Rabs high <= window.
Hypothesis low_format : fmt 53 (-1074) low.
Hypothesis low_small : Rabs low <= l * grid.
Hypothesis l_range : 0 <= l <= 1099511627776.
Hypothesis a_pair : Rabs a_lo <= u * Rabs a_hi.
Hypothesis b_pair : Rabs b_lo <= u * Rabs b_hi.
Hypothesis stays : Rabs (high + a_hi * b_hi) <= window.

Definition entry_base : R := fl (3 * window + high).
Definition entry_now : R := fl (a_hi * b_hi + entry_base).
Definition entry_kept : R := fl (entry_now - entry_base).
Definition entry_rest : R := fl (a_lo * b_hi + fl (a_hi * b_lo + fl (a_hi * b_hi - entry_kept))).
Definition entry_high : R := fl (entry_now - 3 * window).
Definition entry_low : R := fl (low + entry_rest).

Theorem entry_line :
  on_grid entry_high /\ Rabs entry_high <= window /\ Rabs entry_low <= (l + 8/5) * grid
  /\ Rabs (entry_high + entry_low - (high + low + (a_hi + a_lo) * (b_hi + b_lo))) <= (4 + (l + 8/5)) * (u * grid) + 3 * eta.
Proof.
pose proof grid_gt0 as Hg. pose proof window_is as HW. pose proof u_is as Hu. pose proof (bpow_gt_0 radix2 (-1075)) as He.
apply within in high_in_window as Hh. apply within in stays as Hs.
assert (Eb : entry_base = 3 * window + high).
{ apply exact_on_grid; [apply on_grid_plus; [apply on_grid_base | exact high_on_grid] | apply within; lra]. }
assert (Gb : on_grid entry_base) by (rewrite Eb; apply on_grid_plus; [apply on_grid_base | exact high_on_grid]).
destruct (product_on_grid entry_base a_hi b_hi Gb) as [Gn [Bn [Ek [Gk Er]]]]; [lra | lra |]. fold entry_now in Gn, Bn, Ek, Gk, Er.
fold entry_kept in Ek, Gk, Er.
assert (Eh : entry_high = entry_now - 3 * window).
{ apply exact_on_grid; [apply on_grid_minus; [exact Gn | apply on_grid_base] | apply within; lra]. }
assert (Gh : on_grid entry_high) by (rewrite Eh; apply on_grid_minus; [exact Gn | apply on_grid_base]).
assert (Hab : Rabs (a_hi * b_hi) <= 2 * window) by (apply within; lra).
assert (Y : Rabs (a_hi * b_lo) <= grid / 2).
{ rewrite Rabs_mult in *. apply Rle_trans with (Rabs a_hi * (u * Rabs b_hi)); [apply Rmult_le_compat_l; [apply Rabs_pos | exact b_pair]|].
  apply Rle_trans with (u * (2 * window)); [|rewrite Hu, HW; lra].
  replace (Rabs a_hi * (u * Rabs b_hi)) with (u * (Rabs a_hi * Rabs b_hi)) by ring. apply Rmult_le_compat_l; [apply bpow_ge_0 | exact Hab]. }
assert (Z : Rabs (a_lo * b_hi) <= grid / 2).
{ rewrite Rabs_mult in *. apply Rle_trans with (u * Rabs a_hi * Rabs b_hi); [apply Rmult_le_compat_r; [apply Rabs_pos | exact a_pair]|].
  apply Rle_trans with (u * (2 * window)); [|rewrite Hu, HW; lra]. rewrite Rmult_assoc. apply Rmult_le_compat_l; [apply bpow_ge_0 | exact Hab]. }
assert (O : Rabs (a_lo * b_lo) <= u * (grid / 2)).
{ rewrite Rabs_mult. apply Rle_trans with (u * Rabs a_hi * Rabs b_lo); [apply Rmult_le_compat_r; [apply Rabs_pos | exact a_pair]|].
  rewrite Rmult_assoc, <- Rabs_mult. apply Rmult_le_compat_l; [apply bpow_ge_0 | exact Y]. }
set (r1 := fl (a_hi * b_hi - entry_kept)) in *.
assert (F1 : Rabs r1 <= grid / 2).
{ apply within_format; [exact Er|]. replace (grid / 2) with (1 * (grid / 2)) by ring. apply (halves_are_format 1). simpl; lia. }
pose proof (rounding_error (a_hi * b_hi - entry_kept)) as E1. fold r1 in E1.
set (r2 := fl (a_hi * b_lo + r1)) in *.
assert (S2 : Rabs (a_hi * b_lo + r1) <= grid) by (eapply Rle_trans; [apply Rabs_triang | lra]).
assert (F2 : Rabs r2 <= grid).
{ apply within_format; [exact S2|]. replace grid with (2 * (grid / 2)) by field. apply (halves_are_format 2). simpl; lia. }
pose proof (rounding_error (a_hi * b_lo + r1)) as E2. fold r2 in E2.
assert (S3 : Rabs (a_lo * b_hi + r2) <= 3 * (grid / 2)) by (eapply Rle_trans; [apply Rabs_triang | lra]).
assert (F3 : Rabs entry_rest <= 3 * (grid / 2)).
{ unfold entry_rest. fold r1. fold r2. apply within_format; [exact S3|]. apply (halves_are_format 3). simpl; lia. }
pose proof (rounding_error (a_lo * b_hi + r2)) as E3.
change (fl (a_lo * b_hi + r2)) with entry_rest in E3.
assert (S4 : Rabs (low + entry_rest) <= (l + 3/2) * grid) by (eapply Rle_trans; [apply Rabs_triang | lra]).
pose proof (addition_error low entry_rest low_format (fmt_of_round 53 (-1074) ltac:(lia) _)) as E4. fold entry_low in E4.
assert (U1 : u * Rabs (a_hi * b_hi - entry_kept) <= u * (grid / 2)) by (apply Rmult_le_compat_l; [apply bpow_ge_0 | exact Er]).
assert (U2 : u * Rabs (a_hi * b_lo + r1) <= u * grid) by (apply Rmult_le_compat_l; [apply bpow_ge_0 | exact S2]).
assert (U3 : u * Rabs (a_lo * b_hi + r2) <= u * (3 * (grid / 2))) by (apply Rmult_le_compat_l; [apply bpow_ge_0 | exact S3]).
assert (U4 : u * Rabs (low + entry_rest) <= u * ((l + 3/2) * grid)) by (apply Rmult_le_compat_l; [apply bpow_ge_0 | exact S4]).
split; [exact Gh|]. split; [rewrite Eh; apply within; lra|]. split.
- replace entry_low with ((low + entry_rest) + (entry_low - (low + entry_rest))) by ring. eapply Rle_trans; [apply Rabs_triang|].
  assert (u * ((l + 3/2) * grid) <= / 16 * grid).
  { rewrite <- Rmult_assoc. apply Rmult_le_compat_r; [lra|]. rewrite Hu. lra. }
  lra.
- replace (entry_high + entry_low - (high + low + (a_hi + a_lo) * (b_hi + b_lo)))
    with ((entry_low - (low + entry_rest)) + (entry_rest - (a_lo * b_hi + r2)) + (r2 - (a_hi * b_lo + r1)) + (r1 - (a_hi * b_hi - entry_kept))
          - a_lo * b_lo) by (rewrite Eh, Ek, Eb; ring).
  eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp.
  pose proof (Rabs_triang (entry_low - (low + entry_rest) + (entry_rest - (a_lo * b_hi + r2)) + (r2 - (a_hi * b_lo + r1))) (r1 - (a_hi * b_hi - entry_kept))).
  pose proof (Rabs_triang (entry_low - (low + entry_rest) + (entry_rest - (a_lo * b_hi + r2))) (r2 - (a_hi * b_lo + r1))).
  pose proof (Rabs_triang (entry_low - (low + entry_rest)) (entry_rest - (a_lo * b_hi + r2))).
  assert (0 <= u * grid) by (apply Rmult_le_pos; [apply bpow_ge_0 | lra]). lra.
Qed.
End Entry.

(** What one product leaves beside what is kept on the grid: three fused operations. *)
Section Rest.
Variables a_hi a_lo b_hi b_lo kept : R.
Hypothesis kept_near : Rabs (a_hi * b_hi - kept) <= grid / 2.
Definition rest_of : R := fl (a_lo * b_hi + fl (a_hi * b_lo + fl (a_hi * b_hi - kept))).
Definition rest_size : R := grid / 2 + Rabs (a_hi * b_lo) + Rabs (a_lo * b_hi).

Lemma rest_size_ge0 : 0 <= rest_size.
Proof. unfold rest_size. pose proof grid_gt0. pose proof (Rabs_pos (a_hi * b_lo)). pose proof (Rabs_pos (a_lo * b_hi)). lra. Qed.

Lemma rest_line :
  Rabs (rest_of - (a_lo * b_hi + a_hi * b_lo + (a_hi * b_hi - kept)))
    <= u * (3 * (grid / 2) + 2 * Rabs (a_hi * b_lo) + Rabs (a_lo * b_hi)) + u * (u * rest_size) + 4 * eta
  /\ Rabs rest_of <= (1 + 4 * u) * rest_size + 4 * eta.
Proof.
pose proof grid_gt0 as Hg. pose proof u_is as Hu. pose proof (bpow_gt_0 radix2 (-1075)) as He.
pose proof (Rabs_pos (a_hi * b_lo)) as HY. pose proof (Rabs_pos (a_lo * b_hi)) as HZ.
unfold rest_of, rest_size. set (y := a_hi * b_lo) in *. set (z := a_lo * b_hi) in *.
set (r1 := fl (a_hi * b_hi - kept)) in *.
assert (F1 : Rabs r1 <= grid / 2).
{ apply within_format; [exact kept_near|]. replace (grid / 2) with (1 * (grid / 2)) by ring. apply (halves_are_format 1). simpl; lia. }
pose proof (rounding_error (a_hi * b_hi - kept)) as E1. fold r1 in E1.
set (r2 := fl (y + r1)) in *. pose proof (rounding_error (y + r1)) as E2. fold r2 in E2.
pose proof (Rabs_triang y r1) as S2.
pose proof (rounding_error (z + r2)) as E3. set (r3 := fl (z + r2)) in *. pose proof (Rabs_triang z r2) as S3.
assert (F2 : Rabs r2 <= Rabs (y + r1) + Rabs (r2 - (y + r1))).
{ replace r2 with ((y + r1) + (r2 - (y + r1))) at 1 by ring. apply Rabs_triang. }
assert (U1 : u * Rabs (a_hi * b_hi - kept) <= u * (grid / 2)) by (apply Rmult_le_compat_l; [apply bpow_ge_0 | exact kept_near]).
assert (U2 : u * Rabs (y + r1) <= u * (Rabs y + grid / 2)) by (apply Rmult_le_compat_l; [apply bpow_ge_0 | lra]).
set (U := u) in *. set (Y := Rabs y) in *. set (Z := Rabs z) in *. set (H := grid / 2) in *. set (T := eta) in *.
assert (F2' : Rabs r2 <= (1 + U) * (Y + H) + T) by lra.
assert (U3 : U * Rabs (z + r2) <= U * (Z + ((1 + U) * (Y + H) + T))) by (apply Rmult_le_compat_l; [rewrite Hu; lra | lra]).
assert (H0 : 0 <= H) by (unfold H; lra).
assert (P1 : 0 <= U * Y) by (apply Rmult_le_pos; [rewrite Hu; lra | lra]).
assert (P2 : 0 <= U * Z) by (apply Rmult_le_pos; [rewrite Hu; lra | lra]).
assert (P3 : 0 <= U * H) by (apply Rmult_le_pos; [rewrite Hu; lra | lra]).
assert (P4 : U * T <= T) by (rewrite <- (Rmult_1_l T) at 2; apply Rmult_le_compat_r; [lra | rewrite Hu; lra]).
assert (Q : U * (U * Z) >= 0) by (apply Rle_ge, Rmult_le_pos; [rewrite Hu; lra | exact P2]).
assert (B : Rabs (r3 - (z + y + (a_hi * b_hi - kept))) <= U * (3 * H + 2 * Y + Z) + U * (U * (H + Y + Z)) + 4 * T).
{ replace (r3 - (z + y + (a_hi * b_hi - kept))) with ((r3 - (z + r2)) + (r2 - (y + r1)) + (r1 - (a_hi * b_hi - kept))) by ring.
  pose proof (Rabs_triang (r3 - (z + r2) + (r2 - (y + r1))) (r1 - (a_hi * b_hi - kept))).
  pose proof (Rabs_triang (r3 - (z + r2)) (r2 - (y + r1))). lra. }
split; [exact B|].
replace r3 with ((r3 - (z + y + (a_hi * b_hi - kept))) + (z + y + (a_hi * b_hi - kept))) by ring.
eapply Rle_trans; [apply Rabs_triang|].
pose proof (Rabs_triang (z + y) (a_hi * b_hi - kept)). pose proof (Rabs_triang z y). fold Y Z in H2.
assert (U * (U * (H + Y + Z)) <= U * (H + Y + Z)).
{ rewrite <- (Rmult_1_l (U * (H + Y + Z))) at 2. apply Rmult_le_compat_r; [lra | rewrite Hu; lra]. }
lra.
Qed.
End Rest.

(** *** G2: a decay, to the grid of a window W' of its own *)
Section Decayed.
Variables high low a_hi a_lo theta : R.
Hypothesis w_normal : (-1016 <= w)%Z.
Hypothesis fits : Rabs (a_hi * high) <= window.
Hypothesis a_pair : Rabs a_lo <= u * Rabs a_hi.
Hypothesis low_size : Rabs (a_hi * low) <= theta * grid.
Hypothesis theta_range : 0 <= theta <= 1099511627776.

Definition decayed_kept : R := fl (fl (a_hi * high + 3 * window) - 3 * window).
Definition decayed_low : R := rest_of a_hi a_lo high low decayed_kept.

Theorem decay_line :
  on_grid decayed_kept /\ Rabs decayed_kept <= window /\ Rabs decayed_low <= (theta + 4/5) * grid
  /\ Rabs (decayed_kept + decayed_low - (a_hi + a_lo) * (high + low)) <= (2 + 3 * (theta + 4/5)) * (u * grid) + 4 * eta.
Proof.
pose proof grid_gt0 as Hg. pose proof window_is as HW. pose proof u_is as Hu. pose proof (bpow_gt_0 radix2 (-1075)) as He.
apply within in fits as Hf.
destruct (product_on_grid (3 * window) a_hi high on_grid_base) as [Gn [Bn [Ek [Gk Er]]]]; [lra | lra |].
fold decayed_kept in Ek, Gk, Er.
assert (Z : Rabs (a_lo * high) <= grid / 4).
{ rewrite Rabs_mult in *. apply Rle_trans with (u * Rabs a_hi * Rabs high); [apply Rmult_le_compat_r; [apply Rabs_pos | exact a_pair]|].
  apply Rle_trans with (u * window); [|rewrite Hu, HW; lra]. rewrite Rmult_assoc. apply Rmult_le_compat_l; [apply bpow_ge_0 | exact fits]. }
assert (O : Rabs (a_lo * low) <= u * (theta * grid)).
{ rewrite Rabs_mult. apply Rle_trans with (u * Rabs a_hi * Rabs low); [apply Rmult_le_compat_r; [apply Rabs_pos | exact a_pair]|].
  rewrite Rmult_assoc, <- Rabs_mult. apply Rmult_le_compat_l; [apply bpow_ge_0 | exact low_size]. }
assert (T : eta <= grid / 256).
{ unfold grid. replace (bpow radix2 (w - 51) / 256) with (bpow radix2 (w - 51 + -8)); [apply bpow_le; lia|].
  rewrite bpow_plus. change (bpow radix2 (-8)) with (/ 256). reflexivity. }
destruct (rest_line a_hi a_lo high low decayed_kept Er) as [L1 L2]. fold decayed_low in L1, L2.
assert (L3 : u * (3 * (grid / 2) + 2 * Rabs (a_hi * low) + Rabs (a_lo * high)) <= u * ((2 * theta + 7/4) * grid)).
{ apply Rmult_le_compat_l; [apply bpow_ge_0 | lra]. }
assert (S : rest_size a_hi a_lo high low <= (theta + 3/4) * grid) by (unfold rest_size; lra).
pose proof (rest_size_ge0 a_hi a_lo high low) as S0. set (S1 := rest_size a_hi a_lo high low) in *.
assert (U1 : u * S1 <= u * ((theta + 3/4) * grid)) by (apply Rmult_le_compat_l; [apply bpow_ge_0 | exact S]).
assert (Hth : u * ((theta + 3/4) * grid) <= / 1024 * grid).
{ rewrite <- Rmult_assoc. apply Rmult_le_compat_r; [lra|]. rewrite Hu. lra. }
split; [exact Gk|]. split; [rewrite Ek; apply within; lra|]. split; [lra|].
replace (decayed_kept + decayed_low - (a_hi + a_lo) * (high + low))
  with ((decayed_low - (a_lo * high + a_hi * low + (a_hi * high - decayed_kept))) - a_lo * low) by ring.
eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp.
assert (0 <= u * grid) by (apply Rmult_le_pos; [apply bpow_ge_0 | lra]).
assert (u * (u * S1) <= / 1024 * (u * grid)).
{ replace (/ 1024 * (u * grid)) with (u * (/ 1024 * grid)) by ring. apply Rmult_le_compat_l; [apply bpow_ge_0 | lra]. }
lra.
Qed.
End Decayed.

(** *** G3, G5: sums of products *)
Section Sum.
Variable n : nat.
Variables a_hi a_lo b_hi b_lo : nat -> R.
Fixpoint sum_high (j : nat) : R := match j with O => 3 * window | S i => fl (a_hi i * b_hi i + sum_high i) end.
Definition sum_kept (j : nat) : R := fl (sum_high (S j) - sum_high j).
Definition sum_rest (j : nat) : R := rest_of (a_hi j) (a_lo j) (b_hi j) (b_lo j) (sum_kept j).
Definition rests : R := Rsum n (fun j => rest_size (a_hi j) (a_lo j) (b_hi j) (b_lo j)).
Hypothesis parts_stay : forall j, (j <= n)%nat -> Rabs (Rsum j (fun i => a_hi i * b_hi i)) <= window - INR n * (grid / 2).

Lemma sum_stays j : (j <= n)%nat ->
  on_grid (sum_high j) /\ 2 * window <= sum_high j <= 4 * window
  /\ Rabs (sum_high j - 3 * window - Rsum j (fun i => a_hi i * b_hi i)) <= INR j * (grid / 2).
Proof.
pose proof grid_gt0 as Hg. assert (HW : 0 < window) by apply bpow_gt_0.
induction j as [|j IH]; intros Hj.
- simpl. split; [apply on_grid_base|]. split; [lra|]. rewrite Rminus_eq_0, Rminus_0_r, Rabs_R0. lra.
- destruct IH as [G [B E]]; [lia|].
  assert (N : INR (S j) <= INR n) by (apply le_INR; exact Hj). rewrite S_INR in *.
  pose proof (parts_stay (S j) Hj) as P. cbn [Rsum] in P. set (t := Rsum j (fun i => a_hi i * b_hi i)) in *.
  apply within in E. apply within in P.
  assert (INR j * (grid / 2) + grid / 2 <= INR n * (grid / 2)).
  { replace (INR j * (grid / 2) + grid / 2) with ((INR j + 1) * (grid / 2)) by ring. apply Rmult_le_compat_r; lra. }
  destruct (product_on_grid (sum_high j) (a_hi j) (b_hi j) G B) as [Gn [Bn [Ek [_ Er]]]]; [lra|].
  change (fl (a_hi j * b_hi j + sum_high j)) with (sum_high (S j)) in *.
  split; [exact Gn|]. split; [exact Bn|]. cbn [Rsum]. fold t. rewrite Ek in Er. apply within in Er. apply within. lra.
Qed.

Lemma kept_near j : (j < n)%nat -> sum_kept j = sum_high (S j) - sum_high j /\ Rabs (a_hi j * b_hi j - sum_kept j) <= grid / 2.
Proof.
intros Hj. pose proof grid_gt0 as Hg. destruct (sum_stays j) as [G [B E]]; [lia|].
assert (N : INR (S j) <= INR n) by (apply le_INR; lia). rewrite S_INR in N.
pose proof (parts_stay (S j) Hj) as P. cbn [Rsum] in P. apply within in E. apply within in P.
assert (INR j * (grid / 2) + grid / 2 <= INR n * (grid / 2)).
{ replace (INR j * (grid / 2) + grid / 2) with ((INR j + 1) * (grid / 2)) by ring. apply Rmult_le_compat_r; lra. }
destruct (product_on_grid (sum_high j) (a_hi j) (b_hi j) G B) as [_ [_ [Ek [_ Er]]]]; [lra|].
split; [exact Ek | exact Er].
Qed.

(** The high part is exact; the low one sums the rests in any order, within gamma. *)
Theorem sum_line gamma lost l_hat : 0 <= gamma ->
  Rabs (l_hat - Rsum n sum_rest) <= gamma * Rsum n (fun j => Rabs (sum_rest j)) + lost ->
  Rabs (fl (sum_high n - 3 * window) + l_hat - Rsum n (fun j => (a_hi j + a_lo j) * (b_hi j + b_lo j)))
  <= ((3 + u) * u + gamma * (1 + 4 * u)) * rests + Rsum n (fun j => Rabs (a_lo j * b_lo j)) + (1 + gamma) * (INR n * (4 * eta)) + lost.
Proof.
intros Hgam Hl. pose proof grid_gt0 as Hg.
destruct (sum_stays n (Nat.le_refl n)) as [G [B _]].
assert (Eh : fl (sum_high n - 3 * window) = sum_high n - 3 * window).
{ apply exact_on_grid; [apply on_grid_minus; [exact G | apply on_grid_base] | apply within; lra]. }
rewrite Eh.
assert (T : forall m, (m <= n)%nat -> sum_high m - 3 * window = Rsum m sum_kept).
{ induction m as [|m IH]; intros Hm; [simpl; ring|]. change (Rsum (S m) sum_kept) with (Rsum m sum_kept + sum_kept m).
  destruct (kept_near m) as [K _]; [lia|]. rewrite K, <- IH by lia. ring. }
rewrite (T n (Nat.le_refl n)).
set (e := fun j => sum_rest j - (a_lo j * b_hi j + a_hi j * b_lo j + (a_hi j * b_hi j - sum_kept j)) - a_lo j * b_lo j).
replace (Rsum n sum_kept + l_hat - Rsum n (fun j => (a_hi j + a_lo j) * (b_hi j + b_lo j)))
  with ((l_hat - Rsum n sum_rest) + Rsum n e).
2:{ unfold e. replace (Rsum n (fun j => sum_rest j - (a_lo j * b_hi j + a_hi j * b_lo j + (a_hi j * b_hi j - sum_kept j)) - a_lo j * b_lo j))
      with (Rsum n sum_rest + Rsum n sum_kept - Rsum n (fun j => (a_hi j + a_lo j) * (b_hi j + b_lo j))); [ring|].
    clear. induction n as [|m IH]; simpl; [ring | rewrite <- IH; ring]. }
assert (He : Rabs (Rsum n e) <= (3 + u) * u * rests + Rsum n (fun j => Rabs (a_lo j * b_lo j)) + INR n * (4 * eta)).
{ eapply Rle_trans; [apply Rsum_Rabs|]. unfold rests. rewrite <- Rsum_scal, <- Rsum_const, <- !Rsum_plus. apply Rsum_le. intros j Hj.
  destruct (kept_near j Hj) as [_ K]. destruct (rest_line _ (a_lo j) _ (b_lo j) _ K) as [L _]. fold (sum_rest j) in L.
  assert (u * (3 * (grid / 2) + 2 * Rabs (a_hi j * b_lo j) + Rabs (a_lo j * b_hi j)) <= 3 * (u * rest_size (a_hi j) (a_lo j) (b_hi j) (b_lo j))).
  { replace (3 * (u * rest_size (a_hi j) (a_lo j) (b_hi j) (b_lo j))) with (u * (3 * rest_size (a_hi j) (a_lo j) (b_hi j) (b_lo j))) by ring.
    apply Rmult_le_compat_l; [apply bpow_ge_0|]. unfold rest_size. pose proof (Rabs_pos (a_hi j * b_lo j)). pose proof (Rabs_pos (a_lo j * b_hi j)). lra. }
  unfold e. eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp. lra. }
assert (Hr : Rsum n (fun j => Rabs (sum_rest j)) <= (1 + 4 * u) * rests + INR n * (4 * eta)).
{ unfold rests. rewrite <- Rsum_scal, <- Rsum_const, <- Rsum_plus. apply Rsum_le. intros j Hj.
  destruct (kept_near j Hj) as [_ K]. destruct (rest_line _ (a_lo j) _ (b_lo j) _ K) as [_ L]. exact L. }
assert (gamma * Rsum n (fun j => Rabs (sum_rest j)) <= gamma * ((1 + 4 * u) * rests + INR n * (4 * eta))) by (apply Rmult_le_compat_l; assumption).
eapply Rle_trans; [apply Rabs_triang|]. lra.
Qed.

(** Over channels, s W the window: R = K/2 + sqrt K l + 1 bounds the rests in units of its grid. *)
Theorem channel_rests kappa M l g : norm n a_hi <= kappa -> norm n b_hi <= M -> kappa * M <= window -> kappa * g <= grid -> 0 <= l -> 0 <= g ->
  (forall j, (j < n)%nat -> Rabs (a_lo j) <= u * Rabs (a_hi j)) -> (forall j, (j < n)%nat -> Rabs (b_lo j) <= l * g) ->
  rests <= (INR n / 2 + sqrt (INR n) * l + 1) * grid /\ Rsum n (fun j => Rabs (a_lo j * b_lo j)) <= u * (sqrt (INR n) * l * grid).
Proof.
intros Hk HM Hw Hkg Hl Hg0 Ha Hb. pose proof grid_gt0 as Hg. pose proof window_is as HW. pose proof u_is as Hu.
assert (k0 : 0 <= kappa) by (eapply Rle_trans; [apply norm_ge0 | exact Hk]).
assert (lg : 0 <= l * g) by (apply Rmult_le_pos; assumption).
assert (Hlow : norm n b_lo <= l * g * sqrt (INR n)).
{ apply Rle_trans with (norm n (fun _ => (l * g) * 1)).
  - apply norm_mono. intros i Hi. rewrite Rmult_1_r, (Rabs_pos_eq (l * g)) by exact lg. apply Hb, Hi.
  - rewrite norm_scal, (Rabs_pos_eq (l * g)) by exact lg. apply Rmult_le_compat_l; [exact lg|]. unfold norm, sq.
    rewrite (Rsum_ext n _ (fun _ => 1)) by (intros; ring). rewrite Rsum_const, Rmult_1_r. apply Rle_refl. }
assert (Y : dot_abs n a_hi b_lo <= sqrt (INR n) * l * grid).
{ eapply Rle_trans; [apply dot_abs_le_norms|]. apply Rle_trans with (kappa * (l * g * sqrt (INR n))).
  - apply Rmult_le_compat; try apply norm_ge0; assumption.
  - replace (kappa * (l * g * sqrt (INR n))) with (sqrt (INR n) * l * (kappa * g)) by ring. apply Rmult_le_compat_l; [|exact Hkg].
    apply Rmult_le_pos; [apply sqrt_pos | exact Hl]. }
assert (Z : dot_abs n a_hi b_hi <= window).
{ eapply Rle_trans; [apply dot_abs_le_norms|]. eapply Rle_trans; [|exact Hw]. apply Rmult_le_compat; try apply norm_ge0; assumption. }
split.
- unfold rests, rest_size. rewrite !Rsum_plus, Rsum_const.
  assert (A : Rsum n (fun j => Rabs (a_hi j * b_lo j)) <= dot_abs n a_hi b_lo) by (apply Rsum_le; intros; rewrite Rabs_mult; lra).
  assert (B : Rsum n (fun j => Rabs (a_lo j * b_hi j)) <= u * dot_abs n a_hi b_hi).
  { unfold dot_abs. rewrite <- Rsum_scal. apply Rsum_le. intros j Hj. rewrite Rabs_mult, <- Rmult_assoc.
    apply Rmult_le_compat_r; [apply Rabs_pos | apply Ha, Hj]. }
  assert (u * dot_abs n a_hi b_hi <= u * window) by (apply Rmult_le_compat_l; [apply bpow_ge_0 | exact Z]).
  assert (u * window <= grid) by (rewrite Hu, HW; lra). lra.
- apply Rle_trans with (u * dot_abs n a_hi b_lo); [|apply Rmult_le_compat_l; [apply bpow_ge_0 | exact Y]].
  unfold dot_abs. rewrite <- Rsum_scal. apply Rsum_le. intros j Hj. rewrite Rabs_mult, <- Rmult_assoc.
  apply Rmult_le_compat_r; [apply Rabs_pos | apply Ha, Hj].
Qed.

(** Over columns, X = W the window, each column's entries below W_v and their low parts within l of its grid. *)
Theorem column_rests (W : nat -> R) l : 0 <= l -> Rsum n (fun v => Rabs (a_hi v) * W v) <= window ->
  (forall v, (v < n)%nat -> Rabs (a_lo v) <= u * Rabs (a_hi v)) -> (forall v, (v < n)%nat -> Rabs (b_hi v) <= W v) ->
  (forall v, (v < n)%nat -> Rabs (b_lo v) <= l * (W v / 2251799813685248)) ->
  rests <= (INR n / 2 + l + 1) * grid /\ Rsum n (fun v => Rabs (a_lo v * b_lo v)) <= u * (l * grid).
Proof.
intros Hl HX Ha Hb Hlow. pose proof grid_gt0 as Hg. pose proof window_is as HW. pose proof u_is as Hu.
assert (Y : Rsum n (fun v => Rabs (a_hi v * b_lo v)) <= l * grid).
{ apply Rle_trans with (Rsum n (fun v => (l / 2251799813685248) * (Rabs (a_hi v) * W v))).
  - apply Rsum_le. intros v Hv. rewrite Rabs_mult.
    replace (l / 2251799813685248 * (Rabs (a_hi v) * W v)) with (Rabs (a_hi v) * (l * (W v / 2251799813685248))) by (field).
    apply Rmult_le_compat_l; [apply Rabs_pos | apply Hlow, Hv].
  - rewrite Rsum_scal. apply Rle_trans with (l / 2251799813685248 * window); [apply Rmult_le_compat_l; [lra | exact HX]|].
    rewrite HW. right. field. }
split.
- unfold rests, rest_size. rewrite !Rsum_plus, Rsum_const.
  assert (B : Rsum n (fun v => Rabs (a_lo v * b_hi v)) <= u * window).
  { apply Rle_trans with (Rsum n (fun v => u * (Rabs (a_hi v) * W v))).
    - apply Rsum_le. intros v Hv. rewrite Rabs_mult, <- Rmult_assoc. apply Rmult_le_compat; try apply Rabs_pos; [apply Ha, Hv | apply Hb, Hv].
    - rewrite Rsum_scal. apply Rmult_le_compat_l; [apply bpow_ge_0 | exact HX]. }
  assert (u * window <= grid) by (rewrite Hu, HW; lra). lra.
- apply Rle_trans with (u * Rsum n (fun v => Rabs (a_hi v * b_lo v))); [|apply Rmult_le_compat_l; [apply bpow_ge_0 | exact Y]].
  rewrite <- Rsum_scal. apply Rsum_le. intros v Hv. rewrite !Rabs_mult, <- Rmult_assoc.
  apply Rmult_le_compat_r; [apply Rabs_pos | apply Ha, Hv].
Qed.

(** With m roundings behind each rest the sum is within (4 + m) R u g, line F's slack covering second orders. *)
Theorem sum_constant gamma lost l_hat R m : 0 <= gamma <= m * u * (1 + bpow radix2 (-47)) -> 0 <= m -> 0 <= R ->
  Rabs (l_hat - Rsum n sum_rest) <= gamma * Rsum n (fun j => Rabs (sum_rest j)) + lost ->
  rests <= R * grid -> Rsum n (fun j => Rabs (a_lo j * b_lo j)) <= u * (R * grid) ->
  Rabs (fl (sum_high n - 3 * window) + l_hat - Rsum n (fun j => (a_hi j + a_lo j) * (b_hi j + b_lo j)))
  <= (4 + m) * R * (u * grid) * (1 + bpow radix2 (-46)) + (1 + gamma) * (INR n * (4 * eta)) + lost.
Proof.
intros Hgam Hm HR Hl H1 H2. pose proof grid_gt0 as Hg. pose proof u_is as Hu.
eapply Rle_trans; [apply (sum_line gamma lost l_hat); [lra | exact Hl]|].
assert (E47 : bpow radix2 (-47) = / 140737488355328) by reflexivity. assert (E46 : bpow radix2 (-46) = / 70368744177664) by reflexivity.
rewrite E47 in Hgam. rewrite E46.
assert (F : (3 + u) * u + gamma * (1 + 4 * u) + u <= (4 + m) * u * (1 + / 70368744177664)).
{ assert (gamma * (1 + 4 * u) <= m * u * (1 + / 140737488355328) * (1 + 4 * u)) by (apply Rmult_le_compat_r; [rewrite Hu; lra | lra]).
  assert (0 <= m * u) by (apply Rmult_le_pos; [exact Hm | apply bpow_ge_0]).
  assert (m * u * (1 + / 140737488355328) * (1 + 4 * u) <= m * u * (1 + / 70368744177664)).
  { rewrite Rmult_assoc. apply Rmult_le_compat_l; [assumption|]. rewrite Hu. lra. }
  assert (u * u <= u * / 70368744177664) by (apply Rmult_le_compat_l; [apply bpow_ge_0 | rewrite Hu; lra]).
  assert (0 <= u) by apply bpow_ge_0. lra. }
assert (G : ((3 + u) * u + gamma * (1 + 4 * u)) * rests <= ((3 + u) * u + gamma * (1 + 4 * u)) * (R * grid)).
{ apply Rmult_le_compat_l; [|exact H1]. assert (0 <= gamma * (1 + 4 * u)) by (apply Rmult_le_pos; [lra | rewrite Hu; lra]).
  assert (0 <= (3 + u) * u) by (apply Rmult_le_pos; [rewrite Hu; lra | apply bpow_ge_0]). lra. }
assert (K : ((3 + u) * u + gamma * (1 + 4 * u) + u) * (R * grid) <= (4 + m) * u * (1 + / 70368744177664) * (R * grid)).
{ apply Rmult_le_compat_r; [apply Rmult_le_pos; lra | exact F]. }
replace ((4 + m) * R * (u * grid) * (1 + / 70368744177664)) with ((4 + m) * u * (1 + / 70368744177664) * (R * grid)) by ring. lra.
Qed.
End Sum.

(** *** G4: a number of two doubles to the grid of another window *)
Section Renewed.
Variables x y : R.
Hypothesis x_format : fmt 53 (-1074) x.
Hypothesis y_format : fmt 53 (-1074) y.
Hypothesis x_fits : Rabs x <= window.
Hypothesis y_small : Rabs y <= grid / 4.
Definition renewed_high : R := fl (fl (x + 3 * window) - 3 * window).
Definition renewed_low : R := fl (fl (x - renewed_high) + y).

Theorem renewal_line : on_grid renewed_high /\ Rabs renewed_high <= window /\ Rabs renewed_low <= 4/5 * grid
  /\ Rabs (renewed_high + renewed_low - (x + y)) <= 3/4 * (u * grid).
Proof.
pose proof grid_gt0 as Hg. pose proof u_is as Hu. apply within in x_fits as Hx.
destruct (rounded_to_grid (x + 3 * window)) as [Gn [En Bn]]; [lra|].
assert (Eh : renewed_high = fl (x + 3 * window) - 3 * window).
{ apply exact_on_grid; [apply on_grid_minus; [exact Gn | apply on_grid_base] | apply within; lra]. }
assert (Gh : on_grid renewed_high) by (rewrite Eh; apply on_grid_minus; [exact Gn | apply on_grid_base]).
assert (Er : Rabs (x - renewed_high) <= grid / 2).
{ rewrite Eh. replace (x - (fl (x + 3 * window) - 3 * window)) with (- (fl (x + 3 * window) - (x + 3 * window))) by ring. rewrite Rabs_Ropp; exact En. }
assert (Ed : fl (x - renewed_high) = x - renewed_high).
{ apply round_of_fmt. destruct (Rlt_or_le (Rabs x) (grid / 2)) as [S|S].
  - assert (Z : renewed_high = 0).
    { destruct Gh as [z Hz]. rewrite Hz in *. destruct (Z.eq_dec z 0) as [->|N]; [ring|]. exfalso.
      assert (Q : grid <= Rabs (IZR z * grid)).
      { rewrite Rabs_mult, (Rabs_pos_eq grid) by lra. rewrite <- (Rmult_1_l grid) at 1. apply Rmult_le_compat_r; [lra|].
        rewrite <- abs_IZR. apply (IZR_le 1). lia. }
      assert (Rabs (IZR z * grid) <= Rabs x + Rabs (x - IZR z * grid)).
      { replace (IZR z * grid) with (x + - (x - IZR z * grid)) at 1 by ring. eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp; lra. }
      lra. }
    rewrite Z, Rminus_0_r. exact x_format.
  - set (c := cexp radix2 (FLT_exp (-1074) 53) x).
    assert (Hx0 : x <> 0) by (intros ->; rewrite Rabs_R0 in S; lra).
    assert (Hm : (w - 51 <= mag radix2 x)%Z).
    { apply mag_ge_bpow. replace (w - 51 - 1)%Z with (w - 51 + -1)%Z by lia. rewrite bpow_plus. change (bpow radix2 (-1)) with (/ 2).
      unfold grid in S. lra. }
    assert (Hc1 : (w - 104 <= c)%Z) by (unfold c, cexp, FLT_exp; lia).
    assert (Hc0 : (-1074 <= c)%Z) by (unfold c, cexp, FLT_exp; lia).
    destruct (Z_le_gt_dec (w - 51) c) as [H|H].
    + (* x is a multiple of g: nothing is left *)
      assert (Gx : on_grid x).
      { unfold fmt, generic_format in x_format. rewrite x_format. unfold F2R; cbn [Fnum Fexp]. fold c.
        exists (Ztrunc (scaled_mantissa radix2 (FLT_exp (-1074) 53) x) * 2 ^ (c - (w - 51)))%Z.
        rewrite mult_IZR, (IZR_Zpower radix2) by lia. unfold grid. rewrite Rmult_assoc, <- bpow_plus. do 2 f_equal. lia. }
      apply format_of_grid; [apply on_grid_minus; assumption|].
      assert (window = 2251799813685248 * grid) by apply window_is. lra.
    + (* both are multiples of the last place of x *)
      assert (Gd : exists z : Z, x - renewed_high = IZR z * bpow radix2 c).
      { destruct Gh as [z Hz].
        exists (Ztrunc (scaled_mantissa radix2 (FLT_exp (-1074) 53) x) - z * 2 ^ (w - 51 - c))%Z.
        rewrite minus_IZR, mult_IZR, (IZR_Zpower radix2), Hz by lia. rewrite Rmult_minus_distr_r. f_equal.
        - exact x_format.
        - rewrite Rmult_assoc, <- bpow_plus. unfold grid. do 2 f_equal. lia. }
      destruct Gd as [z Hz]. rewrite Hz in Er |- *. apply fmt_dyadic; [|exact Hc0].
      apply lt_IZR. rewrite abs_IZR, (IZR_Zpower radix2) by lia.
      apply Rmult_lt_reg_r with (bpow radix2 c); [apply bpow_gt_0|].
      rewrite Rabs_mult, (Rabs_pos_eq (bpow radix2 c)) in Er by apply bpow_ge_0.
      eapply Rle_lt_trans; [exact Er|]. rewrite <- bpow_plus. apply Rlt_le_trans with grid; [lra|]. unfold grid. apply bpow_le. lia. }
unfold renewed_low. rewrite Ed.
assert (Fd : fmt 53 (-1074) (x - renewed_high)) by (rewrite <- Ed; apply fmt_of_round; lia).
pose proof (addition_error (x - renewed_high) y Fd y_format) as E.
assert (T : Rabs (x - renewed_high + y) <= 3/4 * grid) by (eapply Rle_trans; [apply Rabs_triang | lra]).
assert (U : u * Rabs (x - renewed_high + y) <= u * (3/4 * grid)) by (apply Rmult_le_compat_l; [apply bpow_ge_0 | exact T]).
set (r := fl (x - renewed_high + y)) in *.
split; [exact Gh|]. split; [rewrite Eh; apply within; lra|]. split.
- replace r with ((x - renewed_high + y) + (r - (x - renewed_high + y))) by ring. eapply Rle_trans; [apply Rabs_triang|].
  assert (u * (3/4 * grid) <= / 1024 * grid) by (rewrite <- Rmult_assoc; apply Rmult_le_compat_r; [lra | rewrite Hu; lra]). lra.
- replace (renewed_high + r - (x + y)) with (r - (x - renewed_high + y)) by ring. lra.
Qed.
End Renewed.
End Grid.

(** An entry of 0 that takes the product 1 * 1, window 4: nothing is lost, so the lines suppose nothing impossible. *)
Example entry_instance : entry_high 2 0 1 1 = 1.
Proof.
assert (F : forall x, on_grid 2 x -> Rabs x <= 16 -> fp64_round x = x).
{ intros x H1 H2. apply (exact_on_grid 2 ltac:(lia) x H1). unfold window. simpl. lra. }
assert (G : forall n : Z, on_grid 2 (IZR n)).
{ intros n. exists (n * 562949953421312)%Z. unfold grid. change (bpow radix2 (2 - 51)) with (/ 562949953421312). rewrite mult_IZR. field. }
assert (W : window 2 = 4) by reflexivity.
unfold entry_high, entry_now, entry_base. rewrite W.
replace (3 * 4 + 0) with 12 by ring. rewrite (F 12) by (apply G || (rewrite Rabs_pos_eq; lra)).
replace (1 * 1 + 12) with 13 by ring. rewrite (F 13) by (apply G || (rewrite Rabs_pos_eq; lra)).
replace (13 - 3 * 4) with 1 by ring. apply F; [apply G | rewrite Rabs_pos_eq; lra].
Qed.
