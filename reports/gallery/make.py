# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""Runs every public kernel of deltaproof.adapters that is installed on the regimes, records what comes out, judges it and writes the page.

    ./run gallery          installs the packages of requirements.txt, then runs this; recordings that are there are not made again

A refusal is confirmed by a token loop in fp64 that shares no code with deltaproof (confirm.py), and by what comes out when one thing is
changed. Results of the same bits are kept once.
"""

import json
import math
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy
from confirm import CHANGES, ROOT, against_the_loop

import deltaproof
from deltaproof import adapters, recorder

HERE = Path(__file__).resolve().parent
FAULTS = sorted((HERE / "faults").glob("*.py"))
RECORDINGS = ROOT / "build/gallery/recordings"  #: all; those of the page are copied beside it
SHAPE = {"T": 128, "K": 16, "V": 4, "H": 1, "HV": 1, "dtype": "bf16"}
WIDE = {"T": 80, "K": 64, "V": 64, "initial_state": "none"}
WIDEST = {**WIDE, "K": 128, "V": 128}
#: name: what it is, regime, what differs from SHAPE
CASES = {
    "typical": ("unit keys of random direction", "typical", {}),
    "typical-fp32": ("the same in fp32", "typical", {"dtype": "fp32"}),
    "no-state": ("the same in fp32, without an initial state", "typical", {"dtype": "fp32", "initial_state": "none"}),
    "near-repeated": ("one key, all but repeated", "near-repeated", {}),
    "slow-decay": ("log decays of about -0.001", "slow-decay", {}),
    "strong-decay": ("log decays from -25 to -5", "strong-decay", {}),
    "beta-two": ("steps that round to 2", "beta-two", {}),
    "tiny-keys": ("rows of norm 0 to 1, normalised by the kernel", "tiny-keys", {}),
    "model-gates": ("gates as models start with", "model-gates", {}),
    "reset": ("g = -inf once in 32 tokens", "typical", {"gate": "reset"}),
    "reset-finite": ("the same resets as g = -10000", "typical", {"gate": "reset"}),
    "typical-64": ("as typical, T = 80, K = V = 64, no initial state", "typical", WIDE),
    "near-repeated-64": ("as near-repeated, of that shape", "near-repeated", WIDE),
    "tiny-keys-64": ("as tiny-keys, of that shape", "tiny-keys", WIDE),
    "reset-64": ("as reset, of that shape", "typical", {**WIDE, "gate": "reset"}),
    "typical-128": ("as typical, T = 80, K = V = 128, no initial state", "typical", WIDEST),
    "tiny-keys-128": ("as tiny-keys, of that shape, with l2norm_eps = 1e-5", "tiny-keys", WIDEST),
}


def takes(kernel, op, name):
    """Whether this kernel is judged on this case: wide ones where it takes no others, `no-state` where it takes no state."""
    more = CASES[name][2]
    gated = "gate" in more or "decay" in name or name == "model-gates"
    return (op != "delta_rule" or not gated) and ("K" in more) == bool(kernel.dims) and (name != "no-state" or not kernel.state)


def problem_of(name, op):
    """The file of a case."""
    _, regime, more = CASES[name]
    file = RECORDINGS / f"{op}.{name}.problem.safetensors"
    if not file.exists():
        p = next(deltaproof.cases(op, regime, seeds=1, to="numpy", **{**SHAPE, "initial_state": "normal", **more})).problem
        if name == "reset-finite":
            p.g = numpy.where(numpy.isneginf(p.g), numpy.float32(-1e4), p.g)
        if name == "tiny-keys-128":
            p.l2norm_eps = 1e-5
        deltaproof.record(RECORDINGS / f"{op}.{name}", p)
    return file


def bits_of(result):
    """What a result holds, whatever its words."""
    found = recorder.read(result, "numpy")
    return tuple((n, str(found[n].dtype), found[n].tobytes()) for n in ("o", "final_state") if n in found)


def version_of(result):
    return recorder.read(result, "numpy")["producer"].split(",")[0]


def recorded(kernel, file, name, op):
    """The result's file, made where there is none of this version."""
    out = RECORDINGS / f"{op}.{name}.{kernel.name.replace(' ', '-')}.result.safetensors"
    if not out.exists() or version_of(out) != f"{kernel.package} {kernel.version}":
        kernel.record(file, out)
    return out


