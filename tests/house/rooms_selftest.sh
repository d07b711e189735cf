#!/bin/sh
# rooms_selftest.sh PYTHON ROOMS_PY: the check must fail, with file and line, on each planted include and pass without it.
set -eu
python=$1 check=$2
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/include/deltaproof/number" "$root/include/deltaproof/scan" "$root/src/scan/parts" "$root/src/claims" \
  "$root/src/study" "$root/src/studies/one" "$root/src/studies/shared" "$root/bench"
put() { # put FILE [INCLUDED]: a file of two lines, the second an include
  { echo '// a comment'; [ $# -lt 2 ] || echo "#include \"$2\""; } > "$root/$1"
}
put include/deltaproof/number/low.hpp
put include/deltaproof/scan/high.hpp deltaproof/number/low.hpp
put src/scan/up.hpp deltaproof/scan/high.hpp
put src/scan/parts/down.hpp
put src/claims/row.hpp
put src/claims/rows.inc
put src/studies/shared/a.hpp
put src/studies/one/parts.hpp studies/shared/a.hpp
put src/studies/one.cpp studies/one/parts.hpp
put bench/one.cpp studies/one/parts.hpp
"$python" "$check" "$root"
expect() { # expect FILE INCLUDED WORDS: the include in line 2 of FILE is seen and named; without it all is well
  cp "$root/$1" "$root/before" 2> /dev/null || rm -f "$root/before"
  put "$1" "$2"
  if said=$("$python" "$check" "$root"); then echo "$1 may include $2"; exit 1; fi
  case $said in *"/$1:2: "*"$2"*"$3"*) ;; *) echo "$1 includes $2, and it says: $said"; exit 1 ;; esac
  if [ -f "$root/before" ]; then mv "$root/before" "$root/$1"; else rm "$root/$1"; fi
  "$python" "$check" "$root"
}
expect include/deltaproof/number/low.hpp deltaproof/scan/high.hpp "room number may not include room scan"
expect src/scan/new.cpp claims/row.hpp "room scan may not include room claims"
expect src/study/new.cpp claims/rows.inc "room study may not include room claims"
expect src/claims/new.cpp studies/shared/a.hpp "room claims may not include room studies"
put src/scan/new.cpp scan/parts/down.hpp
expect src/scan/parts/down.hpp scan/up.hpp "src/scan/parts and src/scan include each other"
expect src/studies/two.cpp studies/one/parts.hpp "study two includes the folder of study one"
expect src/studies/shared/b.hpp studies/one/parts.hpp "study shared includes the folder of study one"
put src/scan/parts/deep.hpp
expect src/claims/other.cpp scan/parts/deep.hpp "a private header of room scan"
expect bench/two.cpp studies/one/gone.hpp "which is not there"
mkdir "$root/src/cellar"
put src/cellar/new.cpp
if "$python" "$check" "$root" > "$root/said" || ! grep -q "new.cpp:.*no room cellar" "$root/said"; then
  echo "a folder that is no room went unseen"
  exit 1
fi
