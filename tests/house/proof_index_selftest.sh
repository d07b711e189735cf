#!/bin/sh
# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
#
# proof_index_selftest.sh PROOF_INDEX_PY: the check passes on a sound index and fails on each kind of unsound one.
set -eu
check=$1
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/proofs/theories/algebra" "$root/proofs/audit/statements" "$root/tests/scan" "$root/include/deltaproof/scan" "$root/reports"
printf 'Theorem one : True.\nLemma two : True.\n' > "$root/proofs/theories/algebra/steps.v"
echo 'TEST(steps, one) {}' > "$root/tests/scan/steps_test.cpp"
printf 'int steps();\n// proved: algebra.steps.one\n' > "$root/include/deltaproof/scan/steps.hpp"
echo 'int other();' > "$root/include/deltaproof/scan/other.hpp"
echo '{"findings": [{"id": "a-claim"}]}' > "$root/reports/all.json"
used='`scan/steps.hpp: steps`, claim a-claim of reports/all.md'
sound="| \`algebra.steps.one\` | a \\\\| b | $used | \`tests/scan/steps_test.cpp: one\` | more |"
words="words: a \\\\| b\nused by: $used\nnot claimed: more"
told="statement algebra.steps.one [00]\n$words\n  True\n\nstatement algebra.steps.two [00]\n  True"
kept="definition code.constants.four [00]\n  constants.four = 4\n       : R\n"
kept="$kept\nstatement code.constants.four_is [00]\n  constants.four = 2 + 2"
constants='four = 4 = deltaproof.code.constants.four_is'
say() { printf '%b\n' "$2" > "$root/proofs/$1"; }
restore() {
  say README.md "$sound"
  say constants.txt "$constants"
  say audit/statements/algebra.steps.txt "$told"
  say audit/statements/code.constants.txt "$kept"
}
try() { python3 -B "$check" check "$root" > "$root/said"; }
refuse() { if try; then echo "unseen: $1"; exit 1; fi; restore; }
refuse_row() { say README.md "$2"; refuse "$1"; }

restore
try || { cat "$root/said"; exit 1; }
refuse_row "a theorem that is not stated" "| \`algebra.steps.one\`, \`algebra.steps.three\` | a \\\\| b | $used | no test: none | more |"
refuse_row "a theorem without a row" "| \`algebra.steps.two\` | words | | no test: none | |"
refuse_row "two rows for a theorem" "$sound\n$sound"
refuse_row "a test that is not there" "| \`algebra.steps.one\` | a \\\\| b | $used | \`tests/scan/steps_test.cpp: two\` | more |"
refuse_row "a test file that is not there" "| \`algebra.steps.one\` | a \\\\| b | $used | \`tests/scan/other_test.cpp: one\` | more |"
refuse_row "neither a test nor a reason" "| \`algebra.steps.one\` | a \\\\| b | $used | | more |"
refuse_row "a row of four cells" "| \`algebra.steps.one\` | a \\\\| b | $used | no test: none |"
refuse_row "other words" "| \`algebra.steps.one\` | a \\\\| c | $used | no test: none | more |"
refuse_row "a gap not named" "| \`algebra.steps.one\` | a \\\\| b | $used | no test: none | |"

# "Used by", where the words beside the statement say the same: the code decides.
refuse_use() { # WHAT CELL
  say README.md "| \`algebra.steps.one\` | a \\\\| b | $2 | no test: none | more |"
  say audit/statements/algebra.steps.txt \
    "statement algebra.steps.one [00]\nwords: a \\\\| b\nused by: $2\nnot claimed: more\n  True\n\nstatement algebra.steps.two [00]\n  True"
  refuse "$1"
}
refuse_use "code that is not there" '`scan/third.hpp`, `scan/steps.hpp`'
refuse_use "code that does not name the theorem" '`scan/other.hpp`, `scan/steps.hpp`'
refuse_use "a symbol that is not there" '`scan/steps.hpp: stairs`'
refuse_use "code that names a theorem in vain" '`scan/other.hpp`'
refuse_use "a claim that is not made" '`scan/steps.hpp`, claim another of reports/all.md'

echo '{"theorem": "algebra.steps.four"}' > "$root/reports/a.json"
refuse "a report that cites what is not there"
rm "$root/reports/a.json"
say constants.txt 'four = 4 = deltaproof.code.constants.five_is'; refuse "a constant of no theorem"
say constants.txt 'four = 5 = deltaproof.code.constants.four_is'; refuse "a constant of another value"
say constants.txt ''; refuse "a constant left out"
say constants.txt "$constants\nfive = 4 = deltaproof.code.constants.four_is"; refuse "a constant of no theory"
try || { cat "$root/said"; exit 1; }
