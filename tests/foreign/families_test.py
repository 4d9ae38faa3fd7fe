#!/usr/bin/env python3
"""Runs functions with the arguments of well-known projects, each through a shim only: correct ones pass with almost no
refused case, and each fault is falsified.

families_test.py ASSAY FAMILIES.so [OPENBLAS.so]
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

assay, library = (str(pathlib.Path(a).resolve()) for a in sys.argv[1:3])
folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-families-"))
passed, failures = 0, []
EVERY = 1 if "ASSAY_ALL" in os.environ else 6  # ci/test runs every sixth function
turn = 0


def check(condition, text):
    global passed
    if condition:
        passed += 1
    else:
        failures.append(text)
        print("FAILED:", text, flush=True)


def falsify(symbol, contract, shim, *more, lib=None):
    path = folder / f"{symbol}.yaml"
    path.write_text(shim)
    done = subprocess.run([assay, "falsify", "--lib", lib or library, "--symbol", symbol, "--contract", contract, "--shim", path, "--quiet",
                           "--json", *map(str, more)], capture_output=True, text=True, cwd=folder, timeout=600)
    return done.returncode, json.loads(done.stdout) if done.stdout.startswith("{") else None, done.stderr


def omitted():
    global turn
    turn += 1
    return turn % EVERY != 0


def right(symbol, contract, shim, *more, lib=None):
    """Expects a pass: no case is refused, and every obligation is tried unless its relation needs a call that the shim
    excludes."""
    if omitted():
        return
    code, report, err = falsify(symbol, contract, shim, *more, lib=lib)
    check(code == 0 and report, f"{symbol}: exit {code} {err} {findings(report)}")
    if report:
        obligations = report["kernels"][0]["obligations"]
        check(sum(o["refused"] for o in obligations) == 0, f"{symbol}: refused {[(o['id'], o['refused']) for o in obligations if o['refused']]}")
        left_out = [o["id"] for o in obligations if o["verdict"] != "passed"]
        check(len(left_out) <= 3, f"{symbol}: left out {left_out}")
        print(f"  {symbol:<26} {sum(o['cases'] for o in obligations)} cases, left out: {' '.join(left_out) or 'nothing'}", flush=True)


def findings(report):
    found = report["kernels"][0]["obligations"] if report else []
    return [o["counterexample"]["finding"]["message"] for o in found if "counterexample" in o]


def wrong(symbol, contract, shim, words, *more):
    if omitted():
        return
    code, report, err = falsify(symbol, contract, shim, "--cases", 30, *more)
    check(code == 1 and any(words in message for message in findings(report)), f"{symbol}: exit {code} {err}, not for '{words}': {findings(report)}")


GEMM = "args: [a, b, c, m, k, n, {workspace: \"(n + 7) / 8 * k * 32\"}]\nrequires: [dense rows, k % 8 == 0]\n"
BLIS = """
integers: int64
args: [{constant: 0, as: int32}, {constant: 0, as: int32}, m, n, k, {constant: 1, as: float*}, a, {stride: [a, 0]}, {stride: [a, 1]},
       b, {stride: [b, 0]}, {stride: [b, 1]}, {constant: 0, as: float*}, c, {stride: [c, 0]}, {stride: [c, 1]}]
"""
FORTRAN = """
args: [{text: N}, {text: N}, {dim: n, as: int32*}, {dim: m, as: int32*}, {dim: k, as: int32*}, {constant: 1, as: float*},
       b, {leading: b, as: int32*}, a, {leading: a, as: int32*}, {constant: 0, as: float*}, c, {leading: c, as: int32*}]
requires: [no empty tensors, offsets below 2^31]
"""
DNN = """
integers: int64
args: [{text: N, as: char}, {text: N, as: char}, m, n, k, {constant: 1, as: float}, a, {leading: a}, b, {leading: b}, {constant: 0, as: float},
       c, {leading: c}]
returns: status
refused: 3
"""
VEC_DOT = """
args: [k, y, {constant: 0, as: size_t}, a, {constant: 0, as: size_t}, x, {constant: 0, as: size_t}, {constant: 1, as: int32}]
requires: dense rows
"""
ROPE = """
args: [x, y, {dim: d, as: int64}, {dim: heads, as: int64}, {dim: rows, as: int64}, {stride: [x, 1], in: bytes, as: size_t},
       {stride: [x, 0], in: bytes, as: size_t}, {stride: [y, 1], in: bytes, as: size_t}, {stride: [y, 0], in: bytes, as: size_t},
       positions, theta, nullptr]
