# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""The recorder is one file that needs torch alone, and writes what the package writes."""

import dataclasses
import importlib.util
import re
import subprocess
import sys
from types import ModuleType

import deltaproof
import pytest
import torch
from conftest import ROOT

RECORDER = ROOT / "python/deltaproof/recorder.py"


@pytest.fixture
def recorder():
    spec = importlib.util.spec_from_file_location("recorder_alone", RECORDER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fields(of):
    return {f.name: getattr(of, f.name) for f in dataclasses.fields(of)}


@pytest.mark.parametrize("op", ["delta_rule", "gated_delta_rule", "kda", "gated_delta_product"])
def test_it_writes_the_package_s_bytes(recorder, tmp_path, op):
    problem = next(deltaproof.cases(op, "varlen" if op == "kda" else "typical", K=16, V=16)).problem
    result = deltaproof.emulate(problem, next(p.name for p in deltaproof.plans() if op in p.ops and "bf16" in p.dtypes))
    ours = deltaproof.record(tmp_path / "ours", problem, result)
    theirs = recorder.record(tmp_path / "theirs", fields(problem), {**fields(result), "problem_sha256": ""})
    for a, b in zip(ours, theirs):
        assert open(a, "rb").read() == open(b, "rb").read()


def test_strides_gradients_and_scales(recorder, tmp_path):
    x = torch.randn(1, 4, 8, 2, dtype=torch.float64).transpose(2, 3).requires_grad_()
    for scale in (None, 1, 8**-0.5, 1e-5, 3.0):
        problem = dict(op="delta_rule", q=x, k=x, v=x, beta=x[..., 0], scale=scale)
        (theirs,) = recorder.record(tmp_path / "theirs", problem)
        read = deltaproof.load(theirs, to="torch")
        assert torch.equal(read.k, x) and read.scale == scale
        (ours,) = deltaproof.record(
            tmp_path / "ours", {**problem, **{n: problem[n].detach() for n in ("q", "k", "v", "beta")}}
        )
        if scale != 1e-5:  # there are two shortest ways to write it
            assert open(ours, "rb").read() == open(theirs, "rb").read()


def test_it_knows_the_tensors_that_files_have(recorder):
    rows = re.findall(r'\{"(\w+)",\s*stage_part::(\w+)', (ROOT / "include/deltaproof/files/stage_table.hpp").read_text())
    parts = {part: {name for name, of in rows if of == part} for _, part in rows}
    assert set(recorder.STAGES) == parts["stages"]
    assert set(recorder.BACKWARD_STAGES) == parts["backward_stages"]
    assert set(recorder.GRADIENTS) == parts["gradients"]


def test_what_it_does_not_know_it_refuses(recorder, tmp_path):
    x = torch.zeros(1, 2, 1, 2)
    for problem, says in (
        (dict(q=x), "op is absent"),
        (dict(op="kda", q=x, gate=x), "'gate' is unknown"),
        (dict(op="kda", q=x.to(torch.int8)), "torch.int8"),
        (dict(op="kda", q=x, num_housholder=2), "did you mean 'num_householder'"),
        (dict(op="kda", q=x, scale="a"), "scale is 'a'; give a number"),
        (dict(op="kda", q="abc"), "q: a str is not a tensor"),
        (dict(op="kda", q=[1, 2]), "q: a list is taken for cu_seqlens alone"),
        (dict(op="kda", q=x, cu_seqlens=x.to(torch.int8)), "cu_seqlens: its dtype is torch.int8; pass int64, int32"),
    ):
        with pytest.raises(ValueError, match=says):
            recorder.record(tmp_path / "x", problem)
    (tmp_path / "x.txt").write_text("no tensors in here")
    with pytest.raises(ValueError, match="x.txt is not a safetensors file"):
        recorder.read(tmp_path / "x.txt")


def test_it_needs_nothing_but_torch(tmp_path):
    script = (
        "import sys; sys.modules['numpy'] = None; sys.modules['deltaproof'] = None\n"
        f"sys.path.insert(0, {str(RECORDER.parent)!r})\n"
        "import torch, recorder\n"
        "x = torch.ones(1, 2, 1, 2, dtype=torch.bfloat16)\n"
        "p = dict(op='delta_rule', q=x, k=x, v=x, beta=x[..., 0], cu_seqlens=[0, 1, 2])\n"
        f"recorder.record({str(tmp_path / 'x')!r}, p, dict(o=x, path='recurrent'))\n"
    )
    # torch itself may want numpy at import; then there is nothing to show.
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=False)
    if "numpy" in done.stderr and "recorder.py" not in done.stderr:
        pytest.skip("this torch does not import without numpy")
    assert done.returncode == 0, done.stderr
    assert (
        deltaproof.check(tmp_path / "x.problem.safetensors", tmp_path / "x.result.safetensors", plan=False).word
        == "measured"
    )


