#!/usr/bin/env python3
"""What ci/new-op writes is formatted as tests/format_test.py has it, whatever the length of the name; and it writes no file twice.

new_op_test.py SOURCE
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

source = pathlib.Path(sys.argv[1]).resolve()
failed = []
with tempfile.TemporaryDirectory(prefix="assay-new-op-") as folder:
    checkout = pathlib.Path(folder)
    for file in ("ci/new-op", ".clang-format"):
        (checkout / file).parent.mkdir(exist_ok=True)
        shutil.copy(source / file, checkout / file)
    for room in ("contracts", "reference", "falsify/properties", "kernels/cpu/naive"):
        (checkout / room).mkdir(parents=True)
    written = []
    for name in ("t", "silu_mul", "softmax_backward", "a_long_name_at_which_lines_break"):
        done = subprocess.run([checkout / "ci/new-op", name], capture_output=True, text=True)
        files = [line for line in done.stdout.splitlines() if (checkout / line).is_file()]
        if done.returncode != 0 or len(files) != 4:
            failed.append(f"new-op {name}: exit {done.returncode}, {files}, {done.stderr}")
        needed = done.stdout.split("without which nothing is configured")[0]
        if f"kernels/cpu/{name}.cpp" in needed or f"kernels/cuda/{name}.cu" not in needed:
            failed.append(f"new-op {name} asks for other files than the configure step: {needed}")
        written += files
    again = subprocess.run([checkout / "ci/new-op", "t"], capture_output=True, text=True)
    if again.returncode != 2 or "exists already" not in again.stderr:
        failed.append(f"new-op writes an operation twice: exit {again.returncode}, {again.stderr}")
    code = [file for file in written if not file.endswith(".yaml")]
    done = subprocess.run([sys.executable, source / "tests/format_test.py", checkout, *code], capture_output=True, text=True)
    if done.returncode != 0:
        failed.append(f"format_test: {done.stdout}{done.stderr}")
print("\n".join(failed) or f"{len(written)} files")
sys.exit(1 if failed else 0)
