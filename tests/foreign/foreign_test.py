#!/usr/bin/env python3
"""Runs foreign kernels through the real command: verdict, exit code, time, reports, and no process left behind.

foreign_test.py ASSAY LIBRARIES SOURCES INSTRUMENTED PART[,PART...] [FUNCTION]
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

assay, libraries, sources = (pathlib.Path(a).resolve() for a in sys.argv[1:4])
instrumented = sys.argv[4].removeprefix("plain")  # names of sanitizers, "coverage" or "plain"
parts = sys.argv[5].split(",")
only = sys.argv[6] if len(sys.argv) > 6 else ""  # a function of HOSTILE or ATTACKS
folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-foreign-"))
passed, failures = 0, []
ALL = "ASSAY_ALL" in os.environ  # ci/test runs a sample
DEEP, PASSED = ((), 0) if ALL else (("--cases", 20), 4)  # few cases are thin

TIME = 1  # seconds for a campaign against a hostile kernel; its verdict is due two seconds later
SLACK = 20 if instrumented else 2  # instrumented processes are slower: they report a crash or write counts at exit


def check(condition, text):
    global passed
    if condition:
        passed += 1
    else:
        failures.append(text)
        print("FAILED:", text, flush=True)


def sampled(functions):
    return list(functions.items())[::1 if ALL or only else 4]


def run(*arguments, cwd=folder, user=None):
    begin = time.monotonic()
    # Use files, not pipes: a process left behind would keep a pipe open.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        done = subprocess.run([assay, *map(str, arguments)], cwd=cwd, stdout=out, stderr=err, timeout=600, stdin=subprocess.DEVNULL,
                              user=user, group=user, extra_groups=None if user is None else [])
        seconds = time.monotonic() - begin
        out.seek(0)
        err.seek(0)
        return done.returncode, out.read(), err.read().decode(errors="replace"), seconds


def left_behind():
    """Kills processes left behind by this test, recognized by its folder on their command line, and returns them."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_bytes().decode(errors="replace")
            if str(folder) in command:
                found.append(entry.name + " " + (entry / "comm").read_text().strip())
                os.kill(int(entry.name), signal.SIGKILL)
        except OSError:
            pass
    return found


def falsify(library, symbol, contract, *more, user=None):
    """Runs a campaign with a report; returns the exit code, the report (None if it is incomplete) and the seconds."""
    report = folder / "reports" / f"{symbol}-{contract}"
    shutil.rmtree(report, ignore_errors=True)
    code, out, err, seconds = run("falsify", "--lib", library, "--symbol", symbol, "--contract", contract, "--quiet", "--json",
                                  "--report", report, *more, user=user)
    try:
        document = json.loads(out)
        if json.loads((report / "report.json").read_text())["totals"] != document["totals"]:
            raise ValueError("report.json and standard output differ")
        xml.etree.ElementTree.parse(report / "junit.xml")
    except (ValueError, OSError, xml.etree.ElementTree.ParseError) as error:
        print(f"  {symbol}: {error}; exit {code}: {err[-500:]}")
        document = None
    return code, document, seconds


def replays(symbol, contract):
    return sorted((folder / "reports" / f"{symbol}-{contract}" / "replay").glob("*.json"))


def findings(document):
    return [o["counterexample"]["finding"] for o in document["kernels"][0]["obligations"] if "counterexample" in o]