def test_taps_fill_with_the_stages_of_three_call_sites(recorder, monkeypatch):
    """Modules named as fla's, with its functions' names and results."""
    small = next(deltaproof.cases("gated_delta_rule", "typical", T=80, K=16, V=8, H=1, HV=2)).problem
    emulated = deltaproof.emulate(small, "fla-chunk-gdn")
    s = emulated.stages
    utils, chunk = ModuleType("fla.ops.utils"), ModuleType("fla.ops.gated_delta_rule.chunk")
    utils.solve_tril = lambda A: s["Ai"]
    chunk.solve_tril = utils.solve_tril
    chunk.chunk_local_cumsum = lambda g, scale=None: s["g_cumsum_log2"] if scale else g
    chunk.chunk_scaled_dot_kkt_fwd = lambda **_: s["A"]
    chunk.recompute_w_u_fwd = lambda **_: (s["w"], s["u"])
    chunk.chunk_gated_delta_rule_fwd_h = lambda **_: (s["h"], s["v_new"], emulated.final_state)
    for module in (utils, chunk):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    original = chunk.solve_tril

    def kernel():
        chunk.chunk_local_cumsum(small.g, scale=1.4426950216)
        chunk.chunk_local_cumsum(small.g)
        chunk.solve_tril(chunk.chunk_scaled_dot_kkt_fwd(k=small.k))
        chunk.recompute_w_u_fwd(k=small.k)
        return emulated.o, chunk.chunk_gated_delta_rule_fwd_h(k=small.k)[2]

    with recorder.taps() as stages:
        o, final_state = kernel()
    assert chunk.solve_tril is original
    assert set(stages) == set(s) and all(torch.equal(stages[name], s[name]) for name in s)
    assert deltaproof.check(
        small, deltaproof.Result(o, final_state, chunk_size=64, stages=stages), plan="fla-chunk-gdn", power=False
    )
    chunk.chunk_gated_delta_rule_fwd_h = lambda **_: (s["h"].mT, s["v_new"], None)
    with recorder.taps() as stages:
        chunk.chunk_gated_delta_rule_fwd_h(k=small.k, state_v_first=True)
    assert torch.equal(stages["h"], s["h"])
    with pytest.raises(ValueError, match="no imported module of nothing"), recorder.taps(prefix="nothing"):
        pass


def test_taps_see_a_call_site_under_another_name(recorder, monkeypatch):
    """As fla's delta product imports them: `recompute_w_u_fwd as dn_recompute_w_u_fwd`, and its own state kernel."""
    home, user = ModuleType("fla.ops.delta_rule.wy_fast"), ModuleType("fla.ops.gated_delta_product.chunk")
    w, u, v_new = torch.ones(1, 2, 1, 2), torch.zeros(1, 2, 1, 2), torch.full((1, 2, 1, 2), 3.0)
    home.recompute_w_u_fwd = user.dn_recompute_w_u_fwd = original = lambda **_: (w, u)
    user.chunk_gated_delta_product_fwd_h = lambda **_: (torch.zeros(1), v_new, None)
    for module in (home, user):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    with recorder.taps() as stages:
        user.dn_recompute_w_u_fwd(k=w)
        user.chunk_gated_delta_product_fwd_h(k=w)
    assert {name: x.tolist() for name, x in stages.items()} == {"w": w.tolist(), "u": u.tolist(), "v_new": v_new.tolist()}
    assert user.dn_recompute_w_u_fwd is original and home.recompute_w_u_fwd is original


