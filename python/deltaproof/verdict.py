# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""`check`, `oracle` and `emulate`: the library's verbs on problems and results in memory or on disk."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from . import _core
from ._core import format_error
from .exchange import Problem, ProblemLike, Result, ResultLike, is_path, problem_file, result_file
from .messages import in_python, python_words, require_whole
from .recorder import GRADIENTS
from .tensors import converted, poisoned


class _not_held(AssertionError):
    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.text)
        self.verdict = verdict

    def __reduce__(self) -> Any:
        return (type(self), (self.verdict,))


class refuted(_not_held):
    """A result is refuted. The message is the verdict's text, `verdict` all of it."""


class not_shown(_not_held):
    """A result is neither refuted nor shown to hold: undecided, vacuous, or only measured."""


@dataclass(frozen=True)
class Verdict:
    """What `check` says. True where it holds, and only there: `measured` is no verdict on a kernel."""

    word: str  #: holds, refuted, undecided, vacuous or measured
    exit_code: int  #: of the program: 0 holds or measured, 1 refuted, 3 undecided or vacuous
    reason: str
    text: str  #: about a dozen lines
    json_text: str  #: schema deltaproof.verdict/1
    witness: str | None = None  #: the folder, where one was written

    def __bool__(self) -> bool:
        return self.word == "holds"

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"deltaproof.Verdict({self.word}: {self.reason})"

    @property
    def json(self) -> dict[str, Any]:
        """The verdict as the program writes it with --json."""
        found: dict[str, Any] = json.loads(self.json_text)
        return found

    @property
    def tensors(self) -> dict[str, dict[str, Any]]:
        """By name: max_abs, rel_fro, radius, worst, budget, ..."""
        return {t["name"]: t for t in self.json["tensors"]}

    @property
    def stages(self) -> dict[str, dict[str, Any]]:
        return {s["name"]: s for s in self.json.get("stages") or []}

    @property
    def first_bad_stage(self) -> str | None:
        return self.json.get("first_bad_stage")

    @property
    def diagnosis(self) -> list[dict[str, Any]]:
        """The planted faults the error is like, the most alike first."""
        return self.json.get("diagnosis") or []

    @property
    def power(self) -> dict[str, Any] | None:
        """Which planted faults would have shown on these inputs, and which not."""
        return self.json.get("power")

    @property
    def plan(self) -> str | None:
        plan = self.json.get("plan")
        return plan["name"] if plan else None

    @property
    def conforms(self) -> bool | None:
        return self.json.get("conforms")

    @property
    def adequate(self) -> bool | None:
        adequate = self.json.get("adequate")
        return adequate["adequate"] if adequate else None

    @property
    def remedy(self) -> str | None:
        said = self.json.get("remedy")
        return in_python(said) if said else None

    @property
    def known_metrics(self) -> dict[str, Any]:
        """fla_ratio, nmse, allclose_violations, flash_attention_factor, attention_gym_factor."""
        found: dict[str, Any] = self.json["known_metrics"]
        return found

    def raise_if_refuted(self) -> Verdict:
        """Raises `refuted` with the text; returns itself otherwise, whatever the word."""
        if self.word == "refuted":
            raise refuted(self)
        return self

    def require(self) -> Verdict:
        """Raises `refuted`, or `not_shown` where it is undecided, vacuous or only measured; returns itself where it holds."""
        self.raise_if_refuted()
        if not self:
            raise not_shown(self)
        return self


#: What the library says of a result that is taken for one of the recurrent path, or whose chunk length is not known.
_NEEDS_CHUNKS = "the path is recurrent|on the recurrent path|(the|its) chunk length"


@contextlib.contextmanager
def _chunk_size_said(result: _core.file, plan: str | None) -> Iterator[None]:
    """A chunk kernel's result that does not say so is taken for a recurrent kernel's, and no plan of its own fits."""
    try:
        yield
    except format_error as e:
        words = dict(result.metadata)
        if "chunk_size" in words or words.get("path") == "recurrent" or not re.search(_NEEDS_CHUNKS, str(e)):
            raise
        says = "states no chunk_size" + ("" if "path" in words else ", so its kernel is taken for a recurrent one")
        how = (
            "write chunk_size into its metadata"
            if result.path
            else "pass its chunk length: Result(o, final_state, chunk_size=64)"
        )
        raise format_error(f"{e}. The result {says}; if it is a chunk kernel's, {how}") from None


