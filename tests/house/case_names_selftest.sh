#!/bin/sh
# case_names_selftest.sh CASE_NAMES_SH: the check must see a case in a source, in a page that escapes it and in a report's name, and a
# case that it has no name of; and pass without them, whatever stands in tests/.
set -eu
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/src" "$root/reports" "$root/tests"
echo 'gdn_gva_bf16' > "$root/tests/one.cpp"
echo 'the gva of gdn' > "$root/src/one.cpp"
printf ' {\n  "case": "gdn_gva_bf16",\n  "case": "delta_fp32_recur",\n' > "$root/index.json"
sh "$1" "$root" "$root/index.json"
for planted in src/two.cpp:gdn_gva_bf16 reports/page.md:'gdn\_gva\_bf16' reports/own.json:gdn-gva README.md:delta_fp32_recur; do
  echo "${planted#*:}" > "$root/${planted%%:*}"
  if sh "$1" "$root"; then echo "$planted went unseen"; exit 1; fi
  rm "$root/${planted%%:*}"
done
echo '  "case": "delta_unheard_of_bf16",' >> "$root/index.json"
if sh "$1" "$root" "$root/index.json"; then echo "a case without a name in the list went unseen"; exit 1; fi
