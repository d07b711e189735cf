#!/bin/sh
# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
#
# proof_index_selftest.sh PROOF_INDEX_SH: the check passes on a sound index and fails on each kind of unsound one.
set -eu
check=$1
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/proofs/theories/algebra" "$root/tests/scan" "$root/include/deltaproof/scan"
printf 'Theorem one : True.\nLemma two : True.\n' > "$root/proofs/theories/algebra/steps.v"
echo 'TEST(steps, one) {}' > "$root/tests/scan/steps_test.cpp"
echo > "$root/include/deltaproof/scan/steps.hpp"
sound='| `algebra.steps.one` | a \\| b | `scan/steps.hpp` | `tests/scan/steps_test.cpp: one` | more |'
constants='two = 2 = deltaproof.algebra.steps.two'
try() { printf "$1\n" > "$root/proofs/README.md"; echo "$2" > "$root/proofs/constants.txt"; sh "$check" "$root" > "$root/said"; }
refuse() { if try "$2" "$3"; then echo "unseen: $1"; exit 1; fi; }

try "$sound" "$constants" || { cat "$root/said"; exit 1; }
try '| `algebra.steps.one`, `algebra.steps.two` | words | | no test: a definition | |' "$constants" || { cat "$root/said"; exit 1; }
refuse "a theorem that is not stated" '| `algebra.steps.one`, `algebra.steps.three` | words | | no test: none | |' "$constants"
refuse "a theorem without a row" '| `algebra.steps.two` | words | | no test: none | |' "$constants"
refuse "a test that is not there" '| `algebra.steps.one` | words | | `tests/scan/steps_test.cpp: two` | |' "$constants"
refuse "a test file that is not there" '| `algebra.steps.one` | words | | `tests/scan/other_test.cpp: one` | |' "$constants"
refuse "code that is not there" '| `algebra.steps.one` | words | `scan/other.hpp` | no test: none | |' "$constants"
refuse "neither a test nor a reason" '| `algebra.steps.one` | words | | | |' "$constants"
refuse "a row of four cells" '| `algebra.steps.one` | words | | no test: none |' "$constants"
mkdir -p "$root/reports"
echo '"theorem": "algebra.steps.four"' > "$root/reports/a.json"
refuse "a report that cites what is not there" "$sound" "$constants"
rm "$root/reports/a.json"
refuse "a constant of no theorem" "$sound" 'two = 2 = deltaproof.algebra.steps.four'
