# flash-linear-attention: one gate of -inf makes every output of the naive chunk forms NaN; the forms by tokens forget, as they should.
import torch
from fla.ops.gated_delta_rule.naive import naive_chunk_gated_delta_rule, naive_recurrent_gated_delta_rule
from fla.ops.kda.naive import naive_chunk_kda, naive_recurrent_kda

x, beta = torch.ones(1, 64, 1, 1), torch.ones(1, 64, 1)
g = torch.zeros(1, 64, 1)
g[0, 1] = -torch.inf
for kernel, gate in (
    (naive_chunk_gated_delta_rule, g),
    (naive_recurrent_gated_delta_rule, g),
    (naive_chunk_kda, g[..., None]),
    (naive_recurrent_kda, g[..., None]),
):
    o, state = kernel(q=x, k=x, v=x, g=gate, beta=beta, scale=1.0, initial_state=None, output_final_state=True)
    print(kernel.__name__, o.flatten()[:2].tolist(), state.flatten().tolist())
