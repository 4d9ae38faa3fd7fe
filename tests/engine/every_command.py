#!/usr/bin/env python3
"""Every command takes --quiet and --json: one JSON document with a schema on standard output, no progress on standard error.

every_command.py ASSAY
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

assay, top = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(__file__).resolve().parents[2]
folder = tempfile.TemporaryDirectory(prefix="assay-commands-")
made = pathlib.Path(folder.name)
failures = []
for name in ("contracts", "kernels", "ci"):  # the least that is a checkout: --lock writes there
    (made / "checkout" / name).mkdir(parents=True)
(made / "drawn").mkdir()
(made / "drawn/results.safetensors").write_bytes(b"\x02" + bytes(7) + b"{}")
subprocess.run(["git", "init", "-q", made / "checkout"], check=True)

# command: (exit code, arguments) of runs that end soon. A command without a row fails below.
RUNS = {
    "doctor": [(0, [])],
    "list": [(0, [])],
    "explain": [(0, ["scale"])],
    "falsify": [(4, ["--kernel", "scale/cpu/naive", "--cases", 2, "--shard", "1/1", "--report", made / "thin"]),
                (1, ["--kernel", "mutant/cpu/matmul/dropped_last_k", "--first", "--report", made / "wrong"])],
    "replay": [(1, [made / "wrong.json"])],
    "merge": [(4, [made / "thin/report.json"])],
    "mutants": [(0, ["transpose", "--backend", "cpu"]), (0, ["transpose", "--backend", "cpu", "--policies", "--cases", 5])],
    "gradcheck": [(0, ["transpose", "--backend", "cpu", "--cases", 1])],
    "import": [(0, [top / "tests/import/published/squared-relu-kernel-v1.yaml", "--output", made / "squared_relu.yaml"])],
    "audit": [(0, ["--kernel", "matmul/cpu/naive"])],
    "gate": [(0, ["--all", "--plan", "--root", top]), (0, ["--lock", "--root", made / "checkout"])],
    "attest": [(0, ["--kernel", "scale/vulkan/vectors", "--out", made / "evidence", "--root", top])],
    "false-alarms": [(0, ["--record", top / "ci/false_alarms.jsonl"])],
    "cases": [(0, ["scale", "--cases", 1, "--out", made / "drawn"])],
    "check": [(3, [made / "drawn"])],  # no call has results
    "run": [(0, [top / "tests/program/tiny_qwen2.json", "--random", "--count", "2"])],
    "train": [(0, [made / "train.yaml"])],
}
(made / "train.jsonl").write_text('{"text": "ja", "label": "de"}\n{"text": "yes", "label": "en"}\n')
(made / "train.yaml").write_text(f"""model: {{config: tiny.json, weights: random}}
classifier: {{labels: [de, en]}}
corpus: {{train: train.jsonl, length: 8}}
output: trained
""")
tiny = json.loads((top / "tests/program/tiny_qwen2.json").read_text())
(made / "tiny.json").write_text(json.dumps(tiny | {"vocab_size": 256}))


def run(*arguments):
    return subprocess.run([assay, *map(str, arguments)], cwd=made, capture_output=True, text=True)


def check(right, text):
    if not right:
        failures.append(text)
        print("FAILED:", text, flush=True)


listed = re.findall(r"^  (\w[\w-]*)  ", run("--help").stdout.split("Subcommands:")[1], re.MULTILINE)
check(sorted(listed) == sorted(RUNS), f"commands of --help without a row here, or rows without a command: {sorted(set(listed) ^ set(RUNS))}")
for command, runs in RUNS.items():
    for code, arguments in runs:
        done = run(command, *arguments, "--quiet", "--json")
        name = " ".join(map(str, (command, *arguments)))
        check(done.returncode == code, f"{name}: exit code {done.returncode}, not {code}: {done.stderr}")
        try:
            check("schema" in json.loads(done.stdout), f"{name}: the document names no schema")
        except ValueError:
            check(False, f"{name}: standard output is no JSON document: {done.stdout[:200]}")
        check(done.stderr == "", f"{name}: --quiet leaves standard error empty, not: {done.stderr[:200]}")
        for file in (made / "wrong/replay").glob("*.json"):
            file.rename(made / "wrong.json")
print(f"{sum(map(len, RUNS.values()))} runs of {len(RUNS)} commands, {len(failures)} failures")
sys.exit(1 if failures else 0)
