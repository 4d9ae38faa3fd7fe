#!/usr/bin/env python3
"""Makes a corpus of real text, to identify its language, from Debian's packages of fortunes.

languages.py FOLDER: writes train.jsonl and held_out.jsonl. Exits with 77 and the reason if a package is missing.
"""
import json
import pathlib
import random
import re
import subprocess
import sys

PACKAGES = {"en": "fortunes", "de": "fortunes-de", "es": "fortunes-es", "it": "fortunes-it", "pt": "fortunes-br", "eo": "fortunes-eo"}
EACH, HELD_OUT, BYTES = 1200, 200, 96  # samples of a language, of which are held out, and their longest text


def texts(package):
    """The fortunes of a package, on one line each, cut between words."""
    listed = subprocess.run(["dpkg", "-L", package], capture_output=True, text=True)
    files = [pathlib.Path(p) for p in listed.stdout.split() if "/games/fortunes/" in p and "/off/" not in p]
    files = sorted(f for f in files if f.is_file() and not f.is_symlink() and f.suffix not in (".dat", ".u8"))
    if listed.returncode or not files:
        print(f"skipped: the package {package} is not here (ci/setup installs it)")
        sys.exit(77)
    for file in files:
        for fortune in re.split(r"^%\s*$", file.read_text(encoding="utf-8", errors="ignore"), flags=re.MULTILINE):
            words = " ".join(fortune.split())
            if len(words.encode()) > BYTES:
                words = words.encode()[:BYTES + 1].decode(errors="ignore").rpartition(" ")[0]
            if len(words) >= 20 and sum(c.isalpha() for c in words) > len(words) / 2:
                yield words


def make(folder):
    rng, parts = random.Random(1), {"train": [], "held_out": []}
    for language, package in PACKAGES.items():
        lines = sorted(set(texts(package)))  # none of what is held out is trained on
        rng.shuffle(lines)
        for i, text in enumerate(lines[:EACH]):
            parts["held_out" if i < HELD_OUT else "train"].append(json.dumps({"text": text, "label": language}, ensure_ascii=False))
    for part, lines in parts.items():
        (pathlib.Path(folder) / f"{part}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    make(sys.argv[1])
