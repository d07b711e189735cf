# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""Records what a kernel was given and what came out, on the machine where it runs. Needs torch or numpy and nothing else: copy
this one file there. `record` writes two safetensors files in the exchange format; `deltaproof check` judges them anywhere.

    from recorder import record, taps
    record("case1", dict(op="gated_delta_rule", q=q, k=k, v=v, beta=beta, g=g, scale=scale),
           dict(o=o, final_state=ht, kernel="fla chunk_gated_delta_rule", path="chunk", chunk_size=64))

With the stages of fla's kernels, which then are judged one by one:

    with taps() as stages:
        o, ht = chunk_gated_delta_rule(q, k, v, g, beta, scale=scale, output_final_state=True)
    record("case1", dict(...), dict(o=o, final_state=ht, **stages, kernel=...))

Three call sites of fla 0.5 and 0.6 leave the stages (delta_rule: wy_fast.py and chunk.py; gated_delta_rule: chunk.py or
chunk_fwd.py; kda: chunk_fwd.py). `taps` wraps them, under whatever name a module imported them, for the length of the
`with`; in a kernel of your own, keep the same tensors:

  1. A, Ai    chunk_scaled_dot_kkt_fwd(k, g, beta) -> A;  solve_tril(A) -> Ai
              fused: chunk_gated_delta_rule_fwd_intra(...) -> w, u, Ai;  KDA: chunk_kda_fwd_intra(...) -> w, u, .., Aqk, Ai
  2. w, u     recompute_w_u_fwd(k, v, beta, A=Ai, g) -> w, u
  3. h, v_new chunk_gated_delta_rule_fwd_h(k, w, u, g, initial_state) -> h, v_new, final_state

A problem made elsewhere (`deltaproof gen`) is read here and stays the file that it is:

    problem = read("case1.problem.safetensors")
    o, ht = kernel(problem["q"].cuda(), ..., scale=problem["scale"])
    record_result("case1.problem.safetensors", dict(o=o, final_state=ht), kernel=..., producer=environment())

A kernel that takes its gate in another unit gets it from read(..., gate="log2") or gate="decay"; the same word to
`record_result` turns what it gives back in that unit (g_cumsum, dg) into the format's.

The backward pass: `do` and, where the kernel was given it, `dfinal_state` belong to the problem; dq, dk, dv, dbeta, dg and
dinitial_state to the result, which then says pass_="backward" or "both" and whose stages are those of `taps(BACKWARD_SITES)`
around the call of backward(). `check` judges both passes, by plans that have a section [backward].