def examples():
    shim = sources / "rmsnorm.yaml"
    code, report, _ = falsify(libraries / "matmul.so", "my_matmul", "matmul")
    check(code == 0 and report and report["totals"]["passed"] == 1, "the right product over DLPack passes")
    check(report and report["kernels"][0]["kernel"] == "foreign/matmul.so/my_matmul", "it is named after its library")
    check(report and report["never_evaluated"] == [], "every clause was evaluated")
    code, report, _ = falsify(libraries / "rmsnorm.so", "rms_normalize", "rmsnorm", "--shim", shim)
    check(code == 0 and report and report["totals"]["passed"] == 1, "the right rmsnorm through a shim passes")
    code, report, _ = falsify(libraries / "rmsnorm.so", "rms_normalize_by_four", "rmsnorm", "--shim", shim, "--cases", 20)
    check(code == 1 and report and report["totals"]["falsified"] == 1, "the wrong rmsnorm is falsified")

    # Pointers and strides of four tensors, and the library's own declaration.
    how = ("--shim", sources / "attention.yaml")
    code, report, _ = falsify(libraries / "attention.so", "attention_online", "attention", *how, *DEEP)
    check(code == PASSED and report and report["totals"]["falsified"] == 0, "the right attention through a shim passes")
    check(report and "online" in json.dumps(report["kernels"][0]["foreign"]["declared"]), "what it declares is in the report")
    for symbol in ("attention_stale_mean", "attention_position_from_zero"):
        code, report, _ = falsify(libraries / "attention.so", symbol, "attention", *how, "--obligation", "FALSIFY-ATTN-002")
        check(code == 1 and report and report["totals"]["falsified"] == 1, f"{symbol} is falsified")
        codes = [run("replay", file, "--lib", libraries / "attention.so")[0] for file in replays(symbol, "attention")]
        check(codes and all(c == 1 for c in codes), f"{symbol}: every replay file reproduces ({codes})")

    # Draws satisfy the shim's requirements; cases that cannot are refused and counted.
    dense = folder / "dense.yaml"
    dense.write_text(shim.read_text() + "requires: dense row-major\n")
    code, report, _ = falsify(libraries / "rmsnorm.so", "rms_normalize", "rmsnorm", "--shim", dense, *DEEP)
    refused = sum(o["refused"] for o in report["kernels"][0]["obligations"]) if report else 0
    cases = sum(o["cases"] for o in report["kernels"][0]["obligations"]) if report else 0
    check(code == PASSED and refused == 0 < cases, f"a shim that asks for dense rows is given them ({refused} of {cases} refused)")

    # explain lists all keys of declarations; the documents must name each of them.
    keys = [row["key"] for row in json.loads(run("explain", "matmul", "--json")[1])["declare"]]
    check(len(keys) > 10, f"explain names {len(keys)} keys")
    for page in (sources.parents[1] / "src/plugin/README.md", sources.parents[1] / "src/plugin/assay/plugin.h"):
        missing = [key for key in keys if not re.search(rf"\b{key}\b", page.read_text())]
        check(not missing, f"{page.name} does not name {missing}")

    declares = folder / "declares.yaml"
    declares.write_text(shim.read_text() + "declares: batch_invariant=no\n")
    for said, more in ((True, ()), (False, ("--declare", "batch_invariant=yes"))):
        code, report, _ = falsify(libraries / "rmsnorm.so", "rms_normalize", "rmsnorm", "--shim", declares, "--cases", 4, *more)
        heard = report and "batch_invariant=no" in report["kernels"][0]["foreign"]["declared"]
        # Four cases are too few for a verdict (exit 4).
        check(code == 4 and heard == said, f"what a shim declares is heard, and the command line has the last word ({more}): exit {code}")
    code, _, err, _ = run("falsify", "--lib", libraries / "rmsnorm.so", "--contract", "rmsnorm", "--shim", shim, "--declare", "loses=confident")
    check(code == 2 and "pins no 'confident'" in err, "only what a contract pins can be lost")

    # Bounds follow from the declaration: truncated inputs pass only if declared.
    code, _, _ = falsify(libraries / "faults.so", "matmul_bf16_inputs", "matmul", "--declare",
                         "inputs=bf16,input_rounding=toward_zero", *DEEP)
    check(code == PASSED, "inputs cut to bfloat16 pass where they are declared")


    # The report shows each line of a kernel once, and none under --quiet.
    for more in ((), ("--quiet",)):
        printed = run("falsify", "--lib", libraries / "rmsnorm.so", "--symbol", "rms_normalize_that_prints", "--contract", "rmsnorm", "--shim", shim, "--cases", 20, *more)[2]
        lines = [line for line in printed.splitlines() if line.startswith("kernel: ")]
        wanted = [r"kernel: rms_normalize was called", r"kernel: rms_normalize was called", r"kernel: \.\.\. \d{2,} more"]  # first the call that tries the shim
        told = len(lines) == 3 and all(re.fullmatch(want, line) for want, line in zip(wanted, lines))
        check(lines == [] if more else told, f"a kernel that prints, {more}: {lines[:5]}")

    # Few runs expose the order of thread arrival: the same input is run repeatedly, also under other load.
    ordered = folder / "ordered.yaml"
    ordered.write_text("args: [a, b, c, m, k, n]\nrequires: dense rows\n")
    if os.cpu_count() == 1:
        print("left out: matmul_split_k (threads of one processor arrive in one order)")
    else:
        how = ("--shim", ordered, "--obligation", "FALSIFY-MM-007")
        code, report, _ = falsify(libraries / "atomic_order.so", "matmul_split_k", "matmul", *how)
        check(code == 1 and report and findings(report)[0]["kind"] == "bits", f"sums in the order of arrival are falsified (exit {code})")
        code, _, _ = falsify(libraries / "atomic_order.so", "matmul_split_k", "matmul", *how, "--declare", "deterministic=no")
        check(code == 0, f"they pass where that is declared (exit {code})")


