#!/bin/sh
# formatted.sh CLANG_FORMAT ROOT: every C++ file of the project is as clang-format leaves it (`./run format`); and the check sees one
# that is not.
set -eu
format=$1 root=$2
cd "$root"
find include src tests bench examples python -name '*.cpp' -o -name '*.hpp' -o -name '*.inc' |
  xargs -P 2 -n 40 "$format" --dry-run -Werror
planted=$(mktemp -d)
trap 'rm -rf "$planted"' EXIT
cp .clang-format "$planted"
echo 'int  f( );' > "$planted/f.cpp"
if "$format" --dry-run -Werror "$planted/f.cpp" 2> "$planted/said"; then echo "an unformatted file went unseen"; exit 1; fi
