#!/bin/sh
# run.sh PYTHON ARGUMENT...: pytest with these arguments; exit 77 with a word where what the tests need is not there.
set -eu
python=$1
shift
for module in torch numpy pytest; do
  "$python" -c "import $module" 2>/dev/null || { echo "python: skipped, $python has no $module (packages.txt, line \`python\`)"; exit 77; }
done
status=0
"$python" -m pytest "$@" || status=$?
[ "$status" != 5 ] || exit 77  # nothing was collected: a module said why
exit "$status"
