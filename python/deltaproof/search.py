# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""Looks for the inputs on which a plan or a kernel is worst: CMA-ES (the package `cmaes`) proposes points of a space, each point is
a task of a sweep, and as much random search runs beside. `python -m deltaproof.sweep` calls `Search` for campaigns of kind
"search"; `search_kernel` does the same for a callable. What is proposed depends on the campaign and on the scores alone, and is
kept in the folder: the same command goes on after anything."""

from __future__ import annotations

import json
import math
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Iterable

SHRUNK = 0.9  # of the score, which a simpler point must keep


def optimiser(dimensions: int, population: int, seed: int) -> Any:
    """CMA-ES in the unit cube, from a random start. Throws: ImportError with what to install."""
    try:
        import numpy
        from cmaes import CMA
    except ImportError as missing:
        says = f"a search needs {missing.name}: pip install 'deltaproof[search]', or python3-cmaes of Debian"
        raise ImportError(says, name=missing.name) from None
    start = random.Random(f"start {seed}")
    mean = numpy.array([start.random() for _ in range(dimensions)])
    bounds = numpy.array([[0.0, 1.0]] * dimensions)
    return CMA(mean=mean, sigma=0.3, bounds=bounds, seed=seed % 2**32, population_size=population)


class Space:
    """Numbers with names and ranges. A point is text: "T=64,cosine=0.9"."""

    def __init__(self, ranges: list[dict[str, Any]]):
        self.ranges = ranges

    def text(self, at: Iterable[float]) -> str:
        """The point at these coordinates in [0, 1]; rounded, so that its text says all of it."""
        words = []
        for r, x in zip(self.ranges, at):
            if r["whole"]:
                value = min(int(r["most"]), int(r["least"]) + int(x * (int(r["most"]) - int(r["least"]) + 1)))
                words.append(f"{r['name']}={value}")
            else:
                value = float(f"{r['least'] + x * (r['most'] - r['least']):.5g}")
                words.append(f"{r['name']}={min(r['most'], max(r['least'], value))!r}")
        return ",".join(words)

    def numbers(self, point: str) -> dict[str, float]:
        return {name: float(value) for name, value in (one.split("=") for one in point.split(","))}


def height(score: float | None) -> float:
    """What the optimiser sees: the logarithm of the score, without its infinities. Nothing is known of a point: the least."""
    if score is None:
        return -30.0
    if math.isnan(score):
        return 30.0
    return max(-30.0, min(30.0, math.log10(score))) if score > 0 else -30.0


def share_of(score: dict[str, Any] | None) -> float | None:
    return None if score is None or score["share"] is None else float(score["share"])


class Method:
    """What one way to look has found."""

    def __init__(self, by: str):
        self.by = by
        self.evaluations = self.refuted = 0
        self.cpu = 0.0
        self.best: float | None = None
        self.point = ""
        self.first_refuted: int | None = None
        self.history: list[dict[str, float]] = []

    def take(self, tasks: list[dict[str, Any]]) -> None:
        for task in tasks:
            self.evaluations += 1
            if task["verdict"] == "refuted":
                self.refuted += 1
                self.first_refuted = self.first_refuted or self.evaluations
            share = share_of(task["score"])
            if share is not None and height(share) > height(self.best):
                self.best, self.point = share, task["point"]
        self.history.append({"evaluations": self.evaluations, "cpu_seconds": round(self.cpu, 3), "best": text_of(self.best)})

    def json(self) -> dict[str, Any]:
        return {
            "evaluations": self.evaluations,
            "refuted": self.refuted,
            "first_refuted": self.first_refuted,
            "cpu_seconds": round(self.cpu, 3),
            "best": text_of(self.best),
            "point": self.point or None,
            "history": self.history,
        }


def text_of(x: float | None) -> Any:
    return x if x is None or math.isfinite(x) else ("nan" if math.isnan(x) else "inf" if x > 0 else "-inf")


def score_text(x: Any) -> str:
    """A score as a line has it; -: none."""
    return "-" if x is None else f"{float(x):.4g}"


class Driver:
    """The loop of a search: `evaluate(by, points)` gives the tasks of these points with their scores, and its processor seconds."""

    def __init__(self, settings: dict[str, Any], evaluate: Callable[[str, list[str]], tuple[list[dict[str, Any]], float]]):
        self.settings, self.evaluate = settings, evaluate
        self.space = Space(settings["space"])
        self.methods = {"search": Method("search"), "random": Method("random")}
        self.seen: dict[str, dict[str, Any]] = {}
        self.restarts = 0

    def run(self, said: Callable[[str], None]) -> None:
        seed, population = self.settings["seed"], self.settings["population"]
        model = optimiser(len(self.space.ranges), population, seed)
        draw = random.Random(f"random {seed}")
        generation = 0
        while not self.at_end(generation, "search"):
            at = [model.ask() for _ in range(model.population_size)]
            tasks = self.tried("search", [self.space.text(x) for x in at])
            # What it is told of a point is where that was asked for: rounding moves it by less than its step.
            model.tell([(x, -height(share_of(task["score"]))) for x, task in zip(at, tasks)])
            if model.should_stop():
                self.restarts += 1
                model = optimiser(len(self.space.ranges), population, seed + self.restarts)
            generation += 1
            self.tried_beside(draw, generation)
            said(self.line())

    def at_end(self, generation: int, by: str) -> bool:
        most, minutes = self.settings["generations"], self.settings["cpu_minutes"]
        return bool((most and generation >= most) or (minutes and self.methods[by].cpu >= 60 * minutes))

    def tried_beside(self, draw: random.Random, generation: int) -> None:
        """As many random points as were searched, or as many as take the same time."""
        if not self.settings["random"]:
            return
        ours, theirs = self.methods["search"], self.methods["random"]
        population = self.settings["population"]
        while theirs.cpu < ours.cpu if self.settings["cpu_minutes"] else theirs.evaluations < generation * population:
            self.tried("random", [self.space.text([draw.random() for _ in self.space.ranges]) for _ in range(population)])

    def tried(self, by: str, points: list[str]) -> list[dict[str, Any]]:
        tasks, cpu = self.evaluate(by, points)
        method = self.methods.setdefault(by, Method(by))
        method.cpu += cpu
        method.take(tasks)
        self.seen.update((task["point"], task) for task in tasks)
        return tasks

    def worst(self) -> list[dict[str, Any]]:
        """The points of the largest scores."""
        scored = [task for task in self.seen.values() if share_of(task["score"]) is not None]
        return sorted(scored, key=lambda task: (-height(share_of(task["score"])), task["point"]))[: self.settings["keep"]]

    def shrunk(self, task: dict[str, Any], usual: dict[str, float]) -> dict[str, Any]:
        """A simpler point that is nearly as bad: numbers at their usual values, then rounded to fewer digits, while the score
        keeps SHRUNK of itself and the verdict stays."""
        least = height(share_of(task["score"])) + math.log10(SHRUNK)
        for name in [r["name"] for r in self.space.ranges]:
            for candidate in self.simpler(task["point"], name, usual):
                tried = self.seen.get(candidate) or self.tried("shrink", [candidate])[0]
                if height(share_of(tried["score"])) >= least and tried["verdict"] == task["verdict"]:
                    task = tried
                    break
        return task

    def simpler(self, point: str, name: str, usual: dict[str, float]) -> list[str]:
        r = next(one for one in self.space.ranges if one["name"] == name)
        now = self.space.numbers(point)[name]
        wanted = [usual[name]] if name in usual else []
        if r["whole"]:
            wanted += [max(r["least"], now // 4), max(r["least"], now // 2)]
        else:
            wanted += [r["least"], r["most"], float(f"{now:.1g}"), float(f"{now:.2g}")]
        out = []
        for value in wanted:
            if value == now or not r["least"] <= value <= r["most"]:
                continue
            word = f"{name}={int(value)}" if r["whole"] else f"{name}={float(value)!r}"
            out.append(",".join(word if one.startswith(name + "=") else one for one in point.split(",")))
        return list(dict.fromkeys(out))

    def line(self) -> str:
        words = []
        for m in self.methods.values():
            if m.by == "shrink" and m.evaluations:
                words.append(f"simplifying: {m.evaluations} points, {m.cpu:.0f} s")
            elif m.evaluations:
                words.append(f"{m.by}: {m.evaluations} points, {m.refuted} refuted, worst score {score_text(m.best)}, {m.cpu:.0f} s")
        return "; ".join(words)

    def report(self) -> dict[str, Any]:
        ours, theirs = self.methods["search"], self.methods["random"]
        ratio = ours.best / theirs.best if ours.best and theirs.best and math.isfinite(ours.best) and math.isfinite(theirs.best) else None
        return {
            "schema": "deltaproof.search/1",
            "goal": self.settings["goal"],
            "restarts": self.restarts,
            "methods": {m.by: m.json() for m in self.methods.values() if m.evaluations},
            "ratio": ratio,
            "worse_per_cpu_hour": {m.by: None if not m.best or not m.cpu or not math.isfinite(m.best) else m.best / (m.cpu / 3600) for m in self.methods.values() if m.evaluations},
        }


def run_campaign(
    program: str,
    campaign: str,
    folder: str,
    run_tasks: Callable[[list[int]], float],
    every: float = 10,
) -> dict[str, Any]:
    """The search of a campaign. `run_tasks` runs tasks by their numbers and gives their processor seconds. Writes search.json and
    the witnesses; the report. Throws: SystemExit with what the program said."""

    def propose(by: str, points: list[str]) -> dict[str, Any]:
        lines = "".join(f"{by} {point}\n" for point in points)
        done = subprocess.run([program, "sweep", campaign, "-o", folder, "--propose", "--json", "-"], input=lines, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(done.stderr.strip(), file=sys.stderr)
            raise SystemExit(done.returncode)
        return json.loads(done.stdout)

    spent_file = Path(folder) / "spent.json"

    def evaluate(by: str, points: list[str]) -> tuple[list[dict[str, Any]], float]:
        before = propose(by, points)["tasks"]
        todo = sorted({task["index"] for task in before if task["state"] in ("todo", "failed")})
        name = f"{by} {points[0]}"
        # What a generation cost is remembered: a search that goes on has spent what it spent before.
        spent[name] = spent.get(name, 0.0) + (run_tasks(todo) if todo else 0.0)
        if todo:
            spent_file.write_text(json.dumps(spent))
        return propose(by, points)["tasks"], spent[name]

    head = propose("search", [])
    try:
        spent: dict[str, float] = json.loads(spent_file.read_text())
    except (OSError, ValueError):
        spent = {}
    driver = Driver(head["search"], evaluate)
    last = [time.monotonic()]

    def said(line: str) -> None:
        if every > 0 and time.monotonic() - last[0] >= every:
            last[0] = time.monotonic()
            print(f"deltaproof: {line}", file=sys.stderr, flush=True)

    driver.run(said)
    report = driver.report()
    usual = usual_values(program)
    report["worst"] = []
    for rank, task in enumerate(driver.worst(), 1):
        small = driver.shrunk(task, usual)
        report["worst"].append({"found": task, "shrunk": small, "witness": witness(program, campaign, small, Path(folder) / "witnesses" / str(rank))})
    Path(folder, "search.json").write_text(json.dumps(report, indent=1) + "\n")
    print(f"deltaproof: {driver.line()}", file=sys.stderr)
    return report


def usual_values(program: str) -> dict[str, float]:
    done = subprocess.run([program, "list", "law-parameters", "--json", "-"], capture_output=True, text=True, check=True)
    return {one["name"]: float(one["usual"]) for one in json.loads(done.stdout)["law-parameters"]}


def witness(program: str, campaign: str, task: dict[str, Any], folder: Path) -> str | None:
    """The smallest part of a refuted task that is still refuted, as a folder for `deltaproof replay`; nothing where it holds."""
    if task["verdict"] != "refuted" or (folder / "verdict.json").exists():
        return str(folder) if (folder / "verdict.json").exists() else None
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as box:
        for file in Path(campaign).parent.glob("*.toml"):  # plan files, which commands name as the campaign does
            (Path(box) / file.name).symlink_to(file.resolve())
        (Path(box) / "deltaproof").symlink_to(program)
        command = task["command"].replace("deltaproof ", "./deltaproof ") + ' --witness "$0"'
        subprocess.run(["sh", "-c", command, str(folder.resolve())], cwd=box, capture_output=True, check=False)
    return str(folder) if (folder / "verdict.json").exists() else None


def search_kernel(
    kernel: Callable[..., Any],
    space: dict[str, tuple[float, float]],
    *,
    plan: str | None = None,
    op: str = "gated_delta_rule",
    T: int = 64,
    K: int = 32,
    V: int = 32,
    dtype: str = "bf16",
    generations: int = 20,
    population: int = 16,
    seed: int = 1,
    keep: int = 3,
    score: Callable[[Any], float] | None = None,
    random: bool = True,
) -> dict[str, Any]:
    """Looks in `space` for the inputs on which a kernel is worst: `kernel(problem)` gives a Result, or a dict of o and final_state.

    space: {"cosine": (0, 1), "T": (16, 128)}: T, seed, and what `deltaproof list law-parameters` names. Each point is a problem of the
    regime law, and the kernel's result on it is checked. `score(verdict)`: what is made large; by default the largest error in
    units of its limit of `plan`, or the relative error of o where no plan is given. A kernel that raises has scored inf.
    Gives the report of a search (deltaproof.search/1); report["worst"] has the points, for `cases(regimes="law", law=...)`.
    """
    from . import cases, check

    whole = ("T", "seed")
    settings = {
        "goal": "limits" if plan else "error",
        "seed": seed,
        "population": population,
        "generations": generations,
        "cpu_minutes": 0,
        "keep": keep,
        "random": random,
        "space": [{"name": n, "least": low, "most": high, "whole": n in whole} for n, (low, high) in space.items()],
    }

    def one(by: str, point: str) -> dict[str, Any]:
        at = dict(part.split("=") for part in point.split(","))
        tokens, draw = int(at.pop("T", T)), int(at.pop("seed", 0))
        law = ",".join(f"{name}={value}" for name, value in at.items())
        case = next(iter(cases(op, "law", tokens, K, V, dtype, draw, law=law, H=1, HV=1)))
        task: dict[str, Any] = {"by": by, "point": point, "verdict": None, "score": None, "state": "judged"}
        problem = case.problem
        try:
            given = kernel(problem)
        except Exception as failure:  # whatever a kernel raises is what was looked for
            worst = {"tensor": "o", "norm": settings["goal"], "share": "inf"}
            return {**task, "state": "failed", "reason": f"{type(failure).__name__}: {failure}", "score": worst}
        verdict = check(problem, given, plan=plan or False, power=False)
        share = score(verdict) if score else default_score(verdict, plan)
        return {**task, "verdict": verdict.word, "score": {"tensor": "o", "norm": settings["goal"], "share": text_of(share)}}

    def evaluate(by: str, points: list[str]) -> tuple[list[dict[str, Any]], float]:
        before = time.process_time()
        return [one(by, point) for point in points], time.process_time() - before

    driver = Driver(settings, evaluate)
    driver.run(lambda line: None)
    report = driver.report()
    report["worst"] = [{"found": task, "shrunk": driver.shrunk(task, {})} for task in driver.worst()]
    return report


def default_score(verdict: Any, plan: str | None) -> float:
    if plan is None:
        return float(verdict.tensors["o"]["rel_fro"])
    limits = [bucket for tensor in verdict.json["tensors"] for bucket in tensor.get("buckets", [])]
    return max((float(one["got"]) / float(one["limit"]) for one in limits if float(one["limit"]) > 0), default=0.0)


def children_seconds() -> float:
    """Processor seconds of all processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
