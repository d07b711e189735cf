(* SPDX-FileCopyrightText: 2026 The deltaproof authors
   SPDX-License-Identifier: MIT *)

(** Runs of the fp64 tier: its lines over n steps, in fp64 with subnormals, up to the rounding that a radius decides.

    [step_facts] is what one step of the code is known to do, whichever way it made its prediction; [tier_state_radius] and
    [tier_output_radius] follow from it for any number of steps, with and without decays, n steps a token. The facts are then shown of
    the operations themselves over FLT(53, -1074): [fp64_step_facts] for a step by itself, [fp64_pair_facts] for the second of a pair.
    [fp64_output_decided] is the end: where both ends of the interval round to one number of a format, the exact output rounds to it.

    Not claimed: as in tier_radius.v. The bounds M and rho are premises, and so is that the radius at hand is at least this one. *)
From Coq Require Import Reals ZArith Lra Lia Psatz.
From Flocq Require Import Core.
From deltaproof.float Require Import vectors formats standard_model rounding sum_trees tier_radius.
From deltaproof.float Require oracle_radius.
Open Scope R_scope.

(** What the code knows of a step: the exact inputs, the lowered ones, and the bounds it computes. *)
Record step := {
  decays : bool; alpha : nat -> R; alpha_hat : nat -> R; k : nat -> R; k_hat : nat -> R; b : R; b_hat : R; v : R;
  e_alpha : R; f_alpha : R; e_k : R; e_b : R; f_b : R;
  A : R; kappa : R; M_s : R; M_d : R; M_n : R; rho : R; V : R }.

Section Run.
Variables u eta : R.
Hypothesis u_small : 0 <= u <= / 1024.
Hypothesis eta_ge0 : 0 <= eta.
Variable K : nat.
Variable gamma : R.
Hypothesis gamma_bound : (1 + u)^K - 1 <= gamma.

(** The inputs as they were lowered, and the bounds computed from the entries. *)
Definition inputs_known (x : step) (s_hat d_hat s_next : nat -> R) : Prop :=
  (forall i, (i < K)%nat -> Rabs (k_hat x i - k x i) <= e_k x * Rabs (k_hat x i)) /\
  Rabs (b_hat x - b x) <= e_b x * Rabs (b_hat x) + f_b x /\
  (0 <= e_b x /\ 0 <= f_b x /\ 0 <= e_k x) /\
  norm K (k_hat x) <= kappa x /\ norm K s_hat <= M_s x /\ norm K d_hat <= M_d x /\ norm K s_next <= M_n x /\
  Rabs (v x) <= V x /\ Rmax 1 (Rabs (1 - b x * sq K (k x))) <= rho x /\
  (if decays x then
     (forall i, (i < K)%nat -> Rabs (alpha_hat x i - alpha x i) <= e_alpha x * Rabs (alpha_hat x i) + f_alpha x) /\
     (forall i, (i < K)%nat -> Rabs (alpha_hat x i) <= A x) /\ 0 <= e_alpha x /\ 0 <= f_alpha x /\ 0 <= A x
   else forall i, (i < K)%nat -> alpha x i = 1).

(** What the operations of one step do: a decay or none, a prediction p within P, the write w, the next row. *)
Definition operations_rounded (x : step) (s_hat d_hat s_next : nat -> R) (p r w P : R) : Prop :=
  (if decays x then forall i, (i < K)%nat -> Rabs (d_hat i - alpha_hat x i * s_hat i) <= u * Rabs (d_hat i) + eta
   else forall i, (i < K)%nat -> d_hat i = s_hat i) /\
  Rabs (p - dot K (k_hat x) d_hat) <= P /\
  Rabs (r - (v x - p)) <= u * Rabs r + eta /\
  Rabs (w - b_hat x * r) <= u * Rabs w + eta /\
  (forall i, (i < K)%nat ->
     Rabs (s_next i - (d_hat i + k_hat x i * w)) <= u * Rabs (s_next i) + u * (Rabs (k_hat x i) * Rabs w) + 2 * eta).

Definition step_facts x s_hat d_hat s_next p r w P : Prop :=
  inputs_known x s_hat d_hat s_next /\ operations_rounded x s_hat d_hat s_next p r w P.

(** One step of the exact recurrence. *)
Definition exact_next (x : step) (s : nat -> R) : nat -> R := exact_step K (b x) (v x) (k x) (fun i => alpha x i * s i).

