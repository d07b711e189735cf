#!/bin/sh
# cli.sh PROGRAM ROOT: every verb from the outside.
set -u
program=$1 root=$2
box=$(mktemp -d)
trap 'rm -rf "$box"' EXIT
cd "$box" || exit 1
cp "$root"/tests/recordings/*.safetensors .
failures=0
ran=0

# expect CODE TEXT ARGUMENT...: the exit code, and TEXT (may be empty) somewhere in stdout or stderr.
expect() {
  want_code=$1 want_text=$2
  shift 2
  ran=$((ran + 1))
  code=0
  output=$("$program" "$@" 2>&1 < /dev/null) || code=$?
  if [ "$code" != "$want_code" ]; then
    echo "FAIL deltaproof $*: exit $code, not $want_code"
    echo "$output" | head -5
    failures=$((failures + 1))
  fi
  case $output in
    *"$want_text"*) ;;
    *)
      echo "FAIL deltaproof $*: does not say '$want_text' but:"
      echo "$output" | head -5
      failures=$((failures + 1)) ;;
  esac
}

problem=delta_beta2_bf16.problem.safetensors
chunk=delta_beta2_bf16.chunk.safetensors
abuse=kda_safe_gate_abuse_bf16

expect 0 "deltaproof 0" --version
expect 0 "check" --help
expect 2 "" frobnicate
expect 2 ""

expect 0 "measured" check $problem $chunk
expect 0 "measured" check $problem delta_beta2_bf16.recurrent.safetensors --no-plan
expect 1 "refuted" check $abuse.problem.safetensors $abuse.chunk.safetensors
expect 0 "measured" check $abuse.problem.safetensors $abuse.recurrent.safetensors
expect 0 "holds" check $problem $chunk --max-error o:rel_fro=0.02 --because "the kernel's own test"
expect 1 "refuted" check $problem $chunk --max-error o:rel_fro=0.005 --max-error max_abs=1 --because "fla's ratio"
expect 2 "--because" check $problem $chunk --max-error o:rel_fro=0.02
expect 2 "metrics" check $problem $chunk --max-error o:speed=1 --because x
expect 2 "another problem" check gdn_gva_bf16.problem.safetensors $chunk
expect 2 "nowhere" check nowhere.safetensors $chunk
expect 2 "" check $problem
head -c 1000 $chunk > cut.safetensors
expect 2 "cut.safetensors" check $problem cut.safetensors

"$program" check $problem $chunk --json - 2>/dev/null | head -c 1 | grep -q '{' || { echo "FAIL --json - does not put JSON on stdout"; failures=$((failures + 1)); }
expect 0 "" check $problem $chunk --json verdict.json --junit verdict.xml --markdown verdict.md
for file in verdict.json verdict.xml verdict.md; do
  [ -s $file ] || { echo "FAIL $file was not written"; failures=$((failures + 1)); }
done
expect 2 "no/such" check $problem $chunk --json no/such/folder/verdict.json

expect 2 "only one" check $problem $chunk --json - --markdown -
mkfifo pipe && (cat pipe > from-pipe &) && expect 0 "" check $problem $chunk --json pipe
[ -p pipe ] || { echo "FAIL --json replaced a pipe by a file"; failures=$((failures + 1)); }
echo old > real.json && ln -s real.json link.json && expect 0 "" check $problem $chunk --json link.json
{ [ -L link.json ] && grep -q verdict real.json; } || { echo "FAIL --json replaced a link by a file"; failures=$((failures + 1)); }
expect 3 "stopped" check $problem $chunk --max-seconds 0.000001
expect 2 "" check $problem $chunk --max-seconds 1e300

expect 0 "transition_factor" inspect $problem
expect 0 "" inspect $problem --json i.json --junit i.xml --markdown i.md
[ -s i.json ] && [ -s i.xml ] && [ -s i.md ] || { echo "FAIL inspect left out a view"; failures=$((failures + 1)); }
expect 2 "" inspect $chunk

expect 0 "--regime typical" gen --T 32 --K 16 --V 8 --seed 3 -o made.safetensors
cp made.safetensors again.safetensors
expect 0 "" gen --T 32 --K 16 --V 8 --seed 3 -o made.safetensors
cmp -s made.safetensors again.safetensors || { echo "FAIL gen is not reproducible"; failures=$((failures + 1)); }
expect 2 "typical" gen --regime nonsense -o x.safetensors
[ ! -e x.safetensors ] || { echo "FAIL gen left a file behind"; failures=$((failures + 1)); }

expect 0 "correctly rounded to bf16" oracle made.safetensors -o truth.safetensors --round bf16
expect 0 "holds" check made.safetensors truth.safetensors --max-error ulps=0.51 --because "one rounding"
expect 2 "" oracle made.safetensors -o truth.safetensors --round bf15

expect 1 "left fp16 in 16 of 16 draws" inverse --keys cos=0.99 --beta 1 --chunk 64 --method neumann --format fp16
expect 0 "no intermediate left fp32" inverse --keys cos=0.9 --beta 1 --chunk 64 --method forward --format fp32
expect 1 "decides" inverse --keys cos=0.9 --beta 1 --chunk 64 --method forward --format fp32 --worst-case
expect 1 "unsafe" inverse --keys cos=0.9 --beta 1 --method neumann16+block --format fp16
expect 0 "safe" inverse --keys cos=0.9 --beta "U(0,1)" --chunk 16 --method forward8+block --format bf16 --accumulate fp32 --json inverse.json --junit inverse.xml
grep -q '"safe": true' inverse.json && grep -q '"reproduce": "deltaproof inverse' inverse.json || { echo "FAIL inverse --json lacks its keys"; failures=$((failures + 1)); }
expect 1 "nothing promises it" inverse --keys identical --beta 1 --method neumann --format fp64 --samples 1
expect 0 "safe" inverse --keys gaussian --beta 1 --method neumann --format fp16
expect 2 "cos=1.5" inverse --keys cos=1.5 --beta 1 --method neumann --format fp16
expect 2 "nan" inverse --keys gaussian --beta nan --method neumann --format fp16
expect 2 "forward16+block" inverse --keys gaussian --beta 1 --method newton --format fp16
expect 2 "fp15" inverse --keys gaussian --beta 1 --method forward --format fp15
expect 2 "alternating" inverse --keys equal --beta 1 --method forward --format fp16
expect 2 "--chunk 0" inverse --keys gaussian --beta 1 --method forward --format fp16 --chunk 0
expect 2 "take --accumulate" inverse --keys gaussian --beta 1 --method forward --format fp32 --accumulate fp16
expect 2 "e4m3" inverse --keys gaussian --beta 1 --method forward --format e4m3
expect 2 "" inverse --keys gaussian
expect 1 "power, in these draws; decides" inverse --keys elu1 --beta "U(0,2)" --chunk 7 --method neumann --format fp32
expect 0 "in these draws" inverse --keys cos=0.9 --beta 1 --chunk 16 --method forward --format fp32 --store bf16 --worst-case
expect 0 "of merges tf32" inverse --keys cos=0.9 --beta 1 --chunk 64 --method forward16+block --format fp32 --merge-format tf32 --store bf16
expect 2 "fp32 with merges in tf32" inverse --keys cos=0.9 --beta 1 --method forward16+block --format bf16 --accumulate fp32 --merge-format fp16
expect 3 "stopped before" inverse --keys gaussian --beta 0.1 --chunk 1000 --method neumann --format fp32 --max-seconds 0.2
expect 2 "286 GiB" inverse --keys identical --beta 1 --chunk 20000 --method forward --format fp32 --threads 2
for seed in 18446744073709551616 -1 1x ""; do
  expect 2 "18446744073709551615" inverse --keys identical --beta 1 --chunk 4 --method forward --format fp32 --seed "$seed"
done
expect 0 "safe" inverse --keys identical --beta 1 --chunk 4 --method forward --format fp32 --seed 18446744073709551615
for option in --accumulate --store --merge-format; do
  expect 2 "leave it out" inverse --keys identical --beta 1 --chunk 4 --method forward --format fp32 $option ""
done
code=0
timeout --preserve-status -s INT 0.5 "$program" inverse --keys gaussian --beta 0.1 --chunk 1000 --method neumann --format fp32 > stopped.txt 2>&1 || code=$?
{ [ $code = 130 ] && ! grep -q '^verdict' stopped.txt; } || { echo "FAIL inverse does not end on Ctrl-C: exit $code"; failures=$((failures + 1)); }
ran=$((ran + 1))

for axis in rules formats inverses plans regimes studies metrics; do
  expect 0 "" list $axis --json $axis.json
done
expect 0 "bf16" list formats
expect 2 "rules" list colours
expect 0 "exact" explain exact
expect 0 "16 x 16" explain neumann16+block
expect 0 "merge_operand" explain fla-chunk-gdn
expect 0 "# fp32 (formats)" explain fp32
expect 2 "list" explain nonsense
expect 2 "there" study nonsense

echo "$ran calls, $failures failures"
[ "$failures" = 0 ]