def check(
    problem: ProblemLike,
    result: ResultLike,
    plan: str | os.PathLike[str] | bool | None = None,
    *,
    max_error: str | Iterable[str] = (),
    because: str = "",
    false_alarm: float = 1e-4,
    accuracy: float | None = None,
    power: bool = True,
    max_bits: int = 1024,
    strict_padding: bool = False,
    seed: int = 1,
    threads: int = 0,
    max_seconds: float = 0,
    witness: str | os.PathLike[str] | None = None,
) -> Verdict:
    """Judges a kernel's result against its precision plan and the certified reference.

    problem, result: a Problem or Result, a dict of tensors and words, or the path of a safetensors file.
    plan: a name of `plans()` or the path of a .toml file; None: the preset that lists the result's kernel; False: measure only.
    max_error, because: limits "[TENSOR:]METRIC=E" (METRIC: `deltaproof list metrics`) and where they come from.
    false_alarm: the largest probability that a kernel which conforms to its plan is refuted, over all tests of one verdict.
    accuracy: the largest relative error of the plan itself.
    power: search for planted faults. False is quicker, but then there is no diagnosis and no `vacuous`, and a fault as small
        as rounding errors may pass.
    strict_padding: refute a result where entries of A, Ai and Aqk that no kernel reads are not 0; without it a note names them.
    max_seconds: after that the verdict is undecided. witness: the folder for the smallest part that is still refuted, written
        where the verdict is refuted; an older witness there is replaced.

    The interpreter is unlocked meanwhile. Raises shape_error, domain_error or format_error, all ValueErrors, for bad input.
    """
    require_whole("check", seed=seed, threads=threads)
    with python_words():
        p = problem_file(problem)
        r = result_file(result, p)
    limits = [max_error] if isinstance(max_error, str) else list(max_error)
    if limits and not because:
        raise format_error(
            "check: max_error is given without because; add because=..., the theorem, measurement or agreement behind the limit"
        )
    if because and not limits:
        raise format_error(
            "check: because is given without max_error; add max_error, or leave because out"
        )
    if plan is True or plan == "":
        raise format_error(
            f"check: plan={plan!r} names no plan; give a name of deltaproof.plans() or a .toml file, or leave it out"
        )
    named = os.fspath(plan) if plan is not None and plan is not False else None
    with python_words(), _chunk_size_said(r, named):
        answer = _core.check(
            p,
            r,
            plan=named or "",
            no_plan=plan is False,
            max_error=limits,
            because=because,
            false_alarm=false_alarm,
            accuracy=accuracy,
            power=power,
            max_bits=max_bits,
            strict_padding=strict_padding,
            seed=seed,
            threads=threads,
            max_seconds=max_seconds,
            witness=os.fspath(witness) if witness is not None else "",
        )
    written = os.fspath(witness) if witness is not None and answer.witness_says else None
    return Verdict(answer.word, answer.exit_code, answer.reason, answer.text, answer.json, written)


def gradient_identities(
    problem: ProblemLike,
    result: ResultLike,
    *,
    accuracy: float | None = None,
    max_bits: int = 1024,
    seed: int = 1,
    threads: int = 0,
    max_seconds: float = 0,
) -> Verdict:
    """Judges gradients by six equations of every correct backward pass, whatever its plan: the program's `invariant gradients`.

    The problem has do or dfinal_state, the result gradients. accuracy: what the sides may differ by, of the size of their terms;
    None: 8 times what the formats cost. The verdict's json has `gradients`: each identity's residual, and what none would show.
    """
    require_whole("gradient_identities", seed=seed, threads=threads)
    with python_words():
        p = problem_file(problem)
        answer = _core.gradient_identities(
            p,
            result_file(result, p),
            accuracy=accuracy,
            max_bits=max_bits,
            seed=seed,
            threads=threads,
            max_seconds=max_seconds,
        )
    return Verdict(answer.word, answer.exit_code, answer.reason, answer.text, answer.json)


