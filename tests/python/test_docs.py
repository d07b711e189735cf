# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""The lines of docs/begin.md run as they are printed."""

import shutil
import subprocess
import sys
from pathlib import Path

import deltaproof
import deltaproof.adapters
import pytest
from ecosystems import printed

CHEATS = Path(__file__).with_name("cheats.py")


def run(script, folder):
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "library,back", [("numpy", "o.numpy()"), ("torch", "o"), ("jax", "jax.numpy.asarray(o.numpy())"), ("mlx", "mlx.core.array(o.numpy())")]
)
def test_any_library(tmp_path, program, library, back):
    module = "mlx.core" if library == "mlx" else library
    pytest.importorskip(module)
    code, _, says = program(
        "gen", "--op", "gated_delta_rule", "--T", 128, "--K", 16, "--V", 8, "--dtype", "fp32", "-o", tmp_path / "case.problem.safetensors"
    )
    assert code == 0, says
    kernel = f"""
import sys; sys.path.insert(0, {str(CHEATS.parent)!r})
import {module}, numpy, torch, cheats
def my_kernel(*given):
    return [{back} for o in cheats.honest(*(torch.from_numpy(numpy.array(x)) if hasattr(x, "shape") else x for x in given))]
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
