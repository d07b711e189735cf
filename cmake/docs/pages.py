# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""pages.py FILE: a page of docs/ as Doxygen reads it. Headings get labels, links between pages become references to them, and links into
the repository, which the site does not hold, become its paths."""

import pathlib
import re
import sys

file = pathlib.Path(sys.argv[1])


def label(page, title):
    return page + "-" + re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def link(found):
    text, path, anchor = found.groups()
    if path.endswith(".md") and "/" not in path or not path:
        page = pathlib.Path(path or file.name).stem
        return f"[{text}](@ref {page + '-' + anchor if anchor else page})"
    return text if text.strip("`") in path else f"{text} (`{path.replace('../', '')}`)"


def line(text, code):
    if code:
        return text
    if heading := re.fullmatch(r"(#+) (.*)", text):
        marks, title = heading.groups()
        return f"{text} {{#{file.stem if marks == '#' else label(file.stem, title)}}}"
    return re.sub(r"\[([^\]]*)\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]*))?\)", link, text)


code = "cmake" in file.parts[-3:]  # the first page of the site is written for Doxygen
for one in file.read_text().splitlines():
    code = code != one.startswith("```")
    print(line(one, code))
