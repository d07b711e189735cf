#!/bin/sh
# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
#
# check.sh [check|audit|golden] [FOLDER]: builds the theories in FOLDER (build/proofs unless given; the source tree stays as it is),
# audits what each statement assumes, runs Gappa, compares the thresholds and the golden vectors. Ends with a failure and a word
# on the first difference.
#   check    everything; what a reader runs, by way of `./run proofs`
#   audit    builds, then writes the assumptions found to proofs/audit/*.expected: read them before they are committed
#   golden   builds, then writes tests/proofs/bf16_golden.txt anew
# Needs Coq with mathcomp (algebra, algebra-tactics, analysis), Coquelicot, Flocq, Interval, Gappa: group `proofs` of packages.txt.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
verb=${1:-check}
built=${2:-$root/build/proofs}
folders="algebra ode float bridge golden"
sources=$root/proofs
vectors=$root/tests/proofs/bf16_golden.txt

fail() { printf 'proofs: FAILED: %s\n' "$*" >&2; exit 1; }
say() { printf 'proofs: %s\n' "$*"; }
case $verb in check|audit|golden) ;; *) fail "no verb $verb; there are check, audit, golden" ;; esac

command -v coqc > /dev/null || fail "coqc is not there (packages.txt, group proofs)"
libraries=$(coqc -where)/user-contrib
for library in mathcomp/algebra mathcomp/analysis mathcomp/algebra_tactics Coquelicot Flocq Interval Gappa; do
  [ -d "$libraries/$library" ] || fail "the Coq library $library is not there (packages.txt, group proofs)"
done
for tool in gappa make ocamlfind ocamlopt; do
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

# Every statement of a folder in one tuple, whose assumptions are printed at once.
statements() {
  sed -nE 's/^ *(Theorem|Lemma|Corollary|Proposition|Example|Fact|Remark) +([A-Za-z_][A-Za-z0-9_'"'"']*).*/\2/p' "$1"
}
all=0
for folder in $folders; do
  audit=audit/$folder.v
  {
    for file in theories/"$folder"/*.v; do
      [ -f "$file" ] || continue
      name=$(basename "$file" .v)
      echo "From deltaproof.$folder Require $name."
    done
    echo "Definition audited :="
    separator='('
    for file in theories/"$folder"/*.v; do
      [ -f "$file" ] || continue
      name=$(basename "$file" .v)
      for statement in $(statements "$file"); do
        echo "$separator @deltaproof.$folder.$name.$statement"
        separator=,
      done
    done
    echo ")."
    echo "Set Printing Width 100000."
    echo "Print Assumptions audited."
  } > "$audit"
  count=$(grep -c '@deltaproof' "$audit" || true)
  [ "$count" -gt 0 ] || fail "no statement in theories/$folder"
  all=$((all + count))
  coqc -q -w none -Q theories deltaproof "$audit" > "audit/$folder.printed" 2> "audit/$folder.log" ||
    { cat "audit/$folder.log" >&2; fail "the audit of $folder does not compile"; }
  LC_ALL=C sort "audit/$folder.printed" > "audit/$folder.found"
  if [ "$verb" = audit ]; then
    mkdir -p "$sources/audit"
    cp "audit/$folder.found" "$sources/audit/$folder.expected"
  fi
  diff -u "$sources/audit/$folder.expected" "audit/$folder.found" >&2 ||
    fail "the assumptions of $folder are not those of proofs/audit/$folder.expected"
  say "$folder: $count statements, $(grep -c ' : ' "audit/$folder.found" || true) assumptions, as expected"
done

# Each threshold stands in the statement it names.
rm -rf thresholds; mkdir thresholds
sed -n 's/[[:space:]]*#.*//; /=/p' "$sources/constants.txt" > thresholds/lines
{
  sed -E 's/.*= *deltaproof\.([a-z]+)\.([a-z0-9_]+)\..*/From deltaproof.\1 Require \2./' thresholds/lines | sort -u
  echo "From Coq Require Import Reals. Open Scope R_scope. Set Printing Width 100000."
  sed -E 's/^ *([A-Za-z0-9_]+) *=.*= *([A-Za-z0-9_.]+) *$/Redirect "thresholds\/\1" Check @\2./' thresholds/lines
} > thresholds/check.v
coqc -q -w none -Q theories deltaproof thresholds/check.v > thresholds/log 2>&1 ||
  { cat thresholds/log >&2; fail "a line of proofs/constants.txt names no theorem"; }
while read -r name _ value _ path; do
  escaped=$(printf '%s' "$value" | sed 's/[.]/[.]/g')
  grep -qE "(^|[^0-9.])$escaped([^0-9.]|\$)" "thresholds/$name.out" ||
    fail "proofs/constants.txt: $name = $value does not stand in the statement of $path"
done < thresholds/lines
say "$(wc -l < thresholds/lines) thresholds stand in the theorems they name"

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

sh "$root/tests/house/proof_index.sh" "$root" || fail "proofs/README.md, the theories and the tests disagree"
say "$all statements checked in $(($(date +%s) - start)) s"
