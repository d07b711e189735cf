#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""Makes first-order mutants of scan/ and of the inverses and asks whether the identities modulo a prime notice.

Each mutant changes one operator, sign, index, bound or order in one header; identities_mod_p.cpp is built against it and
run. A mutant is stillborn (does not compile), killed (an identity fails, the program aborts or does not end), listed in
equivalent.txt with the reason why no test can tell it from the original, or a survivor, which is printed in the form that
equivalent.txt has. Exit 1 if fewer than 99 % of the mutants that are neither stillborn nor listed die, or if a listed one
is no mutant any more or dies after all. Every mutant is asked again with the inputs a usual test has (--control of the
program), which shows what such a test would have missed.

  mutate.py [--compiler clang++-19] [--only SUBSTRING] [--jobs N] [--list]

About 15 minutes on two cores.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "tests" / "mutants"
TARGETS = ["scan/sequence.hpp", "scan/recurrent.hpp", "scan/wy.hpp", "scan/chunkwise.hpp", "scan/adjoint.hpp", "scan/chunk_adjoint.hpp",
           "algebra/triangular.hpp"]

FLAGS = ["-std=c++20", "-O0", "-w", "-D_GLIBCXX_ASSERTIONS"]
# What every mutant includes and none changes, read once.
COMMON = ["algorithm", "array", "cmath", "cstdlib", "exception", "functional", "iostream", "limits", "map", "optional", "span", "string",
          "utility", "vector", "deltaproof/number/modular.hpp", "deltaproof/number/rounded.hpp", "deltaproof/number/random.hpp",
          "deltaproof/algebra/dot.hpp", "deltaproof/algebra/matrix.hpp", "deltaproof/rule/rules.hpp"]

SIMPLE = [  # operator, pattern, replacement
    ("bound", r" < ", " <= "), ("bound", r" <= ", " < "), ("bound", r" > ", " >= "), ("bound", r" >= ", " > "),
    ("operator", r" < ", " > "), ("operator", r" == ", " != "), ("operator", r" != ", " == "),
    ("operator", r" \+ ", " - "), ("operator", r" - ", " + "), ("operator", r" \* ", " + "), ("operator", r" / ", " * "),
    ("operator", r" % ", " / "), ("operator", r" \+= ", " -= "), ("operator", r" -= ", " += "), ("operator", r" \*= ", " += "),
    ("operator", r" && ", " || "), ("operator", r" \|\| ", " && "), ("operator", r"(?<=[(&| ])!(?=[\w(])", ""),
    ("sign", r"(?<=[(=,] )-(?=[\w(])", ""), ("sign", r"(?<=[(])-(?=[\w(])", ""), ("sign", r"(?<=return )-(?=[\w(])", ""),
    ("sign", r"(?<= = )(?=dot<|stored<|lift<)", "-"),
    ("bound", r"(?<![\w.])0(?![\w.])", "1"), ("bound", r"(?<![\w.])1(?![\w.])", "0"), ("bound", r"(?<![\w.])1(?![\w.])", "2"),
    ("bound", r"(?<![\w.])4(?![\w.])", "3"), ("operator", r"\btrue\b", "false"), ("operator", r"\bfalse\b", "true"),
    ("operator", r"\bif \((?!constexpr)", "if (!"),
    ("operator", r"one<", "zero<"), ("operator", r"zero<", "one<"),
    ("index", r"(\b[\w.]+(?:\([^()]*\))?) \+ ([\w.]+(?:\([^()]*\))?)", r"\1"), ("index", r"(\b[\w.]+(?:\([^()]*\))?) \+ ([\w.]+(?:\([^()]*\))?)", r"\2"),
    ("index", r"(\b[\w.]+(?:\([^()]*\))?) - ([\w.]+(?:\([^()]*\))?)", r"\1"),
    ("order", r"(\b[\w.]+(?:\([^()]*\))?) - ([\w.]+(?:\([^()]*\))?)", r"\2 - \1"),
    ("order", r"\((\w+), (\w+)\)", r"(\2, \1)"),
    ("order", r"std::min\(", "std::max("),
    ("order", r" \? ([^:?;]+) : ([^:?;,]+)(?=[;,])", r" ? \2 : \1"),
    ("index", r"\bfirst\b(?! \+)(?=[),;])", "first + 1"),
]


def masked(text):
    """The text with comments and literals blanked, so that columns stay."""
    blank = lambda m: re.sub(r"[^\n]", "\x00", m.group(0))
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', blank, text, flags=re.S)