FAULTS = {"matmul_dropped_last_k": "matmul", "matmul_dense_rows": "matmul", "matmul_bf16_inputs": "matmul",
          "matmul_skipped_zeros": "matmul", "matmul_unwritten_row": "matmul", "softmax_without_maximum": "softmax",
          "rmsnorm_eps_outside": "rmsnorm", "transpose_of_squares": "transpose", "scale_by_the_first": "scale",
          "silu_cut_off": "silu"}


def planted():
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    moved = shutil.copy(libraries / "faults.so", elsewhere / "moved.so")
    for symbol, contract in sampled(FAULTS):
        # Load from a path that no longer exists at replay.
        first = shutil.copy(libraries / "faults.so", folder / "first.so")
        code, report, _ = falsify("./first.so", symbol, contract, "--cases", 60, "--limit", "2s")
        check(code == 1 and report and report["totals"]["falsified"] == 1, f"{symbol} is falsified (exit {code})")
        os.remove(first)
        files = replays(symbol, contract)
        code, _, err, _ = run("replay", files[0], cwd=elsewhere) if files else (0, 0, "", 0)
        check(code == 2 and "--lib" in err and str(first) in err, f"{symbol}: a replay without its library is wrong use (exit {code}, {err!r})")
        if symbol == "matmul_dense_rows":
            told = [f for f in findings(report) if f.get("strides")]
            check(told and all(min(s) >= 1 for f in told for s in f["strides"].values()), f"{symbol}: findings show strides")
        codes = [run("replay", file, "--lib", moved, cwd=elsewhere)[0] for file in files]
        check(codes and all(c == 1 for c in codes), f"{symbol}: every replay file reproduces with the library elsewhere ({codes})")


# Expected ends: exit codes, and kinds of findings of which one must occur; an empty set allows none.
CRASH, ERROR, WRONG = ({1}, {"crash"}), ({1}, {"error"}), ({1}, {"value", "class", "bits"})
# Correct kernels: how far a campaign gets in its second, to "passed" or to "thin", depends on the machine.
CLEAN = ({0, 4}, set())
HOSTILE = {
    "right": CLEAN, "prints": CLEAN, "wrong": None, "refuses_all": ({3}, set()), "reports_error": ERROR,
    "faults": CRASH, "loops": ({1}, {"hang"}), "exits": CRASH, "exits_at_once": CRASH, "aborts": CRASH, "raises": CRASH,
    "stops": ({1}, {"hang"}), "overflows_stack": CRASH, "throws": ERROR, "throws_int": CRASH, "closes_all": CRASH,
    "closes_all_and_loops": CRASH, "jumps": ({0, 1, 4}, None),  # the end is unpredictable; any verdict will do
    "overruns_1": ({1}, {"crash", "out of bounds"}), "overruns_4096": ({1}, {"crash", "out of bounds"}), "overruns_1000000": CRASH,
    "writes_input": ({1}, {"out of bounds"}), "leaks": CRASH,
    "forks": CLEAN, "forks_and_dies": CRASH, "forks_and_returns_twice": CLEAN, "forks_grandchildren": CRASH,
    "kills_the_judge": WRONG, "writes_to_the_oracle": WRONG,
    "rounds_up": ERROR, "flushes": ERROR, "writes_later": ({1}, {"late write", "out of bounds", "value", "class", "bits"}),
    "forges_answer": ({1}, {"value", "class", "not written", "bits"}), "overwrites_mailbox": WRONG,
    "fills_mailbox": ({1}, {"error"}), "claims_invalid": ({1}, {"error"}),
}
# Wrong kernels that then attack their judge: with the attack denied, the wrong result is the only finding. The tuple
# names the capabilities that `assay doctor` must report for the attack to be denied.
ATTACKS = {
    "writes_judges_memory": (), "writes_judges_memory_by_call": (), "traces_the_judge": (), "takes_descriptors": (),
    "limits_the_judge": ("system_calls_filtered",), "signals_by_descriptor": ("system_calls_filtered",),
    "slows_the_judge": ("system_calls_filtered",), "asks_by_other_ways": ("system_calls_filtered",),
    "starts_processes": ("system_calls_filtered",), "outlives_the_judge": ("system_calls_filtered",),
    "opens_sockets": ("system_calls_filtered",), "keeps_uncounted_memory": ("system_calls_filtered",),
    "changes_modes": ("system_calls_filtered",), "writes_files": ("files_read_only",), "kills_as_a_device": ("system_calls_filtered",),
    "mends_by_timer": ("system_calls_filtered",),
}
NOBODY = 65534


