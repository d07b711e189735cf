# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""Problems and results as Python holds them, and as files of the exchange format. A file on disk and tensors in memory reach the
library in one way: as the bytes of a file, which are hashed and judged. Tensors in memory are viewed without a copy and written
into those bytes once, so that what another thread does to them meanwhile changes nothing."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, Union

from . import _core, recorder
from ._core import format_error
from .messages import python_words
from .tensors import converted, floating, offsets, take, unit_of_gate

Path = Union[str, "os.PathLike[str]"]


@dataclass
class Problem:
    """What a kernel was given. Shapes: q [B,T,H,K], k [B,T*n,H,K], v [B,T*n,HV,V], beta [B,T*n,HV], g [B,T,HV] or [B,T,HV,K],
    initial_state [N,HV,K,V], cu_seqlens [N+1] (then B = 1). n is num_householder, HV a multiple of H."""

    q: Any
    k: Any
    v: Any
    beta: Any
    g: Any = None  #: natural logarithm of the decay
    op: str = "delta_rule"  #: delta_rule, gated_delta_rule, kda or gated_delta_product
    scale: float | None = None  #: multiplies q in the read-out only; K ** -0.5 if absent
    initial_state: Any = None
    cu_seqlens: Any = None
    qk_l2norm: bool = False  #: the kernel itself normalises q and k, x / sqrt(sum x^2 + l2norm_eps)
    rule: str = "euler"  #: exact for an EFLA kernel, implicit for a Longhorn kernel
    beta_activation: str = "none"  #: sigmoid or two_sigmoid where the kernel itself applies it
    num_householder: int = 1
    note: str = ""
    do: Any = None  #: [B,T,HV,V], the derivatives of a loss with respect to o; for a result with gradients
    dfinal_state: Any = None  #: [N,HV,K,V], those with respect to final_state
    l2norm_eps: float = 1e-6  #: from 1e-30 to below 1
    gate_activation: str = "none"  #: softplus or bounded where the kernel itself makes the log decay of g, A_log and dt_bias
    A_log: Any = None  #: [HV]
    dt_bias: Any = None  #: [HV], with op kda [HV,K]; 0 if absent
    gate_lower_bound: float | None = None  #: of bounded, below 0

    def torch(self) -> Problem:
        """The same with torch tensors."""
        return _converted(self, recorder.PROBLEM_TENSORS + recorder.COTANGENTS, "torch")

    def numpy(self) -> Problem:
        """The same with numpy arrays, where numpy has the dtypes."""
        return _converted(self, recorder.PROBLEM_TENSORS + recorder.COTANGENTS, "numpy")

    def jax(self) -> Problem:
        """The same with JAX arrays."""
        return _converted(self, recorder.PROBLEM_TENSORS + recorder.COTANGENTS, "jax")


@dataclass
class Result:
    """What came out: o [B,T,HV,V], final_state [N,HV,K,V] (or [N,HV,V,K] with state_layout="vk"), and of a chunk kernel whatever
    stages it stored, by their names: g_cumsum_log2, A, Ai, w, u, h, v_new, Aqk. Of a backward pass the gradients, by their
    names: dq, dk, dv, dbeta, dg, dinitial_state, each of the shape of what it is the gradient of; with these o may be absent.
    Stages of a backward pass are stages like the others: dv_local, dh, dv2, dw, dg_local, dAqk, dAkk, dq_hat, dk_hat."""

    o: Any = None
    final_state: Any = None
    kernel: str = ""
    path: str | None = None  #: chunk, recurrent or reference; chunk where a chunk_size is stated
    chunk_size: int | None = None  #: C, in rows of k
    stages: Mapping[str, Any] = field(default_factory=dict)
    state_layout: str = "kv"
    producer: str = ""
    problem_sha256: str = ""
    gradients: Mapping[str, Any] = field(default_factory=dict)

    def torch(self) -> Result:
        """The same with torch tensors."""
        both = (self.stages, self.gradients)
        stages, gradients = ({name: converted(t, "torch") for name, t in some.items()} for some in both)
        return dataclasses.replace(_converted(self, ("o", "final_state"), "torch"), stages=stages, gradients=gradients)


ProblemLike = Union[Problem, Mapping[str, Any], Path]
ResultLike = Union[Result, Mapping[str, Any], Path]


_Either = TypeVar("_Either", Problem, Result)


