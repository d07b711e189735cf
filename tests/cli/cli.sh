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

problem=beta_near_two.problem.safetensors
chunk=beta_near_two.chunk.safetensors
abuse=steep_gates

expect 0 "deltaproof 0" --version
expect 0 "check" --help
for verb in $("$program" frobnicate 2>&1 | sed 's/.*choose from//; s/,//g'); do
  expect 0 "deltaproof 0" $verb --version
  expect 0 "0: no limit" $verb --help
  expect 0 "Exit codes: 0 " $verb --help
done
expect 2 "there is no command 'frobnicate'; choose from check" frobnicate
expect 2 "no command was given; choose from check"
expect 2 'did you mean "check"?' chek

# What is misspelt or out of range is named, with what to write.
expect 2 "there is no option --acuracy; did you mean --accuracy?" check p r --acuracy 3
expect 2 "there is no option --frobnicate
" check p r --frobnicate
expect 2 "emulate: there is no option --pln; did you mean --plan?" emulate p --pln fp32 -o x
expect 2 "there is no option --frob" --frob
expect 2 "gen: --output is given 2 times; give it once" gen -o x -o y
expect 2 "gen: --op needs a value, OP" gen -o x --op
expect 2 "oracle: --round needs a value, FORMAT, one of {bf16,fp16,fp32,fp64}" oracle p -o x --round
expect 2 "--round: 'fp8' is not a format of outputs; choose from bf16, fp16, fp32, fp64" oracle p -o x --round fp8
expect 2 "invariant: 'c' is one word too many; this command takes KIND" invariant split a b c
expect 2 "invariant split: no files are given; give a folder that gen --for made" invariant split
expect 2 "invariant split: nodir is not a folder" invariant split nodir
expect 2 "report: --plan and --no-plan cannot be given together; leave one out" report p -o x --plan fp32 --no-plan
expect 2 "report: --output: is empty; give a value
" report -o ""
expect 2 "list AXIS, where AXIS is one of ops" explain frobnicate
expect 2 "'extra' is one word too many; this command takes PROBLEM [RESULT]" check p r extra
expect 2 "--accuracy: 0.5% is a percentage; write 0.005" check p r --accuracy 0.5%
expect 2 "--accuracy: '0,005' is not a number; write 0.005" check p r --accuracy 0,005
expect 2 "--accuracy: inf is not a finite number" check p r --accuracy inf
expect 2 "--accuracy: 0 is not above 0" check p r --accuracy 0
expect 2 "--false-alarm: 1e-20 is too small; write a number from 1e-12 to 0.1" check p r --false-alarm 1e-20
expect 2 "--false-alarm: nan is not a number" invariant prefix --whole p r --false-alarm nan
expect 2 "--max-bits: 5000 is too large; write an integer from 53 to 1024" check p r --max-bits 5000
expect 2 "--max-bits: '1e2' is not an integer" check p r --max-bits 1e2
expect 2 "--threads: -1 is too small" check p r --threads -1
expect 2 'did you mean "typical"?' gen --regime typcal -o x
expect 2 'did you mean "eigenvalues"?' study eigenvalue
expect 2 'did you mean "fla-chunk-gdn"?' check $problem $chunk --plan fla-chunk-gnd
expect 2 'did you mean "scale-missing"?' emulate $problem --plan fp32 --fault scale-mising -o x
expect 2 'did you mean "regimes"?' list regime
expect 2 'did you mean "fla-chunk-gdn"?' explain fla-chunk-dgn

