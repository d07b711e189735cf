# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""audit.py check|write SOURCE BUILT [FOLDER.FILE ...]: what the compiled theories in BUILT/theories really say, against what is committed.

SOURCE is the repository, BUILT/theories holds a compiled copy of proofs/theories (proofs/check.sh makes it). Coq is asked, never the
source text, for all that a theory exports, and this fails unless
  - every statement and every definition, as Coq prints it with section variables generalised, is the one in
    proofs/audit/statements/FOLDER.FILE.txt, fully printed (implicit arguments, no notations) up to its hash;
  - no statement supposes a proposition that was declared as a Variable or in a Context, nor premises that contradict each other at
    sight, and none has a conclusion that holds at sight, whatever the premises;
  - the assumptions of all of it are those of proofs/audit/*.expected.
With files named, only their statements are compared. `write` writes what was found instead: read it
before it is committed. tests/house/proof_index.py compares the index and proofs/constants.txt with the
committed statements."""

import concurrent.futures
import hashlib
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import statements as kept  # noqa: E402

NOTATIONS = {
    "algebra": "From mathcomp Require Import all_ssreflect all_algebra.\nImport GRing.Theory.\nLocal Open Scope ring_scope.",
    "bridge": "From Coq Require Import Reals Lra.\nFrom mathcomp Require Import all_ssreflect all_algebra.\n"
    "Import GRing.Theory.\nLocal Open Scope ring_scope.",
    None: "From Coq Require Import Reals ZArith Lra Lia.\nOpen Scope R_scope.",
}

# What a statement supposes, by the names its binders have; whether that is contradictory or the rest void at sight.
TACTICS = """
Ltac suppositions := repeat match goal with H : ?P |- _ =>
  let s := type of P in lazymatch s with Prop => idtac "@supposes" H | _ => idtac end; first [clear H | revert H; fail 1] end.
Ltac contradiction_at_sight := exfalso; solve [ contradiction | discriminate | congruence
  | match goal with H : forall P : Prop, P |- _ => exact (H False) end
  | match goal with H : forall P : Type, P |- _ => exact (H False) end
  | match goal with H : ?A -> False |- _ => apply H; exact I end ].
Ltac void_at_sight := lazymatch goal with
  | |- True => exact I
  | |- ?P -> ?P => exact (fun H => H)
  | |- _ \\/ _ => first [left; void_at_sight | right; void_at_sight]
  | |- _ /\\ _ => split; void_at_sight
  end.
Ltac probe := intros;
  (tryif (assert False by (timeout 5 contradiction_at_sight)) then idtac "@contradictory" else idtac);
  (tryif (assert_succeeds (void_at_sight)) then idtac "@void" else idtac);
  suppositions.
"""


AT_SIGHT = {"contradictory": "its premises contradict each other", "void": "its conclusion holds whatever is supposed"}


class Refused(Exception):
    pass


def coq(built, text, name):
    """The output of coqc on `text`."""
    folder = built / "audit"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.v").write_text(text, encoding="utf-8")
    run = subprocess.run(["coqc", "-q", "-w", "none", "-Q", "theories", "deltaproof", f"audit/{name}.v"], cwd=built, check=False,
                         capture_output=True, encoding="utf-8")
    if run.returncode != 0:
        raise Refused(f"the audit {name} does not compile:\n{run.stderr}")
    return run.stdout


def declared(built, folder, file):
    """Names that the .glob of a theory says it declares, in order."""
    glob = built / "theories" / folder / f"{file}.glob"
    kinds = {"prf", "def", "ind", "rec", "inst", "ax", "coe", "class", "prog", "variant", "corec", "scheme", "meth", "canonstruc"}
    names = []
    for line in glob.read_text(encoding="utf-8").splitlines():
        found = re.match(r"^(\w+) \d+:\d+ (\S+) (\S+)$", line)
        if found and found[1] in kinds and found[2] == "<>" and found[3] not in names:
            names.append(found[3])
    return names


def ask(built, folder, files):
    """For every file: its names with statement or definition, hash, and what it supposes."""
    head = NOTATIONS.get(folder, NOTATIONS[None]) + "\nSet Printing Width 130. Set Printing Depth 100000.\n"
    head += "".join(f"From deltaproof.{folder} Require {file}.\n" for file in files)
    mark = 'Goal True. idtac "@@ {}". Abort.\n'
    first = head
    names = {file: declared(built, folder, file) for file in files}
    for file in files:
        first += mark.format(f"search {file}") + f"Search _ inside deltaproof.{folder}.{file}.\n"
        first += "".join(mark.format(f"about {file} {name}") + f"About deltaproof.{folder}.{file}.{name}.\n" for name in names[file])
    kinds = {}
    for title, body in sections(coq(built, first, f"{folder}_names")):
        what, file, *rest = title.split()
        if what == "search":
            unknown = {line.split(":")[0].split(".")[-1] for line in body.splitlines() if re.match(r"^[A-Za-z_]\S*:", line)
                       and line.split(":")[0].count(".") <= 1}
            hidden = sorted(u for u in unknown if u not in names[file])
            kinds[file, "hidden"] = hidden
        else:
            inductive = "Expands to: Inductive" in body
            kinds[file, rest[0]] = "type" if inductive else "definition" if " is transparent" in body else "statement"
    second = head + TACTICS
    for file in files:
        for name in names[file]:
            path = f"deltaproof.{folder}.{file}.{name}"
            show = f"Check @{path}." if kinds[file, name] == "statement" else f"Print {path}."
            second += mark.format(f"{kinds[file, name]} {file} {name}") + show + "\n"
            second += mark.format(f"full {file} {name}") + f"Set Printing All. Set Printing Width 100000.\n{show}\n"
            second += "Unset Printing All. Set Printing Width 130.\n"
            if kinds[file, name] == "statement":
                second += mark.format(f"premises {file} {name}")
                second += f"Goal True. let T := type of @{path} in assert T. probe. Abort.\n"
    told = {file: {} for file in files}
    for title, body in sections(coq(built, second, f"{folder}_statements")):
        what, file, name = title.split()
        entry = told[file].setdefault(name, kept.Entry(f"{folder}.{file}.{name}"))
        if what == "full":
            entry.hash = hashlib.sha256(" ".join(body.split()).encode()).hexdigest()[:16]
        elif what == "premises":
            entry.supposes = re.findall(r"^@supposes (\S+)", body, re.M)
            entry.faults = re.findall(r"^@(contradictory|void)", body, re.M)
        else:
            entry.kind, entry.text = what, strip_name(body, what)
    return told, kinds


def sections(output):
    parts = re.split(r"^@@ (.*)$", output, flags=re.M)[1:]
    return list(zip(parts[::2], parts[1::2]))


def strip_name(body, kind):
    """The statement alone, the definition as printed."""
    text = body.strip("\n")
    if kind == "statement":
        text = re.sub(r"^\S+\s*:\s*", "", text, count=1)
        text = re.sub(r"\n     :", "\n:", text)
    else:
        text = text.split("\n\nArguments ")[0]
    return text.strip()


def variables(source):
    """Names declared by Variable, Variables or Context: data, never a proposition."""
    text = re.sub(r"\(\*.*?\*\)", " ", source.read_text(encoding="utf-8"), flags=re.S)
    names = set()
    for sentence in re.findall(r"(?:^|\.\s|\s)(?:Variables?|Context)\s+([^.]*(?:\.(?=\S)[^.]*)*)\.", text):
        for group in re.findall(r"[({\[`!]+([^:(){}\[\]]+):", sentence) or [sentence.split(":")[0]]:
            names.update(group.split())
    return names


# Folders whose assumptions are printed at once: Coq walks what they share one time. The first word is the committed file's name.
GROUPS = {"algebra": ["algebra"], "reals": ["ode", "float", "golden", "code"], "bridge": ["bridge"]}


def assumptions(source, built, group, told, write):
    """Of every statement and definition of a group of folders, in one tuple."""
    names = [(folder, file, name) for folder in GROUPS[group] for file in told.get(folder, {})
             for name, entry in told[folder][file].items() if entry.kind != "type"]
    if not names:
        return
    text = "".join(f"From deltaproof.{folder} Require {file}.\n" for folder in GROUPS[group] for file in told.get(folder, {}))
    every = ", ".join(f"@deltaproof.{folder}.{file}.{name}" for folder, file, name in names)
    text += f"Definition audited := ({every}).\nSet Printing Width 100000.\nPrint Assumptions audited.\n"
    found = "\n".join(sorted(coq(built, text, group).splitlines())) + "\n"
    expected = source / "proofs" / "audit" / f"{group}.expected"
    if write:
        expected.write_text(found, encoding="utf-8")
    elif not expected.exists() or expected.read_text(encoding="utf-8") != found:
        raise Refused(f"the assumptions of {', '.join(GROUPS[group])} are not those of proofs/audit/{group}.expected:\n{found}")
    print(f"proofs: {', '.join(GROUPS[group])}: {found.count(' : ')} assumptions, as expected", flush=True)


def audit_folder(source, built, folder, files, write):
    """What these theories of a folder export, and what is wrong with it."""
    told, kinds = ask(built, folder, files)
    wrong = []
    for file in files:
        never = variables(source / "proofs" / "theories" / folder / f"{file}.v")
        types = {name: entry for name, entry in told[file].items() if entry.kind == "type"}
        made = {name + end for name in types for end in ("_ind", "_rec", "_rect", "_sind")}
        made |= {word for entry in types.values() for word in re.findall(r"[A-Za-z_][\w']*", entry.text)}
        wrong += [f"{folder}.{file} exports {name}, which its text does not declare plainly"
                  for name in kinds[file, "hidden"] if name not in made]
        for entry in told[file].values():
            wrong += [f"{entry.path} supposes the proposition {premise}, declared as a Variable: a Hypothesis it must be called"
                      for premise in entry.supposes if premise in never]
            wrong += [f"{entry.path}: {AT_SIGHT[fault]}" for fault in entry.faults]
        wrong += kept.differences(source, f"{folder}.{file}", told[file], write)
    count = sum(entry.kind == "statement" for file in told.values() for entry in file.values())
    others = sum(len(file) for file in told.values()) - count
    wrong += [] if count else [f"no statement in theories/{folder}"]
    if not wrong:
        print(f"proofs: {folder}: {count} statements and {others} definitions, as committed", flush=True)
    return told, wrong


def main():
    verb, source, built, *only = sys.argv[1:]
    source, built, write = pathlib.Path(source), pathlib.Path(built), verb == "write"
    folders = {}
    for theory in sorted((source / "proofs" / "theories").glob("*/*.v")):
        if not only or f"{theory.parent.name}.{theory.stem}" in only:
            folders.setdefault(theory.parent.name, []).append(theory.stem)
    unknown = set(folders) - {folder for group in GROUPS.values() for folder in group}
    if unknown:
        raise Refused(f"proofs/theories/{min(unknown)} is audited by no group")
    with concurrent.futures.ThreadPoolExecutor(2) as two:
        jobs = {folder: two.submit(audit_folder, source, built, folder, files, write) for folder, files in folders.items()}
        results = {folder: job.result() for folder, job in jobs.items()}
        wrong = [text for _, texts in results.values() for text in texts]
        if wrong:
            raise Refused("\n".join(wrong))
        told = {folder: result for folder, (result, _) in results.items()}
        if not only:
            for job in [two.submit(assumptions, source, built, group, told, write) for group in GROUPS]:
                job.result()


if __name__ == "__main__":
    try:
        main()
    except Refused as reason:
        sys.exit(f"proofs: FAILED: {reason}")
