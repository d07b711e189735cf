#!/bin/sh
# floors_selftest.sh FLOORS_SH: the check must fail on a planted upward include, and on one of a study's folder from
# another study, and on a bench of what is gone, and pass without them.
set -eu
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/include/deltaproof/number" "$root/include/deltaproof/scan" "$root/src/studies/one" "$root/src/studies/shared"
echo '#include "deltaproof/number/b.hpp"' > "$root/include/deltaproof/scan/a.hpp"
echo '#include "studies/shared/a.hpp"' > "$root/src/studies/one/parts.hpp"
echo '#include "studies/one/parts.hpp"' > "$root/src/studies/one.cpp"
sh "$1" "$root"
for file in two.cpp shared/a.hpp; do
  echo '#include "studies/one/parts.hpp"' > "$root/src/studies/$file"
  if sh "$1" "$root"; then echo "the folder of another study in $file went unseen"; exit 1; fi
  rm "$root/src/studies/$file"
done
sh "$1" "$root"
mkdir "$root/bench"
echo '#include "studies/one/gone.hpp"' > "$root/bench/one.cpp"
if sh "$1" "$root"; then echo "a bench of what is gone went unseen"; exit 1; fi
echo '#include "studies/one/parts.hpp"' > "$root/bench/one.cpp"
sh "$1" "$root"
echo '#include "deltaproof/scan/a.hpp"' > "$root/include/deltaproof/number/b.hpp"
if sh "$1" "$root"; then echo "an upward include went unseen"; exit 1; fi