cp $problem binary.toml
expect 0 "holds" check $problem $chunk
expect 0 "measured" check $problem beta_near_two.recurrent.safetensors --no-plan
expect 1 "refuted" check $abuse.problem.safetensors $abuse.chunk.safetensors --no-power
expect 0 "holds" check $abuse.problem.safetensors $abuse.recurrent.safetensors
expect 0 "holds" check $problem $chunk --no-power --max-error o:rel_fro=0.02 --because "the kernel's own test"
expect 1 "refuted" check $problem $chunk --no-power --max-error o:rel_fro=0.005 --max-error max_abs=1 --because "fla's ratio"
expect 2 "--because" check $problem $chunk --max-error o:rel_fro=0.02
expect 2 "metrics" check $problem $chunk --max-error o:speed=1 --because x
expect 2 "another problem" check grouped_heads.problem.safetensors $chunk
expect 2 "nowhere" check nowhere.safetensors $chunk
expect 2 "not a TOML file in UTF-8; check that the path names the right file" check $problem $chunk --plan binary.toml
expect 2 "" check $problem
expect 2 "empty" check $problem $chunk --plan ""
expect 2 "not a number" check $problem $chunk --accuracy nan
head -c 1000 $chunk > cut.safetensors
expect 2 "cut.safetensors" check $problem cut.safetensors

"$program" check $problem $chunk --no-power --json - 2>/dev/null | head -c 1 | grep -q '{' || { echo "FAIL --json - does not put JSON on stdout"; failures=$((failures + 1)); }
expect 0 "" check $problem $chunk --json verdict.json --junit verdict.xml --markdown verdict.md
for file in verdict.json verdict.xml verdict.md; do
  [ -s $file ] || { echo "FAIL $file was not written"; failures=$((failures + 1)); }
done
expect 2 "no/such" check $problem $chunk --json no/such/folder/verdict.json

expect 2 "only one" check $problem $chunk --json - --markdown -
mkfifo pipe && (cat pipe > from-pipe &) && expect 0 "" check $problem $chunk --no-power --json pipe
[ -p pipe ] || { echo "FAIL --json replaced a pipe by a file"; failures=$((failures + 1)); }
echo old > real.json && ln -s real.json link.json && expect 0 "" check $problem $chunk --no-power --json link.json
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
expect 0 "o: elements by the tier that decided them: exact: " oracle made.safetensors -o truth.safetensors --max-bits 53
expect 2 "--bits" oracle made.safetensors -o truth.safetensors --bits 52
expect 0 "" gen --op kda --T 32 --K 16 --V 8 --seed 3 -o gated.safetensors
expect 0 "double-double: 512" oracle gated.safetensors -o truth.safetensors
expect 3 "could not be rounded with certainty" oracle gated.safetensors -o truth.safetensors --max-bits 53 --json truth.json
grep -q '"undecided.o.indices":"0-511"' truth.safetensors && grep -q '"o": "0-511"' truth.json || { echo "FAIL oracle does not list what it left undecided"; failures=$((failures + 1)); }
expect 0 "as sums of fp64 numbers (4 in each sum; each is the correctly rounded remainder of the exact value" oracle gated.safetensors -o sums.safetensors --bits 200
expect 0 "measured" check gated.safetensors sums.safetensors --no-plan
case $output in *unknown*) echo "FAIL check does not know the oracle's own file: $output"; failures=$((failures + 1)) ;; esac
expect 2 "on the reference path" check gated.safetensors sums.safetensors
expect 2 "leave one of the two out" oracle gated.safetensors -o sums.safetensors --bits 200 --round bf16
expect 2 "raise --max-bits" oracle gated.safetensors -o sums.safetensors --bits 200 --max-bits 128

