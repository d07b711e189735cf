# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""The pytest plugin, loaded by its entry point:

    @pytest.mark.parametrize("case", deltaproof.pytest_cases("gated_delta_rule", ["typical", "repeated"], T=256, K=64, V=64))
    def test_my_kernel(case, deltaproof_check):
        p = case.problem
        o, final_state = my_kernel(p.q, p.k, p.v, p.g, p.beta, p.scale, p.initial_state)
        deltaproof_check(p, deltaproof.Result(o, final_state, chunk_size=64), plan="fla-chunk-gdn")

A test fails with the verdict's dozen lines and leaves a witness (`deltaproof replay DIR` judges it again) under pytest's temporary
folder or --deltaproof-witness-dir. JUnit properties: deltaproof.verdict, .reason, .plan, .problem_sha256, .result_sha256, .witness.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .verdict import Verdict

try:
    import pytest
except ImportError:  # the package works without it
    pytest = None  # type: ignore[assignment]


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("deltaproof")
    group.addoption(
        "--deltaproof-witness-dir",
        metavar="DIR",
        help="where witnesses of refuted results go (default: pytest's temporary folder)",
    )
    group.addoption("--deltaproof-no-witness", action="store_true", help="write no witness")


class Checker:
    """What the fixture `deltaproof_check` gives: call it as `deltaproof.check`."""

    def __init__(self, request: Any) -> None:
        self._request = request
        self._count = 0

    def __call__(
        self, problem: Any, result: Any, plan: Any = None, *, accept: tuple[str, ...] = ("holds",), **options: Any
    ) -> Verdict:
        """`accept`: the words that pass; ("holds", "vacuous") where inputs need not show faults, ("measured",) with plan=False."""
        from .verdict import check

        __tracebackhide__ = True
        options.setdefault("threads", _threads())
        if "witness" not in options and not self._request.config.getoption("--deltaproof-no-witness"):
            options["witness"] = self._place()
        self._count += 1
        verdict = check(problem, result, plan, **options)
        says = verdict.json
        for name, value in (
            ("verdict", verdict.word),
            ("reason", verdict.reason),
            ("plan", verdict.plan),
            ("problem_sha256", says["problem"]["sha256"]),
            ("result_sha256", says["result"]["sha256"]),
            ("witness", verdict.witness),
        ):
            if value:
                self._request.node.user_properties.append((f"deltaproof.{name}", str(value)))
        if verdict.word not in accept:
            pytest.fail(f"deltaproof: {verdict.word}\n{verdict.text}", pytrace=False)
        print(verdict.text)
        return verdict

    def gradients(
        self,
        fn: Any,
        problem: Any,
        plan: Any = None,
        *,
        library: str | None = None,
        chunk_size: int | None = None,
        poison: bool = True,
        words: dict[str, Any] | None = None,
        accept: tuple[str, ...] = ("holds",),
        **options: Any,
    ) -> Verdict:
        """Runs `fn` and its backward pass as `deltaproof.differentiate` does and judges outputs and gradients in one verdict."""
        from .verdict import differentiate

        __tracebackhide__ = True
        given = getattr(problem, "problem", problem)
        result = differentiate(fn, given, library=library, chunk_size=chunk_size, poison=poison, **(words or {}))
        return self(given, result, plan, accept=accept, **options)

    def _place(self) -> Path:
        """A folder of this test alone, whichever process runs it."""
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", self._request.node.nodeid).strip("-")[-150:] + (
            f"-{self._count}" if self._count else ""
        )
        given = self._request.config.getoption("--deltaproof-witness-dir")
        if not given:
            return Path(self._request.getfixturevalue("tmp_path")) / f"witness{self._count or ''}"
        folder = Path(given).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        return folder / name


def _threads() -> int:
    """Under xdist each worker takes its share of the cores; 0: all."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return max(1, (os.cpu_count() or 1) // workers) if workers > 1 else 0


if pytest is not None:

    @pytest.fixture
    def deltaproof_check(request: Any) -> Checker:
        """Call it as `deltaproof.check(problem, result, plan)`: the test fails where the result is not shown to hold."""
        return Checker(request)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    words: dict[str, int] = {}
    witnesses = []
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) != "call":
                continue
            for name, value in getattr(report, "user_properties", ()):
                if name == "deltaproof.verdict":
                    words[value] = words.get(value, 0) + 1
                elif name == "deltaproof.witness":
                    witnesses.append(value)
    if words:
        terminalreporter.write_line(
            "deltaproof: " + ", ".join(f"{count} {word}" for word, count in sorted(words.items()))
        )
    for one in witnesses:
        terminalreporter.write_line(f"deltaproof: witness {one}")
