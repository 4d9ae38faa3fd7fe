#!/usr/bin/env python3
"""Progress: on a terminal a line that rewrites itself, with the time left; in a log plain lines, at least one in ten
seconds.

progress_test.py ASSAY
"""
import os
import pty
import re
import select
import subprocess
import sys
import tempfile

assay = os.path.abspath(sys.argv[1])
passed, failed = 0, 0


def check(condition, text):
    global passed, failed
    if condition:
        passed += 1
    else:
        failed += 1
        print("FAILED:", text, flush=True)


def on_terminal(*arguments):
    """Runs with standard error on a pseudo-terminal, and standard output on a pipe."""
    master, terminal = pty.openpty()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen([assay, *arguments], stdout=out, stderr=terminal, stdin=subprocess.DEVNULL)
        os.close(terminal)
        text = b""
        while process.poll() is None or select.select([master], [], [], 0)[0]:
            if select.select([master], [], [], 0.1)[0]:
                try:
                    text += os.read(master, 65536)
                except OSError:  # closed by the last process that had it open
                    break
        process.wait()
        os.close(master)
        out.seek(0)
        return process.returncode, text.decode(), out.read().decode()


def in_log(*arguments):
    done = subprocess.run([assay, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return done.returncode, done.stderr, done.stdout


LEFT = r"\d+ of \d+ kernels, \d+ cases, \d+ s, about \d+ (s|min) left"
by_cases = ["falsify", "transpose", "silu", "--backend", "cpu", "--cases", "100"]
code, text, out = on_terminal(*by_cases)
check(code == 0 and "passed" in out, f"a run on a terminal: {code}")
check(text.count("\r\x1b[K") > 1 and "\n" not in text, "on a terminal one line rewrites itself")
check(re.search(LEFT, text), f"with the time left: {text[-300:]!r}")
check(text.endswith("\r\x1b[K"), "and is gone at the end")
code, text, _ = on_terminal("falsify", "transpose", "--backend", "cpu", "--time", "4s")
left = [int(s) for s in re.findall(r"about (\d+) s left", text)]
check(left and left[0] <= 4 and left == sorted(left, reverse=True) and left[-1] <= 1, f"the time left follows --time: {left}")
code, text, _ = on_terminal("falsify", "transpose", "--backend", "cpu", "--cases", "1", "--quiet")
check(text == "", "--quiet is quiet")

code, text, out = in_log(*by_cases)
kernels = len(re.findall(r"^(?:transpose|silu)/cpu/", out, re.MULTILINE))
lines = [line for line in text.splitlines() if line.startswith("[")]
check(kernels > 0 and len(lines) == kernels, f"in a log a line a kernel: {text!r}")
check("\x1b" not in text and "\r" not in text, "and no control characters")
check(lines[-1].startswith(f"[{kernels}/{kernels}] ") and lines[-1].endswith(": passed"), f"the last one counts all: {lines[-1]}")
code, text, _ = in_log("falsify", "--kernel", "transpose/cpu/naive", "--time", "13s")
alive = [line for line in text.splitlines() if re.fullmatch(LEFT, line)]
check(len(alive) >= 1, f"a long silence is broken: {text!r}")

print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed else 0)