expect 1 "left the range of fp16 in 16 of 16 draws" inverse --keys cos=0.99 --beta 1 --chunk 64 --method neumann --format fp16
expect 0 "no intermediate left the range of fp32" inverse --keys cos=0.9 --beta 1 --chunk 64 --method forward --format fp32
expect 1 "the verdict uses this one" inverse --keys cos=0.9 --beta 1 --chunk 64 --method forward --format fp32 --worst-case
expect 1 "unsafe" inverse --keys cos=0.9 --beta 1 --method neumann16+block --format fp16
expect 0 "safe" inverse --keys cos=0.9 --beta "U(0,1)" --chunk 16 --method forward8+block --format bf16 --accumulate fp32 --json inverse.json --junit inverse.xml
grep -q '"safe": true' inverse.json && grep -q '"reproduce": "deltaproof inverse' inverse.json || { echo "FAIL inverse --json lacks its keys"; failures=$((failures + 1)); }
expect 1 "nothing guarantees it" inverse --keys identical --beta 1 --method neumann --format fp64 --samples 1
expect 0 "safe" inverse --keys gaussian --beta 1 --method neumann --format fp16
expect 2 "cos=1.5" inverse --keys cos=1.5 --beta 1 --method neumann --format fp16
expect 2 "nan" inverse --keys gaussian --beta nan --method neumann --format fp16
expect 2 "forward16+block" inverse --keys gaussian --beta 1 --method newton --format fp16
expect 2 "inverse: --format fp15: there is no such format; use fp64, fp32" inverse --keys gaussian --beta 1 --method forward --format fp15
expect 2 "alternating" inverse --keys equal --beta 1 --method forward --format fp16
expect 2 "--chunk 0" inverse --keys gaussian --beta 1 --method forward --format fp16 --chunk 0
expect 2 "take --accumulate" inverse --keys gaussian --beta 1 --method forward --format fp32 --accumulate fp16
expect 2 "e4m3" inverse --keys gaussian --beta 1 --method forward --format e4m3
expect 2 "" inverse --keys gaussian
expect 1 "power, in these draws; the verdict uses this one" inverse --keys elu1 --beta "U(0,2)" --chunk 7 --method neumann --format fp32
expect 0 "in these draws" inverse --keys cos=0.9 --beta 1 --chunk 16 --method forward --format fp32 --store bf16 --worst-case
expect 0 "merge operands tf32" inverse --keys cos=0.9 --beta 1 --chunk 64 --method forward16+block --format fp32 --merge-format tf32 --store bf16
expect 2 "--format fp32 --merge-format tf32 --accumulate fp32" inverse --keys cos=0.9 --beta 1 --method forward16+block --format bf16 --accumulate fp32 --merge-format fp16
expect 3 "stopped before" inverse --keys gaussian --beta 0.1 --chunk 1000 --method neumann --format fp32 --max-seconds 0.2
expect 2 "286 GiB" inverse --keys identical --beta 1 --chunk 20000 --method forward --format fp32 --threads 2
for seed in 18446744073709551616 -1 1x ""; do
  expect 2 "18446744073709551615" inverse --keys identical --beta 1 --chunk 4 --method forward --format fp32 --seed "$seed"
done
expect 0 "safe" inverse --keys identical --beta 1 --chunk 4 --method forward --format fp32 --seed 18446744073709551615
expect 2 "method forward merges nothing" inverse --keys cos=0.9 --beta 1 --method forward --format fp32 --merge-format bf16
for option in --accumulate --store --merge-format; do
  expect 2 ", or leave $option out" inverse --keys identical --beta 1 --chunk 4 --method forward --format fp32 $option ""
done
code=0
timeout --preserve-status -s INT 0.5 "$program" inverse --keys gaussian --beta 0.1 --chunk 1000 --method neumann --format fp32 > stopped.txt 2>&1 || code=$?
{ [ $code = 130 ] && ! grep -q '^verdict' stopped.txt; } || { echo "FAIL inverse does not end on Ctrl-C: exit $code"; failures=$((failures + 1)); }
ran=$((ran + 1))

# The oracle refuses a step; the program names the file.
expect 0 "" gen --regime exact --rule implicit --op delta_rule --T 8 --K 16 --V 4 --H 1 --HV 1 --beta -1 --dtype fp32 -o pole.safetensors
for verb in inspect "oracle -o never.safetensors" "emulate --plan fp64 -o never.safetensors"; do
  expect 2 "pole.safetensors: tensors beta and k, sequence 0, value head 0, row 0 of k: rule implicit" $verb pole.safetensors
done

printf '[[case]]\nproblem = "pole.safetensors"\nresult = "pole-result.safetensors"\nno_plan = true\n' > pole.toml
python3 - <<'PY'
import hashlib, json, struct
def tensors(path):
    data = open(path, "rb").read()
    return json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
shape = tensors("pole.safetensors")["v"]["shape"]
size = 4 * shape[0] * shape[1] * shape[2] * shape[3]
header = json.dumps({"__metadata__": {"format": "deltaproof.result/1", "path": "recurrent",
    "problem_sha256": hashlib.sha256(open("pole.safetensors", "rb").read()).hexdigest()}, "o": {"dtype": "F32", "shape": shape, "data_offsets": [0, size]}}).encode()
