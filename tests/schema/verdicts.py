# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""Validates verdicts of the program against schemas/verdict.schema.json: verdicts.py PROGRAM SOURCE_DIR.

Every word and shape a verdict has is made once; then verdicts are spoilt, and the schema must refuse each.
"""
import copy
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import jsonschema

program, source = sys.argv[1], pathlib.Path(sys.argv[2])
schema = json.loads((source / "schemas/verdict.schema.json").read_text())
jsonschema.Draft7Validator.check_schema(schema)
validator = jsonschema.Draft7Validator(schema)
recordings = source / "tests/recordings"
failures = []


def undescribed(value, node, path=""):
    """Fields of a verdict that the schema, and so docs/verdict-json.md, does not know."""
    while "$ref" in node:
        node = schema["definitions"][node["$ref"].rsplit("/", 1)[1]]
    for branch in ("anyOf", "allOf"):
        if branch in node and "properties" not in node:
            return set.intersection(*(undescribed(value, one, path) for one in node[branch] if one.get("type") != "null"))
    if isinstance(value, dict) and "properties" in node:
        known = node["properties"]
        return set().union(*(undescribed(v, known[k], f"{path}/{k}") if k in known else {f"{path}/{k}"} for k, v in value.items()))
    if isinstance(value, list) and "items" in node:
        return set().union(*(undescribed(one, node["items"], path) for one in value))
    return set()


def run(*arguments):
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)


def verdict(folder, name, want, problem, result, *options):
    """The verdict as parsed JSON, valid and with the word that is due."""
    out = folder / "verdict.json"
    done = run("check", problem, result, "--json", out, "--threads", 1, *options)
    if not out.exists():
        failures.append(f"{name}: no verdict: {done.stderr}")
        return None
    parsed = json.loads(out.read_text())
    out.unlink()
    if parsed["verdict"] != want:
        failures.append(f"{name}: {parsed['verdict']} where {want} was due: {parsed['reason']}")
    for error in validator.iter_errors(parsed):
        failures.append(f"{name}: {'/'.join(map(str, error.absolute_path))}: {error.message[:300]}")
    failures.extend(f"{name}: {field} is not in the schema" for field in sorted(undescribed(parsed, schema)))
    return parsed


# The names that the schema allows are those that files may have, in the order of the one table.
header = (source / "include/deltaproof/files/stage_table.hpp").read_text()
table = re.findall(r'\{"(\w+)",\s*stage_part::(\w+)', header)
tensors = [stage for part in ("outputs", "gradients") for stage, of in table if of == part]
kinds = schema["definitions"]
for named, want in (("tensor", sorted(tensors)), ("stage", sorted(stage for stage, _ in table))):
    if sorted(kinds[named]["properties"]["name"]["enum"]) != want:
        failures.append(f"the schema's names of a {named} are not those of stage_table.hpp: {want}")
if sorted(kinds["suspect"]["properties"]["tensor"]["enum"]) != sorted(tensors):
    failures.append(f"the schema's tensors of a diagnosis are not those of stage_table.hpp: {tensors}")


def made(folder, plan, fault, *generation):
    """A problem and what an emulated kernel leaves on it."""
    problem, result = folder / "p.safetensors", folder / "r.safetensors"
    for arguments in (("gen", *generation, "-o", problem),
                      ("emulate", problem, "--plan", plan, *(("--fault", fault) if fault else ()), "-o", result)):
        done = run(*arguments)
        if done.returncode != 0:
            failures.append(f"{' '.join(map(str, arguments))}: {done.stderr}")
    return problem, result


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    small = ("--T", 70, "--K", 16, "--V", 16, "--H", 1, "--HV", 1)
    gdn = recordings / "grouped_heads.problem.safetensors", recordings / "grouped_heads.chunk.safetensors"
    abuse = recordings / "steep_gates.problem.safetensors", recordings / "steep_gates.chunk.safetensors"
    holds = verdict(folder, "holds", "holds", *gdn)
    verdict(folder, "no plan", "measured", *gdn, "--no-plan")
    verdict(folder, "a budget of the user", "refuted", *gdn, "--no-plan", "--max-error", "o:rel_fro=1e-9", "--because", "a test")
    verdict(folder, "without power", "holds", *gdn, "--no-power")
    verdict(folder, "not finite", "refuted", *abuse)
    faulty = made(folder, "fla-chunk-delta", "u-beta-missing", "--regime", "typical", *small)
    refuted = verdict(folder, "a planted fault", "refuted", *faulty, "--plan", "fla-chunk-delta")
    done = run("check", *faulty, "--plan", "fla-chunk-delta", "--no-power", "--witness", folder / "witness")
    witness = json.loads((folder / "witness/verdict.json").read_text()) if done.returncode == 1 else {}
    for error in validator.iter_errors(witness):
        failures.append(f"a witness: {'/'.join(map(str, error.absolute_path))}: {error.message[:300]}")
    failures.extend(f"a witness: {field} is not in the schema" for field in sorted(undescribed(witness, schema)))
    expansive = "--regime", "huge-keys", "--rule", "euler", "--beta", "near-one"
    diverging = verdict(folder, "diverging", "holds", *made(folder, "fla-recurrent-delta", None, *expansive, *small),
                        "--plan", "fla-recurrent-delta")
    nothing = "--regime", "typical", "--T", 0, "--K", 16, "--V", 16, "--H", 1, "--initial-state", "none"
    verdict(folder, "vacuous", "vacuous", *made(folder, "fla-recurrent-delta", None, *nothing), "--plan", "fla-recurrent-delta")
    backward = folder / "with-do.safetensors", folder / "slopes.safetensors"
    for arguments in (("gen", "--beta", 3, "--gate", 0, "--regime", "collinear", "--op", "gated_delta_rule", "--cotangents", "--T", 200,
                       *small[2:], "-o", backward[0]),
                      ("oracle", backward[0], "--gradients", "--round", "fp32", "-o", backward[1])):
        done = run(*arguments)
        if done.returncode != 0:
            failures.append(f"{' '.join(map(str, arguments))}: {done.stderr}")
    slopes = verdict(folder, "gradients alone", "holds", *backward, "--max-error", "rel_fro=1e-6", "--because", "a test")
    if slopes and not slopes["gradients_diverge_at"]:
        failures.append("gradients alone: their states do not leave fp32")
    # A backward pass with its stages; and wrong sums over the heads of a group, which only dq and dk show.
    heads = recordings / "backward/kda_gva_varlen.problem.safetensors", recordings / "backward/kda_gva_varlen.chunk.safetensors"
    passed = verdict(folder, "a backward pass", "holds", *heads)
    wrong = folder / "averaged.safetensors"
    run("emulate", heads[0], "--plan", "fla-chunk-kda", "--gradients", "--fault", "gva-averaged", "-o", wrong)
    averaged = verdict(folder, "a planted backward fault", "refuted", heads[0], wrong, "--plan", "fla-chunk-kda")
    if passed and not {stage for stage, of in table if of == "gradients"} <= {stage["name"] for stage in passed["stages"]}:
        failures.append("a backward pass: its stages are not judged")
    if averaged and {"dq", "dk"} != {suspect["tensor"] for suspect in averaged["diagnosis"]}:
        failures.append("a planted backward fault: its diagnosis is not of dq and dk")
    if diverging and not diverging["diverges_at"]:
        failures.append("diverging: it does not diverge")

    def spoilt(what, verdict_of, change):
        """The schema refuses what `change` makes of a verdict."""
        broken = copy.deepcopy(verdict_of)
        change(broken)
        if validator.is_valid(broken):
            failures.append(f"the schema accepts a verdict with {what}")

    if holds and refuted and diverging and averaged:
        for key in schema["required"]:
            spoilt(f"no {key}", holds, lambda v, key=key: v.pop(key))
        for key in ("name", "max_abs", "radius", "worst", "budget", "provenance", "nonfinite"):
            spoilt(f"no {key} of a tensor", holds, lambda v, key=key: v["tensors"][0].pop(key))
        for key in ("of", "tokens", "head"):
            spoilt(f"a witness without {key}", witness, lambda v, key=key: v["witness"].pop(key))
        spoilt("an unknown word", holds, lambda v: v.update(verdict="passed"))
        spoilt("a number in words", holds, lambda v: v["oracle"].update(radius="1e-3"))
        spoilt("holds and a bad stage", holds, lambda v: v.update(first_bad_stage="u"))
        spoilt("holds without keeping its plan", holds, lambda v: v.update(conforms=False))
        spoilt("a negative token", refuted, lambda v: v["tensors"][0]["worst"].update(token=-1))
        spoilt("a stage of no kernel", holds, lambda v: v["stages"][0].update(name="dAi"))
        spoilt("a diagnosis of a stage", averaged, lambda v: v["diagnosis"][0].update(tensor="dv2"))
        spoilt("a diagnosis without a fault", refuted, lambda v: v["diagnosis"][0].pop("fault"))
        spoilt("a divergence of no head", diverging, lambda v: v["diverges_at"].update(count=0))
        spoilt("no remedy where one is due", holds, lambda v: v.update(verdict="vacuous"))

print("\n".join(failures) or f"valid: {schema['title']}")
sys.exit(1 if failures else 0)
