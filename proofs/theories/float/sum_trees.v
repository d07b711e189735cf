(* SPDX-FileCopyrightText: 2026 The deltaproof authors
   SPDX-License-Identifier: MIT *)

(** A sum of products in any order, in any rounding of rounding.v: to nearest or toward zero, with underflow, flushed or not.

    For the bounds of stages (src/stages), which do not know in which order a kernel adds. A tree says which two partial sums are
    added when; an accumulator may start somewhere; products are rounded (by a rounding of their own) or exact, which is what a fused
    operation and a tensor core's product are. Additions of one tree may round differently from each other, as long as each is within
    the same u and eta.

    With n the roundings that a term meets at most, products included, the error is at most ((1 + u)^n - 1) sum |terms| and
    (1 + u)^n times what underflow costs: eta once a product and once an addition.

    Not claimed: additions of more than two numbers at once with one alignment (tensor cores do that inside); overflow. *)
From Coq Require Import Reals ZArith Lra Lia Psatz Permutation List.
From Flocq Require Import Core Relative.
From deltaproof.float Require Import vectors formats standard_model rounding.
Open Scope R_scope.

Inductive tree := Start (c : R) | Term (i : nat) | Plus (a b : tree).

Fixpoint terms (t : tree) : list nat :=
  match t with Start _ => nil | Term i => i :: nil | Plus a b => terms a ++ terms b end.
(** Of the starts alone: their sum, and that of their absolute values. *)
Fixpoint starts (t : tree) : R := match t with Start c => c | Term _ => 0 | Plus a b => starts a + starts b end.
Fixpoint starts_abs (t : tree) : R := match t with Start c => Rabs c | Term _ => 0 | Plus a b => starts_abs a + starts_abs b end.
(** Additions on the longest way up; all additions. *)
Fixpoint height (t : tree) : nat := match t with Plus a b => S (Nat.max (height a) (height b)) | _ => O end.
Fixpoint additions (t : tree) : nat := match t with Plus a b => S (additions a + additions b) | _ => O end.

Definition total (f : nat -> R) (l : list nat) : R := fold_right (fun i s => f i + s) 0 l.

Lemma total_app f l m : total f (l ++ m) = total f l + total f m.
Proof. unfold total; induction l as [|i l IH]; simpl; [lra | rewrite IH; lra]. Qed.

Lemma total_permutation f l m : Permutation l m -> total f l = total f m.
Proof. unfold total; induction 1; simpl; lra. Qed.

Lemma total_seq f d : total f (seq 0 d) = Rsum d f.
Proof. induction d as [|d IH]; [reflexivity|]. rewrite seq_S, total_app, IH. unfold total; simpl; lra. Qed.

Section Tree.
Variables (k x : nat -> R).
(** What rounds a product, and what rounds the addition at the top of a tree. *)
Variables (product : R -> R) (add : tree -> R -> R).
Variables (u_p eta_p u eta : R).
Hypothesis products_round : rounding product u_p eta_p.
Hypothesis additions_round : forall t, rounding (add t) u eta.

Fixpoint computed (t : tree) : R :=
  match t with
  | Start c => c
  | Term i => product (k i * x i)
  | Plus a b => add t (computed a + computed b)
  end.
Definition exact (t : tree) : R := starts t + total (fun i => k i * x i) (terms t).
Definition size (t : tree) : R := starts_abs t + total (fun i => Rabs (k i) * Rabs (x i)) (terms t).

(** What underflow costs before it is carried on. *)
Definition lost (t : tree) : R := INR (length (terms t)) * eta_p + INR (additions t) * eta.

Lemma exact_plus a b : exact (Plus a b) = exact a + exact b.
Proof. unfold exact; simpl; rewrite total_app; lra. Qed.
Lemma size_plus a b : size (Plus a b) = size a + size b.
Proof. unfold size; simpl; rewrite total_app; lra. Qed.
Lemma lost_plus a b : lost (Plus a b) = lost a + lost b + eta.
Proof. unfold lost. cbn [terms additions]. rewrite app_length, S_INR, !plus_INR. ring. Qed.

Lemma total_abs l : Rabs (total (fun i => k i * x i) l) <= total (fun i => Rabs (k i) * Rabs (x i)) l.
Proof.
unfold total; induction l as [|i l IH]; simpl; [rewrite Rabs_R0; lra|].
eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_mult. lra.
Qed.

