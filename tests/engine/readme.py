#!/usr/bin/env python3
"""Runs every `$ command` of a page from the top of the page's repository: each must exit with 0 and print what the page shows below it.

readme.py ASSAY PAGE [MOST_LINES]

A line `...` of the page stands for any lines. Times, and the runs that a shrink made in its time, depend on the machine and are not
compared. Links must lead to files, scripts must be executable, and the page has at most MOST_LINES lines. With ASSAY_RECORD=1 the page is
made to show what the commands print, as many lines as before where `...` ends them.
"""
import os
import pathlib
import re
import subprocess
import sys

assay = pathlib.Path(__file__).resolve().parents[2]
build, page = str(pathlib.Path(sys.argv[1]).resolve().parents[1]), (assay / sys.argv[2]).resolve()
top = next(folder for folder in [*page.parents, assay] if (folder / ".git").exists() or folder == assay)
text = page.read_text()
failures = []


def fail(words):
    failures.append(words)
    print("FAILED:", words, flush=True)


def commands():
    """(command, lines shown below it) of every console block."""
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *shown = part.rstrip("\n").split("\n")
            yield command, shown


def comparable(lines):
    """The lines without times (columns `seconds` and `ms/case`, and words) and without counts of shrinking runs."""
    out, ends = [], []
    for line in lines:
        headers = [m.end() for m in re.finditer(r"(?<!\S)(seconds|ms/case)(?!\S)", line)]
        ends = headers or (ends if line else [])
        for end in [] if headers else ends:
            line = re.sub(r"\d[\d.]*$", lambda time: " " * (len(time[0]) - 1) + "T", line[:end]) + line[end:]
        line = re.sub(r"\b\d+\.\d+ s\b", "T s", line)
        out.append(re.sub(r"shrunk in \d+ runs", "shrunk in N runs", line).rstrip())
    return out


def shows(shown, printed):
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(line) + r"\n" for line in comparable(shown))
    return re.fullmatch(pattern, "".join(line + "\n" for line in comparable(printed))) is not None


ran = compared = 0
for command, shown in commands():
    done = subprocess.run(command.replace("build/release", build), shell=True, executable="/bin/bash", cwd=top, capture_output=True, text=True)
    printed = done.stdout.replace(build, "build/release").rstrip("\n").split("\n")
    ran += 1
    if done.returncode != 0:
        fail(f"{command}\nended with {done.returncode}:\n{done.stdout}{done.stderr}")
    elif shown:
        compared += 1
        if not shows(shown, printed) and "ASSAY_RECORD" in os.environ and "..." not in shown[:-1]:
            new = printed[:len(shown) - 1] + ["..."] if shown[-1] == "..." else printed
            text = text.replace("\n".join(["$ " + command, *shown]), "\n".join(["$ " + command, *new]))
            page.write_text(text)
        elif not shows(shown, printed):
            fail(f"{command}\nprinted:\n" + "\n".join(printed) + "\nand the page shows:\n" + "\n".join(shown))
if ran == 0:
    fail("the page runs no command")
if (stray := len(re.findall(r"^\$ ", text, re.MULTILINE)) - ran) != 0:
    fail(f"{stray} commands stand outside of console blocks")
for script in re.findall(r"^(ci/[\w/-]+)", text, re.MULTILINE):
    if not (assay / script).is_file() or not (assay / script).stat().st_mode & 0o100:
        fail(f"{script} cannot be executed")
links = re.findall(r"\]\((?!https?:|#)([^)#]+)[^)]*\)", text)
for link in links:
    if not (page.parent / link).exists():
        fail(f"the link {link} leads nowhere")
if len(sys.argv) > 3 and len(text.splitlines()) > int(sys.argv[3]):
    fail(f"{len(text.splitlines())} lines, and {sys.argv[3]} are the most")
print(f"{page.relative_to(top)}: {ran} commands ran, {compared} were compared with the page, {len(links)} links; {len(failures)} failures")
sys.exit(1 if failures else 0)
