# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""An `Evaluator` for FlashInfer-Bench (0.1.2), whose correctness is a verdict; baselines and timing stay its own:

    from deltaproof.compat.flashinfer_bench import evaluator
    from flashinfer_bench.bench.evaluators import registry
    registry._EVALUATORS.append(evaluator(
        lambda definition: definition.op_type == "gdn",
        lambda q, k, v, beta, g, scale: Problem(q, k, v, beta, g, op="gated_delta_rule", scale=scale),
        lambda o, state: Result(o, state, chunk_size=64), plan="fla-chunk-gdn"))

Inputs come in the order of the definition. Of a definition with raw gates (A_log, a, dt_bias) make g in `problem` as its reference does,
in fp32; that rounding is then not judged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..exchange import ProblemLike, ResultLike
from ..verdict import check


def evaluator(
    evaluates: Callable[[Any], bool],
    problem: Callable[..., ProblemLike],
    result: Callable[..., ResultLike],
    plan: Any = None,
    **options: Any,
) -> Any:
    """The class to register. evaluates: of which definitions; problem, result: made of the inputs and of the outputs of one trial, on
    the CPU; plan, options: those of `check`."""
    import torch
    from flashinfer_bench.bench.evaluators.default import DefaultEvaluator
    from flashinfer_bench.bench.evaluators.utils import allocate_outputs, normalize_result
    from flashinfer_bench.bench.utils import make_eval
    from flashinfer_bench.data import Correctness, EvaluationStatus

    def on_cpu(tensors: Any) -> list[Any]:
        return [x.detach().cpu() if isinstance(x, torch.Tensor) else x for x in tensors]

    class DeltaproofEvaluator(DefaultEvaluator):  # type: ignore[misc]
        @classmethod
        def can_evaluate(cls, definition: Any) -> bool:
            return evaluates(definition)

        @classmethod
        def check_correctness(
            cls, definition: Any, sol_runnable: Any, inputs: Any, ref_outputs: Any, cfg: Any, log_path: str, device: str
        ) -> Any:
            def failed(status: Any, found: Any, says: str) -> Any:
                return found, make_eval(status=status, device=device, log_path=log_path, correctness=found, extra_msg=says)

            relative = absolute = 0.0
            for given in inputs:
                kept = on_cpu(x.clone() if isinstance(x, torch.Tensor) else x for x in given)
                try:
                    with torch.no_grad():
                        if sol_runnable.metadata.destination_passing_style:
                            out = allocate_outputs(definition, given, device)
                            sol_runnable(*given, *out)
                        else:
                            out = normalize_result(definition, sol_runnable(*given), device)
                except Exception as e:  # what a solution may raise
                    return failed(EvaluationStatus.RUNTIME_ERROR, None, f"{type(e).__name__}: {e}")
                try:
                    verdict = check(problem(*kept), result(*on_cpu(out)), plan, **options)
                except ValueError as e:
                    return failed(EvaluationStatus.INCORRECT_SHAPE, None, str(e))
                for t in verdict.tensors.values():
                    relative = max(relative, float("inf") if t["rel_fro"] is None else float(t["rel_fro"]))
                    absolute = max(absolute, float("inf") if t["max_abs"] is None else float(t["max_abs"]))
                found = Correctness(max_relative_error=relative, max_absolute_error=absolute)
                if not verdict:
                    return failed(EvaluationStatus.INCORRECT_NUMERICAL, found, verdict.text)
            return Correctness(max_relative_error=relative, max_absolute_error=absolute), None

    return DeltaproofEvaluator
