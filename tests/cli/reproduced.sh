#!/bin/sh
# reproduced.sh PROGRAM STUDY THREADS: the committed findings of a study, made again, from the project's root.
set -eu
box=$(mktemp -d)
trap 'rm -rf "$box"' EXIT
"$1" study "$2" --threads "$3" -o "$box" > /dev/null
for kind in json md; do
  cmp "$box/$2.$kind" "reports/$2.$kind" || {
    diff "reports/$2.$kind" "$box/$2.$kind" | head -20
    echo "reports/$2.$kind is not what this program writes; if that is meant: ./run report, look, commit"
    exit 1
  }
done
