# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""A problem that is a file goes to a kernel of any library, and what comes out is recorded beside it, in the kernel's own units."""

import importlib.util
import math
import subprocess
import sys
from pathlib import Path

import deltaproof
import numpy
import pytest
import torch
from conftest import ROOT

RECORDER = ROOT / "python/deltaproof/recorder.py"
NUMPY_ALONE = """
import sys
sys.modules["torch"] = sys.modules["deltaproof"] = None
sys.path.insert(0, {folder!r})
import numpy, recorder
p = recorder.read({problem!r}, gate="decay")
B, T, H, K = p["q"].shape
HV, V = p["v"].shape[2:]
o, states = numpy.zeros((B, T, HV, V), "f4"), numpy.zeros((B, HV, K, V))
for i in range(HV):
    h, S = i * H // HV, p["initial_state"][0, i].astype("f8")
    for t in range(T):
        k = p["k"][0, t, h].astype("f8")
        S = S * p["g"][0, t, i]
        S = S + numpy.outer(k, p["beta"][0, t, i] * (p["v"][0, t, i] - k @ S))
        o[0, t, i] = p["scale"] * (p["q"][0, t, h].astype("f8") @ S)
    states[0, i] = S
recorder.record_result({problem!r}, dict(o=o, final_state=states.astype("f4")), kernel="numpy loop", gate="decay")
"""


@pytest.fixture
def file(tmp_path):
    """A problem of fp32 on disk, with a state."""
    case = next(
        deltaproof.cases("gated_delta_rule", "typical", T=40, K=16, V=8, H=1, HV=2, dtype="fp32", initial_state="normal")
    )
    return deltaproof.record(tmp_path / "case", case.problem)[0]


def test_a_kernel_with_numpy_alone_is_recorded_and_judged(file):
    before = open(file, "rb").read()
    script = NUMPY_ALONE.format(folder=str(RECORDER.parent), problem=file)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result = file.replace(".problem.", ".result.")
    verdict = deltaproof.check(file, result, plan="fp32").require()
    assert "numpy loop" in verdict.text and "gate given as decay" in verdict.json["result"]["producer"]
    assert open(file, "rb").read() == before


@pytest.mark.parametrize("to", ["numpy", "torch"])
def test_a_gate_is_handed_out_in_the_kernel_s_unit(file, to):
    g = numpy.asarray(deltaproof.load(file, to).g, dtype="f8")
    for gate, due in (("log2", g / math.log(2)), ("decay", numpy.exp(g))):
        given = numpy.asarray(deltaproof.load(file, to, gate).g)
        assert given.dtype == numpy.float32 and (given == due.astype("f4")).all()
    with pytest.raises(deltaproof.format_error, match="log, log2, decay"):
        deltaproof.load(file, to, "ln")


@pytest.mark.parametrize("gate", ["log", "log2", "decay"])
def test_stages_and_gradients_come_back_in_the_format_s_unit(file, gate):
    """A cumulative sum that the kernel has in its own unit is the stage of the plan, and is judged as such."""
    emulated = deltaproof.emulate(file, "fla-chunk-gdn", chunk=16)
    log2 = numpy.asarray(emulated.stages["g_cumsum_log2"], dtype="f8")
    own = {"log": log2 * math.log(2), "log2": log2, "decay": 2.0**log2}[gate]
    tensors = {"o": emulated.o, "final_state": emulated.final_state, "g_cumsum": torch.from_numpy(own)}
    result = deltaproof.record_result(file, tensors, kernel="fla chunk_gated_delta_rule", gate=gate, chunk_size=16)
    stored = numpy.asarray(deltaproof.read_result(result, file, to="numpy").stages["g_cumsum_log2"])
    assert numpy.abs(stored - log2).max() <= 1e-14 * numpy.abs(log2).max()
    assert deltaproof.check(file, result, power=False).require().stages["g_cumsum_log2"]["verdict"] == "holds"