open("pole-result.safetensors", "wb").write(struct.pack("<Q", len(header)) + header + bytes(size))
PY
expect 2 "pole.safetensors: tensors beta and k, sequence 0, value head 0, row 0 of k: rule implicit" check pole.toml

# Where nothing stays finite, nothing is adequate.
expect 2 "are not finite even in fp64" advise pole.safetensors
expect 2 "'x' is not a number" advise pole.safetensors --accuracy x

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
expect 2 "choose from" study nonsense

for verb in oracle "emulate --plan fp32"; do
  # shellcheck disable=SC2086
  expect 2 "is the file that is read" $verb $problem -o ./$problem
done
cmp -s $problem "$root/tests/recordings/$problem" || { echo "FAIL a problem was overwritten"; failures=$((failures + 1)); }

# A page on one's own tensors has the ledger where the folder is that of the whole report, and only there.
expect 2 "report: --full has no effect with PROBLEM" report $problem -o pages --full
expect 2 "report: --no-power has no effect without PROBLEM" report -o pages --no-power
expect 0 "written to" report $problem -o pages --no-power
grep -q '<section id="ledger">' pages/index.html && { echo "FAIL report of a problem made up a ledger"; failures=$((failures + 1)); }
expect 0 "written to" report $problem $chunk -o judged --no-power --seed 3
grep -q "deltaproof check $problem $chunk --no-power --seed 3" judged/*.json || { echo "FAIL the page's command for a result is not that of its verdict"; failures=$((failures + 1)); }
expect 3 "nothing was written" report $problem -o stopped --max-seconds 0.000001
[ ! -e stopped ] || { echo "FAIL a stopped report of a problem left something"; failures=$((failures + 1)); }
cp "$root/reports/claims.md" pages
expect 0 "written to" report $problem -o pages --no-power
grep -q '<section id="ledger">' pages/index.html || { echo "FAIL report of a problem lost the ledger"; failures=$((failures + 1)); }

# Suites: made by gen --all, judged together.
expect 0 "4 problems" gen --all kit --regime typical --dtype bf16 --T 24 --K 16 --V 8 --H 1
[ "$(ls kit | wc -l)" = 7 ] && [ ! -e kit/.unfinished* ] || { echo "FAIL gen --all left $(ls -a kit)"; failures=$((failures + 1)); }
expect 0 "the same tensors as typical-delta_rule-fp32" gen --all kit --op delta_rule --dtype fp32 --T 24 --K 16 --V 8 --H 1
expect 0 "1 problem, suite.toml" gen --all kit --regime typical --op delta_rule --dtype bf16 --T 24 --K 16 --V 8 --H 1 --json kit.json
expect 2 "-o FILE" gen
expect 2 "-o FILE" gen -o x.safetensors --all kit
expect 2 "no problem could be made" gen --all none --op delta_rule --gate slow
[ ! -e none ] || { echo "FAIL gen --all left a folder behind"; failures=$((failures + 1)); }
expect 2 "typical" gen --all none --regime nonsense
made=typical-delta_rule-bf16
expect 2 "--skip-missing skips" check kit/suite.toml
expect 3 "no result file" check kit/suite.toml --skip-missing
expect 0 "" emulate kit/$made.problem.safetensors --plan fla-recurrent-delta -o kit/$made.result.safetensors
expect 2 "did not write" gen --all kit --regime typical
expect 0 "" emulate kit/$made.problem.safetensors --plan fla-recurrent-delta --fault scale-missing -o kit/faulty.result.safetensors
cat > kit/mine.toml <<TOML
[[case]]
problem = "$made.problem.safetensors"
result = "$made.result.safetensors"
plan = "fla-recurrent-delta"
[[case]]
problem = "$made.problem.safetensors"
result = "faulty.result.safetensors"
plan = "fla-recurrent-delta"
expect = "refuted"
TOML
expect 0 "2 as expected; inputs from 1 problem file, the reference computed 1 time" check kit/mine.toml --json then.json --junit then.xml --markdown then.md
grep -q 'tests="2" failures="0"' then.xml && grep -q '"schema": "deltaproof.suite/1"' then.json && grep -q '| ok | faulty | refuted | refuted |' then.md ||
  { echo "FAIL a view of the suite lacks its cases"; failures=$((failures + 1)); }
expect 0 "0 of 12 error-to-limit ratios changed" check kit/mine.toml --baseline then.json
expect 0 "ratios   not compared, because the baseline's limits were computed with other options" check kit/mine.toml --no-power --baseline then.json
expect 2 "is not a baseline" check kit/mine.toml --baseline kit/mine.toml
expect 3 "stopped unfinished (undecided)" check kit/mine.toml --max-seconds 0.000001
# Files that are missing, truncated or changed are errors of their cases; the others are judged, and every view is written.
head -c 600 kit/$made.result.safetensors > kit/cut.result.safetensors
{ cat kit/mine.toml; for result in cut gone; do printf '[[case]]\nproblem = "%s.problem.safetensors"\nresult = "%s.result.safetensors"\nplan = "fla-recurrent-delta"\n' $made $result; done; printf '[[case]]\nproblem = "../%s"\nresult = "%s.result.safetensors"\nplan = "fla-recurrent-delta"\nname = "changed"\n' $problem $made; } > kit/broken.toml
echo "# what stood there" > summary.md
expect 2 "5 cases, 2 as expected, 3 that could not be judged" check kit/broken.toml --no-power --json broken-suite.json --junit broken.xml --markdown summary.md --baseline then.json
grep -q 'tests="5" failures="0" errors="3"' broken.xml && grep -q '<error message="no answer: kit/cut.result.safetensors: ' broken.xml && grep -q ' time="[0-9]*\.[0-9]*"' broken.xml ||
  { echo "FAIL JUnit lacks the errors of a suite's cases"; failures=$((failures + 1)); }
grep -q '"failed": 3' broken-suite.json && grep -q '| error | changed | no answer |' summary.md && grep -q '^# what stood there$' summary.md ||
  { echo "FAIL a view of a broken suite lacks its cases, or Markdown what stood there"; failures=$((failures + 1)); }
sed -i 's/expect = "refuted"/accuracy = 1/' kit/mine.toml
expect 1 "BAD   faulty" check kit/mine.toml --no-power --junit bad.xml
python3 - bad.xml <<'PY' || { echo "FAIL a failure in JUnit has no body with the command that judges it again"; failures=$((failures + 1)); }
import sys, xml.etree.ElementTree as xml
[bad] = xml.parse(sys.argv[1]).getroot().iter("failure")
assert bad.text.startswith("verdict      refuted: ") and "\nagain        deltaproof check kit/" in bad.text and "--plan fla-recurrent-delta" in bad.text
assert bad.get("type") == "refuted" and all(float(case.get("time")) >= 0 for case in xml.parse(sys.argv[1]).getroot().iter("testcase"))
PY
expect 2 "is a suite, which takes no --plan" check kit/mine.toml --plan fp32
expect 2 "work only with a suite" check $problem $chunk --no-plan --skip-missing
echo 'plam = 1' >> kit/mine.toml
expect 2 'did you mean "plan"' check kit/mine.toml
expect 2 "nowhere.toml" check nowhere.toml
expect 0 "scale-missing" list faults --json faults.json
grep -q '"paths": "chunk, recurrent"' faults.json || { echo "FAIL list faults --json lacks paths"; failures=$((failures + 1)); }
expect 0 "first wrong: Aqk" explain scale-missing
expect 0 "needs: a plan with [backward]; do or dfinal_state" explain dk-write-missing

# Invariants of one kernel, and a failure cut down and judged again.
small="--op gated_delta_rule --T 130 --K 16 --V 8 --H 2 --seed 5"
expect 0 "" gen $small --dtype fp32 -o wide.safetensors
expect 0 "" emulate wide.safetensors --plan fp32 --chunk 64 -o wide64.safetensors
expect 3 "nothing was written" emulate wide.safetensors --plan fp32 --max-seconds 1e-9 -o never.safetensors
[ ! -e never.safetensors ] || { echo "FAIL emulate wrote what it was stopped in"; failures=$((failures + 1)); }
expect 0 "" emulate wide.safetensors --plan fp32 --chunk 16 -o wide16.safetensors
expect 0 "every result that a plan judges is within its limits" invariant chunk-size --whole wide.safetensors wide64.safetensors --part wide.safetensors wide16.safetensors --json inv.json --junit inv.xml --markdown inv.md
grep -q '"schema": "deltaproof.invariant/1"' inv.json && grep -q 'failures="0"' inv.xml && [ -s inv.md ] || { echo "FAIL invariant left out a view"; failures=$((failures + 1)); }
expect 0 "measured" invariant chunk-size --whole wide.safetensors wide64.safetensors --part wide.safetensors wide16.safetensors --no-plan
expect 0 "" emulate wide.safetensors --plan fp32 --chunk 16 --fault scale-missing -o bad16.safetensors
expect 1 "part 2: " invariant chunk-size --whole wide.safetensors wide64.safetensors --part wide.safetensors wide16.safetensors --part wide.safetensors bad16.safetensors
expect 2 "every result" invariant chunk-size --whole wide.safetensors wide64.safetensors --part wide.safetensors wide64.safetensors
expect 3 "so the test could not fail" invariant prefix --whole wide.safetensors wide64.safetensors --part wide.safetensors wide64.safetensors
expect 2 "record in the problem file the cotangents that the backward pass was given" invariant gradients wide.safetensors wide64.safetensors
expect 2 "wide.safetensors: gradients need do or dfinal_state" oracle wide.safetensors --gradients -o never.safetensors
expect 0 "" gen $small --cotangents -o slope.safetensors
expect 0 "dfinal_state contributes to the gradients too" inspect slope.safetensors
expect 0 "" oracle slope.safetensors --gradients --round bf16 -o slopes.safetensors
expect 0 "the two sides of I2 differ by no more than their limits allow" invariant gradients slope.safetensors slopes.safetensors --json identities.json
grep -q '"name": "I4M"' identities.json || { echo "FAIL invariant gradients left out an identity"; failures=$((failures + 1)); }
expect 2 "it uses no plan" invariant gradients slope.safetensors slopes.safetensors --plan fp32
expect 3 "max-seconds 1e-06 ran out: the check was stopped before the exact gradients" invariant gradients slope.safetensors slopes.safetensors --max-seconds 0.000001
expect 2 "it uses no plan" invariant gradients slope.safetensors slopes.safetensors --no-plan
for option in "--false-alarm 0.01" "--no-power" "--strict-padding"; do
  expect 2 "has no effect here" invariant gradients slope.safetensors slopes.safetensors $option
  for kind in prefix pad repeat; do
    expect 2 "has no effect here" invariant $kind --whole wide.safetensors wide64.safetensors --part wide.safetensors wide64.safetensors $option
  done
  expect 0 "within its limits" invariant chunk-size --whole wide.safetensors wide64.safetensors --part wide.safetensors wide16.safetensors $option
done
expect 2 "leave out --part and --parts-dir" invariant gradients slope.safetensors slopes.safetensors --part slope.safetensors slopes.safetensors
expect 2 "tensor o is missing" invariant prefix slope.safetensors slopes.safetensors --part slope.safetensors slopes.safetensors
expect 1 "fails in sequence 0, " invariant gradients slope.safetensors slopes.safetensors --accuracy 1e-6
# A set of calls: made, refused where it is not recorded yet, judged where it is.
expect 0 "2 calls for invariant path" gen --for path --T 70 --K 16 --V 8 --H 1 --dir pathset
expect 2 "record every call of the set first" invariant path pathset
expect 0 "" emulate pathset/whole.problem.safetensors --plan fla-chunk-gdn -o pathset/whole.result.safetensors
expect 0 "" emulate pathset/whole.problem.safetensors --plan fla-recurrent-gdn -o pathset/recurrent.result.safetensors
expect 0 "within its limits" invariant path pathset --no-power
expect 2 "this folder was made for invariant path, not repeat" invariant repeat pathset
expect 2 "names its parts itself" invariant path pathset --parts-dir pathset
expect 2 "which gen did not write" gen --for path --dir pathset
expect 2 "cannot make the folder $problem/x: Not a directory; name another one" gen --for path --dir $problem/x
expect 2 "cannot make the folder $problem" advise $problem -o $problem/x
expect 2 "is the file that is read as PROBLEM; nothing was done, name another folder" report $problem -o $problem
mkdir nomanifest && expect 2 "there is no manifest.json" invariant path nomanifest
expect 2 "gen cannot write the calls of this invariant" gen --for pad --dir padset
expect 0 "1 call for invariant gradients" gen --for gradients --T 20 --K 8 --V 4 --H 1 --dir gradientset
expect 2 "give at least 1" gen --for repeat --calls 0 --dir norepeats
mkdir foreign && echo '{"invariant": "sideways", "calls": [{}]}' > foreign/manifest.json
expect 2 "foreign/manifest.json: unknown invariant" invariant path foreign
expect 2 "leave them out" gen --calls 3 -o no.safetensors
expect 2 "--calls has no effect with --for batch" gen --for batch --calls 5 --dir no
expect 2 "--drafted has no effect with --for split" gen --for split --drafted 5 --dir no
expect 2 "--T must be at least 52" gen --for varlen --T 32 --dir no
expect 2 "99999999999999999999 is too large" gen --T 99999999999999999999 -o no.safetensors
expect 2 "--cu-seqlens: is empty" gen --cu-seqlens "" -o no.safetensors
expect 2 "--drop-below has no effect here" invariant path pathset --drop-below 0.1
expect 2 "at least two" invariant split --whole wide.safetensors wide64.safetensors --part wide.safetensors wide64.safetensors
expect 2 "prefix, split" invariant suffix --whole wide.safetensors wide64.safetensors --part wide.safetensors wide64.safetensors
expect 2 "--part needs 2 values: PROBLEM and RESULT of one part" invariant prefix --whole wide.safetensors wide64.safetensors --part wide.safetensors
expect 2 "cannot be given together" invariant prefix --whole wide.safetensors wide64.safetensors --part wide.safetensors wide64.safetensors --parts-dir .
expect 2 "nowhere" invariant prefix --whole wide.safetensors wide64.safetensors --parts-dir nowhere
# What is no option of judging is refused by every verb, whether or not it would have been used.
for option in "--accuracy nan" "--accuracy inf" "--accuracy -0.1" "--accuracy 0" "--accuracy 2" "--false-alarm nan" "--false-alarm 0" "--threads 40000"; do
  expect 2 "" invariant prefix --whole wide.safetensors wide64.safetensors --part wide.safetensors wide64.safetensors $option
  expect 2 "" invariant chunk-size --whole wide.safetensors wide64.safetensors --part wide.safetensors wide16.safetensors $option
  expect 2 "" check wide.safetensors wide64.safetensors --plan fp32 $option
done
expect 2 "" emulate wide.safetensors --plan fp32 --chunk 0 -o no.safetensors
expect 2 "--chunk has no effect on the path recurrent" emulate wide.safetensors --plan decode-fp32 --chunk 32 -o no.safetensors
for noise in nan NaN inf -1; do expect 2 "" emulate wide.safetensors --plan fp32 --noise $noise -o no.safetensors; done
expect 2 "path \"reference\": use chunk or recurrent" emulate wide.safetensors --plan fp32 --path reference -o no.safetensors
[ ! -e no.safetensors ] || { echo "FAIL a refused emulation wrote a file"; failures=$((failures + 1)); }
expect 0 "holds" check wide.safetensors wide64.safetensors --plan fp32 --no-power --strict-padding
expect 2 "is not a count" gen $small --T -1 -o narrow.safetensors
expect 2 "none/x.json: cannot be written: the folder none does not exist; create it first" check wide.safetensors wide64.safetensors --json none/x.json
expect 2 "none/x.safetensors: cannot be written" oracle wide.safetensors -o none/x.safetensors
expect 0 "" gen $small -o narrow.safetensors
mkdir parts && cp narrow.safetensors parts/1.problem.safetensors
expect 2 "there is no 1.result.safetensors" invariant prefix --whole narrow.safetensors narrow.safetensors --parts-dir parts
expect 0 "" emulate narrow.safetensors --plan fla-chunk-gdn --fault w-beta-missing -o broken.safetensors
expect 1 "witness small: head 0 of sequence 0, the first" check narrow.safetensors broken.safetensors --no-power --witness small --json broken.json
for file in problem.safetensors result.safetensors plan.toml verdict.json README.txt; do
  [ -s small/$file ] || { echo "FAIL the witness lacks $file"; failures=$((failures + 1)); }
done
! grep '"reproduce"' broken.json | grep -q -e --witness || { echo "FAIL the command that judges again asks for the witness"; failures=$((failures + 1)); }
expect 2 "small: holds a witness already" check narrow.safetensors broken.safetensors --no-power --witness small/
mkdir empty
expect 2 "empty: there is no witness; make one with" shrink empty/
expect 1 "reproduced" replay small --json replay.json
expect 1 "reproduced" replay broken.json
# The second head's witness speaks of the second head.
expect 0 "" emulate narrow.safetensors --plan fla-chunk-gdn -o sound.safetensors
python3 - narrow.safetensors sound.safetensors broken.safetensors second.safetensors <<'PY' || { echo "FAIL no result of one broken head was made"; failures=$((failures + 1)); }
import json, struct, sys

def read(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8:8 + size]), data[:8 + size], bytearray(data[8 + size:])

problem, (header, head, sound), (_, _, broken) = *[read(sys.argv[1])[0]], read(sys.argv[2]), read(sys.argv[3])
for name, entry in header.items():  # of every tensor [B, T, H, ...] the second of two heads
    if name == "__metadata__":
        continue
    begin, end = entry["data_offsets"]
    axis = 1 if name == "final_state" else 2
    outer = 1
    for extent in entry["shape"][:axis]:
        outer *= extent
    width = (end - begin) // (outer * 2)
    for i in range(outer):
        at = begin + (2 * i + 1) * width
        sound[at:at + width] = broken[at:at + width]
open(sys.argv[4], "wb").write(head + bytes(sound))
PY
expect 1 "witness second: head 1 of sequence 0" check narrow.safetensors second.safetensors --no-power --witness second
expect 1 "sequence 0, head 1" replay second
case $output in *"head 0"*) echo "FAIL the witness of head 1 speaks of head 0: $output"; failures=$((failures + 1)) ;; esac
grep -q "head 1" second/README.txt || { echo "FAIL the README of a witness has another head"; failures=$((failures + 1)); }
expect 0 "deltaproof replay small" shrink small
expect 0 "small: nothing smaller found: it stays as it was, 1 token of 1 head" shrink small
expect 1 "reproduced" replay small
expect 2 "is not a witness" check narrow.safetensors broken.safetensors --no-power --witness parts
expect 0 "no witness is written" check wide.safetensors wide64.safetensors --no-power --witness unneeded
[ ! -e unneeded ] || { echo "FAIL a witness of nothing"; failures=$((failures + 1)); }
expect 2 "no witness" shrink parts
expect 2 "leave --seed out" replay small --seed 3
expect 3 "--max-seconds 1e-06 ran out before the witness was judged once; nothing was changed" shrink small --max-seconds 0.000001
expect 3 "--max-seconds 1e-06 ran out before the result was judged again" replay small --max-seconds 0.000001
expect 3 "undecided: --max-seconds 1e-06 ran out: " invariant chunk-size --whole wide.safetensors wide64.safetensors --part wide.safetensors wide16.safetensors --max-seconds 0.000001
sed -i 's/"first_bad_stage": "w"/"first_bad_stage": "u"/' small/verdict.json
expect 2 "the first bad stage is now w, but was u" replay small
cp wide64.safetensors small/result.safetensors
expect 2 "small/result.safetensors: its sha256" replay small
expect 2 "verdict.json" replay parts

echo "$ran calls, $failures failures"
[ "$failures" = 0 ]
