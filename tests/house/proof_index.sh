#!/bin/sh
# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
#
# proof_index.sh ROOT: every row of the index in proofs/README.md names statements that stand in proofs/theories, code that exists and a
# test that exists, or says "no test: reason"; every Theorem of proofs/theories has a row; every path of proofs/constants.txt is a statement;
# what a report or a verdict cites has a row.
# A row: | `folder.file.name`, ... | in words | `code/path.hpp`, ... | `tests/path.cpp: name`, ... | not claimed |
set -eu
root=$1
readme=$root/proofs/README.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
complain() { echo "proofs/README.md: $*"; bad=1; }

for file in "$root"/proofs/theories/*/*.v; do
  [ -f "$file" ] || continue
  folder=$(basename "$(dirname "$file")") name=$(basename "$file" .v)
  sed -nE 's/^ *(Theorem|Lemma|Corollary|Proposition|Example|Fact|Remark) +([A-Za-z_][A-Za-z0-9_'"'"']*).*/\1 '"$folder.$name"'.\2/p' "$file"
done > "$work/statements"
[ -s "$work/statements" ] || { echo "no statement in $root/proofs/theories"; exit 1; }
cut -d' ' -f2 "$work/statements" | sort > "$work/stated"

# Cells of the rows whose first cell is a name in backquotes; a row must have five cells.
sed 's/\\|/!/g' "$readme" | grep -nE '^\| *`[a-z_]+\.[a-z_0-9]+\.[A-Za-z_]' > "$work/rows" || { echo "proofs/README.md has no index"; exit 1; }
: > "$work/indexed"
while IFS= read -r row; do
  line=${row%%:*}
  cells=$(printf '%s' "${row#*:}" | awk -F'|' '{print NF - 2}')
  [ "$cells" = 5 ] || { complain "line $line has $cells cells, not 5"; continue; }
  cell() { printf '%s' "${row#*:}" | awk -F'|' -v n="$1" '{print $(n + 1)}'; }
  cell 1 | grep -oE '`[^`]+`' | tr -d '`' > "$work/names"
  while IFS= read -r name; do
    echo "$name" >> "$work/indexed"
    grep -qxF "$name" "$work/stated" || complain "line $line: no statement $name"
  done < "$work/names"
  cell 3 | grep -oE '`[^`]+/[^`]+`' | tr -d '`' > "$work/code" || true
  while IFS= read -r path; do
    [ -e "$root/$path" ] || [ -e "$root/include/deltaproof/$path" ] || [ -e "$root/src/$path" ] || complain "line $line: no file $path"
  done < "$work/code"
  tests=$(cell 4)
  case $tests in
    *'no test: '?*) continue ;;
  esac
  printf '%s' "$tests" | grep -oE '`[^`]+`' | tr -d '`' > "$work/tests" || true
  [ -s "$work/tests" ] || { complain "line $line: neither a test nor 'no test: reason'"; continue; }
  while IFS= read -r test; do
    path=${test%%: *} name=${test#*: }
    if [ ! -f "$root/$path" ]; then
      complain "line $line: no test file $path"
    elif [ "$name" = "$test" ] || ! grep -qw -e "$name" "$root/$path"; then
      complain "line $line: no test $name in $path"
    fi
  done < "$work/tests"
done < "$work/rows"

sort -u "$work/indexed" > "$work/index"
sed -n 's/^Theorem //p' "$work/statements" | sort > "$work/theorems"
for name in $(comm -23 "$work/theorems" "$work/index"); do complain "no row for the theorem $name"; done
for name in $(sed -nE 's/^[A-Za-z0-9_]+ *= .* = *deltaproof\.//p' "$root/proofs/constants.txt"); do
  grep -qxF "$name" "$work/stated" || { echo "proofs/constants.txt: no statement $name"; bad=1; }
done
# What reports and verdicts cite.
for name in $(cat "$root"/reports/*.json 2> /dev/null | sed -nE 's/.*"theorem": "([^"]+)".*/\1/p' | sort -u) \
  $(cat "$root"/src/kernel/check_views.cpp "$root"/src/studies/*.cpp "$root"/src/studies/*/*.cpp 2> /dev/null |
    grep -ohE '\b(algebra|ode|float|bridge)\.[a-z_]+\.[a-z][a-z0-9_]+' | sort -u); do
  grep -qxF "$name" "$work/index" || { echo "cited and not in the index: $name"; bad=1; }
done
[ "$bad" = 0 ] && echo "$(wc -l < "$work/index") statements in $(wc -l < "$work/rows") rows"
exit $bad
