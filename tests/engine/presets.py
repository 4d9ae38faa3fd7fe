#!/usr/bin/env python3
"""Every preset configures: not every preset is built daily. presets.py SOURCE"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

source = pathlib.Path(sys.argv[1])
presets = json.loads((source / "CMakePresets.json").read_text())["configurePresets"]
failed = 0
for preset in presets:
    if preset.get("hidden"):
        continue
    if "ASSAY_CUDA" in preset["cacheVariables"] and not (shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")):
        print(preset["name"], "was not tried: it needs nvcc, which is not here")
        continue
    with tempfile.TemporaryDirectory(prefix="assay-preset-") as folder:
        done = subprocess.run(["cmake", "--preset", preset["name"], "-B", folder], cwd=source, capture_output=True, text=True)
    failed += done.returncode != 0
    print(preset["name"], "configures" if done.returncode == 0 else done.stderr[-2000:])
sys.exit(1 if failed else 0)
