#!/bin/sh
# floors_selftest.sh FLOORS_SH: the check must fail on a planted upward include and pass without it.
set -eu
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/include/deltaproof/number" "$root/include/deltaproof/scan"
echo '#include "deltaproof/number/b.hpp"' > "$root/include/deltaproof/scan/a.hpp"
sh "$1" "$root"
echo '#include "deltaproof/scan/a.hpp"' > "$root/include/deltaproof/number/b.hpp"
if sh "$1" "$root"; then echo "an upward include went unseen"; exit 1; fi
