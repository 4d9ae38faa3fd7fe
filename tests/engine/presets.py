#!/usr/bin/env python3
"""Every preset configures: not every preset is built daily. Without tests, packages that only tests need are not required.

presets.py SOURCE
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

source = pathlib.Path(sys.argv[1])
presets = json.loads((source / "CMakePresets.json").read_text())["configurePresets"]
failed = 0


def configure(name, *arguments):
    global failed
    with tempfile.TemporaryDirectory(prefix="assay-preset-") as folder:
        done = subprocess.run(["cmake", *arguments, "-B", folder], cwd=source, capture_output=True, text=True)
    failed += done.returncode != 0
    print(name, "configures" if done.returncode == 0 else done.stderr[-2000:])


def packages(files):
    return {name for file in files for name in re.findall(r"^\s*find_package\((\S+)", file.read_text(), re.MULTILINE)}


for preset in presets:
    if preset.get("hidden"):
        continue
    if "ASSAY_CUDA" in preset["cacheVariables"] and not (shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")):
        print(preset["name"], "was not tried: it needs nvcc, which is not here")
        continue
    configure(preset["name"], "--preset", preset["name"])

of_tests = packages(source.glob("tests/**/CMakeLists.txt"))
of_others = packages(file for folder in ("src", "reference", "kernels", "falsify") for file in source.glob(f"{folder}/**/CMakeLists.txt"))
only = sorted(of_tests - of_others - {"assay"})  # assay: the example project's
failed += "GTest" not in only
configure(f"without tests and without {', '.join(only)}", "--preset", "release", "-DASSAY_TESTS=OFF",
          *(f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in only))
sys.exit(1 if failed else 0)
