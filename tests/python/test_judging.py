# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""`judge` refuses every planted cheat by name, and rewards a correct kernel."""

import importlib.util
import sys
from pathlib import Path

import deltaproof
import pytest

CHEATS = Path(__file__).with_name("cheats.py")


def judged(name, **options):
    return deltaproof.judge(f"{CHEATS}:{name}", **{"deadline": 240, **options})


@pytest.mark.parametrize("kernel", ["rounded", "by_chunks", "into_buffers"])
def test_a_correct_kernel_earns_the_reward(kernel):
    found = judged(kernel)
    assert (found.word, found.reward, found.caught) == ("holds", 1.0, ()), found.text
    assert found.power > 0.8 and all(v.word in ("holds", "vacuous") for v in found.verdicts.values())


SHAPE = {"op": "gated_delta_rule", "K": 16, "V": 8, "H": 1, "HV": 2, "initial_state": "normal"}
FEW = [next(deltaproof.cases(regimes=name, T=T, **SHAPE)) for name, T in (("slow-decay", 140), ("typical", 70))]

CAUGHT = {
    "all_zeros": "all-zeros",
    "constant_output": "constant-output",
    "cached_by_pointer": "cached-answer",
    "cached_by_version": "cached-answer",
    "late_writes": "late-write",
    "mutates_inputs": "mutated-input",
    "searches_memory": "searched-memory",
    "lazy_subclass": "no-plain-tensor",
    "skipped_recurrence": "outside-its-plan",
    "tolerance_sized_noise": "outside-its-plan",
    "nan_as_wildcard": "nan",
    "leaves_its_buffers": "nan",
    "expanded": "no-plain-tensor",
    "returns_its_input": "output-is-an-input",
    "not_repeatable": "not-repeatable",
    "reads_the_future": "depends-on-later-tokens",
    "short_only": "loses-its-state",
    "adds_a_little": "not-zero-on-zeros",
    "crashes": "crashed",
    "kills_itself": "crashed",
    "imports_the_referee": "imports-the-referee",
    "writes_its_state_alone": "wrong-output",
}


@pytest.mark.parametrize("cheat", CAUGHT)
def test_a_cheat_is_refused_by_name(cheat):
    found = judged(cheat, cases=FEW)
    assert (found.word, found.reward) == ("refuted", 0.0), found.text
    assert CAUGHT[cheat] in found.names, found.text


def test_what_takes_too_long_earns_nothing():
    found = judged("hangs", deadline=8)
    assert (found.word, found.reward) == ("undecided", 0.0) and "time ran out" in found.why
    assert found.seconds < 20


def test_inputs_without_power_earn_nothing():
    """Two tokens show little, whoever is right on them."""
    case = next(deltaproof.cases("gated_delta_rule", "typical", T=1, K=16, V=16, initial_state="none", cu_seqlens=[0, 1]))
    found = judged("rounded", cases=[case], least_power=0.9)
    assert (found.word, found.reward) == ("vacuous", 0.0) and "least_power" in found.why, found.text


def test_a_seed_draws_the_same_inputs_and_none_draws_others(tmp_path):
    case = next(deltaproof.cases("gated_delta_rule", "typical", T=20, K=16, V=16))
    for name, seed in (("a", 7), ("b", 7), ("c", None)):
        found = judged("rounded", cases=[case], seed=seed, keep=tmp_path / name, least_power=0)
        assert found.seed == 7 or seed is None
    file = "0-typical.problem.safetensors"
    a, b, c = ((tmp_path / name / file).read_bytes() for name in "abc")
    assert a == b != c
    assert deltaproof.check(
        tmp_path / "a" / file, tmp_path / "a" / file.replace("problem", "result"), plan="fp32", power=False
    )


PROGRAM = """
import sys
sys.path[:0] = [{recorder!r}, {cheats!r}]
import types, recorder, cheats
p = recorder.read(sys.argv[1])
p = types.SimpleNamespace(**dict({{"g": None, "initial_state": None}}, **p))
o, S = getattr(cheats, {name!r})(p)
recorder.record_result(sys.argv[1], dict(o=o, final_state=S), out=sys.argv[2])
"""


@pytest.mark.parametrize("name,word", [("rounded", "holds"), ("all_zeros", "refuted")])
def test_a_program_is_judged_by_its_files(tmp_path, name, word):
    script, root = tmp_path / "program.py", CHEATS.parents[2]
    script.write_text(PROGRAM.format(recorder=str(root / "python/deltaproof"), cheats=str(CHEATS.parent), name=name))
    case = next(deltaproof.cases("gated_delta_rule", "slow-decay", T=70, K=16, V=16))
    found = deltaproof.judge([sys.executable, str(script), "{problem}", "{result}"], cases=[case], deadline=240)
    assert found.word == word, found.text
    assert deltaproof.judge([sys.executable, "-c", "raise SystemExit('{problem}{result}')"], cases=[case]).names == {
        "crashed"
    }
    for code, says in (
        ("print('slow path', file=sys.stderr)", "ended without writing the file {result}"),
        ("recorder.record_result(sys.argv[1], {}, out=sys.argv[2])", "the file {result} holds no tensor o"),
    ):
        script.write_text(f"import sys\nsys.path.insert(0, {str(root / 'python/deltaproof')!r})\nimport recorder\n{code}\n")
        found = deltaproof.judge([sys.executable, str(script), "{problem}", "{result}"], cases=[case], deadline=60)
        assert found.word == "refuted" and found.names == {"wrong-output"} and says in found.text, found.text


def test_what_cannot_be_judged_is_refused_at_once():
    for candidate, options, says in (
        (lambda p: p, {}, "cannot be loaded by another process"),
        ("nothing.py:kernel", {}, "there is no file nothing.py"),
        (str(CHEATS), {}, "names no function; give 'FILE.py:FUNCTION'"),
        (["kernel"], {}, r"\{problem\}"),
        (f"{CHEATS}:rounded", {"cases": []}, "cases is empty"),
        (f"{CHEATS}:rounded", {"library": "jax"}, "'torch' or 'numpy'"),
        (f"{CHEATS}:rounded", {"device": "cuda:63"}, "torch on cuda:63 cannot be used with "),
        (f"{CHEATS}:rounded", {"plan": "fla-chunk-kda"}, "fla-chunk-kda"),
    ):
        with pytest.raises(deltaproof.format_error, match=says):
            deltaproof.judge(candidate, **options)


@pytest.mark.skipif(importlib.util.find_spec("ml_dtypes") is not None, reason="with ml_dtypes numpy has bf16")
def test_a_format_that_numpy_does_not_have_is_no_fault_of_the_candidate():
    with pytest.raises(deltaproof.format_error, match="install ml_dtypes"):
        deltaproof.judge(f"{CHEATS}:rounded", library="numpy")
