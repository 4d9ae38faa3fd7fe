#!/usr/bin/env python3
"""The same kernels and faults judged by Assay, gpuemu and flashinfer-bench: faults found, false alarms, seconds.

peers.py PACKAGES [--only TEXT]

Needs torch, gpuemu and flashinfer-bench from PyPI; run by hand. Each peer judges as its package does by default: gpuemu
draws shapes and values by its SeededFuzzer and compares by its ToleranceConfig (its daemon, which is not in the package,
is left out); flashinfer-bench runs its DefaultEvaluator on workloads. Neither package has these operations: references
are in double, or what flashinfer-bench's own definitions do, PyTorch in float32.
"""
import sys
import time

import torch


def softmax(x):
    largest = x.max(1, keepdim=True).values
    e = torch.exp(x - torch.where(largest == -torch.inf, 0, largest))
    total = e.sum(1, keepdim=True)
    return e / torch.where(total == 0, 1, total)


def rmsnorm(x, weight, eps):
    rrms = torch.rsqrt(x.pow(2).mean(1) + eps)
    return x * rrms[:, None] * weight, rrms


def silu_mul(gate, up):
    return gate / (1 + torch.exp(-gate)) * up


def matmul(a, b):
    return a @ b


def softmax_unshifted(x):
    e = torch.exp(x)
    return e / e.sum(1, keepdim=True)


def softmax_last_left_out(x):
    """Of rows with an odd number of entries."""
    y = softmax(x)
    return y if x.shape[1] % 2 == 0 or x.shape[1] == 1 else torch.cat([softmax(x[:, :-1]), y[:, -1:]], 1)


def softmax_exponential_of_ten_bits(x):
    largest = x.max(1, keepdim=True).values
    e = torch.exp((x - torch.where(largest == -torch.inf, 0, largest))) * (1 + 2.0 ** -11 * torch.sin(1000 * x).nan_to_num())
    total = e.sum(1, keepdim=True)
    return e / torch.where(total == 0, 1, total)


def softmax_of_the_batch(x):
    """The maximum is that of all rows."""
    if not x.numel():
        return x.clone()
    largest = x.max()
    e = torch.exp(x - (largest if torch.isfinite(largest) else 0))
    total = e.sum(1, keepdim=True)
    return e / torch.where(total == 0, 1, total)


def rmsnorm_eps_outside(x, weight, eps):
    rrms = 1 / (x.pow(2).mean(1).sqrt() + eps)
    return x * rrms[:, None] * weight, rrms


def rmsnorm_eps_fixed(x, weight, eps):
    return rmsnorm(x, weight, 1e-6)


def rmsnorm_sum_in_half(x, weight, eps):
    rrms = torch.rsqrt(x.pow(2).mean(1).half().float() + eps)
    return x * rrms[:, None] * weight, rrms


