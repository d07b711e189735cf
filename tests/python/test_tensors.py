# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""How tensors come in: what is taken, bit for bit, and what is refused with the call that helps."""

import dataclasses
import math
import sys
from types import SimpleNamespace

import deltaproof
import numpy
import pytest
import torch
from deltaproof.exchange import problem_file
from deltaproof.tensors import as_numpy, as_torch, take


def test_contiguous_memory_is_shared_and_strided_is_gathered():
    x = torch.randn(3, 5, 7).bfloat16()
    assert take(x, "x").address == x.data_ptr()
    for y in (x.transpose(0, 2), x[:, ::2], x[1:, :, 3], x.expand(2, 3, 5, 7), x[..., 1:1]):
        t = take(y, "y")
        assert t.shape == tuple(y.shape)
        assert t == take(y.contiguous(), "y")
    assert take(x[1], "row").address == x[1].data_ptr()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_torch_keeps_every_bit_both_ways(dtype):
    values = [0.0, -0.0, 1.0, -1.5, math.inf, -math.inf, math.nan, 1e-40, 3e-8]
    x = torch.tensor(values, dtype=torch.float64).to(dtype)
    back = as_torch(take(x, "x"))
    assert back.dtype == dtype
    assert take(back, "x") == take(x, "x")
    assert math.copysign(1, back[1].item()) == -1


def test_what_torch_gets_is_its_own():
    t = take(torch.zeros(4), "x")
    y = torch.from_dlpack(t)
    y += 1
    assert take(torch.zeros(4), "x") == t


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64"])
def test_numpy_of_any_stride_and_read_only(dtype):
    x = numpy.arange(24).astype(dtype).reshape(2, 3, 4)
    x.flags.writeable = False
    assert take(x, "x").address == x.ctypes.data
    assert take(x[:, ::-1].T, "x") == take(numpy.ascontiguousarray(x[:, ::-1].T), "x")
    assert (as_numpy(take(x, "x")) == x).all()
    with pytest.raises(deltaproof.format_error, match="big-endian"):
        take(x.astype(x.dtype.newbyteorder(">")), "x")


def test_a_problem_of_numpy_arrays_is_the_problem_of_torch_tensors():
    case = next(deltaproof.cases("delta_rule", "typical", T=8, K=4, V=4, dtype="fp32"))
    assert problem_file(case.problem.numpy()).sha256 == problem_file(case.problem).sha256
    with pytest.raises(deltaproof.format_error, match="numpy alone has no BF16"):
        problem_file(next(deltaproof.cases("delta_rule", "typical", T=8, K=4, V=4, to="numpy")))


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        (lambda x: x.to(torch.int8), deltaproof.format_error, "k: int8 is not a .*bfloat16, float16, float32 or float64"),
        (lambda x: x.to(torch.complex64), deltaproof.format_error, "k: complex64 is not a .*bfloat16"),
        (lambda x: x.float(), deltaproof.format_error, "problem: .*k"),
        (lambda x: x[:, 1:], deltaproof.shape_error, "problem: .*k"),
        (lambda x: x[0], deltaproof.shape_error, "problem: .*k"),
        (lambda x: x.to("meta"), deltaproof.format_error, "k: .*meta device has no values"),
        (lambda x: x.clone().requires_grad_(), deltaproof.format_error, r"k: requires grad; pass k.detach\(\)"),
        (lambda x: x.to_sparse(), deltaproof.format_error, r"k: a sparse tensor; pass k.to_dense\(\)"),
        (lambda x: x * math.nan, deltaproof.domain_error, "problem: .*k"),
        (lambda x: x.tolist(), deltaproof.format_error, "k: builtins.list is not a tensor"),
        (
            lambda x: SimpleNamespace(device=torch.device("cuda:1"), dtype=torch.bfloat16),
            deltaproof.format_error,
            r"k: lies on cuda:1; .*pass k.cpu\(\)",
        ),
        (
            lambda x: SimpleNamespace(__dlpack__=None, __dlpack_device__=lambda: (2, 0)),
            deltaproof.format_error,
            r"k: .*\(DLPack device type 2\); pass a copy in the CPU's memory.* k.get\(\) of CuPy",
        ),
        (lambda x: None, deltaproof.format_error, "tensor k is missing"),
    ],
)
def test_a_bad_tensor_says_what_to_do(small, change, error, says):
    with pytest.raises(error, match=says) as caught:
        deltaproof.check(dataclasses.replace(small, k=change(small.k)), {"o": small.v})
    assert isinstance(caught.value, ValueError)


