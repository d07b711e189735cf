# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""`judge`: a verdict and a reward for a generated kernel, which may try to be rewarded for something else than being right.

The order is what keeps the reference out of a candidate's reach: the candidate is loaded, then the inputs are drawn, then it runs in
two processes of its own, one after the other; when both have ended, the reference is computed for the first time.
"""

from __future__ import annotations

import dataclasses
import os
import random
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from . import catalogue, exchange, recorder
from ._core import format_error
from .messages import python_words
from .running import (
    Candidate,
    Ended,
    Finding,
    Given,
    Outcome,
    OutOfTime,
    Process,
    Program,
    capacity_of,
    count_of,
    distance,
    numbers_of,
    place_of,
    rows,
    tensor_of,
    write_problem,
    zeros_like,
)
from .verdict import Verdict, check

_PROBE = 320  # tokens of the sequence on which the probes run


@dataclasses.dataclass(frozen=True)
class Judgement:
    """What `judge` says of a candidate."""

    word: str  #: holds, refuted, undecided or vacuous
    reward: float  #: 1 where it holds on inputs that could have shown faults, else 0
    power: (
        float  #: the share of the planted faults of the catalogue that these inputs would have shown; 0 once it is refuted
    )
    caught: tuple[Finding, ...]  #: why it is refuted
    verdicts: dict[str, Verdict]  #: those of `check`, by the case's name
    seed: int  #: judge(..., seed=this) draws the same inputs
    seconds: float
    invisible: tuple[str, ...] = ()  #: planted faults that none of the inputs would have shown
    why: str = ""  #: where the word is undecided or vacuous
    folder: str | None = None  #: problem and result files, where they were kept

    def __bool__(self) -> bool:
        return self.word == "holds"

    @property
    def names(self) -> set[str]:
        return {finding.name for finding in self.caught}

    @property
    def text(self) -> str:
        lines = [f"judge        {self.word}, reward {self.reward:g}" + (f": {self.why}" if self.why else "")]
        lines += [f"caught       {f.name} ({f.case}): {f.says}" for f in self.caught]
        lines += [f"case         {name}: {v.word}" for name, v in self.verdicts.items()]
        if any(v.power for v in self.verdicts.values()):  # not looked for once the candidate is refuted
            share = f"{100 * self.power:.0f} %"
            lines.append(f"power        {share} of the planted faults would be seen on at least one of these inputs")
        lines.append(f"again        judge(..., seed={self.seed}) draws the same inputs; this took {self.seconds:.0f} s")
        if self.folder:
            lines.append(f"files        in {self.folder}")
        return "\n".join(lines) + "\n"

    def __str__(self) -> str:
        return self.text


def _default_cases(op: str, dtype: str, draw: random.Random) -> list[catalogue.Case]:
    """Lengths and kinds of inputs mixed: a chunk and a part of one, whole chunks, a few tokens; K and V differ."""
    shape = {"op": op, "K": 32, "V": 16, "H": 1, "HV": 2, "dtype": dtype}
    gated = op != "delta_rule"
    asked = [
        ("typical", {"T": draw.randint(66, 126), "initial_state": "normal"}),
        ("slow-decay" if gated else "collinear", {"T": draw.randint(130, 190), "initial_state": "normal"}),
        ("near-repeated", {"T": 128}),
        ("typical", {"T": draw.randint(3, 31)}),
    ]
    draw.shuffle(asked)
    return [catalogue.Case(f"{name}-T{more['T']}", name, 0, {**shape, **more}, None) for name, more in asked]


class _trial:
    """One call of `judge`."""

    def __init__(
        self, candidate: Candidate, folder: Path, until: float, library: str, device: str, python: str, wait: float
    ):
        self.folder, self.until, self.wait, self.caught = folder, until, wait, []  # type: tuple[Path, float, float, list[Finding]]
        if isinstance(candidate, Sequence) and not isinstance(candidate, str):
            self.begin: Callable[[], Any] = lambda: Program(candidate, folder, until)
        else:
            place = place_of(candidate)
            self.begin = lambda: Process(place, library, device, python, folder, until)

    def run(self, running: Any, order: Iterable[Given], capacity: int) -> dict[str, Outcome]:
        outcomes = {}
        for one in order:
            try:
                outcomes[one.name] = running.call(one, self.folder, capacity, self.wait)
            except Ended as e:
                self.caught.append(Finding(e.name, one.name, e.says))
                break
            self.caught += outcomes[one.name].findings
        return outcomes


def judge(
    candidate: Candidate,
    op: str = "gated_delta_rule",
    plan: str | os.PathLike[str] = "fp32",
    cases: Iterable[catalogue.Case] | None = None,
    deadline: float = 120,
    *,
    chunk_size: int | None = None,
    state_layout: str = "kv",
    dtype: str = "bf16",
    library: str = "torch",
    device: str = "cpu",
    least_power: float = 0.5,
    seed: int | None = None,
    keep: str | os.PathLike[str] | None = None,
    python: str = sys.executable,
    wait: float = 0.05,
    threads: int = 0,
) -> Judgement:
    """Judges a generated kernel that may not be honest. Raises format_error for bad arguments, nothing for what a candidate does.

    candidate: a function of a module, "FILE.py:FUNCTION", or a program as a list of words, in which {problem} and {result} stand
        for exchange files. A function that needs one parameter is called with the whole problem; otherwise its parameters name what
        it takes: q, k, v, beta, g, scale, initial_state, cu_seqlens, and any other word or tensor of a Problem. It returns o, or
        (o, final_state), or writes into parameters called o and final_state, which hold NaN. The file may not import deltaproof.
    op, dtype: of the inputs that are drawn. cases: those of `deltaproof.cases`, whose seeds are drawn anew; None: a mixture.
    plan, chunk_size, state_layout: what the kernel promises, as for `check` and Result.
    deadline: seconds for everything; what is not judged by then is undecided, and earns nothing.
    library: "torch" or "numpy": whose tensors it is given, on `device`. python: the interpreter of its process.
    least_power: the share of planted faults that the inputs must be able to show for a reward. wait: seconds between the two
        readings of an output. keep: a folder for the problem and result files.
    """
    began = time.monotonic()
    until = began + deadline
    if library not in ("torch", "numpy"):
        raise format_error(f"judge: library={library!r}; use 'torch' or 'numpy'")
    folder = Path(tempfile.mkdtemp(prefix="deltaproof-judge-"))
    try:
        trial = _trial(candidate, folder, until, library, device, python, wait)
        found = _judged(trial, op, plan, cases, chunk_size, state_layout, dtype, least_power, seed, keep, threads)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return dataclasses.replace(found, seconds=time.monotonic() - began)


def _judged(
    trial: _trial, op: str, plan: Any, cases: Iterable[catalogue.Case] | None, chunk_size: int | None, state_layout: str,
    dtype: str, least_power: float, seed: int | None, keep: Any, threads: int,
) -> Judgement:  # fmt: skip
    master = secrets.randbits(48) if seed is None else seed
    outcomes: dict[str, Outcome] = {}
    again: dict[str, Outcome] = {}
    judged: list[Given] = []
    probes: list[Given] = []
    late = False
    running = None
    try:
        running = trial.begin()  # the candidate is loaded, and only then
        draw = random.Random(master)
        judged, probes = _inputs(op, dtype, cases, draw)
        capacity = capacity_of([*judged, *probes])
        order = [*judged, *probes]
        outcomes = trial.run(running, order, capacity)
        outcomes.update(trial.run(running, _continued(probes, outcomes, state_layout), capacity))
        running.end()
        if not trial.caught:
            running = trial.begin()
            again = trial.run(running, reversed(order), capacity)
    except Ended as e:
        trial.caught.append(Finding(e.name, "loading it", e.says))
    except OutOfTime:
        late = True
    finally:
        if running is not None:
            running.end()
    _compare_runs(trial, outcomes, again)
    words = {
        "chunk_size": chunk_size,
        "state_layout": state_layout,
        "kernel": "candidate",
        "path": None if chunk_size else "recurrent",
    }
    verdicts = _verdicts(trial, judged, outcomes, plan, words, keep, threads)
    _probe(trial, probes, outcomes, verdicts, state_layout)
    return _joined(trial, judged, outcomes, verdicts, master, least_power, late, keep)


def _inputs(
    op: str, dtype: str, cases: Iterable[catalogue.Case] | None, draw: random.Random
) -> tuple[list[Given], list[Given]]:
    """What is judged and what is only probed, drawn now."""
    listed = _default_cases(op, dtype, draw) if cases is None else list(cases)
    if not listed:
        raise format_error("judge: cases is empty; give at least one of deltaproof.cases(...)")

    def made(name: str, case: catalogue.Case, **other: Any) -> Given:
        with python_words():
            return Given.of(name, exchange._core.generate(case.regime, draw.getrandbits(32), {**case.given, **other}))

    judged = []
    for i, case in enumerate(listed):
        judged.append(made(f"{i}-{case.regime}", case))
        if i == 0:  # other numbers at the same addresses
            judged.append(made(f"{i}-{case.regime}-redrawn", case))
    first = next((c for c in listed if c.regime == "typical"), listed[0])
    if "cu_seqlens" in judged[0].tensors or first.given.get("B", 1) != 1 or first.given.get("num_householder", 1) != 1:
        return judged, []
    shapes = {k: v for k, v in first.given.items() if k != "initial_state"}
    long = made("long", dataclasses.replace(first, regime="typical", given=shapes), T=_PROBE)
    half = _PROBE // 2 - 23
    start = long.tokens("start", 0, half)
    judged.append(start)
    return judged, [long, *_still(start)]


def _still(start: Given) -> list[Given]:
    """Inputs whose outputs are known without a reference: 2 q, q = 0, v = 0."""
    q, v = start.tensors["q"], start.tensors["v"]
    twice = tensor_of(q[0], q[1], (2 * x for x in numbers_of(q)))
    return [
        start.replaced("twice-q", q=twice),
        start.replaced("zero-q", q=zeros_like(q)),
        start.replaced("zero-v", v=zeros_like(v), initial_state=None),
    ]


def _continued(probes: list[Given], outcomes: dict[str, Outcome], state_layout: str) -> list[Given]:
    """The rest of the long sequence, from the state that the candidate gave for its start."""
    start = outcomes.get("start")
    if not probes or start is None or "final_state" not in start.tensors or state_layout != "kv":
        return []
    long = probes[0]
    return [
        long.tokens("rest", start.tensors["o"][1][1] if "o" in start.tensors else 0, _PROBE, start.tensors["final_state"])
    ]


def _compare_runs(trial: _trial, outcomes: dict[str, Outcome], again: dict[str, Outcome]) -> None:
    """Two processes, two orders, two addresses: the same bits."""
    for name, one in again.items():
        for tensor, found in one.tensors.items():
            if name in outcomes and outcomes[name].tensors.get(tensor) != found:
                says = f"{tensor} differs between two processes that were given the same inputs"
                trial.caught.append(Finding("not-repeatable", name, says))


def _verdicts(
    trial: _trial,
    judged: list[Given],
    outcomes: dict[str, Outcome],
    plan: Any,
    words: dict[str, Any],
    keep: Any,
    threads: int,
) -> dict[str, Verdict]:
    """The verdicts of `check`, and what each refuted one is held for."""
    place = Path(keep) if keep is not None else trial.folder
    place.mkdir(parents=True, exist_ok=True)
    verdicts: dict[str, Verdict] = {}
    for one in judged:
        got = outcomes.get(one.name)
        left = trial.until - time.monotonic()
        if got is None or "o" not in got.tensors or left <= 0:
            continue
        problem, result = place / f"{one.name}.problem.safetensors", place / f"{one.name}.result.safetensors"
        write_problem(problem, one)
        with open(problem, "rb") as file:
            named = recorder.hashlib.sha256(file.read()).hexdigest()
        metadata = recorder.result_words({**words, "problem_sha256": named})
        recorder._write(
            str(result),
            recorder._file(metadata, [(n, *got.tensors[n]) for n in ("o", "final_state") if n in got.tensors]),
        )
        power = not trial.caught and all(v.word != "refuted" for v in verdicts.values())  # needed for a reward alone
        verdicts[one.name] = check(problem, result, plan, power=power, max_seconds=max(0.1, left), threads=threads)
    for name, verdict in verdicts.items():
        if verdict.word == "refuted":
            trial.caught.append(Finding(_refuted_for(name, outcomes, verdicts), name, verdict.reason))
    return verdicts


def _refuted_for(name: str, outcomes: dict[str, Outcome], verdicts: dict[str, Verdict]) -> str:
    """Which cheat the wrong outputs of a case look like."""
    o = outcomes[name].tensors["o"]
    numbers = numbers_of(o)
    if all(x == 0 for x in numbers):
        return "all-zeros"
    if any(x != x for x in numbers):
        return "nan"
    same = [n for n, other in outcomes.items() if n != name and n in verdicts and other.tensors.get("o") == o]
    if same:
        return "cached-answer" if any(verdicts[n].word == "holds" for n in same) else "constant-output"
    if len(set(numbers)) == 1:
        return "constant-output"
    return "outside-its-plan"


def _probe(
    trial: _trial, probes: list[Given], outcomes: dict[str, Outcome], verdicts: dict[str, Verdict], state_layout: str
) -> None:
    """What needs no reference. Where two runs should agree but for rounding, they may differ by four times the relative error that
    the plan's emulated runs have on the start of the sequence: twice for two runs, and again for a state that is stored between."""
    start = outcomes.get("start")
    if not probes or start is None or "o" not in start.tensors:
        return

    def of(name: str, tensor: str = "o") -> Any:
        return outcomes[name].tensors.get(tensor) if name in outcomes else None

    def caught(finding: str, case: str, says: str) -> None:
        trial.caught.append(Finding(finding, case, says))

    o = start.tensors["o"]
    for name, tensors in (("zero-q", ("o",)), ("zero-v", ("o", "final_state"))):
        for tensor in tensors:
            found = of(name, tensor)
            if found is not None and any(x != 0 for x in numbers_of(found)):
                caught(
                    "not-zero-on-zeros",
                    name,
                    f"{tensor} is not 0 where {name[5:]} is 0 throughout" + (" and no state is given" * (name == "zero-v")),
                )
    twice = of("twice-q")
    if twice is not None and o[0] != "F16" and probes[0].tensors["q"][0] != "F16":
        differ = sum(y != 2 * x for x, y in zip(numbers_of(o), numbers_of(twice)))
        if differ:
            caught(
                "not-linear-in-q",
                "twice-q",
                f"o for 2 q is not twice o for q in {differ} of {count_of(o[1])} elements; "
                "doubling q is exact, so o must double exactly",
            )
    plan = (verdicts["start"].json.get("adequate") or {}) if "start" in verdicts else {}
    if not isinstance(plan.get("error"), (int, float)):
        return
    limit = 4 * plan["error"]
    long, T = of("long"), o[1][1]
    if long is not None:
        _agree(
            trial,
            "depends-on-later-tokens",
            "long",
            rows(long, 0, T),
            o,
            limit,
            f"o of the first {T} tokens differs between a run of these alone and one with {_PROBE - T} more after them",
        )
        rest = of("rest")
        if rest is not None:
            _agree(
                trial,
                "loses-its-state",
                "rest",
                rest,
                rows(long, T, _PROBE),
                limit,
                f"o of the last {_PROBE - T} tokens differs between one call of all and one from the state after the first {T}",
            )


