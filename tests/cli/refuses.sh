#!/bin/sh
# refuses.sh PROGRAM LIBRARY SPOILER: sound, it runs; spoiled, it must exit 2 and say what is wrong.
set -eu
SPOIL=none LD_PRELOAD=$2 "$1" list rules > /dev/null
code=0
output=$(SPOIL=$3 LD_PRELOAD=$2 "$1" list rules 2>&1) || code=$?
echo "$output"
[ "$code" = 2 ]
case $3 in
  ftz) expected=FTZ ;;
  daz) expected=DAZ ;;
  *) expected="rounding mode" ;;
esac
case $output in *"$expected"*) ;; *) echo "does not say '$expected'"; exit 1 ;; esac
