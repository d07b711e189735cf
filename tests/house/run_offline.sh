#!/bin/sh
# run_offline.sh ROOT: with apt-get and sudo replaced by traps, `run` must neither call them when every package is
# there, nor go on without root when one is missing.
set -eu
root=$1
box=$(mktemp -d)
trap 'rm -rf "$box"' EXIT
mkdir "$box/bin" "$box/project"
for trap_name in apt-get sudo; do
  printf '#!/bin/sh\necho "$0 was called" >&2\nexit 99\n' > "$box/bin/$trap_name"
done
printf '#!/bin/sh\nexit 0\n' > "$box/bin/cmake"
printf '#!/bin/sh\necho 1000\n' > "$box/bin/id"
printf '#!/bin/sh\ncase "$*" in *no-such-package*) exit 1 ;; *) printf installed ;; esac\n' > "$box/bin/dpkg-query"
chmod +x "$box"/bin/*
cp "$root/run" "$root/packages.txt" "$box/project/"
PATH="$box/bin:$PATH"
export PATH

output=$("$box/project/run" build 2>&1) || { echo "$output"; echo "build failed with nothing missing"; exit 1; }
case $output in *"was called"*) echo "$output"; exit 1 ;; esac

sed -i 's/^build  */build no-such-package /' "$box/project/packages.txt"
code=0
output=$("$box/project/run" build 2>&1) || code=$?
[ "$code" = 2 ] || { echo "$output"; echo "exit $code instead of 2"; exit 1; }
case $output in
  *"apt-get install no-such-package"*) ;;
  *) echo "$output"; echo "the missing package is not named"; exit 1 ;;
esac