def test_a_gradient_of_a_decay_is_that_of_its_logarithm(file):
    g = numpy.asarray(deltaproof.load(file).g, dtype="f8")
    own = numpy.linspace(-1, 1, g.size).reshape(g.shape)
    o = deltaproof.oracle(file, "fp32").o
    for gate, factor in (("log", 1), ("log2", 1 / math.log(2)), ("decay", numpy.exp(g))):
        name = deltaproof.record_result(file, {"o": o, "dg": own}, gate=gate)
        stored = deltaproof.read_result(name, file, to="numpy").gradients["dg"]
        assert numpy.allclose(stored, own * factor, rtol=1e-15, atol=0)


def test_what_cannot_be_recorded_is_refused(file):
    o = deltaproof.oracle(file, "fp32").o
    for tensors, words, says in (
        ({"o": o, "gate": o}, {}, "'gate' is unknown"),
        ({"o": o}, {"gate": "ln"}, "log, log2, decay"),
        ({"o": o[:, :3]}, {}, "shape"),
        ({"o": o.to(torch.int8)}, {}, "not a number format"),
    ):
        with pytest.raises(deltaproof.error, match=says):
            deltaproof.record_result(file, tensors, **words)


def test_a_refused_result_replaces_no_file(file):
    o = deltaproof.oracle(file, "fp32").o
    written = Path(deltaproof.record_result(file, {"o": o}))
    before, files = written.read_bytes(), sorted(written.parent.iterdir())
    with pytest.raises(deltaproof.error, match=f"{written}: tensor o") as caught:
        deltaproof.record_result(file, {"o": o[:, :3]})
    assert "draft" not in str(caught.value)
    assert written.read_bytes() == before and sorted(written.parent.iterdir()) == files


def test_bf16_without_ml_dtypes_names_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    case = next(deltaproof.cases("delta_rule", "typical", T=8, K=4, V=4))
    file = deltaproof.record(tmp_path / "case", case.problem)[0]
    spec = importlib.util.spec_from_file_location("recorder_alone", RECORDER)
    recorder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recorder)
    for read in (lambda: deltaproof.load(file), lambda: recorder.read(file, "numpy")):
        with pytest.raises(ValueError, match="pip install ml_dtypes"):
            read()


def test_bf16_through_ml_dtypes_keeps_its_bits(tmp_path):
    pytest.importorskip("ml_dtypes")
    case = next(deltaproof.cases("delta_rule", "typical", T=8, K=4, V=4))
    file = deltaproof.record(tmp_path / "case", case.problem)[0]
    assert deltaproof.record(tmp_path / "again", deltaproof.load(file))[0] and (
        open(file, "rb").read() == open(tmp_path / "again.problem.safetensors", "rb").read()
    )


def softplus(x):
    return numpy.logaddexp(0, x)


def raw_problem(op, activation):
    """A problem whose kernel normalises q and k with another epsilon and makes the log decay of g, and that log decay."""
    p = next(deltaproof.cases(op, "tiny-keys", T=40, K=16, V=8, H=1, HV=2, dtype="fp32", to="numpy")).problem
    draw = numpy.random.default_rng(1)
    shape = (2, 16) if op == "kda" else (2,)
    raw = draw.normal(size=p.g.shape).astype("f4")
    A_log, bias = draw.normal(size=2).astype("f4"), draw.normal(size=shape).astype("f4")
    rate = numpy.exp(A_log.astype("f8")).reshape((2, 1) if op == "kda" else (2,))
    x = raw.astype("f8") + bias
    log = -rate * softplus(x) if activation == "softplus" else -5 / (1 + numpy.exp(-rate * x))
    bound = -5.0 if activation == "bounded" else None
    p.qk_l2norm, p.l2norm_eps = True, 1e-5
    p.gate_activation, p.A_log, p.dt_bias, p.gate_lower_bound, p.g = activation, A_log, bias, bound, raw
    return p, log


