#!/usr/bin/env python3
"""Every listed fault is a mutant with its class and words, and default campaigns find at least 95% of them.

faults_score.py SOURCE ASSAY
"""
import glob
import json
import os
import subprocess
import sys

import yaml

source, assay = sys.argv[1:3]
wanted = {}
for path in glob.glob(os.path.join(source, 'falsify/mutation/faults/*.yaml')):
    with open(path) as f:
        for fault in yaml.safe_load(f):
            if not fault.get('scored'):
                continue
            op, backend, _ = fault['kernel'].split('/')
            for name in [fault['only']] if 'only' in fault else ['cuda', 'cuda-host'] if backend == 'cuda' else [backend]:
                wanted[f'mutant/{name}/{op}/{fault["id"]}'] = (fault['class'], ' '.join(fault['says'].split()))
run = subprocess.run([assay, 'mutants', '--faults', '--json', '--quiet'], capture_output=True, text=True)
report = json.loads(run.stdout)
found = {m['mutant']: (m['class'], m['fault']) for m in report['mutants']}
built = {mutant.split('/')[1] for mutant in found}
wanted = {mutant: words for mutant, words in wanted.items() if mutant.split('/')[1] in built}
if len(found) < len(report['mutants']):
    sys.exit('two mutants have one id: rename the fault, or take it out of falsify/adversarial')
if found != wanted:
    sys.exit(f'the lists and the mutants differ: {sorted(set(found.items()) ^ set(wanted.items()))}')
survivors = [m['mutant'] for m in report['mutants'] if m['status'] != 'killed']
print(f'{len(found)} faults, {len(survivors)} survived: {" ".join(survivors)}')
if len(found) < 120 or len({m['op'] for m in report['mutants']}) < 49:
    sys.exit('fewer than 120 faults, or an operation without one')
if len(survivors) > 0.05 * len(found):
    sys.exit('more than 5% survived')
