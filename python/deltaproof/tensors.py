# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""Takes the tensors of other libraries: anything with DLPack or the buffer protocol, as it lies in the CPU's memory. What cannot
be taken is refused with the call that helps; nothing is moved, converted or detached unasked."""

from __future__ import annotations

import sys
from typing import Any

from . import _core, recorder
from ._core import format_error, tensor

# Formats that DLPack or numpy hide: taken by their bits.
_BY_BITS = {"bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2"}
_TAKEN = (*_BY_BITS, "float16", "float32", "float64", "int32", "int64")


def take(x: Any, name: str) -> tensor:
    """A tensor of the library over the memory of `x`: shared where that is contiguous, gathered once where it is strided."""
    if isinstance(x, tensor):
        return x
    kind = f"{type(x).__module__}.{type(x).__qualname__}"
    if getattr(x, "is_sparse", False) is True:
        raise format_error(f"{name}: a sparse tensor; pass {name}.to_dense()")
    if getattr(x, "is_quantized", False) is True:
        raise format_error(f"{name}: a quantized tensor; pass {name}.dequantize()")
    device = getattr(x, "device", None)
    if getattr(device, "type", None) == "meta":
        raise format_error(
            f"{name}: a tensor on the meta device has no values; run the kernel on a device that computes"
        )
    if getattr(x, "requires_grad", False) is True:
        raise format_error(f"{name}: requires grad; pass {name}.detach()")
    if getattr(device, "type", "cpu") not in ("cpu", None) and not isinstance(device, str):
        raise format_error(f"{name}: lies on {device}; deltaproof reads the CPU's memory, pass {name}.cpu()")
    dtype = str(getattr(x, "dtype", "")).rpartition(".")[2]
    if kind == "numpy.ndarray":
        if dtype in _BY_BITS:  # of ml_dtypes, unknown to the buffer protocol
            return _core.from_buffer(x.view("uint16" if dtype == "bfloat16" else "uint8"), name, _BY_BITS[dtype])
        if x.dtype.byteorder == ">":
            raise format_error(
                f"{name}: its numbers are big-endian; pass {name}.astype({name}.dtype.newbyteorder('='))"
            )
        try:
            return _core.from_buffer(x, name)
        except (ValueError, BufferError) as e:
            raise (
                e if isinstance(e, _core.error) else format_error(f"{name}: numpy does not hand this array out: {e}")
            ) from None
    if hasattr(x, "__dlpack__"):
        if hasattr(x, "__dlpack_device__"):
            where = int(x.__dlpack_device__()[0])
            if where not in (1, 3):
                raise format_error(
                    f"{name}: lies in the memory of a GPU or another device (DLPack device type {where}); "
                    f"pass a copy in the CPU's memory, for example numpy.asarray({name}) of JAX or {name}.get() of CuPy"
                )
        torch = sys.modules.get("torch")
        if dtype in _BY_BITS and dtype != "bfloat16" and torch is not None and isinstance(x, torch.Tensor):
            return _core.from_dlpack(x.view(torch.uint8).__dlpack__(), name, _BY_BITS[dtype])
        if getattr(x, "is_conj", bool)() or getattr(x, "is_neg", bool)():
            x = x.resolve_neg().resolve_conj()
        if dtype and dtype not in _TAKEN:
            raise format_error(
                f"{name}: {dtype} is not a number format of the exchange files; "
                "use bfloat16, float16, float32 or float64 (offsets: int64)"
            )
        try:
            return _core.from_dlpack(x.__dlpack__(), name)
        except _core.error:
            raise
        except Exception as e:  # noqa: BLE001 - each library has its own
            raise format_error(f"{name}: {kind} of dtype {dtype} does not hand itself out through DLPack: {e}") from e
    raise format_error(f"{name}: {kind} is not a tensor; give a torch tensor, a numpy array, or anything else with DLPack")


def _said(x: Any, name: str) -> str:
    """What the caller calls the dtype of `x`: int32, not I64, which it would become."""
    return str(getattr(x, "dtype", "")).rpartition(".")[2] or name


def floating(x: Any, name: str) -> tensor:
    """Numbers of a floating-point format."""
    out = take(x, name)
    if out.dtype == "I64":
        raise format_error(
            f"{name}: its dtype is {_said(x, 'int64')}, but floating-point numbers are needed; pass {name} as your kernel had it, "
            "in bfloat16, float16, float32 or float64"
        )
    return out


def offsets(x: Any, name: str) -> tensor:
    """Integers as int64: a tensor of int32 or int64, or any sequence of ints."""
    if isinstance(x, (list, tuple, range)):
        return _core.from_integers([int(i) for i in x], name)
    out = take(x, name)
    if out.dtype != "I64":
        raise format_error(
            f"{name}: its dtype is {_said(x, out.dtype)}, but offsets are integers; pass int64, int32 or a list of ints"
        )
    return out


def as_torch(t: Any) -> Any:
    """The same bits as a torch tensor of its own memory."""
    import torch

    if isinstance(t, torch.Tensor):
        return t
    t = take(t, getattr(t, "name", None) or "tensor")
    by_bits = {"F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2"}.get(t.dtype)
    if by_bits is not None:
        return (
            torch.frombuffer(bytearray(t.tobytes()), dtype=torch.uint8).view(getattr(torch, by_bits)).reshape(t.shape)
        )
    return torch.from_dlpack(t)


def as_numpy(t: Any) -> Any:
    """The same bits as a numpy array of its own memory; bf16 and fp8 as ml_dtypes has them."""
    import numpy

    t = take(t, getattr(t, "name", None) or "tensor")
    dtype: Any = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "I64": "<i8"}.get(t.dtype)
    if dtype is None:
        try:
            import ml_dtypes
        except ImportError:
            raise format_error(
                f"{t.name}: numpy alone has no {t.dtype}; pip install ml_dtypes, use torch, or take a problem in fp16, fp32 or fp64"
            ) from None
        dtype = {name: getattr(ml_dtypes, kind) for kind, name in _BY_BITS.items()}[t.dtype]
    return numpy.frombuffer(bytearray(t.tobytes()), dtype=dtype).reshape(t.shape)


def poisoned() -> Any:
    """While it is entered, memory that torch code asks for without values (torch.empty and its kin) holds NaN."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    names = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted")
    bare = {getattr(torch.ops.aten, name) for name in names if hasattr(torch.ops.aten, name)}

    class Poison(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = func(*args, **(kwargs or {}))
            return out.fill_(float("nan")) if func.overloadpacket in bare and out.is_floating_point() else out

    return Poison()


def unit_of_gate(g: Any, gate: str) -> tensor:
    """A gate in log2 units or as a decay, computed in fp64 and rounded once to fp32; an fp64 gate stays fp64."""
    t = take(g, "g")
    given = (t.dtype, tuple(t.shape), t.tobytes())
    dtype, shape, data = recorder.in_unit(given, "log", gate, narrow=t.dtype != "F64")
    numbers = memoryview(data).cast("B").cast({"F32": "f", "F64": "d"}[dtype], shape)
    return _core.from_buffer(numbers, "g")


def as_jax(t: Any) -> Any:
    """The same bits as a JAX array on its default device. Offsets may become int32, numbers may not be narrowed."""
    import jax.numpy

    if isinstance(t, jax.Array):
        return t
    x = as_numpy(t)
    if x.dtype.name == "float64" and jax.numpy.zeros(0, x.dtype).dtype != x.dtype:
        raise format_error(
            f"{getattr(t, 'name', 'tensor')}: JAX would narrow float64; call jax.config.update('jax_enable_x64', True) first"
        )
    return jax.numpy.asarray(x, dtype="int32" if x.dtype.name == "int64" else None)


def as_mlx(t: Any) -> Any:
    """The same bits as an MLX array."""
    import mlx.core

    x = as_numpy(t)
    if x.dtype.name == "bfloat16":
        return mlx.core.array(x.view("uint16")).view(mlx.core.bfloat16)
    return mlx.core.array(x, dtype=getattr(mlx.core, x.dtype.name))


_LIBRARIES = {"torch": as_torch, "numpy": as_numpy, "jax": as_jax, "mlx": as_mlx}


def converted(t: Any, to: str | None) -> Any:
    """`to`: torch, numpy, jax, mlx, or None for what it is."""
    if to is None or t is None:
        return t
    if to not in _LIBRARIES:
        raise format_error(f"to={to!r}; use one of {', '.join(map(repr, _LIBRARIES))}, or None")
    try:
        return _LIBRARIES[to](t)
    except ModuleNotFoundError as e:
        default = " (the default of cases)" if to == "torch" else ""
        others = ", ".join(repr(one) for one in _LIBRARIES if one != to)
        raise ModuleNotFoundError(
            f"to={to!r}{default} needs {e.name}, which is not installed; install it, or give to={others} or None", name=e.name
        ) from None
