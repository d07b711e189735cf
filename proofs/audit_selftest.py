# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""audit_selftest.py SOURCE BUILT: the audit and the index see edits that a reader might not, planted in copies.

SOURCE is the repository, BUILT/theories its compiled theories. The edits of a theory go into one copy of it, which is compiled again,
alone: every one of them compiles (a lie that Coq refuses needs no audit), and each must be refused for its own reason. Edits of the
index and of the constants are tried one at a time; without an edit both pass."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE, BUILT = (pathlib.Path(path).resolve() for path in sys.argv[1:])
RADIUS, CONSTANTS, README = "theories/float/oracle_radius.v", "constants.txt", "README.md"


class Unsound(Exception):
    pass


def replaced(old, new):
    """The one place of a text that says `old` says `new`."""
    def edit(text):
        if text.count(old) != 1:
            raise Unsound(f"no one place to plant at: {old}")
        return text.replace(old, new)
    return edit


def theorem(name, premise="", conclusion="", proof="{}"):
    """A theorem with a premise before the others, or a weaker conclusion."""
    def edit(text):
        found = re.search(rf"Theorem {name} (.*?) : (.*?)\nProof\.\n(.*?)\nQed\.", text, re.S)
        if not found:
            raise Unsound(f"no theorem {name} to plant in")
        said = f"{premise}{found[2].removesuffix('.')}{conclusion}."
        return f"{text[:found.start()]}Theorem {name} {found[1]} : {said}\nProof.\n{proof.format(found[3])}\nQed.{text[found.end():]}"
    return edit


def section(declaration, name, proof):
    """1 = 2, by what a section declares."""
    said = f"\nSection Of_{name}.\n{declaration}\nTheorem {name} : 1 = 2.\nProof. {proof} Qed.\nEnd Of_{name}.\n"
    return lambda text: text + said


def swapped(one, other):
    def edit(text):
        values = {name: re.search(rf"^{name} = (\S+) =", text, re.M)[1] for name in (one, other)}
        text = re.sub(rf"^{one} = \S+", f"{one} = {values[other]}", text, flags=re.M)
        return re.sub(rf"^{other} = \S+", f"{other} = {values[one]}", text, flags=re.M)
    return edit


def row(name, column, new):
    """One cell of the index, in the row that begins with this name."""
    def edit(text):
        lines = text.splitlines()
        at = next(n for n, line in enumerate(lines) if line.startswith(f"| `{name}`"))
        cells = lines[at].replace("\\|", "\0").split("|")
        cells[column + 1] = f" {new(cells[column + 1].strip())} "
        lines[at] = "|".join(cells).replace("\0", "\\|")
        return "\n".join(lines) + "\n"
    return edit


EVERY = "forall P : Prop, P"
# What is planted in one theory: edit, what its refusal says.
IN_A_THEORY = {
    "output_radius supposes K = O": (theorem("output_radius", "K = O -> ", proof="intros _.\n{}"), "output_radius is not what"),
    "state_radius, or True": (
        theorem("state_radius", conclusion=" \\/ True", proof="right; exact I."), "state_radius: its conclusion holds"),
    "another step is exact": (
        replaced("d i + k i * (b * (v - dot K k d)).", "d i + k i * (b * (v - dot K k d)) + 0."), "exact_step is not what"),
    "a Variable that is False": (section("Variable cheat : False.", "one", "destruct cheat."), "one supposes the proposition cheat"),
    "a Hypothesis that is False": (section("Hypothesis lie : False.", "two", "destruct lie."), "two: its premises contradict"),
    "a Variable of every proposition": (
        section(f"Variable cheat : {EVERY}.", "three", "apply cheat."), "three supposes the proposition cheat"),
    "a Context of every proposition": (
        section(f"Context (trick : {EVERY}).", "four", "apply trick."), "four supposes the proposition trick"),
    "a Hypothesis of every proposition": (section(f"Hypothesis lie : {EVERY}.", "five", "apply lie."), "five: its premises contradict"),
    "a Variable that is the claim": (
        section("Variables (n : nat) (swindle : 1 = 2).", "six", "exact swindle."), "six supposes the proposition swindle"),
    "a theorem that nobody read": (lambda text: text + "\nTheorem seven : 1 = 1.\nProof. reflexivity. Qed.\n", "seven is not what"),
    "a declaration outside of a section": (lambda text: text + "\nVariable eight : 1 = 2.\n", "eight is not what"),
}
# What is planted elsewhere: file under proofs, edit, what its refusal says.
ELSEWHERE = {
    "two constants swapped": (CONSTANTS, swapped("sigmoid_one_bf16", "sigmoid_below_one_bf16"), "sigmoid_one_bf16 = 6.21875, but Coq has"),
    "constants of two rules swapped": (CONSTANTS, swapped("limit_rk3", "limit_rk4"), "limit_rk3 = 2.785"),
    "a constant zeroed": (
        CONSTANTS, lambda text: re.sub(r"^radius_slack = \S+", "radius_slack = 0", text, flags=re.M), "radius_slack = 0, but"),
    "a constant deleted": (CONSTANTS, lambda text: re.sub(r"^limit_rk2 = .*\n", "", text, flags=re.M), "limit_rk2 stands in theories/code"),
    "a constant of no theory": (
        CONSTANTS, lambda text: text + "limit_rk5 = 2 = deltaproof.code.constants.limit_rk2_is_the_end\n",
        "limit_rk5 stands in proofs/constants.txt alone"),
    "a constant with the theorem of another": (
        CONSTANTS, replaced("constants.limit_rk2_is_the_end", "constants.limit_euler_is_the_end"), "is no statement about limit_rk2"),
    "false words in the index": (
        README, row("algebra.non_expansive.step_non_expansive_iff", 1, lambda words: words.replace("exactly if", "if")),
        "step_non_expansive_iff"),
    "a false bound in the index": (
        README, row("float.formats.bf16_relative_error", 1, lambda words: words.replace("257", "512")), "bf16_relative_error"),
    "a wrong file in 'used by'": (
        README, row("algebra.wy.wy_state", 2, lambda _: "`number/format.hpp`"), "number/format.hpp names none of the row's theorems"),
    "a wrong symbol in 'used by'": (
        README, row("ode.stability.euler_limit", 2, lambda _: "`rule/rules.hpp: no_such_thing`"), "no no_such_thing in rule/rules.hpp"),
    "a claim that no report makes": (
        README, row("algebra.rank_one.step_determinant", 2, lambda _: "claim no-such-claim of reports/horizon.md"),
        "no claim no-such-claim"),
    "a gap no longer named": (README, row("float.oracle_radius.read_line", 4, lambda _: ""), "read_line"),
}