def differentiate(
    fn: Callable[[Problem], Any],
    problem: Problem | Any,
    *,
    library: str | None = None,
    chunk_size: int | None = None,
    poison: bool = True,
    **words: Any,
) -> Result:
    """Runs `fn` and then its backward pass on the problem's cotangents: torch's autograd, or `jax.vjp`.

    fn: takes a Problem and returns o, or (o, final_state). problem: a Problem or Case with do, dfinal_state or both; on the device
    its tensors are on. library: "torch" or "jax"; None: jax where q is an array of JAX, else torch. chunk_size and words: of the
    Result (kernel, path, state_layout, producer). An input that fn does not use, or detaches, has a gradient of zeros: that is what
    training with fn would see. Drop it from the Result's gradients where it shall not be judged. poison: memory that fn and its backward
    pass ask torch for without values holds NaN, so that an element that is never written shows; False: whatever lies there.
    """
    given = getattr(problem, "problem", problem)
    if library is None:
        library = "jax" if type(given.q).__module__.split(".")[0] in ("jax", "jaxlib") else "torch"
    if library not in ("torch", "jax"):
        raise format_error(f"differentiate: library={library!r}; use 'torch' or 'jax'")
    if given.do is None and given.dfinal_state is None:
        raise format_error(
            "differentiate: the problem has neither do nor dfinal_state; make it with cases(..., cotangents=True), or give them"
        )
    given = given.jax() if library == "jax" else given.torch()
    with poisoned() if poison and library == "torch" else contextlib.nullcontext():
        o, state, gradients = (_by_vjp if library == "jax" else _by_autograd)(fn, given)
    return Result(o, state, chunk_size=chunk_size, gradients=gradients, **words)


def _outputs(fn: Callable[[Problem], Any], given: Problem) -> tuple[Any, Any]:
    outputs = fn(given)
    o, state = outputs if isinstance(outputs, tuple) else (outputs, None)
    if state is None and given.dfinal_state is not None:
        raise format_error("differentiate: the problem has dfinal_state, and fn returns no final_state")
    return o, state


def _leaves(given: Problem) -> dict[str, Any]:
    names = ("q", "k", "v", "beta", "g", "initial_state")
    return {name: getattr(given, name) for name in names if getattr(given, name) is not None}


def _by_autograd(fn: Callable[[Problem], Any], given: Problem) -> tuple[Any, Any, dict[str, Any]]:
    import torch

    leaves = {name: x.detach().clone().requires_grad_() for name, x in _leaves(given).items()}
    o, state = _outputs(fn, dataclasses.replace(given, **leaves))
    pairs = [(x, dx.to(x)) for x, dx in ((o, given.do), (state, given.dfinal_state)) if x is not None and dx is not None]
    found = torch.autograd.grad([x for x, _ in pairs], list(leaves.values()), [dx for _, dx in pairs], allow_unused=True)
    zeros = (torch.zeros_like(x) if dx is None else dx for x, dx in zip(leaves.values(), found))
    gradients = {f"d{name}": dx.detach().cpu() for name, dx in zip(leaves, zeros)}
    return o.detach().cpu(), None if state is None else state.detach().cpu(), gradients


def _by_vjp(fn: Callable[[Problem], Any], given: Problem) -> tuple[Any, Any, dict[str, Any]]:
    import jax
    import numpy

    def outputs(leaves: dict[str, Any]) -> list[Any]:
        return [x for x in _outputs(fn, dataclasses.replace(given, **leaves)) if x is not None]

    found, back = jax.vjp(outputs, _leaves(given))
    pairs = zip(found, (given.do, given.dfinal_state))
    cotangents = [jax.numpy.zeros_like(x) if dx is None else dx.astype(x.dtype) for x, dx in pairs]
    (gradients,) = back(cotangents)
    o, state = numpy.asarray(found[0]), numpy.asarray(found[1]) if len(found) > 1 else None
    return o, state, {f"d{name}": numpy.asarray(dx) for name, dx in gradients.items()}


