#!/bin/sh
# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
#
# check.sh [check|audit|golden|selftest] [FOLDER]: builds the theories in FOLDER (build/proofs unless given; the source tree stays as
# it is), compares what they state, define and assume with proofs/audit, runs Gappa, compares the golden vectors, and shows that
# planted edits are seen. Ends with a failure and a word on the first difference.
#   check    everything; what a reader runs, by way of `./run proofs`
#   audit    builds, then writes what was found to proofs/audit: read the difference before it is committed
#   selftest builds, then plants the edits alone (proofs/audit_selftest.py)
#   golden   builds, then writes tests/proofs/bf16_golden.txt anew
# Needs Python 3, and Coq with mathcomp (algebra, algebra-tactics, analysis), Coquelicot, Flocq, Interval, Gappa: group `proofs` of
# packages.txt.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
verb=${1:-check}
built=${2:-$root/build/proofs}
folders="algebra ode float bridge golden code"
sources=$root/proofs
vectors=$root/tests/proofs/bf16_golden.txt

fail() { printf 'proofs: FAILED: %s\n' "$*" >&2; exit 1; }
say() { printf 'proofs: %s\n' "$*"; }
case $verb in check|audit|golden|selftest) ;; *) fail "no verb $verb; there are check, audit, golden, selftest" ;; esac

command -v coqc > /dev/null || fail "coqc is not there (packages.txt, group proofs)"
libraries=$(coqc -where)/user-contrib
for library in mathcomp/algebra mathcomp/analysis mathcomp/algebra_tactics Coquelicot Flocq Interval Gappa; do
  [ -d "$libraries/$library" ] || fail "the Coq library $library is not there (packages.txt, group proofs)"
done
for tool in gappa make ocamlfind ocamlopt python3; do
  command -v $tool > /dev/null || fail "$tool is not there (packages.txt, group proofs)"
done

mkdir -p "$built/theories" "$built/audit"
built=$(cd "$built" && pwd)
exec 9> "$built/lock"
flock 9
start=$(date +%s)

# A copy that changes only where the source did; what the source no longer has goes.
cd "$sources"
for folder in $folders; do mkdir -p "$built/theories/$folder"; done
for file in theories/*/*.v; do
  cmp -s "$file" "$built/$file" || cp "$file" "$built/$file"
done
cd "$built"
for file in theories/*/*.v; do
  [ -f "$sources/$file" ] || rm -f "${file%.v}".*
done

# Nothing is taken on trust; the audit below would see it too, where a statement uses it.
if grep -nwE 'Admitted|admit|give_up|Admit|Axiom|Axioms|Parameter|Parameters|Conjecture|Abort|bypass_check|type_in_type' theories/*/*.v ||
  grep -nE 'Unset +(Guard|Positivity|Universe)' theories/*/*.v; then
  fail "a statement is not proved, or a check of the kernel is switched off (lines above)"
fi

coq_makefile -Q theories deltaproof -arg -w -arg none -o Makefile.coq theories/*/*.v > /dev/null
nice -n 5 make -s -f Makefile.coq -j2 > make.log 2>&1 || { tail -n 30 make.log >&2; fail "a theory does not compile (full log: $built/make.log)"; }
say "$(printf '%s\n' theories/*/*.v | wc -l) theories compile"

index=$root/tests/house/proof_index.py
if [ "$verb" = audit ]; then
  python3 "$sources/audit.py" write "$root" "$built" || fail "the audit finds what may not be committed (lines above)"
  python3 "$index" write "$root"
fi
# The index first: it takes no time.
python3 "$index" check "$root" || fail "proofs/README.md, the theories, the code and the tests disagree"
case $verb in
  check|golden)
    python3 "$sources/audit.py" check "$root" "$built" || fail "what the theories say is not what proofs/audit has (lines above)" ;;
esac
python3 "$sources/audit_selftest.py" "$root" "$built" || fail "a planted edit is not seen (lines above)"
if [ "$verb" = selftest ]; then exit 0; fi

for script in "$sources"/gappa/*.g; do
  gappa "$script" > gappa.log 2>&1 || { cat gappa.log >&2; fail "Gappa does not prove $(basename "$script")"; }
done
say "Gappa proves $(printf '%s\n' "$sources"/gappa/*.g | wc -l) scripts"

rm -rf vectors; mkdir vectors
[ -f bf16_operators.ml ] || { rm -f theories/golden/extraction.vo; make -s -f Makefile.coq > make.log 2>&1; }
cp bf16_operators.ml bf16_operators.mli "$sources/golden/print_vectors.ml" vectors/
(cd vectors && ocamlfind ocamlopt -w -a bf16_operators.mli bf16_operators.ml print_vectors.ml -o print_vectors && ./print_vectors > bf16_golden.txt) ||
  fail "the golden vectors cannot be made"
[ "$verb" != golden ] || cp vectors/bf16_golden.txt "$vectors"
cmp vectors/bf16_golden.txt "$vectors" || fail "tests/proofs/bf16_golden.txt is not what the verified operators give"
say "the golden vectors are those of the verified operators"

say "all checked in $(($(date +%s) - start)) s"
