# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""`check_correctness` of KernelBench-Hard (src/eval/correctness.py): its problem's check.py, where it has drawn the inputs, says

    from deltaproof.compat.kernelbench import correctness
    check_correctness = correctness(Problem(q, k, v, beta, g, op="kda", scale=scale), plan="fla-chunk-kda", chunk_size=64)

and calls it as before: (reference_out, solution_out) gives (passed, message). Of the reference's output the shape alone counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..exchange import ProblemLike, Result
from ..verdict import check


def correctness(
    problem: ProblemLike, plan: Any = None, *, chunk_size: int | None = None, **options: Any
) -> Callable[..., tuple[bool, str]]:
    """The function for one problem. plan, options: those of `check`; chunk_size: of the solution."""

    def check_correctness(
        reference_out: Any, solution_out: Any, dtype: Any = None, override: Any = None
    ) -> tuple[bool, str]:
        """dtype and override, which choose a tolerance there, choose nothing here: the plan does."""
        if tuple(reference_out.shape) != tuple(solution_out.shape):
            return False, f"shape mismatch: ref={tuple(reference_out.shape)} sol={tuple(solution_out.shape)}"
        try:
            verdict = check(problem, Result(solution_out.detach().cpu(), chunk_size=chunk_size), plan, **options)
        except (ValueError, TypeError) as e:
            return False, str(e)
        return bool(verdict), f"ok ({verdict.reason})" if verdict else verdict.text

    return check_correctness
