# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""Runs every public kernel of deltaproof.adapters that is installed on the regimes, records what comes out, judges it and writes the page.

    ./run gallery          installs the packages of requirements.txt, then runs this; recordings that are there are not made again

A refusal is confirmed by a token loop in fp64 that shares no code with deltaproof, and by what holds when one thing is changed.
"""

import json
import math
import sys
import warnings
from pathlib import Path

import numpy

import deltaproof
from deltaproof import adapters, recorder

HERE = Path(__file__).resolve().parent
RECORDINGS = HERE / "recordings"
SHAPE = {"T": 128, "K": 16, "V": 8, "H": 1, "HV": 1, "dtype": "bf16"}
#: name: what it is, regime, what differs from SHAPE
CASES = {
    "typical": ("unit keys of random direction", "typical", {"initial_state": "normal"}),
    "typical-fp32": ("the same in fp32", "typical", {"initial_state": "normal", "dtype": "fp32"}),
    "near-repeated": ("one key, all but repeated", "near-repeated", {}),
    "slow-decay": ("log decays of about -0.001", "slow-decay", {"initial_state": "normal"}),
    "strong-decay": ("log decays from -25 to -5", "strong-decay", {}),
    "beta-two": ("steps that round to 2", "beta-two", {}),
    "tiny-keys": ("rows of norm 0 to 1, normalised by the kernel", "tiny-keys", {}),
    "model-gates": ("gates as models start with", "model-gates", {}),
    "reset": ("g = -inf once in 32 tokens", "typical", {"gate": "reset"}),
    "reset-finite": ("the same resets as g = -10000", "typical", {"gate": "reset"}),
    "no-state": ("as typical, without an initial state, in fp32", "typical", {"initial_state": "none", "dtype": "fp32"}),
}
#: cases that differ in one thing: where the first is refuted and the second holds, that thing is the cause
ONE_THING = {
    "reset": ("reset-finite", "-inf in the gate"),
    "reset-finite": ("typical", "gates of -10000"),
    "typical": ("typical-fp32", "bf16 inputs, and what the kernel stores in their format"),
}


def problem_of(name, op):
    """The file of a case; None where the op has no such case."""
    _, regime, more = CASES[name]
    if op == "delta_rule" and ("gate" in more or "decay" in name or name == "model-gates"):
        return None
    file = RECORDINGS / f"{op}.{name}.problem.safetensors"
    if not file.exists():
        case = next(deltaproof.cases(op, regime, seeds=1, to="numpy", **{**SHAPE, **more}))
        p = case.problem
        if name == "reset-finite":
            p.g = numpy.where(numpy.isneginf(p.g), numpy.float32(-1e4), p.g)
        deltaproof.record(file.with_name(f"{op}.{name}"), p)
    return file


def slug(kernel):
    return kernel.name.replace(" ", "-")


def recorded(kernel, file, name, op):
    """The result's file, made where there is none of this version."""
    out = RECORDINGS / f"{op}.{name}.{slug(kernel)}.result.safetensors"
    if out.exists() and recorder.read(out, "numpy").get("producer", "").startswith(f"{kernel.package} {kernel.version},"):
        return out
    kernel.record(file, out)
    return out


def loop(file):
    """o and final_state by a token loop in fp64, from the formulas of docs/exchange-format.md."""
    p = recorder.read(file, "numpy")
    q, k, v, beta = (p[n].astype("f8") for n in ("q", "k", "v", "beta"))
    if p.get("qk_l2norm"):
        q, k = (x / numpy.sqrt((x * x).sum(-1, keepdims=True) + 1e-6) for x in (q, k))
    n = v.shape[2] // q.shape[2]
    q, k = q.repeat(n, 2), k.repeat(n, 2)
    S = (
        p["initial_state"].astype("f8").copy()
        if "initial_state" in p
        else numpy.zeros((*v.shape[0:1], v.shape[2], k.shape[3], v.shape[3]))
    )
    scale, out = p.get("scale", q.shape[3] ** -0.5), []
    for t in range(q.shape[1]):
        if "g" in p:
            decay = numpy.exp(p["g"][:, t].astype("f8"))
            S = S * (decay[..., None, None] if decay.ndim == 2 else decay[..., None])
        missing = v[:, t] - numpy.einsum("bhk,bhkv->bhv", k[:, t], S)
        S = S + numpy.einsum("bhk,bhv->bhkv", k[:, t], beta[:, t, :, None] * missing)
        out.append(scale * numpy.einsum("bhk,bhkv->bhv", q[:, t], S))
    return {"o": numpy.stack(out, 1), "final_state": S}


def against_the_loop(file, result):
    """The relative error of each tensor, or how many elements are not finite."""
    due, got, said = loop(file), recorder.read(result, "numpy"), {}
    for name, want in due.items():
        if name not in got:
            continue
        x = got[name].astype("f8")
        x = numpy.swapaxes(x, -1, -2) if name == "final_state" and got.get("state_layout") == "vk" else x
        bad = int((~numpy.isfinite(x)).sum())
        said[name] = (
            f"{bad} of {x.size} not finite" if bad else f"{numpy.linalg.norm(x - want) / numpy.linalg.norm(want):.0e}"
        )
    return said