Lemma exact_le_size t : Rabs (exact t) <= size t.
Proof.
unfold exact, size. eapply Rle_trans; [apply Rabs_triang|]. apply Rplus_le_compat; [|apply total_abs].
induction t as [c|i|a IHa b IHb]; simpl; [lra | rewrite Rabs_R0; lra |]. eapply Rle_trans; [apply Rabs_triang | lra].
Qed.

Lemma lost_ge0 t : 0 <= lost t.
Proof.
unfold lost. pose proof (rounding_eta _ _ _ products_round). pose proof (rounding_eta _ _ _ (additions_round t)).
apply Rplus_le_le_0_compat; apply Rmult_le_pos; try assumption; apply pos_INR.
Qed.

Theorem tree_error t :
  Rabs (computed t - exact t) <= ((1 + u)^(height t) * (1 + u_p) - 1) * size t + (1 + u)^(height t) * lost t.
Proof.
destruct (rounding_u _ _ _ products_round) as [Hp _]. pose proof (rounding_eta _ _ _ products_round) as Hep.
destruct (rounding_u _ _ _ (additions_round t)) as [Hu _]. pose proof (rounding_eta _ _ _ (additions_round t)) as He.
induction t as [c|i|a IHa b IHb].
- unfold exact, size, lost; simpl. rewrite !Rplus_0_r, Rminus_diag_eq, Rabs_R0 by reflexivity.
  pose proof (Rabs_pos c). assert (0 <= u_p * Rabs c) by (apply Rmult_le_pos; assumption). lra.
- unfold exact, size, lost; simpl. rewrite !Rplus_0_r, !Rplus_0_l, <- Rabs_mult.
  pose proof (rounding_argument _ _ _ products_round (k i * x i)). lra.
- cbn [computed height]. rewrite exact_plus, size_plus, lost_plus.
  pose proof (rounding_argument _ _ _ (additions_round (Plus a b)) (computed a + computed b)) as Hf.
  set (m := Nat.max (height a) (height b)). set (P := (1 + u)^m).
  assert (HP : 1 <= P) by (apply pow_R1_Rle; lra).
  assert (Hside : forall t, (height t <= m)%nat ->
    Rabs (computed t - exact t) <= ((1 + u)^(height t) * (1 + u_p) - 1) * size t + (1 + u)^(height t) * lost t ->
    Rabs (computed t - exact t) <= (P * (1 + u_p) - 1) * size t + P * lost t).
  { intros t Ht H. assert (Hle : (1 + u)^(height t) <= P) by (apply Rle_pow; [lra | exact Ht]).
    assert (Hs : 0 <= size t) by (eapply Rle_trans; [apply Rabs_pos | apply exact_le_size]). pose proof (lost_ge0 t) as Hl.
    set (Q := (1 + u)^(height t)) in *.
    assert (Q * lost t <= P * lost t) by (apply Rmult_le_compat_r; assumption).
    assert (Q * (1 + u_p) <= P * (1 + u_p)) by (apply Rmult_le_compat_r; lra).
    assert ((Q * (1 + u_p) - 1) * size t <= (P * (1 + u_p) - 1) * size t) by (apply Rmult_le_compat_r; lra). lra. }
  pose proof (Hside a (Nat.le_max_l _ _) IHa) as Ha. pose proof (Hside b (Nat.le_max_r _ _) IHb) as Hb. clear Hside IHa IHb.
  pose proof (exact_le_size a) as Sa. pose proof (exact_le_size b) as Sb.
  set (A := computed a) in *. set (B := computed b) in *. set (ea := exact a) in *. set (eb := exact b) in *.
  assert (Hab : Rabs (A + B) <= size a + size b + (Rabs (A - ea) + Rabs (B - eb))).
  { replace (A + B) with ((A - ea) + (B - eb) + (ea + eb)) by ring. eapply Rle_trans; [apply Rabs_triang|].
    pose proof (Rabs_triang (A - ea) (B - eb)). pose proof (Rabs_triang ea eb). lra. }
  assert (Hd : Rabs (add (Plus a b) (A + B) - (ea + eb)) <= Rabs (add (Plus a b) (A + B) - (A + B)) + (Rabs (A - ea) + Rabs (B - eb))).
  { replace (add (Plus a b) (A + B) - (ea + eb)) with ((add (Plus a b) (A + B) - (A + B)) + ((A - ea) + (B - eb))) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. apply Rplus_le_compat_l, Rabs_triang. }
  set (E := Rabs (A - ea) + Rabs (B - eb)) in *.
  assert (HE : E <= (P * (1 + u_p) - 1) * (size a + size b) + P * (lost a + lost b)) by (unfold E; lra).
  assert (H1 : u * Rabs (A + B) <= u * (size a + size b + E)) by (apply Rmult_le_compat_l; assumption).
  assert (H2 : (1 + u) * E <= (1 + u) * ((P * (1 + u_p) - 1) * (size a + size b) + P * (lost a + lost b))) by (apply Rmult_le_compat_l; lra).
  change ((1 + u)^(S m)) with ((1 + u) * P).
  assert (H3 : eta <= (1 + u) * P * eta).
  { rewrite <- (Rmult_1_l eta) at 1. apply Rmult_le_compat_r; [exact He|].
    assert (1 * 1 <= (1 + u) * P) by (apply Rmult_le_compat; lra). lra. }
  lra.
