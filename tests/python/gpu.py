#!/usr/bin/env python3
"""Kernels of PyTorch, Triton and liger-kernel, and traces of a Llama, on a GPU: right ones pass, planted faults die.

gpu.py PACKAGES [--device cpu] [--only TEXT] [--cases N] [--jobs N] [--seconds N] [--output FILE]

PACKAGES is the folder of the package `assay`, built with CUDA. Prints one JSON line for each kernel, and exits with 1
if one is not what the table below says. Run by hand, on a machine with a GPU, torch and Triton; liger-kernel,
transformers and peft are used if they are there. `--device cpu` tries the script itself: Triton's interpreter, few cases.
With PYTHONFAULTHANDLER=1 a worker that ends by a signal says where in Python it was.
"""
import argparse
import concurrent.futures
import dataclasses
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))


@dataclasses.dataclass
class Entry:
    """A kernel and what is expected of it.

    declare: declarations to try, the strictest first; the first that is not falsified is reported.
    breaks: obligations whose pin it does not keep, with the reason. It must keep all others.
    fault: an edit of triton_kernels.py; the kernel must be falsified, as must any `wrong` one.
    """
    name: str
    place: str
    contract: str
    declare: list = dataclasses.field(default_factory=lambda: [""])
    requires: list = dataclasses.field(default_factory=list)
    absent: list = dataclasses.field(default_factory=list)
    breaks: dict = dataclasses.field(default_factory=dict)
    fault: tuple = ()
    wrong: bool = False
    cases: int = 100
    devices: tuple = ("cpu", "cuda")


CUDA = "functions=cuda"
# Two passes over a row, or a maximum known before the sum.
ROWS = {"cuda": [CUDA, CUDA + ",batch_invariant=no"], "cpu": ["batch_invariant=no"]}
# Tensor cores add blocks of products, aligned and truncated; their operands are the tensors' format.
CORES = "functions=cuda_exp2,accumulation=toward_zero,block=16,batch_invariant=no"
NAN = "0 times the NaN of a value that a query does not see is NaN"
MASKED = dict.fromkeys(("FALSIFY-SOFTMAX-002", "FALSIFY-SOFTMAX-004", "FALSIFY-SOFTMAX-009"), "a row of nothing but -inf is NaN")
DENSE = ["lengths == t", "starts == 0", "no empty tensors", "aligned to 16 bytes"]


def with_storage(declare, storage):
    return ",".join(filter(None, [declare, "" if storage == "f32" else f"storage={storage}"]))


def torch_entries(device):
    rows = ROWS[device]
    exact = [CUDA] if device == "cuda" else [""]
    for storage in ("f32", "bf16", "f16"):
        def entry(function, contract, declare, _storage=storage, **rest):
            return Entry(f"torch/{function}/{_storage}" + "".join(f"/{c}" for c in rest.pop("words", ())), f"torch_kernels.py:{function}", contract,
                         [with_storage(d, _storage) for d in declare], **rest)
        yield entry("rms_norm", "rmsnorm", rows, absent=["rrms"])
        if storage == "f32":
            yield entry("rms_norm_backward", "rmsnorm_backward", [CUDA + ",batch_invariant=no"] if device == "cuda" else rows, devices=("cuda",))
            yield entry("matmul", "matmul", [CUDA + ",batch_invariant=no"] if device == "cuda" else rows)
            yield entry("adamw", "adamw_step", rows, cases=200, requires=["copies == 0"], absent=["rounded"])
        yield entry("safe_softmax", "softmax", rows)
        yield entry("softmax", "softmax", rows, breaks=MASKED)
        yield entry("softmax_backward", "softmax_backward", rows)
        yield entry("silu", "silu", rows)
        yield entry("silu_backward", "silu_backward", rows)
        lost = [d + ",loses=confident" for d in rows]
        yield entry("cross_entropy", "cross_entropy", lost, absent=["logsumexp", "normalizer"], cases=300)
        yield entry("cross_entropy_backward", "cross_entropy_backward", rows)
        for causal in (0, 1):
            breaks = {"FALSIFY-ATTN-010": NAN} if causal else {}
            requires = [*DENSE, f"causal == {causal}"]
            words = (("full", "causal")[causal],)
            yield entry("attention_math", "attention", [(d + "," if d else "") + "batch_invariant=no" for d in exact], requires=requires, words=words, breaks=breaks,
                        absent=["logsumexp"], cases=120)
            inputs = "tf32x3" if storage == "f32" else storage
            tiles = [f"{CORES},inputs={inputs},online_tile={tile}" for tile in (128, 64, 32)]
            merged = [f"{CORES},inputs={inputs},online_tile=64,merges_parts=yes"]
            square = ["s == t"] if causal else []
            backward = {"FALSIFY-ATTN-BWD-007": NAN} if causal else {}
            efficient = requires + (["d % 8 == 0"] if storage != "f32" else ["d % 4 == 0"])
            yield entry("attention_efficient", "attention", tiles, requires=efficient, words=words, breaks=breaks, absent=["logsumexp"], cases=120, devices=("cuda",))
            yield entry("attention_backward_efficient", "attention_backward", tiles[-1:], requires=efficient, words=words, breaks=backward, devices=("cuda",))
            if storage == "f32":
                continue
            yield entry("attention_flash", "attention", [*tiles, *merged], requires=requires + square, words=words, breaks=breaks, absent=["logsumexp"], cases=120,
                        devices=("cuda",))
            yield entry("attention_cudnn", "attention", [*tiles, *merged], requires=[*requires, *square, "d % 8 == 0", "d <= 128"], words=words, breaks=breaks,
                        absent=["logsumexp"], cases=120, devices=("cuda",))
            yield entry("attention_backward_flash", "attention_backward", tiles[-1:], requires=[*requires, *square, "d % 8 == 0"], words=words, breaks=backward,
                        devices=("cuda",))
            yield entry("attention_backward_cudnn", "attention_backward", tiles[-1:], requires=[*requires, *square, "d % 8 == 0", "d <= 128"], words=words,
                        breaks=backward, devices=("cuda",))


