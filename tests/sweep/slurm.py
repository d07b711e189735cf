#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""slurm.py PROGRAM ROOT: a Slurm of one node, started here, runs examples/cluster/slurm-array.sh. Exit 77, with a word, where
Slurm is not installed (slurm-wlm), this is not root, or its daemons do not start in this container."""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

PROGRAM, ROOT = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
CAMPAIGN = """kind = "regimes"
[axes]
plan = "fp32"
regime = ["typical", "tails"]
op = "delta_rule"
T = 16
K = 8
V = 4
H = 1
HV = 1
seed = { from = 1, to = 10 }
[judging]
power = false
"""
CONFIG = """ClusterName=box
SlurmctldHost={host}({address})
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/none
CredType=cred/none
SlurmUser=root
StateSaveLocation={box}/state
SlurmdSpoolDir={box}/spool
SlurmctldPidFile={box}/slurmctld.pid
SlurmdPidFile={box}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1
MpiDefault=none
ReturnToService=2
NodeName={host} NodeAddr={address} CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def said(*words, **more):
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=240, **more)


for needed in ("slurmctld", "slurmd", "sbatch", "sinfo"):
    if shutil.which(needed, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None:
        skip(f"{needed} is not installed (slurm-wlm)")
if os.geteuid() != 0:
    skip("a Slurm of one's own needs root")

with tempfile.TemporaryDirectory() as name:
    box = pathlib.Path(name)
    for folder in ("state", "spool", "bin"):
        (box / folder).mkdir()
    (box / "bin" / "deltaproof").symlink_to(PROGRAM)
    (box / "campaign.toml").write_text(CAMPAIGN)
    host = socket.gethostname().split(".")[0]
    config = box / "slurm.conf"
    config.write_text(CONFIG.format(host=host, address="127.0.0.1", ports=free_ports(2), box=box, cpus=os.cpu_count()))
    shell = {**os.environ, "SLURM_CONF": str(config), "PATH": f"{box}/bin:{os.environ['PATH']}:/usr/sbin:/sbin", "DELTAPROOF_PROGRESS_SECONDS": "0"}
    logs = [open(box / f"{daemon}.log", "w") for daemon in ("slurmctld", "slurmd")]
    daemons = []
    try:
        daemons.append(subprocess.Popen(["slurmctld", "-D", "-f", config], env=shell, stdout=logs[0], stderr=logs[0]))
        daemons.append(subprocess.Popen(["slurmd", "-D", "-f", config, "-N", host], env=shell, stdout=logs[1], stderr=logs[1]))
        until = time.monotonic() + 60
        while "idle" not in said("sinfo", "-h", "-o", "%t", env=shell).stdout:
            if time.monotonic() > until or any(one.poll() is not None for one in daemons):
                for log in ("slurmctld.log", "slurmd.log"):
                    print((box / log).read_text()[-1500:])
                skip("the daemons of Slurm do not start here")
            time.sleep(0.5)
        done = said("sbatch", "--wait", "--array=1-4", "--mem=0", ROOT / "examples/cluster/slurm-array.sh", "campaign.toml", "results", cwd=box, env=shell)
        print(done.stdout, done.stderr)
        for log in sorted(box.glob("slurm-*.out")):
            print(log.name, log.read_text().strip())
        assert done.returncode == 0, "the array failed"
        merge = said(PROGRAM, "merge", "results", "-o", "merge.json", cwd=box)
        assert merge.returncode == 0, merge.stdout + merge.stderr
        array = (box / "merge.json").read_text()
        assert said(PROGRAM, "sweep", "campaign.toml", "-o", "whole", cwd=box).returncode == 0
        assert said(PROGRAM, "merge", "whole", "-o", "whole.json", cwd=box).returncode == 0
        assert array == (box / "whole.json").read_text(), "the array gives other bytes than one process"
        assert json.loads(array)["counts"]["judged"] == 20
        print("a Slurm array of four gives the bytes of one process")
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
            daemon.wait(30)
