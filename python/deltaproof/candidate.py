# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""The process in which `deltaproof.judge` runs a candidate. It is a script of its own and imports nothing of the package: the
reference is never in this process. Inputs and outputs lie in a file that both processes map; what the inputs hold afterwards, and
whether outputs are right, is looked at in the other process.

    python candidate.py FILE NAME LIBRARY DEVICE        requests and replies: one line of JSON each, on stdin and stdout

The first reply is written before anything of the candidate runs: the dtypes that the library has, or why it cannot be used.
"""

import ctypes
import gc
import importlib.util
import inspect
import json
import mmap
import os
import sys
import time
import traceback
import types

INTEGERS = {"I64": "int64"}
FLOATS = {"BF16": "bfloat16", "F16": "float16", "F32": "float32", "F64": "float64"}
KNOWN = (
    "q",
    "k",
    "v",
    "beta",
    "g",
    "scale",
    "initial_state",
    "cu_seqlens",
    "num_householder",
    "op",
    "rule",
    "qk_l2norm",
    "l2norm_eps",
    "gate_activation",
    "gate_lower_bound",
    "A_log",
    "dt_bias",
)
BUFFERS = ("o", "final_state")
FORBIDDEN = "deltaproof"


def shared(strides, shape):
    """Of an expanded tensor."""
    lies_over_itself = any(stride == 0 for stride, n in zip(strides, shape) if n > 1)
    return f"a tensor of strides {tuple(strides)}, some elements of which share memory; return a contiguous tensor" if lies_over_itself else ""


class Torch:
    """What is done with tensors, bound before the candidate is loaded."""

    def __init__(self, device):
        import torch

        self.device, self.kind = torch.device(device), torch.Tensor
        self.of = {getattr(torch, name): text for text, name in FLOATS.items()}
        self.by_text = {text: getattr(torch, name) for text, name in {**FLOATS, **INTEGERS}.items()}
        self.frombuffer, self.full, self.contiguous = torch.frombuffer, torch.full, torch.Tensor.contiguous
        self.to, self.detach, self.copy = torch.Tensor.to, torch.Tensor.detach, torch.Tensor.copy_
        self.pointer, self.strided = torch.Tensor.data_ptr, torch.strided
        self.full((1,), 0.0, device=self.device)  # a device that is not there says so now

    def view(self, memory, dtype, shape, at, count):
        return self.frombuffer(memory, dtype=self.by_text[dtype], count=count, offset=at).reshape(shape)

    def given(self, x):
        return x if self.device.type == "cpu" else self.to(x, self.device)

    def buffer(self, dtype, shape):
        return self.full(shape, float("nan"), dtype=self.by_text[dtype], device=self.device)

    def wrong(self, x):
        if type(x) is not self.kind:
            return f"{type(x).__module__}.{type(x).__qualname__}; return a plain torch.Tensor"
        if x.layout is not self.strided or x.device.type != self.device.type:
            return f"a tensor of layout {x.layout} on {x.device}; return a strided tensor on {self.device}"
        if x.dtype not in self.of:
            return f"a tensor of {x.dtype}; return {', '.join(FLOATS.values())}"
        return shared(x.stride(), x.shape)

    def read(self, x):
        """dtype, and something whose memory can be copied."""
        x = self.contiguous(self.to(self.detach(x), "cpu"))
        return self.of[x.dtype], self.pointer(x), x.numel() * x.element_size(), x

    def address(self, x):
        return self.pointer(x), self.pointer(x) + x.numel() * x.element_size()

    def give_back(self, x, into):
        if self.device.type != "cpu":
            self.copy(into, self.to(x, "cpu"))


class Numpy:
    """The same with numpy; bf16 by ml_dtypes."""

    def __init__(self, device):
        import numpy

        if device != "cpu":
            raise ValueError(f"numpy has no device {device}")
        self.numpy, self.kind = numpy, numpy.ndarray
        self.by_text = {}
        for text, name in {**FLOATS, **INTEGERS}.items():
            if text == "BF16":
                if importlib.util.find_spec("ml_dtypes") is None:
                    continue
                import ml_dtypes

                self.by_text[text] = numpy.dtype(ml_dtypes.bfloat16)
            else:
                self.by_text[text] = numpy.dtype(name)
        self.of = {dtype: text for text, dtype in self.by_text.items() if text in FLOATS}

    def view(self, memory, dtype, shape, at, count):
        return self.numpy.frombuffer(memory, dtype=self.by_text[dtype], count=count, offset=at).reshape(shape)

    def given(self, x):
        return x

    def buffer(self, dtype, shape):
        return self.numpy.full(shape, float("nan"), dtype=self.by_text[dtype])

    def wrong(self, x):
        if type(x) is not self.kind:
            return f"{type(x).__module__}.{type(x).__qualname__}; return a plain numpy.ndarray"
        if x.dtype not in self.of:
            return f"an array of {x.dtype}; return {', '.join(FLOATS.values())}"
        return shared(x.strides, x.shape)

    def read(self, x):
        x = self.numpy.ascontiguousarray(x)
        return self.of[x.dtype], x.ctypes.data, x.nbytes, x

    def address(self, x):
        return x.ctypes.data, x.ctypes.data + x.nbytes

    def give_back(self, x, into):
        pass


class Arena:
    """The mapped file. A place that is asked for again with the same dtype and shape is the same tensor object."""

    def __init__(self, path, library):
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 0)
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.end, self.library, self.known = self.base + len(self.memory), library, {}

    def tensor(self, name, dtype, shape, at):
        key = (name, dtype, tuple(shape), at)
        if key not in self.known:
            count = 1
            for n in shape:
                count *= n
            self.known[key] = self.library.view(self.memory, dtype, tuple(shape), at, count)
        return self.known[key]

    def store(self, pointer, nbytes, at, room):
        if nbytes > room:
            raise ValueError(f"{nbytes} bytes where {room} are expected")
        ctypes.memmove(self.base + at, pointer, nbytes)


expected = []  # nothing that a candidate should use: numbers drawn by the other process


def arguments(fn, given, words, buffers):
    """What the function is called with: the whole problem where it needs one parameter, else what its parameters name."""
    parameters = list(inspect.signature(fn).parameters.values())
    required = [
        p.name for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if len(required) == 1 and required[0] not in KNOWN:
        return (types.SimpleNamespace(**given, **words),), {}
    named = {}
    for p in parameters:
        if p.name in BUFFERS:
            named[p.name] = buffers[p.name]
        elif p.name in KNOWN:
            named[p.name] = given[p.name] if p.name in given else words.get(p.name)
        elif p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL):
            raise TypeError(f"parameter {p.name!r} is unknown; the names are {', '.join(KNOWN + BUFFERS)}")
    return (), named


def called(fn, library, arena, request):
    """One call. What came out is in the arena, read twice."""
    held = {name: arena.tensor(name, *place) for name, place in request["inputs"].items()}
    expected[:] = [arena.tensor("expected " + name, *place) for name, place in request["decoys"].items()]
    given = {name: library.given(x) for name, x in held.items()}
    given = {**dict.fromkeys(("g", "initial_state", "cu_seqlens")), **given}
    buffers = {name: library.buffer(*like) for name, like in request["buffers"].items()}
    args, kwargs = arguments(fn, given, request["words"], buffers)
    for like in request["buffers"].values():  # memory that is freed here, and allocated by the candidate, holds NaN
        library.buffer(*like)
    began = time.perf_counter()
    out = fn(*args, **kwargs)
    seconds = time.perf_counter() - began
    written = {name: buffers[name] for name in BUFFERS if name in kwargs}
    if out is None and written:
        outputs = written
    else:
        returned = [x for x in (out if isinstance(out, (tuple, list)) else [out]) if x is not None]
        if not 1 <= len(returned) <= 2:
            says = f"the candidate returned {len(returned)} outputs; return o, or o and final_state"
            return {"wrong": [["wrong-output", says]]}
        outputs = dict(zip(BUFFERS, returned))
    if "o" not in outputs:
        says = "the candidate returned nothing and has no parameter o to write into; return o, or take a parameter o as well"
        return {"wrong": [["wrong-output", says]]}
    wrong, found = [], {}
    for name, x in outputs.items():
        says = library.wrong(x)
        if says:
            wrong.append(["no-plain-tensor", f"{name} is {says}"])
            continue
        first, last = library.address(x)
        if first < arena.end and last > arena.base:
            wrong.append(["output-is-an-input", f"{name} lies in the memory of an input; return a new tensor"])
        found[name] = x
    if wrong:
        return {"wrong": wrong}
    told = {}
    for slot in (0, 1):
        for name, x in found.items():
            dtype, pointer, nbytes, held_copy = library.read(x)
            told[name] = [dtype, list(x.shape)]
            at, room = request["slots"][name]
            if nbytes > room:
                due = list(request["buffers"][name][1])
                return {"wrong": [["wrong-output", f"{name} has shape {list(x.shape)}; it must be {due}"]]}
            arena.store(pointer, nbytes, at + slot * room, room)
            del held_copy
        if slot == 0:
            time.sleep(request["wait"])
    for name, x in held.items():
        library.give_back(given[name], x)
    return {"outputs": told, "seconds": seconds, "wrong": []}


def loaded(path, name):
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(path))[0], path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    found = module
    for part in name.split("."):
        found = getattr(found, part)
    return found


def main():
    path, name, library, device = sys.argv[1:5]
    del sys.path[0]  # the package's own folder
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8")
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)  # what a candidate prints goes to stderr
    imported = []

    def hook(event, args):
        if event == "import" and str(args[0]).split(".")[0] == FORBIDDEN:
            imported.append(str(args[0]))
            raise ImportError(f"a candidate may not import {args[0]}: put the kernel into a file of its own")

    def reply(said):
        replies.write(json.dumps({**said, "imported": imported[:1]}) + "\n")
        replies.flush()

    try:
        tensors = {"torch": Torch, "numpy": Numpy}[library](device)
    except Exception as why:
        reply({"unusable": f"{type(why).__name__}: {why}"})
        return
    reply({"dtypes": list(tensors.by_text)})
    try:
        sys.addaudithook(hook)
        fn = loaded(path, name)
    except BaseException:
        reply({"failed": traceback.format_exc(limit=-3)})
        return
    reply({"loaded": True})
    arena = None
    for line in requests:
        request = json.loads(line)
        try:
            if arena is None:
                arena = Arena(request["arena"], tensors)
            reply(called(fn, tensors, arena, request))
        except BaseException:
            reply({"failed": traceback.format_exc(limit=-3)})
        gc.collect()


if __name__ == "__main__":
    main()
