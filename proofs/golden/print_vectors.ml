(* SPDX-FileCopyrightText: 2026 The deltaproof authors
   SPDX-License-Identifier: MIT *)

(* Prints tests/proofs/bf16_golden.txt: the results of the extracted bf16 operators, 16 bits each, in base 64. The operands
   are not printed: they follow from the rule below, which tests/proofs/golden_test.cpp repeats.

   Words. mix (x) of 32 bits: x ^= x >> 16; x *= 0x9e3779b1; x ^= x >> 15; x *= 0x85ebca77; x ^= x >> 13. Case i of the operation
   numbered n (add 0, mul 1, div 2, sqrt 3, round 4) has w0 = mix (n 2^24 + 2 i) and w1 = mix (n 2^24 + 2 i + 1),
   mode = (w1 >> 16) & 3 and r = (w1 >> 18) & 31.
   First all specials: for add, mul, div all ordered pairs, for sqrt each, for round each followed by each of six low halves.
   Then the hashed ones. a = w0 & 0xffff, e its biased exponent. b = w1 & 0xffff in mode 0, else its exponent is replaced by
     add: e + r - 16                      (alignment and cancellation)
     mul: t + 127 - e, div: e + 127 - t   (t, the exponent of the result: r - 16 in mode 1, r + 240 in mode 2, r + 111 in mode 3)
   clamped to 0 ... 255. sqrt: the sign of a is cleared unless mode is 0. round: w0 in mode 0, its low half replaced by
   0x8000 in mode 1 (ties) and by 0x8000 + r - 16 in mode 2, its exponent by 0 or 254 as r is even or odd in mode 3. *)

open Bf16_operators

let specials =
  let positive =
    [ 0x0000; 0x0001; 0x0002; 0x0003; 0x0040; 0x007f; 0x0080; 0x0081; 0x00ff; 0x0100; 0x1f80; 0x3b00; 0x3b80; 0x3c00; 0x3eab; 0x3f00;
      0x3f7f; 0x3f80; 0x3f81; 0x3fb5; 0x3fff; 0x4000; 0x4040; 0x4300; 0x4380; 0x5f80; 0x7f00; 0x7f7f; 0x7f80; 0x7f81; 0x7fc0; 0x7fff ]
  in
  Array.of_list (positive @ List.map (fun x -> x lor 0x8000) positive)

let low_halves = [| 0x0000; 0x0001; 0x7fff; 0x8000; 0x8001; 0xffff |]

let mix x =
  let mask = 0xffffffff in
  let x = x lxor (x lsr 16) in
  let x = x * 0x9e3779b1 land mask in
  let x = x lxor (x lsr 15) in
  let x = x * 0x85ebca77 land mask in
  x lxor (x lsr 13)

let clamp e = max 0 (min 255 e)

type operation = { name : string; number : int; hashed : int; apply : int -> int -> int }

let second number a w1 =
  let mode = (w1 lsr 16) land 3 and r = (w1 lsr 18) land 31 in
  if mode = 0 then w1 land 0xffff
  else
    let e = (a lsr 7) land 255 in
    let target = match mode with 1 -> r - 16 | 2 -> r + 240 | _ -> r + 111 in
    let exponent = match number with 0 -> e + r - 16 | 1 -> target + 127 - e | _ -> e + 127 - target in
    w1 land 0x807f lor (clamp exponent lsl 7)

let word w0 w1 =
  let mode = (w1 lsr 16) land 3 and r = (w1 lsr 18) land 31 in
  match mode with
  | 0 -> w0
  | 1 -> w0 land 0xffff0000 lor 0x8000
  | 2 -> w0 land 0xffff0000 lor (0x8000 + r - 16)
  | _ -> w0 land 0x807fffff lor ((if r land 1 = 0 then 0 else 254) lsl 23)

let rec positive n = if n = 1 then XH else if n land 1 = 0 then XO (positive (n lsr 1)) else XI (positive (n lsr 1))
let to_z n = if n = 0 then Z0 else Zpos (positive n)
let rec of_positive = function XH -> 1 | XO p -> 2 * of_positive p | XI p -> (2 * of_positive p) + 1
let of_z = function Z0 -> 0 | Zpos p -> of_positive p | Zneg _ -> failwith "a pattern is not negative"

let two f a b = of_z (f (to_z a) (to_z b))
let one f a _ = of_z (f (to_z a))

let operations =
  [ { name = "add"; number = 0; hashed = 27000; apply = two add_bits };
    { name = "mul"; number = 1; hashed = 25000; apply = two mul_bits };
    { name = "div"; number = 2; hashed = 22000; apply = two div_bits };
    { name = "sqrt"; number = 3; hashed = 6000; apply = one sqrt_bits };
    { name = "round"; number = 4; hashed = 10000; apply = one of_binary32_bits } ]

let each_special op f =
  match op.number with
  | 3 -> Array.iter (fun a -> f a 0) specials
  | 4 -> Array.iter (fun a -> Array.iter (fun low -> f ((a lsl 16) lor low) 0) low_halves) specials
  | _ -> Array.iter (fun a -> Array.iter (fun b -> f a b) specials) specials

let each_hashed op f =
  for i = 0 to op.hashed - 1 do
    let w0 = mix ((op.number lsl 24) + (2 * i)) and w1 = mix ((op.number lsl 24) + (2 * i) + 1) in
    match op.number with
    | 3 -> f (if (w1 lsr 16) land 3 = 0 then w0 land 0xffff else w0 land 0x7fff) 0
    | 4 -> f (word w0 w1) 0
    | n ->
        let a = w0 land 0xffff in
        f a (second n a w1)
  done

let digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

(* Three results are eight digits, the first result first; the last group is filled with zeros. *)
let print_results results =
  let column = ref 0 in
  let rec go = function
    | [] -> ()
    | results ->
        let take = function [] -> (0, []) | x :: rest -> (x, rest) in
        let x, rest = take results in
        let y, rest = take rest in
        let z, rest = take rest in
        let bits = (x lsl 32) lor (y lsl 16) lor z in
        for i = 7 downto 0 do
          print_char digits.[(bits lsr (6 * i)) land 63]
        done;
        column := !column + 8;
        if !column = 120 then (print_newline (); column := 0);
        go rest
  in
  go results;
  if !column > 0 then print_newline ()

let () =
  print_string "# bf16 results of the verified operators; operands and encoding: proofs/golden/print_vectors.ml\n";
  List.iter
    (fun op ->
      let results = ref [] in
      let keep a b = results := op.apply a b :: !results in
      each_special op keep;
      each_hashed op keep;
      Printf.printf "%s %d\n" op.name (List.length !results);
      print_results (List.rev !results))
    operations