def changed(kernel, file, case, op):
    """For each thing that may be the cause: what the verdict is when it alone is changed, and the loop's errors."""
    given, said = deltaproof.load(file), []
    for change in CHANGES:
        if not change.concerns(kernel, case):
            continue
        other = replace(kernel, call=change.call(adapters.vllm)) if change.call else kernel
        with tempfile.TemporaryDirectory() as at:
            files = deltaproof.record(Path(at) / "changed", change.problem(given), other(change.problem(given)))
            verdict = deltaproof.check(*files, change.plan(plan_of(kernel)), power=False)
            said.append({"what": change.what, "word": verdict.word, "loop": against_the_loop(*files), "reason": verdict.reason})
    return said


def plan_of(kernel):
    return next(plan.name for plan in deltaproof.plans() if kernel.name in plan.kernels)


def judged(kernel, op, name, known):
    """The row of a kernel and a case; None where it does not compute it. known: results by their bits, which are judged once."""
    file = problem_of(name, op)
    if kernel.refuses(deltaproof.load(file, None)):
        return None
    result = recorded(kernel, file, name, op)
    row = {"kernel": kernel.name, "op": op, "case": name, "version": version_of(result)}
    key = (file, plan_of(kernel), bits_of(result))
    if key in known:
        return {**row, **{n: known[key][n] for n in ("word", "plan", "errors")}, "same_as": known[key]["kernel"]}
    verdict = deltaproof.check(file, result)
    row |= {"word": verdict.word, "plan": verdict.plan, "errors": {n: rounded(t["rel_fro"]) for n, t in verdict.tensors.items()}}
    first = not any((kernel.name, op) == (r["kernel"], r["op"]) for r in known.values())
    if first or verdict.word == "refuted":
        row["files"] = [file.name, result.name]
    if verdict.word == "refuted":
        row["reason"] = verdict.reason
        row["loop"] = against_the_loop(file, result)
        row["changed"] = changed(kernel, file, name, op)
    known[key] = row
    print(kernel.name, op, name, verdict.word, flush=True)
    return row


def rounded(x):
    """What does not depend on the last bits of a reference."""
    return x if isinstance(x, str) or x is None else float(f"{x:.3e}")


def shown(x):
    return "not finite" if x is None or not math.isfinite(float(x)) else f"{float(x):.1e}"


def worst(rows):
    """The case on which o and the state are furthest from the truth; one that is refuted goes before."""
    key = lambda row: max(float("inf") if x is None else float(x) for x in row["errors"].values())
    return max(rows, key=lambda row: (row["word"] == "refuted", key(row)))


def table(rows):
    by_kernel = {}
    for row in rows:
        by_kernel.setdefault((row["kernel"], row["op"]), []).append(row)
    lines = ["| implementation | op | version | plan | verdict | worst input | o | state |", "|---|---|---|---|---|---|---|---|"]
    for (kernel, op), found in by_kernel.items():
        bad = [row["case"] for row in found if row["word"] == "refuted"]
        holds = sum(row["word"] == "holds" for row in found)
        says = f"refuted on {', '.join(bad)}; holds on {holds}" if bad else f"holds on {holds} of {len(found)}"
        w = worst(found)
        errors = [shown(w["errors"][n]) if n in w["errors"] else "" for n in ("o", "final_state")]
        plan = f"[{w['plan']}](../../src/plan/presets/{w['plan']}.toml)"
        lines.append(f"| {kernel} | {op} | {w['version']} | {plan} | {says} | {w['case']} | {errors[0]} | {errors[1]} |")
    return lines, len(by_kernel)


def refusals(rows):
    """A section for each cause: the first verdict, and the loop's errors of all, before and after the change."""
    refused = [row for row in rows if row["word"] == "refuted"]
    causes = {}
    for row in refused:
        if "same_as" not in row:
            causes.setdefault(row["changed"][-1]["what"], []).append(row)
    lines = []
    for cause, found in causes.items():
        first = found[0]
        lines += [f"### {cause}", "", f"{first['kernel']}, {first['case']}: {first['reason']}.", ""]
        lines += ["| implementation | case | loop, before | verdict, after | loop, after |", "|---|---|---|---|---|"]
        for row in found:
            problem, result = (f"recordings/{name}" for name in row["files"])
            place = (row["kernel"], row["op"], row["case"])
            same = [r["kernel"] for r in refused if (r.get("same_as"), r["op"], r["case"]) == place]
            names = f"[{row['kernel']}]({result})" + (f"; the same bits: {', '.join(same)}" if same else "")
            after = row["changed"][-1]
            lines.append(f"| {names} | [{row['case']}]({problem}) | {said(row['loop'])} | {after['word']} | {said(after['loop'])} |")
        lines.append("")
    return lines


