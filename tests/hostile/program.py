#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""program.py PROGRAM ROOT [SEED]: the program among hostile files, names, links, limits and command lines.

Every run must end by itself with exit code 0 to 3 (130 where it is interrupted), say what is wrong where it is 2, change no
input and leave nothing half written. What it must end with besides stands with each case.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

from box import LIMIT, PROGRAM, SANITIZED, fail, failures, hidden, judge, make_box, run, runs, snapshot, tensors

SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 1
CHECK = ["check", "p.safetensors", "r.safetensors", "--plan", "mine.toml", "--no-power"]
# A verb's command, the files that it reads, the options that name a file it writes.
VERBS = [
    (CHECK, ["p.safetensors", "r.safetensors", "mine.toml"], ["--json", "--junit", "--markdown"]),
    (["check", "suite.toml", "--no-power", "--baseline", "baseline.json"],
     ["suite.toml", "p.safetensors", "r.safetensors", "mine.toml", "baseline.json"], ["--json", "--junit", "--markdown"]),
    (["inspect", "p.safetensors"], ["p.safetensors"], ["--json", "--junit", "--markdown"]),
    (["emulate", "p.safetensors", "--plan", "mine.toml"], ["p.safetensors", "mine.toml"], ["-o", "-o out --json", "-o out --markdown"]),
    (["advise", "p.safetensors", "--recurrent-plan", "decode-fp32"], ["p.safetensors"], ["--json", "-o plans --json", "--markdown"]),
    (["oracle", "p.safetensors"], ["p.safetensors"], ["-o", "-o out --json", "-o out --junit"]),
    (["invariant", "prefix", "--whole", "p.safetensors", "r.safetensors", "--part", "p.safetensors", "bad.safetensors", "--plan", "mine.toml"],
     ["p.safetensors", "r.safetensors", "bad.safetensors", "mine.toml"], ["--json", "--markdown"]),
    (["invariant", "prefix", "--whole", "p.safetensors", "r.safetensors", "--parts-dir", "parts"],
     ["parts/1.problem.safetensors", "parts/1.result.safetensors"], ["--json"]),
    (["replay", "verdict.json"], ["verdict.json", "p.safetensors", "bad.safetensors", "mine.toml"], ["--json", "--junit", "--markdown"]),
    (["replay", "w"], ["w/verdict.json", "w/problem.safetensors", "w/result.safetensors", "w/plan.toml"], ["--json", "--markdown"]),
    (["shrink", "w"], ["w/verdict.json", "w/problem.safetensors"], ["--json", "--markdown"]),
    (["report", "p.safetensors", "r.safetensors", "--no-power"], ["p.safetensors", "r.safetensors"], ["-o pages --json", "-o pages --markdown"]),
    (["sweep", "campaign.toml"], ["campaign.toml"], ["-o fresh --json", "-o fresh --markdown"]),
    (["merge", "swept"], ["swept/campaign.json"], ["-o", "-o out --json"]),
]


def aliases(box, name):
    """Other names of the file `name`, each with what must be cleared away after."""
    path = pathlib.PurePosixPath(name)
    yield name, None
    yield "./" + name, None
    yield "sub/../" + name, None
    yield str(box / name), None
    yield "through/" + name, None
    for kind in ("soft", "hard", "chain"):
        link = box / f"{kind}-{path.name}"
        if kind == "hard":
            os.link(box / name, link)
        elif kind == "soft":
            link.symlink_to(box / name)
        else:
            (box / "first-link").symlink_to(name)
            link.symlink_to("first-link")
        yield link.name, link


def outputs_never_replace_inputs(box):
    for command, inputs, outputs in VERBS:
        for name in inputs:
            for number, (other, link) in enumerate(aliases(box, name)):
                before = snapshot(box)
                # All options by the name itself, then each spelling with one of them.
                for output in outputs if number == 0 else [outputs[number % len(outputs)]]:
                    args = [*command, *output.split(), other]
                    judge(" ".join(args), run(args, box), before, box, says=["is the file that is read"])
                if link is not None:
                    link.unlink()
                    (box / "first-link").unlink(missing_ok=True)


def outputs_never_replace_outputs(box):
    (box / "later").symlink_to("out")  # a link to what is not there yet
    before = snapshot(box)
    pairs = [("out", "out"), ("out", "./out"), ("out", "sub/../out"), ("out", str(box / "out")), ("out", "through/out"), ("out", "later")]
    gen = ["gen", "--T", "4", "--K", "2", "--V", "2", "--H", "1"]
    inverse = ["inverse", "--keys", "cos=0.9", "--beta", "1", "--method", "forward", "--format", "fp32", "--chunk", "4"]
    for first, second in pairs:
        for args in ([*CHECK, "--json", first, "--junit", second], ["inspect", "p.safetensors", "--markdown", first, "--json", second],
                     ["oracle", "p.safetensors", "-o", first, "--json", second], [*gen, "-o", first, "--json", second],
                     ["emulate", "p.safetensors", "--plan", "fp32", "-o", first, "--markdown", second],
                     [*inverse, "--json", first, "--junit", second], ["list", "rules", "--json", first, "--markdown", second],
                     ["explain", "exact", "--json", first, "--markdown", second],
                     ["gen", "--all", first, "--json", second], ["study", "gates", "-o", first, "--json", second],
                     ["report", "p.safetensors", "-o", first, "--json", second], [*CHECK, "--witness", first, "--json", second]):
            judge(" ".join(args), run(args, box), before, box, says=["nothing was done, name another one"])
    inside = [(["study", "gates", "-o", "sub"], ["gates.json", "gates.md", "gates-x.svg", "index.html", "README.md"]),
              (["report", "p.safetensors", "-o", "sub"], ["p.json", "p.md", "index.html", "README.md"]),
              (["gen", "--all", "sub"], ["suite.toml", "manifest.json", "README.txt", "x.problem.safetensors"]),
              ([*CHECK, "--witness", "sub"], ["verdict.json", "problem.safetensors", "README.txt"])]
    for command, names in inside:
        for name in names:
            for folder in ("sub/", "through/sub/./"):
                args = [*command, "--json", folder + name]
                judge(" ".join(args), run(args, box), before, box, says=["nothing was done, name another one"])
    (box / "later").unlink()
    # A page whose name is a link to an input.
    (box / "sub/index.html").symlink_to("../p.safetensors")
    before = snapshot(box)
    judge("a page linked to the problem", run(["report", "p.safetensors", "-o", "sub"], box), before, box, says=["is the file that is read"])
    (box / "sub/index.html").unlink()
    before = snapshot(box)
    for args in ([*CHECK, "--json", "v.json"], ["inspect", "p.safetensors"]):
        with open(box / ("v.json" if "v.json" in args else "p.safetensors"), "ab") as out:
            ended = subprocess.run([PROGRAM, *args], cwd=box, stdout=out, stderr=subprocess.PIPE, timeout=LIMIT)
        ended.stdout = b""
        (box / "v.json").unlink(missing_ok=True)
        judge("stdout into a file of the run: " + " ".join(args), ended, before, box, says=["stdout"])
    # What may be shared is: a device takes everything.
    ended = run([*CHECK, "--json", "/dev/null", "--junit", "/dev/null"], box)
    judge("two views into /dev/null", ended, before, box, codes=(0,))


def inputs_are_regular_files(box):
    os.mkfifo(box / "pipe.toml")
    (box / "zero.toml").symlink_to("/dev/zero")
    (box / "null.toml").symlink_to("/dev/null")
    (box / "folder.toml").mkdir()
    (box / "nowhere.toml").symlink_to("not-there")
    (box / "loop.toml").symlink_to("loop.toml")
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(box / "socket.toml"))
    before = snapshot(box)
    slots = [["check", "@"], ["check", "suite.toml", "--baseline", "@"], ["check", "p.safetensors", "r.safetensors", "--plan", "@"],
             ["check", "@", "r.safetensors"], ["check", "p.safetensors", "@", "--no-plan"], ["inspect", "@"], ["advise", "@"], ["replay", "@"],
             ["shrink", "@"], ["emulate", "@", "--plan", "fp32", "-o", "out"], ["emulate", "p.safetensors", "--plan", "@", "-o", "out"],
             ["oracle", "@", "-o", "out"], ["report", "@", "-o", "pages"], ["report", "p.safetensors", "@", "-o", "pages"],
             ["report", "p.safetensors", "r.safetensors", "--plan", "@", "-o", "pages"],
             ["invariant", "prefix", "--whole", "@", "r.safetensors", "--part", "p.safetensors", "r.safetensors"]]
    names = ["pipe", "zero", "null", "folder", "nowhere", "loop", "socket"]
    for slot in slots:
        for name in names:
            file = name + ".toml"
            args = [file if word == "@" else word for word in slot]
            judge(" ".join(args), run(args, box), before, box, says=[file])
    for name in names:
        for key in ("problem", "result", "plan"):
            case = {"problem": "p.safetensors", "result": "r.safetensors", "plan": "mine.toml", key: name + ".toml"}
            (box / "suite.toml").write_text("[[case]]\n" + "".join(f'{k} = "{v}"\n' for k, v in case.items()))
            before = snapshot(box)
            judge(f"a suite whose {key} is {name}", run(["check", "suite.toml", "--no-power"], box), before, box, says=[name + ".toml"])
    listening.close()


def deep_and_strange_texts(box):
    deep = "a." * 100000 + "a = 1\n"
    lists = "[" * 100000 + "]" * 100000
    for text in (deep, "[" + "a." * 100000 + "a]\n", "x = " + lists, "x = " + "{a=" * 100000 + "1" + "}" * 100000):
        (box / "deep.toml").write_text(text)
        before = snapshot(box)
        for args in (["check", "deep.toml"], ["check", "p.safetensors", "r.safetensors", "--plan", "deep.toml"],
                     ["emulate", "p.safetensors", "--plan", "deep.toml", "-o", "out"]):
            judge("deep TOML: " + " ".join(args), run(args, box), before, box, says=["deep.toml", "nests deeper than 64"])
    for text in (lists, '{"a":' * 100000 + "1" + "}" * 100000):
        (box / "deep.json").write_text(text)
        before = snapshot(box)
        for args in (["replay", "deep.json"], ["check", "suite.toml", "--baseline", "deep.json"]):
            judge("deep JSON: " + " ".join(args), run(args, box), before, box, says=["deep.json", "nests deeper than 64"])
    for key in ("problem", "result", "plan", "name"):
        case = {"problem": "p.safetensors", "result": "r.safetensors", "plan": "mine.toml", "name": "n"}
        case[key] += "\\u0000.toml"
        (box / "nul.toml").write_text("[[case]]\n" + "".join(f'{k} = "{v}"\n' for k, v in case.items()))
        before = snapshot(box)
        judge("a NUL in the " + key, run(["check", "nul.toml"], box), before, box, says=["nul.toml", "NUL"])
    large = box / "large.toml"
    large.write_text("")
    os.truncate(large, 1 << 40)
    before = None
    for args in (["check", "large.toml"], ["check", "p.safetensors", "r.safetensors", "--plan", "large.toml"], ["replay", "large.toml"],
                 ["check", "suite.toml", "--baseline", "large.toml"], ["inspect", "large.toml"], ["oracle", "large.toml", "-o", "out"]):
        judge("a terabyte of holes: " + " ".join(args), run(args, box), before, box, says=["large.toml"], untouched=False)
    large.unlink()


def empty_and_senseless_options(box):
    before = snapshot(box)
    emulate = ["emulate", "p.safetensors", "--plan", "fp32", "-o", "out"]
    for args in ([*CHECK, "--json", ""], [*CHECK, "--junit", ""], [*CHECK, "--markdown", ""], [*CHECK, "--witness", ""],
                 ["check", "suite.toml", "--baseline", ""], ["check", "", "r.safetensors"], ["check", "p.safetensors", ""],
                 ["inspect", ""], ["advise", ""], ["advise", "p.safetensors", "-o", ""], ["oracle", "p.safetensors", "-o", ""], ["gen", "-o", ""], ["gen", "--all", ""],
                 ["emulate", "p.safetensors", "--plan", "fp32", "-o", ""], ["replay", ""], ["shrink", ""], ["study", "gates", "-o", ""],
                 ["report", "p.safetensors", "-o", ""],
                 ["invariant", "prefix", "--whole", "", "r.safetensors", "--part", "p.safetensors", "r.safetensors"],
                 ["invariant", "prefix", "--whole", "p.safetensors", "r.safetensors", "--parts-dir", ""]):
        judge(" ".join(args), run(args, box), before, box, says=["is empty"])
    for option, values in (("--chunk", ["0", "-1", "1.5", "nan", ""]), ("--noise", ["nan", "NaN", "inf", "-1", "1e300", "x", ""]),
                           ("--variant", ["-1", "1000", "x", ""]), ("--path", [""]), ("--threads", ["-1", "40000", "1e9", "x", ""])):
        for value in values:
            args = [*emulate, option, value]
            judge(" ".join(args), run(args, box), before, box, says=[option])
    for value in ("0", "-1", "2000", "x"):
        judge("report --chunk " + value, run(["report", "p.safetensors", "-o", "pages", "--chunk", value], box), before, box, says=["--chunk"])


def random_command_lines(box, count=150 if SANITIZED else 400):
    """Verbs with options of the program and values that are none."""
    words = ["", "nan", "inf", "-1", "0", "1e400", "18446744073709551616", "x" * 5000, "\udcff\udcfe", "\x1b[31m", "--", "-", "@file", "=", "\u202e", "../..", "%s%n", "p.safetensors", "mine.toml", "suite.toml", "r.safetensors"]
    options = ["--json", "--junit", "--markdown", "--threads", "--max-seconds", "--seed", "--plan", "--path", "--chunk", "--noise", "--variant", "--fault", "-o", "--max-error", "--because", "--accuracy", "--false-alarm", "--baseline", "--witness", "--max-bits", "--bits", "--round", "--regime", "--T", "--K", "--cu-seqlens", "--beta", "--whole", "--part", "--nonsense", "--version", "--help"]
    verbs = ["check", "inspect", "oracle", "gen", "emulate", "invariant", "advise", "replay", "shrink", "inverse", "list", "explain"]
    rolls = random.Random(SEED)
    jobs = []
    for _ in range(count):
        args = [rolls.choice(verbs)]
        args += rolls.choice([[], ["p.safetensors"], ["p.safetensors", "r.safetensors"], [rolls.choice(words)]])
        for _ in range(rolls.randrange(1, 4)):
            args.append(rolls.choice(options))
            if rolls.random() < 0.8:
                args.append(rolls.choice(words))
        # What is written goes to a place of its own.
        args = [word if word != "-o" else "--output" for word in args]
        jobs.append([*args, "--max-seconds", "2"])
    inputs = ["p.safetensors", "r.safetensors", "bad.safetensors", "mine.toml", "baseline.json", "verdict.json"]
    kept = {name: (box / name).read_bytes() for name in inputs}

    for args in jobs:
        ended = run(args, box)
        what = " ".join(word[:40] for word in args).encode("utf-8", "replace").decode()
        judge(what, ended, None, box, codes=(0, 1, 2, 3), untouched=False)
        if ended.returncode == 2:
            said = ended.stderr.decode("utf-8", "replace")
            if "\x1b" in said or "\u202e" in said:
                fail(f"{what}: raw control characters on stderr", ended)
    for name, content in kept.items():
        if (box / name).read_bytes() != content:
            fail(f"a random command line changed {name}")
    left = [p.name for p in box.rglob("*") if p.name.endswith((".partial", ".part", ".scratch"))]
    if left:
        fail(f"random command lines left {left}")


def full_disks_and_limits(box):
    before = snapshot(box)
    limit = ["--fsize=64"]
    for view in ("--json", "--junit", "--markdown"):
        judge(f"no room for {view}", run([*CHECK, view, "v"], box, limit), before, box, says=["v: cannot be written", "verdict "])
        judge(f"no room for {view}, refuted", run(["check", "p.safetensors", "bad.safetensors", "--plan", "fp32", "--no-power", view, "v"], box, limit), before, box,
              codes=(1,), says=["v: cannot be written", "verdict "])
        judge(f"{view} /dev/full", run([*CHECK, view, "/dev/full"], box), before, box, says=["/dev/full: cannot be written", "verdict "])
    judge("no room for a witness", run(["check", "p.safetensors", "bad.safetensors", "--plan", "fp32", "--no-power", "--witness", "new"], box, limit), before, box,
          codes=(1,), says=["cannot be written", "verdict ", "refuted"])
    if os.geteuid() != 0:
        (box / "sub").chmod(0o555)
        judge("a witness where nothing may be written", run(["check", "p.safetensors", "bad.safetensors", "--plan", "fp32", "--no-power", "--witness", "sub/w"], box), before, box,
              codes=(1,), says=["verdict ", "refuted"])
        (box / "sub").chmod(0o755)
    for args in (["gen", "-o", "g"], ["oracle", "p.safetensors", "-o", "o"], ["emulate", "p.safetensors", "--plan", "fp32", "-o", "e"], ["gen", "--all", "kit", "--regime", "typical", "--op", "delta_rule"]):
        judge("no room: " + " ".join(args), run(args, box, limit), before, box, says=["cannot be written"])
    # Room for some files of a page and not for all: none is there after.
    for most in (64, 3000, 6000, 12000, 30000):
        ended = run(["report", "p.safetensors", "-o", "pages", "--no-power"], box, [f"--fsize={most}"])
        if ended.returncode == 0:
            break
        judge(f"report within {most} bytes a file", ended, before, box)
        if b"cannot be written" not in ended.stderr and b"cut short" not in ended.stderr:
            fail(f"report within {most} bytes a file: does not say why", ended)
    shutil.rmtree(box / "pages", ignore_errors=True)
    if not SANITIZED:
        # No memory for the stacks of so many threads: those that start do the work.
        ended = run([*CHECK, "--threads", "4000"], box, ["--as=2147483648"])
        judge("4000 threads in 2 GiB", ended, before, box, codes=(0,))


def files_that_change(box):
    # A mapped problem cut short while it is read.
    shape = [1, 60000, 4, 64]
    size = 4 * 60000 * 4 * 64
    tensors(box / "big.safetensors", {"format": "deltaproof.problem/1", "op": "delta_rule", "scale": "1"},
            [("q", "F32", shape, size), ("k", "F32", shape, size), ("v", "F32", shape, size), ("beta", "F32", shape[:3], size // 64)])
    for part in (1, 2):
        whole = (box / "big.safetensors").stat().st_size
        child = subprocess.Popen([PROGRAM, "oracle", "big.safetensors", "-o", "out", "--threads", "1"], cwd=box, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2000):
            try:
                if b"big.safetensors" in pathlib.Path(f"/proc/{child.pid}/maps").read_bytes():
                    break
            except OSError:
                break
            time.sleep(0.002)
        os.truncate(box / "big.safetensors", 4096 * part)
        try:
            out, err = child.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            child.kill()
            out, err = child.communicate()
        ended = subprocess.CompletedProcess([], child.returncode, out, err)
        judge("a mapped problem cut short", ended, None, box, says=["big.safetensors"], untouched=False)
        if (box / "out").exists():
            fail("a mapped problem cut short leaves an output")
        tensors(box / "big.safetensors", {"format": "deltaproof.problem/1", "op": "delta_rule", "scale": "1"},
                [("q", "F32", shape, size), ("k", "F32", shape, size), ("v", "F32", shape, size), ("beta", "F32", shape[:3], size // 64)])
        if (box / "big.safetensors").stat().st_size != whole:
            fail("the generator is not deterministic")
    (box / "big.safetensors").unlink()
    # A pipe that nobody reads is waited for, and left on request.
    os.mkfifo(box / "unread")
    child = subprocess.Popen([PROGRAM, *CHECK, "--json", "unread"], cwd=box, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(3 if SANITIZED else 1)
    child.send_signal(signal.SIGTERM)
    try:
        child.communicate(timeout=10)
    except subprocess.TimeoutExpired:
        child.kill()
        fail("SIGTERM does not end the wait for the reader of a pipe")
    if child.returncode != 130:
        fail(f"SIGTERM while a pipe is waited for: exit {child.returncode}")
    (box / "unread").unlink()


def names_that_deceive(box):
    # Results whose kernel is named in control characters, and a case, a file and a folder so named.
    names = ["k\x1b[2Jx", "k\x9b31mx", "k\u202ex", "k\u2066x", "k\ufffex", "k\x00x", "k\x7f", "k\nverdict      holds", "k\u2028x", "</script><b>&\"'", "k\udfffx"]
    problem = (box / "p.safetensors").read_bytes()
    digest = hashlib.sha256(problem).hexdigest()
    for number, name in enumerate(names):
        if "\udfff" in name:
            continue  # no JSON of a header holds it
        tensors(box / "named.safetensors", {"format": "deltaproof.result/1", "kernel": name, "path": "recurrent", "producer": name, "problem_sha256": digest, name: name},
                [("o", "F32", [1, 12, 1, 3], 144), ("final_state", "F32", [1, 1, 4, 3], 48)])
        ended = run(["check", "p.safetensors", "named.safetensors", "--no-plan", "--json", "v.json", "--junit", "v.xml", "--markdown", "v.md"], box)
        what = f"kernel name {number}"
        judge(what, ended, None, box, codes=(0, 2), untouched=False)
        for where, text in (("stdout", ended.stdout), ("stderr", ended.stderr), ("Markdown", (box / "v.md").read_bytes() if (box / "v.md").exists() else b"")):
            if hidden(text.decode("utf-8")):
                fail(f"{what}: {where} has {hidden(text.decode('utf-8'))}", ended)
        if ended.returncode == 0:
            xml.etree.ElementTree.parse(box / "v.xml")
            json.loads((box / "v.json").read_text("utf-8"))
            if b"\nverdict      holds" in ended.stdout and "\n" in name and ended.stdout.count(b"verdict ") > 1:
                fail(f"{what}: a name is a line of the verdict", ended)
            ended = run(["report", "p.safetensors", "named.safetensors", "--no-plan", "-o", "pages"], box)
            judge(what + " in a report", ended, None, box, codes=(0,), untouched=False)
            for page in (box / "pages").iterdir():
                text = page.read_text("utf-8")
                if page.suffix != ".json" and hidden(text):
                    fail(f"{what}: {page.name} has {hidden(text)}")
                if page.suffix == ".svg":
                    xml.etree.ElementTree.parse(page)
            shutil.rmtree(box / "pages")
        for view in ("v.json", "v.xml", "v.md"):
            (box / view).unlink(missing_ok=True)
    # Files whose names are no UTF-8, or hold what XML has no place for.
    for name in (b"r\xff\xfe.safetensors", b"r\xef\xbf\xbe.safetensors", b"r\x1b[31m.safetensors", b"r\xe2\x80\xae.safetensors"):
        shutil.copy(box / "r.safetensors", os.path.join(os.fsencode(box), name))
        args = [b"check", b"p.safetensors", name, b"--plan", b"fp32", b"--no-power", b"--junit", b"v.xml", b"--json", b"v.json", b"--markdown", b"v.md"]
        ended = run(args, box)
        judge(f"a result called {name!r}", ended, None, box, codes=(0,), untouched=False)
        if ended.returncode != 0:
            continue
        xml.etree.ElementTree.parse(box / "v.xml")
        json.loads((box / "v.json").read_text("utf-8"))
        for text in (ended.stdout.decode("utf-8"), (box / "v.md").read_text("utf-8")):
            if hidden(text):
                fail(f"a result called {name!r}: {hidden(text)}", ended)
        for verb in ([b"emulate", b"p.safetensors", b"--plan", b"fp32", b"-o"], [b"oracle", b"p.safetensors", b"-o"], [b"gen", b"-o"]):
            ended = run([*verb, b"x" + name, b"--json", b"-"], box)
            judge(f"{verb[0]!r} to {name!r}", ended, None, box, codes=(0,), untouched=False)
            if ended.returncode == 0:
                json.loads(ended.stdout.decode("utf-8"))
    (box / "odd.toml").write_text('[[case]]\nname = "a\\u202e\\u009b\\uffff"\nproblem = "p.safetensors"\nresult = "r.safetensors"\nno_plan = true\n')
    ended = run(["check", "odd.toml", "--junit", "v.xml", "--markdown", "v.md"], box)
    judge("a case with a name that deceives", ended, None, box, codes=(0,), untouched=False)
    if ended.returncode == 0:
        xml.etree.ElementTree.parse(box / "v.xml")
        if hidden(ended.stdout.decode("utf-8")) or hidden((box / "v.md").read_text("utf-8")):
            fail("a case with a name that deceives: raw", ended)


def many_and_empty_are_linear(box):
    # 10^5 sequences of one token, 2000 heads, and a problem that asks for 5 GB in 400 bytes.
    n = 20000 if SANITIZED else 100000
    cu = b"".join(struct.pack("<q", i) for i in range(n + 1))
    width = 2
    sizes = [4 * n * width, 4 * n * width, 4 * n * width, 4 * n]
    tensors(box / "many.safetensors", {"format": "deltaproof.problem/1", "op": "delta_rule", "scale": "1"},
            [("q", "F32", [1, n, 1, width], sizes[0]), ("k", "F32", [1, n, 1, width], sizes[1]), ("v", "F32", [1, n, 1, width], sizes[2]),
             ("beta", "F32", [1, n, 1], sizes[3]), ("cu_seqlens", "I64", [n + 1], len(cu))], bytes(sum(sizes)) + cu)
    start = time.monotonic()
    judge("10^5 sequences", run(["inspect", "many.safetensors"], box), None, box, codes=(0,), untouched=False)
    if time.monotonic() - start > 8:
        fail(f"inspect of 10^5 sequences takes {time.monotonic() - start:.0f} s")
    (box / "many.safetensors").unlink()
    big = 100000000
    tensors(box / "empty.safetensors", {"format": "deltaproof.problem/1", "op": "delta_rule", "scale": "1"},
            [("q", "F32", [big, 0, 1, 1], 0), ("k", "F32", [big, 0, 1, 1], 0), ("v", "F32", [big, 0, 1, 1], 0), ("beta", "F32", [big, 0, 1], 0)])
    before = snapshot(box)
    for args in (["inspect", "empty.safetensors"], ["oracle", "empty.safetensors", "-o", "out"]):
        judge("10^8 batches of nothing", run(args, box), before, box, says=["empty.safetensors", "2^20"])


def main():
    parent = tempfile.mkdtemp(prefix="deltaproof-hostile-")
    try:
        honest = make_box(parent)

        def play(scene):
            box = pathlib.Path(tempfile.mkdtemp(dir=parent)) / "box"
            shutil.copytree(honest, box, symlinks=True)
            start = time.monotonic()
            scene(box)
            print(f"{scene.__name__}: {time.monotonic() - start:.1f} s", flush=True)

        # Times are judged, so the last two run alone.
        scenes = (outputs_never_replace_inputs, outputs_never_replace_outputs, inputs_are_regular_files, random_command_lines,
                  deep_and_strange_texts, empty_and_senseless_options, full_disks_and_limits, names_that_deceive)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(play, scenes))
        for scene in (files_that_change, many_and_empty_are_linear):
            play(scene)
    finally:
        shutil.rmtree(parent, ignore_errors=True)
    print(f"{len(runs)} runs, seed {SEED}, {len(failures)} failures")
    sys.exit(1 if failures else 0)


main()
