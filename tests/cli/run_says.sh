#!/bin/sh
# run_says.sh ROOT: ./run says at its start how long test and report take, and from then on what the last whole run took. What it
# calls are stubs.
set -eu
root=$1
box=$(mktemp -d)
trap 'rm -rf "$box"' EXIT
mkdir -p "$box/stubs" "$box/cmake" "$box/build/release"
cp "$root/run" "$root/packages.txt" "$box"
cp "$root/cmake/durations.txt" "$box/cmake"
printf '#!/bin/sh\nprintf installed\n' > "$box/stubs/dpkg-query"
printf '#!/bin/sh\nexit 0\n' > "$box/stubs/cmake"
cp "$box/stubs/cmake" "$box/stubs/ctest"
cp "$box/stubs/cmake" "$box/build/release/deltaproof"
chmod +x "$box"/stubs/* "$box/build/release/deltaproof"
PATH=$box/stubs:$PATH
export PATH
for verb in test report; do
  said=$("$box/run" $verb -R some 2>&1)
  case $said in "run: $verb takes "[0-9]*" min on two cores"*) ;; *) echo "FAIL $verb begins with '$said'"; exit 1 ;; esac
  "$box/run" $verb 2> /dev/null
  said=$("$box/run" $verb 2>&1)
  case $said in "run: $verb took 0 min "[0-9]*" s the last time here") ;; *) echo "FAIL $verb, run once, begins with '$said'"; exit 1 ;; esac
done
[ "$(wc -l < "$box/build/durations")" = 2 ]
printf '#!/bin/sh\nexit 1\n' > "$box/stubs/ctest"
rm "$box/build/durations"
! "$box/run" test 2> /dev/null
[ ! -e "$box/build/durations" ]