Tensors are torch's, numpy's (bf16 by ml_dtypes), JAX's or MLX's. They may be on any device, strided, and may require grad: they
are detached, moved and written bit for bit. Shapes: q
[B,T,H,K], k [B,T*n,H,K], v [B,T*n,HV,V], beta [B,T*n,HV], g [B,T,HV] or [B,T,HV,K] (natural logarithm of the decay, as
given to the kernel, not its cumulative sum), initial_state [N,HV,K,V], cu_seqlens [N+1]; o [B,T,HV,V], final_state
[N,HV,K,V] (state_layout="vk": [N,HV,V,K]).
"""

import array
import concurrent.futures
import contextlib
import ctypes
import difflib
import functools
import hashlib
import importlib.metadata
import importlib.util
import json
import math
import multiprocessing
import os
import pickle
import platform
import secrets
import struct
import subprocess
import sys

PROBLEM_TENSORS = ("q", "k", "v", "beta", "initial_state", "g", "cu_seqlens", "A_log", "dt_bias")
COTANGENTS = ("do", "dfinal_state")
PROBLEM_WORDS = (
    "op", "scale", "qk_l2norm", "l2norm_eps", "gate_activation", "gate_lower_bound", "rule", "beta_activation", "num_householder", "note"
)  # fmt: skip
STAGES = ("g_cumsum_log2", "A", "Ai", "w", "u", "h", "v_new", "Aqk")
RESULT_TENSORS = ("o", "final_state") + STAGES
GRADIENTS = ("dq", "dk", "dv", "dbeta", "dg", "dinitial_state")
BACKWARD_STAGES = ("dv_local", "dh", "dv2", "dw", "dg_local", "dAqk", "dAkk", "dq_hat", "dk_hat")
# What `invariant flush` and `invariant cp` look at beside a result.
STATE_TENSORS = ("ring_k", "ring_u", "ring_g", "ring_state", "rank_transition", "rank_state")
STATE_WORDS = ("flush_every", "fold", "fold_operand", "drop_below")
RESULT_FILE = RESULT_TENSORS + GRADIENTS + BACKWARD_STAGES + STATE_TENSORS
RESULT_WORDS = ("kernel", "path", "chunk_size", "state_layout", "problem_sha256", "producer")
NAMES = {
    "bfloat16": "BF16",
    "float16": "F16",
    "float32": "F32",
    "float64": "F64",
    "int64": "I64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
}
PACKAGES = ("torch", "triton", "fla-core", "flash-linear-attention", "tilelang", "transformers", "jax", "mlx", "mlx-lm", "numpy")
GATES = ("log", "log2", "decay")  # g, g / ln 2, e^g

# Which of fla's functions returns which stages, in the order of its results; None: not recorded.
CALL_SITES = {
    "chunk_scaled_dot_kkt_fwd": ("A",),
    "solve_tril": ("Ai",),
    "chunk_gated_delta_rule_fwd_intra": ("w", "u", "Ai"),
    "chunk_kda_fwd_intra": ("w", "u", None, None, "Aqk", "Ai"),
    "recompute_w_u_fwd": ("w", "u"),
    "chunk_gated_delta_rule_fwd_h": ("h", "v_new", None),
    "chunk_gated_delta_product_fwd_h": (None, "v_new", None),  # its h is that of every n-th chunk
    "chunk_local_cumsum": ("g_cumsum_log2",),  # where it is called with scale = 1/ln 2
}

# The same for the backward pass.
BACKWARD_SITES = {
    "chunk_bwd_dv_local": ("dv_local",),
    "chunk_kda_bwd_dAv": ("dAqk", "dv_local"),
    "chunk_gated_delta_rule_bwd_dhu": ("dh", None, "dv2"),
    "chunk_bwd_dqkwg": (None, None, "dw", None),
    "chunk_kda_bwd_wy_dqkg_fused": (None, None, None, None, None, "dAkk"),
}


def record(path, problem, result=None):
    """Writes `path`.problem.safetensors and, where there is a result, `path`.result.safetensors; returns their names.

    `problem` and `result` are dicts of tensors and words: PROBLEM_TENSORS, COTANGENTS and PROBLEM_WORDS; RESULT_TENSORS,
    GRADIENTS, BACKWARD_STAGES and RESULT_WORDS. A problem that is a file already stays that file: `record_result`.
    """
    path = os.fspath(path)
    if isinstance(problem, (str, os.PathLike)):
        raise ValueError(
            f"record: the problem is given as a file, {os.fspath(problem)}; call record_result with that file to write a result of it"
        )
    if os.path.dirname(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
    names = [f"{path}.problem.safetensors"]
    _write(names[0], _file(problem_words(problem), _bits(problem, PROBLEM_TENSORS + COTANGENTS)))
    if result is not None:
        names.append(record_result(names[0], result, out=f"{path}.result.safetensors"))
    return tuple(names)


def record_result(problem_file, tensors, kernel="", gate="log", out=None, **words):
    """Writes a result of the problem in `problem_file`, which is only read, to hash it; returns the name of the new file.

    tensors: a dict of o, final_state, stages and gradients, and of words if you like. words: RESULT_WORDS and pass_.
    gate: the unit of the kernel's own gate: "log" (natural logarithm), "log2" or "decay". g_cumsum, the chunk-local sum (the
    product, where it is the decay) in that unit, becomes the stage g_cumsum_log2; dg, the gradient with respect to the gate in that
    unit, becomes that with respect to the natural logarithm. Both are computed in fp64 and stored so.
    out: the file; None: that of the problem with .result in place of .problem.
    """
    _unit(gate)
    problem_file = os.fspath(problem_file)
    with open(problem_file, "rb") as given:
        image = given.read()
    out = result_name(problem_file, out)
    result = {**tensors, **tensors.get("stages", {}), **tensors.get("gradients", {}), **words}
    result.update(kernel=kernel or result.get("kernel"), problem_sha256=hashlib.sha256(image).hexdigest())
    cumsum = result.pop("g_cumsum", None)
    written = {name: found for name, *found in _bits(result, RESULT_FILE)}
    if cumsum is not None:
        written["g_cumsum_log2"] = in_unit(_one(cumsum, "g_cumsum"), gate, "log2")
    if "dg" in written and gate != "log":
        header = _opened(image)[0]
        require_log(header.get("__metadata__", {}), gate)
        if gate == "decay" and "g" not in header:
            raise ValueError(f"record_result: dg with gate={gate!r} needs the problem's g, and {problem_file} holds none")
        dtype, shape, data = written["dg"]
        g = None if gate == "log2" else _floats(*_tensor_of(image, "g"))
        factor = [1 / math.log(2)] * _count(shape) if g is None else [math.exp(x) for x in g]
        written["dg"] = ("F64", shape, array.array("d", map(float.__mul__, _floats(dtype, shape, data), factor)).tobytes())
    if gate != "log":
        result["producer"] = ", ".join(filter(None, (result.get("producer"), f"gate given as {gate}")))
    if os.path.dirname(out):
        os.makedirs(os.path.dirname(out), exist_ok=True)
    _write(out, _file(result_words(result), [(name, *written[name]) for name in RESULT_FILE if name in written]))
    return out


def result_name(problem_file, out=None):
    """The file that `record_result` writes."""
    problem_file = os.fspath(problem_file)
    if out is None:
        end = ".problem.safetensors"
        out = (problem_file[: -len(end)] if problem_file.endswith(end) else problem_file) + ".result.safetensors"
    out = os.fspath(out)
    if os.path.abspath(out) == os.path.abspath(problem_file):
        raise ValueError(f"record_result: {out} is the problem itself; name another file")
    return out


def record_set(folder, fn, keep=None, to=None, apart=None):
    """Records every call of a set that `deltaproof gen --for INVARIANT --dir folder` made; `deltaproof invariant INVARIANT folder`
    then judges it. Returns the names of the result files.

    fn(problem, call) -> the dict that `record_result` takes: o, final_state, kernel, path, ... `problem` is as `read` gives it, with
    the initial_state that the call starts from. `call` has the name of the call, and path, chunk_size and flush_every, which are
    not None where the call asks for one.
    keep(problem, result, tokens) -> the state that the next call starts from, after the first tokens[s] tokens of sequence s: what
    your cache, your rollback or your fold over ranks gives. None: final_state, and where tokens were not accepted that of fn on
    the accepted ones. to: "torch" or "numpy", as for `read`.
    apart: whether each call is made by a process of its own, which begins with nothing that this one holds. None: for `repeat`.
    fn must then be a function of a module, or a functools.partial of one; keep is called here.
    Throws: ValueError where the folder is no such set, or fn cannot be handed to another process.
    """
    folder = os.fspath(folder)
    manifest = _manifest(os.path.join(folder, "manifest.json"))
    if manifest["invariant"] == "repeat" if apart is None else apart:
        _require_portable(fn)
        run = _elsewhere
    else:
        run = _called
    done, names = {}, []
    for call in manifest["calls"]:
        path = os.path.join(folder, call["problem"])
        if call["state"] is not None:
            problem = read(os.path.join(folder, call["tokens"]), to)
            before, left = done[call["state"]["after"]]
            tokens = call["state"]["kept"]
            problem["initial_state"] = keep(before, left, tokens) if keep else _kept(fn, before, left, tokens, call)
            if problem["initial_state"] is None:  # of keep: _kept refuses it
                raise ValueError(f"record_set: keep returned None for call {call['name']}; return the state that your server restores")
            _write(path, _file(problem_words(problem), _bits(problem, PROBLEM_TENSORS + COTANGENTS)))
        names.append(os.path.join(folder, call["result"]))
        made = run(fn, path, names[-1], call, to)
        if any((later["state"] or {}).get("after") == call["name"] for later in manifest["calls"]):
            done[call["name"]] = made
    return tuple(names)


def _manifest(path):
    try:
        with open(path, encoding="utf-8") as given:
            manifest = json.load(given)
    except FileNotFoundError:
        folder = os.path.dirname(path)
        says = f"{folder} has no manifest.json; write it with deltaproof gen --for KIND --dir {folder}"
        raise ValueError(f"record_set: {says}") from None
    except OSError as wrong:
        raise ValueError(f"record_set: {path}: {wrong.strerror}") from None
    except ValueError as wrong:
        raise ValueError(
            f"record_set: {path} is not valid JSON ({wrong}); make the folder again with deltaproof gen --for KIND --dir DIR"
        ) from None
    if not isinstance(manifest, dict) or "calls" not in manifest or "invariant" not in manifest:
        raise ValueError(f"record_set: {path} lists no calls; make the folder again with deltaproof gen --for KIND --dir DIR")
    return manifest


def _called(fn, path, out, call, to):
    """One call, recorded; returns its problem and result."""
    problem = read(path, to)
    result = fn(dict(problem), call)
    if not hasattr(result, "keys"):
        raise ValueError(f"record_set: fn gave {type(result).__name__} for {call['name']}; return a dict with o, kernel, path, ...")
    result = dict(result)
    if call["flush_every"] is not None:
        result.setdefault("flush_every", call["flush_every"])
    record_result(path, result, out=out)
    return problem, result


def _elsewhere(fn, path, out, call, to):
    """As _called, in a new process."""
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        process.submit(_only_recorded, fn, path, out, call, to).result()
    return read(path, to), read(out, to)


def _only_recorded(*of_call):
    _called(*of_call)


def _require_portable(fn):
    try:
        pickle.dumps(fn)
    except (pickle.PicklingError, AttributeError, TypeError) as wrong:
        raise ValueError(
            f"record_set: each call runs in a process of its own, and fn cannot be sent to one ({wrong}); define fn at the top "
            "of a module, or give apart=False: all calls then run in this process, and what one leaves behind for the next is not noticed"
        ) from None


def _kept(fn, problem, result, tokens, call):
    """The state after the first tokens[s] tokens of each sequence of a call."""
    before = call["state"]["after"]

    def state_of(result, of):
        if result.get("final_state") is None:
            raise ValueError(
                f"record_set: fn returned no final_state for {of}, from which call {call['name']} goes on; return it, or give keep="
            )
        state = result["final_state"]
        return state.swapaxes(-1, -2) if result.get("state_layout") == "vk" else state

    offsets = problem.get("cu_seqlens")
    lengths = [problem["q"].shape[1]] * problem["q"].shape[0]
    if offsets is not None:
        lengths = [int(b) - int(a) for a, b in zip(offsets[:-1], offsets[1:])]
    if list(tokens) == lengths:
        return state_of(result, f"call {before}")
    if len(set(tokens)) > 1 or offsets is not None:
        raise ValueError(
            f"record_set: call {call['name']} starts inside sequences that are packed, or that keep different numbers of tokens; "
            "give keep=, which returns the state that your cache restores"
        )
    n = problem.get("num_householder") or 1
    steps = {"q": 1, "g": 1, "k": n, "v": n, "beta": n}
    first = {name: x[:, : tokens[0] * steps[name]] if name in steps else x for name, x in problem.items()}
    return state_of(fn(first, {**call, "name": before}), f"the accepted tokens of call {before}")


def read(path, to=None, gate="log"):
    """What a problem or result file holds, as `record` takes it: words as numbers where they are such, tensors on the CPU.

    to: "torch" or "numpy"; None: torch where it is installed. gate: the unit of g: "log" as the file has it, "log2" or "decay",
    computed in fp64 and rounded once to fp32 (of an fp64 gate: stays fp64).
    """
    if to is None:
        to = "torch" if importlib.util.find_spec("torch") else "numpy"
    with open(path, "rb") as given:
        image = given.read()
    try:
        header, data = _opened(image)
    except (ValueError, struct.error):
        raise ValueError(f"read: {os.fspath(path)} is not a safetensors file") from None
    known = PROBLEM_WORDS + RESULT_WORDS + STATE_WORDS + ("pass",)
    found = {name: value for name, value in header.pop("__metadata__", {}).items() if name in known}
    kinds = {"scale": float, "l2norm_eps": float, "gate_lower_bound": float, "num_householder": int, "chunk_size": int, "flush_every": int, "qk_l2norm": lambda word: word == "true"}
    found = {("pass_" if name == "pass" else name): kinds.get(name, str)(value) for name, value in found.items()}
    for name, of in header.items():
        begin, end = of["data_offsets"]
        one = (of["dtype"], tuple(of["shape"]), data[begin:end])
        if name == "g" and _unit(gate) != "log":
            require_log(found, gate)
            one = in_unit(one, "log", gate, narrow=one[0] != "F64")
        found[name] = _as_torch(*one) if to == "torch" else _as_numpy(name, *one)
    return found


def _unit(gate):
    if gate not in GATES:
        raise ValueError(f"gate={gate!r}; the units are {', '.join(GATES)}")
    return gate


def require_log(words, gate):
    """words: of a problem. A raw gate is what the kernel makes the log decay of: it has no other unit."""
    activation = words.get("gate_activation") or "none"
    if activation != "none":
        raise ValueError(f"gate={gate!r}: g is the raw gate of gate_activation {activation}; give it to the kernel as it is, with gate='log'")


def in_unit(one, was, to, narrow=False):
    """A gate in another unit, in fp64, or rounded once to fp32."""
    dtype, shape, data = one
    if _unit(was) == _unit(to):
        return one
    to_log = {"log": float, "log2": lambda x: x * math.log(2), "decay": lambda x: math.log(x) if x else -math.inf}[was]
    of_log = {"log": float, "log2": lambda x: x / math.log(2), "decay": math.exp}[to]
    if (was, to) == ("decay", "log2"):  # in one step
        to_log, of_log = (lambda x: math.log2(x) if x else -math.inf), float
    values = [of_log(to_log(x)) for x in _floats(dtype, shape, data)]
    return "F32" if narrow else "F64", shape, array.array("f" if narrow else "d", values).tobytes()


def _floats(dtype, shape, data):
    """The numbers of a tensor, as Python's."""
    if dtype == "BF16":
        dtype, data = "F32", array.array("I", [x << 16 for x in array.array("H", data)]).tobytes()
    return struct.unpack(f"<{_count(shape)}{ {'F16': 'e', 'F32': 'f', 'F64': 'd'}[dtype] }", data)