def attempt(library, symbol, exit_codes, kinds, user=None):
    code, report, seconds = falsify(library, symbol, "scale", "--time", f"{TIME}s", "--limit", "500ms", user=user)
    found = {f["kind"] for f in findings(report)} if report else set()
    name = symbol if user is None else f"{symbol} as {user}"
    print(f"  {name:<40} exit {code}  {seconds:4.1f} s  {sorted(found)}", flush=True)
    check(report is not None, f"{name}: the reports are whole")
    check(code in exit_codes, f"{name}: exit {code}, not one of {exit_codes}")
    check(kinds is None or kinds & found or kinds == found, f"{name}: one of {kinds}, not {found}")
    if (exit_codes, kinds) == CLEAN and report:
        told = {o["id"]: o["verdict"] for o in report["kernels"][0]["obligations"]}
        check(set(told.values()) == {"passed"}, f"{name}: each obligation was tried and held: {told}")
    check(seconds <= TIME + SLACK, f"{name}: a verdict after {seconds:.1f} s")
    left = left_behind()
    check(not left, f"{name} leaves {left}")
    return report, found


def hostile():
    library = shutil.copy(libraries / "hostile.so", folder / "hostile.so")
    for symbol, want in sampled(HOSTILE):
        if want is None or (only and symbol != only):
            continue
        if symbol == "leaks" and ("address" in instrumented or "thread" in instrumented):
            print("left out: leaks (no limit on memory beside a sanitizer)")
            continue
        report, _ = attempt(library, symbol, *want)
        if symbol == "leaks":
            check(any("GiB of memory" in f["message"] for f in findings(report)), f"{symbol}: the finding names the memory that it kept")


def attacks():
    library = shutil.copy(libraries / "hostile.so", folder / "hostile.so")
    folder.chmod(0o777)
    users = [None, NOBODY] if os.geteuid() == 0 else [None]
    if subprocess.run(["test", "-x", assay], user=users[-1], group=users[-1], extra_groups=[] if users[-1] else None).returncode != 0:
        print(f"left out: attacks as {users.pop()} (it cannot run {assay})")
    sandbox = json.loads(run("doctor", "--json")[1])["sandbox"]
    for symbol, needs in sampled(ATTACKS):
        if only and symbol != only:
            continue
        lacking = [key for key in needs if not sandbox[key]]
        if instrumented not in ("", "coverage") and symbol in ("starts_processes", "opens_sockets", "keeps_uncounted_memory"):
            lacking.append("no sanitizer")
        if lacking:
            print(f"left out: {symbol} ({', '.join(lacking)})")
            continue
        for user in users:
            shutil.rmtree(folder / "reports", ignore_errors=True)
            _, found = attempt(library, symbol, {1}, {"value"}, user=user)
            check(found <= WRONG[1], f"{symbol} as {user}: its attack was denied, which {found - WRONG[1]} tells otherwise")


