#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""program.py PROGRAM ROOT [COUNT]: sweeps of the program. The merged bytes must be the same however the results were made; what is
missing, damaged or another build's must be found; every JSON must be as its schema says; printed commands must give the verdict.
With COUNT: the cost of that many tiny tasks alone."""
import json
import mmap
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import jsonschema

PROGRAM, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
STUDY = "logistic"
failures = []
CAMPAIGN = """kind = "regimes"
[axes]
plan = ["fp32", "fla-chunk-delta"]
regime = ["typical", "tails"]
op = "delta_rule"
T = [16, 24]
K = 16
V = 8
H = 1
HV = 1
seed = { from = 1, to = 6 }
[judging]
power = false
"""


def expect(truth, what):
    if not truth:
        failures.append(what)
        print("FAILED", what, flush=True)


def validator(name):
    schema = json.loads((ROOT / "schemas" / f"{name}.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


def valid(name, text):
    for error in validator(name).iter_errors(json.loads(text)):
        expect(False, f"{name}: {'/'.join(map(str, error.absolute_path))}: {error.message[:300]}")


def run(box, code, *words, program=PROGRAM, **environment):
    done = subprocess.run([program, *map(str, words)], cwd=box, capture_output=True, text=True, check=False,
                          env={**os.environ, "DELTAPROOF_PROGRESS_SECONDS": "0", **environment})
    expect(done.returncode == code, f"{' '.join(map(str, words))}: exit {done.returncode}, not {code}: {done.stdout}{done.stderr}")
    return done


def merged(box, folder, code=0):
    run(box, code, "merge", folder, "-o", f"{folder}.merge.json")
    return (box / f"{folder}.merge.json").read_text()


def files(folder):
    return sorted((folder / "tasks").glob("*/*.json"))


def one_process_shards_and_engines(box):
    run(box, 0, "sweep", "c.toml", "-o", "whole", "--json", "sweep.json")
    whole = merged(box, "whole")
    valid("sweep", (box / "sweep.json").read_text())
    valid("merge", whole)
    for file in files(box / "whole"):
        valid("task", file.read_text())
    valid("campaign", (box / "whole" / "campaign.json").read_text())
    expect(json.loads(whole)["counts"]["judged"] == 48, "48 tasks are judged")

    for shard in range(40, 0, -1):
        run(box, 0, "sweep", "c.toml", "-o", "forty", "--shard", f"{shard}/40")
    expect(merged(box, "forty") == whole, "forty shards give the bytes of one process")

    for index in range(3):
        run(box, 0, "sweep", "c.toml", "-o", "kubernetes", "--shards", 3, JOB_COMPLETION_INDEX=str(index))
    expect(merged(box, "kubernetes") == whole, "an indexed job gives the bytes of one process")
    for index in range(4):
        run(box, 0, "sweep", "c.toml", "-o", "gtest", GTEST_TOTAL_SHARDS="4", GTEST_SHARD_INDEX=str(index))
    expect(merged(box, "gtest") == whole, "GTEST_ shards give the bytes of one process")

    both = [subprocess.Popen([PROGRAM, "sweep", "c.toml", "-o", "twice"], cwd=box, stdout=subprocess.DEVNULL) for _ in range(2)]
    expect([p.wait() for p in both] == [0, 0], "two processes do one shard at once")
    expect(merged(box, "twice") == whole, "two processes at once give the bytes of one")

    again = json.loads(run(box, 0, "sweep", "c.toml", "-o", "whole", "--json", "-").stdout)
    expect(again["counts"]["ran"] == 0 and again["counts"]["before"] == 48, "what is there is not run again")
    listed = run(box, 0, "sweep", "c.toml", "-o", "whole", "--list", "--json", "list.json").stdout.splitlines()
    valid("sweep", (box / "list.json").read_text())
    expect(len(listed) == 48 and all(" done regimes " in line for line in listed), "--list says that all are done")
    left = json.loads(run(box, 3, "sweep", "c.toml", "-o", "short", "--max-seconds", "0.000001", "--json", "-").stdout)["counts"]
    expect(left["left"] + left["ran"] == left["tasks"] == 48, f"what the time did not allow is left: {left}")
    run(box, 0, "sweep", "c.toml", "-o", "some", "--tasks", "0,7-9")
    expect(len(files(box / "some")) == 4, "--tasks runs four tasks")
    return whole


def killed(box, whole, how, name):
    """The driver is killed while it runs, often; nothing that was finished is lost, and what is merged is the same."""
    done = 0
    for pause in (0.15, 0.3, 0.5, 0.3, 0.2):
        driver = subprocess.Popen([PROGRAM, "sweep", "c.toml", "-o", name], cwd=box, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(pause)
        driver.send_signal(how)
        code = driver.wait()
        expect(code in (0, 130 if how == signal.SIGINT else -how), f"{name}: exit {code}")
        now = len(files(box / name)) if (box / name / "tasks").exists() else 0
        expect(now >= done, f"{name}: {now} results after {done}")
        done = now
    run(box, 0, "sweep", "c.toml", "-o", name)
    expect(merged(box, name) == whole, f"{name}: the bytes of one process")


def workers_killed(box, whole):
    """kill -9 of two workers that are busy: their tasks are run again."""
    driver = subprocess.Popen([PROGRAM, "sweep", "c.toml", "-o", "orphans", "--threads", "2"], cwd=box, stdout=subprocess.DEVNULL)
    ended, tries = 0, ""
    while driver.poll() is None and ended < 2:
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(driver.pid)], capture_output=True, text=True, check=False).stdout.split()
        if len(children) == 2 and len(files(box / "orphans")) >= 3 * (ended + 1):
            os.kill(int(children[ended]), signal.SIGKILL)
            ended += 1
        for file in (box / "orphans" / "tries").glob("*.json"):
            try:
                tries = file.read_text()
            except FileNotFoundError:
                pass
        time.sleep(0.005)
    if tries:
        valid("tries", tries)
    expect(driver.wait() == 0, "a sweep whose workers are killed ends well")
    expect(ended == 2, f"{ended} workers were killed while busy")
    expect(merged(box, "orphans") == whole, "workers killed: the bytes of one process")


def damaged(box, whole):
    some = files(box / "whole")
    some[3].write_bytes(some[3].read_bytes()[:-9])
    altered = some[8].read_text()
    some[8].write_text(altered.replace('"holds"', '"refuted"', 1) if '"holds"' in altered else altered.replace("1", "2", 1))
    some[11].unlink()
    report = json.loads(merged(box, "whole", 3))
    expect({one["key"] for one in report["missing"]} == {some[i].stem for i in (3, 8, 11)}, "damaged and missing results are named")
    valid("merge", json.dumps(report))
    counts = json.loads(run(box, 0, "sweep", "c.toml", "-o", "whole", "--json", "-").stdout)["counts"]
    expect(counts["damaged"] == 2 and counts["ran"] == 3, f"they are run again: {counts}")
    expect(merged(box, "whole") == whole, "after that: the bytes of one process")


def another_build(box):
    """A program with another build ID does the same, and is another build."""
    other = box / "other"
    shutil.copy(PROGRAM, other)
    note = bytes([4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0]) + b"GNU\0"
    with other.open("r+b") as file, mmap.mmap(file.fileno(), 0) as program:
        at = program.find(note) + len(note)
        program[at:at + 20] = program[at:at + 20][::-1]
    said = run(box, 2, "sweep", "c.toml", "-o", "whole", program=other).stderr
    expect("whole/campaign.json: made by build" in said, f"a folder of another build is refused by name: {said}")
    said = run(box, 2, "sweep", "c.toml", "-o", "whole", "--list", program=other).stderr
    expect("whole/campaign.json: made by build" in said, f"--list refuses it too: {said}")
    run(box, 0, "sweep", "c.toml", "-o", "others", "--tasks", "5", program=other)
    theirs = files(box / "others")[0]
    shutil.copytree(box / "whole", box / "mixed")
    (box / "mixed" / "tasks" / theirs.parent.name).mkdir(exist_ok=True)
    shutil.copy(theirs, box / "mixed" / "tasks" / theirs.parent.name)
    said = run(box, 2, "merge", "mixed", "-o", "mixed.json").stderr
    expect(theirs.name in said and "another build" in said, f"a result of another build is refused by name: {said}")


def commands_tell_the_truth(box):
    """The command of a result gives its verdict."""
    shell = {**os.environ, "PATH": f"{pathlib.Path(PROGRAM).parent}:{os.environ['PATH']}"}
    for file in files(box / "whole")[::12] + files(box / "mutants")[:3] + files(box / "recorded"):
        result = json.loads(file.read_text())["result"]
        if result["state"] != "judged":
            continue
        done = subprocess.run(["sh", "-c", result["command"] + " --json v.json"], cwd=box, env=shell, capture_output=True, check=False)
        expect(done.returncode in (0, 1, 3), f"{result['command']}: exit {done.returncode} {done.stderr}")
        verdict = json.loads((box / "v.json").read_text())
        expect(verdict["verdict"] == result["verdict"] and verdict["reason"] == result["reason"], f"{result['command']}: {verdict['verdict']}")


def mutants_and_recordings(box):
    (box / "mutants.toml").write_text("""kind = "mutants"
