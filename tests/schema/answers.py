# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""Validates what every verb but check of one result, study and report writes as JSON: answers.py PROGRAM SOURCE_DIR.

Then each answer is spoilt, and its schema must refuse it.
"""
import copy
import json
import pathlib
import subprocess
import sys
import tempfile

import jsonschema

program, source = sys.argv[1], pathlib.Path(sys.argv[2])
failures = []


def run(folder, code, *arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode != code:
        failures.append(f"{' '.join(map(str, arguments))}: exit {done.returncode}, not {code}: {done.stderr}")


def answer(folder, schema, code, *arguments):
    """The answer as parsed JSON; valid, and invalid without any of the keys that are due."""
    (folder / "answer.json").unlink(missing_ok=True)
    run(folder, code, *arguments, "--json", "answer.json")
    if not (folder / "answer.json").exists():
        return None
    parsed = json.loads((folder / "answer.json").read_text())
    for error in validators[schema].iter_errors(parsed):
        failures.append(f"{' '.join(map(str, arguments))}: {'/'.join(map(str, error.absolute_path))}: {error.message[:300]}")
    for key in validators[schema].schema["required"]:
        spoilt(schema, f"no {key}", parsed, lambda a, key=key: a.pop(key))
    return parsed


def spoilt(schema, what, parsed, change):
    broken = copy.deepcopy(parsed)
    change(broken)
    if validators[schema].is_valid(broken):
        failures.append(f"the schema {schema} accepts {what}")


validators = {}
for file in sorted((source / "schemas").glob("*.schema.json")):
    schema = json.loads(file.read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    validators[file.name.removesuffix(".schema.json")] = jsonschema.Draft7Validator(schema)

with tempfile.TemporaryDirectory() as name:
    box = pathlib.Path(name)
    for axis in ("ops", "rules", "formats", "inverses", "plans", "faults", "regimes", "beta-laws", "gate-laws", "initial-state-laws", "law-parameters", "metrics",
                 "studies", "claims"):
        entries = answer(box, "list", 0, "list", axis)
    if entries:
        spoilt("list", "an entry without a statement", entries, lambda a: a["claims"][0].pop("statement"))
        spoilt("list", "no axis", entries, lambda a: a.pop("claims"))

    small = "--T", 40, "--K", 8, "--V", 4, "--H", 1, "--HV", 1
    run(box, 0, "gen", "--op", "kda", *small, "-o", "p.safetensors")
    run(box, 0, "gen", "--regime", "huge-keys", "--op", "delta_rule", "--rule", "euler", *small, "-o", "expansive.safetensors")
    found = answer(box, "inspection", 0, "inspect", "p.safetensors")
    wild = answer(box, "inspection", 0, "inspect", "expansive.safetensors")
    if found and wild:
        if all(row["first"] is None for row in wild["preconditions"]):
            failures.append("inspect says of no row that it is concerned")
        spoilt("inspection", "a level nobody knows", found, lambda a: a["preconditions"][0].update(level="bad"))
        spoilt("inspection", "a negative token", wild, lambda a: a["preconditions"][0]["worst_at"].update(token=-1))
        spoilt("inspection", "a fact that is no text", found, lambda a: a["facts"].update(scale=1))

    golden = answer(box, "oracle", 0, "oracle", "p.safetensors", "-o", "truth.safetensors", "--round", "bf16")
    if golden:
        for key in ("radius", "decided", "undecided", "undecided_indices"):
            spoilt("oracle", f"no {key} of o", golden, lambda a, key=key: a[key].pop("o"))
        spoilt("oracle", "a negative count", golden, lambda a: a["undecided"].update(o=-1))

    advice = answer(box, "advice", 0, "advise", "p.safetensors", "-o", "plans")
    if advice:
        states = advice["kinds"][0]
        if {kind["kind"] for kind in advice["kinds"]} != {"state cache", "chunk", "decay"} or not states["choices"]:
            failures.append(f"advise answers {[kind['kind'] for kind in advice['kinds']]}, {len(states['choices'])} state caches")
        for kind in advice["kinds"]:
            if kind["best"] and not kind["best"].startswith("decay-g") and not (box / "plans" / f"{kind['best']}.toml").exists():
                failures.append(f"advise -o wrote no {kind['best']}.toml")
        for key in ("bytes", "error", "until_token", "check"):
            spoilt("advice", f"a choice without {key}", advice, lambda a, key=key: a["kinds"][0]["choices"][0].pop(key))
        spoilt("advice", "an unknown word", advice, lambda a: a["kinds"][0]["choices"][0].update(word="fine"))

    run(box, 0, "gen", "--op", "gated_delta_rule", "--cotangents", *small, "-o", "with-do.safetensors")
    slopes = answer(box, "oracle", 0, "oracle", "with-do.safetensors", "-o", "slopes.safetensors", "--gradients", "--round", "fp32")
    if slopes:
        for key in ("radius", "parts", "undecided", "undecided_indices"):
            spoilt("oracle", f"no {key} of dk", slopes, lambda a, key=key: a[key].pop("dk"))

    for chunk in (16, 32):
        run(box, 0, "emulate", "p.safetensors", "--plan", "fp32", "--chunk", chunk, "-o", f"r{chunk}.safetensors")
    run(box, 0, "emulate", "p.safetensors", "--plan", "fp32", "--chunk", 16, "--fault", "scale-missing", "-o", "bad.safetensors")
    whole = "--whole", "p.safetensors", "r32.safetensors"
    answer(box, "invariant", 0, "invariant", "chunk-size", *whole, "--part", "p.safetensors", "r16.safetensors", "--no-plan")
    answer(box, "invariant", 3, "invariant", "prefix", *whole, "--part", "p.safetensors", "r32.safetensors")
    differs = answer(box, "invariant", 1, "invariant", "chunk-size", *whole, "--part", "p.safetensors", "bad.safetensors")
    if differs:
        spoilt("invariant", "an unknown word", differs, lambda a: a.update(verdict="passed"))
        spoilt("invariant", "no part", differs, lambda a: a.update(parts=[]))
        spoilt("invariant", "a comparison without its first", differs, lambda a: a["bits"][0].pop("first"))
        spoilt("invariant", "a judged run without its tensors", differs, lambda a: a["judged"][0].pop("tensors"))

    slopes_hold = answer(box, "invariant", 0, "invariant", "gradients", "with-do.safetensors", "slopes.safetensors")
    if slopes_hold:
        spoilt("invariant", "gradients without an identity", slopes_hold, lambda a: a["gradients"]["identities"].pop())
        spoilt("invariant", "an identity without its limit", slopes_hold, lambda a: a["gradients"]["identities"][0].pop("limit"))
        spoilt("invariant", "an identity without its theorem", slopes_hold, lambda a: a["gradients"]["identities"][0].pop("because"))
        spoilt("invariant", "no identities at all", slopes_hold, lambda a: a.pop("gradients"))

    cases = "".join(
        f'[[case]]\nproblem = "p.safetensors"\nresult = "{file}.safetensors"\nplan = "fp32"\nexpect = "{word}"\n'
        for file, word in (("r16", "holds"), ("bad", "refuted"), ("gone", "holds")))
    (box / "suite.toml").write_text(cases)
    judged = answer(box, "suite", 0, "check", "suite.toml", "--no-power", "--skip-missing")
    (box / "answer.json").rename(box / "then.json")
    again = answer(box, "suite", 0, "check", "suite.toml", "--no-power", "--skip-missing", "--baseline", "then.json")
    if judged and again:
        states = [case["state"] for case in judged["cases"]]
        if states != ["judged", "judged", "skipped"] or again["baseline"] is None:
            failures.append(f"the suite has {states}, and a baseline that is {again['baseline']}")
        for case in judged["cases"][:2]:
            for error in validators["verdict"].iter_errors(case["report"]):
                failures.append(f"the suite's verdict of {case['name']}: {error.message[:300]}")
        for key in ("verdict", "expect", "state", "limit_share", "report"):
            spoilt("suite", f"a case without {key}", judged, lambda a, key=key: a["cases"][0].pop(key))
        spoilt("suite", "a negative count", judged, lambda a: a["counts"].update(failed=-1))
        spoilt("suite", "a baseline without its file", again, lambda a: a["baseline"].pop("file"))

    for name in ("fla-chunk-gdn", "euler", "mqar"):
        explained = answer(box, "explanation", 0, "explain", name)
    if explained:
        spoilt("explanation", "no entry", explained, lambda a: a.update(entries=[]))
        spoilt("explanation", "an entry without its axis", explained, lambda a: a["entries"][0].pop("axis"))

    made = answer(box, "generation", 0, "gen", *small, "-o", "one.safetensors")
    all_made = answer(box, "generation", 0, "gen", "--all", "all", "--regime", "typical", "--op", "delta_rule", "--dtype", "bf16")
    if made and all_made:
        spoilt("generation", "neither options nor cases", made, lambda a: a.pop("options"))
        spoilt("generation", "a case without options", all_made, lambda a: a["cases"][0].pop("options"))
        manifest = json.loads((box / "all" / "manifest.json").read_text())
        for error in validators["manifest"].iter_errors(manifest):
            failures.append(f"manifest.json: {error.message[:300]}")
        spoilt("manifest", "a hash that is none", manifest, lambda a: a["files"].update({"suite.toml": "0"}))
        spoilt("manifest", "no file", manifest, lambda a: a.update(files={}))
    answer(box, "generation", 0, "gen", "--for", "rollback", "--T", 40, "--K", 8, "--V", 4, "--H", 1, "--dir", "set")
    of_set = json.loads((box / "set" / "manifest.json").read_text())
    for error in validators["manifest"].iter_errors(of_set):
        failures.append(f"manifest.json of a set: {error.message[:300]}")
    spoilt("manifest", "a call without its state", of_set, lambda a: a["calls"][2].pop("state"))

    for path in (("--path", "chunk"), ("--path", "recurrent"), ("--fault", "scale-missing")):
        emulated = answer(box, "emulation", 0, "emulate", "p.safetensors", "--plan", "fp32", *path, "-o", "emulated.safetensors")
    if emulated:
        spoilt("emulation", "an unknown path", emulated, lambda a: a.update(path="sideways"))
        spoilt("emulation", "a negative chunk", emulated, lambda a: a.update(chunk_size=-1))

    law = "--keys", "cos=0.5", "--beta", "1", "--chunk", 32, "--d", 32, "--samples", 2
    answer(box, "inverse", 0, "inverse", "--method", "forward", "--format", "fp32", *law)
    unsafe = answer(box, "inverse", 1, "inverse", "--method", "neumann", "--format", "fp16", *law)
    if unsafe:
        spoilt("inverse", "a verdict that is no truth value", unsafe, lambda a: a.update(safe="no"))
        spoilt("inverse", "a negative roundoff", unsafe, lambda a: a.update(roundoff=-1))

    run(box, 1, "check", "p.safetensors", "bad.safetensors", "--plan", "fp32", "--witness", "witness")
    replayed = answer(box, "replay", 1, "replay", "witness")
    if replayed:
        for error in validators["verdict"].iter_errors(replayed["again"]):
            failures.append(f"the verdict of replay: {error.message[:300]}")
        spoilt("replay", "an unknown word", replayed, lambda a: a["recorded"].update(verdict="passed"))
    shrunk = answer(box, "shrink", 0, "shrink", "witness")
    if shrunk:
        spoilt("shrink", "a negative count", shrunk, lambda a: a.update(judged=-1))

print("\n".join(failures) or f"valid: {', '.join(validators)}")
sys.exit(1 if failures else 0)