def check_gradients(
    fn: Callable[[Problem], Any],
    problem: Problem | Any,
    plan: str | os.PathLike[str] | bool | None = None,
    *,
    library: str | None = None,
    chunk_size: int | None = None,
    poison: bool = True,
    words: Mapping[str, Any] | None = None,
    **options: Any,
) -> Verdict:
    """`check` of what `differentiate(fn, problem)` gives: outputs and gradients in one verdict. options: those of `check`.

    A plan with a [backward] section judges outputs and gradients; by one without it gradients are measured, and limited by max_error.
    `gradient_identities` judges them without a plan."""
    given = getattr(problem, "problem", problem)
    result = differentiate(fn, given, library=library, chunk_size=chunk_size, poison=poison, **(words or {}))
    return check(given, result, plan, **options)


@dataclass(frozen=True)
class Truth:
    """The true outputs, correctly rounded to `round`; NaN where no precision decided. radius: the largest bound on
    |reference - exact| before rounding, undecided: how many elements, by the tensor's name; tiers: which precision how many heads
    needed."""

    o: Any
    final_state: Any
    round: str
    radius: dict[str, float]
    undecided: dict[str, int]
    tiers: dict[str, int]
    problem_sha256: str

    def result(self) -> Result:
        """As a Result, to record."""
        return Result(
            self.o,
            self.final_state,
            kernel="deltaproof oracle",
            path="reference",
            problem_sha256=self.problem_sha256,
            producer=f"deltaproof {_core.version}, correctly rounded to {self.round}",
        )


def oracle(
    problem: ProblemLike,
    round: str = "fp64",
    *,
    max_bits: int = 1024,
    threads: int = 0,
    max_seconds: float = 0,
    to: str | None = "torch",
) -> Truth:
    """The true outputs of a problem, correctly rounded to bf16, fp16, fp32 or fp64. `to`: "torch", "numpy" or None.

    Raises TimeoutError where max_seconds ran out.
    """
    require_whole("oracle", threads=threads)
    with python_words():
        answer = _core.oracle(
            problem_file(problem), round=round, max_bits=max_bits, threads=threads, max_seconds=max_seconds
        )
    if answer.stopped:
        raise TimeoutError(
            f"oracle: max_seconds={max_seconds:g} ran out before the reference was complete; give more seconds, or leave max_seconds out"
        )
    o, state = (converted(t, to) for t in answer.tensors)
    undecided = {name: answer.undecided.get(name, 0) for name in ("o", "final_state")}
    return Truth(o, state, round, answer.radius, undecided, answer.tiers, answer.problem_sha256)


def emulate(
    problem: ProblemLike,
    plan: str | os.PathLike[str],
    fault: str | None = None,
    *,
    path: str | None = None,
    chunk: int | None = None,
    variant: int = 0,
    noise_ulps: float = 0,
    seed: int = 1,
    stages: bool = True,
    gradients: bool = False,
    threads: int = 0,
    to: str | None = "torch",
) -> Result:
    """A result that a kernel conforming to the plan may give, rounded exactly as it declares, or one with a planted fault of
    `faults()`. gradients: with those of the problem's do and dfinal_state; then the fault may be one of the backward pass.

    chunk: rows of k; None: 64 if the plan covers it, else the first length that the plan lists. variant: which of the arithmetics that the plan
    allows. noise_ulps: 0: exactly the plan's arithmetic; above 0, what another build of the same kernel may compute, where each
    sum starts at a random term, drawn with `seed`; above 1, each finished sum is also changed by up to this many ulps.
    """
    if chunk is not None and chunk < 1:
        raise format_error(f"emulate: chunk={chunk} rows; use at least 1, or leave it out")
    require_whole("emulate", variant=variant, seed=seed, threads=threads)
    with python_words():
        answer = _core.emulate(
            problem_file(problem),
            plan=os.fspath(plan),
            fault=fault or "",
            path=path or "",
            chunk=0 if chunk is None else chunk,
            variant=variant,
            noise=noise_ulps,
            seed=seed,
            stages=stages,
            gradients=gradients,
            threads=threads,
        )
    tensors = {t.name: converted(t, to) for t in answer.tensors}
    o, state = tensors.pop("o"), tensors.pop("final_state", None)
    found = {name: tensors.pop(name) for name in GRADIENTS if name in tensors}
    return Result(
        o,
        state,
        kernel=answer.kernel,
        path=answer.path,
        chunk_size=answer.chunk_size,
        stages=tensors,
        producer=answer.producer,
        problem_sha256=answer.problem_sha256,
        gradients=found,
    )
