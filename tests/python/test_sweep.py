# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""Sweeps handed out by Dask give the bytes of one process, also where workers are killed while they are busy."""
import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

CAMPAIGN = """kind = "regimes"
[axes]
plan = "fp32"
regime = ["typical", "tails"]
op = "delta_rule"
T = 16
K = 16
V = 8
H = 1
HV = 1
seed = { from = 1, to = 20 }
[judging]
power = false
"""

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("distributed") is None, reason="Dask is not there: python3-distributed, or pip install distributed"
)


@pytest.fixture
def box(tmp_path):
    (tmp_path / "c.toml").write_text(CAMPAIGN)
    return tmp_path


@pytest.fixture
def merged(box, packaged):
    def merge(folder):
        done = subprocess.run([packaged, "merge", folder, "-o", "merge.json"], cwd=box, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return (box / "merge.json").read_text()

    return merge


@pytest.fixture
def packaged():
    from deltaproof.sweep import program

    return program()


@pytest.fixture
def whole(box, packaged, merged):
    subprocess.run([packaged, "sweep", "c.toml", "-o", "whole"], cwd=box, check=True, capture_output=True)
    return merged("whole")


def start(box, *words):
    return subprocess.Popen([sys.executable, "-m", "deltaproof.sweep", "c.toml", *words], cwd=box, stderr=subprocess.PIPE, text=True)


def results(folder: Path):
    return list((folder / "tasks").glob("*/*.json"))


def descendants(pid):
    found = []
    for child in subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False).stdout.split():
        found += [int(child), *descendants(int(child))]
    return found


def command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def busy_workers(pid):
    """Workers of Dask that have a sweep running."""
    below = {one: descendants(one) for one in descendants(pid)}
    return [
        one
        for one, children in below.items()
        if "python" in command(one) and "spawn_main" in command(one) and any("--tasks" in command(child) for child in children)
    ]


def test_a_local_cluster_gives_the_bytes_of_one_process(box, whole, merged):
    driver = start(box, "-o", "dask", "--cluster", "local:2", "--batch", "4")
    said = driver.communicate(timeout=200)[1]
    assert driver.returncode == 0, said
    assert merged("dask") == whole
    again = start(box, "-o", "dask", "--cluster", "local:2")
    assert again.wait(timeout=60) == 0  # nothing is left: no cluster is started


def test_two_workers_killed_while_busy_cost_nothing(box, whole, merged):
    driver = start(box, "-o", "killed", "--cluster", "local:2", "--batch", "2")
    killed = set()
    until = time.monotonic() + 120
    while driver.poll() is None and len(killed) < 2 and time.monotonic() < until:
        for worker in busy_workers(driver.pid):
            if worker not in killed and len(results(box / "killed")) >= 4 * len(killed) + 1:
                os.kill(worker, signal.SIGKILL)
                killed.add(worker)
                break
        time.sleep(0.02)
    said = driver.communicate(timeout=250)[1]
    assert len(killed) == 2, said
    assert driver.returncode == 0, said
    assert merged("killed") == whole


def test_a_killed_driver_goes_on(box, whole, merged):
    driver = start(box, "-o", "gone", "--cluster", "local:2", "--batch", "2")
    until = time.monotonic() + 100
    while len(results(box / "gone")) < 3 and time.monotonic() < until:
        time.sleep(0.02)
    driver.kill()
    driver.communicate()
    before = len(results(box / "gone"))
    assert before >= 3
    driver = start(box, "-o", "gone", "--cluster", "local:2")
    said = driver.communicate(timeout=200)[1]
    assert driver.returncode == 0, said
    assert merged("gone") == whole


def test_what_is_no_cluster_is_refused(box):
    driver = start(box, "-o", "none", "--cluster", "cloud:9")
    assert "cloud:9 is not a kind of cluster" in driver.communicate(timeout=100)[1]
    assert driver.returncode != 0
