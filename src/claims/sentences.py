# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""sentences.py FILE: a document's sentences, numbered, as rows of src/claims/*.toml name them without holding their text.

A line ends a sentence; so do . ! ? before a space and a capital, a bracket, a quote or a formula, and 。！？ anywhere; a displayed
formula ends one where a capital follows. Nothing ends inside $...$ or a displayed formula, and one that spans lines is one
sentence. What holds neither letter nor digit is none."""

import pathlib
import re
import sys

BLANKS = " \t\r\n"
MARK = re.compile(r"\$\$|(?<!\\)\$|\\begin\{equation\}|\\end\{equation\}|[。！？.!?]")
CLOSING = re.compile(r"[\"')\]*_”’》）]*")  # what closes with the sentence: quotes, brackets, emphasis
ANEW = re.compile(r"[ \t\r\n]+([A-Z\"'(\[$*_!\\]|[^\x00-\x7f])")  # a space, and then what a sentence may begin with
ABBREVIATION = re.compile(r"(^|[ \t\r\n(])(e\.g|i\.e|vs|al|Eq|Fig)$|^[0-9]+$")  # or "1" of a list's "1. GLA"
SAYS_SOMETHING = re.compile(r"[A-Za-z0-9]|[^\x00-\x7f]")


def lines_of(text):
    """A line that opens a displayed formula takes those up to its end with it."""
    lines, closing = [], None
    for line in text.split("\n"):
        line = line.strip(BLANKS)
        if closing:
            lines[-1] += " " + line
        else:
            lines.append(line)
            closing = "\\]" if line.startswith("\\[") else "\\end{" if line.startswith("\\begin{") else None
        if closing and closing in line:
            closing = None
    return lines


def ends_of(line):
    """Where sentences end before the end of the line."""
    first = at = 0
    formula, displayed = False, int(line.startswith("\\["))
    while mark := MARK.search(line, at):
        at = end = mark.end()
        ends = False
        if "$" in mark[0]:
            formula = not formula
        elif mark[0].startswith("\\"):
            displayed += 1 if "begin" in mark[0] else -1
            ends = "end" in mark[0] and displayed == 0 and ANEW.match(line, end)
        elif not formula and displayed == 0:
            end = CLOSING.match(line, end).end()
            before = line[first : mark.start()].strip(BLANKS)
            ends = mark[0] in "。！？" or ANEW.match(line, end) and not (mark[0] == "." and ABBREVIATION.search(before))
        if ends:
            yield end
            first = at = end


def sentences(text):
    found = []
    for line in lines_of(text):
        cuts = [0, *ends_of(line), len(line)]
        found += [line[a:b].strip(BLANKS) for a, b in zip(cuts, cuts[1:])]
    return [one for one in found if SAYS_SOMETHING.search(one)]


if __name__ == "__main__":
    for number, sentence in enumerate(sentences(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")), 1):
        print(number, sentence)
