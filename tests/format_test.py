#!/usr/bin/env python3
"""Every tracked C++ and CUDA file is formatted as .clang-format has it, and no comment line but those of tables has more than 120 columns.

format_test.py SOURCE [FILE...]
"""
import os
import re
import subprocess
import sys

FORMATTER = 'clang-format-14'  # of ci/setup: another version breaks other lines
COMMENT = re.compile(r'(?:^|\s)(?://|/?\*)\s(.*)')
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
TABLE = re.compile(r'\S {3,}\S')
source, files = os.path.abspath(sys.argv[1]), sys.argv[2:]
if not files:
    patterns = ['*.c', '*.cc', '*.cpp', '*.cxx', '*.cu', '*.cuh', '*.h', '*.hh', '*.hpp', '*.hxx', '*.inc', '*.inl', '*.ipp', '*.tpp']
    listed = subprocess.run(['git', '-C', source, 'ls-files', '-z', *patterns], capture_output=True, text=True, check=True)
    files = [name for name in listed.stdout.split('\0') if name and os.path.exists(os.path.join(source, name))]
if not files:
    sys.exit('no file of C++ or CUDA is tracked')
try:
    run = subprocess.run([FORMATTER, '--dry-run', '--Werror', '--ferror-limit=1', *files], capture_output=True, text=True, cwd=source)
except FileNotFoundError:
    sys.exit(f'{FORMATTER} is missing: run ci/setup')
wrong = re.findall(r'^(\S+?:\d+):\d+: error: code should be clang-formatted', run.stderr, re.M)
if run.returncode != 0 and not wrong:
    sys.exit(run.stderr)
for name in files:
    with open(os.path.join(source, name), encoding='utf-8') as f:
        wrong += [f'{name}:{number}' for number, line in enumerate(f, 1)
                  if len(line) > 121 and (comment := COMMENT.search(STRING.sub('', line))) and not TABLE.search(comment[1].strip())]
if wrong:
    sys.exit('\n'.join(wrong) + f'\nformat these with `{FORMATTER} -i`, and break their comments at 120 columns')
print(f'{len(files)} files')
