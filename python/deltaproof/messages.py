# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""The library's words are the program's: what they call --plan is the argument `plan` here. Errors are raised in Python's words."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from . import _core

#: Options whose argument is called otherwise, or whose value is fixed. Any other --some-option is some_option=...
_OPTIONS = {"--no-plan": "plan=False", "--no-power": "power=False", "--noise": "noise_ulps=..."}
_OPTION = re.compile(r"(?<![\w-])--([a-z]+(?:-[a-z]+)*)(?: (\S*=\S*?)(?=:))?")
_LISTS = re.compile(r"`?deltaproof list (plans|faults|regimes)`?")


def in_python(text: str) -> str:
    """The same sentence with Python's names: plan=..., plan=False, max_error=..., deltaproof.plans()."""

    def argument(found: re.Match[str]) -> str:
        option, value = found.group(0).partition(" ")[0], found.group(2)
        if option in _OPTIONS:
            return _OPTIONS[option]
        return f"{option[2:].replace('-', '_')}={value!r}" if value else f"{option[2:].replace('-', '_')}=..."

    return _LISTS.sub(r"deltaproof.\1()", _OPTION.sub(argument, text))


@contextlib.contextmanager
def python_words() -> Iterator[None]:
    """Errors of the library raised inside speak of Python's arguments."""
    try:
        yield
    except _core.error as e:
        said = in_python(str(e))
        if said == str(e):
            raise
        raise type(e)(said) from None
