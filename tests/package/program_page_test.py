#!/usr/bin/env python3
"""Builds and runs the example of a page against an installed Assay: it must print what the page shows.

program_page_test.py BUILD SOURCE PAGE MOST_LINES CXX_FLAGS

With ASSAY_RECORD=1 the page is made to show what the example prints.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

build, source = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
page, most, flags = source / sys.argv[3], int(sys.argv[4]), sys.argv[5]
text = page.read_text()
blocks = {kind: re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL) for kind in ("cmake", "cpp", "text")}
if any(len(found) != 1 for found in blocks.values()):
    sys.exit(f"{page}: it has not one block each of cmake, cpp and text")
if len(text.splitlines()) > most:
    sys.exit(f"{page}: {len(text.splitlines())} lines, and {most} are the most")
for link in re.findall(r"\]\((?!https?:|#)([^)#]+)[^)]*\)", text):
    if not (page.parent / link).exists():
        sys.exit(f"{page}: the link {link} leads nowhere")

folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-program-page-"))
prefix, project = folder / "moved" / "assay", folder / "project"


def run(command):
    environment = dict(os.environ, CMAKE_PREFIX_PATH=str(prefix), CXXFLAGS=flags, LDFLAGS=flags)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=1200)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-4000:]}")
    return done.stdout


try:
    run(["cmake", "--install", build, "--prefix", folder / "first"])
    prefix.parent.mkdir()
    (folder / "first").rename(prefix)
    project.mkdir()
    (project / "CMakeLists.txt").write_text(blocks["cmake"][0])
    (project / "block.cpp").write_text(blocks["cpp"][0])
    run(["cmake", "-G", "Ninja", "-S", project, "-B", project / "build"])
    run(["cmake", "--build", project / "build"])
    printed = run([project / "build" / "block"])
finally:
    shutil.rmtree(folder)
if printed != blocks["text"][0]:
    if "ASSAY_RECORD" not in os.environ:
        sys.exit(f"{page}: the example printed\n{printed}and the page shows\n{blocks['text'][0]}")
    page.write_text(text.replace("```text\n" + blocks["text"][0] + "```", "```text\n" + printed + "```"))
print(f"{page.relative_to(source)}: the example printed {len(printed.splitlines())} lines, as the page shows")