def judged(kernel, op, name):
    file = problem_of(name, op)
    if file is None:
        return None
    given = deltaproof.load(file, None)
    if kernel.refuses(given):
        return None
    result = recorded(kernel, file, name, op)
    verdict = deltaproof.check(file, result)
    row = {
        "kernel": kernel.name,
        "op": op,
        "case": name,
        "word": verdict.word,
        "plan": verdict.plan,
        "reason": verdict.reason,
    }
    row["version"] = recorder.read(result, "numpy")["producer"].split(",")[0]
    row["errors"] = {n: t["rel_fro"] for n, t in verdict.tensors.items()}
    row["command"] = f"deltaproof check reports/gallery/recordings/{file.name} reports/gallery/recordings/{result.name}"
    if verdict.word == "refuted":
        row["loop"] = against_the_loop(file, result)
        row["stage"] = verdict.first_bad_stage or next((d["stage"] for d in verdict.diagnosis if "stage" in d), None)
    print(kernel.name, op, name, verdict.word, flush=True)
    return row


def shown(x):
    return "not finite" if x is None or not math.isfinite(float(x)) else f"{float(x):.1e}"


def worst(rows):
    """The case on which o and the state are furthest from the truth, among those that hold; that which is refuted goes before."""
    key = lambda row: max(float("inf") if x is None else float(x) for x in row["errors"].values())
    return max(rows, key=lambda row: (row["word"] == "refuted", key(row)))


def page(rows):
    by_kernel = {}
    for row in rows:
        by_kernel.setdefault((row["kernel"], row["op"]), []).append(row)
    refused = [row for row in rows if row["word"] == "refuted"]
    lines = [
        "# Gallery", "",
        "Public implementations of delta rules that run on a CPU, each judged on the regimes by the preset that lists it.",
        "`./run gallery` makes this page again: it installs the packages from PyPI, runs what is not recorded yet, and judges all of it.",
        "The recordings are in [recordings](recordings), and the commands below judge them without any of the packages.", "",
        f"{len(by_kernel)} implementations, {len(rows)} recordings: {len(rows) - len(refused)} hold or show nothing, {len(refused)} are refuted.", "",
        "| implementation | op | version | plan | verdict | worst input | o | state |", "|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for (kernel, op), found in by_kernel.items():
        bad = [row["case"] for row in found if row["word"] == "refuted"]
        w = worst(found)
        says = (
            f"refuted on {', '.join(bad)}" if bad else f"holds on {sum(r['word'] == 'holds' for r in found)} of {len(found)}"
        )
        errors = [shown(w["errors"].get(n)) if n in w["errors"] else "" for n in ("o", "final_state")]
        lines.append(
            f"| {kernel} | {op} | {w['version']} | {w['plan']} | {says} | {w['case']} | {errors[0]} | {errors[1]} |"
        )
    lines += [
        "",
        "The last columns are relative errors on the worst input, in the Frobenius norm. In bf16, o has 1.6e-3 from its own rounding.",
        "",
    ]
    lines += [
        "## Inputs",
        "",
        "T = 128, K = 16, V = 8, one head, bf16 unless a case says otherwise.",
        "",
        "| case | what it is |",
        "|---|---|",
    ]
    lines += [f"| {name} | {says} |" for name, (says, _, _) in CASES.items()]
    lines += ["", "## What is refuted", ""]
    word = {(row["kernel"], row["op"], row["case"]): row["word"] for row in rows}
    for row in refused:
        lines += [f"### {row['kernel']}: {row['case']}", "", f"{row['reason']}.", ""]
        loops = ", ".join(f"{n} {x}" for n, x in row["loop"].items())
        lines.append(f"A token loop in fp64 says the same of the recording: {loops}.")
        other, thing = ONE_THING.get(row["case"], (None, None))
        found = word.get((row["kernel"], row["op"], other))
        if found:
            same = "holds: the cause is" if found == "holds" else f"is {found} too: the cause is not only"
            lines.append(f"With one thing changed, on `{other}`, it {same} {thing}.")
        if row.get("stage"):
            lines.append(f"The planted faults that it is like begin at the stage {row['stage']}.")
        lines += ["", "```sh", row["command"], "```", ""]
    lines += [
        "## Not here", "",
        "- Kernels for a card: Triton kernels run in Triton's interpreter only as [examples/recording-fla](../../examples/recording-fla)",
        "  completes it; [tests/recordings](../../tests/recordings) has fla's.",
        "- vLLM's and SGLang's kernels for CPUs (`chunk_gated_delta_rule_cpu`): their packages on PyPI hold the GPU build. What was read in",
        "  their sources is the plan [cpu-bf16-chunk](../../tests/plans/cpu-bf16-chunk.toml).",
        "- MaxText, tpu-inference, tokamax, EasyDeL and llama.cpp: not installed by `./run gallery`; MaxText and EasyDeL ask for much else, and",
        "  tokamax 0.0.12 holds no delta rule.",
        "- Speed, memory and gradients. A verdict speaks of these inputs and of this version alone.", "",
    ]  # fmt: skip
    return "\n".join(lines)


def main():
    warnings.simplefilter("ignore")
    RECORDINGS.mkdir(exist_ok=True)
    rows, missing = [], []
    for kernel in adapters.kernels():
        if kernel.version is None:
            missing.append(kernel.name)
            continue
        rows += [row for op in kernel.ops for name in CASES if (row := judged(kernel, op, name)) is not None]
    if missing:
        sys.exit(f"gallery: not installed: {', '.join(missing)}; the page is left as it is")
    (HERE / "gallery.json").write_text(json.dumps(rows, indent=1) + "\n")
    (HERE / "README.md").write_text(page(rows))
    print(f"{HERE / 'README.md'}: {len(rows)} recordings")


if __name__ == "__main__":
    main()
