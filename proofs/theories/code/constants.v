(* SPDX-FileCopyrightText: 2026 The deltaproof authors
   SPDX-License-Identifier: MIT *)

(** The numbers of the C++ code that a theorem states, each under the name it has in proofs/constants.txt.

    For whoever changes such a number: proofs/constants.txt holds exactly these names with exactly these values, and a test compares
    each with what the code has. A theorem here speaks of the constant by its name; what it says of the value is proved in float/ and
    ode/. Nothing else is stated here, and nothing about how the code comes to the number. *)
From Coq Require Import Reals ZArith Lra Lia.
From Flocq Require Import Core.
From deltaproof.float Require Import vectors formats standard_model key_norm sigmoid.
From deltaproof.float Require oracle_radius.
From deltaproof.ode Require stability.
Open Scope R_scope.

(** ** Unit roundoffs: the least bound of |round x - x| relative to |round x| *)
Definition unit_roundoff_bf16 : R := 0.00390625.
Definition unit_roundoff_fp16 : R := 0.00048828125.
Definition unit_roundoff_tf32 : R := 0.00048828125.
Definition unit_roundoff_fp32 : R := 0.000000059604644775390625.
Definition unit_roundoff_fp64 : R := 0.00000000000000011102230246251565404236316680908203125.

Theorem unit_roundoff_bf16_is_one : is_unit_roundoff 8 (-133) unit_roundoff_bf16.
Proof. exact bf16_unit_roundoff. Qed.

Theorem unit_roundoff_fp16_is_one : is_unit_roundoff 11 (-24) unit_roundoff_fp16.
Proof. exact fp16_unit_roundoff. Qed.

Theorem unit_roundoff_tf32_is_one : is_unit_roundoff 11 (-136) unit_roundoff_tf32.
Proof. exact tf32_unit_roundoff. Qed.

Theorem unit_roundoff_fp32_is_one : is_unit_roundoff 24 (-149) unit_roundoff_fp32.
Proof. exact fp32_unit_roundoff. Qed.

Theorem unit_roundoff_fp64_is_one : is_unit_roundoff 53 (-1074) unit_roundoff_fp64.
Proof. exact fp64_unit_roundoff. Qed.

(** ** The largest step that is safe for every rounded unit key, and the next number, which is not *)
Definition safe_beta_bf16 : R := 1.984375.
Definition safe_beta_fp16 : R := 1.998046875.
Definition safe_beta_fp32 : R := 1.9999997615814208984375.
Definition unsafe_beta_bf16 : R := 1.9921875.
Definition unsafe_beta_fp16 : R := 1.9990234375.
Definition unsafe_beta_fp32 : R := 1.99999988079071044921875.

Theorem safe_beta_bf16_is_safe d k b : (Z.of_nat d <= 32768)%Z -> sq d k <= 1 -> 0 <= b <= safe_beta_bf16 ->
  0 <= b * sq d (fun i => bf16_round (k i)) <= 2.
Proof. intros Hd Hk Hb; apply bf16_safe_step; [exact Hd | lra | exact Hb]. Qed.

Theorem unsafe_beta_bf16_is_not : exists k, sq 16 k <= 1 /\ 2 < unsafe_beta_bf16 * sq 16 (fun i => bf16_round (k i)).
Proof. exact bf16_safe_step_sharp. Qed.

Theorem safe_beta_fp16_is_safe d k b : (Z.of_nat d <= 32768)%Z -> sq d k <= 1 -> 0 <= b <= safe_beta_fp16 ->
  0 <= b * sq d (fun i => fp16_round (k i)) <= 2.
Proof. intros Hd Hk Hb; apply fp16_safe_step; [exact Hd | lra | exact Hb]. Qed.

Theorem unsafe_beta_fp16_is_not : exists k, sq 16 k <= 1 /\ 2 < unsafe_beta_fp16 * sq 16 (fun i => fp16_round (k i)).
Proof. exact fp16_safe_step_sharp. Qed.

Theorem safe_beta_fp32_is_safe d k b : (Z.of_nat d <= 32768)%Z -> sq d k <= 1 -> 0 <= b <= safe_beta_fp32 ->
  0 <= b * sq d (fun i => fp32_round (k i)) <= 2.
Proof. intros Hd Hk Hb; apply fp32_safe_step; [exact Hd | lra | exact Hb]. Qed.

