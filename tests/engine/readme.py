#!/usr/bin/env python3
"""Runs every `$ command` of a README from the top of the repository; each must exit with 0."""
import pathlib
import re
import subprocess
import sys

top = pathlib.Path(__file__).resolve().parents[2]
binary = sys.argv[1]
commands = re.findall(r"^\$ (.+)$", (top / "README.md").read_text(), re.MULTILINE)
failed = 0
for command in commands:
    done = subprocess.run(command.replace("build/release", str(pathlib.Path(binary).parents[1])), shell=True, executable="/bin/bash", cwd=top,
                          capture_output=True, text=True)
    if done.returncode != 0:
        failed += 1
        print(f"FAILED with {done.returncode}: {command}\n{done.stdout}{done.stderr}")
for script in re.findall(r"^(ci/\w+)", (top / "README.md").read_text(), re.MULTILINE):
    if not (top / script).stat().st_mode & 0o100:
        failed += 1
        print(f"FAILED: {script} cannot be executed")
print(f"{len(commands) - failed} passed, {failed} failed")
sys.exit(1 if failed or not commands else 0)