def loop(p, log, epsilon):
    """o and final_state in fp64, of one sequence."""
    q, k = (x.astype("f8") / numpy.sqrt((x.astype("f8") ** 2).sum(-1, keepdims=True) + epsilon) for x in (p.q, p.k))
    S = numpy.zeros((2, 16, 8)) if p.initial_state is None else p.initial_state[0].astype("f8")
    o = numpy.zeros(p.v.shape)
    decay = numpy.exp(log) if log.ndim == 4 else numpy.exp(log)[..., None]
    for t in range(p.v.shape[1]):
        for h in range(2):
            S[h] = S[h] * decay[0, t, h][:, None]
            S[h] += numpy.outer(k[0, t, 0], p.beta[0, t, h] * (p.v[0, t, h] - k[0, t, 0] @ S[h]))
            o[0, t, h] = p.scale * (q[0, t, 0] @ S[h])
    return o.astype("f4"), S[None].astype("f4")


@pytest.mark.parametrize("op", ["gated_delta_rule", "kda"])
@pytest.mark.parametrize("activation", ["softplus", "bounded"])
def test_a_kernel_with_a_raw_gate_and_an_epsilon_of_its_own_is_recorded_and_judged(tmp_path, op, activation):
    """Read, computed, recorded and judged by the package, in memory and by the recorder that stands alone; another epsilon is
    refuted, as is a log decay off by a thousandth."""
    p, log = raw_problem(op, activation)
    file = deltaproof.record(tmp_path / "raw", p)[0]
    spec = importlib.util.spec_from_file_location("recorder_alone", RECORDER)
    recorder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recorder)
    names = ("q", "k", "v", "beta", "g", "A_log", "dt_bias", "scale", "l2norm_eps", "gate_activation", "gate_lower_bound")
    for read in (vars(deltaproof.load(file)), recorder.read(file, "numpy")):
        for name in names:
            assert numpy.array_equal(read.get(name), getattr(p, name)), name
    again = recorder.record(tmp_path / "again", vars(p))[0]
    assert open(again, "rb").read() == open(file, "rb").read()

    o, S = loop(p, log, 1e-5)
    for write in (deltaproof.record_result, recorder.record_result):
        result = write(file, {"o": o, "final_state": S}, kernel="loop", path="recurrent")
        assert deltaproof.check(file, result, plan="fp32", power=False).require().tensors["o"]["rel_fro"] < 1e-6
    assert deltaproof.check(p, deltaproof.Result(o, S), plan="fp32", power=False)
    for wrong in (loop(p, log, 1e-6), loop(p, log * 1.001, 1e-5)):
        assert deltaproof.check(p, deltaproof.Result(*wrong), plan="fp32", power=False).word == "refuted"

    # A raw gate is no logarithm: it has no other unit.
    for read in (deltaproof.load, recorder.read):
        with pytest.raises(ValueError, match="raw gate"):
            read(file, "numpy", "decay")
    with pytest.raises(ValueError, match="raw gate"):
        recorder.record_result(file, {"o": o, "dg": p.g}, gate="decay")


@pytest.mark.parametrize(
    "change,says",
    [
        ({"A_log": None}, "A_log"),
        ({"gate_lower_bound": None}, "gate_lower_bound"),
        ({"gate_lower_bound": 1.0}, "gate_lower_bound"),
        ({"gate_activation": "relu"}, "gate_activation"),
        ({"l2norm_eps": 0.0}, "l2norm_eps"),
        ({"l2norm_eps": 1.0}, "l2norm_eps"),
        ({"dt_bias": numpy.zeros(3, "f4")}, "dt_bias"),
    ],
)
def test_a_raw_gate_that_says_too_little_is_refused(tmp_path, change, says):
    p, _ = raw_problem("gated_delta_rule", "bounded")
    for name, value in change.items():
        setattr(p, name, value)
    with pytest.raises(deltaproof.error, match=says):
        deltaproof.record(tmp_path / "raw", p)
