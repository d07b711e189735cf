# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

PROBLEM_TENSORS: tuple[str, ...]
COTANGENTS: tuple[str, ...]
PROBLEM_WORDS: tuple[str, ...]
STAGES: tuple[str, ...]
RESULT_TENSORS: tuple[str, ...]
GRADIENTS: tuple[str, ...]
BACKWARD_STAGES: tuple[str, ...]
STATE_TENSORS: tuple[str, ...]
STATE_WORDS: tuple[str, ...]
RESULT_FILE: tuple[str, ...]
RESULT_WORDS: tuple[str, ...]
NAMES: dict[str, str]
GATES: tuple[str, ...]
CALL_SITES: dict[str, tuple[str | None, ...]]
BACKWARD_SITES: dict[str, tuple[str | None, ...]]

def record(
    path: str | os.PathLike[str], problem: Mapping[str, Any], result: Mapping[str, Any] | None = ...
) -> tuple[str, ...]: ...
def record_result(
    problem_file: str | os.PathLike[str],
    tensors: Mapping[str, Any],
    kernel: str = ...,
    gate: str = ...,
    out: str | os.PathLike[str] | None = ...,
    **words: Any,
) -> str: ...
def result_name(problem_file: str | os.PathLike[str], out: str | os.PathLike[str] | None = ...) -> str: ...
def record_set(
    folder: str | os.PathLike[str],
    fn: Callable[[dict[str, Any], dict[str, Any]], Mapping[str, Any]],
    keep: Callable[[dict[str, Any], dict[str, Any], list[int]], Any] | None = ...,
    to: str | None = ...,
    apart: bool | None = ...,
) -> tuple[str, ...]: ...
def read(path: str | os.PathLike[str], to: str | None = ..., gate: str = ...) -> dict[str, Any]: ...
def in_unit(one: Any, was: str, to: str, narrow: bool = ...) -> Any: ...
def reads(x: Any) -> bool: ...
def environment() -> str: ...
def taps(
    call_sites: Mapping[str, tuple[str | None, ...]] | None = ..., prefix: str = ...
) -> AbstractContextManager[dict[str, Any]]: ...
def problem_words(problem: Mapping[str, Any]) -> list[tuple[str, str]]: ...
def result_words(result: Mapping[str, Any]) -> list[tuple[str, str]]: ...
def decimal(x: float) -> str: ...