def triton_entries(device):
    import triton_faults
    ours = [CUDA] if device == "cuda" else [""]
    online = [d + ("," if d else "") + "online_tile=1" for d in ours]
    of = {"softmax": online, "rmsnorm": ours, "matmul": ours, "cross_entropy": [d + ",batch_invariant=no" for d in online], "silu_mul": ours, "rope": ours}
    limited = {"attention": ["causal == 0"]}
    for storage in ("f32", "bf16", "f16"):
        of["attention"] = [",".join(filter(None, [ours[0], "online_tile=32", "" if storage == "f32" else f"inputs={storage},block=16,accumulation=toward_zero"]))]
        for contract, declare in of.items():
            if storage != "f32" and contract == "matmul":
                continue
            declared = [with_storage(d, storage) for d in declare]
            # The interpreter truncates to bfloat16, and takes products of its bits.
            devices = ("cuda",) if storage == "bf16" else ("cpu", "cuda")
            yield Entry(f"triton/{contract}/{storage}", f"triton_kernels.py:{contract}", contract, declared, limited.get(contract, []), devices=devices)
            if contract == "attention":
                yield Entry(f"triton/{contract}/{storage}/causal", f"triton_kernels.py:{contract}", contract, declared, ["causal == 1"],
                            breaks={"FALSIFY-ATTN-010": NAN}, devices=devices)
    of["attention"] = [",".join(filter(None, [ours[0], "online_tile=32"]))]
    for contract, name, old, new in triton_faults.FAULTS:
        yield Entry(f"triton/{contract}/{name}", f"triton_kernels.py:{contract}", contract, of[contract], fault=(old, new), wrong=True)
    page = "../../src/python/examples/triton_softmax.py:"
    yield Entry("page/softmax", page + "softmax", "softmax", ours, ["n <= 65536"])
    yield Entry("page/masked_as_zero", page + "masked_as_zero", "softmax", ours, ["n <= 65536"], wrong=True)


def liger_entries(device):
    if importlib.util.find_spec("liger_kernel") is None:
        return
    ours = [CUDA, CUDA + ",batch_invariant=no"] if device == "cuda" else [""]
    for storage in ("f32", "bf16", "f16"):
        def entry(function, contract, declare=ours, **rest):
            return Entry(f"liger/{function}/{storage}", f"liger_kernels.py:{function}", contract, [with_storage(d, storage) for d in declare], **rest)
        yield entry("rms_norm", "rmsnorm", requires=["n <= 65536"])
        yield entry("rms_norm_backward", "rmsnorm_backward", requires=["n <= 65536"])
        yield entry("swiglu", "silu_mul", requires=["n <= 65536"])
        yield entry("swiglu_backward", "silu_mul_backward", requires=["n <= 65536"])
        yield entry("softmax", "softmax", breaks=MASKED,
                    declare=[d + ("," if d else "") + "online_tile=1" for d in ours])
        yield entry("cross_entropy", "cross_entropy", absent=["logsumexp", "normalizer"],
                    declare=[d + ("," if d else "") + "online_tile=1,loses=confident,batch_invariant=no" for d in ours[:1]])
        yield entry("rope", "rope", requires=["interleaved == 0"])


TRACES = ("f32", "bf16", "f32/wrong_eps", "f32/scale_left_out")


