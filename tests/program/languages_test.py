#!/usr/bin/env python3
"""A real run: `assay train` tells languages apart, from random weights, on lines that it has not seen.

languages_test.py ASSAY BACKEND...: the whole run on the CPU; a few updates on each back end, every step of every update within
its bound. Skipped (77) with the reason where the packages of fortunes are missing.
"""
import csv
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import languages

assay, backends = sys.argv[1], sys.argv[2:]
failed = 0
model = {"model_type": "qwen2", "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2,
         "num_hidden_layers": 1, "vocab_size": 256, "rope_theta": 10000.0}


def expect(holds, words):
    global failed
    if not holds:
        failed += 1
        print("FAILED:", words, flush=True)


def train(folder, name, backend, epochs, corpus, *args):
    config = folder / f"{name}.yaml"
    config.write_text(f"""model: {{config: ., weights: random}}
classifier: {{labels: [{', '.join(languages.PACKAGES)}]}}
corpus: {{{corpus}, length: 64}}
training: {{epochs: {epochs}, batch: 16, lr: 0.003, warmup: 50}}
backend: {backend}
output: {name}
""")
    begin = time.monotonic()
    done = subprocess.run([assay, "train", config, "--json", *args], capture_output=True, text=True)
    expect(done.returncode == 0, f"{name}: exit {done.returncode}: {done.stdout}{done.stderr}")
    made = json.loads(done.stdout or "{}")
    print(f"{name}: {time.monotonic() - begin:.0f} s, {made.get('tokens_a_second', 0):.0f} tokens a second, {made.get('held_out')}", flush=True)
    return made


with tempfile.TemporaryDirectory(prefix="assay-languages-") as made:
    folder = pathlib.Path(made)
    languages.make(folder)
    (folder / "config.json").write_text(json.dumps(model))
    lines = (folder / "train.jsonl").read_text().splitlines()
    (folder / "few.jsonl").write_text("\n".join(lines[::len(lines) // 48][:48]) + "\n")
    # A sixth of the lines would be right by chance.
    whole = train(folder, "whole", "cpu", 4, "train: train.jsonl, held_out: held_out.jsonl")
    expect(whole["held_out"]["accuracy"] >= 0.85 and whole["skipped"] == 0, f"it learned too little: {whole}")
    losses = {}
    for backend in backends:
        few = train(folder, backend, backend, 1, "train: few.jsonl", "--check", "1/1")
        expect(few["updates"] == 3 and few["checked"]["steps"] >= 3 * 50, f"{backend}: {few}")
        losses[backend] = [float(row["loss"]) for row in csv.DictReader((folder / backend / "curve.csv").open())]
        print(f"{backend}: losses {losses[backend]}, on the CPU {losses[backends[0]]}")
print(f"languages: {failed} failures")
sys.exit(failed != 0)