def _converted(of: _Either, names: tuple[str, ...], to: str) -> _Either:
    return dataclasses.replace(of, **{name: converted(getattr(of, name), to) for name in names})


def _fields(given: Any, kind: type, what: str) -> dict[str, Any]:
    if isinstance(given, kind):
        return {f.name: getattr(given, f.name) for f in dataclasses.fields(kind)}
    if isinstance(given, Mapping):
        return dict(given)
    raise format_error(
        f"{what}: a {type(given).__name__} was given; give a deltaproof.{kind.__name__}, a dict of tensors, or the path of a safetensors file"
    )


def _words(of: Any, given: dict[str, Any]) -> list[tuple[str, str]]:
    try:
        words = of(given)
    except _core.error:
        raise
    except (ValueError, TypeError) as e:
        raise format_error(str(e)) from None
    return [(key, _core.decimal(float(given["scale"])) if key == "scale" else value) for key, value in words]


def is_path(given: Any) -> bool:
    return isinstance(given, (str, os.PathLike))


def problem_file(given: ProblemLike | _core.file) -> _core.file:
    """The file of a problem, checked. A Case stands for its problem."""
    given = getattr(given, "problem", given)
    if isinstance(given, _core.file):
        return given
    if isinstance(given, (str, os.PathLike)):
        return _core.opened(os.fspath(given))
    fields = _fields(given, Problem, "problem")
    if "op" not in fields:
        fields["op"] = Problem.op
    words = _words(recorder.problem_words, fields)
    tensors = []
    for name in recorder.PROBLEM_TENSORS + recorder.COTANGENTS:
        x = fields.get(name)
        if x is None:
            if name in ("q", "k", "v", "beta"):
                raise format_error(f"problem: tensor {name} is missing; it is required")
            continue
        tensors.append(_named(offsets(x, name) if name == "cu_seqlens" else floating(x, name), name))
    out = _core.made(words, tensors, "problem")
    _core.validate(out)
    return out


def result_file(given: ResultLike | _core.file, problem: _core.file) -> _core.file:
    """The file of a result of `problem`, checked. A result in memory is taken for one of this problem unless it says otherwise."""
    if isinstance(given, _core.file):
        return given
    if isinstance(given, (str, os.PathLike)):
        return _core.opened(os.fspath(given))
    fields = _fields(given, Result, "result")
    stages = fields.get("stages") or {}
    known = recorder.STAGES + recorder.BACKWARD_STAGES
    for name in stages:
        if name not in known:
            raise format_error(f"result: no stage is called {name!r}; the stages are {', '.join(known)}")
    gradients = fields.pop("gradients", None) or {}
    for name in gradients:
        if name not in recorder.GRADIENTS:
            raise format_error(
                f"result: no gradient is called {name!r}; the gradients are {', '.join(recorder.GRADIENTS)}"
            )
    fields.update(stages)
    fields.update(gradients)
    if not fields.get("problem_sha256"):
        fields["problem_sha256"] = problem.sha256
    words = _words(recorder.result_words, fields)
    if fields.get("o") is None and all(fields.get(name) is None for name in recorder.GRADIENTS):
        raise format_error("result: tensor o is missing; it is required of a result without gradients")
    tensors = [
        _named(floating(fields[name], name), name)
        for name in recorder.RESULT_TENSORS + recorder.GRADIENTS + recorder.BACKWARD_STAGES
        if fields.get(name) is not None
    ]
    out = _core.made(words, tensors, "result")
    _core.validate(problem, out)
    return out


def _named(t: _core.tensor, name: str) -> _core.tensor:
    return t if t.name == name else t.named(name)


def problem_of(file: _core.file, to: str | None = None) -> Problem:
    """What a problem file holds."""
    words = dict(file.metadata)
    tensors = {t.name: converted(t, to) for t in file.tensors}
    return Problem(
        **{name: tensors.get(name) for name in recorder.PROBLEM_TENSORS + recorder.COTANGENTS},
        op=words["op"],
        scale=float(words["scale"]) if "scale" in words else None,
        qk_l2norm=words.get("qk_l2norm") == "true",
        l2norm_eps=float(words.get("l2norm_eps", 1e-6)),
        gate_activation=words.get("gate_activation", "none"),
        gate_lower_bound=float(words["gate_lower_bound"]) if "gate_lower_bound" in words else None,
        rule=words.get("rule", "euler"),
        beta_activation=words.get("beta_activation", "none"),
        num_householder=int(words.get("num_householder", 1)),
        note=words.get("note", ""),
    )


