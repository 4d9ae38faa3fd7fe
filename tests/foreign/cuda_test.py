#!/usr/bin/env python3
"""Runs a foreign CUDA kernel through the real command: on cuda-host, and on a device if the command has the back end.

cuda_test.py ASSAY LIBRARIES SOURCES TRANSLATOR [BACKEND [CASES]]
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

assay, libraries, sources, translator = (pathlib.Path(a).resolve() for a in sys.argv[1:5])
backend = sys.argv[5] if len(sys.argv) > 5 else "cuda-host"
cases = sys.argv[6] if len(sys.argv) > 6 else "25"
functions = "cuda" if backend == "cuda" else "c_library"
folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-foreign-cuda-"))
results = []


def check(right, text):
    results.append(bool(right))
    if not right:
        print("FAILED:", text, flush=True)


def falsify(name):
    done = subprocess.run([assay, "falsify", "--lib", libraries / f"{backend}-{name}.so", "--shim", sources / "softmax.yaml", "--contract", "softmax",
                           "--declare", f"backend={backend},functions={functions}", "--cases", cases, "--quiet", "--json"],
                          cwd=folder, capture_output=True, text=True)
    return done.returncode, json.loads(done.stdout) if done.stdout.startswith("{") else {}, done.stderr


def verdicts():
    code, report, said = falsify("softmax")
    check(code in (0, 4) and report["totals"]["passed"] + report["totals"]["thin"] == 1, f"the right kernel: exit {code}, {said[-500:]} "
          f"{[o.get('counterexample', o.get('reason')) for k in report.get('kernels', []) for o in k['obligations'] if o['verdict'] != 'passed'][:1]}")
    refused = sum(o["refused"] for o in report["kernels"][0]["obligations"])
    check(refused > 0, "rows beyond shared memory are refused, and counted")
    every = 1 if "ASSAY_ALL" in os.environ or backend == "cuda" else 2  # ci/test runs every other fault
    for fault, words in (("half_a_block", "off by"), ("shared_unwritten", ""), ("row_beyond", "was written"),
                         ("no_barrier", "" if backend == "cuda-host" else None), ("wrong_mask", "warp mask" if backend == "cuda-host" else None))[::every]:
        code, report, said = falsify(f"softmax_{fault}")
        found = [o["counterexample"]["finding"]["message"] for k in report.get("kernels", []) for o in k["obligations"] if "counterexample" in o]
        if words is None:  # a device may not expose this fault
            check(code in (0, 1), f"{fault}: exit {code}: {said[-500:]}")
        else:
            check(code == 1 and any(words in m for m in found), f"{fault}: exit {code}, {found}, {said[-500:]}")


def translate(text):
    (folder / "f.cu").write_text(text)
    done = subprocess.run([sys.executable, translator, folder / "f.cu", folder / "f.cpp"], capture_output=True, text=True)
    return done.returncode, (folder / "f.cpp").read_text() if done.returncode == 0 else done.stderr


def translations():
    for given, wanted in (
        ("k<<<1, 2>>>(a);", "::assay::cuda_host::chevrons(1, 2)(k)(a);"),
        ("ns::k<float, N<3>> <<<dim3(a, b), 32, n * sizeof(T), s>>>();", "::assay::cuda_host::chevrons(dim3(a, b), 32, n * sizeof(T), s)(ns::k<float, N<3>>)();"),
        ("// k<<<1, 2>>>(a)\n\"<<<\";", "// k<<<1, 2>>>(a)\n\"<<<\";"),
        ("extern __shared__ __align__(16) float t[];", "float* const t = static_cast<float*>(::assay::cuda_host::dynamic_shared());"),
        ("__shared__ int t[4][5];", "__shared__ int t[4][5]; static ::assay::cuda_host::SharedArray t_garbage; t_garbage.declare(&t, sizeof(t));"),
        ('extern "C" __global__ void k();', "__global__ void k();"),
        ("if (x < y && z << 3 > w) f(a<b, c>(d));", "if (x < y && z << 3 > w) f(a<b, c>(d));")):
        code, got = translate(given)
        check(code == 0 and got == f'#line 1 "{folder}/f.cu"\n{wanted}', f"{given} became {got}")
    code, said = translate("\n\n (f())<<<1, 1>>>();")
    check(code == 1 and said.startswith(f"{folder}/f.cu:3: this launch is not understood"), f"a launch that is not understood: {said}")


verdicts()
translations()
print(f"{sum(results)} passed, {results.count(False)} failed")
sys.exit(0 if all(results) else 1)
