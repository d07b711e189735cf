# ejkernel (EasyDeL): log decays and their sums are kept in the format of q. In bf16 a sum near -100 has steps of 1/2: after a token that
# forgets, what later tokens keep of each other is lost or kept whole. Due: the last line, which differs in the format of q alone.
import jax.numpy as jnp
from ejkernel.kernels._xla.gated_delta_rule import gated_delta_rule

g = jnp.array([-100.0, -0.2, -0.2, -0.2]).reshape(1, 4, 1)
k = jnp.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]).reshape(1, 4, 1, 2)
q, v, beta = jnp.ones((1, 4, 1, 2)), jnp.ones((1, 4, 1, 1)), jnp.array([0.0, 1.0, 0.0, 0.0]).reshape(1, 4, 1)
for dtype in (jnp.bfloat16, jnp.float32):
    given = (x.astype(dtype) for x in (q, k, v, beta))
    o, state = gated_delta_rule(*given, g, chunk_size=64, initial_state=jnp.zeros((1, 1, 2, 1)), use_qk_l2norm=False)
    print(jnp.dtype(dtype).name, [round(float(x), 4) for x in o.flatten()])
