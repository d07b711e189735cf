# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""Runs fla's delta-rule kernels on problem files, forward and backward, and records what came out.

    PYTHONPATH=../../python/deltaproof python3 record.py --out DIR PROBLEM.safetensors...

Each kernel whose operation the problem is leaves DIR/CASE.SIDE.result.safetensors: o, final_state, the forward stages, and,
where the kernel has a backward pass, gradients and backward stages. A problem without `do` gets one, drawn with --seed, and is
written anew.
DIR/log.json says which runs were bitwise repeatable, which refused and in what words, and what autotuning chose.
--stand-in: the kernels' sources in Triton's CPU interpreter (stand_in.py); needs no GPU, and is not GPU output.
"""

import argparse
import json
import logging
import os
import sys
import time

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("--out", required=True)
parser.add_argument("--sides", default="chunk,recurrent,safe", help="chunk, recurrent, safe: KDA's chunk kernel with safe_gate")
parser.add_argument("--repeat", type=int, default=3, help="further runs, compared bit for bit with the first")
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--forward-only", action="store_true")
parser.add_argument("--no-stages", action="store_true", help="o, final_state and gradients alone: smaller files")
parser.add_argument("--note", default="", help="more words for `producer`: what was done to the library from outside, say")
parser.add_argument("--stand-in", action="store_true")
parser.add_argument("problems", nargs="+")
given = parser.parse_args()
if given.stand_in:
    import stand_in

import torch  # noqa: E402
from fla.ops.delta_rule import chunk_delta_rule, fused_recurrent_delta_rule  # noqa: E402
from fla.ops.gated_delta_product import chunk_gated_delta_product  # noqa: E402
from fla.ops.gated_delta_rule import chunk_gated_delta_rule, fused_recurrent_gated_delta_rule  # noqa: E402
from fla.ops.kda import chunk_kda, fused_recurrent_kda  # noqa: E402
from recorder import BACKWARD_SITES, COTANGENTS, PROBLEM_TENSORS, PROBLEM_WORDS, environment, read, record, record_result, taps  # noqa: E402

KERNELS = {
    ("delta_rule", "chunk"): chunk_delta_rule,
    ("delta_rule", "recurrent"): fused_recurrent_delta_rule,
    ("gated_delta_rule", "chunk"): chunk_gated_delta_rule,
    ("gated_delta_rule", "recurrent"): fused_recurrent_gated_delta_rule,
    ("kda", "chunk"): chunk_kda,
    ("kda", "recurrent"): fused_recurrent_kda,
    ("kda", "safe"): chunk_kda,
    ("gated_delta_product", "chunk"): chunk_gated_delta_product,
}
WITH_BACKWARD = ("chunk", "safe")  # and the recurrent delta rule
MODULES_OF_BACKENDS = ("fla.backends", "fla.ops.backends")  # 0.6, 0.5.2
LEAVES = {"q": "dq", "k": "dk", "v": "dv", "beta": "dbeta", "g": "dg", "initial_state": "dinitial_state"}


def run(kernel, side, p):
    """The kernel on a problem as `read` gives it, its tensors where the kernel runs."""
    if p.get("rule", "euler") != "euler":
        raise NotImplementedError(f"rule {p['rule']}: fla's kernels have euler alone")
    words = {"scale": p.get("scale"), "initial_state": p.get("initial_state"), "output_final_state": True}
    words["use_qk_l2norm_in_kernel"] = p.get("qk_l2norm", False)
    if p.get("cu_seqlens") is not None:
        words["cu_seqlens"] = p["cu_seqlens"]
    if p["op"] != "delta_rule":
        words["g"] = p.get("g")
    if p["op"] == "gated_delta_product":
        words["num_householder"] = p.get("num_householder", 1)
    if p.get("beta_activation", "none") != "none":
        words["use_beta_sigmoid_in_kernel"] = True
        words["allow_neg_eigval"] = p["beta_activation"] == "two_sigmoid"
    if p.get("gate_activation", "none") != "none":
        words.update(use_gate_in_kernel=True, A_log=p["A_log"], dt_bias=p.get("dt_bias"))
        if "gate_lower_bound" in p:
            words["lower_bound"] = p["gate_lower_bound"]
    if side == "safe":
        words["safe_gate"] = True
    return kernel(q=p["q"], k=p["k"], v=p["v"], beta=p["beta"], **words)


def gradients(kernel, side, p):
    """Gradients and backward stages, by names of the exchange format."""
    leaves = {name: p[name].detach().clone().requires_grad_() for name in LEAVES if name in p}
    o, final_state = run(kernel, side, {**p, **leaves})
    outputs = [(o, p["do"])] + ([(final_state, p["dfinal_state"])] if "dfinal_state" in p else [])
    with taps(BACKWARD_SITES) as stages:
        torch.autograd.backward([x for x, _ in outputs], [d for _, d in outputs])
    return {LEAVES[name]: x.grad for name, x in leaves.items() if x.grad is not None}, dict(stages)


def same(a, b):
    """Bit for bit; NaN is what it is."""
    return all(torch.equal(x.contiguous().view(torch.uint8), y.contiguous().view(torch.uint8)) for x, y in zip(a, b))


def with_cotangents(p):
    if "do" in p:
        return p
    draw = torch.Generator().manual_seed(given.seed)
    like = p.get("initial_state")
    drawn = {"do": torch.randn(p["q"].shape[:2] + p["v"].shape[2:], generator=draw).to(p["q"].dtype)}
    if like is not None:
        drawn["dfinal_state"] = torch.randn(like.shape, generator=draw)
    return {**p, **drawn}


class Dispatched(logging.Handler):
    """Which of fla's entry points another library took over: flash_qla and flash_kda where they are installed, tilelang."""

    def __init__(self):
        super().__init__(logging.INFO)
        self.seen = set()
        for name in MODULES_OF_BACKENDS:
            log = logging.getLogger(name)
            log.setLevel(logging.INFO)
            log.propagate = False
            log.addHandler(self)

    def fresh(self):
        """fla says each of them once in a process: from here on, once more."""
        self.seen.clear()
        for module in filter(None, map(sys.modules.get, MODULES_OF_BACKENDS)):
            of_class = getattr(getattr(module, "BackendRegistry", None), "_registries", {})
            for registries in (module.__dict__.get("_operation_registries"), module.__dict__.get("_function_registries"), of_class):
                for registry in (registries or {}).values():
                    registry._logged.clear()
        return self

    def emit(self, record):
        words = record.getMessage()
        if " -> " in words and "rejected" not in words:  # "[FLA Backend] common.chunk_bwd_dqkwg -> tilelang"
            self.seen.add(words.split("] ")[-1])


