# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""proof_index.py check|write|tags ROOT: the index in proofs/README.md against the theories, the code, the tests and the statements.

A row: | `folder.file.name`, ... | in words | `code/path.hpp: symbol`, ... | `tests/path.cpp: name`, ... | not claimed |

check fails unless
  - every name of a row is stated in proofs/theories, every theorem there has one row, and so has what a report or a verdict cites;
  - code that a row names exists and names one of the row's theorems in turn, in a comment `proved: folder.file.name, ...`; a theorem
    that a code file names so has a row that names the file; a symbol after the path (`path: symbol`) stands in the file; a claim
    is one of the report's;
  - the test exists, or the cell says "no test: reason";
  - words, "used by" and "not claimed" are those that lie beside the statement, as Coq printed it, in proofs/audit/statements;
  - proofs/constants.txt has the names and values of theories/code/constants.v, as committed, and theorems that speak of them by name.
`write` takes the words of the index over to proofs/audit/statements; read the difference against the statements there.
`tags` writes those comments, from the rows, at the ends of the code files. Needs no Coq."""

import collections
import json
import pathlib
import re
import sys
import textwrap

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "proofs"))
import statements as kept  # noqa: E402

STATED = re.compile(
    r"^ *(?:#\[\w+\] *|Local +|Global +)?(Theorem|Lemma|Corollary|Proposition|Example|Fact|Remark) +([A-Za-z_][\w']*)", re.M)
NAME = re.compile(r"`([a-z_]+\.[a-z_0-9]+\.[A-Za-z_][\w']*)`")
SOURCES = ("include/deltaproof", "src")
CODE = (".hpp", ".cpp", ".inc")


class Row:
    def __init__(self, line, cells):
        self.line = line
        self.names = NAME.findall(cells[0])
        self.words, self.used, self.tests, self.not_claimed = cells[1:]
        self.code = re.findall(r"`([^`: ]+/[^`: ]+)(?:: (\w+))?`", self.used)


class Index:
    def __init__(self, root):
        self.root, self.bad = pathlib.Path(root), []
        self.readme = self.root / "proofs" / "README.md"
        self.kinds, self.rows = {}, []
        for theory in sorted((self.root / "proofs" / "theories").glob("*/*.v")):
            for kind, name in STATED.findall(theory.read_text(encoding="utf-8")):
                self.kinds[f"{theory.parent.name}.{theory.stem}.{name}"] = kind
        for number, line in enumerate(self.readme.read_text(encoding="utf-8").splitlines(), 1):
            if not re.match(r"^\| *`[a-z_]+\.[a-z_0-9]+\.[A-Za-z_]", line):
                continue
            cells = [cell.strip().replace("\0", "\\|") for cell in line.replace("\\|", "\0").split("|")[1:-1]]
            if len(cells) == 5:
                self.rows.append(Row(number, cells))
            else:
                self.complain(number, f"{len(cells)} cells, not 5")
        if not self.kinds or not self.rows:
            self.bad.append("no statement in proofs/theories, or no index in proofs/README.md")

    def complain(self, line, what):
        self.bad.append(f"proofs/README.md: line {line}: {what}" if line else what)

    def file(self, path):
        """A path of the index; in include/deltaproof, src or the repository."""
        return next((at for at in (self.root / path, *(self.root / folder / path for folder in SOURCES)) if at.exists()), None)

    def check_names(self):
        indexed = collections.Counter(name for row in self.rows for name in row.names)
        for row in self.rows:
            for name in row.names:
                if name not in self.kinds:
                    self.complain(row.line, f"no statement {name}")
        for name, kind in self.kinds.items():
            if kind == "Theorem" and name not in indexed:
                self.complain(0, f"no row for the theorem {name}")
        for name in (name for name, count in indexed.items() if count > 1):
            self.complain(0, f"more than one row for {name}")
        cited = {}  # theorem: a file
        for report in self.root.glob("reports/*.json"):
            cited.update(dict.fromkeys(re.findall(r'"theorem": "([^"]+)"', report.read_text(encoding="utf-8")), report))
        for code in (*self.root.glob("src/check/*_views.cpp"), *self.root.glob("src/studies/**/*.cpp")):
            text = re.sub(r"proved:.*", "", code.read_text(encoding="utf-8"))
            names = re.findall(r"\b(?:algebra|ode|float|bridge)\.[a-z_]+\.[a-z][a-z0-9_]+", text)
            cited.update(dict.fromkeys(names, code))
        for name in sorted(set(cited) - set(indexed)):
            self.complain(0, f"{name} is cited by {cited[name].relative_to(self.root)} and has no row in proofs/README.md")

    def tagged(self):
        """{file: theorems that its comments `proved: ...` name}"""
        found = {}
        for folder in SOURCES:
            for code in sorted((self.root / folder).rglob("*")):
                if code.suffix in CODE:
                    text = code.read_text(encoding="utf-8")
                    lines = re.findall(r"^// proved: (.*)", text, re.M)
                    if lines:
                        found[code] = {name for line in lines for name in re.split(r"[, ]+", line.strip()) if name}
        return found

    def check_code(self):
        tags, named = self.tagged(), collections.defaultdict(set)
        for row in self.rows:
            for path, symbol in row.code:
                code = self.file(path)
                if code is None:
                    self.complain(row.line, f"no file {path}")
                    continue
                named[code] |= set(row.names)
                if code.suffix in CODE and not tags.get(code, set()) & set(row.names):
                    self.complain(row.line, f"{path} names none of the row's theorems in a comment `proved:`; python3 tests/house/proof_index.py tags . writes it")
                if symbol and not re.search(rf"\b{symbol}\b", code.read_text(encoding="utf-8")):
                    self.complain(row.line, f"no {symbol} in {path}")
        for code, names in tags.items():
            for name in sorted(names - named.get(code, set())):
                self.complain(0, f"{code.relative_to(self.root)} names {name}, whose row does not name the file")
        for row in self.rows:
            for claims, report in re.findall(r"claims? ([\w`, -]+?) of (reports/[\w-]+)\.md", row.used):
                path = self.root / f"{report}.json"
                ids = {str(f.get("id")) for f in json.loads(path.read_text(encoding="utf-8"))["findings"]} if path.exists() else set()
                for claim in re.findall(r"[\w-]+", claims.replace(" and ", " ")):
                    if claim not in ids:
                        self.complain(row.line, f"no finding {claim} in {report}.json")

    def check_tests(self):
        for row in self.rows:
            if re.search(r"no test: \S", row.tests):
                continue
            tests = re.findall(r"`([^`]+)`", row.tests)
            if not tests:
                self.complain(row.line, "neither a test nor 'no test: reason'")
            for test in tests:
                path, _, name = test.partition(": ")
                if not (self.root / path).is_file():
                    self.complain(row.line, f"no test file {path}")
                elif not name or not re.search(rf"\b{re.escape(name)}\b", (self.root / path).read_text(encoding="utf-8")):
                    self.complain(row.line, f"no test {name} in {path}")

    def check_words(self, write):
        """The words of the index, beside the statements that Coq printed."""
        words = {}
        for row in self.rows:
            for name in row.names:
                words[name] = {"words": row.words, "used by": row.used, "not claimed": row.not_claimed}
        for path in sorted(kept.folder(self.root).glob("*.txt")):
            theory = path.stem
            entries = kept.read(self.root, theory)
            for entry in entries.values():
                now = {key: value for key, value in words.pop(entry.path, {}).items() if value}
                if write:
                    entry.words = now
                elif entry.words != now:
                    self.complain(0, f"the index says of {entry.path} {now},\n  and proofs/audit/statements/{path.name} has {entry.words}")
            if write and entries:
                kept.write(self.root, theory, entries)
        for name in () if write else words:
            self.complain(0, f"{name} is not in proofs/audit/statements; proofs/check.sh audit writes it (needs Coq)")


HEADING = "// Theorems behind this file, by their names in proofs/README.md."


def write_tags(index):
    """The comment at the end of each code file that a row names; one that no row names loses it."""
    files = {code: [] for code in index.tagged()}
    for row in index.rows:
        for path, _ in row.code:
            code = index.file(path)
            if code is not None and code.suffix in CODE and row.names[0] not in files.setdefault(code, []):
                files[code].append(row.names[0])
    for code, names in files.items():
        text = code.read_text(encoding="utf-8").split("\n" + HEADING)[0].rstrip("\n") + "\n"
        if names:
            lines = textwrap.wrap(", ".join(names), 130, initial_indent="// proved: ", subsequent_indent="// proved: ")
            text += "\n" + "\n".join([HEADING, *lines]) + "\n"
        if text != code.read_text(encoding="utf-8"):
            code.write_text(text, encoding="utf-8")


def main():
    verb, root = sys.argv[1:]
    index = Index(root)
    if verb == "tags":
        write_tags(index)
        return 0
    if verb == "check":
        index.check_names()
        index.check_code()
        index.check_tests()
        index.bad += kept.constants(index.root)
    index.check_words(verb == "write")
    if any(text.startswith("the index says of") for text in index.bad):
        index.complain(0, "where the words are right and the statement under them says so: python3 tests/house/proof_index.py write .")
    print("\n".join(index.bad) or f"{sum(len(row.names) for row in index.rows)} statements in {len(index.rows)} rows")
    return 1 if index.bad else 0


if __name__ == "__main__":
    sys.exit(main())