def skipped(line):
    s = line.strip("\x00 ")
    # What an error says is held by unit tests of its words.
    return not s or "std::to_string(" in s or s.startswith(("#", "template", "using ", "static_assert", "namespace", "requires", "inline constexpr", "struct ", "class ")) or s in "{}"


def mutants_of(name):
    text = (ROOT / "include/deltaproof" / name).read_text()
    lines, shadow = text.split("\n"), masked(text).split("\n")
    found = {}
    for number, (line, code) in enumerate(zip(lines, shadow)):
        if skipped(code):
            continue
        for operator, pattern, replacement in SIMPLE:
            for match in re.finditer(pattern, code):
                new = line[: match.start()] + match.expand(replacement) + line[match.end():]
                if replacement == "if (!":  # negate the whole condition
                    end = closing(code, match.end() - 1)
                    if end is None:
                        continue
                    new = line[: match.start()] + "if (!(" + line[match.end(): end] + "))" + line[end + 1:]
                if new != line and "\x00" not in new:
                    found[(number, new)] = operator
        after = shadow[number + 1] if number + 1 < len(shadow) else ""
        plain = re.compile(r"^(\s+)[\w\[\](). +,>-]+(?: = .*|\(.*\)|\+\+);$")
        if plain.match(code) and plain.match(after) and plain.match(code).group(1) == plain.match(after).group(1) \
                and not re.match(r"\s+(return|const|using|break)\b", code) and not re.match(r"\s+(return|const|using|break)\b", after):
            found[(number, lines[number + 1] + "\n" + line)] = "order"
    for (number, new), operator in sorted(found.items()):
        changed = list(lines)
        if "\n" in new:
            changed[number: number + 2] = new.split("\n")
        else:
            changed[number] = new
        original = "\n".join(lines[number: number + 1 + new.count("\n")])
        yield {"file": name, "line": number + 1, "operator": operator, "old": original, "new": new, "text": "\n".join(changed)}


def closing(code, opening):
    depth = 0
    for i in range(opening, len(code)):
        depth += (code[i] == "(") - (code[i] == ")")
        if depth == 0:
            return i
    return None


def key(mutant):
    trim = lambda s: " // ".join(part.strip() for part in s.split("\n"))
    return mutant["file"], trim(mutant["old"]), trim(mutant["new"])


def read_equivalents():
    listed, reason, entry = {}, "", []
    for line in (HERE / "equivalent.txt").read_text().splitlines():
        if line.startswith("# "):
            reason = line[2:]
        elif line.startswith("@ "):
            entry = [line[2:]]
        elif line.startswith("- "):
            entry = entry[:1] + [line[2:]]
        elif line.startswith("+ "):
            listed[(entry[0], entry[1], line[2:])] = reason
    return listed


def build_and_run(mutant, compiler, folder, limit):
    place = pathlib.Path(folder) / str(mutant["id"])
    common = pathlib.Path(folder) / "common.hpp"
    header = place / "deltaproof" / mutant["file"]
    header.parent.mkdir(parents=True)
    header.write_text(mutant["text"])
    binary = place / "identities"
    command = [compiler, *FLAGS, "-include", str(common), f"-I{place}", f"-I{ROOT}/include", f"-I{ROOT}/tests",
               str(HERE / "identities_mod_p.cpp"), "-o", str(binary)]
    if subprocess.run(command, capture_output=True).returncode != 0:
        return "stillborn", "", ""
    outcome = []
    for arguments in ([], ["--control"]):
        if outcome == [""]:
            outcome.append("")  # what all inputs do not show, fewer do not
            continue
        try:
            run = subprocess.run([str(binary), *arguments], capture_output=True, text=True, timeout=limit, preexec_fn=bounded)
            outcome.append("" if run.returncode == 0 else (run.stdout.strip() or f"exit {run.returncode}"))
        except subprocess.TimeoutExpired:
            outcome.append(f"no end within {limit:.0f} s")
    binary.unlink()
    return ("killed" if outcome[0] else "survived"), outcome[0], outcome[1]


