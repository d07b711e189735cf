# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""Two machines do one sweep: namespaces with a network, a host name and process ids of their own, which share a folder. Skipped,
with a word, where this is not root or namespaces cannot be made."""
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

CAMPAIGN = """kind = "regimes"
[axes]
plan = "fp32"
regime = ["typical", "tails"]
op = "delta_rule"
T = 16
K = 16
V = 8
H = 1
HV = 1
seed = { from = 1, to = 12 }
[judging]
power = false
"""


def run(*words, **more):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **more)


class Host:
    """A machine: `words` gives the command that runs there."""

    def __init__(self, name, space, address):
        self.name, self.space, self.address = name, space, address

    def words(self, *command):
        quoted = " ".join("'" + str(word).replace("'", "'\\''") + "'" for word in command)
        return ["ip", "netns", "exec", self.space, "unshare", "--uts", "--pid", "--fork", "--mount-proc", "--kill-child",
                "sh", "-c", f"hostname {self.name}; {quoted}"]  # fmt: skip

    def start(self, *command, **more):
        return subprocess.Popen(self.words(*command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)


@pytest.fixture
def hosts():
    if os.geteuid() != 0:
        pytest.skip("two machines are made of namespaces, which needs root")
    for needed in ("ip", "unshare", "hostname"):
        if shutil.which(needed) is None:
            pytest.skip(f"two machines are made with {needed}, which is not installed (iproute2, util-linux, hostname)")
    mark = os.getpid()
    both = [Host("alpha", f"dp{mark}a", "10.213.7.1"), Host("beta", f"dp{mark}b", "10.213.7.2")]
    steps = [["ip", "netns", "add", host.space] for host in both]
    steps.append(["ip", "link", "add", f"dpa{mark}", "netns", both[0].space, "type", "veth", "peer", "name", f"dpb{mark}", "netns", both[1].space])
    for host, end in zip(both, "ab"):
        inside = ["ip", "-n", host.space]
        steps += [[*inside, "address", "add", f"{host.address}/24", "dev", f"dp{end}{mark}"]]
        steps += [[*inside, "link", "set", f"dp{end}{mark}", "up"], [*inside, "link", "set", "lo", "up"]]
    try:
        for step in steps:
            done = run(*step)
            if done.returncode != 0:
                pytest.skip(f"no namespaces here: {' '.join(step)}: {done.stderr.strip()}")
        there = run(*both[0].words("hostname"))
        if there.stdout.strip() != "alpha":
            pytest.skip(f"no machine of one's own here: {there.stderr.strip()}")
        yield both
    finally:
        for host in both:
            run("ip", "netns", "del", host.space)


@pytest.fixture
def box(tmp_path):
    (tmp_path / "c.toml").write_text(CAMPAIGN)
    return tmp_path


@pytest.fixture
def packaged():
    from deltaproof.sweep import program

    return program()


def merged(box, packaged, folder):
    done = run(packaged, "merge", folder, "-o", "merge.json", cwd=box)
    assert done.returncode == 0, done.stdout + done.stderr
    return (box / "merge.json").read_text()


@pytest.fixture
def whole(box, packaged):
    assert run(packaged, "sweep", "c.toml", "-o", "whole", cwd=box).returncode == 0
    return merged(box, packaged, "whole")


def test_two_machines_do_one_shard_at_once(box, hosts, packaged, whole):
    assert json.loads(whole)["counts"]["judged"] == 24
    ids = [host.start("sh", "-c", "echo $$") for host in hosts]
    assert ids[0].communicate()[0] == ids[1].communicate()[0]  # process ids do not tell them apart
    both = [host.start(packaged, "sweep", "c.toml", "-o", "twice", "--shard", "1/1", cwd=box) for host in hosts]
    said = [one.communicate(timeout=300)[0] for one in both]
    assert [one.returncode for one in both] == [0, 0], said
    assert merged(box, packaged, "twice") == whole
    left = [str(file) for file in (box / "twice").rglob("*") if file.is_file() and file.suffix != ".json"]
    assert not left, left


def dask():
    return pytest.mark.skipif(
        importlib.util.find_spec("distributed") is None, reason="Dask is not there: python3-distributed, or pip install distributed"
    )


def answers(host, port, seconds=60):
    until = time.monotonic() + seconds
    words = ["ip", "netns", "exec", host.space, sys.executable, "-c", f"import socket; socket.create_connection(('{host.address}', {port}), 1)"]
    while run(*words).returncode != 0:
        if time.monotonic() > until:
            return False
        time.sleep(0.3)
    return True


@dask()
def test_a_scheduler_and_a_worker_on_two_machines(box, hosts, packaged, whole):
    first, second = hosts
    scheduler = first.start(sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", first.address, "--port", 8786, "--no-dashboard", cwd=box)
    worker = None
    try:
        assert answers(first, 8786), scheduler.communicate()[0] if scheduler.poll() is not None else "the scheduler does not answer"
        worker = second.start(sys.executable, "-m", "distributed.cli.dask_worker", f"tcp://{first.address}:8786", "--host", second.address,
                              "--nthreads", 1, "--no-dashboard", "--local-directory", box / "scratch", cwd=box)  # fmt: skip
        driver = first.start(sys.executable, "-m", "deltaproof.sweep", "c.toml", "-o", "dask", "--cluster", f"tcp://{first.address}:8786", cwd=box)
        said = driver.communicate(timeout=300)[0]
        assert driver.returncode == 0, said
    finally:
        for process in (worker, scheduler):
            if process is not None:
                process.kill()
                process.wait()
    assert merged(box, packaged, "dask") == whole


def keys_for(box, home):
    """A user with a key, whom a server of this box lets in."""
    (home / ".ssh").mkdir(parents=True)
    for file in (home / ".ssh" / "id_ed25519", box / "host_key"):
        assert run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file).returncode == 0
    shutil.copy(home / ".ssh" / "id_ed25519.pub", box / "authorized")
    return (box / "host_key.pub").read_text().split()[:2]


@dask()
def test_ssh_to_two_machines(box, hosts, packaged, whole):
    sshd = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
    if sshd is None or importlib.util.find_spec("asyncssh") is None:
        pytest.skip("a server of ssh and asyncssh are needed: openssh-server and python3-asyncssh")
    home = box / "home"
    key = keys_for(box, home)
    (home / ".ssh" / "known_hosts").write_text("".join(f"{host.address} {' '.join(key)}\n" for host in hosts))
    path = os.environ.get("PYTHONPATH", "")
    (box / "sshd_config").write_text(
        f"HostKey {box}/host_key\nAuthorizedKeysFile {box}/authorized\nStrictModes no\nPermitRootLogin prohibit-password\n"
        f"UsePAM no\nPidFile none\nSetEnv PYTHONPATH={path} PYTHONDONTWRITEBYTECODE=1\n"
    )
    Path("/run/sshd").mkdir(exist_ok=True)
    servers = [host.start(sshd, "-D", "-e", "-f", box / "sshd_config") for host in hosts]
    try:
        for host, server in zip(hosts, servers):
            if not answers(host, 22, 20):
                server.kill()
                pytest.skip(f"a server of ssh does not start here: {server.communicate()[0]}")
        driver = hosts[0].start(sys.executable, "-m", "deltaproof.sweep", "c.toml", "-o", "ssh", "--cluster", f"ssh:{hosts[0].address},{hosts[1].address}",
                                "--workers", 1, cwd=box, env={**os.environ, "HOME": str(home)})  # fmt: skip
        said = driver.communicate(timeout=700)[0]
        assert driver.returncode == 0, said
    finally:
        for server in servers:
            server.kill()
            server.wait()
    assert merged(box, packaged, "ssh") == whole
