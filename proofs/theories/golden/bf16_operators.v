(* SPDX-FileCopyrightText: 2026 The deltaproof authors
   SPDX-License-Identifier: MIT *)

(** bf16 arithmetic on 16-bit patterns, from Flocq's verified IEEE 754 operators, extracted to OCaml.

    For the test that compares `rounded<bf16>` bit for bit: [add_bits], [mul_bits], [div_bits], [sqrt_bits] take and give stored
    patterns, [of_binary32_bits] rounds a binary32 pattern to bf16. The theorems say that on finite numbers each is the
    exact result rounded once to nearest even where that does not overflow, so the vectors mean what they ought to. Every
    NaN is the one pattern 0x7fc0, as in the C++ type.

    Not claimed: that the extraction mechanism and the OCaml compiler preserve meaning (they are trusted); overflow and
    signed zeros are Flocq's definitions, compared but not restated here. *)
From Coq Require Import Reals ZArith Lia Bool.
From Flocq Require Import Core BinarySingleNaN Binary Bits.
Open Scope Z_scope.

Definition bf16 := binary_float 8 128.
Definition prec_gt_0 : FLX.Prec_gt_0 8 := eq_refl.
Definition prec_lt_emax : Prec_lt_emax 8 128 := eq_refl.

Definition the_nan : { x : bf16 | is_nan 8 128 x = true }.
Proof. exists (B754_nan 8 128 false (2 ^ 6)%positive eq_refl). reflexivity. Defined.

Definition of_bits (z : Z) : bf16 := binary_float_of_bits 7 8 eq_refl eq_refl eq_refl z.
Definition to_bits (x : bf16) : Z := bits_of_binary_float 7 8 x.

Definition add (a b : bf16) : bf16 := Bplus 8 128 prec_gt_0 prec_lt_emax (fun _ _ => the_nan) mode_NE a b.
Definition mul (a b : bf16) : bf16 := Bmult 8 128 prec_gt_0 prec_lt_emax (fun _ _ => the_nan) mode_NE a b.
Definition div (a b : bf16) : bf16 := Bdiv 8 128 prec_gt_0 prec_lt_emax (fun _ _ => the_nan) mode_NE a b.
Definition sqrt (a : bf16) : bf16 := Bsqrt 8 128 prec_gt_0 prec_lt_emax (fun _ => the_nan) mode_NE a.

(** binary32 to bf16, rounded once. *)
Definition of_binary32 (x : binary32) : bf16 :=
  match x with
  | B754_nan _ _ _ _ _ => proj1_sig the_nan
  | B754_infinity _ _ s => B754_infinity 8 128 s
  | B754_zero _ _ s => B754_zero 8 128 s
  | B754_finite _ _ s m e _ => binary_normalize 8 128 prec_gt_0 prec_lt_emax mode_NE (cond_Zopp s (Zpos m)) e s
  end.

Definition add_bits (a b : Z) : Z := to_bits (add (of_bits a) (of_bits b)).
Definition mul_bits (a b : Z) : Z := to_bits (mul (of_bits a) (of_bits b)).
Definition div_bits (a b : Z) : Z := to_bits (div (of_bits a) (of_bits b)).
Definition sqrt_bits (a : Z) : Z := to_bits (sqrt (of_bits a)).
Definition of_binary32_bits (z : Z) : Z := to_bits (of_binary32 (b32_of_bits z)).

Local Open Scope R_scope.
Notation value := (B2R 8 128).
Notation nearest := (round radix2 (SpecFloat.fexp 8 128) ZnearestE).
Notation overflows x := (bpow radix2 128 <= Rabs x).

(** SpecFloat's exponents are those of the format in float/formats.v. *)
Lemma same_format e : SpecFloat.fexp 8 128 e = FLT_exp (-133) 8 e.
Proof. reflexivity. Qed.

Lemma rounded_once x : nearest x = round radix2 (FLT_exp (-133) 8) ZnearestE x.
Proof. reflexivity. Qed.

Theorem add_correct a b : is_finite 8 128 a = true -> is_finite 8 128 b = true -> ~ overflows (nearest (value a + value b)) ->
  value (add a b) = nearest (value a + value b).
Proof.
intros Ha Hb Ho. pose proof (Bplus_correct 8 128 prec_gt_0 prec_lt_emax (fun _ _ => the_nan) mode_NE a b Ha Hb) as H.
rewrite Rlt_bool_true in H by (apply Rnot_le_lt; exact Ho). apply H.
Qed.

Theorem mul_correct a b : is_finite 8 128 a = true -> is_finite 8 128 b = true -> ~ overflows (nearest (value a * value b)) ->
  value (mul a b) = nearest (value a * value b).
Proof.
intros Ha Hb Ho. pose proof (Bmult_correct 8 128 prec_gt_0 prec_lt_emax (fun _ _ => the_nan) mode_NE a b) as H.
rewrite Rlt_bool_true in H by (apply Rnot_le_lt; exact Ho). apply H.
Qed.

Theorem div_correct a b : value b <> 0 -> ~ overflows (nearest (value a / value b)) ->
  value (div a b) = nearest (value a / value b).
Proof.
intros Hb Ho. pose proof (Bdiv_correct 8 128 prec_gt_0 prec_lt_emax (fun _ _ => the_nan) mode_NE a b Hb) as H.
rewrite Rlt_bool_true in H by (apply Rnot_le_lt; exact Ho). apply H.
Qed.

Theorem sqrt_correct a : value (sqrt a) = nearest (R_sqrt.sqrt (value a)).
Proof. apply (Bsqrt_correct 8 128 prec_gt_0 prec_lt_emax (fun _ => the_nan) mode_NE a). Qed.

Theorem of_binary32_correct x : is_finite 24 128 x = true -> ~ overflows (nearest (B2R 24 128 x)) ->
  value (of_binary32 x) = nearest (B2R 24 128 x).
Proof.
intros Hx Ho; destruct x as [s|s|s pl Hpl|s m e He]; try discriminate Hx; cbn [of_binary32 B2R].
- cbn [B2R] in Ho. rewrite round_0 by apply valid_rnd_N. reflexivity.
- cbn [B2R] in Ho.
  pose proof (binary_normalize_correct 8 128 prec_gt_0 prec_lt_emax mode_NE (cond_Zopp s (Zpos m)) e s) as H.
  cbv zeta in H. rewrite Rlt_bool_true in H by (apply Rnot_le_lt; exact Ho). apply H.
Qed.

(** Examples on the patterns: 0.6015625^2, 1 + 2^-8 (a tie, to even), 1/3, sqrt 2, 0/0, overflow, and a binary32 tie. *)
Example golden_examples :
  (mul_bits 0x3f1a 0x3f1a = 0x3eb9 /\ add_bits 0x3f80 0x3b80 = 0x3f80 /\ div_bits 0x3f80 0x4040 = 0x3eab /\
   sqrt_bits 0x4000 = 0x3fb5 /\ div_bits 0 0 = 0x7fc0 /\ mul_bits 0x7f7f 0x4000 = 0x7f80 /\ of_binary32_bits 0x3f818000 = 0x3f82)%Z.
Proof. vm_compute; repeat split. Qed.
