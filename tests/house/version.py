# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""version.py ROOT [TAG]: CMake, the changelog, the citation, the Python package and the pages that fetch a tag state one version. With
TAG, as a release does: it is v and that version."""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])


def found(path, pattern):
    match = re.search(pattern, (root / path).read_text(), re.M)
    assert match, f"{path} states no version: nothing like {pattern}"
    return match.group(1)


version = found("CMakeLists.txt", r"^project\(deltaproof VERSION (\S+)")
stated = {
    "CHANGELOG.md": found("CHANGELOG.md", r"^## (\S+)"),
    "CITATION.cff": found("CITATION.cff", r"^version: (\S+)"),
    "examples/custom-study/CMakeLists.txt": found("examples/custom-study/CMakeLists.txt", r"GIT_TAG v([\d.]+)"),
    "tests/install/fetching/CMakeLists.txt": found("tests/install/fetching/CMakeLists.txt", r"GIT_TAG v([\d.]+)"),
    "examples/cluster/kubernetes-job.yaml": found("examples/cluster/kubernetes-job.yaml", r"image: .*deltaproof:([\d.]+)"),
}
if len(sys.argv) > 2:
    stated["the tag"] = sys.argv[2].removeprefix("v")
wrong = {where: one for where, one in stated.items() if one != version}
assert not wrong, f"CMakeLists.txt states version {version}, but " + ", ".join(f"{where} states {one}" for where, one in wrong.items())
# The package has no number of its own.
taken = re.search(r'^input = "CMakeLists.txt"', (root / "pyproject.toml").read_text(), re.M)
assert taken, "pyproject.toml does not take its version from CMakeLists.txt"