def said(loop):
    return ", ".join(f"{n} {x}" for n, x in loop.items())


def output_of(script):
    """What a script of faults/ prints, with the packages that are installed here."""
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"gallery: {script}: {done.stderr}")
    return done.stdout.strip().splitlines()


def reports(printed):
    lines = [
        "## To report", "", "Each fault by the package alone, on the smallest inputs that show it; `./run gallery` runs the scripts.", "",
    ]  # fmt: skip
    for script in FAULTS:
        says = [line[2:] for line in script.read_text(encoding="utf-8").splitlines() if line.startswith("# ")]
        lines += [f"[{script.stem}](faults/{script.name}): {' '.join(says)}", "", "```", *printed[script.stem], "```", ""]
    return lines


def counted(rows):
    words = Counter("hold" if row["word"] == "holds" else f"are {row['word']}" for row in rows)
    return ", ".join(f"{n} {word}" for word, n in words.most_common())


def page(rows, printed):
    lines, kernels = table(rows)
    return "\n".join([
        "# Gallery", "",
        "Public implementations of delta rules that run on a CPU, each judged on the regimes by the preset that lists it.",
        "`./run gallery` makes this page again: it installs the packages from PyPI, runs what is not recorded yet, and judges all of it.",
        "[recordings](recordings) has one of each implementation and all that are refuted; the program judges them without the packages.", "",
        f"{kernels} implementations, {len(rows)} results: {counted(rows)}.", "",
        "A [plan](../../docs/plan-keys.md) states the arithmetic of an implementation, as its source has it. It holds where its outputs are as",
        "close to the exact ones as that arithmetic is. It is refuted where they are not, or where the arithmetic itself fails on these inputs.", "",
        *lines, "",
        "The last columns are relative errors on the worst input, in the Frobenius norm. In bf16, o has 1.6e-3 from its own rounding. On",
        "another processor torch and XLA may add in another order: then last digits differ.",
        "", "## Inputs", "", "T = 128, K = 16, V = 4, one head, bf16, an initial state, unless a case says otherwise.", "",
        "| case | what it is |", "|---|---|",
        *(f"| {name} | {says} |" for name, (says, _, _) in CASES.items()),
        "", "## What is refuted", "",
        "By cause. A heading names what was changed; nothing else was, and then the verdict holds. Below it stands the first verdict in words,",
        "then for each the relative errors that a token loop in fp64 finds ([confirm.py](confirm.py), numpy alone), before and after the change.",
        "`deltaproof check PROBLEM RESULT` repeats a verdict on the linked files; `--witness DIR` also writes the shortest inputs that show it.", "",
        *refusals(rows),
        *reports(printed),
        "## Not here", "",
        "- Kernels for a card: Triton kernels run in Triton's interpreter only as [examples/recording-fla](../../examples/recording-fla)",
        "  completes it; [tests/recordings](../../tests/recordings) has fla's.",
        "- SGLang's kernel for CPUs is the source of vLLM's; its own build is not on PyPI.",
        "- Kernels for TPUs. Of tokamax the functions beneath the op are judged; how it makes gates from raw ones is not.",
        "- Speed, memory and gradients. A verdict speaks of these inputs and of this version alone.", "",
    ])  # fmt: skip


def main():
    warnings.simplefilter("ignore")
    RECORDINGS.mkdir(parents=True, exist_ok=True)
    missing = [kernel.name for kernel in adapters.kernels() if kernel.version is None]
    if missing:
        sys.exit(f"gallery: not installed: {', '.join(missing)}; the page is left as it is")
    rows, known = [], {}
    for kernel in adapters.kernels():
        cases = [(op, name) for op in kernel.ops for name in CASES if takes(kernel, op, name)]
        rows += [row for op, name in cases if (row := judged(kernel, op, name, known)) is not None]
    (HERE / "gallery.json").write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
    printed = {script.stem: output_of(script) for script in FAULTS}
    (HERE / "faults.json").write_text(json.dumps(printed, indent=1) + "\n")
    shutil.rmtree(HERE / "recordings", ignore_errors=True)
    (HERE / "recordings").mkdir()
    for name in {name for row in rows for name in row.get("files", ())}:
        shutil.copyfile(RECORDINGS / name, HERE / "recordings" / name)
    (HERE / "README.md").write_text(page(rows, printed))
    print(f"{HERE / 'README.md'}: {len(rows)} results")


if __name__ == "__main__":
    main()
