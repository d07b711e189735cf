# jax-linear-attention: one gate of -inf makes every output of the chunked forms NaN; the reference forms forget, as they should.
import jax.numpy as jnp
from jla.ops import chunked, reference

x, beta = jnp.ones((1, 2, 1, 1)), jnp.ones((1, 2, 1))
g = jnp.array([0.0, -jnp.inf]).reshape(1, 2, 1)
for name, gate in (("gated_delta_rule", g), ("kda", g[..., None])):
    for module in (chunked, reference):
        o, state = getattr(module, name)(x, x, x, gate, beta, scale=1.0, initial_state=None, output_final_state=True)
        print(module.__name__, name, o.flatten().tolist(), state.flatten().tolist())