def copy_of_proofs(folder):
    """The repository by links, with a copy of proofs/ to plant in."""
    root = folder / "root"
    root.mkdir(parents=True)
    for name in ("include", "src", "reports", "tests"):
        os.symlink(SOURCE / name, root / name)
    shutil.copytree(SOURCE / "proofs", root / "proofs", ignore=shutil.ignore_patterns("__pycache__"))
    return root


def plant(root, path, change):
    file = root / "proofs" / path
    before = file.read_text(encoding="utf-8")
    after = change(before)
    if before == after:
        raise Unsound(f"nothing changes in {path}")
    file.write_text(after, encoding="utf-8")


def run(*command, cwd=None):
    done = subprocess.run(command, cwd=cwd, check=False, capture_output=True, encoding="utf-8")
    return done.returncode == 0, done.stdout + done.stderr


def judge(name, passed, text, reason):
    if passed:
        raise Unsound(f"unseen: {name}")
    if reason not in text:
        raise Unsound(f"{name}: refused, but not for its reason ({reason}):\n{text}")


def in_a_theory(folder):
    root, built = copy_of_proofs(folder), folder / "built"
    for edit, _ in IN_A_THEORY.values():
        plant(root, RADIUS, edit)
    (built / "theories").mkdir(parents=True)
    for theories in (BUILT / "theories").iterdir():
        (built / "theories" / theories.name).mkdir()
        for file in theories.iterdir():
            if not RADIUS.startswith(f"theories/{theories.name}/{file.name.split('.')[0]}."):
                os.symlink(file, built / "theories" / theories.name / file.name)
    shutil.copy(root / "proofs" / RADIUS, built / RADIUS)
    passed, text = run("coqc", "-q", "-w", "none", "-Q", "theories", "deltaproof", RADIUS, cwd=built)
    if not passed:
        raise Unsound(f"the planted edits do not compile:\n{text}")
    passed, text = run(sys.executable, "-B", SOURCE / "proofs/audit.py", "check", root, built, "float.oracle_radius")
    for name, (_, reason) in IN_A_THEORY.items():
        judge(name, passed, text, reason)


def elsewhere(folder):
    index = (sys.executable, "-B", SOURCE / "tests/house/proof_index.py", "check")
    passed, text = run(*index, copy_of_proofs(folder / "0"))
    if not passed:
        raise Unsound(f"the index is refused without an edit:\n{text}")
    for number, (name, (path, edit, reason)) in enumerate(ELSEWHERE.items(), 1):
        root = copy_of_proofs(folder / str(number))
        plant(root, path, edit)
        judge(name, *run(*index, root), reason)


def main():
    with tempfile.TemporaryDirectory() as folder:
        in_a_theory(pathlib.Path(folder) / "theory")
        elsewhere(pathlib.Path(folder))
    print(f"proofs: {len(IN_A_THEORY) + len(ELSEWHERE)} planted edits are refused, each for its reason")


if __name__ == "__main__":
    try:
        main()
    except Unsound as reason:
        sys.exit(f"proofs: FAILED: {reason}")