[axes]
plan = "fp32"
fault = ["scale-missing", "beta-ignored", "gate-sign"]
regime = "typical"
op = "delta_rule"
T = 40
K = 8
V = 4
H = 1
HV = 1
""".replace("beta-ignored", next(one["name"] for one in json.loads(run(box, 0, "list", "faults", "--json", "-").stdout)["faults"]
                                if one["name"].startswith("beta-"))))
    run(box, 0, "sweep", "mutants.toml", "-o", "mutants")
    report = json.loads(merged(box, "mutants"))
    expect(report["counts"]["refuted"] == 2 and report["counts"]["skipped"] == 1, f"two faults are seen, one cannot happen: {report['counts']}")

    run(box, 0, "gen", "--op", "delta_rule", "--T", 40, "--K", 8, "--V", 4, "--H", 1, "--HV", 1, "-o", "p.safetensors")
    run(box, 0, "emulate", "p.safetensors", "--plan", "fp32", "-o", "good.safetensors")
    run(box, 0, "emulate", "p.safetensors", "--plan", "fp32", "--fault", "scale-missing", "-o", "bad.safetensors")
    case = '[[case]]\nproblem = "p.safetensors"\nresult = "{0}.safetensors"\nplan = "fp32"\nname = "{0}"\n{1}'
    text = 'kind = "recordings"\n' + case.format("good", "") + case.format("bad", 'expect = "refuted"\n') + "[judging]\npower = false\n"
    (box / "recorded.toml").write_text(text)
    run(box, 0, "sweep", "recorded.toml", "-o", "recorded")
    here = merged(box, "recorded")
    expect(json.loads(here)["counts"]["refuted"] == 1, "a recording is refuted as expected")
    # The same campaign from elsewhere.
    run(box / "..", 0, "sweep", box / "recorded.toml", "-o", box / "recorded-elsewhere")
    expect(merged(box, "recorded-elsewhere") == here, "where a campaign lies leaves no trace")
    (box / "gone.toml").write_text(text + case.format("gone", ""))
    run(box, 2, "sweep", "gone.toml", "-o", "gone")
    report = json.loads(merged(box, "gone", 2))
    failed = report["failed"]
    expect(report["verdict"] == "undecided", f"a task that failed is undecided: {report['verdict']}")
    expect(len(failed) == 1 and str(box) not in failed[0]["reason"], f"a recording that is not there is named: {failed}")
    shutil.copy(box / "good.safetensors", box / "gone.safetensors")
    run(box, 0, "sweep", "gone.toml", "-o", "gone")
    merged(box, "gone")


def examples(box, whole):
    """The scripts of examples/cluster, as their engines run them."""
    shell = {**os.environ, "PATH": f"{pathlib.Path(PROGRAM).parent}:{os.environ['PATH']}", "DELTAPROOF_PROGRESS_SECONDS": "0"}
    shutil.copy(box / "c.toml", box / "campaign.toml")
    script = ROOT / "examples" / "cluster" / "slurm-array.sh"
    for identity in range(1, 5):
        slurm = {"SLURM_ARRAY_TASK_ID": str(identity), "SLURM_ARRAY_TASK_MIN": "1", "SLURM_ARRAY_TASK_MAX": "4", "SLURM_ARRAY_TASK_COUNT": "4"}
        done = subprocess.run(["sh", script, "campaign.toml", "slurm"], cwd=box, env={**shell, **slurm}, capture_output=True, text=True, check=False)
        expect(done.returncode == 0, f"{script} {identity}: {done.stderr}")
    report = json.loads(merged(box, "slurm"))
    expect(report["cases"] == json.loads(whole)["cases"], "the Slurm example gives the results of one process")
    for file, key in (("kubernetes-job.yaml", "spec"), ("ci-matrix.yml", "jobs")):
        try:
            import yaml
        except ImportError:
            print(f"{file}: not read, there is no PyYAML")
            break
        text = (ROOT / "examples" / "cluster" / file).read_text()
        expect(key in yaml.safe_load(text) and "deltaproof sweep" in text, f"{file} is not what it should be")


def pages_and_drift(box):
    run(box, 0, "merge", "whole", "-o", "now.json", "--page", "page", "--baseline", "whole.merge.json")
    valid("merge", (box / "now.json").read_text())
    page = (box / "page" / "index.html").read_text()
    for words in ("By plan", "By regime", "Worst cases", "Since an earlier merge", "deltaproof gen --regime"):
        expect(words in page, f"the page has no {words}")
    expect("0 outcomes changed" in json.loads((box / "now.json").read_text())["drift"]["lines"][0], "nothing has moved")


def what_is_refused(box):
    for words, says in (
        (["sweep", "c.toml"], "give -o DIR"),
        (["sweep", "c.toml", "-o", "x", "--shard", "0/3"], "write 3/40"),
        (["sweep", "c.toml", "-o", "x", "--tasks", "48"], "numbers below 48"),
        (["sweep", "c.toml", "-o", "x", "--tasks", "1", "--shard", "1/2"], "--tasks cannot be given with --shard"),
        (["sweep", "c.toml", "-o", "x", "--seed", "2"], "--seed has no effect here"),
        (["merge", "nowhere", "-o", "m.json"], "is not there"),
    ):
        said = run(box, 2, *words).stderr
        expect(says in re.sub(r"\s+", " ", said), f"{' '.join(words)}: {said}")
    for unset in ({}, {"JOB_COMPLETION_INDEX": ""}):
        said = run(box, 2, "sweep", "c.toml", "-o", "x", "--shards", "3", **unset).stderr
        expect("JOB_COMPLETION_INDEX is set" in re.sub(r"\s+", " ", said), said)
    said = run(box, 2, "sweep", "c.toml", "-o", "x", JOB_COMPLETION_INDEX="0").stderr
    expect("--shards N" in said, said)


def studies(box):
    """A campaign of studies: shards give the bytes of one process, and a result has the study's findings."""
    (box / "studies.toml").write_text('kind = "study"\n[axes]\nstudy = "STUDY"\nseed = [1, 2]\n'.replace("STUDY", STUDY))
    run(box, 0, "sweep", "studies.toml", "-o", "studies")
    for shard in (2, 1):
        run(box, 0, "sweep", "studies.toml", "-o", "studies-of-two", "--shard", f"{shard}/2")
    whole = merged(box, "studies")
    valid("merge", whole)
    expect(merged(box, "studies-of-two") == whole, "shards of studies give the bytes of one process")
    expect(json.loads(whole)["counts"]["holds"] == 2, f"two studies hold: {json.loads(whole)['counts']}")
    for file in files(box / "studies"):
        valid("task", file.read_text())
    result = json.loads(files(box / "studies")[0].read_text())["result"]
    expect(result["findings"] and result["command"].startswith(f"deltaproof study {STUDY} --seed "), f"findings and command: {result['command']}")