def judge(entry, device, most):
    """Returns the line of an entry."""
    import assay
    line = {"name": entry.name, "contract": entry.contract, "requires": entry.requires, "absent": entry.absent, "tried": []}
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        place = os.path.join(HERE, entry.place)
        if entry.fault:
            import triton_faults
            place = os.path.join(folder, os.path.basename(entry.place))
            with open(place.rsplit(":", 1)[0], "w", encoding="utf-8") as file:
                file.write(triton_faults.planted(*entry.fault))
        cases = min(most or entry.cases, entry.cases)

        def run(declare, cases, first=False):
            return assay.falsify(place, entry.contract, device=device, declare=declare, cases=cases, requires=entry.requires, absent=entry.absent, first=first)

        for number, declare in enumerate(entry.declare):
            result = None
            if number + 1 < len(entry.declare) and cases > 20:  # a look, before the campaign
                result = run(declare, 20)
            if result is None or not wrong(result, entry):
                result = run(declare, cases, first=entry.wrong)
            findings = [{"obligation": f.obligation, "kind": f.kind, "message": f.message, "dims": f.dims, "params": f.params,
                         "expected": entry.breaks.get(f.obligation)} for f in result.findings]
            line["tried"].append({"declare": declare, "verdict": result.verdict, "reason": result.reason, "cases": result.cases,
                                  "elements": result.elements, "findings": findings})
            line.update(declare=declare, verdict=result.verdict, reason=result.reason, cases=result.cases, elements=result.elements)
            if not wrong(result, entry):
                break
        if entry.wrong:
            line["text"] = str(result)[-1500:]
    line["seconds"] = round(time.monotonic() - begin, 1)
    if entry.wrong:
        line["good"] = result.verdict == "falsified"
    else:
        line["good"] = not wrong(result, entry) and result.verdict in (("passed", "thin") if most else ("passed",)) + (("falsified",) if entry.breaks else ())
    return line


def wrong(result, entry):
    return [f for f in result.findings if f.obligation not in entry.breaks]


def trace(name, device):
    import trace_llama
    return trace_llama.line(name, device)


def entries(device):
    everything = [*torch_entries(device), *triton_entries(device), *liger_entries(device)]
    return {e.name: e for e in everything if device in e.devices}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("packages")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--only", default="", help="names that contain this, or several of them with commas")
    parser.add_argument("--cases", type=int, default=0, help="at most so many for an obligation: a try")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=450, help="end what still runs after so long")
    parser.add_argument("--output", default=None)
    parser.add_argument("--entry", default=None, help="judge this one in this process")
    options = parser.parse_args()
    sys.path[:0] = [os.path.abspath(options.packages), HERE]
    os.environ.setdefault("TRITON_CACHE_DIR", os.path.join(tempfile.gettempdir(), "assay-triton"))
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if options.device == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"
    if options.entry:
        if options.entry.startswith("trace/"):
            line = trace(options.entry[len("trace/"):], options.device)
        else:
            line = judge(entries(options.device)[options.entry], options.device, options.cases)
        print("\n" + json.dumps(line), flush=True)
        return 0
    wanted = options.only.split(",")
    names = [n for n in [*(f"trace/{t}" for t in TRACES if options.device == "cuda" or t != "bf16"), *entries(options.device)] if any(w in n for w in wanted)]
    if importlib.util.find_spec("liger_kernel") is None:
        print("skipped: liger-kernel is not installed", file=sys.stderr)
    names.sort(key=lambda n: ("attention" not in n, "trace" not in n))  # the longest first
    begin = time.monotonic()
    output = open(options.output, "w", encoding="utf-8") if options.output else None

    def run(name):
        left = options.seconds - (time.monotonic() - begin)
        if left < 5:
            return {"name": name, "verdict": "not run", "reason": "no time was left", "good": False}
        arguments = [sys.executable, os.path.abspath(__file__), options.packages, "--device", options.device, "--cases", str(options.cases), "--entry", name]
        with tempfile.TemporaryDirectory(prefix="assay-gpu-") as folder:
            process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, cwd=folder)
            try:
                said, errors = process.communicate(timeout=left)
                return json.loads(said.rstrip().rsplit("\n", 1)[-1])
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                return {"name": name, "verdict": "not finished", "reason": f"ended after {left:.0f} s", "good": False}
            except ValueError:
                return {"name": name, "verdict": "error", "reason": (errors or said).strip()[-1500:], "good": False}

    options.packages = os.path.abspath(options.packages)
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for future in concurrent.futures.as_completed([pool.submit(run, name) for name in names]):
            line = future.result()
            bad += not line["good"]
            text = json.dumps(line)
            if output:
                output.write(text + "\n")
                output.flush()
            print("ok  " if line["good"] else "FAIL", line["name"], line["verdict"], line.get("declare", ""), line.get("cases", ""), line.get("elements", ""),
                  line.get("seconds", ""), "" if line["good"] else str(line.get("reason") or line["tried"][-1]["findings"])[-600:], flush=True)
    print(f"{len(names)} entries, {bad} of them not as expected, {time.monotonic() - begin:.0f} s", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