def wrong_use():
    library, shim = libraries / "rmsnorm.so", folder / "bad.yaml"
    text = folder / "text.so"
    text.write_text("no library\n")

    def expect(code, words, *arguments):
        got, _, err, _ = run("falsify", *arguments, "--cases", 1, "--quiet")
        check(got == code and err.count("\n") == 1 and words in err, f"{arguments}: exit {got}, said {err!r}, wanted {code} {words!r}")

    expect(2, "No such file", "--lib", folder / "none.so", "--symbol", "f", "--contract", "matmul")
    expect(2, "is not a file", "--lib", folder, "--symbol", "f", "--contract", "matmul")
    expect(2, "cannot be loaded", "--lib", text, "--symbol", "f", "--contract", "matmul")
    expect(2, "has no symbol 'no_such'", "--lib", library, "--symbol", "no_such", "--contract", "rmsnorm")
    expect(2, "no contract of this name", "--lib", library, "--symbol", "f", "--contract", "nothing")
    expect(2, "add --contract", "--lib", library, "--symbol", "f")
    expect(2, "add --symbol", "--lib", library, "--contract", "rmsnorm")
    expect(2, "--lib", "--symbol", "f", "--contract", "rmsnorm")
    expect(2, "--lib", "rmsnorm", "--lib", library, "--symbol", "f", "--contract", "rmsnorm")
    expect(2, "did not finish loading", "--lib", libraries / "hangs_when_loaded.so", "--symbol", "kernel", "--contract", "scale",
           "--limit", "500ms")
    expect(2, "wrong_declares: accumulator cannot be 'f99'", "--lib", libraries / "hostile.so", "--symbol", "wrong", "--contract", "scale")
    for symbol, words in (("loops_unasked", "no answer within 500 ms"), ("faults_unasked", "signal 11"), ("counts_unasked", "status 12345")):
        for more in ("say which in a shim", f"export {symbol}_declares"):
            expect(2, more, "--lib", libraries / "hostile.so", "--symbol", symbol, "--contract", "scale", "--limit", "500ms")
        expect(2, words, "--lib", libraries / "hostile.so", "--symbol", symbol, "--contract", "scale", "--limit", "500ms")
    for declared, words in (("accumulator", "declares nothing"), ("acumulator=f32", "did you mean 'accumulator'"),
                            ("inputs=f33", "did you mean 'f32'"), ("block=0", "block cannot be '0'"), ("block=many", "write block=N, terms"),
                            ("inputs=f32,inputs=f16", "declared twice"), ("functions=octant", "promises no")):
        expect(2, words, "--lib", library, "--symbol", "rms_normalize", "--contract", "rmsnorm", "--declare", declared)
    expect(2, "cannot be read", "--lib", library, "--symbol", "f", "--contract", "rmsnorm", "--shim", folder / "none.yaml")
    good = "args: [y, x, weight, eps, rows, n, rrms]\n"
    for content, words in (
            ("", ":1:1: 'the shim' must be a map"), ("args: [y\n", "this is not YAML"), ("symbol: f\n", "lacks 'args'"),
            ("args: [y, z]\n", ":1:11: 'z' is no dim, param or tensor of rmsnorm"),
            ("args: [{leading: weight}]\n", ":1:18: weight has no rows"),
            ("args: [{stride: [x, 2]}]\n", "write an integer from 0 to 1"), ("args: [{stride: [x]}]\n", "one of a tensor and an axis"),
            ("args: [{tensor: q}]\n", "'q' is no tensor"), ("args: [{dim: n, as: int16}]\n", "'as' cannot be 'int16'"),
            ("args: [{param: eps, as: int32}]\n", "eps is a real number"), ("args: [{tensor: x, as: float}]\n", "x cannot be passed as float"),
            ("args: [{constant: 1}]\n", "add `as`"), ("args: [{dim: n, tensor: x}]\n", "an argument is one thing"),
            ("args: [{size: x}]\n", "unknown key 'size'"), (good + "returns: pointer\n", ":2:10: 'returns' cannot be 'pointer'"),
            (good + "requires: column-major\n", "'requires' cannot be 'column-major'"), (good + "refused: 3\n", "add `returns: status`"),
            (good + "integers: float\n", "use int32, int64 or size_t"), (good + "argument: 1\n", ":2:1: unknown key 'argument'")):
        shim.write_text(content)
        expect(2, words, "--lib", library, "--symbol", "rms_normalize", "--contract", "rmsnorm", "--shim", shim)

    shim.write_text(good + "requires: [n > 5, n < 3]\n")
    expect(2, "'n > 5' and 'n < 3' contradict each other", "--lib", library, "--symbol", "rms_normalize", "--contract", "rmsnorm", "--shim", shim)
    shim.write_text((sources / "rmsnorm.yaml").read_text() + "requires: [dense rows, rows == n]\n")
    how = ("--lib", library, "--symbol", "rms_normalize", "--contract", "rmsnorm", "--shim", shim)
    expect(2, "--dims rows=3,n=4: contradicts the shim: its shim requires rows == n; give", *how, "--dims", "rows=3,n=4")
    for dims in ("rows=3,n=3", "rows=5"):
        code, _, err, _ = run("falsify", *how, "--cases", 1, "--quiet", "--dims", dims)
        check(code in (1, 4), f"{dims} is what the shim takes: exit {code}, {err!r}")

    # A wrong shim is no wrong kernel; a kernel that crashes only in later calls is.
    shim.write_text((sources / "rmsnorm.yaml").read_text().replace("args: [y,", "args: [{constant: 1, as: int64},").replace("rrms]", "rrms, y]"))
    expect(2, "its first call, of rows=2 n=2", *how[:-2], "--shim", shim)
    expect(2, f"either {shim} does not say what rms_normalize takes, or the function is wrong in every call", *how[:-2], "--shim", shim)
    code, report, _ = falsify(library, "rms_normalize_short_rows", "rmsnorm", "--shim", sources / "rmsnorm.yaml", "--obligation", "FALSIFY-RMSNORM-002")
    check(code == 1 and report and findings(report)[0]["kind"] == "crash", f"a kernel that crashes at longer rows is falsified: exit {code}")

    def advice(content, contract="rmsnorm"):
        shim.write_text(content)
        said = run("falsify", "--lib", library, "--symbol", "rms_normalize", "--contract", contract, "--shim", shim, "--cases", 1, "--quiet")[2]
        return "".join(line + "\n" for line in said.splitlines() if "its first call" not in line)  # its arguments are another function's

    said = advice(good)
    check(said.count("\n") == 1 and "strides [x, 0], [y, 0];" in said and "`requires: [dense rows]`" in said, f"a shim without strides is advised: {said!r}")
    check(advice(good + "requires: [row-major]\n") == said, "rows in order may still be padded")
    check(advice(good + "requires: [dense rows]\n") == "", "one of dense rows needs no advice")
    check(advice(good.replace("args: [y,", "args: [y, {stride: [y, 1]}, {stride: [x, 1]},")) == said, "the stride within a row says nothing about rows")
    some = advice(good.replace("args: [y,", 'args: [y, {expression: "stride( y, 0) * 4", as: int64},'))
    check("strides [x, 0];" in some, f"an expression tells the stride that it reads alone: {some!r}")
    rows = "args: [q, {stride: [q, 0]}, k, {leading: k}, v, {leading: v}, y, {leading: y}, lengths, starts, batch, s, t, heads, kv_heads, d, scale, causal]\nabsent: [logsumexp]\n"
    some = advice(rows, "attention")
    check("[q, 1], [q, 2]" in some and "[k, 0], [k, 1]" in some and "logsumexp" not in some, f"every axis of rows has a stride: {some!r}")
    some = advice(rows + "loop: batch\n", "attention")
    check("[q, 1], [q, 2]" in some and "[k, 1]" in some and "[k, 0]" not in some, f"a loop takes its own axis: {some!r}")
    check(advice("args: [y, {stride: [y, 0]}, x, {stride: [x, 0]}, weight, {stride: [weight, 0]}, bias, s, in, out]\n", "linear") == "", "a tensor of one row at most needs none")
    check(advice("args: [y, {stride: [y, 0]}, x, {leading: x}, weight, eps, rows, n, rrms]\n") == "", "one with strides needs none")


for part in parts:
    {"examples": examples, "planted": planted, "hostile": hostile, "attacks": attacks, "wrong_use": wrong_use}[part]()
shutil.rmtree(folder, ignore_errors=True)
print(f"{passed} passed, {len(failures)} failed")
sys.exit(1 if failures or not passed else 0)