def bounded():
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", default="clang++-19")
    parser.add_argument("--only", default="", help="mutants whose file, line number or text contains this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--list", action="store_true", help="list the mutants and end")
    options = parser.parse_args()

    mutants = [m for name in TARGETS for m in mutants_of(name)]
    for number, mutant in enumerate(mutants):
        mutant["id"] = number
    listed = read_equivalents()
    stale = set(listed) - {key(m) for m in mutants}
    if options.only:
        mutants = [m for m in mutants if options.only in f'{m["file"]}:{m["line"]}: {m["old"]} {m["new"]}']
    if options.list:
        for m in mutants:
            print(f'{m["file"]}:{m["line"]} {m["operator"]}\n- {m["old"].strip()}\n+ {m["new"].strip()}')
        return 0

    with tempfile.TemporaryDirectory() as folder:
        common = pathlib.Path(folder) / "common.hpp"
        common.write_text("".join(f"#include <{name}>\n" for name in COMMON))
        subprocess.run([options.compiler, *FLAGS, f"-I{ROOT}/include", "-x", "c++-header", str(common), "-o", f"{common}.gch"], check=True)
        original = {"file": TARGETS[0], "text": (ROOT / "include/deltaproof" / TARGETS[0]).read_text(), "id": "original"}
        start = time.monotonic()
        verdict, why, control = build_and_run(original, options.compiler, folder, 600)
        if verdict != "survived" or control:
            print(f"the headers as they are do not pass: {verdict} {why} {control}")
            return 1
        limit = 5 + 2 * (time.monotonic() - start)  # that was a compilation and two whole runs
        print(f"{len(mutants)} mutants of {', '.join(TARGETS)}", flush=True)
        results = []
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for done, (mutant, result) in enumerate(zip(mutants, pool.map(lambda m: build_and_run(m, options.compiler, folder, limit), mutants)), 1):
                results.append((mutant, *result))
                if result[0] == "survived" and key(mutant) not in listed:
                    print(f'survived: {mutant["file"]}:{mutant["line"]} {mutant["old"].strip()}  ->  {mutant["new"].strip()}', flush=True)
                if sys.stderr.isatty():
                    print(f"\r{done} of {len(mutants)}", end="", file=sys.stderr)

    counts, killers, missed, survivors, undead = {}, {}, {}, [], []
    for mutant, verdict, why, control in results:
        equivalent = key(mutant) in listed
        row = counts.setdefault(mutant["operator"], dict.fromkeys(("killed", "survived", "equivalent", "stillborn", "missed by control"), 0))
        if verdict == "survived" and equivalent:
            verdict = "equivalent"
        row[verdict] += 1
        if verdict == "killed":
            killer = why.split()[0]
            killers[killer] = killers.get(killer, 0) + 1
            if not control:
                row["missed by control"] += 1
                missed.setdefault(killer, []).append(mutant)
            if equivalent:
                undead.append(mutant)
        if verdict == "survived":
            survivors.append(mutant)

    print(f'\n{"":10}' + "".join(f"{name:>20}" for name in next(iter(counts.values()), {})))
    for operator, row in sorted(counts.items()):
        print(f"{operator:10}" + "".join(f"{n:20}" for n in row.values()))
    print("\nkilled by")
    for killer, n in sorted(killers.items(), key=lambda kv: -kv[1]):
        print(f"  {n:4}  {killer}" + (f", {len(missed[killer])} of them not by the inputs of a usual test" if killer in missed else ""))
    if missed:
        print("\nfaults that a usual test would have missed, one of each killer:")
        for killer, found in sorted(missed.items()):
            m = found[0]
            print(f'  {m["file"]}:{m["line"]} ({killer})\n    - {m["old"].strip()}\n    + {m["new"].strip()}')
    if survivors:
        print("\nsurvivors:")
        for m in survivors:
            print(f"# line {m['line']}, {m['operator']}")
            print("@ " + key(m)[0] + "\n- " + key(m)[1] + "\n+ " + key(m)[2])
    for m in undead:
        print(f"\nlisted as equivalent but killed:\n@ {key(m)[0]}\n- {key(m)[1]}\n+ {key(m)[2]}")
    for entry in sorted(stale):
        print("\nlisted as equivalent but no mutant any more:\n@ " + entry[0] + "\n- " + entry[1] + "\n+ " + entry[2])

    killed = sum(row["killed"] for row in counts.values())
    judged = killed + len(survivors)
    share = killed / judged if judged else 1
    print(f"\n{killed} of {judged} mutants die by identities alone ({100 * share:.2f} %); "
          f"{sum(r['equivalent'] for r in counts.values())} are equivalent, {sum(r['stillborn'] for r in counts.values())} do not compile")
    return 0 if share >= 0.99 and not undead and not stale else 1


if __name__ == "__main__":
    sys.exit(main())
