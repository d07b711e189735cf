# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""Triton kernels without a GPU: Triton's own CPU interpreter, completed. Import it before the kernels.
Needs Triton 3.6, numpy < 2.3 and ml_dtypes.

What compiled code has and the interpreter has not, and is added here:
  a loop index that is a tensor (`i_t.to(tl.int64)`), and a driver to time autotuning with: the first configuration is taken;
  bf16 numbers: the interpreter adds and multiplies their bits as integers, and truncates fp32 to bf16. Here they are ml_dtypes'
    bfloat16, each operation rounded to nearest even; products of tl.dot are exact and summed in fp32;
  fp32 operands of tl.dot in tf32 (STAND_IN_TF32 = rz, rna or ieee; default rz) and bf16x3;
  a sum of 16-bit operands in their own format: eight in sequence, then a butterfly, each addition rounded.
A library's own switches see an H100. The order of sums within tl.dot is that of the CPU's matrix product, exp2 is numpy's.
"""

import builtins
import os
from types import SimpleNamespace

os.environ["TRITON_INTERPRET"] = "1"
import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
import triton.language as tl  # noqa: E402
from triton.runtime import autotuner, interpreter  # noqa: E402
from triton.runtime.driver import driver  # noqa: E402

autotuner.Autotuner._bench = lambda self, *args, config, **kwargs: [0.0, 0.0, 0.0]
_depth = 0
_call = interpreter.GridExecutor.__call__
_range = builtins.range


def kernel_range(*bounds):
    """`range`; inside a kernel its numbers are the interpreter's tensors."""
    if not _depth:
        return _range(*bounds)
    plain = (getattr(b, "value", b) for b in bounds)
    plain = (b.handle.data.item() if hasattr(b, "handle") else b for b in plain)
    return map(interpreter._implicit_cvt, _range(*map(int, plain)))


def call(self, *args, **kwargs):
    global _depth
    _depth += 1
    self.fn.__globals__["range"] = kernel_range
    try:
        return _call(self, *args, **kwargs)
    finally:
        _depth -= 1


interpreter.GridExecutor.__call__ = call


# ---- bf16 ----
bf16 = np.dtype(ml_dtypes.bfloat16)
_np_dtype = interpreter._get_np_dtype
_load, _store = interpreter._interpreter.load, interpreter._interpreter.store


def np_dtype(t):
    element = t.element_ty if isinstance(t, tl.block_type) else t
    return bf16 if element == tl.bfloat16 else _np_dtype(t)


interpreter._get_np_dtype = np_dtype
Builder = interpreter.InterpreterBuilder


def masked_load(self, ptrs, mask, other, *_):
    element = ptrs.get_element_ty()
    dtype = np_dtype(element)
    raw = np.dtype(np.uint16) if dtype == bf16 else dtype
    other = np.zeros(ptrs.data.shape, dtype=dtype) if other is None else other.data
    out = _load(ptrs.data, mask.data, np.ascontiguousarray(other).view(raw) if dtype == bf16 else other, raw)
    return interpreter.TensorHandle(out.view(dtype), element)


def masked_store(self, ptrs, value, mask, *_):
    data = value.data
    return _store(ptrs.data, np.ascontiguousarray(data).view(np.uint16) if data.dtype == bf16 else data, mask.data)


def cast(self, src, dst):
    return interpreter.TensorHandle(src.data.astype(np_dtype(dst)), dst.scalar)


Builder.create_masked_load, Builder.create_masked_store, Builder.cast_impl = masked_load, masked_store, cast
Builder.create_fp_to_fp = lambda self, src, dst, mode: cast(self, src, dst)


# ---- tl.dot ----
def tf32(x):
    bits = np.ascontiguousarray(x).view(np.uint32)
    how = os.environ.get("STAND_IN_TF32", "rz")
    if how == "rna":
        bits = bits + np.uint32(0x1000)
    return x if how == "ieee" else np.where(np.isfinite(x), (bits & np.uint32(0xFFFFE000)).view(np.float32), x)


def dot(self, a, b, d, precision, _):
    x, y = a.data, b.data
    if x.dtype != np.float32:
        product = np.matmul(x.astype(np.float32), y.astype(np.float32))
    else:
        name = str(precision).split(".")[-1].upper()
        if name == "TF32":
            product = np.matmul(tf32(x), tf32(y))
        elif name == "BF16X3":
            xh, yh = x.astype(bf16).astype(np.float32), y.astype(bf16).astype(np.float32)
            xl, yl = (x - xh).astype(bf16).astype(np.float32), (y - yh).astype(bf16).astype(np.float32)
            product = np.matmul(xl, yh) + np.matmul(xh, yl) + np.matmul(xh, yh)
        elif name == "IEEE":
            product = np.matmul(x, y)
        else:
            raise NotImplementedError(name)
    return interpreter.TensorHandle((product + d.data).astype(d.data.dtype), d.dtype.scalar)


Builder.create_dot = dot
interpreter.interpreter_builder.options = interpreter.InterpreterOptions(
    allowed_dot_input_precisions=("tf32", "ieee", "bf16x3")
)


# ---- sums ----
def sum16(x, axis):
    """In x's own format along `axis` (None: all): eight in sequence, then a butterfly."""
    x = x.reshape(-1) if axis is None else np.moveaxis(x, axis, -1)
    if x.shape[-1] % 8 == 0 and x.shape[-1] > 8:
        x = x.reshape(*x.shape[:-1], -1, 8)
        part = x[..., 0]
        for i in range(1, 8):
            part = part + x[..., i]
        x = part
    while x.shape[-1] > 1:
        half = x.shape[-1] // 2
        x = x[..., :half] + x[..., half:]
    return x[..., 0]


def total(self, summed):
    data = summed.handle.data
    if data.dtype in (bf16, np.dtype(np.float16)):
        out = sum16(data, self.axis)
        return self.to_tensor(np.expand_dims(out, self.axis) if self.keep_dims else out, summed.dtype)
    return self.to_tensor(np.sum(data, axis=self.axis, keepdims=self.keep_dims), summed.dtype)


interpreter.ReduceOps.sum = total


# ---- the card that a library's switches see: tile sizes of an H100, tf32 where the card has it ----
driver.set_active(
    SimpleNamespace(
        get_current_target=lambda: SimpleNamespace(backend="cuda", arch=90, warp_size=32),
        utils=SimpleNamespace(get_device_properties=lambda _: {"max_shared_mem": 232448, "multiprocessor_count": 132}),
        get_current_device=lambda: 0,
    )
)
torch.cuda.get_device_name = lambda *_: "NVIDIA H100, pretended"
torch.cuda.get_device_capability = lambda *_: (9, 0)
torch.cuda.device_count = lambda: 1

import fla.ops.common.chunk_o as chunk_o  # noqa: E402
import fla.ops.kda.chunk_intra as chunk_intra  # noqa: E402

chunk_o.TRITON_ABOVE_3_7_1 = True  # fla refuses what older Triton compiles wrongly for Hopper; nothing is compiled here
chunk_intra.IS_GATHER_SUPPORTED = False  # the same rows, loaded where the interpreter cannot gather
