# MaxText: one gate of -inf makes every output of the chunk forms NaN; the decoding step forgets, as it should.
import ast
from importlib.metadata import distribution

import jax
import jax.numpy as jnp

text = distribution("maxtext").locate_file("maxtext/models/qwen3.py").read_text()
rules = [f for f in ast.parse(text).body if isinstance(f, ast.FunctionDef) and f.name.endswith("_gated_delta_rule")]
rule = {"jax": jax, "jnp": jnp, "lax": jax.lax, "Array": jax.Array}
exec(compile(ast.Module(rules, []), "qwen3.py", "exec"), rule)  # without the rest of the package
x, beta, zero = jnp.ones((1, 2, 1, 1)), jnp.ones((1, 2, 1)), jnp.zeros((1, 1, 1, 1))
g = jnp.array([0.0, -jnp.inf]).reshape(1, 2, 1)
for name in ("naive_jax_chunk_gated_delta_rule", "jax_chunk_gated_delta_rule"):
    o, state = rule[name](x, x, x, g, beta, initial_state=zero)
    print(name, o.flatten().tolist(), state.flatten().tolist())
o, state = rule["jax_ar_gated_delta_rule"](x[:, :1], x[:, :1], x[:, :1], g[:, 1:], beta[:, :1], zero + 5)
print("jax_ar_gated_delta_rule", o.flatten().tolist(), state.flatten().tolist())
