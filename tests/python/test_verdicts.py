# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""The package says what the program says, on files and on tensors in memory; work is interruptible and its arithmetic its own."""

import ast
import dataclasses
import json
import pickle
import shlex
import signal
import threading
import time
import typing

import deltaproof
import pytest
import torch
from conftest import ROOT
from deltaproof.compat import fla

RECORDINGS = ROOT / "tests/recordings"


def of(case, kind):
    return RECORDINGS / f"{case}.{kind}.safetensors"


def same_but_paths(a, b):
    """Two verdicts as JSON, without what says where the files lay."""
    for v in (a, b):
        v.pop("reproduce")
        v["problem"].pop("path"), v["result"].pop("path")
        v["notes"] = [note.split(": ", 1)[-1] for note in v["notes"]]
    assert a == b


@pytest.mark.parametrize("kind", ["chunk", "recurrent"])
@pytest.mark.parametrize("case", ["beta_near_two", "steep_gates"])
def test_files_get_the_program_s_verdict_byte_for_byte(program, tmp_path, case, kind):
    verdict = deltaproof.check(of(case, "problem"), of(case, kind), power=False)
    words = shlex.split(verdict.json["reproduce"])
    code, text, _ = program(*words[1:])
    assert (code, text) == (verdict.exit_code, verdict.text)
    program(*words[1:], "--json", tmp_path / "v.json")
    ours, theirs = verdict.json, json.loads((tmp_path / "v.json").read_text())
    assert theirs.pop("reproduce").startswith(ours.pop("reproduce"))
    assert ours == theirs


def test_every_option_is_the_program_s(program, tmp_path):
    """Each option with a value that is not the default, said in words of its own at both doors; one that is lost on the way shows."""
    files = of("beta_near_two", "problem"), of("beta_near_two", "chunk")
    asked = {
        "plan": (["--plan", "fla-chunk-delta"], {"plan": "fla-chunk-delta"}),
        "false_alarm": (["--false-alarm", "1e-5"], {"false_alarm": 1e-5}),
        "accuracy": (["--accuracy", "1e-6"], {"accuracy": 1e-6}),
        "power": (["--no-power"], {"power": False}),
        "max_bits": (["--max-bits", "512"], {"max_bits": 512}),
        "strict_padding": (["--strict-padding"], {"strict_padding": True}),
        "seed": (["--seed", "7"], {"seed": 7}),
        "max_error": (
            ["--max-error", "o:rel_fro=1e-9", "--because", "a test"],
            {"max_error": "o:rel_fro=1e-9", "because": "a test"},
        ),
    }
    words = [word for option, _ in asked.values() for word in option]
    program("check", *files, *words, "--json", tmp_path / "v.json")
    theirs = json.loads((tmp_path / "v.json").read_text())

    def ours(*lost):
        return deltaproof.check(*files, **{k: v for name, (_, said) in asked.items() if name not in lost for k, v in said.items()})

    same_but_paths(ours().json, json.loads(json.dumps(theirs)))
    for name in asked:
        if name in ("plan", "power"):  # the kernel names its plan; the search for faults takes a while
            continue
        with pytest.raises(AssertionError):
            same_but_paths(ours(name).json, json.loads(json.dumps(theirs)))


@pytest.mark.parametrize("case", ["grouped_heads"])
def test_recorded_tensors_get_the_verdict_of_their_files(program, tmp_path, case):
    problem = deltaproof.load(of(case, "problem"), to="torch")
    result = deltaproof.read_result(of(case, "chunk"), of(case, "problem")).torch()
    assert isinstance(problem.q, torch.Tensor) and isinstance(result.stages["Ai"], torch.Tensor)
    in_memory = deltaproof.check(problem, result, power=False)
    assert in_memory and in_memory.exit_code == 0
    files = deltaproof.record(tmp_path / "deep" / case, problem, result)
    program("check", *files, "--no-power", "--json", tmp_path / "v.json")
    same_but_paths(in_memory.json, json.loads((tmp_path / "v.json").read_text()))
    again = deltaproof.check(*files, power=False)
    assert again.json["problem"]["sha256"] == in_memory.json["problem"]["sha256"]


