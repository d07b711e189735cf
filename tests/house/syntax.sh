#!/bin/sh
# syntax.sh COMPILER ROOT EIGEN GENERATED headers|units|sources|questions, with the warnings of the build: every header alone, the
# units of which library and program are built, or every file alone (questions: of the studies and the checks of the claims;
# sources: all others).
set -eu
compiler=$1 root=$2 eigen=$3 generated=$4 what=$5
own=
flags="-std=c++20 -ffp-contract=off -Wall -Wextra -Wpedantic -Wconversion -Werror -I$root/include -I$root/src -isystem $eigen"
flags="$flags -DDELTAPROOF_VERSION=\"check\""
case $compiler in *clang*) ;; *) flags="$flags --param=ggc-min-heapsize=700000" ;; esac  # as the preset gcc has it
export GLIBC_TUNABLES=glibc.malloc.hugetlb=1  # the heap of clang in large pages takes less time
before=$(mktemp -d)
trap 'rm -rf "$before"' EXIT

# precompile NAME HEADER...: parsed once, and what templates make of them: most of the time goes into these.
precompile() {
  name=$1; shift
  printf '#include <%s>\n' "$@" > "$before/$name.hpp"
  # shellcheck disable=SC2086
  case $compiler in
    *clang*) "$compiler" $flags -fpch-instantiate-templates -x c++-header "$before/$name.hpp" -o "$before/$name.pch" ;;
    *) "$compiler" $flags -x c++-header "$before/$name.hpp" ;;
  esac
}

case $what in
  headers)
    # A header stands alone no less where what it includes anyway is parsed before it.
    sets="deltaproof/oracle/lower.hpp;deltaproof/study/report.hpp;deltaproof/plan/plan.hpp;deltaproof/files/exchange.hpp"
    sets="$sets;deltaproof/oracle/problem.hpp;deltaproof/number/scalar.hpp;boost/multiprecision/gmp.hpp;filesystem"
    sets="$sets;string vector span cmath optional memory;string vector span;string"
    flags="$flags -Wno-pragma-once-outside-header"
    number=0
    for set in $(printf '%s' "$sets" | tr ' ;' ', '); do
      number=$((number + 1))
      # shellcheck disable=SC2046
      precompile $number $(printf '%s' "$set" | tr , ' ')
    done
    find "$root/include" -name '*.hpp' -exec awk -v root="$root/include" -v sets="$sets" -v before="$before" \
      -f "$(dirname "$0")/headers.awk" {} + > "$before/files"
    flags="$flags -x c++" ;;
  units|sources|questions)
    case $what in
      units)
        own="deltaproof/check/check.hpp deltaproof/files/exchange.hpp deltaproof/plan/plan.hpp"  # most read these
        grep -o '"file": "[^"]*"' "$generated/../compile_commands.json" | cut -d'"' -f4 | sort -u |
          grep -e "^$root/src/" -e "^$generated/" -e '/Unity/' |
          grep -v -e '/deltaproof_\(checks\|research\)[.]dir/' -e '/src/stud' -e '/src/claims/' -e '/tests/' ;;
      sources) find "$root/src" "$generated" -name '*.cpp' ! -path '*/src/studies/*' ! -path '*/src/claims/*' ;;
      questions) find "$root/src/studies" "$root/src/claims" -name '*.cpp' ;;
    esac > "$before/files"
    # Not JSON, before which a file may define what it needs.
    # shellcheck disable=SC2086
    precompile all algorithm cmath functional map optional string vector boost/multiprecision/gmp.hpp \
      boost/multiprecision/mpfr.hpp $own
    case $compiler in
      *clang*) flags="-include-pch $before/all.pch $flags" ;;
      *) flags="-include $before/all.hpp $flags" ;;
    esac ;;
esac
[ -s "$before/files" ]
# shellcheck disable=SC2086
xargs -L 1 "$compiler" -fsyntax-only $flags < "$before/files"
