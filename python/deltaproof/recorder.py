# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""Records what a kernel was given and what came out, on the machine where it runs. Needs torch and nothing else: copy this one
file there. `record` writes two safetensors files in the exchange format; `deltaproof check` judges them anywhere.

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
    record("case1", "case1.problem.safetensors", dict(o=o, final_state=ht, kernel=..., producer=environment()))

The backward pass: `do` and, where the kernel was given it, `dfinal_state` belong to the problem; dq, dk, dv, dbeta, dg and
dinitial_state to the result, which then says pass_="backward" or "both" and whose stages are those of `taps(BACKWARD_SITES)`
around the call of backward(). `check` notes them and judges the forward tensors beside them.

Tensors may be on any device, strided, and may require grad: they are detached, moved and written bit for bit. Shapes: q
[B,T,H,K], k [B,T*n,H,K], v [B,T*n,HV,V], beta [B,T*n,HV], g [B,T,HV] or [B,T,HV,K] (natural logarithm of the decay, as
given to the kernel, not its cumulative sum), initial_state [N,HV,K,V], cu_seqlens [N+1]; o [B,T,HV,V], final_state
[N,HV,K,V] (state_layout="vk": [N,HV,V,K]).
"""

import contextlib
import ctypes
import functools
import hashlib
import importlib.metadata
import json
import math
import os
import platform
import secrets
import struct
import subprocess
import sys

PROBLEM_TENSORS = ("q", "k", "v", "beta", "initial_state", "g", "cu_seqlens")
COTANGENTS = ("do", "dfinal_state")
PROBLEM_WORDS = ("op", "scale", "qk_l2norm", "rule", "beta_activation", "num_householder", "note")
STAGES = ("g_cumsum_log2", "A", "Ai", "w", "u", "h", "v_new", "Aqk")
RESULT_TENSORS = ("o", "final_state") + STAGES
GRADIENTS = ("dq", "dk", "dv", "dbeta", "dg", "dinitial_state")
BACKWARD_STAGES = ("dv_local", "dh", "dv2", "dw", "dg_local", "dAqk", "dAkk", "dq_hat", "dk_hat")
RESULT_WORDS = ("kernel", "path", "chunk_size", "state_layout", "problem_sha256", "producer")

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
    GRADIENTS, BACKWARD_STAGES and RESULT_WORDS. A problem that is a file already is named by its path, and is not written again.
    """
    path = os.fspath(path)
    if os.path.dirname(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
    if isinstance(problem, (str, os.PathLike)):
        names = [os.fspath(problem)]
        with open(names[0], "rb") as given:
            image = given.read()
    else:
        names = [f"{path}.problem.safetensors"]
        image = _file(problem_words(problem), _bits(problem, PROBLEM_TENSORS + COTANGENTS))
        _write(names[0], image)
    if result is not None:
        result = {**result, **result.get("stages", {}), **result.get("gradients", {})}
        result["problem_sha256"] = hashlib.sha256(image).hexdigest()
        names.append(f"{path}.result.safetensors")
        _write(names[1], _file(result_words(result), _bits(result, RESULT_TENSORS + GRADIENTS + BACKWARD_STAGES)))
    return tuple(names)


def read(path):
    """What a problem or result file holds, as `record` takes it: tensors on the CPU, words as numbers where they are such."""
    import torch

    with open(path, "rb") as given:
        data = given.read()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:start])
    known = PROBLEM_WORDS + RESULT_WORDS + ("pass",)
    found = {name: value for name, value in header.pop("__metadata__", {}).items() if name in known}
    kinds = {"scale": float, "num_householder": int, "chunk_size": int, "qk_l2norm": lambda word: word == "true"}
    found = {("pass_" if name == "pass" else name): kinds.get(name, str)(value) for name, value in found.items()}
    dtypes = {text: dtype for dtype, text in _dtypes(torch).items()}
    for name, of in header.items():
        begin, end = of["data_offsets"]
        one = torch.empty(of["shape"], dtype=dtypes[of["dtype"]])
        if end > begin:
            ctypes.memmove(one.data_ptr(), data[start + begin : start + end], end - begin)
        found[name] = one
    return found


def environment():
    """What a recording's `producer` should name: versions, card, driver, and whether torch's fp32 products are tf32."""
    import torch

    parts = []
    for name in ("torch", "triton", "fla-core", "flash-linear-attention", "tilelang"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            parts.append(f"{name} {importlib.metadata.version(name)}")
    if torch.cuda.is_available():
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
        raise ValueError(f"taps: no loaded module of {prefix} has any of {', '.join(sites)}; import the kernel before")
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
    if problem.get("scale") is not None:
        words["scale"] = decimal(float(problem["scale"]))
    words["qk_l2norm"] = "true" if problem.get("qk_l2norm") else "false"
    words["rule"] = problem.get("rule") or "euler"
    words["beta_activation"] = problem.get("beta_activation") or "none"
    words["num_householder"] = problem.get("num_householder") or 1
    words["note"] = problem.get("note") or None
    return _words(words)


def result_words(result):
    """The metadata of a result file, in the order of the format. A chunk_size without a path is a chunk kernel's."""
    _known(result, "result", RESULT_TENSORS + GRADIENTS + BACKWARD_STAGES + RESULT_WORDS + ("pass_", "stages", "gradients"))
    words = {"format": "deltaproof.result/1", "pass": result.get("pass_")}
    words.update({name: result.get(name) for name in RESULT_WORDS})
    words["path"] = words["path"] or ("chunk" if words["chunk_size"] else None)
    words["state_layout"] = words["state_layout"] or "kv"
    return _words(words)


def decimal(x):
    """The shortest decimal that reads back as the same fp64."""
    text = repr(x)
    return text[:-2] if text.endswith(".0") else text


def _bits(given, names):
    """Name, dtype, shape and bytes of each tensor that is given, in the order of `names`."""
    import torch

    found = []
    for name in (name for name in names if given.get(name) is not None):
        x = given[name]
        x = x if isinstance(x, torch.Tensor) else torch.tensor(x, dtype=torch.int64)
        x = x.detach().cpu().contiguous()
        x = x.to(torch.int64) if x.dtype == torch.int32 else x
        dtype = _dtypes(torch).get(x.dtype)
        if dtype is None:
            raise ValueError(
                f"{name}: {x.dtype} is no number format of the exchange files; use bfloat16, float16, float32 or float64"
            )
        data = ctypes.string_at(x.data_ptr(), x.numel() * x.element_size()) if x.numel() else b""
        found.append((name, dtype, tuple(x.shape), data))
    return found


def _known(given, what, names):
    for name in given:
        if name not in names:
            raise ValueError(f"{what}: {name!r} is unknown; the names are {', '.join(names)}")


def _words(words):
    return [(name, str(value)) for name, value in words.items() if value is not None and value != ""]


def _dtypes(torch):
    found = {
        torch.bfloat16: "BF16",
        torch.float16: "F16",
        torch.float32: "F32",
        torch.float64: "F64",
        torch.int64: "I64",
    }
    for name, dtype in (("float8_e4m3fn", "F8_E4M3"), ("float8_e5m2", "F8_E5M2")):
        if hasattr(torch, name):
            found[getattr(torch, name)] = dtype
    return found


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