Qed.

(** d products added in any order from 0, or from c. *)
Corollary dot_error_any_order t d : Permutation (terms t) (seq 0 d) ->
  Rabs (computed t - (starts t + dot d k x)) <=
  ((1 + u)^(height t) * (1 + u_p) - 1) * (starts_abs t + dot_abs d k x)
  + (1 + u)^(height t) * (INR d * eta_p + INR (additions t) * eta).
Proof.
intros Hd. pose proof (tree_error t) as H. unfold exact, size, lost in H.
rewrite !(total_permutation _ _ _ Hd), !total_seq in H. rewrite (Permutation_length Hd), seq_length in H. exact H.
Qed.
End Tree.

(** With the constants that the code computes: n roundings with unit roundoff u cost 1 + n u / (1 - n u). *)
Theorem dot_error_gamma k x product add u_p eta_p u eta t d n :
  rounding product u_p eta_p -> (forall t, rounding (add t) u eta) -> u_p <= u ->
  Permutation (terms t) (seq 0 d) -> (height t + 1 <= n)%nat -> INR n * u < 1 ->
  Rabs (computed k x product add t - (starts t + dot d k x)) <=
  INR n * u / (1 - INR n * u) * (starts_abs t + dot_abs d k x)
  + (1 + INR n * u / (1 - INR n * u)) * (INR d * eta_p + INR (additions t) * eta).
Proof.
intros Hp Ha Hup Hd Hn Hsmall.
destruct (rounding_u _ _ _ Hp) as [Hp0 _]. pose proof (rounding_eta _ _ _ Hp) as Hep.
destruct (rounding_u _ _ _ (Ha t)) as [Hu Hu1]. pose proof (rounding_eta _ _ _ (Ha t)) as He.
eapply Rle_trans; [apply (dot_error_any_order k x product add u_p eta_p u eta Hp Ha t d Hd)|].
assert (M : rounding_model (fun x => x) u).
{ constructor; [split; assumption | | |]; intros y; rewrite ?Rminus_diag_eq, ?Rabs_R0 by reflexivity;
    try (apply Rmult_le_pos; [assumption | apply Rabs_pos]); reflexivity. }
pose proof (gamma_bound (fun x => x) u M n Hsmall) as Hg. unfold gamma in Hg. set (G := INR n * u / (1 - INR n * u)) in *.
assert (H1 : (1 + u)^(height t) * (1 + u_p) <= (1 + u)^n).
{ apply Rle_trans with ((1 + u)^(height t + 1)).
  - rewrite pow_add, pow_1. apply Rmult_le_compat_l; [apply pow_le; lra | lra].
  - apply Rle_pow; [lra | exact Hn]. }
assert (H2 : (1 + u)^(height t) <= (1 + u)^n) by (apply Rle_pow; [lra | lia]).
assert (HS : 0 <= starts_abs t + dot_abs d k x).
{ apply Rplus_le_le_0_compat; [|apply dot_abs_ge0]. clear. induction t as [c|i|a IHa b IHb]; simpl; [apply Rabs_pos | lra | lra]. }
assert (HL : 0 <= INR d * eta_p + INR (additions t) * eta).
{ apply Rplus_le_le_0_compat; apply Rmult_le_pos; try assumption; apply pos_INR. }
apply Rplus_le_compat; apply Rmult_le_compat_r; try assumption; lra.
Qed.

