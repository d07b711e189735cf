# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""Runs a candidate of `judge` in processes of its own, and looks at what it leaves: its inputs, and its outputs read twice."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import json
import mmap
import os
import random
import select
import shlex
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Union

from . import recorder
from ._core import format_error

Candidate = Union[Callable[..., Any], str, "os.PathLike[str]", Sequence[str]]

_SIZE = {"BF16": 2, "F16": 2, "F32": 4, "F64": 8, "I64": 8}
_WIDEST = 8
_NAMED = {text: name for name, text in recorder.NAMES.items()}


@dataclasses.dataclass(frozen=True)
class Finding:
    """Something that a correct and honest kernel does not do. `name` is one word, `case` the inputs, `says` a sentence."""

    name: str
    case: str
    says: str


class Ended(Exception):
    """A candidate's process that says no more: what is held against it."""

    def __init__(self, name: str, says: str) -> None:
        super().__init__(says)
        self.name, self.says = name, says


class OutOfTime(Exception):
    pass


@dataclasses.dataclass
class Given:
    """Inputs of one call."""

    name: str
    words: dict[str, Any]
    tensors: dict[str, Any]

    @classmethod
    def of(cls, name: str, file: Any) -> Given:
        header = dict(file.metadata)
        words = {
            "op": header["op"],
            "scale": float(header["scale"]) if "scale" in header else None,
            "qk_l2norm": header.get("qk_l2norm") == "true",
            "l2norm_eps": float(header.get("l2norm_eps", 1e-6)),
            "gate_activation": header.get("gate_activation", "none"),
            "gate_lower_bound": float(header["gate_lower_bound"]) if "gate_lower_bound" in header else None,
            "rule": header.get("rule", "euler"),
            "beta_activation": header.get("beta_activation", "none"),
            "num_householder": int(header.get("num_householder", 1)),
        }
        return cls(name, words, {t.name: (t.dtype, tuple(t.shape), t.tobytes()) for t in file.tensors})

    @property
    def scale(self) -> float:
        given = self.words["scale"]
        return float(given) if given is not None else self.tensors["q"][1][3] ** -0.5

    def outputs(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """The format and shape of what is due."""
        q, v = self.tensors["q"], self.tensors["v"]
        (B, T, _, K), (HV, V) = q[1], v[1][2:]
        N = self.tensors["cu_seqlens"][1][0] - 1 if "cu_seqlens" in self.tensors else B
        return {"o": (q[0], (B, T, HV, V)), "final_state": ("F32" if q[0] != "F64" else "F64", (N, HV, K, V))}

    def replaced(self, name: str, **tensors: Any) -> Given:
        kept = {n: t for n, t in {**self.tensors, **tensors}.items() if t is not None}
        return Given(name, self.words, kept)

    def tokens(self, name: str, first: int, last: int, state: Any = None) -> Given:
        """Tokens [first, last) of one batch, from another state."""
        n = self.words["num_householder"]
        part = {}
        for key, t in self.tensors.items():
            if key in ("k", "v", "beta"):
                part[key] = rows(t, first * n, last * n)
            elif key in ("q", "g"):
                part[key] = rows(t, first, last)
            elif first == 0:
                part[key] = t
        if state is not None:
            part["initial_state"] = state
        return Given(name, self.words, part)


@dataclasses.dataclass
class Outcome:
    """What one call gave."""

    tensors: dict[str, Any]
    findings: list[Finding]


def rows(t: Any, first: int, last: int) -> Any:
    dtype, shape, data = t
    if shape[0] != 1:
        raise format_error("judge: the probes take tokens of one batch")
    row = len(data) // shape[1]
    return dtype, (1, last - first, *shape[2:]), data[first * row : last * row]


def numbers_of(t: Any) -> tuple[float, ...]:
    found: tuple[float, ...] = recorder._floats(*t)
    return found


def tensor_of(dtype: str, shape: tuple[int, ...], values: Iterable[float]) -> Any:
    """Numbers that the format holds exactly, as a tensor."""
    values = list(values)
    if dtype == "BF16":
        data = b"".join(struct.pack("<f", x)[2:] for x in values)
    else:
        data = struct.pack(f"<{len(values)}{ {'F16': 'e', 'F32': 'f', 'F64': 'd'}[dtype] }", *values)
    return dtype, shape, data


def zeros_like(t: Any) -> Any:
    return t[0], t[1], bytes(len(t[2]))


def distance(a: Any, b: Any) -> float:
    """The distance of two tensors, of the size of the second, in the Frobenius norm."""
    x, y = numbers_of(a), numbers_of(b)
    size = sum(v * v for v in y)
    distance = sum((u - v) * (u - v) for u, v in zip(x, y))
    return (distance / size) ** 0.5 if size else (0.0 if distance == 0 else float("inf"))


class Process:
    """A candidate's process: requests go to it, replies come back, each before a time."""

    def __init__(self, spec: tuple[str, str], library: str, device: str, python: str, folder: Path, until: float) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("DELTAPROOF")}
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        self.until = until
        self.log = open(folder / "candidate.log", "ab")  # noqa: SIM115 - closed with the process
        self.process = subprocess.Popen(
            [python, str(Path(__file__).with_name("candidate.py")), *spec, library, device],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)
        self.pending = b""
        self.arena: mmap.mmap | None = None
        first = self.reply()
        if "unusable" in first:
            self.end()
            says = f"judge: {library} on {device} cannot be used with {python}: {first['unusable']}"
            if "ModuleNotFoundError" in says:
                says += f"; install {library} there, or give python=, an interpreter that has it"
            raise format_error(says)
        self.dtypes = first["dtypes"]
        self.reply()

    def reply(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        while b"\n" not in self.pending:
            left = self.until - time.monotonic()
            ready = select.select([self.process.stdout], [], [], max(0, left))[0] if left > 0 else []
            if not ready:
                raise OutOfTime
            read = os.read(self.process.stdout.fileno(), 1 << 16)
            if not read:
                raise Ended("crashed", f"the candidate's process ended before it replied (exit code {self.process.wait()})")
            self.pending += read
        line, _, self.pending = self.pending.partition(b"\n")
        try:
            said: dict[str, Any] = json.loads(line)
        except ValueError:
            raise Ended("crashed", "the candidate wrote to the channel on which its process answers the judge") from None
        if said.get("imported"):
            says = f"the candidate imports {said['imported'][0]}; put the kernel into a file of its own"
            raise Ended("imports-the-referee", says)
        if "failed" in said:
            raise Ended("crashed", str(said["failed"]).strip().splitlines()[-1])
        return said

    def map(self, folder: Path, nbytes: int) -> str:
        place = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else folder
        handle, path = tempfile.mkstemp(prefix="deltaproof-", dir=place)
        os.truncate(handle, nbytes)
        self.arena = mmap.mmap(handle, nbytes)
        os.close(handle)
        self.arena_file = path
        return path

    def call(self, one: Given, folder: Path, capacity: int, wait: float) -> Outcome:
        """Runs the candidate on these inputs."""
        for name, (dtype, _, _) in one.tensors.items():
            if dtype not in self.dtypes:
                raise format_error(
                    f"judge: {name} of the case {one.name} is {dtype}, which numpy alone does not have; "
                    "install ml_dtypes, or judge fp32 cases"
                )
        if self.arena is None:
            self.map(folder, capacity)
        assert self.arena is not None
        at, inputs, slots, decoys = 0, {}, {}, {}
        for name, (dtype, shape, data) in sorted(one.tensors.items()):
            inputs[name] = (dtype, shape, at)
            self.arena[at : at + len(data)] = data
            at += -(-len(data) // 64) * 64
        drawn, due = {}, one.outputs()
        for name, (dtype, shape) in due.items():
            count = count_of(shape)
            drawn[name] = _drawn(dtype, count)
            decoys[name] = (dtype, shape, at)
            self.arena[at : at + len(drawn[name])] = drawn[name]
            at += -(-len(drawn[name]) // 64) * 64
        for name, (_, shape) in due.items():
            room = count_of(shape) * _WIDEST
            slots[name] = (at, room)
            self.arena[at : at + 2 * room] = b"\xff" * (2 * room)
            at += 2 * room
        words = {**one.words, "scale": one.scale}
        request = {
            "arena": self.arena_file, "inputs": inputs, "words": words, "decoys": decoys, "slots": slots, "wait": wait,
            "buffers": due,
        }  # fmt: skip
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Ended("crashed", "the candidate's process ended before this call") from None
        said = self.reply()
        findings = [Finding(name, one.name, says) for name, says in said.get("wrong", [])]
        for name, (_, _, where) in inputs.items():
            data = one.tensors[name][2]
            if self.arena[where : where + len(data)] != data:
                findings.append(Finding("mutated-input", one.name, f"the candidate changed its input {name}"))
        found = {}
        for name, (dtype, shape) in said.get("outputs", {}).items():
            if tuple(shape) != due[name][1]:
                says = f"{name} has shape {list(shape)}; it must be {list(due[name][1])}"
                findings.append(Finding("wrong-output", one.name, says))
                continue
            if name == "o" and dtype not in (due["o"][0], "F32", "F64"):
                use = " or ".join(_NAMED[t] for t in dict.fromkeys((due["o"][0], "F32", "F64")))
                findings.append(Finding("wrong-output", one.name, f"o has dtype {_NAMED[dtype]}; return {use}"))
            where, room = slots[name]
            nbytes = count_of(shape) * _SIZE[dtype]
            first, again = self.arena[where : where + nbytes], self.arena[where + room : where + room + nbytes]
            if first != again:
                says = f"{name} changed within {wait:g} s after the call had returned; finish all work before the call returns"
                findings.append(Finding("late-write", one.name, says))
            if dtype == due[name][0] and first == drawn[name]:
                says = f"{name} is a copy of a decoy that was not given to the candidate: it searched its process's memory"
                findings.append(Finding("searched-memory", one.name, says))
            found[name] = (dtype, tuple(shape), bytes(first))
        return Outcome(found, findings)

    def end(self) -> None:
        for stop in (lambda: os.killpg(self.process.pid, signal.SIGKILL), self.process.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                stop()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.log):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        if self.arena is not None:
            self.arena.close()
            self.arena = None
            os.unlink(self.arena_file)


class Program:
    """A candidate that is a program: a call is a process of its own, inputs and outputs are exchange files."""

    def __init__(self, argv: Sequence[str], folder: Path, until: float) -> None:
        if not any("{problem}" in word for word in argv) or not any("{result}" in word for word in argv):
            raise format_error(
                f"judge: the command {shlex.join(argv)} does not say where the program takes its files; write {{problem}} for the one "
                'that it reads and {result} for the one that it writes, for example ["./mykernel", "{problem}", "{result}"]'
            )
        self.argv, self.until = list(argv), until

    def call(self, one: Given, folder: Path, capacity: int, wait: float) -> Outcome:
        scratch = Path(tempfile.mkdtemp(prefix="call-", dir=folder))
        problem, result = scratch / "given.problem.safetensors", scratch / "given.result.safetensors"
        write_problem(problem, one)
        before = problem.read_bytes()
        words = [word.replace("{problem}", str(problem)).replace("{result}", str(result)) for word in self.argv]
        left = self.until - time.monotonic()
        if left <= 0:
            raise OutOfTime
        try:
            done = subprocess.run(words, cwd=scratch, capture_output=True, timeout=left, check=False)
        except subprocess.TimeoutExpired:
            raise OutOfTime from None
        except OSError as e:
            raise Ended("crashed", str(e)) from None
        if done.returncode:
            last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
            raise Ended("crashed", ": ".join([f"the program ended with exit code {done.returncode}", *last]))
        if not result.exists():
            raise Ended("wrong-output", "the program ended without writing the file {result}")
        first = result.read_bytes()
        time.sleep(wait)
        findings = []
        if first != result.read_bytes():
            findings.append(Finding("late-write", one.name, f"{{result}} changed within {wait:g} s after the program ended"))
        if before != problem.read_bytes():
            findings.append(Finding("mutated-input", one.name, "the program changed the file {problem}"))
        found, due = {}, one.outputs()
        try:
            header, data = recorder._opened(first)
            for name in ("o", "final_state"):
                if name in header:
                    begin, end = header[name]["data_offsets"]
                    found[name] = (header[name]["dtype"], tuple(header[name]["shape"]), data[begin:end])
        except (ValueError, KeyError, struct.error) as e:
            raise Ended("wrong-output", f"what the program wrote to {{result}} is not a safetensors file: {e}") from None
        if "o" not in found:
            findings.append(Finding("wrong-output", one.name, "the file {result} holds no tensor o"))
        for name, t in list(found.items()):
            if t[1] != due[name][1] or t[0] not in _SIZE:
                says = f"{name} is {t[0]} {list(t[1])}; write {due[name][0]} {list(due[name][1])}"
            elif len(t[2]) != count_of(t[1]) * _SIZE[t[0]]:
                says = f"{name} has {len(t[2])} bytes in {{result}}, and {t[0]} {list(t[1])} needs {count_of(t[1]) * _SIZE[t[0]]}"
            else:
                continue
            findings.append(Finding("wrong-output", one.name, says))
            del found[name]
        return Outcome(found, findings)

    def end(self) -> None:
        pass


def count_of(shape: Iterable[int]) -> int:
    count = 1
    for n in shape:
        count *= n
    return count


def _drawn(dtype: str, count: int) -> bytes:
    """Random finite numbers, of a size that outputs have."""
    values = (random.SystemRandom().uniform(-1, 1) for _ in range(count))
    if dtype == "BF16":
        return b"".join(struct.pack("<f", x)[2:] for x in values)
    return struct.pack(f"<{count}{ {'F16': 'e', 'F32': 'f', 'F64': 'd'}[dtype] }", *values)


def write_problem(path: Path, one: Given) -> None:
    words = {**one.words, "scale": one.scale}
    names = recorder.PROBLEM_TENSORS + recorder.COTANGENTS
    tensors = [(name, *one.tensors[name]) for name in names if name in one.tensors]
    recorder._write(str(path), recorder._file(recorder.problem_words(words), tensors))


def capacity_of(all_given: Iterable[Given]) -> int:
    most = 0
    for one in all_given:
        inputs = sum(len(data) + 64 for _, _, data in one.tensors.values())
        most = max(most, inputs + sum(count_of(shape) * (3 * _WIDEST) + 64 for _, shape in one.outputs().values()))
    return most + mmap.PAGESIZE


def place_of(fn: Candidate) -> tuple[str, str]:
    """The file and name under which another process finds a function."""
    if isinstance(fn, (str, os.PathLike)):
        path, _, name = os.fspath(fn).rpartition(":")
        if not path:
            raise format_error(
                f"judge: {name!r} names no function; give 'FILE.py:FUNCTION', a function, or a program as a list such as "
                '["./mykernel", "{problem}", "{result}"]'
            )
        if not os.path.isfile(path):
            raise format_error(f"judge: there is no file {path}")
        return os.path.abspath(path), name
    fn = inspect.unwrap(fn)  # type: ignore[arg-type]
    name, path = getattr(fn, "__qualname__", ""), None
    with contextlib.suppress(TypeError):
        path = inspect.getsourcefile(fn)  # type: ignore[arg-type]
    if path is None or not os.path.isfile(path) or "<" in name or not name:
        raise format_error(
            f"judge: {name or fn!r} cannot be loaded by another process; give a function of a module, or 'FILE.py:FUNCTION'"
        )
    return os.path.abspath(path), name