(** g and r of e' = g e + r. *)
Definition decay_factor (x : step) : R := if decays x then A x * (1 + e_alpha x) + f_alpha x else 1.
Definition decay_local (x : step) : R :=
  if decays x then (e_alpha x / (1 - u) + u) * M_d x + f_alpha x * M_s x + (1 + e_alpha x) * lost_row eta K else 0.
Definition factor (x : step) : R := rho x * decay_factor x.
Definition local (x : step) (w P : R) : R :=
  rho x * decay_local x
  + kappa_plus (e_k x) (kappa x) * bound_W u eta (b_hat x) w (e_b x) (f_b x) (e_k x) (kappa x) (M_d x) (V x) P
  + e_k x * kappa x * Rabs w + u * (M_n x + kappa x * Rabs w) + lost_row eta K.

Theorem one_step x s s_hat d_hat s_next p r w P e :
  step_facts x s_hat d_hat s_next p r w P -> norm K (fun i => s_hat i - s i) <= e ->
  norm K (fun i => s_next i - exact_next x s i) <= factor x * e + local x w P.
Proof.
intros [[Hk [Hb [[Q1 [Q2 Q3]] [Hkappa [Hs [Hd [Hn [HV [Hrho Ha]]]]]]]]] [Hdec [Hp [Hr [Hw Hnext]]]]] He.
assert (HD : norm K (fun i => d_hat i - alpha x i * s i) <= decay_factor x * e + decay_local x).
{ unfold decay_factor, decay_local. destruct (decays x).
  - destruct Ha as [Ha1 [Ha2 [Ha3 [Ha4 Ha5]]]].
    pose proof (decay_line u eta u_small eta_ge0 K (alpha x) (alpha_hat x) s s_hat d_hat (A x) (e_alpha x) (f_alpha x) e (M_s x) (M_d x)
      Ha1 Ha2 Ha3 Ha4 Ha5 Hdec He Hs Hd). lra.
  - rewrite Rmult_1_l, Rplus_0_r. eapply Rle_trans; [|exact He]. right. apply norm_ext. intros i Hi.
    rewrite Hdec, Ha by exact Hi. ring. }
pose proof (step_line u eta u_small eta_ge0 K (b x) (b_hat x) (v x) p r w (k x) (k_hat x) (fun i => alpha x i * s i) d_hat s_next
  (e_b x) (f_b x) (e_k x) (kappa x) (M_d x) (M_n x) (V x) _ (rho x) P
  Hb Hk Q1 Q2 Q3 Hkappa Hd Hn HV HD Hrho Hp Hr Hw Hnext) as HS.
unfold exact_next, factor, local. lra.
Qed.

Variables (x : nat -> step) (s0 : nat -> R) (s_hat d_hat : nat -> nat -> R) (p r w P : nat -> R).
Fixpoint exact_state (T : nat) : nat -> R := match T with O => s0 | S t => exact_next (x t) (exact_state t) end.
Definition state_bound (e0 : R) (T : nat) : R :=
  oracle_radius.radius e0 (fun t => factor (x t)) (fun t => local (x t) (w t) (P t)) T.

(** The radius of the state after T steps. *)
Theorem tier_state_radius e0 T : norm K (fun i => s_hat O i - s0 i) <= e0 ->
  (forall t, (t < T)%nat -> step_facts (x t) (s_hat t) (d_hat t) (s_hat (S t)) (p t) (r t) (w t) (P t)) ->
  norm K (fun i => s_hat T i - exact_state T i) <= state_bound e0 T.
Proof.
intros H0 Hx. apply (oracle_radius.radius_run K exact_state s_hat); [exact H0|].
intros t e Ht He. apply (one_step (x t) (exact_state t) (s_hat t) (d_hat t) (s_hat (S t)) (p t) (r t)); [apply Hx; exact Ht | exact He].
Qed.

(** And of an output read after T steps. *)
Definition output_bound (e0 : R) (T : nat) (c o e_q chi M : R) : R :=
  u * Rabs o + eta + Rabs c * ((gamma + e_q) * (chi * M) + lost_product eta K gamma + chi * (1 + e_q) * state_bound e0 T).

Theorem tier_output_radius e0 T c a o q q_hat e_q chi M : norm K (fun i => s_hat O i - s0 i) <= e0 ->
  (forall t, (t < T)%nat -> step_facts (x t) (s_hat t) (d_hat t) (s_hat (S t)) (p t) (r t) (w t) (P t)) ->
  (forall i, (i < K)%nat -> Rabs (q_hat i - q i) <= e_q * Rabs (q_hat i)) -> 0 <= e_q ->
  norm K q_hat <= chi -> norm K (s_hat T) <= M ->
  Rabs (a - dot K q_hat (s_hat T)) <= gamma * (chi * M) + lost_product eta K gamma ->
  Rabs (o - c * a) <= u * Rabs o + eta ->
  Rabs (o - c * dot K q (exact_state T)) <= output_bound e0 T c o e_q chi M.
Proof.
intros H0 Hx Hq Heq Hchi HM Ha Ho. unfold output_bound.
apply (read_line u eta K gamma c a o q q_hat (exact_state T) (s_hat T) e_q (state_bound e0 T) chi M); try assumption.
apply tier_state_radius; assumption.
Qed.
End Run.

(** ** Line H: a block as a whole *)
(** Where no factor is below 1, every radius of a block is at most the product of all factors times the sum of all terms. *)
Theorem block_line e0 g r n t : (t <= n)%nat -> 0 <= e0 -> (forall i, (i < n)%nat -> 1 <= g i) -> (forall i, (i < n)%nat -> 0 <= r i) ->
  oracle_radius.radius e0 g r t <= oracle_radius.product_from g 0 n * (e0 + Rsum n r).
Proof.
intros Ht He Hg Hr.
assert (Hpos : forall m, (m <= n)%nat -> 1 <= oracle_radius.product_from g 0 m /\ 0 <= oracle_radius.radius e0 g r m /\
  oracle_radius.radius e0 g r m <= oracle_radius.product_from g 0 m * (e0 + Rsum m r) /\ 0 <= Rsum m r).
{ induction m as [|m IH]; intros Hm; [simpl; lra|].
  destruct (IH ltac:(lia)) as [I1 [I2 [I3 I4]]]. pose proof (Hg m ltac:(lia)) as G. pose proof (Hr m ltac:(lia)) as R0.
  cbn [oracle_radius.product_from oracle_radius.radius Rsum Nat.add].
  set (Q := oracle_radius.product_from g 0 m) in *. set (E := oracle_radius.radius e0 g r m) in *. set (Z := Rsum m r) in *.
  assert (J1 : 1 <= Q * g m) by (assert (1 * 1 <= Q * g m) by (apply Rmult_le_compat; lra); lra).
  assert (J2 : 0 <= g m * E) by (apply Rmult_le_pos; lra).
  assert (J3 : g m * E <= g m * (Q * (e0 + Z))) by (apply Rmult_le_compat_l; lra).
  assert (J4 : 1 * r m <= Q * g m * r m) by (apply Rmult_le_compat_r; lra). repeat split; lra. }
assert (Hmono : forall a m, (a + m <= n)%nat ->
  oracle_radius.product_from g 0 a * (e0 + Rsum a r) <= oracle_radius.product_from g 0 (a + m) * (e0 + Rsum (a + m) r)).
{ intros a m; induction m as [|m IH]; intros Hm; [rewrite Nat.add_0_r; lra|].
  eapply Rle_trans; [apply IH; lia|]. rewrite Nat.add_succ_r. cbn [oracle_radius.product_from Rsum Nat.add].
  destruct (Hpos (a + m)%nat ltac:(lia)) as [I1 [I2 [I3 I4]]]. pose proof (Hg (a + m)%nat ltac:(lia)) as G.
  pose proof (Hr (a + m)%nat ltac:(lia)) as R0.
  set (Q := oracle_radius.product_from g 0 (a + m)) in *. set (Z := Rsum (a + m) r) in *.
  assert (Q * 1 <= Q * g (a + m)%nat) by (apply Rmult_le_compat_l; lra).
  apply Rmult_le_compat; lra. }
destruct (Hpos t Ht) as [_ [_ [H _]]]. eapply Rle_trans; [exact H|].
replace n with (t + (n - t))%nat by lia. apply Hmono; lia.
Qed.

(** ** The operations themselves, in fp64 with subnormals *)
Section Fp64.
Local Notation fl := fp64_round.
Local Notation u := (bpow radix2 (-53)).
Local Notation eta := (bpow radix2 (-1074) / 2).
Variable K : nat.
Variable gamma : R.
Hypothesis gamma_bound : (1 + u)^K - 1 <= gamma.

Lemma fp64_u_small : 0 <= u <= / 1024.
Proof. split; [apply bpow_ge_0|]. apply Rle_trans with (bpow radix2 (-10)); [apply bpow_le; lia | simpl; lra]. Qed.
Lemma fp64_eta_ge0 : 0 <= eta.
Proof. pose proof (bpow_ge_0 radix2 (-1074)); lra. Qed.

Definition decayed (x : step) (s_hat : nat -> R) (i : nat) : R := if decays x then fl (alpha_hat x i * s_hat i) else s_hat i.
Definition innovation (x : step) (p : R) : R := fl (v x - p).
Definition write (x : step) (p : R) : R := fl (b_hat x * innovation x p).
(** A row after a step: one fused operation an entry. *)
Definition next_row (x : step) (d_hat : nat -> R) (w : R) (i : nat) : R := fl (k_hat x i * w + d_hat i).

Lemma operations_are_rounded x s_hat p P : Rabs (p - dot K (k_hat x) (decayed x s_hat)) <= P ->
  operations_rounded u eta K x s_hat (decayed x s_hat) (next_row x (decayed x s_hat) (write x p)) p (innovation x p) (write x p) P.
Proof.
intros Hp. pose proof fp64_eta_ge0 as He. pose proof fp64_u_small as Hu. repeat split.
- unfold decayed. destruct (decays x); [|reflexivity]. intros i _. apply (rounding_result _ _ _ fp64_rounding).
- exact Hp.
- apply (rounding_result _ _ _ fp64_rounding).
- apply (rounding_result _ _ _ fp64_rounding).
- intros i _. unfold next_row.
  pose proof (rounding_result _ _ _ fp64_rounding (k_hat x i * write x p + decayed x s_hat i)) as H.
  replace (decayed x s_hat i + k_hat x i * write x p) with (k_hat x i * write x p + decayed x s_hat i) by ring.
  assert (0 <= u * (Rabs (k_hat x i) * Rabs (write x p))) by (apply Rmult_le_pos; [lra | apply Rmult_le_pos; apply Rabs_pos]). lra.
Qed.

(** A step by itself: the prediction is a chain of fused operations. *)
Definition single_prediction (x : step) (s_hat : nat -> R) : R := fdot_fused fl K (k_hat x) (decayed x s_hat).

Theorem fp64_step_facts x s_hat : let d := decayed x s_hat in let p := single_prediction x s_hat in let s_next := next_row x d (write x p) in
  inputs_known K x s_hat d s_next ->
  step_facts u eta K x s_hat d s_next p (innovation x p) (write x p) (gamma * (kappa x * M_d x) + lost_product eta K gamma).
Proof.
intros d p s_next H. split; [exact H|]. apply operations_are_rounded.
destruct H as [_ [_ [_ [Hk [_ [Hd _]]]]]].
apply (fused_product u eta fp64_u_small fp64_eta_ge0 K gamma gamma_bound fl); [apply fp64_rounding | exact Hk | exact Hd].
Qed.

(** The second step of a pair, no decay between: predicted from the row before both, the product g of the two keys (in any order of
    summation, so any number that near to it) and the first step's write. *)
Theorem fp64_pair_facts x y s_hat g M : decays x = false -> decays y = false ->
  let p := single_prediction x s_hat in let w := write x p in let between := next_row x s_hat w in
  let p' := fl (g * w + fdot_fused fl K (k_hat y) s_hat) in let s_next := next_row y between (write y p') in
  gamma + 2 * u <= bpow radix2 (-30) ->
  Rabs (g - dot K (k_hat y) (k_hat x)) <= gamma * (kappa y * kappa x) + lost_product eta K gamma ->
  norm K (k_hat x) <= kappa x -> norm K s_hat <= M -> norm K between <= M ->
  inputs_known K y between between s_next ->
  step_facts u eta K y between between s_next p' (innovation y p') (write y p')
    ((gamma + 2 * u * (1 + bpow radix2 (-30))) * (kappa y * (M + kappa x * Rabs w)) + lost_gram u eta K gamma w (kappa y)).
Proof.
intros Hx Hy p w between p' s_next Hg Hgram Hkx HM HM' H. split; [exact H|].
destruct H as [_ [_ [_ [Hk [_ [Hd _]]]]]].
assert (HP : Rabs (p' - dot K (k_hat y) between) <=
  (gamma + 2 * u * (1 + bpow radix2 (-30))) * (kappa y * (M + kappa x * Rabs w)) + lost_gram u eta K gamma w (kappa y)).
{ pose proof fp64_u_small as Hu. pose proof fp64_eta_ge0 as He.
  apply (gram_line u eta fp64_u_small fp64_eta_ge0 K gamma gamma_bound (k_hat x) (k_hat y) s_hat between w
    (fdot_fused fl K (k_hat y) s_hat) g p' M (kappa x) (kappa y)); try assumption.
  - intros i _. unfold between, next_row.
    pose proof (rounding_result _ _ _ fp64_rounding (k_hat x i * w + s_hat i)) as Hr.
    replace (s_hat i + k_hat x i * w) with (k_hat x i * w + s_hat i) by ring.
    assert (0 <= u * (Rabs (k_hat x i) * Rabs w)) by (apply Rmult_le_pos; [lra | apply Rmult_le_pos; apply Rabs_pos]). lra.
  - apply (fused_product u eta fp64_u_small fp64_eta_ge0 K gamma gamma_bound fl); [apply fp64_rounding | exact Hk | exact HM].
  - unfold p'. pose proof (rounding_result _ _ _ fp64_rounding (g * w + fdot_fused fl K (k_hat y) s_hat)) as Hr.
    replace (fdot_fused fl K (k_hat y) s_hat + g * w) with (g * w + fdot_fused fl K (k_hat y) s_hat) by ring.
    assert (0 <= u * (Rabs g * Rabs w)) by (apply Rmult_le_pos; [lra | apply Rmult_le_pos; apply Rabs_pos]). lra. }
assert (ED : decayed y between = between) by (unfold decayed; rewrite Hy; reflexivity).
rewrite <- ED in HP. pose proof (operations_are_rounded y between p' _ HP) as O. rewrite ED in O. exact O.
Qed.
End Fp64.

(** ** The rounding that a radius decides *)
(** A rounding to any format is monotone: where both ends of an interval round alike, so does all between. *)
Theorem rounding_decided rnd_format (rnd : R -> Z) (Hf : Valid_exp rnd_format) (Hr : Valid_rnd rnd) value radius exact y :
  Rabs (value - exact) <= radius ->
  round radix2 rnd_format rnd (value - radius) = y -> round radix2 rnd_format rnd (value + radius) = y ->
  round radix2 rnd_format rnd exact = y.
Proof.
intros H Hlow Hhigh. apply Rabs_le_inv in H. apply Rle_antisym.
- rewrite <- Hhigh. apply round_le; [exact Hf | exact Hr | lra].
- rewrite <- Hlow. apply round_le; [exact Hf | exact Hr | lra].
Qed.

(** The end: an output of the fp64 tier, the radius at hand, and what the exact output of the recurrence rounds to. *)
Theorem fp64_output_decided K gamma x s0 s_hat d_hat p r w P e0 T c o q q_hat e_q chi M radius
  rnd_format (rnd : R -> Z) (Hf : Valid_exp rnd_format) (Hr : Valid_rnd rnd) y :
  let u := bpow radix2 (-53) in let eta := bpow radix2 (-1074) / 2 in
  (1 + u)^K - 1 <= gamma -> norm K (fun i => s_hat O i - s0 i) <= e0 ->
  (forall t, (t < T)%nat -> step_facts u eta K (x t) (s_hat t) (d_hat t) (s_hat (S t)) (p t) (r t) (w t) (P t)) ->
  (forall i, (i < K)%nat -> Rabs (q_hat i - q i) <= e_q * Rabs (q_hat i)) -> 0 <= e_q ->
  norm K q_hat <= chi -> norm K (s_hat T) <= M ->
  o = fp64_round (c * fdot_fused fp64_round K q_hat (s_hat T)) ->
  output_bound u eta K gamma x w P e0 T c o e_q chi M <= radius ->
  round radix2 rnd_format rnd (o - radius) = y -> round radix2 rnd_format rnd (o + radius) = y ->
  round radix2 rnd_format rnd (c * dot K q (exact_state K x s0 T)) = y.
Proof.
intros u eta Hg H0 Hx Hq Heq Hchi HM Ho Hrad. apply rounding_decided; [exact Hf | exact Hr |].
eapply Rle_trans; [|exact Hrad].
apply (tier_output_radius u eta fp64_u_small fp64_eta_ge0 K gamma x s0 s_hat d_hat p r w P e0 T c
  (fdot_fused fp64_round K q_hat (s_hat T)) o q q_hat e_q chi M); try assumption.
- apply (fused_product u eta fp64_u_small fp64_eta_ge0 K gamma Hg fp64_round); [apply fp64_rounding | exact Hchi | exact HM].
- rewrite Ho. apply (rounding_result _ _ _ fp64_rounding).
Qed.

(** ** A run of single steps, as it is programmed *)
(** The rows that the operations themselves make, step by step. *)
Fixpoint single_state (K : nat) (x : nat -> step) (s0_hat : nat -> R) (T : nat) : nat -> R :=
  match T with
  | O => s0_hat
  | S t => let s := single_state K x s0_hat t in next_row (x t) (decayed (x t) s) (write (x t) (single_prediction K (x t) s))
  end.

(** What it writes at step t, and how far its prediction may be off. *)
Definition single_write (K : nat) (x : nat -> step) (s0_hat : nat -> R) (t : nat) : R :=
  write (x t) (single_prediction K (x t) (single_state K x s0_hat t)).
Definition single_off (K : nat) (gamma : R) (x : nat -> step) (t : nat) : R :=
  gamma * (kappa (x t) * M_d (x t)) + lost_product (bpow radix2 (-1074) / 2) K gamma.

Theorem fp64_single_run_decided K gamma x s0 s0_hat e0 T c q q_hat e_q chi M radius
  rnd_format (rnd : R -> Z) (Hf : Valid_exp rnd_format) (Hr : Valid_rnd rnd) y :
  let u := bpow radix2 (-53) in let eta := bpow radix2 (-1074) / 2 in
  let s := single_state K x s0_hat in let o := fp64_round (c * fdot_fused fp64_round K q_hat (s T)) in
  (1 + u)^K - 1 <= gamma -> norm K (fun i => s0_hat i - s0 i) <= e0 ->
  (forall t, (t < T)%nat -> inputs_known K (x t) (s t) (decayed (x t) (s t)) (s (S t))) ->
  (forall i, (i < K)%nat -> Rabs (q_hat i - q i) <= e_q * Rabs (q_hat i)) -> 0 <= e_q ->
  norm K q_hat <= chi -> norm K (s T) <= M ->
  output_bound u eta K gamma x (single_write K x s0_hat) (single_off K gamma x) e0 T c o e_q chi M <= radius ->
  round radix2 rnd_format rnd (o - radius) = y -> round radix2 rnd_format rnd (o + radius) = y ->
  round radix2 rnd_format rnd (c * dot K q (exact_state K x s0 T)) = y.
Proof.
intros u eta s o Hg H0 Hx Hq Heq Hchi HM Hrad.
apply (fp64_output_decided K gamma x s0 s (fun t => decayed (x t) (s t)) (fun t => single_prediction K (x t) (s t))
  (fun t => innovation (x t) (single_prediction K (x t) (s t))) (single_write K x s0_hat) (single_off K gamma x)
  e0 T c o q q_hat e_q chi M radius); try assumption.
- intros t Ht. apply (fp64_step_facts K gamma Hg (x t) (s t)). exact (Hx t Ht).
- reflexivity.
Qed.

(** The premises can be kept: inputs given exactly, no decay, bounds equal to what they bound. *)
Definition given_step (K : nat) (k0 : nat -> R) (b0 v0 : R) (s : nat -> R) : step :=
  let one := fun _ : nat => 1 in
  let bare := {| decays := false; alpha := one; alpha_hat := one; k := k0; k_hat := k0; b := b0; b_hat := b0; v := v0;
    e_alpha := 0; f_alpha := 0; e_k := 0; e_b := 0; f_b := 0; A := 1; kappa := 0; M_s := 0; M_d := 0; M_n := 0; rho := 0; V := 0 |} in
  {| decays := false; alpha := one; alpha_hat := one; k := k0; k_hat := k0; b := b0; b_hat := b0; v := v0;
     e_alpha := 0; f_alpha := 0; e_k := 0; e_b := 0; f_b := 0; A := 1; kappa := norm K k0; M_s := norm K s; M_d := norm K s;
     M_n := norm K (next_row bare s (write bare (single_prediction K bare s))); rho := Rmax 1 (Rabs (1 - b0 * sq K k0)); V := Rabs v0 |}.

Example inputs_known_of_given K k0 b0 v0 s : let x := given_step K k0 b0 v0 s in
  inputs_known K x s (decayed x s) (next_row x (decayed x s) (write x (single_prediction K x s))).
Proof.
intros x; unfold inputs_known; simpl; repeat split; intros; try apply Rle_refl; try reflexivity;
  rewrite ?Rminus_diag_eq by reflexivity; rewrite ?Rabs_R0; lra.
Qed.
