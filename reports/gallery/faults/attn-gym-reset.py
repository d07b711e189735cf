# attention-gym: one gate of -inf makes every output of the chunk forms NaN; the forms by tokens forget, as they should.
import torch
from attn_gym.linear.gdn.api import chunk_gdn, recurrent_gdn
from attn_gym.linear.kda.naive import naive_chunk_kda, naive_recurrent_kda

x, beta = torch.ones(1, 64, 1, 1), torch.ones(1, 64, 1)
g = torch.zeros(1, 64, 1)
g[0, 1] = -torch.inf
for kernel in (chunk_gdn, recurrent_gdn):
    o, state = kernel(x, x, x, g, beta, None, scale=1.0, output_final_state=True, impl="reference")
    print(kernel.__name__, o.flatten()[:2].tolist(), state.flatten().tolist())
for kernel in (naive_chunk_kda, naive_recurrent_kda):
    o, state = kernel(x, x, x, g[..., None], beta, scale=1.0, initial_state=None, output_final_state=True)
    print(kernel.__name__, o.flatten()[:2].tolist(), state.flatten().tolist())