(** The lines of code that are trees: products rounded and added in sequence from 0, and a chain of fused operations. *)
Fixpoint in_sequence (d : nat) : tree := match d with O => Start 0 | S d' => Plus (in_sequence d') (Term d') end.

Lemma in_sequence_terms d : terms (in_sequence d) = seq 0 d.
Proof. induction d as [|d IH]; [reflexivity|]. rewrite seq_S. simpl. rewrite IH. reflexivity. Qed.

Lemma in_sequence_counts d : height (in_sequence d) = d /\ additions (in_sequence d) = d /\ starts (in_sequence d) = 0.
Proof. induction d as [|d [IH1 [IH2 IH3]]]; simpl; [auto|]. rewrite IH1, IH2, IH3. split; [lia | split; [lia | lra]]. Qed.

Lemma in_sequence_is_fdot fl d k x : computed k x fl (fun _ => fl) (in_sequence d) = fdot fl d k x.
Proof. induction d as [|d IH]; [reflexivity|]. simpl. rewrite IH. reflexivity. Qed.

Lemma in_sequence_is_fused fl d k x : computed k x (fun y => y) (fun _ => fl) (in_sequence d) = fdot_fused fl d k x.
Proof. induction d as [|d IH]; [reflexivity|]. simpl. rewrite IH. reflexivity. Qed.

(** A chain of fused operations in fp64, as the oracle's vectors compute a product: subnormals cost 2^-1075 an operation. *)
Theorem fp64_fused_dot_error d k x :
  Rabs (fdot_fused fp64_round d k x - dot d k x) <=
  ((1 + bpow radix2 (-53))^d - 1) * dot_abs d k x + (1 + bpow radix2 (-53))^d * (INR d * (bpow radix2 (-1074) / 2)).
Proof.
destruct (in_sequence_counts d) as [C1 [C2 C3]].
pose proof (dot_error_any_order k x (fun y => y) (fun _ => fp64_round) 0 0 (bpow radix2 (-53)) (bpow radix2 (-1074) / 2)
  (rounding_of_model _ _ exact_is_a_model) (fun _ => fp64_rounding) (in_sequence d) d) as H.
rewrite in_sequence_terms, in_sequence_is_fused, C1, C2, C3 in H. specialize (H (Permutation_refl _)).
assert (E : starts_abs (in_sequence d) = 0).
{ clear. induction d as [|d IH]; simpl; [apply Rabs_R0 | rewrite IH; lra]. }
rewrite E, !Rplus_0_l, !Rplus_0_r, Rmult_1_r, Rmult_0_r, Rplus_0_l in H. exact H.
Qed.

(** A tree of two halves in bf16 with a tie: (1 + 1/256) + 1/256 in sequence loses both, 1 + (1/256 + 1/256) none. *)
Example orders_differ :
  let k := fun _ : nat => 1 in let x := fun i => match i with O => 1 | _ => / 256 end in
  computed k x (fun y => y) (fun _ => bf16_round) (Plus (Plus (Term 0) (Term 1)) (Term 2)) = 1 /\
  computed k x (fun y => y) (fun _ => bf16_round) (Plus (Term 0) (Plus (Term 1) (Term 2))) = 129 / 128.
Proof.
intros k x; simpl; unfold k, x; rewrite !Rmult_1_l.
assert (T : bf16_round (1 + / 256) = 1).
{ replace (1 + / 256) with (1 + unit_roundoff 8) by (unfold unit_roundoff; simpl; lra). apply midpoint_rounds_to_one; lia. }
split; [rewrite T; exact T|].
assert (F : forall m e, (Z.abs m < 256)%Z -> (-133 <= e)%Z -> bf16_round (IZR m * bpow radix2 e) = IZR m * bpow radix2 e).
{ intros m e Hm He. apply round_of_fmt, fmt_dyadic; [exact Hm | exact He]. }
replace (/ 256 + / 256) with (IZR 1 * bpow radix2 (-7)) by (simpl; lra). rewrite F by lia.
replace (1 + IZR 1 * bpow radix2 (-7)) with (IZR 129 * bpow radix2 (-7)) by (simpl; lra). rewrite F by lia. simpl; lra.
Qed.

(** ** Flushing, counted *)
(** A unit that flushes: relative errors from N on, and below that 0, or the number N itself or more. *)
Record flushing (fl : R -> R) (u N : R) : Prop := {
  flushing_u : 0 <= u < 1;
  flushing_N : 0 < N;
  flushing_normal : forall x, N <= Rabs x -> Rabs (fl x - x) <= u * Rabs x /\ N <= Rabs (fl x);
  flushing_small : forall x, Rabs x < N -> fl x = 0 \/ (Rabs (fl x - x) <= u * Rabs x /\ N <= Rabs (fl x))
}.

Section Units.
Variables p emin : Z.
Hypothesis p_ge2 : (2 <= p)%Z.
Local Notation N := (bpow radix2 (emin + p - 1)).
Local Notation rnd z := (round radix2 (FLT_exp emin p) z).

Local Instance unit_precision : Prec_gt_0 p.
Proof. red; lia. Qed.

Lemma normal_stays z x : Valid_rnd z -> N <= Rabs x -> N <= Rabs (rnd z x).
Proof.
intros Hz Hx. apply abs_round_ge_generic; [exact _ | exact Hz | | exact Hx].
apply generic_format_bpow. unfold FLT_exp; lia.
Qed.

Lemma flushed_normal z x : Valid_rnd z -> N <= Rabs x -> flush p emin z x = rnd z x.
Proof.
intros Hz Hx. unfold flush; cbv zeta. pose proof (normal_stays z x Hz Hx).
destruct (Rlt_bool_spec (Rabs (rnd z x)) N); [lra | reflexivity].
Qed.

(** To nearest a number just below N may become N: the constant is u/(1 - u). *)
Theorem flush_nearest_flushing : flushing (flush p emin ZnearestE) (bpow radix2 (- p) / (1 - bpow radix2 (- p))) N.
Proof.
assert (Hu : 0 < bpow radix2 (- p) <= / 4) by (apply (unit_roundoff_range p p_ge2)). set (u := bpow radix2 (- p)) in *.
assert (HN : 0 < N) by apply bpow_gt_0.
assert (Hv : u <= u / (1 - u)).
{ apply Rmult_le_reg_r with (1 - u); [lra|]. replace (u / (1 - u) * (1 - u)) with u by (field; lra). nra. }
assert (Hv1 : u / (1 - u) < 1).
{ apply Rmult_lt_reg_r with (1 - u); [lra|]. replace (u / (1 - u) * (1 - u)) with u by (field; lra). lra. }
constructor; [lra | exact HN | |]; intros x Hx.
- rewrite flushed_normal by (exact _ || exact Hx). split; [|apply normal_stays; [exact _ | exact Hx]].
  pose proof (relative_error_N_FLT radix2 emin p unit_precision (fun n => negb (Z.even n)) x Hx) as H.
  assert (E : / 2 * bpow radix2 (- p + 1) = u) by (unfold u; rewrite bpow_plus; simpl; lra). rewrite E in H.
  assert (u * Rabs x <= u / (1 - u) * Rabs x) by (apply Rmult_le_compat_r; [apply Rabs_pos | exact Hv]). lra.
- unfold flush; cbv zeta. destruct (Rlt_bool_spec (Rabs (rnd ZnearestE x)) N) as [H|H]; [left; reflexivity | right]. split; [|exact H].
  pose proof (subnormal_error p emin p_ge2 x Hx) as He. unfold fmt_round, smallest_subnormal in He.
  assert (Hh : bpow radix2 emin / 2 = u * N).
  { unfold u. rewrite <- bpow_plus. replace (- p + (emin + p - 1))%Z with (emin + -1)%Z by lia. rewrite bpow_plus. simpl; lra. }
  assert (Hxl : N - u * N <= Rabs x).
  { assert (Rabs (rnd ZnearestE x) <= Rabs x + Rabs (rnd ZnearestE x - x)).
    { replace (rnd ZnearestE x) with (x + (rnd ZnearestE x - x)) at 1 by ring. apply Rabs_triang. }
    lra. }
  assert (u * N <= u / (1 - u) * Rabs x).
  { replace (u * N) with (u / (1 - u) * (N - u * N)) by (field; lra). apply Rmult_le_compat_l; [lra | exact Hxl]. }
  lra.
Qed.

Theorem flush_toward_zero_flushing : flushing (flush p emin Ztrunc) (bpow radix2 (1 - p)) N.
Proof.
assert (HN : 0 < N) by apply bpow_gt_0.
constructor; [| exact HN | |].
- split; [apply bpow_ge_0|]. apply Rle_lt_trans with (bpow radix2 (-1)); [apply bpow_le; lia | simpl; lra].
- intros x Hx. rewrite flushed_normal by (exact _ || exact Hx). split; [|apply normal_stays; [exact _ | exact Hx]].
  left. replace (1 - p)%Z with (- p + 1)%Z by lia. exact (relative_error_FLT radix2 emin p unit_precision Ztrunc x Hx).
- intros x Hx. left. unfold flush; cbv zeta. rewrite Rlt_bool_true; [reflexivity|].
  assert (Ha : Rabs (rnd Ztrunc x) <= Rabs x).
  { rewrite <- round_ZR_abs by exact _. rewrite round_ZR_DN by apply Rabs_pos. apply round_DN_pt. exact _. }
  lra.
Qed.
End Units.

Section Flushed.
Variables (k x : nat -> R) (product : R -> R) (add : tree -> R -> R) (u N : R).
Hypothesis products_flush : (forall y, product y = y) \/ flushing product u N.
Hypothesis additions_flush : forall t, flushing (add t) u N.

Fixpoint leaves (t : tree) : nat := match t with Plus a b => leaves a + leaves b | _ => 1%nat end.
(** What a sum starts from is 0 or normal. *)
Fixpoint starts_normal (t : tree) : Prop :=
  match t with Start c => c = 0 \/ N <= Rabs c | Term _ => True | Plus a b => starts_normal a /\ starts_normal b end.

(** Losses are counted in units of N: a sum that is not 0 has lost half a unit less than it has leaves, an exact product nothing. *)
Definition losses (t : tree) (n : R) : Prop :=
  (n <= INR (leaves t) /\ computed k x product add t = 0) \/ (n <= INR (leaves t) - / 2 /\ N <= Rabs (computed k x product add t))
  \/ (n <= INR (leaves t) - 1).

(** Flushed or not, d products and as many additions lose at most one smallest normal number a leaf of the tree, not two. *)
Theorem flushed_tree_error t : starts_normal t -> exists n, 0 <= n <= INR (leaves t) /\
  Rabs (computed k x product add t - exact k x t) <= ((1 + u)^(height t + 1) - 1) * size k x t + (1 + u)^(height t) * (n * N).
Proof.
destruct (flushing_u _ _ _ (additions_flush t)) as [Hu _]. pose proof (flushing_N _ _ _ (additions_flush t)) as HN.
enough (H : starts_normal t -> exists n, 0 <= n /\ losses t n /\
  Rabs (computed k x product add t - exact k x t) <= ((1 + u)^(height t + 1) - 1) * size k x t + (1 + u)^(height t) * (n * N)).
{ intros Hs; destruct (H Hs) as [n [H0 [HL HE]]]. exists n. split; [|exact HE]. split; [exact H0|].
  destruct HL as [[L _]|[[L _]|L]]; lra. }
induction t as [c|i|a IHa b IHb]; intros Hs.
- exists 0. split; [lra|]. split.
  + destruct Hs as [Hc|Hc]; [left | right; left]; simpl; (split; [lra | assumption]).
  + unfold exact, size; simpl. rewrite !Rplus_0_r, Rminus_diag_eq, Rabs_R0 by reflexivity.
    pose proof (Rabs_pos c). assert (0 <= u * Rabs c) by (apply Rmult_le_pos; assumption). lra.
- unfold exact, size; simpl. rewrite ?Rplus_0_r, ?Rplus_0_l, <- ?Rabs_mult. set (y := k i * x i).
  assert (Huy : 0 <= u * Rabs y) by (apply Rmult_le_pos; [exact Hu | apply Rabs_pos]).
  destruct products_flush as [He|Hf].
  + exists 0. split; [lra|]. split; [right; right; simpl; lra|]. rewrite He, Rminus_diag_eq, Rabs_R0 by reflexivity. lra.
  + destruct (Rle_or_lt N (Rabs y)) as [Hy|Hy].
    * destruct (flushing_normal _ _ _ Hf y Hy) as [E1 E2]. exists 0. split; [lra|]. split; [right; left; simpl; split; [lra | exact E2] | lra].
    * destruct (flushing_small _ _ _ Hf y Hy) as [E|[E1 E2]].
      -- exists 1. split; [lra|]. split; [left; simpl; split; [lra | exact E]|]. rewrite E, Rminus_0_l, Rabs_Ropp. lra.
      -- exists 0. split; [lra|]. split; [right; left; simpl; split; [lra | exact E2] | lra].
- destruct Hs as [Sa Sb]. destruct (IHa Sa) as [na [Pa [La Ea]]]. destruct (IHb Sb) as [nb [Pb [Lb Eb]]]. clear IHa IHb.
  cbn [height]. rewrite exact_plus, size_plus. set (m := Nat.max (height a) (height b)).
  replace (S m + 1)%nat with (S (m + 1)) by lia. cbn [pow]. set (G := (1 + u)^(m + 1)). set (P := (1 + u)^m).
  assert (HP : 1 <= P) by (apply pow_R1_Rle; lra). assert (HG : 1 <= G) by (apply pow_R1_Rle; lra).
  assert (side : forall t n, (height t <= m)%nat -> 0 <= n ->
    Rabs (computed k x product add t - exact k x t) <= ((1 + u)^(height t + 1) - 1) * size k x t + (1 + u)^(height t) * (n * N) ->
    Rabs (computed k x product add t - exact k x t) <= (G - 1) * size k x t + P * (n * N)).
  { intros t n Ht Hn H. eapply Rle_trans; [exact H|].
    assert (0 <= size k x t) by (eapply Rle_trans; [apply Rabs_pos | apply exact_le_size]).
    assert (0 <= n * N) by (apply Rmult_le_pos; lra).
    apply Rplus_le_compat; apply Rmult_le_compat_r; try assumption.
    - assert ((1 + u)^(height t + 1) <= G) by (apply Rle_pow; [lra | lia]). lra.
    - apply Rle_pow; [lra | exact Ht]. }
  pose proof (side a na (Nat.le_max_l _ _) Pa Ea) as Da. pose proof (side b nb (Nat.le_max_r _ _) Pb Eb) as Db. clear side Ea Eb.
  assert (Sza : 0 <= size k x a) by (eapply Rle_trans; [apply Rabs_pos | apply exact_le_size]).
  assert (Szb : 0 <= size k x b) by (eapply Rle_trans; [apply Rabs_pos | apply exact_le_size]).
  pose proof (exact_le_size k x a) as Xa. pose proof (exact_le_size k x b) as Xb.
  set (A := computed k x product add a) in *. set (B := computed k x product add b) in *.
  set (ea := exact k x a) in *. set (eb := exact k x b) in *. set (sa := size k x a) in *. set (sb := size k x b) in *.
  set (f := add (Plus a b)). change (computed k x product add (Plus a b)) with (f (A + B)).
  set (D := Rabs (A - ea) + Rabs (B - eb)).
  assert (HD : D <= (G - 1) * (sa + sb) + P * ((na + nb) * N)) by (unfold D; lra).
  assert (Hnn : 0 <= (na + nb) * N) by (apply Rmult_le_pos; lra).
  assert (HAB : Rabs (A + B) <= sa + sb + D).
  { replace (A + B) with ((A - ea) + (B - eb) + (ea + eb)) by ring. eapply Rle_trans; [apply Rabs_triang|].
    pose proof (Rabs_triang (A - ea) (B - eb)). pose proof (Rabs_triang ea eb). unfold D; lra. }
  assert (Hf : Rabs (f (A + B) - (ea + eb)) <= Rabs (f (A + B) - (A + B)) + D).
  { replace (f (A + B) - (ea + eb)) with ((f (A + B) - (A + B)) + ((A - ea) + (B - eb))) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. apply Rplus_le_compat_l, Rabs_triang. }
  assert (kept : Rabs (f (A + B) - (A + B)) <= u * Rabs (A + B) ->
    Rabs (f (A + B) - (ea + eb)) <= ((1 + u) * G - 1) * (sa + sb) + (1 + u) * P * ((na + nb) * N)).
  { intros H. assert (u * Rabs (A + B) <= u * (sa + sb + D)) by (apply Rmult_le_compat_l; assumption).
    assert ((1 + u) * D <= (1 + u) * ((G - 1) * (sa + sb) + P * ((na + nb) * N))) by (apply Rmult_le_compat_l; lra). lra. }
  assert (Hl : INR (leaves (Plus a b)) = INR (leaves a) + INR (leaves b)) by (simpl; apply plus_INR).
  assert (L1 : na <= INR (leaves a)) by (destruct La as [[L _]|[[L _]|L]]; lra).
  assert (L2 : nb <= INR (leaves b)) by (destruct Lb as [[L _]|[[L _]|L]]; lra).
  destruct (Rle_or_lt N (Rabs (A + B))) as [HS|HS].
  + destruct (flushing_normal _ _ _ (additions_flush (Plus a b)) _ HS) as [E1 E2]. exists (na + nb). split; [lra|]. split.
    * right; left. rewrite Hl. split; [|exact E2].
      destruct La as [[La0 Za]|[[La0 Za]|La0]]; destruct Lb as [[Lb0 Zb]|[[Lb0 Zb]|Lb0]]; try lra.
      exfalso. fold A in Za. fold B in Zb. rewrite Za, Zb, Rplus_0_r, Rabs_R0 in HS. lra.
    * apply kept; exact E1.
  + destruct (flushing_small _ _ _ (additions_flush (Plus a b)) _ HS) as [E|[E1 E2]].
    * assert (Hone : Rabs (f (A + B) - (ea + eb)) <= N + D).
      { eapply Rle_trans; [exact Hf|]. apply Rplus_le_compat_r. unfold f. rewrite E, Rminus_0_l, Rabs_Ropp. lra. }
      (* Where one side is 0 the sum is the other side: 0, or too large to be flushed, or an exact product, which has lost nothing. *)
      destruct (Req_dec A 0) as [ZA|ZA]; [destruct (Req_dec B 0) as [ZB|ZB]|].
      -- exists (na + nb). split; [lra|]. split; [left; rewrite Hl; split; [lra | exact E]|].
         apply kept. unfold f. rewrite E, ZA, ZB, Rplus_0_r, Rminus_0_r, Rabs_R0. lra.
      -- assert (Hb1 : nb <= INR (leaves b) - 1).
         { destruct Lb as [[_ Zb]|[[_ Zb]|Lb0]]; [contradiction | exfalso; rewrite ZA, Rplus_0_l in HS; fold B in Zb; lra | exact Lb0]. }
         exists (na + nb + 1). split; [lra|]. split; [left; rewrite Hl; split; [lra | exact E]|].
         eapply Rle_trans; [exact Hone|]. assert (N <= (1 + u) * P * N).
         { rewrite <- (Rmult_1_l N) at 1. apply Rmult_le_compat_r; [lra|]. assert (1 * 1 <= (1 + u) * P) by (apply Rmult_le_compat; lra). lra. }
         assert (0 <= u * G * (sa + sb)) by (apply Rmult_le_pos; [apply Rmult_le_pos; lra | lra]).
         assert (0 <= u * P * ((na + nb) * N)) by (apply Rmult_le_pos; [apply Rmult_le_pos; lra | lra]). lra.
      -- assert (Hab : na + nb + 1 <= INR (leaves a) + INR (leaves b)).
         { destruct La as [[_ Za]|[[La0 Za]|La0]]; [contradiction | | lra].
           destruct Lb as [[Lb0 Zb]|[[Lb0 Zb]|Lb0]]; [|lra|lra]. exfalso. fold A in Za; fold B in Zb. rewrite Zb, Rplus_0_r in HS. lra. }
         exists (na + nb + 1). split; [lra|]. split; [left; rewrite Hl; split; [lra | exact E]|].
         eapply Rle_trans; [exact Hone|]. assert (N <= (1 + u) * P * N).
         { rewrite <- (Rmult_1_l N) at 1. apply Rmult_le_compat_r; [lra|]. assert (1 * 1 <= (1 + u) * P) by (apply Rmult_le_compat; lra). lra. }
         assert (0 <= u * G * (sa + sb)) by (apply Rmult_le_pos; [apply Rmult_le_pos; lra | lra]).
         assert (0 <= u * P * ((na + nb) * N)) by (apply Rmult_le_pos; [apply Rmult_le_pos; lra | lra]). lra.
    * exists (na + nb). split; [lra|]. split; [|apply kept; exact E1].
      right; left. rewrite Hl. split; [|exact E2].
      destruct La as [[La0 Za]|[[La0 Za]|La0]]; destruct Lb as [[Lb0 Zb]|[[Lb0 Zb]|Lb0]]; try lra.
      exfalso. fold A in Za. fold B in Zb. rewrite Za, Zb, Rplus_0_r, Rminus_0_r in E1. rewrite Za, Zb, Rplus_0_r in E2. fold f in E1, E2.
      rewrite Rabs_R0, Rmult_0_r in E1. lra.
Qed.
End Flushed.