def test_non_contiguous_tensors_are_the_same_problem(small):
    strided = {name: torch.stack([getattr(small, name)] * 2, -1)[..., 1] for name in ("q", "k", "v", "beta", "g")}
    assert not strided["k"].is_contiguous()
    assert problem_file(dataclasses.replace(small, **strided)).sha256 == problem_file(small).sha256


def test_a_library_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    case = next(deltaproof.cases("delta_rule", "typical", T=8, K=4, V=4))
    with pytest.raises(ModuleNotFoundError, match="to='torch' .the default of cases. needs torch, which is not installed.*to='numpy'"):
        case.problem.q


def test_offsets_may_be_int32_or_a_list(small):
    packed = {**{f.name: getattr(small, f.name) for f in dataclasses.fields(small)}, "initial_state": None}
    hashes = {
        problem_file({**packed, "cu_seqlens": x}).sha256
        for x in ([0, 30, 80], torch.tensor([0, 30, 80], dtype=torch.int32), numpy.array([0, 30, 80]))
    }
    assert len(hashes) == 1
    with pytest.raises(deltaproof.format_error, match="cu_seqlens: its dtype is float32, but offsets are integers; pass int64, int32"):
        problem_file({**packed, "cu_seqlens": torch.tensor([0.0, 80.0])})


@pytest.mark.parametrize("given", [torch.int32, torch.int64, "int32", "int64"])
def test_integers_are_called_what_the_caller_calls_them(small, given):
    ones = torch.ones(small.k.shape, dtype=given) if isinstance(given, torch.dtype) else numpy.ones(small.k.shape, given)
    name = str(given).rpartition(".")[2]
    with pytest.raises(deltaproof.format_error, match=f"k: its dtype is {name}, but floating-point numbers are needed"):
        deltaproof.check(dataclasses.replace(small, k=ones), {"o": small.v})
    with pytest.raises(deltaproof.format_error, match=f"o: its dtype is {name}, but floating-point numbers are needed"):
        deltaproof.check(small, {"o": ones})


@pytest.mark.parametrize(
    ("result", "error", "says"),
    [
        (lambda p: {"o": p.v[:, 1:]}, deltaproof.shape_error, "result: tensor o: shape"),
        (lambda p: {"final_state": p.initial_state}, deltaproof.format_error, "tensor o is missing"),
        (lambda p: {"o": p.v, "Aii": p.v}, deltaproof.format_error, "'Aii' is unknown"),
        (lambda p: deltaproof.Result(p.v, stages={"Aii": p.v}), deltaproof.format_error, "no stage is called 'Aii'"),
        (lambda p: deltaproof.Result(p.v, kernel="mine"), deltaproof.format_error, "mine"),
        (lambda p: [p.v], deltaproof.format_error, "a dict of tensors, or the path"),
        (lambda p: "no/such/file", deltaproof.format_error, "there is no such file"),
        (
            lambda p: deltaproof.Result(p.v, problem_sha256="0" * 64),
            deltaproof.format_error,
            "a result of another problem",
        ),
    ],
)
def test_a_bad_result_says_what_is_wrong(small, result, error, says):
    with pytest.raises(error, match=says):
        deltaproof.check(small, result(small))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"plan": "fla-chunk-gdm"}, "fla-chunk-gdn"),
        ({"plan": True}, "plan=True"),
        ({"max_error": "o:rel_fro=1"}, "given without because"),
        ({"because": "x"}, "given without max_error; add max_error"),
        ({"seed": -1}, "seed is -1; use a whole number from 0"),
        ({"threads": 1.5}, "threads is 1.5; use a whole number from 0"),
        ({"false_alarm": 1.0}, "false-alarm probability is 1"),
        ({"false_alarm": math.nan}, "false-alarm probability is nan"),
        ({"accuracy": math.nan}, "accuracy is nan"),
        ({"accuracy": 0.0}, "accuracy"),
        ({"max_bits": 10}, "max_bits"),
    ],
)
def test_a_bad_option_says_what_is_wrong(small, options, says):
    with pytest.raises(deltaproof.format_error, match=says):
        deltaproof.check(small, {"o": small.v, "chunk_size": 64}, **options)


def test_unknown_words_of_a_problem(small):
    for change, says in (({"op": "delta"}, "delta_rule"), ({"rule": "heun"}, "euler"), ({"scale": math.inf}, "scale")):
        with pytest.raises(deltaproof.format_error, match=says):
            problem_file(dataclasses.replace(small, **change))
    with pytest.raises(deltaproof.format_error, match="'gate' is unknown"):
        problem_file({"q": small.q, "k": small.k, "v": small.v, "beta": small.beta, "gate": small.g})
