#!/bin/sh
# floors.sh ROOT: fails where a header of one floor includes a header of a later one, or a study the folder of another:
# what two studies use lies in src/studies/shared; or where bench/, which the tests do not build, includes what is not there.
set -eu
root=$1
floors="number algebra rule scan oracle kernel testing study"
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
for file in "$root"/src/studies/*.cpp $(find "$root/src/studies" -mindepth 2 -name '*.?pp' 2> /dev/null); do
  [ -f "$file" ] || continue
  study=${file#"$root/src/studies/"}
  study=${study%%[/.]*}
  for included in $(sed -n 's|^#include "studies/\([a-z_]*\)/.*|\1|p' "$file"); do
    case $included in
      "$study" | shared) ;;
      *) echo "$file: study $study includes the folder of study $included"; bad=1 ;;
    esac
  done
done
for file in "$root"/bench/*.?pp; do
  [ -f "$file" ] || continue
  for included in $(sed -n 's|^#include "\([^"]*\)".*|\1|p' "$file"); do
    [ -f "$root/include/$included" ] || [ -f "$root/src/$included" ] || [ -f "$root/$included" ] || {
      echo "$file: there is no $included"
      bad=1
    }
  done
done
exit $bad
