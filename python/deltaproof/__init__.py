# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""The referee for delta-rule linear attention (DeltaNet, Gated DeltaNet, KDA, EFLA, Longhorn): does a kernel's result hold?

    import deltaproof
    problem = deltaproof.Problem(q, k, v, beta, g, op="gated_delta_rule", scale=scale)
    result = deltaproof.Result(o, final_state, chunk_size=64)
    deltaproof.check(problem, result, plan="fla-chunk-gdn").require()

Problems and results are also dicts of tensors, or paths of safetensors files. Tensors: torch, numpy, anything with DLPack, in the
CPU's memory. Gradients: `check_gradients`, `gradient_identities`. The program and the C++ library say and write the same.
"""

from ._core import domain_error, environment_error, error, format_error, shape_error, stage_names, tensor
from ._core import version as __version__
from .catalogue import Case, Fault, Plan, Regime, cases, faults, plans, pytest_cases, regimes
from .exchange import Problem, Result, load, read_result, record, record_result
from .judging import Finding, Judgement, judge
from .recorder import record_set
from .search import search_kernel
from .verdict import (
    Truth,
    Verdict,
    check,
    check_gradients,
    differentiate,
    emulate,
    gradient_identities,
    not_shown,
    oracle,
    refuted,
)

__all__ = [
    "Case",
    "Fault",
    "Finding",
    "Judgement",
    "Plan",
    "Problem",
    "Regime",
    "Result",
    "Truth",
    "Verdict",
    "__version__",
    "cases",
    "check",
    "check_gradients",
    "differentiate",
    "domain_error",
    "emulate",
    "environment_error",
    "error",
    "faults",
    "format_error",
    "gradient_identities",
    "judge",
    "load",
    "not_shown",
    "oracle",
    "plans",
    "pytest_cases",
    "read_result",
    "record",
    "record_result",
    "record_set",
    "refuted",
    "regimes",
    "search_kernel",
    "shape_error",
    "stage_names",
    "tensor",
]
