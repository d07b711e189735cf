# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""Searches for the worst inputs: what they find, that they are the same each time, and that nothing finished is lost."""
import importlib.util
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import deltaproof
import pytest

ROOT = Path(__file__).resolve().parents[2]
CAMPAIGN = """kind = "search"
[axes]
plan = "{plan}"
op = "{op}"
K = 16
V = 8
H = 1
HV = 1
[search]
goal = "error"
generations = 3
population = 8
keep = 1
[space]
T = [16, 64]
seed = [1, 1000]
cosine = [0, 1]
flip = [0, 1]
beta_logit = [-8, 8]
beta_top = [0, 2]
gate_log = [-9, 1]
"""

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("cmaes") is None, reason="cmaes is not there: python3-cmaes, or pip install 'deltaproof[search]'"
)


def start(box, campaign, folder, *words):
    return subprocess.Popen(
        [sys.executable, "-m", "deltaproof.sweep", campaign, "-o", folder, "--cluster", "here", *words],
        cwd=box, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def searched(box, campaign, folder, *words):
    run = start(box, campaign, folder, *words)
    out, said = run.communicate(timeout=600)
    assert run.returncode == 0, out + said
    return json.loads((box / folder / "search.json").read_text())


def program(box, *words):
    from deltaproof.sweep import program

    return subprocess.run([program(), *map(str, words)], cwd=box, capture_output=True, text=True, check=False)


def merged(box, folder):
    done = program(box, "merge", folder, "-o", "merge.json")
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return (box / "merge.json").read_text()


def without_times(report):
    report = json.loads(json.dumps(report))
    report.pop("worse_per_cpu_hour")
    for method in report["methods"].values():
        method.pop("cpu_seconds")
        for at in method["history"]:
            at.pop("cpu_seconds")
    for one in report["worst"]:
        one.pop("witness")
    return report


def valid(name, value):
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft7Validator(json.loads((ROOT / "schemas" / f"{name}.schema.json").read_text())).validate(value)


@pytest.mark.parametrize("plan", ["neumann-64", "flashkda-fp16-neumann"])
def test_a_search_finds_inputs_on_which_a_plan_fails(tmp_path, plan):
    (tmp_path / "c.toml").write_text((ROOT / "examples" / "search" / f"{plan}.toml").read_text())
    report = searched(tmp_path, "c.toml", "one")
    valid("search", report)
    valid("proposals", json.loads((tmp_path / "one" / "proposals.json").read_text()))
    for file in (tmp_path / "one" / "tasks").glob("*/*.json"):
        valid("task", json.loads(file.read_text()))
    assert report["methods"]["search"]["refuted"] > 0
    assert report["methods"]["search"]["evaluations"] == report["methods"]["random"]["evaluations"] == 32
    worst = report["worst"][0]
    assert worst["found"]["verdict"] == worst["shrunk"]["verdict"] == "refuted"
    replayed = program(tmp_path, "replay", worst["witness"])
    assert "reproduced" in replayed.stdout, replayed.stdout + replayed.stderr
    merge = json.loads(merged(tmp_path, "one"))
    valid("merge", merge)
    assert merge["axes"]["by"]["search"]["refuted"] == report["methods"]["search"]["refuted"]
    assert merge["worst"][0]["norm"] == "error"


def test_a_search_is_the_same_each_time_and_goes_on_after_kill_9(tmp_path):
    (tmp_path / "c.toml").write_text(CAMPAIGN.format(plan="neumann-64", op="gated_delta_rule"))
    whole = searched(tmp_path, "c.toml", "whole")
    for _ in range(2):
        run = start(tmp_path, "c.toml", "killed")
        have = len(list((tmp_path / "killed" / "tasks").glob("*/*.json")))
        until = time.monotonic() + 60
        while len(list((tmp_path / "killed" / "tasks").glob("*/*.json"))) < have + 7 and time.monotonic() < until:
            time.sleep(0.02)
        run.kill()
        run.communicate()
    again = searched(tmp_path, "c.toml", "killed")
    assert without_times(again) == without_times(whole)
    assert (tmp_path / "killed" / "proposals.json").read_text() == (tmp_path / "whole" / "proposals.json").read_text()
    assert merged(tmp_path, "killed") == merged(tmp_path, "whole")
    files = {file: file.stat().st_mtime_ns for file in (tmp_path / "whole" / "tasks").glob("*/*.json")}
    searched(tmp_path, "c.toml", "whole")
    assert files == {file: file.stat().st_mtime_ns for file in (tmp_path / "whole" / "tasks").glob("*/*.json")}


@pytest.mark.skipif("DELTAPROOF_DEEP" not in os.environ, reason="twenty minutes of processor time: ./run deep, label deep")
def test_a_search_of_ten_minutes_is_twice_as_bad_as_chance(tmp_path):
    (tmp_path / "c.toml").write_text((ROOT / "examples" / "search" / "fla-chunk-gdn.toml").read_text())
    run = start(tmp_path, "c.toml", "gdn")
    out, said = run.communicate()
    assert run.returncode == 0, out + said
    report = json.loads((tmp_path / "gdn" / "search.json").read_text())
    print({by: (m["best"], m["evaluations"], m["cpu_seconds"]) for by, m in report["methods"].items()})
    assert abs(report["methods"]["search"]["cpu_seconds"] - report["methods"]["random"]["cpu_seconds"]) < 60
    assert report["ratio"] >= 2


@pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="Dask is not there")
def test_dask_finds_the_same(tmp_path):
    (tmp_path / "c.toml").write_text(CAMPAIGN.format(plan="neumann-64", op="gated_delta_rule"))
    here = searched(tmp_path, "c.toml", "here")
    dask = searched(tmp_path, "c.toml", "dask", "--cluster", "local:2")
    assert without_times(dask) == without_times(here)
    assert merged(tmp_path, "dask") == merged(tmp_path, "here")


