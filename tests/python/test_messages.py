# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""What Python says is about Python: its arguments, what to pass, and the program beside it."""

import dataclasses
import os
import subprocess
import sys

import deltaproof
import pytest
from deltaproof.messages import in_python


@pytest.mark.parametrize(
    ("program", "python"),
    [
        ("name a plan with --plan (candidates: fp32)", "name a plan with plan (candidates: fp32)"),
        ("measure errors only with --no-plan, or give an error limit with --max-error", "measure errors only with plan=False, or give an error limit with max_error"),
        ("allow more time: give a larger --max-seconds, or leave it out", "allow more time: give a larger max_seconds, or leave it out"),
        ("--max-error o:rel_fro: there is no '='", "max_error='o:rel_fro': there is no '='"),
        (
            'but --law "cosine=0.9" was given; use --regime law, or leave --law out',
            "but law='cosine=0.9' was given; use regimes='law', or leave law out",
        ),
        ("--beta regime was asked for (deltaproof list beta-laws)", "beta='regime' was asked for (deltaproof list beta-laws)"),
        ("judge by it (--plan FILE.toml)", "judge by it (plan='FILE.toml')"),
        ("--max-error o:speed=1: no metric", "max_error='o:speed=1': no metric"),
        ("unknown; `deltaproof list faults` has them all", "unknown; deltaproof.faults() has them all"),
        ("my--plan and a -- b stay", "my--plan and a -- b stay"),
        # A command of the program is one in Python too.
        ("add one (deltaproof gen --cotangents draws both); or --no-power", "add one (deltaproof gen --cotangents draws both); or power=False"),
        ("for example: deltaproof gen --regime typical", "for example: deltaproof gen --regime typical"),
    ],
)
def test_options_are_arguments(program, python):
    assert in_python(program) == python


def test_errors_name_arguments(small):
    result = {"o": small.v, "kernel": "nobody's", "path": "recurrent"}
    with pytest.raises(deltaproof.format_error, match=r"with plan \(.*plan=False.*max_error") as caught:
        deltaproof.check(small, result)
    assert "--" not in str(caught.value)
    with pytest.raises(deltaproof.format_error, match="max_error='o:speed=1'"):
        deltaproof.check(small, result, plan=False, max_error="o:speed=1", because="a test")
    with pytest.raises(deltaproof.format_error, match=r"deltaproof\.faults\(\)"):
        deltaproof.emulate(small, "fp32", "nonsense")
    with pytest.raises(deltaproof.format_error, match='did you mean "typical"'):
        list(deltaproof.cases("delta_rule", "typcal"))
    with pytest.raises(deltaproof.format_error, match='"typical" is a regime, and op comes first'):
        list(deltaproof.cases("typical"))


def test_no_chunk_size_says_what_to_pass(small):
    got = deltaproof.emulate(small, "fla-chunk-gdn")
    bare = deltaproof.Result(got.o, got.final_state)
    for given in (bare, {"o": got.o, "kernel": got.kernel}):
        with pytest.raises(deltaproof.format_error, match=r"states no chunk_size.*pass its chunk length: Result\(o, final_state, chunk_size=64\)"):
            deltaproof.check(small, given, plan="fla-chunk-gdn", power=False)
    with pytest.raises(deltaproof.format_error, match=r"chunk_size=64"):
        deltaproof.check(small, dataclasses.replace(bare, path="chunk"), plan="fla-chunk-gdn", power=False)
    assert deltaproof.check(small, dataclasses.replace(bare, chunk_size=64), plan="fla-chunk-gdn", power=False)
    # What is wrong otherwise is not blamed on it.
    for plan in ("fla-chunk-gdm", "a/path/that/is/not/there.toml"):
        with pytest.raises(deltaproof.format_error) as caught:
            deltaproof.check(small, bare, plan=plan)
        assert "chunk_size" not in str(caught.value)


def ran(*words):
    done = subprocess.run([sys.executable, "-m", "deltaproof", *map(str, words)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_the_module_is_the_program(small, tmp_path):
    assert ran("--version") == (0, f"deltaproof {deltaproof.__version__}\n", "")
    code, _, says = ran("chek")
    assert code == 2 and says.startswith("deltaproof: there is no command 'chek'; did you mean \"check\"?")
    bad = deltaproof.emulate(small, "fla-chunk-gdn", "inverse-bf16-between-steps")
    verdict = deltaproof.check(small, bad, power=False, witness=tmp_path / "w")
    assert verdict.json["reproduce"] == f"deltaproof replay {tmp_path / 'w'}"
    code, text, says = ran(*verdict.json["reproduce"].split()[1:])
    assert code == 1 and text.startswith("replay       reproduced"), says
    files = deltaproof.record(tmp_path / "case", small, bad)
    assert ran("check", *files, "--no-power")[0] == 1


def test_a_program_that_is_not_there_is_named(monkeypatch):
    import deltaproof.__main__ as main

    monkeypatch.setattr(main, "PROGRAM", main.PROGRAM.with_name("nowhere"))
    with pytest.raises(SystemExit, match="nowhere is not there; install the package with pip"):
        main.main()


@pytest.mark.parametrize(
    ("where", "output", "says"),
    [
        ("local", "out", "--cluster local needs distributed: pip install distributed"),
        ("k8s", "out", "--cluster k8s is not a kind of cluster"),
        ("local:x", "out", "x is not a number of processes; give local:N"),
        ("here", "c.toml", "cannot make the folder"),
    ],
)
def test_a_sweep_that_cannot_start_says_why(tmp_path, where, output, says):
    axes = 'plan = "fp32"\nregime = "typical"\nop = "delta_rule"\nT = 8\nK = 8\nV = 8\nH = 1\nHV = 1\nseed = 1\n'
    (tmp_path / "c.toml").write_text(f'kind = "regimes"\n[axes]\n{axes}')
    (tmp_path / "distributed.py").write_text("raise ImportError(name='distributed')\n")
    path = {**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    words = [sys.executable, "-m", "deltaproof.sweep", "c.toml", "-o", output, "--cluster", where]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, env=path)
    assert done.returncode != 0 and says in " ".join(done.stderr.split()) and "Traceback" not in done.stderr, done.stderr