def wrong_campaigns(box):
    """Each is refused with exit code 2, the file, and what is wrong."""
    good = "[axes]\nplan = \"fp32\"\nK = 8\n[search]\ngoal = \"error\"\ngenerations = 1\n[space]\ncosine = [0, 1]\n"
    for text, says in (
        ("", "states no kind"),
        ("kind = 3", "kind must be text"),
        ('kind = "searches"', 'did you mean "search"'),
        ('kind = "search"', "[axes] states no plan"),
        ('kind = "search"\n[axes]\nplan = "fp32"', "[search] is missing or not a table"),
        ('kind = "search"\n' + good.replace("[space]\ncosine = [0, 1]\n", ""), "[space], the ranges to search, is missing or empty"),
        ('kind = "search"\n' + good.replace("[0, 1]", "[0, 1, 2]"), "must be [least, most]"),
        ('kind = "search"\n' + good.replace("[0, 1]", '["a", "b"]'), "cosine must be a number"),
        ('kind = "search"\n' + good.replace("[0, 1]", "[nan, 1]"), "least < most"),
        ('kind = "search"\n' + good.replace("[0, 1]", "[-inf, inf]"), "least < most"),
        ('kind = "search"\n' + good.replace("cosine = [0, 1]", "seed = [1, 2.5]"), "integers"),
        ('kind = "search"\n' + good.replace("generations = 1", "generations = -1"), "generations must be an integer"),
        ('kind = "search"\n' + good.replace("generations = 1", "cpu_minutes = nan"), "cpu_minutes must be above 0"),
        ('kind = "search"\n' + good.replace("generations = 1", 'generations = 1\nseed = "x"'), "seed must be an integer"),
        ('kind = "search"\n' + good.replace("K = 8", "K = 8\nbeta = 1"), 'no key "beta"'),
        ('kind = "search"\n' + good.replace("K = 8", 'K = 8\nplan = "fp32"'), "not valid TOML"),
        ('kind = "regimes"\n[search]\ngoal = "error"', 'no key "search"'),
        ('kind = "study"', "[axes] states no study"),
        ('kind = "study"\n[axes]\nstudy = "nonsense"', "nonsense"),
        ('kind = "study"\n[axes]\nstudy = "all"', "all"),
        ('kind = "study"\n[axes]\nstudy = "gates"\nplan = "fp32"', 'no key "plan"'),
        ('kind = "study"\n[axes]\nstudy = "gates"\nmode = "long"', "mode"),
    ):
        (box / "wrong.toml").write_text(text)
        for words in (["--list"], ["-o", "wrong"], ["-o", "wrong", "--propose"]):
            said = re.sub(r"\s+", " ", run(box, 2, "sweep", "wrong.toml", *words).stderr)
            expect(says in said, f"{text!r} {words}: {said}")
    expect(not (box / "wrong").exists(), "a campaign that is refused leaves no folder")
    (box / "right.toml").write_text('kind = "search"\n' + good)
    for point in ("cosine=2", "cosine=nan", "cosine=", "cosin=1", "cosine=1,flip=0", "cosine=0.5,"):
        done = subprocess.run([PROGRAM, "sweep", "right.toml", "-o", "right", "--propose"], cwd=box, input=f"search {point}\n", capture_output=True, text=True, check=False)
        expect(done.returncode == 2 and "not a point of this search" in re.sub(r"\s+", " ", done.stderr), f"{point}: {done.returncode} {done.stderr}")
    said = run(box, 0, "sweep", "right.toml", "--list").stderr
    expect("an optimiser proposes them" in said, said)
    said = run(box, 2, "sweep", "right.toml", "-o", "right").stderr
    expect("python -m deltaproof.sweep" in re.sub(r"\s+", " ", said), said)
    subprocess.run([PROGRAM, "sweep", "right.toml", "-o", "right", "--propose"], cwd=box, input="search cosine=0.5\n", text=True, check=True, stdout=subprocess.DEVNULL)
    proposals = box / "right" / "proposals.json"
    proposals.write_text(proposals.read_text().replace("0.5", "0.6"))
    said = run(box, 2, "sweep", "right.toml", "-o", "right").stderr
    expect("was changed or cut short" in re.sub(r"\s+", " ", said), said)