def result_of(file: _core.file, to: str | None = None) -> Result:
    """What a result file holds."""
    words = dict(file.metadata)
    tensors = {t.name: converted(t, to) for t in file.tensors}
    size = words.get("chunk_size")
    return Result(
        o=tensors.get("o"),
        final_state=tensors.get("final_state"),
        kernel=words.get("kernel", ""),
        path=words.get("path"),
        chunk_size=int(size) if size else None,
        stages={name: tensors[name] for name in recorder.STAGES + recorder.BACKWARD_STAGES if name in tensors},
        gradients={name: tensors[name] for name in recorder.GRADIENTS if name in tensors},
        state_layout=words.get("state_layout", "kv"),
        producer=words.get("producer", ""),
        problem_sha256=words.get("problem_sha256", ""),
    )


def load(path: Path, to: str | None = "numpy", gate: str = "log") -> Problem:
    """The problem of a file, for your kernel. to: "numpy" (bf16 by ml_dtypes), "torch", "jax", "mlx", or None for deltaproof.tensor.

    gate: the unit in which your kernel takes g: "log" (natural logarithm, as the file has it), "log2" or "decay" (e^g). Another
    unit than "log" is computed in fp64 and rounded once to fp32. Record what comes out with `record_result`, which reads the
    file again: do not judge it against this Problem, whose g is then no logarithm.
    """
    with python_words():
        file = _core.opened(os.fspath(path))
        _core.validate(file)
    found = problem_of(file, to)
    if gate != "log" and found.g is not None:
        try:
            recorder.require_log({"gate_activation": found.gate_activation}, gate)
            found.g = converted(unit_of_gate({t.name: t for t in file.tensors}["g"], gate), to)
        except ValueError as e:
            raise format_error(str(e)) from None
    return found


def read_result(path: Path, problem: ProblemLike, to: str | None = None) -> Result:
    """Reads a result file and checks that it is one of `problem`, by the hash that it states. to: as `load`."""
    with python_words():
        file = _core.opened(os.fspath(path))
        _core.validate(problem_file(problem), file)
    return dataclasses.replace(result_of(file, to), problem_sha256="")


def record(path: Path, problem: ProblemLike, result: ResultLike | None = None) -> tuple[str, ...]:
    """Writes `path`.problem.safetensors and, where there is a result, `path`.result.safetensors; returns their names.
    `deltaproof check` judges them with the same verdict as `check` judges the tensors."""
    stem = os.fspath(path)
    if os.path.dirname(stem):
        os.makedirs(os.path.dirname(stem), exist_ok=True)
    with python_words():
        p = problem_file(problem)
        written = [f"{stem}.problem.safetensors"]
        p.write(written[0])
        if result is not None:
            written.append(f"{stem}.result.safetensors")
            result_file(result, p).write(written[1])
    return tuple(written)


def record_result(
    problem_file: Path, tensors: Mapping[str, Any], kernel: str = "", gate: str = "log", out: Path | None = None, **words: Any
) -> str:
    """Writes a result file of the problem in `problem_file`, which stays as it is; returns its name, for `check`.

    tensors: o, final_state, stages and gradients by their names; of torch, numpy, JAX, MLX or anything with DLPack. kernel: its name:
    a plan that lists it judges it. gate: the unit of the kernel's gate, in which g_cumsum and dg are given: "log", "log2" or
    "decay". out: None for that of the problem with .result in place of .problem. words: path, chunk_size, state_layout, producer.
    """
    both: dict[str, Any] = {**tensors, **(tensors.get("stages") or {}), **(tensors.get("gradients") or {})}
    taken = {
        name: x if x is None or isinstance(x, (str, int, Mapping)) or recorder.reads(x) else take(x, name)
        for name, x in both.items()
    }
    written = draft = ""
    try:
        written = recorder.result_name(problem_file, out)
        draft = f"{written}.{secrets.token_hex(4)}.draft"  # what is refused replaces no file
        recorder.record_result(problem_file, taken, kernel, gate, draft, **words)
        with python_words():
            _core.validate(_core.opened(os.fspath(problem_file)), _core.opened(draft))
        os.replace(draft, written)
    except ValueError as e:
        kind = type(e) if isinstance(e, _core.error) else format_error
        raise kind(str(e).replace(draft, written) if draft else str(e)) from None
    finally:
        with contextlib.suppress(OSError):
            os.unlink(draft)
    return written
