# transformers: one gate of -inf makes every output of the chunk forms NaN; the forms by tokens forget, as they should.
import inspect

import torch
from transformers.models.kimi_linear import modeling_kimi_linear as kimi
from transformers.models.qwen3_next import modeling_qwen3_next as qwen

x, beta = torch.ones(1, 2, 1, 1), torch.ones(1, 2, 1)
g = torch.tensor([0.0, -torch.inf]).reshape(1, 2, 1)
for kernel, gate in (
    (qwen.torch_chunk_gated_delta_rule, g),
    (qwen.torch_recurrent_gated_delta_rule, g),
    (kimi.chunk_kimi_delta_attention, g[..., None]),
    (kimi.recurrent_kimi_delta_attention, g[..., None]),
):
    o, state = inspect.unwrap(kernel)(x, x, x, g=gate, beta=beta, initial_state=None, output_final_state=True)
    print(kernel.__name__, o.flatten().tolist(), state.flatten().tolist())