def used(box, words, given=None):
    """Processor seconds and largest memory (KiB) of one process and those that it waited for."""
    with open(given or os.devnull) as stdin:
        process = subprocess.Popen([PROGRAM, *map(str, words)], cwd=box, stdin=stdin, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
    expect(status == 0, f"{' '.join(map(str, words))}: status {status}")
    process.returncode = status
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def many(box, counts):
    """What a sweep of tiny tasks costs beside a loop over them in one process, and that its memory does not grow with them."""
    text = CAMPAIGN.replace('["fp32", "fla-chunk-delta"]', '"fp32"').replace('["typical", "tails"]', '"typical"')
    text = text.replace("[16, 24]", "4").replace("K = 16", "K = 4").replace("V = 8", "V = 2")
    peaks = []
    for count in counts:
        (box / "many.toml").write_text(text.replace("to = 6", f"to = {count}"))
        listed = run(box, 0, "sweep", "many.toml", "--list").stdout.splitlines()
        (box / "many.txt").write_text("".join(" ".join(line.split()[:2]) + "\n" for line in listed))
        loop, _ = used(box, ["sweep", "many.toml", "-o", f"loop{count}", "--worker"], box / "many.txt")
        swept, peak = used(box, ["sweep", "many.toml", "-o", f"many{count}", "--threads", 2])
        peaks.append(peak)
        more = 1000 * (swept - loop) / count
        print(f"{count} tasks: {1000 * loop / count:.2f} ms a task in a loop, {more:.2f} ms more in a sweep, {peak // 1024} MiB")
        expect(more <= 5 or count < 1000, f"{count} tasks: a sweep costs {more:.2f} ms a task more than a loop")
        expect(json.loads(merged(box, f"many{count}"))["counts"]["judged"] == count, f"{count} tasks are judged")
    expect(peaks[-1] < peaks[0] + 8 * 1024, f"memory grows with the tasks: {peaks} KiB")


with tempfile.TemporaryDirectory() as name:
    box = pathlib.Path(name) / "box"
    box.mkdir()
    (box / "c.toml").write_text(CAMPAIGN)
    if len(sys.argv) > 3:
        many(box, [100, int(sys.argv[3])])
        print(f"{len(failures)} failures")
        sys.exit(len(failures) > 0)
    whole = one_process_shards_and_engines(box)
    killed(box, whole, signal.SIGKILL, "killed")
    killed(box, whole, signal.SIGINT, "interrupted")
    workers_killed(box, whole)
    damaged(box, whole)
    another_build(box)
    mutants_and_recordings(box)
    commands_tell_the_truth(box)
    examples(box, whole)
    pages_and_drift(box)
    what_is_refused(box)
    wrong_campaigns(box)
    studies(box)
    many(box, [50, 300])
print(f"{len(failures)} failures")
sys.exit(len(failures) > 0)
