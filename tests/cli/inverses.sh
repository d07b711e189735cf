#!/bin/sh
# inverses.sh PROGRAM ROOT [OPTION...]: the suite of examples/inverses-of-2026 comes out as it says.
set -eu
program=$1 root=$2
shift 2
box=$(mktemp -d)
trap 'rm -rf "$box"' EXIT
"$root/examples/inverses-of-2026/make.sh" "$program" "$box"
"$program" check "$box/suite.toml" "$@"
