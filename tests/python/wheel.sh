#!/bin/sh
# wheel.sh PYTHON SOURCE [ADAPTER...]: builds a wheel, installs it into a fresh environment and judges a recording there with nothing
# else in reach: no compiler, no torch, no numpy. A witness of it is judged by the program that came along. Then the ten lines of the
# docs run with it in an environment for each public package (ecosystems.py). What is not of this project comes from a package index,
# exit 77 with a word without one.
set -eu
python=$1
source=$2
shift 2
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
"$python" -m venv "$place/venv" || { echo "wheel: skipped, $python cannot make an environment (python3-venv)"; exit 77; }
mkdir "$place/backend"
"$place/venv/bin/pip" download -q -d "$place/backend" scikit-build-core pybind11 || { echo "wheel: skipped, no package index"; exit 77; }
PIP_NO_INDEX=1 PIP_FIND_LINKS=$place/backend "$place/venv/bin/pip" wheel -q --no-deps -w "$place/wheel" "$source"
"$place/venv/bin/pip" install -q --no-index "$place"/wheel/deltaproof-*.whl
env -i PATH=/nonexistent "$place/venv/bin/python" - "$source/tests/recordings/beta_near_two" <<'EOT'
import sys
import deltaproof
verdict = deltaproof.check(sys.argv[1] + ".problem.safetensors", sys.argv[1] + ".chunk.safetensors", power=False)
print(verdict)
problem = next(deltaproof.cases("delta_rule", "typical", T=16, K=8, V=8, to=None)).problem
assert verdict.require() and deltaproof.oracle(problem, to=None).o.dtype == "F64"
EOT
cd "$place"
program=$place/venv/bin/deltaproof
case $("$program" --version) in "deltaproof "[0-9]*) ;; *) echo "the wheel's program does not run"; exit 1 ;; esac
# A failure where the kernel's tests run: the printed command runs there.
env -i PATH="$place/venv/bin:/usr/bin:/bin" "$place/venv/bin/python" - "$source/tests/recordings/steep_gates" <<'EOT'
import subprocess
import sys
import deltaproof
verdict = deltaproof.check(sys.argv[1] + ".problem.safetensors", sys.argv[1] + ".chunk.safetensors", power=False, witness="w")
assert verdict.word == "refuted", verdict
[printed] = [line.partition("; ")[2].rpartition("; ")[2] for line in verdict.text.splitlines() if line.startswith("note ") and "witness w" in line]
assert printed == "deltaproof replay w", printed
again = subprocess.run(printed, shell=True, capture_output=True, text=True)
assert again.returncode == 1 and again.stdout.startswith("replay       reproduced"), again
module = subprocess.run([sys.executable, "-m", "deltaproof", "replay", "w"], capture_output=True, text=True)
assert (module.returncode, module.stdout) == (1, again.stdout), module
EOT
# What a wheel leaves out is said.
for words in "report -o x" "study eigenvalues" "list studies"; do
  code=0
  # shellcheck disable=SC2086
  said=$("$program" $words 2>&1) || code=$?
  case $code,$said in 2,*"not in this build: the program of the Python package has no studies"*"./run build"*) ;; *) echo "deltaproof $words: $said"; exit 1 ;; esac
done
"$program" list plans | grep -q fla-chunk-gdn
"$program" completion bash | bash -n
"$place/venv/bin/python" "$source/tests/python/ecosystems.py" "$place"/wheel/deltaproof-*.whl "$@"