def rmsnorm_tail_left_out(x, weight, eps):
    """Sums whole blocks of 32 alone, from 1024 on."""
    n = x.shape[1]
    rrms = torch.rsqrt((x[:, :n // 32 * 32] if n >= 1024 else x).pow(2).sum(1) / n + eps)
    return x * rrms[:, None] * weight, rrms


def silu_mul_clamped(gate, up):
    return silu_mul(gate.clamp(max=20), up)


def silu_mul_by_gelu(gate, up):
    return gate / (1 + torch.exp(-1.702 * gate)) * up


def silu_mul_in_half(gate, up):
    return (gate / (1 + torch.exp(-gate))).half().float() * up


def silu_mul_stale_row(gate, up):
    """The last of many rows is that before it."""
    y = silu_mul(gate, up)
    if len(y) > 1000:
        y[-1] = y[-2]
    return y


def matmul_in_ten_bits(a, b):
    return (a.double() * (1 + 2.0 ** -11)).float() @ b


def matmul_sum_in_half(a, b):
    return (a @ b).half().float()


def matmul_last_term_left_out(a, b):
    """Of sums of more than 512 terms whose number is odd."""
    k = a.shape[1]
    return a[:, :-1] @ b[:-1] if k > 512 and k % 2 else a @ b


OPERATIONS = {"softmax": ({"x": ("rows", "n")}, {"y": ("rows", "n")}),
              "rmsnorm": ({"x": ("rows", "n"), "weight": ("n",), "eps": None}, {"y": ("rows", "n"), "rrms": ("rows",)}),
              "silu_mul": ({"gate": ("rows", "n"), "up": ("rows", "n")}, {"y": ("rows", "n")}),
              "matmul": ({"a": ("rows", "k"), "b": ("k", "n")}, {"c": ("rows", "n")})}
EPS = 1e-5


def by_assay(function, operation):
    import assay
    return assay.falsify(function, operation, declare={"batch_invariant": "no"}, first=True).verdict == "falsified"


def by_gpuemu(function, operation):
    import gpuemu
    import numpy as np
    tolerance = gpuemu.ToleranceConfig.for_dtype("float32", "pytorch")
    inputs, _ = OPERATIONS[operation]
    # Its default shapes, less its longest batches.
    fuzzer = gpuemu.SeededFuzzer(gpuemu.FuzzConfig(seed=1, batch_sizes=[1, 2], seq_lengths=[64, 128], dtypes=["float32"]))
    for case in fuzzer.iterator(40):
        shape = case.shape if all(case.shape) else (1,)
        rows, n = int(np.prod(shape[:-1])), shape[-1]
        sizes = {"rows": rows, "n": n, "k": n}
        given = [EPS if axes is None else gpuemu.generate_random_tensor(case.seed, tuple(sizes[a] for a in axes), "float32", name)
                 for name, axes in inputs.items()]
        tensors = [torch.from_numpy(g) if isinstance(g, np.ndarray) else g for g in given]
        got = function(*tensors)
        want = globals()[operation](*[t.double() if torch.is_tensor(t) else t for t in tensors])
        for a, b in zip(got if isinstance(got, tuple) else [got], want if isinstance(want, tuple) else [want]):
            if not ((a - b).abs() <= tolerance.atol + tolerance.rtol * b.abs()).all():
                return True
    return False


def by_flashinfer_bench(function, operation):
    import inspect

    from flashinfer_bench.bench.config import BenchmarkConfig
    from flashinfer_bench.bench.evaluators.default import DefaultEvaluator
    from flashinfer_bench.data import Definition, Workload
    if not torch.cuda.is_available():
        torch.cuda.synchronize = lambda *_: None  # it waits for a GPU
    inputs, outputs = OPERATIONS[operation]
    spec = lambda tensors: {name: {"shape": None if axes is None else list(axes), "dtype": "float32"} for name, axes in tensors.items()}
    axes = sorted({axis for axes in inputs.values() if axes for axis in axes})
    definition = Definition(name=operation, op_type=operation, axes={axis: {"type": "var"} for axis in axes}, inputs=spec(inputs), outputs=spec(outputs),
                            reference="import torch\n\n" + inspect.getsource(globals()[operation]).replace(f"def {operation}(", "def run("))
    config = BenchmarkConfig(profile_baseline=False)

    class Runnable:
        class metadata:
            destination_passing_style = False

        def __call__(self, *given):
            return function(*given)

    for rows in (1, 7, 64, 512):
        for n in (128, 1000, 4096):
            workload = Workload(axes={axis: {"rows": rows, "n": n, "k": n}[axis] for axis in axes}, uuid=f"{rows}x{n}",
                                inputs={name: {"type": "scalar", "value": EPS} if axes is None else {"type": "random"} for name, axes in inputs.items()})
            baseline = DefaultEvaluator.build_baseline(definition, workload, config, "cpu")
            _, failed = DefaultEvaluator.check_correctness(definition, Runnable(), baseline.inputs, baseline.outputs, config, "", "cpu")
            if failed is not None:
                return True
    return False


def main():
    sys.path.insert(0, sys.argv[1])
    only = sys.argv[sys.argv.index("--only") + 1] if "--only" in sys.argv else ""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    judges = {"Assay": by_assay, "gpuemu": by_gpuemu, "flashinfer-bench": by_flashinfer_bench}
    kernels = [(name, next(op for op in OPERATIONS if name.startswith(op))) for name, value in list(globals().items())
               if callable(value) and name.startswith(tuple(OPERATIONS)) and only in name]
    found, alarms, seconds = (dict.fromkeys(judges, 0) for _ in range(3))
    print(f"{'kernel':<36}" + "".join(f"{judge:>26}" for judge in judges))
    for name, operation in kernels:
        line = f"{name:<36}"
        for judge, judged in judges.items():
            begin = time.monotonic()
            wrong = judged(globals()[name], operation)
            took = time.monotonic() - begin
            seconds[judge] += took
            (alarms if name == operation else found)[judge] += wrong
            line += f"{('falsified' if wrong else 'passed') + f' {took:6.1f} s':>26}"
        print(line, flush=True)
    faults = sum(name != operation for name, operation in kernels)
    print(f"{'found of ' + str(faults):<36}" + "".join(f"{found[judge]:>26}" for judge in judges))
    print(f"{'false alarms of ' + str(len(kernels) - faults):<36}" + "".join(f"{alarms[judge]:>26}" for judge in judges))
    print(f"{'seconds':<36}" + "".join(f"{seconds[judge]:>26.0f}" for judge in judges))


if __name__ == "__main__":
    main()
