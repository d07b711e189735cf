# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""fla's `assert_close`, with the plan's verdict beside its ratio. A test of fla changes one import and adds one line:

    from deltaproof.compat.fla import assert_close, beside
    with beside(problem, Result(tri, tri_ht, chunk_size=64), plan="fla-chunk-gdn"):
        assert_close("o", ref, tri, 0.005)
        assert_close("ht", ref_ht, tri_ht, 0.005)

What passes and what fails is decided as in fla, by ratio alone: rms(ref - tri) / (rms(ref) + 1e-8) against `ratio`, nothing asked
where the largest difference is within err_atol. fla's leniency under its own CI's environment variable is left out.
"""

from __future__ import annotations

import contextlib
import contextvars
import logging
import warnings as _warnings
from collections.abc import Iterator
from typing import Any

from ..exchange import ProblemLike, ResultLike
from ..verdict import Verdict, check

_log = logging.getLogger("deltaproof")
_verdict: contextvars.ContextVar[Verdict | None] = contextvars.ContextVar("deltaproof_verdict", default=None)

#: fla's names of tensors, and those of a verdict
NAMES = {"o": "o", "out": "o", "ht": "final_state", "final_state": "final_state", "hT": "final_state"}


@contextlib.contextmanager
def beside(problem: ProblemLike, result: ResultLike, plan: Any = None, **options: Any) -> Iterator[Verdict]:
    """Judges once, prints the verdict, and lets each `assert_close` inside print what it says of its tensor."""
    verdict = check(problem, result, plan, **options)
    print(verdict.text, end="")
    token = _verdict.set(verdict)
    try:
        yield verdict
    finally:
        _verdict.reset(token)


def error_ratio(ref: Any, tri: Any) -> float:
    """rms(ref - tri) / (rms(ref) + 1e-8), in the tensors' own arithmetic as fla takes it."""
    ref, tri = ref.detach(), tri.detach()
    error = float((ref - tri).flatten().square().mean().sqrt().item())
    return error / (float(ref.flatten().square().mean().sqrt().item()) + 1e-8)


def assert_close(prefix: str, ref: Any, tri: Any, ratio: float, warning: bool = False, err_atol: float = 1e-6) -> None:
    """fla's signature. Raises AssertionError where the ratio is not below `ratio`; with `warning` warns instead."""
    largest = (ref.detach() - tri.detach()).flatten().abs().max().item()
    found = error_ratio(ref, tri)
    says = f"{prefix:>16} diff: {largest:.6f} ratio: {found:.6f}" + _beside(prefix)
    print(says)
    _log.info(says)
    if largest <= err_atol:
        return
    if warning:
        if not found < ratio:
            _warnings.warn(says, stacklevel=2)
        return
    if not found < ratio:
        raise AssertionError(f"{says} (limit {ratio})")


def _beside(prefix: str) -> str:
    verdict = _verdict.get()
    if verdict is None:
        return ""
    tensor = verdict.tensors.get(NAMES.get(prefix.strip(), prefix.strip()))
    if tensor is None:
        return f"   deltaproof: {verdict.word}"
    says = f"   deltaproof:{f' plan {verdict.plan}' if verdict.plan else ''} {tensor['verdict']}"
    return says if tensor["rel_fro"] is None else f"{says}, rel_fro {float(tensor['rel_fro']):.3e}"
