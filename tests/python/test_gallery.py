# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""The gallery's page says what its recordings say: what it refutes is refuted here and by a loop in fp64, and holds after the one change
that names the cause; one recording of each kernel is judged again. Needs none of the kernels' packages."""

import importlib.util
import json
import sys

import deltaproof
import pytest
from conftest import ROOT
from deltaproof import adapters

GALLERY = ROOT / "reports/gallery"
ROWS = json.loads((GALLERY / "gallery.json").read_text(encoding="utf-8"))
KEPT = [row for row in ROWS if "files" in row]
REFUTED = [row for row in KEPT if row["word"] == "refuted"]


def name_of(row):
    return f"{row['kernel']} {row['op']} {row['case']}".replace(" ", "-")


def module(name):
    spec = importlib.util.spec_from_file_location(name, GALLERY / f"{name}.py")
    found = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.fixture(scope="module")
def confirm():
    return module("confirm")


@pytest.mark.parametrize("row", KEPT, ids=name_of)
def test_a_recording_is_judged_as_the_page_says(row):
    verdict = deltaproof.check(*(GALLERY / "recordings" / name for name in row["files"]))
    assert (verdict.word, verdict.plan) == (row["word"], row["plan"]), verdict.text
    assert row["word"] == "holds" or verdict.reason == row["reason"]
    for name, t in verdict.tensors.items():
        due = row["errors"][name]
        assert t["rel_fro"] == (due if isinstance(due, str) else pytest.approx(due, rel=1e-3)), name


@pytest.mark.parametrize("row", REFUTED, ids=name_of)
def test_what_is_refuted_a_loop_in_fp64_refuses_too(row, confirm):
    """Its errors are not finite, or far from what the last of the changes leaves: that one thing is the cause."""
    found = confirm.against_the_loop(*(GALLERY / "recordings" / name for name in row["files"]))
    assert found == row["loop"]
    last = row["changed"][-1]
    assert last["word"] == "holds" and not any("not finite" in x for x in last["loop"].values())
    assert any("not finite" in found[n] or float(found[n]) > 50 * float(last["loop"][n]) for n in found)


def test_the_page_is_that_of_its_rows(confirm):
    printed = json.loads((GALLERY / "faults.json").read_text(encoding="utf-8"))
    assert (GALLERY / "README.md").read_text(encoding="utf-8") == module("make").page(ROWS, printed)
    assert set(printed) == {path.stem for path in (GALLERY / "faults").glob("*.py")}
    assert {row["kernel"] for row in ROWS} == {kernel.name for kernel in adapters.kernels()}
    assert len({(row["kernel"], row["op"]) for row in ROWS}) >= 10
    assert {path.name for path in (GALLERY / "recordings").iterdir()} == {name for row in KEPT for name in row["files"]}
    # A kernel that is refuted nowhere holds somewhere, and so does each that is refuted.
    assert {row["kernel"] for row in ROWS if row["word"] == "holds"} == {row["kernel"] for row in ROWS}