def test_a_problem_that_is_a_file_stays_as_it_is(recorder, tmp_path):
    small = next(deltaproof.cases("gated_delta_rule", "varlen", K=16, V=16)).problem
    path, emulated = tmp_path / "small.problem.safetensors", deltaproof.emulate(small, "fla-chunk-gdn")
    deltaproof.record(tmp_path / "small", small)
    before = path.read_bytes()
    given = recorder.read(path)
    assert torch.equal(given["q"], small.torch().q) and given["cu_seqlens"].tolist() == small.torch().cu_seqlens.tolist()
    assert (given["op"], given["scale"], given["qk_l2norm"], given["num_householder"]) == (
        small.op,
        small.scale,
        small.qk_l2norm,
        1,
    )
    o, final_state = (recorder.read(deltaproof.record(tmp_path / "e", small, emulated)[1])[n] for n in ("o", "final_state"))
    result = dict(o=o, final_state=final_state, path="chunk", chunk_size=64, producer=recorder.environment())
    with pytest.raises(ValueError, match="record_result"):
        recorder.record(tmp_path / "out", path, result)
    with pytest.raises(ValueError, match="is the problem itself"):
        recorder.record_result(path, result, out=path)
    assert recorder.record_result(path, result) == str(tmp_path / "small.result.safetensors")
    assert path.read_bytes() == before
    assert deltaproof.check(path, tmp_path / "small.result.safetensors", plan="fla-chunk-gdn", power=False)
    assert f"torch {torch.__version__.split('+')[0]}" in result["producer"]


def test_taps_of_a_backward_pass_leave_stages_that_are_judged(recorder, monkeypatch, tmp_path):
    """fla's functions of the backward pass, whose results are those of an emulated kernel; once with a fault in dw."""
    asked = dict(T=80, K=16, V=8, H=1, HV=2, initial_state="normal", cotangents=True)
    small = next(deltaproof.cases("gated_delta_rule", "typical", **asked)).problem
    chunk = ModuleType("fla.ops.common.chunk_o")
    monkeypatch.setitem(sys.modules, chunk.__name__, chunk)
    for fault, bad in ((None, None), ("dw-sign", "dw")):
        kernel = deltaproof.emulate(small, "fla-chunk-gdn", fault, gradients=True)
        s = kernel.stages
        chunk.chunk_bwd_dv_local = lambda **_: s["dv_local"]  # noqa: B023
        chunk.chunk_gated_delta_rule_bwd_dhu = lambda **_: (s["dh"].mT, None, s["dv2"])  # noqa: B023
        chunk.chunk_bwd_dqkwg = lambda **_: (None, None, s["dw"], None)  # noqa: B023
        with recorder.taps(recorder.BACKWARD_SITES) as stages:
            chunk.chunk_bwd_dv_local()
            chunk.chunk_gated_delta_rule_bwd_dhu(state_v_first=True)
            chunk.chunk_bwd_dqkwg()
        assert set(stages) == {"dv_local", "dh", "dv2", "dw"} and all(torch.equal(stages[n], s[n]) for n in stages)
        forward = {n: s[n] for n in recorder.STAGES if n in s}
        tensors = {"o": kernel.o, "final_state": kernel.final_state, **forward, **stages, **kernel.gradients}
        words = {"pass_": "both", "path": "chunk", "chunk_size": 64}
        names = recorder.record(tmp_path / f"{fault}", fields(small.torch()), {**tensors, **words})
        assert torch.equal(recorder.read(names[0])["do"], small.torch().do) and recorder.read(names[1])["pass_"] == "both"
        verdict = deltaproof.check(*names, plan="fla-chunk-gdn", power=False)
        assert verdict.first_bad_stage == bad and bool(verdict) == (bad is None), verdict.text
        again = deltaproof.Result(
            kernel.o, kernel.final_state, chunk_size=64, stages={**forward, **stages}, gradients=kernel.gradients
        )
        assert deltaproof.check(small, again, plan="fla-chunk-gdn", power=False).first_bad_stage == bad


def test_the_words_of_norm_and_gate_are_written_where_they_say_something(recorder):
    words = dict(recorder.problem_words({"op": "kda", "qk_l2norm": True}))
    assert not {"l2norm_eps", "gate_activation", "gate_lower_bound"} & set(words)
    given = {"op": "kda", "l2norm_eps": 1e-5, "gate_activation": "bounded", "gate_lower_bound": -5.0}
    words = dict(recorder.problem_words(given))
    assert (float(words["l2norm_eps"]), words["gate_activation"], float(words["gate_lower_bound"])) == (1e-5, "bounded", -5.0)
