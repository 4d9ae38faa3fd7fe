#!/usr/bin/env python3
"""Runs a foreign CUDA kernel through the real command: on cuda-host, and on a device if the command has the back end.

cuda_test.py ASSAY LIBRARIES SOURCES TRANSLATOR [BACKEND [CASES [SANITIZER]]]
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

assay, libraries, sources, translator = (pathlib.Path(a).resolve() for a in sys.argv[1:5])
backend = sys.argv[5] if len(sys.argv) > 5 else "cuda-host"
cases = sys.argv[6] if len(sys.argv) > 6 else "25"
every = 1 if "ASSAY_ALL" in os.environ or backend == "cuda" else 2  # ci/test runs every other fault
instrumented = len(sys.argv) > 7 and sys.argv[7] not in ("plain", "coverage")
functions = "cuda" if backend == "cuda" else "c_library"
folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-foreign-cuda-"))
results = []


def check(right, text):
    results.append(bool(right))
    if not right:
        print("FAILED:", text, flush=True)


def falsify(name, shim="softmax", contract="softmax", *options):
    done = subprocess.run([assay, "falsify", "--lib", libraries / f"{backend}-{name}.so", "--shim", sources / f"{shim}.yaml", "--contract", contract,
                           "--declare", f"backend={backend},functions={functions}", "--cases", cases, "--quiet", "--json", *options],
                          cwd=folder, capture_output=True, text=True)
    return done.returncode, json.loads(done.stdout) if done.stdout.startswith("{") else {}, done.stderr


def verdicts():
    code, report, said = falsify("softmax")
    check(code in (0, 4) and report["totals"]["passed"] + report["totals"]["thin"] == 1, f"the right kernel: exit {code}, {said[-500:]} "
          f"{[o.get('counterexample', o.get('reason')) for k in report.get('kernels', []) for o in k['obligations'] if o['verdict'] != 'passed'][:1]}")
    refused = sum(o["refused"] for o in report["kernels"][0]["obligations"])
    check(refused > 0, "rows beyond shared memory are refused, and counted")
    for fault, words in (("half_a_block", "off by"), ("shared_unwritten", ""), ("row_beyond", "was written"),
                         ("no_barrier", "" if backend == "cuda-host" else None), ("wrong_mask", "warp mask" if backend == "cuda-host" else None))[::every]:
        code, report, said = falsify(f"softmax_{fault}")
        found = [o["counterexample"]["finding"]["message"] for k in report.get("kernels", []) for o in k["obligations"] if "counterexample" in o]
        if words is None:  # a device may not expose this fault
            check(code in (0, 1), f"{fault}: exit {code}: {said[-500:]}")
        else:
            check(code == 1 and any(words in m for m in found), f"{fault}: exit {code}, {found}, {said[-500:]}")


def unasked():
    """A library with the model is taken as cuda-host, whether or not somebody says so; another back end is wrong use."""
    how = [assay, "falsify", "--lib", libraries / "cuda-host-softmax.so", "--shim", sources / "softmax.yaml", "--contract", "softmax",
           "--obligation", "FALSIFY-SOFTMAX-002", "--cases", "4", "--quiet"]
    done = subprocess.run([*how, "--json"], cwd=folder, capture_output=True, text=True)
    report = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    check(done.returncode == 4 and report["kernels"][0]["backend"] == "cuda-host" and report["kernels"][0]["foreign"]["declared"] == "backend=cuda-host"
          and "cuda-host-softmax.so: built with the CUDA host model, so backend=cuda-host" in done.stderr, f"unasked: exit {done.returncode}, {done.stderr[-300:]}")
    for other in ("cpu", "cuda"):
        done = subprocess.run([*how, "--declare", f"backend={other}"], cwd=folder, capture_output=True, text=True)
        check(done.returncode == 2 and done.stderr.count("\n") == 1 and f"is built with the CUDA host model, and backend={other} is declared" in done.stderr,
              f"declared {other}: exit {done.returncode}, {done.stderr!r}")
    done = subprocess.run([*how, "--declare", "backend=cuda-host"], cwd=folder, capture_output=True, text=True)
    check(done.returncode == 4 and done.stderr == "", f"declared: exit {done.returncode}, {done.stderr!r}")


def whole_files():
    """Kernels in the manner of whole CUDA files: right ones pass, and a fault is named in CUDA's words with its place."""
    softmax = ("tiles_softmax", "softmax", "--symbol")
    for name, call in (("softmax_by_blocks", softmax), ("softmax_by_tiles", softmax), ("add", ("tiles_add", "residual_add", "--symbol")),
                       ("product(float*, float const*, float const*, int, int, int)", ("tiles_product", "matmul", "--symbol"))):
        code, report, said = falsify("tiles_none", *call, name)
        check(code in (0, 4) and report["totals"]["passed"] + report["totals"]["thin"] == 1,
              f"{name}: exit {code}, {said[-500:]} {[o['counterexample']['finding'] for k in report.get('kernels', []) for o in k['obligations'] if 'counterexample' in o][:1]}")
    race = r"race on shared memory: block \(0, 0, 0\): thread \(\d+, 0, 0\): %s, which thread \d+ has %s with no barrier"
    for fault, symbol, words in (("no_barrier", "softmax_by_blocks", race % (r"(reads|writes) partial\[\d+\]", "(read|written)")),
                                 ("no_sync_of_tile", "softmax_by_tiles", race % (r"(reads|writes) total\[\d\]", "(read|written)")),
                                 ("neighbour", "softmax_by_blocks", race % (r"(reads|writes) row\[\d+\]", "(read|written)")),
                                 ("exit_early", "softmax_by_blocks", r"warp mask: .*lanes that have exited at tiles.cu:\d+"),
                                 ("barrier_in_branch", "softmax_by_blocks", r"barrier divergence: .*wait at the barrier tiles.cu:\d+; threads .*tiles.cuh:\d+"),
                                 ("wrong_tile", "softmax_by_tiles", ""),
                                 ("ptx", "softmax_by_tiles", r"inline PTX: .* under #if !defined\(__CUDACC__\), or falsify on a device at tiles.cu:\d+"))[::every]:
        if instrumented and "race" in words:
            words = ""  # that sanitizer replaces the search for races
        code, report, said = falsify(f"tiles_{fault}", *softmax, symbol)
        found = [o["counterexample"]["finding"]["message"] for k in report.get("kernels", []) for o in k["obligations"] if "counterexample" in o]
        check(code == 1 and any(re.search(words, m) for m in found), f"{fault}: exit {code}, {found[:2]}, {said[-500:]}")
    code, _, said = falsify("tiles_one_short", "tiles_add", "residual_add")
    check(code == 1, f"one_short: exit {code}, {said[-500:]}")
    code, _, said = falsify("tiles_none", *softmax, "fill")
    check(code == 2 and "has no symbol 'fill'" in said, f"a kernel is no function of the library: exit {code}, {said[-500:]}")
    code, _, said = falsify("tiles_none", "tiles_product", "matmul", "--symbol", "product")
    check(code == 2 and "has 2 functions named 'product'" in said and "such as 'product(float*" in said, f"an overloaded name: exit {code}, {said[-500:]}")


