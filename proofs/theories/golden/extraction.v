(* SPDX-FileCopyrightText: 2026 The deltaproof authors
   SPDX-License-Identifier: MIT *)

(** Writes bf16_operators.ml, the verified operators as OCaml, into the folder of the build; golden/print_vectors.ml links
    with it. Only booleans, options, pairs and lists become OCaml's own: integers stay Coq's, so that no hand-made
    arithmetic is trusted. Nothing is stated here. *)
From Coq Require Extraction ExtrOcamlBasic.
From deltaproof.golden Require Import bf16_operators.

Extraction "bf16_operators.ml" add_bits mul_bits div_bits sqrt_bits of_binary32_bits.