def autotuned():
    """Kernel -> configurations that autotuning chose."""
    found = {}
    for module in [m for name, m in sys.modules.items() if name.startswith("fla.")]:
        for name, x in vars(module).items():
            while x is not None and not hasattr(x, "cache") and hasattr(x, "fn"):
                x = x.fn
            if hasattr(x, "configs") and (len(x.configs) == 1 or getattr(x, "cache", None)):
                found[name] = sorted({str(choice) for choice in (x.configs if len(x.configs) == 1 else x.cache.values())})
    return found


def one(path, side, producer, dispatched):
    """Records one kernel on one problem; returns what the log says."""
    case = os.path.basename(path).replace(".problem.safetensors", "")
    p = read(path)
    kernel = KERNELS[p["op"], side]
    log = {"case": case, "side": side, "kernel": kernel.__name__}
    recurrent, raw = side == "recurrent", p.get("gate_activation", "none") != "none"
    backward = not given.forward_only and not raw and (side in WITH_BACKWARD or p["op"] == "delta_rule")
    names = PROBLEM_TENSORS + COTANGENTS + PROBLEM_WORDS
    if backward and "do" not in p:
        p = with_cotangents(p)
        path = record(os.path.join(given.out, case), {name: p[name] for name in names if name in p})[0]
    device = "cpu" if given.stand_in else "cuda"
    p = {name: x.to(device) if isinstance(x, torch.Tensor) else x for name, x in p.items()}
    try:
        with torch.no_grad():
            with taps() as stages:
                outputs = run(kernel, side, p)
            stages = {} if recurrent or given.no_stages else dict(stages)
            log["forward repeats"] = [same(outputs, run(kernel, side, p)) for _ in range(given.repeat)]
        found, back = {}, {}
        if backward:
            try:
                found, back = gradients(kernel, side, p)
                log["backward repeats"] = [
                    same(found.values(), gradients(kernel, side, p)[0].values()) for _ in range(given.repeat)
                ]
            except Exception as refused:  # what a library says of its own backward pass belongs into the log
                log["backward refused"] = f"{type(refused).__name__}: {refused}"
        back = {} if given.no_stages else back
        result = {"o": outputs[0], "final_state": outputs[1], **stages, **found, **back}
        tilelang = any(entry.endswith("-> tilelang") for entry in dispatched.seen)
        result["kernel"] = "fla " + kernel.__name__ + " with tilelang" * tilelang
        result["producer"] = ", ".join([producer] + ["safe_gate"] * (side == "safe") + sorted(dispatched.seen))
        result.update({"path": "recurrent"} if recurrent else {"path": "chunk", "chunk_size": 64})
        result.update({"pass_": "both"} if found else {})
        record_result(path, result, out=os.path.join(given.out, f"{case}.{side}.result.safetensors"))
    except Exception as refused:
        log["refused"] = f"{type(refused).__name__}: {refused}"
    return log


def main():
    os.makedirs(given.out, exist_ok=True)
    dispatched = Dispatched()
    producer = environment() + (f", {given.note}" if given.note else "")
    if given.stand_in:
        producer += ", kernel sources in Triton's CPU interpreter as stand_in.py completes it: not GPU output"
    print(producer, flush=True)
    logs = []
    for path in given.problems:
        op = read(path)["op"]
        for side in given.sides.split(","):
            if (op, side) not in KERNELS:
                continue
            start = time.time()
            logs.append(one(path, side, producer, dispatched.fresh()))
            print(json.dumps({**logs[-1], "seconds": round(time.time() - start, 1)}), flush=True)
    with open(os.path.join(given.out, "log.json"), "w") as out:
        json.dump({"producer": producer, "runs": logs, "autotuned": autotuned()}, out, indent=1)


if __name__ == "__main__":
    main()
