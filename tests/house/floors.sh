#!/bin/sh
# floors.sh ROOT: fails where a header of one floor includes a header of a later one.
set -eu
root=$1
floors="number algebra rule scan oracle kernel study"
bad=0
allowed=
for floor in $floors; do
  allowed="$allowed $floor"
  for header in "$root"/include/deltaproof/"$floor"/*.hpp; do
    [ -f "$header" ] || continue
    for included in $(sed -n 's|^#include "deltaproof/\([a-z_]*\)/.*|\1|p' "$header"); do
      case " $allowed " in
        *" $included "*) ;;
        *) echo "$header: floor $floor includes floor $included, which comes after it"; bad=1 ;;
      esac
    done
  done
done
exit $bad
