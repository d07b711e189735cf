# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
import os
import subprocess
from pathlib import Path

import deltaproof
import pytest

pytest_plugins = ["pytester"]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def program():
    """Runs the program with these words; gives exit code and output."""
    path = os.environ.get("DELTAPROOF_PROGRAM")
    if not path:
        pytest.skip("DELTAPROOF_PROGRAM does not name the program")

    def run(*words):
        done = subprocess.run([path, *map(str, words)], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.fixture
def small():
    """A problem of 80 tokens: a chunk and a partial one."""
    return next(deltaproof.cases("gated_delta_rule", "typical", T=80, K=16, V=16, H=1, HV=2)).problem