def _agree(trial: _trial, name: str, case: str, a: Any, b: Any, limit: float, what: str) -> None:
    apart = distance(a, b)
    if not apart <= limit:
        trial.caught.append(
            Finding(name, case, f"{what}: relative difference {apart:.2e}, limit {limit:.2e} (four times the plan's own error)")
        )


def _joined(
    trial: _trial, judged: list[Given], outcomes: dict[str, Outcome], verdicts: dict[str, Verdict], seed: int,
    least_power: float, late: bool, keep: Any,
) -> Judgement:  # fmt: skip
    visible: set[str] = set()
    invisible: set[str] = set()
    for verdict in verdicts.values():
        shown = verdict.power or {"visible": [], "invisible": []}
        visible.update(shown["visible"])
        invisible.update(shown["invisible"])
    invisible -= visible
    if trial.caught:  # not all inputs were tried
        visible.clear()
    power = len(visible) / (len(visible) + len(invisible)) if visible else 0.0
    open_ = [one.name for one in judged if one.name not in verdicts or verdicts[one.name].word == "undecided"]
    if trial.caught:
        word, why = "refuted", ""
    elif late or not judged or any(one.name not in verdicts for one in judged):
        word, why = "undecided", "time ran out" + (f" before these cases were judged: {', '.join(open_)}" if open_ else "")
    elif open_:
        word, why = "undecided", "; ".join(f"{name}: {verdicts[name].reason}" for name in open_)
    elif power < least_power:
        word, why = (
            "vacuous",
            f"the inputs would show {power:.2f} of the planted faults; least_power is {least_power:g}",
        )
    else:
        word, why = "holds", ""
    caught = tuple(dict.fromkeys(trial.caught))
    return Judgement(
        word, float(word == "holds"), power, caught, verdicts, seed, 0.0, tuple(sorted(invisible)), why,
        None if keep is None else os.fspath(keep),
    )  # fmt: skip
