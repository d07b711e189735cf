# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""What there is to choose from (plans, regimes, faults), and problems made from regimes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from . import _core
from ._core import format_error
from .exchange import Problem, problem_of
from .messages import python_words, require_whole


class Plan(NamedTuple):
    """A precision plan: what a kernel promises about its arithmetic. `toml` is its text, to copy and change."""

    name: str
    what: str
    source: str
    kernels: list[str]
    ops: list[str]
    path: list[str]
    dtypes: list[str]
    chunk: list[int]
    toml: str


class Regime(NamedTuple):
    """What the keys, gates and steps of a problem are like, and which fault that brings to light."""

    name: str
    what: str
    why: str


class Fault(NamedTuple):
    """A mistake that the emulator can make: the first stage that is wrong, on which paths it can happen, whether it is one of the
    backward pass, the results that it can change, where it acts, and what the problem must have."""

    name: str
    stage: str
    what: str
    chunk: bool
    recurrent: bool
    backward: bool
    tensors: tuple[str, ...]
    acts: tuple[str, ...]
    needs: tuple[str, ...]


def plans() -> list[Plan]:
    return [Plan(**row) for row in _core.plans()]


def regimes() -> list[Regime]:
    return [Regime(**row) for row in _core.regimes()]


def faults() -> list[Fault]:
    return [Fault(**row) for row in _core.faults()]


@dataclass(frozen=True)
class Case:
    """A problem by name. It is made when it is first asked for, the same bytes on every machine."""

    name: str
    regime: str
    seed: int
    given: dict[str, Any] = field(default_factory=dict, hash=False)
    to: str | None = "torch"

    @property
    def problem(self) -> Problem:
        found = self.__dict__.get("made")
        if found is None:
            found = problem_of(_core.generate(self.regime, self.seed, self.given), self.to)
            self.__dict__["made"] = found
        return found

    @property
    def command(self) -> str:
        """The program's command line for the same problem."""
        return f"deltaproof gen {_core.generation_options(self.regime, self.seed, self.given)} -o {self.name}.problem.safetensors"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "made"}


def _each(given: Any) -> list[Any]:
    return [given] if given is None or isinstance(given, (str, int, float)) else list(given)


def cases(
    op: str | Iterable[str] = "delta_rule",
    regimes: str | Iterable[str] | None = None,
    T: int | Iterable[int] | None = None,
    K: int | Iterable[int] | None = None,
    V: int | Iterable[int] | None = None,
    dtype: Any = "bf16",
    seeds: int | Iterable[int] = 0,
    *,
    to: str | None = "torch",
    **given: Any,
) -> Iterator[Case]:
    """Problems of every combination of what is listed; regimes=None takes each that there is. What is left out takes the
    regime's default. dtype: bf16, fp16, fp32 or fp64, or torch's. Further: B, H, HV, beta, gate, initial_state, rule,
    cu_seqlens, num_householder, law (of the regime law), cotangents (draw do and dfinal_state too). `to`: "torch", "numpy", "jax",
    "mlx", or None for deltaproof.tensor. Nothing is made before it is asked for; a combination that cannot be is refused at once."""
    known = [r["name"] for r in _core.regimes()]
    for one in _each(op):
        if one in known:
            raise format_error(f'cases: "{one}" is a regime, and op comes first; write cases(regimes="{one}")')
    seeds = _each(seeds)
    for one in seeds:
        require_whole("cases", seeds=one)
    listed = known if regimes is None else _each(regimes)
    for name, one_op, t, k, v, d, seed in itertools.product(
        listed, _each(op), _each(T), _each(K), _each(V), _dtypes(dtype), seeds
    ):
        asked = {
            key: value
            for key, value in {"op": one_op, "T": t, "K": k, "V": v, "dtype": d, **given}.items()
            if value is not None
        }
        with python_words():
            _core.generation_options(name, seed, asked)  # throws
        words = [
            name,
            one_op,
            *(f"{key}{value}" for key, value in (("T", t), ("K", k), ("V", v)) if value is not None),
            d,
            f"seed{seed}",
        ]
        yield Case("-".join(words), name, seed, asked, to)


def _dtypes(given: Any) -> list[str]:
    short = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "float64": "fp64"}
    listed = list(given) if isinstance(given, (list, tuple)) else [given]
    return [short.get(str(d).rpartition(".")[2], str(d)) for d in listed]


def pytest_cases(*args: Any, marks: Any = (), **options: Any) -> list[Any]:
    """`cases` as parameters for pytest.mark.parametrize, named by what they are."""
    import pytest

    return [pytest.param(case, id=case.name, marks=marks) for case in cases(*args, **options)]
