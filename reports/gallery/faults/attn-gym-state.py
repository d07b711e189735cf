# attention-gym: naive_chunk_kda returns its state in the format of q, naive_recurrent_kda in fp32. Where q is in bf16, a sequence that
# goes on from that state has lost 16 bits of it.
import torch
from attn_gym.linear.kda.naive import naive_chunk_kda, naive_recurrent_kda

x, beta = torch.ones(1, 64, 1, 1, dtype=torch.bfloat16), torch.full((1, 64, 1), 0.01)
g = torch.full((1, 64, 1, 1), -1 / 64)
for kernel in (naive_chunk_kda, naive_recurrent_kda):
    o, state = kernel(x, x, x, g, beta, scale=1.0, initial_state=None, output_final_state=True)
    print(kernel.__name__, state.dtype, state.item())
