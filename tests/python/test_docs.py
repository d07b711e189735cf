# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""The lines of docs/begin.md run as they are printed."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import deltaproof
import deltaproof.adapters
import pytest
from conftest import ROOT

CHEATS = Path(__file__).with_name("cheats.py")


def printed(heading):
    """The Python block under a heading."""
    text = (ROOT / "docs/begin.md").read_text(encoding="utf-8")
    section = text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    [block] = re.findall(r"```python\n(.*?)```", section, re.S)
    assert len(block.splitlines()) <= 10
    return block


def run(script, folder):
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_any_library(tmp_path, program, library):
    code, _, says = program(
        "gen", "--op", "gated_delta_rule", "--T", 128, "--K", 16, "--V", 8, "--dtype", "fp32", "-o", tmp_path / "case.problem.safetensors"
    )
    assert code == 0, says
    kernel = f"""
import sys; sys.path.insert(0, {str(CHEATS.parent)!r})
import numpy, torch, cheats
def my_kernel(*given):
    return cheats.honest(*(torch.from_numpy(x) if isinstance(x, numpy.ndarray) else x for x in given))
"""
    block = printed("Any library").replace('to="numpy"', f'to="{library}"')
    assert run(kernel + block, tmp_path).startswith("verdict      holds")


@pytest.mark.parametrize("adapter", deltaproof.adapters.PACKAGES)
def test_public_kernels(tmp_path, adapter):
    kernel = deltaproof.adapters.kernels(adapter)[0]
    if kernel.version is None:
        pytest.skip(f"{kernel.package} {kernel.tested} is not installed")
    said = run(printed("Public kernels").replace("transformers as", f"{adapter} as"), tmp_path).splitlines()
    assert said and all(line.endswith(" holds") for line in said), said


def test_generated_kernels(tmp_path):
    shutil.copy(CHEATS, tmp_path / "candidate.py")
    block = printed("Generated kernels").replace("candidate.py:kernel", "candidate.py:honest")
    assert run(block.replace("deadline=120", "deadline=250"), tmp_path).startswith("holds 1.0")
    assert deltaproof.__all__.count("judge") == 1
