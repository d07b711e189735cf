#!/bin/sh
# syntax.sh COMPILER ROOT EIGEN GENERATED headers|units|sources|questions, with the warnings of the build: every header alone, the
# units of which library and program are built, or every file alone (questions: of the studies and the checks of the claims;
# sources: all others).
set -eu
compiler=$1 root=$2 eigen=$3 generated=$4 what=$5
flags="-std=c++20 -fsyntax-only -ffp-contract=off -Wall -Wextra -Wpedantic -Wconversion -Werror -I$root/include -I$root/src -isystem $eigen"
flags="$flags -DDELTAPROOF_VERSION=\"check\""
case $what in
  headers) files=$(find "$root/include" -name '*.hpp'); flags="-x c++ -Wno-pragma-once-outside-header $flags" ;;
  units|sources|questions)
    own=
    case $what in
      units) own=deltaproof/deltaproof.hpp files=$(grep -o '"file": "[^"]*"' "$generated/../compile_commands.json" | cut -d'"' -f4 | sort -u |
        grep -e "^$root/src/" -e "^$generated/" -e '/Unity/' | grep -v -e '/deltaproof_research[.]dir/' -e '/src/stud' -e '/src/claims/' -e '/tests/') ;;
      sources) files=$(find "$root/src" "$generated" -name '*.cpp' ! -path '*/src/studies/*' ! -path '*/src/claims/*') ;;
      questions) files=$(find "$root/src/studies" "$root/src/claims" -name '*.cpp') ;;
    esac
    # Parsed once, and what templates make of them: most of the time goes into these. Our own headers only before units, which
    # need not stand alone; JSON never: a file may define what it needs before it.
    before=$(mktemp -d)
    trap 'rm -rf "$before"' EXIT
    # shellcheck disable=SC2086
    printf '#include <%s>\n' algorithm cmath functional map optional string vector \
      boost/multiprecision/gmp.hpp boost/multiprecision/mpfr.hpp $own > "$before/first.hpp"
    # shellcheck disable=SC2086
    "$compiler" ${flags%%-fsyntax-only*}${flags#*-fsyntax-only} -fpch-instantiate-templates -x c++-header "$before/first.hpp" -o "$before/first.pch"
    flags="-include-pch $before/first.pch $flags" ;;
esac
[ -n "$files" ]
# shellcheck disable=SC2086
printf '%s\n' $files | xargs -P 2 -I{} "$compiler" $flags {}
