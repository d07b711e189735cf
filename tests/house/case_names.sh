#!/bin/sh
# case_names.sh ROOT [INDEX]: fails where a case of the shared recordings is named outside tests/, so that nothing but a test can know
# one; or where INDEX, that of the shared recordings, has a case which is not in the list below.
set -eu
root=$1
index=${2:-}
names="delta_beta2 delta_collinear delta_efla delta_fp32_recur delta_normal delta_rawk_blowup delta_tail delta_varlen
gdn_gva gdn_normal gdn_varlen gdn_zero_gate gdp_n2 kda_normal kda_safe_gate_abuse kda_varlen"
bad=0
# Joined as files are, as the names of reports are, and as Markdown escapes it.
pattern=$(echo $names | sed 's/_/(\\\\?_|-)/g; s/ /|/g')
for place in src include python schemas examples bench cmake docs proofs reports README.md CONTRIBUTING.md CHANGELOG.md run; do
  [ -e "$root/$place" ] || continue
  grep -rHnIiEo --exclude-dir=__pycache__ "$pattern" "$root/$place" && bad=1
done
[ $bad = 0 ] || echo "a case of the shared recordings is named outside tests/"
if [ -f "$index" ]; then
  for name in $(sed -n 's/^ *"case": "\([^"]*\)".*/\1/p' "$index"); do
    case " $(echo $names) " in
      *" ${name%_*16} "* | *" $name "*) ;;
      *) echo "$index: $name is not in the list of $0"; bad=1 ;;
    esac
  done
fi
exit $bad