def test_a_verdict_is_what_it_says(small, tmp_path):
    result = deltaproof.emulate(small, "fla-chunk-gdn")
    holds = deltaproof.check(small, result)
    assert holds and holds.require() is holds and holds.conforms and holds.adequate and holds.plan == "fla-chunk-gdn"
    assert (
        str(holds).startswith("verdict      holds")
        and set(holds.tensors) == {"o", "final_state"}
        and holds.power["visible"]
    )
    bad = deltaproof.check(small, deltaproof.emulate(small, "fla-chunk-gdn", "inverse-bf16-between-steps"))
    assert (
        not bad
        and bad.exit_code == 1
        and bad.first_bad_stage == "Ai"
        and bad.stages["Ai"]["verdict"] == "refuted"
        and bad.conforms is False
    )
    assert "inverse-bf16-between-steps" in [d["fault"] for d in bad.diagnosis]
    with pytest.raises(deltaproof.refuted, match="first bad    Ai") as caught:
        bad.raise_if_refuted()
    assert pickle.loads(pickle.dumps(caught.value)).verdict == bad  # as pytest-xdist sends it
    schema = json.loads((ROOT / "schemas/verdict.schema.json").read_text())
    for verdict in (holds, bad):
        pytest.importorskip("jsonschema").validate(verdict.json, schema)
    measured = deltaproof.check(small, result, plan=False)
    # A test asks for a witness whatever comes; none was needed, and none is missed.
    assert "no witness" not in deltaproof.check(small, result, plan=False, witness=tmp_path / "w").text
    assert measured.word == "measured" and not measured and measured.raise_if_refuted() is measured
    with pytest.raises(deltaproof.not_shown):
        measured.require()
    dirty = dataclasses.replace(result, stages={**result.stages, "A": result.stages["A"] + 5})
    assert "that no kernel reads are not 0" in deltaproof.check(small, dirty, plan=False).text
    assert deltaproof.check(small, dirty, plan=False, strict_padding=True).word == "refuted"
    limited = deltaproof.check(
        small, result, plan=False, max_error=["o:rel_fro=1e-9"], because="a limit no bf16 kernel keeps"
    )
    assert limited.word == "refuted" and "a limit no bf16 kernel keeps" in limited.json_text


def test_a_result_of_another_case_is_refused(small):
    other = next(deltaproof.cases("gated_delta_rule", "typical", T=80, K=16, V=16, H=1, HV=2, seeds=1)).problem
    with pytest.raises(deltaproof.format_error, match="another problem"):
        deltaproof.check(other, deltaproof.emulate(small, "fla-chunk-gdn"))


def test_problems_truths_and_emulations_are_the_program_s(program, tmp_path):
    case = next(deltaproof.cases("kda", "typical", T=70, K=16, V=16, H=1, HV=1, dtype=torch.bfloat16, seeds=[3]))
    assert case.name == "typical-kda-T70-K16-V16-bf16-seed3"
    words = shlex.split(case.command)
    words[-1] = str(tmp_path / "p.safetensors")
    assert program(*words[1:])[0] == 0
    (file,) = deltaproof.record(tmp_path / "case", case)
    assert open(file, "rb").read() == open(words[-1], "rb").read()
    assert program("oracle", file, "--round", "fp32", "-o", tmp_path / "o.safetensors")[0] == 0
    truth, theirs = deltaproof.oracle(case, "fp32"), deltaproof.read_result(tmp_path / "o.safetensors", file).torch()
    assert (
        torch.equal(truth.o, theirs.o)
        and torch.equal(truth.final_state, theirs.final_state)
        and truth.undecided == {"o": 0, "final_state": 0}
    )
    fault = "gate-rounded-to-bf16"
    assert (
        program("emulate", file, "--plan", "fla-chunk-kda", "--fault", fault, "-o", tmp_path / "e.safetensors")[0] == 0
    )
    ours, theirs = (
        deltaproof.emulate(case, "fla-chunk-kda", fault),
        deltaproof.read_result(tmp_path / "e.safetensors", file).torch(),
    )
    assert (
        torch.equal(ours.o, theirs.o)
        and set(ours.stages) == set(theirs.stages)
        and all(torch.equal(ours.stages[n], theirs.stages[n]) for n in ours.stages)
    )
    with pytest.raises(deltaproof.format_error, match="gate-rounded-to-bf16"):
        deltaproof.emulate(case, "fla-chunk-kda", "gate-rounded-to-bf17")
    for options in ({"max_seconds": float("nan")}, {"max_seconds": -1}, {"accuracy": float("inf")}, {"max_bits": 7}):
        with pytest.raises(deltaproof.format_error, match=next(iter(options)).replace("_", ".")):
            deltaproof.check(case, ours, plan="fla-chunk-kda", **options)
    with pytest.raises(deltaproof.format_error, match="chunk=0 rows"):
        deltaproof.emulate(case, "fla-chunk-kda", chunk=0)
    with pytest.raises(deltaproof.format_error, match="variant is -1; use a whole number"):
        deltaproof.emulate(case, "fla-chunk-kda", variant=-1)