def translate(text):
    (folder / "f.cu").write_text(text)
    done = subprocess.run([sys.executable, translator, folder / "f.cu", folder / "f.cpp"], capture_output=True, text=True)
    return done.returncode, (folder / "f.cpp").read_text().removeprefix("#include <as_nvcc_begins.h>\n") if done.returncode == 0 else done.stderr


def translations():
    for given, wanted in (
        ("k<<<1, 2>>>(a);", "::assay::cuda_host::chevrons(1, 2)(k)(a);"),
        ("ns::k<float, N<3>> <<<dim3(a, b), 32, n * sizeof(T), s>>>();", "::assay::cuda_host::chevrons(dim3(a, b), 32, n * sizeof(T), s)(ns::k<float, N<3>>)();"),
        ("// k<<<1, 2>>>(a)\n\"<<<\";", "// k<<<1, 2>>>(a)\n\"<<<\";"),
        ("f() { extern __shared__ __align__(16) float t[]; }",
         'f() { float* const t = static_cast<float*>(::assay::cuda_host::dynamic_shared("t", sizeof(float))); }'),
        ("extern __shared__ float t[];", '\n#define t (static_cast<float*>(::assay::cuda_host::dynamic_shared("t", sizeof(float))))\n#line 1 "{f}"\n'),
        ("__shared__ int t[4][f(5)], u;", "__shared__ int t[4][f(5)], u;" + "".join(
            f' static ::assay::cuda_host::SharedArray {n}_garbage; {n}_garbage.declare((void*)&{n}, sizeof({n}), "{n}", sizeof(std::remove_all_extents_t<decltype({n})>));'
            for n in "tu")),
        ("template <class T>\n__global__ void k(T x) {}\nk<<<1, 2>>>(a);",
         "template <class T>\n__global__ void k(T x) {}\n::assay::cuda_host::chevrons(1, 2).deduced([](auto&... assay_arguments) { k(assay_arguments...); })(a);"),
        ("void f() {\n asm volatile(\"\" : :\n \"r\"(x));\n}", "void f() {\n ::assay::cuda_host::inline_ptx()\n;\n}"),
        ("int main(int n) {}", "__attribute__((unused)) static int assay_main_of_the_file(int n) {}"),
        ("#include <nccl.h>", '#error "cuda-host has no model of <nccl.h>: leave out, by an #if, what needs it, or falsify on a device (backend=cuda)"'),
        ('extern "C" __global__ void k();', "__global__ void k();"),
        ("if (x < y && z << 3 > w) f(a<b, c>(d));", "if (x < y && z << 3 > w) f(a<b, c>(d));")):
        code, got = translate(given)
        wanted = wanted.replace("{f}", f"{folder}/f.cu")
        check(code == 0 and got == f'#line 1 "{folder}/f.cu"\n{wanted}', f"{given} became {got}")
    code, said = translate("\n\n (f())<<<1, 1>>>();")
    check(code == 1 and said.startswith(f"{folder}/f.cu:3: this launch is not understood"), f"a launch that is not understood: {said}")


verdicts()
if backend == "cuda-host":
    unasked()
    whole_files()
translations()
print(f"{sum(results)} passed, {results.count(False)} failed")
sys.exit(0 if all(results) else 1)
