# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""`python -m deltaproof.sweep CAMPAIGN -o DIR --cluster WHERE`: the tasks of `deltaproof sweep`, handed out by Dask.distributed.

WHERE is `here` (the program alone, without Dask), `local`, `local:8` (processes), `ssh:host,host`, `slurm:partition` (dask-jobqueue) or the address of a scheduler that is
there, `tcp://host:8786`. Each Dask task is a batch: the program itself, `deltaproof sweep --tasks`, in DIR, which all machines must
see, as they must see the campaign, the recordings and the same build of this package. Results are kept as `sweep` keeps them, so
that a worker that dies costs only the tasks that it was at, and the same command goes on after anything. `deltaproof merge DIR`
then joins the results.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from .__main__ import program
from .search import children_seconds, run_campaign, score_text as score

ROUNDS = 3


def waiting(campaign: str, folder: str) -> tuple[list[int], dict[str, int]]:
    """The numbers of the tasks that are to be run, and how many there are in each state."""
    done = subprocess.run(
        [program(), "sweep", campaign, "-o", folder, "--list", "--json", "-"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        print(done.stderr.strip(), file=sys.stderr)
        raise SystemExit(done.returncode)
    counts: dict[str, int] = {}
    todo = []
    for task in json.loads(done.stdout)["tasks"]:
        counts[task["state"]] = counts.get(task["state"], 0) + 1
        if task["state"] in ("todo", "damaged", "failed"):
            todo.append(task["index"])
    return todo, counts


def run_batch(campaign: str, folder: str, indices: list[int], threads: int = 1) -> dict[str, float]:
    """Runs these tasks on the machine of a worker; the counts of `sweep`, and the processor seconds. Throws: RuntimeError with
    what the program said."""
    listed = ",".join(map(str, indices))
    before = children_seconds()
    done = subprocess.run(
        [program(), "sweep", campaign, "-o", folder, "--tasks", listed, "--threads", str(threads), "--json", "-"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "DELTAPROOF_PROGRESS_SECONDS": "0"},
    )
    if not done.stdout.startswith("{"):
        raise RuntimeError(done.stderr.strip() or f"deltaproof: the program ended with exit code {done.returncode}")
    counts: dict[str, float] = json.loads(done.stdout)["counts"]
    return {**counts, "cpu_seconds": children_seconds() - before}


def client_of(where: str, workers: int):
    """A dask.distributed Client, and the cluster that was started for it or None. Throws: ImportError, SystemExit."""
    kind, _, rest = where.partition(":")
    if kind not in ("local", "ssh", "slurm", "tcp", "tls", "ucx"):
        raise SystemExit(f"deltaproof: --cluster {where} is not a kind of cluster; give local, here, local:N, ssh:HOST,HOST, slurm:PARTITION or a Dask scheduler's address (tcp://HOST:PORT); for Kubernetes see docs/sweep.md")
    if kind == "local" and rest and not rest.isdecimal():
        raise SystemExit(f"deltaproof: --cluster {where}: {rest} is not a number of processes; give local:N")
    packages = ["distributed"] + ["dask_jobqueue"] * (kind == "slurm")
    for name in packages:
        try:
            importlib.import_module(name)
        except ImportError as missing:
            needs = f"--cluster {where} needs {missing.name}: pip install {' '.join(packages).replace('_', '-')}"
            raise ImportError(f"{needs} (Debian: python3-distributed), or give --cluster here", name=missing.name) from None
    from distributed import Client

    if kind == "local":
        from distributed import LocalCluster

        count = int(rest) if rest else workers or os.cpu_count() or 1
        cluster = LocalCluster(n_workers=count, threads_per_worker=1, processes=True, dashboard_address=None)
    elif kind == "ssh":
        from distributed import SSHCluster

        hosts = rest.split(",")
        # By the name that the workers know it by: a machine may have several.
        at = {"host": hosts[0].rpartition("@")[2]}
        cluster = SSHCluster([hosts[0], *hosts], scheduler_options=at, worker_options={"nthreads": 1, "n_workers": workers or 1})
    elif kind == "slurm":
        from dask_jobqueue import SLURMCluster

        cluster = SLURMCluster(queue=rest or None, cores=1, processes=1, memory="4GB")
        cluster.scale(workers or 8)
    else:
        return Client(where), None
    return Client(cluster), cluster


class Progress:
    """A line on stderr now and then: done, tasks a second, failures, time left."""

    def __init__(self, every: float):
        self.every = every
        self.began = self.said = time.monotonic()

    def say(self, done: int, todo: int, failed: int, lost: int, last: bool = False) -> None:
        now = time.monotonic()
        if self.every <= 0 or (now - self.said < self.every and not last):
            return
        self.said = now
        rate = done / max(now - self.began, 1e-9)
        words = f"{done} of {todo} tasks, {rate:.3g} a second"
        words += f", {failed} failed" if failed else ""
        words += f", {lost} lost" if lost else ""
        words += f", about {(todo - done) / rate:.0f} s left" if done and not last else ""
        print(f"deltaproof: {words}", file=sys.stderr, flush=True)


def run_round(client, campaign: str, folder: str, todo: list[int], batch: int, progress: Progress) -> list[str]:
    """Every batch once; why batches brought nothing."""
    from distributed import as_completed

    batches = [todo[i : i + batch] for i in range(0, len(todo), batch)]
    futures = client.map(lambda indices: run_batch(campaign, folder, indices), batches, pure=False)
    size = {future.key: len(indices) for future, indices in zip(futures, batches)}
    done = failed = lost = 0
    wrong = []
    for future in as_completed(futures):
        error = future.exception()
        if error is not None:
            wrong.append(str(error) or type(error).__name__)
        else:
            counts = future.result()
            failed, lost, done = failed + counts["failed"], lost + counts["lost"], done + size[future.key]
        progress.say(done, len(todo), failed, lost)
        future.release()
    progress.say(done, len(todo), failed, lost, last=True)
    return wrong


def search(campaign: str, folder: str, where: str = "local", *, workers: int = 0, every: float = 10) -> dict:
    """Runs a campaign of kind "search"; its report, deltaproof.search/1, which is also in the folder: search.json."""
    campaign, folder = str(Path(campaign).resolve()), str(Path(folder).resolve())
    client, cluster = (None, None) if where == "here" else client_of(where, workers)
    cores = workers or os.cpu_count() or 1

    def run_tasks(indices: list[int]) -> float:
        if client is None:
            return run_batch(campaign, folder, indices, cores)["cpu_seconds"]
        width = max(1, len(client.scheduler_info()["workers"]))
        parts = [part for part in (indices[i::width] for i in range(width)) if part]
        futures = client.map(lambda part: run_batch(campaign, folder, part), parts, pure=False)
        return sum(one["cpu_seconds"] for one in client.gather(futures))

    try:
        return run_campaign(program(), campaign, folder, run_tasks, every)
    finally:
        if client is not None:
            client.close()
        if cluster is not None:
            cluster.close()


def kind_of(campaign: str) -> str:
    """What the program says of a campaign. Throws: SystemExit with what it says of a wrong one."""
    done = subprocess.run([program(), "sweep", campaign, "--list", "--json", "-", "--shard", "1/1000000000"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(done.stderr.strip(), file=sys.stderr)
        raise SystemExit(done.returncode)
    return str(json.loads(done.stdout)["kind"])


def sweep(campaign: str, folder: str, where: str = "local", *, workers: int = 0, batch: int = 0, every: float = 10) -> dict[str, int]:
    """Runs what is missing in `folder`; how many tasks are then in each state of `deltaproof sweep --list`.

    `batch`: tasks at a time (0: so that each worker comes to about twenty batches, at most 64).
    """
    campaign, folder = str(Path(campaign).resolve()), str(Path(folder).resolve())
    todo, counts = waiting(campaign, folder)
    if not todo:
        return counts
    if where == "here":
        run_batch(campaign, folder, todo, workers or os.cpu_count() or 1)
        return waiting(campaign, folder)[1]
    client, cluster = client_of(where, workers)
    try:
        for left in reversed(range(ROUNDS)):
            cores = max(1, len(client.scheduler_info()["workers"]))
            wrong = run_round(client, campaign, folder, todo, batch or max(1, min(64, len(todo) // (20 * cores))), Progress(every))
            todo, counts = waiting(campaign, folder)
            if not wrong:
                break
            goes_on = " and are tried again" if left and todo else ""
            print(f"deltaproof: {len(wrong)} batches failed{goes_on}; the first said: {wrong[0]}", file=sys.stderr)
            if not todo:
                break
    finally:
        client.close()
        if cluster is not None:
            cluster.close()
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m deltaproof.sweep", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("campaign", help="the TOML file of `deltaproof sweep`")
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="the folder of the results")
    parser.add_argument("--cluster", default="local", metavar="WHERE", help="here, local, local:N, ssh:HOST,HOST, slurm:PARTITION, tcp://HOST:PORT")
    parser.add_argument("--workers", type=int, default=0, metavar="N", help="worker processes; with ssh, on each host (0: one for each core; with ssh 1, with slurm 8)")
    parser.add_argument("--batch", type=int, default=0, metavar="N", help="tasks that a worker takes at a time (0: so many that it takes about 20 times, at most 64); not used with `here` and in searches")
    given = parser.parse_args()
    try:
        if kind_of(given.campaign) == "search":
            report = search(given.campaign, given.output, given.cluster, workers=given.workers)
            for one in report["worst"]:
                found, simple = one["found"], one["shrunk"]
                witness = f"; witness: {one['witness']}" if one["witness"] else ""
                at = f"score {score(simple['score']['share'])}, {simple['verdict']}, at {simple['point']}"
                print(f"found with score {score(found['score']['share'])}; made simpler: {at}{witness}")
            methods = [(by, m) for by, m in report["methods"].items() if by != "shrink"]
            print(f"{given.output}/search.json: " + "; ".join(f"{by}: worst score {score(m['best'])}, {m['cpu_seconds']:.0f} s" for by, m in methods))
            sys.exit(0)
        counts = sweep(given.campaign, given.output, given.cluster, workers=given.workers, batch=given.batch)
    except ImportError as missing:
        sys.exit(f"deltaproof: {missing}")
    except RuntimeError as wrong:  # what the program said
        print(wrong, file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("deltaproof: interrupted; what is finished is kept, the same command runs the rest", file=sys.stderr)
        sys.exit(130)
    print(f"{given.output}: " + ", ".join(f"{count} {state}" for state, count in sorted(counts.items())))
    failed = counts.get("failed", 0)
    sys.exit(2 if failed else 0 if counts.get("done", 0) == sum(counts.values()) else 3)


if __name__ == "__main__":
    from deltaproof.sweep import main as as_a_module  # so that workers find its functions by name

    as_a_module()