def test_cases_are_listed_lazily_and_refused_at_once():
    listed = list(deltaproof.cases(["delta_rule", "kda"], None, T=[16, 10**6], seeds=range(2)))
    assert len(listed) == 2 * len(deltaproof.regimes()) * 2 * 2 and len({c.name for c in listed}) == len(listed)
    with pytest.raises(deltaproof.format_error, match="typical"):
        list(deltaproof.cases("delta_rule", "typicl"))
    with pytest.raises(deltaproof.format_error, match="num_householder"):
        list(deltaproof.cases("delta_rule", "typical", D=3))
    with pytest.raises(deltaproof.format_error, match="T is -1; use a whole number"):
        list(deltaproof.cases("delta_rule", "typical", T=-1))
    with pytest.raises(deltaproof.format_error, match="seeds is -1; use a whole number"):
        list(deltaproof.cases("delta_rule", "typical", seeds=[0, -1]))
    with pytest.raises(deltaproof.format_error, match="cotangents is 'yes'; use True or False"):
        list(deltaproof.cases("delta_rule", "typical", cotangents="yes"))
    with pytest.raises(deltaproof.format_error, match="cu_seqlens is '0,5'; use a list"):
        list(deltaproof.cases("delta_rule", "typical", cu_seqlens="0,5"))
    assert {"fla-chunk-gdn", "fp32"} <= {p.name for p in deltaproof.plans()} and all(
        f.what for f in deltaproof.faults()
    )


@pytest.fixture
def long_problem():
    """The oracle takes minutes on it."""
    x = torch.randn(1, 100000, 1, 64, generator=torch.Generator().manual_seed(1))
    k = torch.nn.functional.normalize(x, dim=-1).bfloat16()
    return deltaproof.Problem(k, k, x.bfloat16(), x[..., 0].sigmoid().bfloat16())


def test_the_interpreter_runs_on_and_ctrl_c_ends_the_work(long_problem):
    ticks, done = [], threading.Event()

    def tick():
        while not done.wait(0.05):
            ticks.append(time.monotonic())

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    thread = threading.Thread(target=tick)
    thread.start()
    signal.setitimer(signal.ITIMER_REAL, 1)
    try:
        with pytest.raises(KeyboardInterrupt):
            deltaproof.oracle(long_problem, "fp64")
    finally:
        signal.signal(signal.SIGALRM, before)
        done.set()
        thread.join()
    assert len(ticks) >= 5


def test_time_runs_out(long_problem):
    with pytest.raises(TimeoutError, match="max_seconds=0.3 ran out"):
        deltaproof.oracle(long_problem, "fp64", max_seconds=0.3)


def test_the_caller_s_flush_to_zero_changes_nothing(small):
    expected = deltaproof.check(small, deltaproof.emulate(small, "fla-chunk-gdn"), power=False).json_text
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot flush to zero")
    try:
        assert deltaproof.check(small, deltaproof.emulate(small, "fla-chunk-gdn"), power=False).json_text == expected
    finally:
        torch.set_flush_denormal(False)


def test_fla_s_assert_close_and_the_verdict_beside(small, capsys):
    ref = torch.ones(64)
    fla.assert_close("o", ref, ref + 1e-3, 0.005)
    with pytest.raises(AssertionError, match="ratio: 0.010000"):
        fla.assert_close("o", ref, ref + 1e-2, 0.005)
    with pytest.raises(AssertionError):
        fla.assert_close("o", ref, ref * float("nan"), 0.005)
    with pytest.warns(UserWarning, match="diff: 0.010000"):
        fla.assert_close("o", ref, ref + 1e-2, 0.005, warning=True)
    fla.assert_close("o", ref * 1e-9, ref * 2e-9, 0.005)
    result = deltaproof.emulate(small, "fla-chunk-gdn")
    truth = deltaproof.oracle(small, "fp32")
    with fla.beside(small, result, power=False) as verdict:
        fla.assert_close("o", truth.o, result.o.float(), 0.05)
        fla.assert_close("ht", truth.final_state, result.final_state, 0.05)
    assert verdict
    said = capsys.readouterr().out
    assert "verdict      holds" in said and said.count("deltaproof: plan fla-chunk-gdn holds, rel_fro") == 2


def test_stubs_name_what_the_module_has():
    tree = ast.parse((ROOT / "python/deltaproof/_core.pyi").read_text())
    stated = {n.name for n in tree.body if isinstance(n, (ast.ClassDef, ast.FunctionDef))} | {
        n.target.id for n in tree.body if isinstance(n, ast.AnnAssign)
    }
    assert stated == {name for name in vars(deltaproof._core) if not name.startswith("_")}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            there = {n.name for n in node.body if isinstance(n, ast.FunctionDef)} | {
                n.target.id for n in node.body if isinstance(n, ast.AnnAssign)
            }
            missing = {name for name in vars(getattr(deltaproof._core, node.name)) if not name.startswith("_")} ^ {
                name for name in there if not name.startswith("_")
            }
            assert not missing, node.name
    for name in deltaproof.__all__:
        assert getattr(deltaproof, name) is not None
    assert typing.get_type_hints(deltaproof.catalogue.Plan) and dataclasses.is_dataclass(deltaproof.Verdict)
