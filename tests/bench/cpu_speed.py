#!/usr/bin/env python3
"""Products and attention on the CPU beside PyTorch (its oneDNN and MKL), in one run: a JSON line each.

    tests/bench/cpu_speed.py build/release/bin/assay_cpu_ops_bench

Both take the threads of OMP_NUM_THREADS and OPENBLAS_NUM_THREADS, by default one a processor. `ratio` is PyTorch's time by that of
our fastest kernel of the operation and format.
"""
import json
import statistics
import subprocess
import sys
import time

import torch
import torch.nn.functional as F

if len(sys.argv) != 2:
    sys.exit(__doc__)
FORMATS = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


def milliseconds(f):
    times = []
    for _ in range(11):
        begin = time.perf_counter()
        f()
        times.append(time.perf_counter() - begin)
    return statistics.median(times[2:]) * 1e3


def peer(op, dtype, shape):
    """PyTorch's call of an operation on tensors of this format, or None where it has none."""
    made = lambda *extents: (torch.rand(*extents) * 2 - 1).to(dtype)
    if op.startswith("matmul"):
        a, b = made(shape["k"], shape["m"]) if op.endswith("tn") else made(shape["m"], shape["k"]), made(shape["n"], shape["k"]) if op.endswith("nt") else made(shape["k"], shape["n"])
        a, b = a.T if op.endswith("tn") else a, b.T if op.endswith("nt") else b
        return lambda: torch.mm(a, b)
    q, k, v = (made(shape["batch"], shape["heads"], shape["s"], shape["d"]).requires_grad_(op == "attention_backward") for _ in range(3))
    if op == "attention":
        return lambda: F.scaled_dot_product_attention(q, k, v)
    y = F.scaled_dot_product_attention(q, k, v)
    dy = made(*y.shape)
    return lambda: torch.autograd.grad(y, (q, k, v), dy, retain_graph=True)


best = {}
print(json.dumps({"torch": torch.__version__, "threads": torch.get_num_threads(), "cpu": torch.backends.cpu.get_cpu_capability()}), flush=True)
for line in subprocess.run([sys.argv[1]], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
    row = json.loads(line)
    key = row["op"], row["storage"], row["shape"]
    if key not in best or row["ms"] < best[key]["ms"]:
        best[key] = row
for (op, storage, shape), row in best.items():
    extents = {name: int(extent) for name, extent in (part.split("=") for part in shape.split())}
    theirs = milliseconds(peer(op, FORMATS[storage], extents))
    print(json.dumps({"kernel": row["kernel"], "shape": shape.strip(), "ms": row["ms"], "gflops": row["gflops"], "torch_ms": round(theirs, 4), "ratio": round(theirs / row["ms"], 3)}), flush=True)
