# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""`check_implementation` of GPU MODE's tasks (gpu-mode/reference-kernels): a task's reference.py ends with

    from deltaproof.compat.gpumode import checking
    check_implementation = checking(
        lambda data: Problem(*data, op="gated_delta_rule"), lambda output: Result(*output, chunk_size=64), plan="fla-chunk-gdn")

It is called as theirs, with the data of a test and what the submission returned, and gives (good, message).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..exchange import ProblemLike, ResultLike
from ..verdict import check


def checking(
    problem: Callable[[Any], ProblemLike], result: Callable[[Any], ResultLike], plan: Any = None, **options: Any
) -> Callable[[Any, Any], tuple[bool, str]]:
    """problem: makes one of a task's `data`; result: one of the submission's output. plan, options: those of `check`.

    What is no result at all (a wrong shape, another dtype) is not good either: the message says what."""

    def check_implementation(data: Any, output: Any) -> tuple[bool, str]:
        given = problem(data)
        try:
            verdict = check(given, result(output), plan, **options)
        except (ValueError, TypeError) as e:
            return False, str(e)
        return bool(verdict), "" if verdict else verdict.text

    return check_implementation
