# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""Public kernels that run on a CPU, each with what its call needs: the library of its tensors, the unit of its gate, its layout, its
chunk length. A module for each package, which is imported when a kernel is called:

    import deltaproof
    from deltaproof.adapters import transformers
    case = next(deltaproof.cases("gated_delta_rule", "typical", T=128, K=16, V=8, to=None))
    for kernel in transformers.KERNELS:
        print(deltaproof.check(case, kernel(case)))

A preset lists each kernel's name, so that no plan has to be named. What a kernel cannot do is refused with a sentence.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import math
import os
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from .. import recorder
from .._core import format_error
from ..exchange import Problem, ProblemLike, Result, load, problem_file, problem_of, record_result
from ..tensors import converted, take, unit_of_gate

PACKAGES = ("transformers", "fla", "attn_gym", "jax", "mlx", "vllm", "ejkernel", "tpu_inference", "maxtext", "tokamax", "ggml")


@dataclass(frozen=True)
class Kernel:
    """A public kernel. Call it with a problem (in memory, or a file) for a Result; `record` writes the result of a file."""

    name: str  #: as results and plans name it
    package: str  #: the distribution that has it
    tested: str  #: the version of it that the tests run
    ops: tuple[str, ...]
    call: Callable[[Problem], Any]  #: gives (o, final_state) of a Problem of `library`'s tensors
    library: str = "torch"
    gate: str = "log"  #: the unit in which it takes g: log, log2 or decay
    chunk_size: int | None = None
    state_layout: str = "kv"
    scale: str = "any"  #: any, default (K ** -0.5, not to be given) or one (q is to be scaled before)
    l2norm: bool = False  #: can normalise q and k itself
    l2norm_eps: float | None = 1e-6  #: with this under the root; None: with what the problem says
    grouped: bool = True  #: takes fewer heads of q and k than of v
    whole_chunks: bool = False  #: takes multiples of its chunk length alone
    state: bool = True  #: takes an initial state
    unit_beta: bool = False  #: takes beta from 0 to 1 alone
    least_gate: float = -math.inf  #: takes no log decay below this
    dtypes: tuple[str, ...] = ("fp32", "bf16", "fp16", "fp64")  #: of q, k and v
    dims: tuple[int, ...] = ()  #: what K and V may be; empty: anything
    square: bool = False  #: takes K = V alone

    @property
    def version(self) -> str | None:
        """What is installed; None where nothing is."""
        try:
            return importlib.metadata.version(self.package)
        except importlib.metadata.PackageNotFoundError:
            return None

    def refuses(self, p: Problem) -> str:
        """Why it does not compute this problem; empty where it does."""
        K, V, H, HV = p.q.shape[3], p.v.shape[3], p.q.shape[2], p.v.shape[2]
        dtype = p.q.dtype.lower().replace("f", "fp").replace("bfp", "bf")
        exact = p.scale is None or float(p.scale) == float(recorder.decimal(K**-0.5))
        for cannot, says in (
            (p.op not in self.ops, f"computes {', '.join(self.ops)}, not {p.op}"),
            (dtype not in self.dtypes, f"takes {', '.join(self.dtypes)}, not {dtype}"),
            (self.dims and not {K, V} <= set(self.dims), f"takes K and V of {self.dims}, not {K} and {V}"),
            (self.square and K != V, f"takes K = V, not {K} and {V}"),
            (p.rule != "euler", f"has no rule {p.rule}"),
            (p.gate_activation != "none", f"has no gate_activation {p.gate_activation}"),
            (p.beta_activation != "none", f"has no beta_activation {p.beta_activation}"),
            (p.num_householder != 1, "makes one step for each token"),
            (p.cu_seqlens is not None, "takes no packed sequences"),
            (p.qk_l2norm and not self.l2norm, "does not normalise q and k"),
            (
                p.qk_l2norm and self.l2norm_eps not in (None, p.l2norm_eps),
                f"normalises with l2norm_eps = {self.l2norm_eps}, not {p.l2norm_eps}",
            ),
            (H != HV and not self.grouped, f"takes as many heads of q and k as of v, not {H} and {HV}"),
            (self.scale == "default" and not exact, f"has the scale {K} ** -0.5 alone, not {p.scale}"),
            (
                self.whole_chunks and p.q.shape[1] % (self.chunk_size or 1) != 0,
                f"takes multiples of {self.chunk_size} tokens",
            ),
            (p.initial_state is not None and not self.state, "takes no initial state"),
            (self.unit_beta and not all(0 <= b <= 1 for b in _numbers(p.beta)), "takes beta from 0 to 1 alone"),
            (
                p.g is not None and self.least_gate > -math.inf and not min(_numbers(p.g)) >= self.least_gate,
                f"takes no log decay below {self.least_gate}",
            ),
            (
                self.scale == "one" and math.frexp(_scale(p))[0] != 0.5,
                f"has no scale, and q times {_scale(p)} would be rounded; give a problem whose scale is a power of 2 (the default: K a power of 4)",
            ),
        ):
            if cannot:
                return f"{self.name} {says}"
        return ""

    def __call__(self, problem: ProblemLike) -> Result:
        """Runs it. Raises format_error where it cannot compute this problem, ImportError where its package is not installed."""
        given = problem_of(problem_file(problem))
        says = self.refuses(given)
        if says:
            raise format_error(says)
        p = replace(given, **{name: _for(getattr(given, name), self.library, name) for name in recorder.PROBLEM_TENSORS})
        if given.g is not None and self.gate != "log":
            p.g = _for(unit_of_gate(given.g, self.gate), self.library, "g")
        p.scale = _scale(given)
        o, state = self.call(p)
        return Result(
            _taken(o, "o"),
            None if state is None else _taken(state, "final_state"),
            kernel=self.name,
            path="chunk" if self.chunk_size else "recurrent",
            chunk_size=self.chunk_size,
            state_layout=self.state_layout,
            producer=self._producer(),
        )

    def record(self, file: str | os.PathLike[str], out: str | os.PathLike[str] | None = None) -> str:
        """Runs it on a problem file and writes its result; returns the result's name."""
        r = self(load(file, None))
        words = {name: getattr(r, name) for name in ("path", "chunk_size", "state_layout", "producer")}
        tensors = {"o": r.o, "final_state": r.final_state}
        return record_result(file, {n: t for n, t in tensors.items() if t is not None}, self.name, out=out, **words)

    def _producer(self) -> str:
        said = f"{self.package} {self.version}, {recorder.environment()}"
        return said + (f", gate given as {self.gate}" if self.gate != "log" else "")


