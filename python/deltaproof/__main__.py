# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""`python -m deltaproof` and the command `deltaproof`: the program that travels with the package, in place of this process."""

from __future__ import annotations

import os
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("_bin") / "deltaproof"


def program() -> str:
    """The program beside this package. Throws: RuntimeError with what to do where it is not there."""
    if not os.access(PROGRAM, os.X_OK):
        raise RuntimeError(f"deltaproof: {PROGRAM} is not there; install the package with pip, or use build/release/deltaproof of ./run build")
    return str(PROGRAM)


def main() -> None:
    try:
        found = program()
    except RuntimeError as missing:
        sys.exit(str(missing))
    sys.stdout.flush()
    os.execv(found, ["deltaproof", *sys.argv[1:]])


if __name__ == "__main__":
    main()
