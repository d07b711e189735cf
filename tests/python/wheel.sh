#!/bin/sh
# wheel.sh PYTHON SOURCE: builds a wheel, installs it into a fresh environment and judges a recording there with nothing else in
# reach: no compiler, no torch, no numpy. Needs a package index for the build backend; exit 77 with a word without one.
set -eu
python=$1
source=$2
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
"$python" -m venv "$place/venv" || { echo "wheel: skipped, $python cannot make an environment (python3-venv)"; exit 77; }
"$place/venv/bin/pip" download -q --no-deps -d "$place" scikit-build-core pybind11 || { echo "wheel: skipped, no package index"; exit 77; }
"$place/venv/bin/pip" wheel -q --no-deps -w "$place/wheel" "$source"
"$place/venv/bin/pip" install -q --no-index "$place"/wheel/deltaproof-*.whl
env -i PATH=/nonexistent "$place/venv/bin/python" - "$source/tests/recordings/beta_near_two" <<'EOT'
import sys
import deltaproof
verdict = deltaproof.check(sys.argv[1] + ".problem.safetensors", sys.argv[1] + ".chunk.safetensors", power=False)
print(verdict)
problem = next(deltaproof.cases("delta_rule", "typical", T=16, K=8, V=8, to=None)).problem
assert verdict.require() and deltaproof.oracle(problem, to=None).o.dtype == "F64"
EOT