def _count(shape):
    return math.prod(shape)


def _opened(image):
    start = 8 + struct.unpack("<Q", image[:8])[0]
    return json.loads(image[8:start]), image[start:]


def _tensor_of(image, name):
    header, data = _opened(image)
    begin, end = header[name]["data_offsets"]
    return header[name]["dtype"], tuple(header[name]["shape"]), data[begin:end]


def _as_torch(dtype, shape, data):
    import torch

    one = torch.empty(shape, dtype={text: kind for kind, text in _dtypes(torch).items()}[dtype])
    if data:
        ctypes.memmove(one.data_ptr(), data, len(data))
    return one


def _as_numpy(name, dtype, shape, data):
    import numpy

    kind = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "I64": "<i8"}.get(dtype)
    if kind is None:
        try:
            import ml_dtypes
        except ImportError:
            raise ValueError(f"{name}: numpy alone has no {dtype}; pip install ml_dtypes, or take an fp32 problem") from None
        kind = {"BF16": ml_dtypes.bfloat16, "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2}[dtype]
    return numpy.frombuffer(bytearray(data), dtype=kind).reshape(shape)


def environment():
    """What a recording's `producer` should name: versions, card, driver, and whether torch's fp32 products are tf32."""
    parts = []
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            parts.append(f"{name} {importlib.metadata.version(name)}")
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        parts += [torch.cuda.get_device_name(), f"CUDA {torch.version.cuda}"]
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            ask = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
            parts.append("driver " + subprocess.run(ask, capture_output=True, text=True, check=True).stdout.split()[0])
        parts.append(f"allow_tf32 {torch.backends.cuda.matmul.allow_tf32}")
    else:
        parts.append(f"no GPU, {platform.machine()}")
    return ", ".join(parts)


@contextlib.contextmanager
def taps(call_sites=None, prefix="fla"):
    """Inside, every module of fla that uses one of `call_sites` has it wrapped; yields the dict that fills with stages.

    Import the kernels first. Only the forward pass belongs inside, for the backward pass calls the same functions; with
    BACKWARD_SITES the call of backward() belongs inside.
    """
    stages = {}
    undo = []

    def wrapped(function, names):
        @functools.wraps(function)
        def recording(*args, **kwargs):
            out = function(*args, **kwargs)
            if names == ("g_cumsum_log2",) and abs((kwargs.get("scale") or 0) - 1 / math.log(2)) > 1e-6:
                return out
            for name, one in zip(names, out if isinstance(out, (tuple, list)) else (out,)):
                if name is not None and one is not None:
                    v_first = name in ("h", "dh") and (kwargs.get("state_v_first") or kwargs.get("transpose_state_layout"))
                    one = one.transpose(-1, -2) if v_first else one  # files have states as (K, V) always
                    stages[name] = one.detach().clone()  # a later kernel may write over it
            return out

        return recording

    sites = CALL_SITES if call_sites is None else call_sites
    modules = [
        module
        for module in list(sys.modules.values())
        if isinstance(name := getattr(module, "__name__", ""), str) and (name == prefix or name.startswith(prefix + "."))
    ]
    # A module may have imported a call site under another name: what counts is the function.
    named = {}
    for module in modules:
        named.update({id(f): s for s in sites if callable(f := vars(module).get(s))})
    for module in modules:
        for name, function in list(vars(module).items()):
            if id(function) in named:
                undo.append((module, name, function))
                setattr(module, name, wrapped(function, sites[named[id(function)]]))
    if not undo:
        raise ValueError(
            f"taps: no imported module of {prefix} has any of the functions {', '.join(sites)}; "
            "import the kernel before you enter taps()"
        )
    try:
        yield stages
    finally:
        for module, name, function in undo:
            setattr(module, name, function)


def problem_words(problem):
    """The metadata of a problem file, in the order of the format."""
    _known(problem, "problem", PROBLEM_TENSORS + COTANGENTS + PROBLEM_WORDS)
    if not problem.get("op"):
        raise ValueError(
            "problem: op is absent; name the recurrence, one of delta_rule, gated_delta_rule, kda, gated_delta_product"
        )
    words = {"format": "deltaproof.problem/1", "op": problem["op"]}
    words["scale"] = _number(problem, "scale")
    words["qk_l2norm"] = "true" if problem.get("qk_l2norm") else "false"
    epsilon = _number(problem, "l2norm_eps")
    words["l2norm_eps"] = None if epsilon == decimal(1e-6) else epsilon
    activation = problem.get("gate_activation")
    words["gate_activation"] = None if activation in (None, "none") else activation
    words["gate_lower_bound"] = _number(problem, "gate_lower_bound")
    words["rule"] = problem.get("rule") or "euler"
    words["beta_activation"] = problem.get("beta_activation") or "none"
    words["num_householder"] = problem.get("num_householder") or 1
    words["note"] = problem.get("note") or None
    return _words(words)


def _number(problem, name):
    given = problem.get(name)
    try:
        return None if given is None else decimal(float(given))
    except (TypeError, ValueError):
        raise ValueError(f"problem: {name} is {given!r}; give a number") from None


def result_words(result):
    """The metadata of a result file, in the order of the format. A chunk_size without a path is a chunk kernel's."""
    _known(result, "result", RESULT_FILE + RESULT_WORDS + STATE_WORDS + ("pass_", "stages", "gradients"))
    words = {"format": "deltaproof.result/1", "pass": result.get("pass_")}
    words.update({name: result.get(name) for name in RESULT_WORDS})
    words["path"] = words["path"] or ("chunk" if words["chunk_size"] else None)
    words["state_layout"] = words["state_layout"] or "kv"
    words.update({name: result.get(name) for name in STATE_WORDS})
    return _words(words)


def decimal(x):
    """The shortest decimal that reads back as the same fp64."""
    text = repr(x)
    return text[:-2] if text.endswith(".0") else text


def _bits(given, names):
    """Name, dtype, shape and bytes of each tensor that is given, in the order of `names`."""
    return [(name, *_one(given[name], name)) for name in names if given.get(name) is not None]


def _one(x, name):
    """dtype, shape and bytes of one tensor, whose ever it is."""
    if isinstance(x, (list, tuple, range)):
        if name != "cu_seqlens":
            raise ValueError(f"{name}: a {type(x).__name__} is taken for cu_seqlens alone; give a tensor")
        return "I64", (len(x),), struct.pack(f"<{len(x)}q", *map(int, x))
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        x = x.detach().cpu().contiguous()
        x = x.to(torch.int64) if x.dtype == torch.int32 else x
        dtype, shape = _dtypes(torch).get(x.dtype), tuple(x.shape)
        data = ctypes.string_at(x.data_ptr(), x.numel() * x.element_size()) if x.numel() else b""
    elif hasattr(x, "tobytes") and hasattr(x, "nbytes") and str(x.dtype) in NAMES.values():  # a deltaproof.tensor
        dtype, shape, data = str(x.dtype), tuple(x.shape), x.tobytes()
    else:
        dtype, shape, data = _one_of_numpy(x, name)
    if dtype is None:
        if not hasattr(x, "dtype"):
            raise ValueError(f"{name}: a {type(x).__name__} is not a tensor; give a tensor of torch, numpy, JAX or MLX")
        if name == "cu_seqlens":
            raise ValueError(f"{name}: its dtype is {x.dtype}; pass int64, int32 or a list of ints")
        raise ValueError(
            f"{name}: {x.dtype} is not a number format of the exchange files; use bfloat16, float16, float32 or float64"
        )
    return dtype, shape, data


def reads(x):
    """Whether `record` takes `x` by itself, without DLPack: a tensor of torch, or an array of numpy, JAX or MLX."""
    return type(x).__module__.split(".")[0] in ("torch", "numpy", "jaxlib", "jax", "mlx") or isinstance(x, (list, range))


def _one_of_numpy(x, name):
    """An array of numpy, or of a library that hands its arrays out to numpy (JAX, MLX)."""
    try:
        import numpy
    except ImportError:
        raise ValueError(f"{name}: {type(x).__name__} is not a torch tensor, and numpy is not installed to read it") from None
    if type(x).__module__.startswith("mlx") and str(x.dtype).endswith("bfloat16"):  # numpy would not take it
        mlx = sys.modules["mlx.core"]
        bits = numpy.array(x.view(mlx.uint16))
        return "BF16", tuple(x.shape), bits.tobytes()
    x = numpy.ascontiguousarray(x)
    if x.dtype.byteorder == ">":
        x = x.astype(x.dtype.newbyteorder("="))
    if x.dtype.name == "int32":
        x = x.astype("int64")
    return NAMES.get(x.dtype.name), tuple(x.shape), x.tobytes()


def _known(given, what, names):
    for name in given:
        if name not in names:
            near = difflib.get_close_matches(str(name), names, 1)
            meant = f" (did you mean {near[0]!r}?)" if near else ""
            raise ValueError(f"{what}: {name!r} is unknown{meant}; the names are {', '.join(names)}")


def _words(words):
    return [(name, str(value)) for name, value in words.items() if value is not None and value != ""]


def _dtypes(torch):
    return {getattr(torch, name): text for name, text in NAMES.items() if hasattr(torch, name)}


def _file(words, tensors):
    """The bytes of a safetensors file: 8 bytes of header length, a JSON header padded to a multiple of 8, the data."""
    header = {"__metadata__": dict(words)}
    at = 0
    for name, dtype, shape, data in tensors:
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([struct.pack("<Q", len(text)), text] + [data for *_, data in tensors])


def _write(path, data):
    # A name of its own: two recorders may have one process id, in two containers.
    partial = f"{path}.{os.getpid()}-{secrets.token_hex(4)}.partial"
    try:
        with open(partial, "xb") as out:
            out.write(data)
        os.replace(partial, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise
