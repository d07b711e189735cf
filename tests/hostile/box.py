# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""What the scenes of program.py share: running the program, judging how it ended, a folder with an honest file of every kind."""
import hashlib
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import threading

PROGRAM = os.path.abspath(sys.argv[1])
SANITIZED = b"__asan_init" in pathlib.Path(PROGRAM).read_bytes()
LIMIT = 60 if SANITIZED else 20
failures = []
counting = threading.Lock()
runs = []


def fail(what, ended=None):
    failures.append(what)
    print("FAIL", what)
    if ended is not None:
        print("    exit", ended.returncode, "|", (ended.stderr + ended.stdout)[:400].decode("utf-8", "replace").replace("\n", "\n    "))


def run(args, cwd, limits=(), **more):
    """The program, started in `cwd` with limits of prlimit; a hang is exit code None."""
    with counting:
        runs.append(args[0])
    before = ["prlimit", *limits] if limits else []
    try:
        return subprocess.run([*before, PROGRAM, *args], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT, **more)
    except subprocess.TimeoutExpired as e:
        return subprocess.CompletedProcess(args, None, e.stdout or b"", (e.stderr or b"") + b"(still running)")


def snapshot(folder):
    """What lies in a folder: names, kinds, contents of regular files."""
    out = {}
    for path in sorted(pathlib.Path(folder).rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            out[name] = "link to " + os.readlink(path)
        elif path.is_file():
            out[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            out[name] = "folder" if path.is_dir() else "special"
    return out


def judge(what, ended, before, folder, codes=(2,), says=(), quiet=(), untouched=True):
    if ended.returncode not in codes:
        fail(f"{what}: exit {ended.returncode}, not {codes}", ended)
        return
    if b"Sanitizer" in ended.stderr:
        fail(f"{what}: a sanitizer speaks", ended)
    text = (ended.stderr + ended.stdout).decode("utf-8", "replace")
    for word in says:
        if word not in text:
            fail(f"{what}: does not say {word!r}", ended)
    for word in quiet:
        if word in text:
            fail(f"{what}: says {word!r}", ended)
    # A suite answers for its cases in its table.
    if ended.returncode == 2 and not ended.stderr.strip() and b"no answer" not in ended.stdout:
        fail(f"{what}: nothing is said", ended)
    if untouched:
        after = snapshot(folder)
        if after != before:
            changed = sorted(k for k in set(before) | set(after) if before.get(k) != after.get(k))
            fail(f"{what}: touched {changed}", ended)


def tensors(path, metadata, entries, data=b""):
    header = {"__metadata__": metadata} if metadata else {}
    at = 0
    for name, dtype, shape, size in entries:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, ensure_ascii=False).encode("utf-8", "surrogatepass")
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + (data or bytes(at)))


def make_box(parent):
    """A folder with an honest file of every kind."""
    box = pathlib.Path(tempfile.mkdtemp(dir=parent))
    small = ["--op", "delta_rule", "--T", "12", "--K", "4", "--V", "3", "--H", "1", "--dtype", "fp32", "--seed", "3"]
    for args in (["gen", *small, "-o", "p.safetensors"],
                 ["emulate", "p.safetensors", "--plan", "fp32", "--path", "chunk", "-o", "r.safetensors"],
                 ["emulate", "p.safetensors", "--plan", "fp32", "--path", "chunk", "--fault", "scale-missing", "-o", "bad.safetensors"]):
        ended = run(args, box)
        if ended.returncode != 0:
            fail("the honest files: " + " ".join(args), ended)
            sys.exit(1)
    plan = run(["explain", "fp32"], box).stdout
    (box / "mine.toml").write_bytes(plan.replace(b'name = "fp32"', b'name = "mine"'))
    (box / "suite.toml").write_text('[[case]]\nproblem = "p.safetensors"\nresult = "r.safetensors"\nplan = "mine.toml"\n')
    (box / "campaign.toml").write_text('kind = "recordings"\n[judging]\npower = false\n' + (box / "suite.toml").read_text())
    for args in (["sweep", "campaign.toml", "-o", "swept", "--threads", "1"], ["check", "suite.toml", "--no-power", "--json", "baseline.json"],
                 ["check", "p.safetensors", "bad.safetensors", "--plan", "mine.toml", "--no-power", "--json", "verdict.json", "--witness", "w"]):
        ended = run(args, box)
        if ended.returncode not in (0, 1):
            fail("the honest files: " + " ".join(args), ended)
    (box / "parts").mkdir()
    shutil.copy(box / "p.safetensors", box / "parts/1.problem.safetensors")
    shutil.copy(box / "r.safetensors", box / "parts/1.result.safetensors")
    (box / "sub").mkdir()
    (box / "through").symlink_to(".")
    return box


def hidden(text):
    return [hex(ord(c)) for c in text if (ord(c) < 32 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0 or c in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u2028\u2029\ufeff\ufffe\uffff"]
