# tpu-inference: one gate of -inf (softplus(a) = inf) makes every output of the chunk form NaN; the decoding step forgets, as it should.
import importlib
import sys
import types
from importlib.metadata import distribution

package = "tpu_inference.kernels.gdn.reference"  # without the rest of the package, which needs a TPU
for name in [package[:i] for i in range(len(package)) if package[i] == "."] + [package]:
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [str(distribution("tpu-inference").locate_file(name.replace(".", "/")))]
import jax.numpy as jnp

rule = importlib.import_module(f"{package}.ragged_gated_delta_rule_chunked")
solve = rule.triangle_solver.newton_schulz_inverse_ref  # as the kernel for TPUs, in plain JAX
x, zero, one = jnp.ones((2, 1, 1)), jnp.zeros(1), jnp.array([1])
for a in (100.0, jnp.inf):
    gates = jnp.array([[-jnp.inf], [a]])
    given = (jnp.full((2, 1), 9.0), gates, zero, zero, jnp.array([0, 2]), jnp.zeros((2, 1, 1, 1)), one, jnp.array([0, 0, 1]))
    _, o = rule.ragged_gated_delta_rule_mixed_prefill(x, x, x, *given, chunk_size=16, compute_dtype=jnp.float32, triangle_solver_impl=solve)
    print("chunk, a =", a, o.flatten().tolist())
