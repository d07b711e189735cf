# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""The committed statements, proofs/audit/statements/FOLDER.FILE.txt: what Coq printed of every name of a theory, its hash when
printed in full, and beside it the words of the index. An entry is

    statement folder.file.name [hash]
    words: what the index says it says
    used by: what the index says relies on it
    not claimed: ...
      the statement, indented

Lines of words stand only where the index (proofs/README.md) has a row for the name."""

import difflib
import re

WORDS = ("words", "used by", "not claimed")


class Entry:
    def __init__(self, path):
        self.path = path
        self.kind = self.text = self.hash = ""
        self.supposes, self.faults = [], []
        self.words = {}

    def __str__(self):
        lines = [f"{self.kind} {self.path} [{self.hash}]"]
        lines += [f"{name}: {self.words[name]}" for name in WORDS if self.words.get(name)]
        return "\n".join(lines + ["  " + line for line in self.text.splitlines()]) + "\n"

    def same_statement(self, other):
        return (self.kind, self.hash, self.text) == (other.kind, other.hash, other.text)


def folder(source):
    return source / "proofs" / "audit" / "statements"


def read(source, theory):
    """Entries of one theory by name, in order; none where nothing is committed."""
    path, entries, entry = folder(source) / f"{theory}.txt", {}, None
    if not path.exists():
        return entries
    for line in path.read_text(encoding="utf-8").splitlines():
        head = re.match(r"^(statement|definition|type) (\S+) \[(\w+)\]$", line)
        word = re.match(r"^(words|used by|not claimed): (.*)$", line)
        if head:
            entry = Entry(head[2])
            entry.kind, entry.hash = head[1], head[3]
            entries[head[2].split(".")[-1]] = entry
        elif entry is not None and word:
            entry.words[word[1]] = word[2]
        elif entry is not None and line.startswith("  "):
            entry.text += ("\n" if entry.text else "") + line[2:]
    return entries


def write(source, theory, entries):
    folder(source).mkdir(exist_ok=True)
    text = "\n".join(str(entry) for entry in entries.values())
    (folder(source) / f"{theory}.txt").write_text(text, encoding="utf-8")


def differences(source, theory, found, writes):
    """What Coq says against what is committed, in words; `writes` commits it instead, with the words that were there."""
    committed = read(source, theory)
    for name, entry in found.items():
        entry.words = committed[name].words if name in committed else {}
    if writes:
        write(source, theory, found)
        return []
    wrong = []
    for name in list(found) + [name for name in committed if name not in found]:
        if name in found and name in committed and found[name].same_statement(committed[name]):
            continue
        before = str(committed[name]).splitlines() if name in committed else []
        now = str(found[name]).splitlines() if name in found else []
        shown = "\n".join(list(difflib.unified_diff(before, now, "committed", "Coq", lineterm="", n=100))[2:])
        wrong.append(f"{theory}.{name} is not what proofs/audit/statements/{theory}.txt has; if that is meant, run proofs/check.sh audit\n"
                     f"and read the difference:\n{shown}")
    return wrong


def constants(source):
    """What is wrong with proofs/constants.txt: it has the names and values of theories/code/constants.v and theorems that speak of them."""
    entries, listed, wrong = read(source, "code.constants"), {}, []
    here = {name: entry for name, entry in entries.items() if entry.kind == "definition"}
    for line in (source / "proofs" / "constants.txt").read_text(encoding="utf-8").splitlines():
        parts = line.split("#")[0].strip().split(" = ")
        if parts == [""]:
            continue
        if len(parts) != 3 or parts[0] in listed:
            wrong.append(f"proofs/constants.txt: not `name = value = theorem`, or a name twice: {line}")
            continue
        listed[parts[0]] = parts[1:]
    for name in sorted(set(here) ^ set(listed)):
        wrong.append(f"{name} stands in {'theories/code/constants.v' if name in here else 'proofs/constants.txt'} alone")
    for name in sorted(set(here) & set(listed)):
        value, path = listed[name]
        printed = re.fullmatch(rf"constants\.{name} = (\S+)\s*: R", " ".join(here[name].text.split()))
        if not printed or printed[1] != value:
            wrong.append(f"proofs/constants.txt: {name} = {value}, but Coq has {here[name].text}")
        theorem = entries.get(path.removeprefix("deltaproof.code.constants."))
        if theorem is None or theorem.kind != "statement" or not re.search(rf"\bconstants\.{name}\b", theorem.text):
            wrong.append(f"proofs/constants.txt: {path} is no statement about {name}")
    return wrong