def bare(distribution: str, package: str) -> None:
    """Makes a package and those above it importable without running what their __init__ does, which may need a TPU."""
    names = package.split(".")
    for n in range(len(names)):
        name = ".".join(names[: n + 1])
        folder = importlib.metadata.distribution(distribution).locate_file(name.replace(".", "/"))
        sys.modules.setdefault(name, types.ModuleType(name)).__path__ = [str(folder)]


def _numbers(x: Any) -> list[float]:
    return recorder._floats(x.dtype, x.shape, x.tobytes())


def _scale(p: Problem) -> float:
    return float(p.scale) if p.scale is not None else float(p.q.shape[3]) ** -0.5


def _for(x: Any, library: str, name: str) -> Any:
    return None if x is None or name == "cu_seqlens" else converted(x, library)


def _taken(x: Any, name: str) -> Any:
    if hasattr(x, "detach"):
        x = x.detach()
    return take(x.contiguous() if hasattr(x, "contiguous") else x, name)


def kernels(*packages: str) -> list[Kernel]:
    """Those of these packages, or of all; whether a package is installed says `Kernel.version`."""
    found = []
    for package in packages or PACKAGES:
        if package not in PACKAGES:
            raise format_error(f"no adapter is called {package!r}; they are {', '.join(PACKAGES)}")
        found += importlib.import_module(f".{package}", __name__).KERNELS
    return found