Theorem unsafe_beta_fp32_is_not : exists k, sq 16 k <= 1 /\ 2 < unsafe_beta_fp32 * sq 16 (fun i => fp32_round (k i)).
Proof. exact fp32_safe_step_sharp. Qed.

(** ** From where on a sigmoid rounds to 1, and the number of the input's format before it *)
Definition sigmoid_one_bf16 : R := 6.25.
Definition sigmoid_below_one_bf16 : R := 6.21875.
Definition sigmoid_one_fp16 : R := 8.3203125.
Definition sigmoid_below_one_fp16 : R := 8.3125.
Definition sigmoid_one_fp32 : R := 17.3286800384521484375.
Definition sigmoid_below_one_fp32 : R := 17.328678131103515625.
Definition sigmoid_one_bf16_to_fp32 : R := 17.375.
Definition sigmoid_below_one_bf16_to_fp32 : R := 17.25.

Theorem sigmoid_bf16_saturates x :
  (sigmoid_one_bf16 <= x -> bf16_round (sigmoid x) = 1) /\ (x <= sigmoid_below_one_bf16 -> bf16_round (sigmoid x) < 1).
Proof. exact (bf16_sigmoid_saturates x). Qed.

Theorem sigmoid_fp16_saturates x :
  (sigmoid_one_fp16 <= x -> fp16_round (sigmoid x) = 1) /\ (x <= sigmoid_below_one_fp16 -> fp16_round (sigmoid x) < 1).
Proof. exact (fp16_sigmoid_saturates x). Qed.

Theorem sigmoid_fp32_saturates x :
  (sigmoid_one_fp32 <= x -> fp32_round (sigmoid x) = 1) /\ (x <= sigmoid_below_one_fp32 -> fp32_round (sigmoid x) < 1).
Proof. exact (fp32_sigmoid_saturates x). Qed.

Theorem sigmoid_bf16_to_fp32_saturates x :
  (sigmoid_one_bf16_to_fp32 <= x -> fp32_round (sigmoid x) = 1) /\ (x <= sigmoid_below_one_bf16_to_fp32 -> fp32_round (sigmoid x) < 1).
Proof. exact (bf16_logit_fp32_sigmoid_saturates x). Qed.

(** ** What covers the rounding of the radius's own arithmetic *)
Definition radius_slack : R := 1.0000000000000142108547152020037174224853515625.

Theorem radius_slack_covers fl e : rounding_model fl (bpow radix2 (-53)) -> oracle_radius.given_ge0 e ->
  (oracle_radius.operations e <= 62)%nat -> oracle_radius.exact_value e <= fl (oracle_radius.computed_value fl e * radius_slack).
Proof. exact (oracle_radius.slack_covers fl e). Qed.

(** ** Ends of the intervals of stability *)
Definition limit_euler : R := 2.
Definition limit_rk2 : R := 2.
Definition limit_rk3 : R := 2.5127453266183286.
Definition limit_rk4 : R := 2.7852935634052813.

Theorem limit_euler_is_the_end :
  (forall x, 0 <= x <= limit_euler -> Rabs (stability.euler x) <= 1) /\ (forall x, limit_euler < x -> 1 < Rabs (stability.euler x)).
Proof. exact stability.euler_limit. Qed.

Theorem limit_rk2_is_the_end :
  (forall x, 0 <= x <= limit_rk2 -> Rabs (stability.rk2 x) <= 1) /\ (forall x, limit_rk2 < x -> 1 < Rabs (stability.rk2 x)).
Proof. exact stability.rk2_limit. Qed.

(** The double nearest to the constant is stable all the way from 0, the next one is not. *)
Theorem limit_rk3_is_the_end :
  Rabs (limit_rk3 - 5658199458317630 / 2^51) < / 2^52
  /\ (forall x, 0 <= x <= 5658199458317630 / 2^51 -> Rabs (stability.rk3 x) <= 1)
  /\ (forall x, 5658199458317631 / 2^51 <= x -> 1 < Rabs (stability.rk3 x)).
Proof. exact stability.rk3_limit. Qed.

Theorem limit_rk4_is_the_end :
  Rabs (limit_rk4 - 6271923527134733 / 2^51) < / 2^52
  /\ (forall x, 0 <= x <= 6271923527134733 / 2^51 -> Rabs (stability.rk4 x) <= 1)
  /\ (forall x, 6271923527134734 / 2^51 <= x -> 1 < Rabs (stability.rk4 x)).
Proof. exact stability.rk4_limit. Qed.