requires: [interleaved == 1, float32_angle == 0]
"""
SOFTMAX = """
args: [x, nullptr, y, n, rows, {stride: [x, 0], in: bytes, as: size_t}, {stride: [y, 0], in: bytes, as: size_t}, {constant: 1, as: float}]
"""
ATTENTION = """
args: [y, {workspace: "batch * heads * s * s * 4"}, {workspace: "batch * heads * s * s * 4"}, {joined: [q, k, v], axis: 2}, batch, s,
       {product: [heads, d]}, heads]
requires: [dense rows, s == t, heads == kv_heads, causal == 1, scale == 1 / sqrt(d), lengths == t, starts == 0]
absent: logsumexp
"""
SEQUENCE = """
args: [q, k, v, y, logsumexp, {value: lengths}, s, heads, kv_heads, d, scale]
requires: [dense rows, causal == 0]
loop: batch
"""
RMS = "args: [y, x, weight, rrms, eps, rows, n]\nrequires: dense rows\n"
ROWS = "args: [ids, table, y, t, v, h]\nrequires: dense rows\nreturns: status\nrefused: any\nrejects: ids\n"


def families():
    right("blis_gemm", "matmul", BLIS)
    right("fortran_gemm_", "matmul", FORTRAN)
    right("dnn_gemm", "matmul", DNN)
    right("packed_gemm", "matmul", GEMM)
    right("vec_dot", "gemv", VEC_DOT + "loop: m\n")
    right("dot", "gemv", 'args: [k, a, {constant: 1, as: int32}, x, {stride: [x, 0]}]\nloop: m\nreturns: {value: y}\n')
    right("nrm2", "global_grad_norm", "args: [{elements: g}, g, {constant: 1, as: int32}]\nreturns: {value: norm, as: double}\n")
    right("rope_norm", "rope", ROPE)
    right("scale_in_place", "scale", "args: [{elements: y}, y, alpha]\nrequires: dense rows\nin_place: {y: x}\n")
    right("silu_all", "silu", "args: [{elements: x}, y, x]\nrequires: dense rows\n")
    right("soft_max_row", "softmax", SOFTMAX)
    right("linear_forward", "linear", "args: [y, x, weight, bias, {constant: 1, as: int32}, s, in, out]\nrequires: [dense rows, biases == 1]\n")
    right("linear_forward", "linear", "args: [y, x, weight, nullptr, {constant: 1, as: int32}, s, in, out]\nrequires: [dense rows, biases == 0]\n")
    right("residual_forward", "residual_add", "args: [y, x, r, {elements: y}]\nrequires: [dense rows, alpha == 1]\n")
    right("softmax_backward_adds", "softmax_backward", "args: [dx, dy, y, rows, {constant: 1, as: int32}, n]\nrequires: dense rows\nzeroed: dx\n")
    right("attention_forward", "attention", ATTENTION)
    right("attend_sequence", "attention", SEQUENCE, "--declare", "accumulator=f32")
    right("adamw", "adamw_step", "args: [p, g, m, v, step, {dim: n, as: int64}, lr, beta1, beta2, eps, weight_decay]\nrequires: copies == 0\nabsent: rounded\n")
    right("adamw_counted", "adamw_step", "args: [p, g, m, v, {sequence: step, count: 2}, {dim: n, as: int64}, lr, beta1, beta2, eps, weight_decay]\nrequires: copies == 0\nabsent: rounded\n")
    right("rms_optional", "rmsnorm", RMS + "absent: rrms\n")
    right("rms_optional", "rmsnorm", RMS)
    right("rows_checked", "embedding", ROWS)


def shapes():
    """Conditions as lists of values and multiples are met by drawing, not by refusing cases."""
    right("attend_sequence", "attention", SEQUENCE.replace("causal == 0", "causal == 0, d in [64, 80], heads % kv_heads == 0 and heads <= 8, s <= 4"))
    code, _, err = falsify("packed_gemm", "matmul", GEMM.replace("k % 8 == 0", "k == 1 and k == 2"))
    check(code == 2 and "no call of matmul was found that it admits" in err, f"conditions that nothing satisfies: exit {code} {err}")


def planted():
    # Shims that disagree with the function's interface.
    # The count of one row for the total count.
    wrong("silu_all", "silu", "args: [n, y, x]\nrequires: dense rows\n", "")
    wrong("rope_norm", "rope", ROPE.replace("in: bytes", "in: elements"), "")                     # strides in elements
    wrong("blis_gemm", "matmul", BLIS.replace("{constant: 1, as: float*}", "{constant: 2, as: float*}"), "")
    # No loop: computes the first row only.
    wrong("vec_dot", "gemv", VEC_DOT, "")
    # x is not copied to y.
    wrong("scale_in_place", "scale", "args: [{elements: y}, y, alpha]\nrequires: dense rows\n", "")
    # Wider than the function's domain.
    wrong("attention_forward", "attention", ATTENTION.replace("heads == kv_heads, ", ""), "")
    # Functions that violate their shim.
    wrong("packed_gemm_beyond", "matmul", GEMM, "it wrote behind the")
    wrong("packed_gemm", "matmul", GEMM.replace("(n + 7) / 8", "n / 8"), "it wrote behind the")
    wrong("packed_gemm_unset", "matmul", GEMM, "")
    wrong("attention_forward_beyond", "attention", ATTENTION, "it wrote behind the")
    wrong("rows_unchecked", "embedding", ROWS, "took the call")
    wrong("rows_upper_only", "embedding", ROWS, "took the call")
    wrong("rows_checked_late", "embedding", ROWS, "refused, but")
    wrong("dnn_gemm", "matmul", DNN.replace("{leading: c}", "{constant: 0, as: int64}").replace("refused: 3\n", ""), "it returned 3")


def messages():
    good = "args: [y, x, weight, rrms, eps, rows, n]\n"
    for shim, words in ((good.replace("eps, ", ""), "no argument is the param 'eps'; add it, or the value"),
                        (good.replace("rrms, ", ""), "no argument is the output 'rrms'; add it, or `absent: [rrms]`"),
                        (good + "requires: n % 8 = 0\n", "is no condition"), (good + "requires: [m % 8 == 0]\n", "'m' is no dim or param of rmsnorm"),
                        (good + "requires: n in [8,\n", "is no condition"), (good + "loop: columns\n", "'columns' is no dim"),
                        (good + "absent: x\n", "is no output that is only written"), (good + "in_place: {y: weight}\n", "y cannot hold weight"),
                        (good + "rejects: x\n", "no tensor whose values its contract limits"), (good + "rejects: z\n", "'z' is no tensor, param or dim"),
                        (good.replace("n]", "{index: rows}]"), "belongs to no loop"), (good.replace("n]", "{expression: n +}]"), "is no number"),
                        (good.replace("n]", "{elements: q}]"), "'q' is no tensor"), (good.replace("n]", "{param: eps, as: pointer*}]"), "'as' cannot be"),
                        (good.replace("n]", "{tensor: x, as: int32*}]"), "x cannot be passed as"), (good + "done: 1\n", "add `returns: status`"),
                        (good + "returns: status\nrefused: 0\n", "names the status of a call that was done"),
                        (good + "returns: {value: x}\n", "is no output that is only written")):
        code, _, err = falsify("rms_optional", "rmsnorm", shim, "--cases", 1)
        check(code == 2 and words in err and err.count("\n") == 1, f"{shim!r}: exit {code}, {err!r}, not {words!r}")
    # A crash in every call may be the shim's fault: wrong use, and both readings are named.
    code, _, err = falsify("rms_demands", "rmsnorm", RMS + "absent: rrms\n", "--cases", 30)
    check(code == 2 and "its first call" in err and "signal 11" in err and "rms_demands.yaml does not say what rms_demands takes, or the function is wrong" in err, f"rms_demands: exit {code}, {err!r}")
    done = subprocess.run([assay, "falsify", "--lib", library, "--symbol", "rms_optional", "--contract", "rmsnorm", "--cases", "2", "--quiet"],
                          capture_output=True, text=True, cwd=folder, timeout=600)
    # The argument is invalid, so behaviour is undefined: a crash (exit 2), or a return without an output (exit 1).
    check((done.returncode == 2 and "give it by --shim FILE" in done.stderr) or (done.returncode == 1 and "give it by --shim FILE" in done.stdout), f"a function of its own arguments without a shim: {done.stdout} {done.stderr}")


families()
shapes()
planted()
messages()
if len(sys.argv) > 3:
    right("cblas_sgemm", "matmul", "args: [{constant: 101, as: int32}, {constant: 111, as: int32}, {constant: 111, as: int32}, m, n, k, {constant: 1, as: float}, "
          "a, {leading: a}, b, {leading: b}, {constant: 0, as: float}, c, {leading: c}]\nrequires: [no empty tensors, offsets below 2^31]\n", lib=sys.argv[3])
else:
    print("left out: cblas_sgemm (no OpenBLAS library was given)")
print(f"{passed} passed, {len(failures)} failed")
sys.exit(1 if failures or not passed else 0)
