# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""The library's words are the program's: what they call --plan is the argument `plan` here. Errors are raised in Python's words."""

from __future__ import annotations

import contextlib
import operator
import re
from collections.abc import Iterator
from typing import Any

from . import _core

#: Options that Python calls otherwise. Any other --some-option is the argument some_option.
_OPTIONS = {"no-plan": "plan=False", "no-power": "power=False", "noise": "noise_ulps", "regime": "regimes"}
_OPTION = re.compile(
    r"(?P<command>\b(?:deltaproof|gen) [^;)`\n]*)"  # of the program: stays as it is
    r"|(?<![\w-])--(?P<name>[a-z]+(?:-[a-z]+)*)"
    r"(?: \"(?P<quoted>[^\"]*)\"| (?P<word>[^\s(]\S*(?=: )|(?:law|regime)\b|[A-Z]+\.toml))?"
)
_LISTS = re.compile(r"`?deltaproof list (plans|faults|regimes)\b`?")


def in_python(text: str) -> str:
    """The same sentence with Python's names: plan, plan=False, max_error='o:rel_fro=1', deltaproof.plans()."""

    def argument(found: re.Match[str]) -> str:
        if found["command"]:
            return found[0]
        name = _OPTIONS.get(found["name"], found["name"].replace("-", "_"))
        value = found["quoted"] if found["quoted"] is not None else found["word"]
        return name if value is None else f"{name}={value!r}"

    return _OPTION.sub(argument, _LISTS.sub(r"deltaproof.\1()", text))


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


def require_whole(where: str, **numbers: Any) -> None:
    """Refuses what is no whole number from 0, by the argument's name. Throws: format_error."""
    for name, value in numbers.items():
        try:
            if operator.index(value) >= 0:
                continue
        except TypeError:
            pass
        raise _core.format_error(f"{where}: {name} is {value!r}; use a whole number from 0")