def test_the_optimiser_is_better_than_chance():
    from deltaproof.search import Driver

    names = [f"x{i}" for i in range(8)]
    best = {"search": 0.0, "random": 0.0}

    def evaluate(by, points):
        tasks = []
        for point in points:
            at = [float(one.split("=")[1]) for one in point.split(",")]
            share = math.exp(-20 * sum((x - 0.3) ** 2 for x in at))
            best[by] = max(best[by], share)
            tasks.append({"point": point, "verdict": "holds", "score": {"tensor": "o", "norm": "error", "share": share}})
        return tasks, 1.0

    space = [{"name": name, "least": 0, "most": 1, "whole": False} for name in names]
    driver = Driver({"goal": "error", "population": 12, "generations": 40, "cpu_minutes": 0, "seed": 1, "keep": 2, "random": True, "space": space}, evaluate)
    driver.run(lambda line: None)
    assert best["search"] > 2 * best["random"], best
    assert driver.report()["ratio"] == best["search"] / best["random"]


def test_a_kernel_in_python_is_searched():
    # A kernel whose inverse is not the one that its plan promises: fresh keys hide it.
    def kernel(problem):
        return deltaproof.emulate(problem, "neumann-64")

    space = {"cosine": (0, 1), "beta_logit": (-8, 8), "gate_log": (-9, 1)}
    report = deltaproof.search_kernel(kernel, space, plan="fla-chunk-gdn", K=16, V=8, generations=3, population=8, keep=1)
    assert report["methods"]["search"]["refuted"] > 0
    assert float(report["worst"][0]["found"]["score"]["share"]) > 1

    def broken(problem):
        if problem.k.float().abs().max() > 0.9:
            raise RuntimeError("out of range")
        return deltaproof.emulate(problem, "fp32")

    report = deltaproof.search_kernel(broken, {"key_norm": (0.1, 1), "beta_top": (0, 1)}, K=16, V=8, generations=3, population=8, keep=1, random=False)
    assert report["methods"]["search"]["best"] is not None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (('goal = "error"', 'goal = "errors"'), "did you mean"),
        (("cosine = [0, 1]", "cosine = [0, 3]"), "least < most"),
        (("generations = 3", ""), "does not say when to stop"),
        (("K = 16", "K = [8, 16]"), "one value on each axis"),
        (('kind = "search"', 'kind = "serach"'), "did you mean"),
        (("[space]", "[spaces]"), "did you mean"),
    ],
)
def test_a_wrong_campaign_is_refused(tmp_path, change, says):
    text = CAMPAIGN.format(plan="neumann-64", op="gated_delta_rule").replace(*change)
    (tmp_path / "c.toml").write_text(text)
    run = start(tmp_path, "c.toml", "x")
    out, said = run.communicate(timeout=60)
    assert run.returncode == 2, out + said
    assert says in " ".join(said.split()) and "Traceback" not in said
    assert not (tmp_path / "x").exists()


def test_the_program_alone_names_what_proposes(tmp_path):
    (tmp_path / "c.toml").write_text(CAMPAIGN.format(plan="neumann-64", op="gated_delta_rule"))
    done = program(tmp_path, "sweep", "c.toml", "-o", "x")
    assert done.returncode == 2
    assert "python -m deltaproof.sweep" in " ".join(done.stderr.split())


def test_what_is_missing_is_named(tmp_path):
    (tmp_path / "c.toml").write_text(CAMPAIGN.format(plan="neumann-64", op="gated_delta_rule"))
    (tmp_path / "cmaes.py").write_text("raise ImportError(name='cmaes')\n")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    run = subprocess.run(
        [sys.executable, "-m", "deltaproof.sweep", "c.toml", "-o", "x", "--cluster", "here"],
        cwd=tmp_path, capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    assert run.returncode != 0
    assert "python3-cmaes" in run.stderr and "Traceback" not in run.stderr
