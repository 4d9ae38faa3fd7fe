#!/usr/bin/env python3
"""An invalid list of faults gives one sentence with its place; applied faults are in namespaces of their own, and
compilers report lines of the original source.

faults_test.py SOURCE COMPILER
"""
import os
import re
import subprocess
import sys
import tempfile

source, compiler = sys.argv[1:3]
KERNEL = '''#include "kernels/cpu/shared.hpp"
namespace assay::cpu::of_add {
namespace {
int add(int a, int b) {
  const int sum = a +
                  b;
  return doubled(sum);
}
const KernelRegistration right{{"add/cpu/right", &add}};
const KernelRegistration other{{"add/cpu/other", &add}};
}  // namespace
}  // namespace assay::cpu::of_add
'''
SHARED = '''#pragma once
namespace assay::cpu {
inline int doubled(int x) { return 2 * x; }
}  // namespace assay::cpu
'''
MAIN = '''#include <cstdio>
namespace assay { struct Kernel { const char* id; int (*run)(int, int); }; }
namespace assay::mutation {
struct Fault { const char *kernel, *id, *says, *fault_class; bool scored; };
inline void register_fault(const Kernel& k, const Fault& f) { if (k.id[8] == f.kernel[8]) std::printf("%s %d\\n", f.id, k.run(3, 4)); }
}
'''
RIGHT = {'id': 'one', 'kernel': 'add/cpu/right', 'class': 'formula', 'says': 'the sum is a difference', 'old': 'a + b;', 'new': 'a - b;'}


def apply(folder, faults, op='add', group='faults'):
    """Returns exit code and standard error; `faults` is YAML or a list."""
    path = os.path.join(folder, 'falsify/mutation', group, f'{op}.yaml')
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w') as f:
        f.write(faults if isinstance(faults, str) else repr(faults))
    run = subprocess.run([sys.executable, os.path.join(source, 'falsify/mutation/faults.py'), folder, os.path.join(folder, 'out'), path],
                         capture_output=True, text=True)
    return run.returncode, run.stderr


def refused(folder, faults, words, **place):
    code, said = apply(folder, faults, **place)
    if code != 1 or len(said.strip().split('\n')) != 1 or words not in said:
        sys.exit(f'"{words}" was expected of {faults}, with exit code 1: {code}, {said}')


def build(folder, *options):
    return subprocess.run([compiler, '-std=c++20', '-I', folder, '-include', os.path.join(folder, 'main.hpp'), *options,
                           os.path.join(folder, 'out/faults/cpu/add.cpp')], capture_output=True, text=True, cwd=folder)


with tempfile.TemporaryDirectory() as folder:
    for name, text in (('kernels/cpu/add.cpp', KERNEL), ('kernels/cpu/shared.hpp', SHARED), ('main.hpp', MAIN), ('falsify/mutation/fault.hpp', ''),
                       ('runner.cpp', 'int main() {}\n')):
        os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
        with open(os.path.join(folder, name), 'w') as f:
            f.write(text)
    place = 'falsify/mutation/faults/add.yaml: one: '
    refused(folder, [{**RIGHT, 'old': 'a * b'}], place + 'the old text does not occur in kernels/cpu/add.cpp and what it includes of kernels/, and must occur once')
    refused(folder, [{**RIGHT, 'old': 'KernelRegistration'}], place + 'the old text occurs 2 times in kernels/cpu/add.cpp')
    refused(folder, [{**RIGHT, 'kernel': 'add/cpu/absent'}], place + 'no file in kernels/cpu registers add/cpu/absent')
    refused(folder, [{**RIGHT, 'kernel': 'sub/cpu/right'}], place + 'sub/cpu/right is no kernel of add on one of cpu, cuda, vulkan')
    refused(folder, [{**RIGHT, 'class': 'odd'}], place + 'there is no class odd: it is one of tile_edge, ')
    refused(folder, [RIGHT, RIGHT], place + 'this id stands twice')
    refused(folder, [{**RIGHT, 'id': 'One'}], 'an id has lower-case letters, digits and underscores')
    refused(folder, [{**RIGHT, 'why': 'x'}], place + 'why is no key of a fault')
    refused(folder, [{k: v for k, v in RIGHT.items() if k != 'says'}], place + 'says is missing')
    refused(folder, [{**RIGHT, 'edits': [{'old': 'a +', 'new': 'a -'}]}], place + 'a fault has old and new, or edits')
    only = {k: v for k, v in RIGHT.items() if k not in ('old', 'new')}
    refused(folder, [only | {'edits': [{'old': 'a +', 'new': 1}]}], place + 'an edit has old and new, both text')
    refused(folder, [only | {'edits': [{'old': 'a +', 'new': 'a -', 'b': None}]}], place + 'b is no key of an edit')
    refused(folder, [only | {'edits': [{'old': 'a + b', 'new': 'a'}, {'old': 'b;', 'new': ';'}]}], place + 'two edits of kernels/cpu/add.cpp overlap')
    refused(folder, [only | {'edits': [{'file': 'main.hpp', 'old': 'a', 'new': 'b'}]}], 'kernels/cpu/add.cpp, which registers the kernel, does not include main.hpp')
    refused(folder, '[{id: one', 'falsify/mutation/faults/add.yaml: ')
    refused(folder, 'one: 1', 'a list of faults was expected')
    refused(folder, [{**RIGHT, 'kernel': 'add/tpu/right'}], place + 'add/tpu/right is no kernel of add on one of cpu, cuda, vulkan')
    refused(folder, [RIGHT], 'lists of faults lie in falsify/mutation/faults', group='others')
    refused(folder, [{**RIGHT, 'scored': 'yes'}], place + 'scored is true, or left out')
    refused(folder, [{**RIGHT, 'only': 'cuda'}], place + 'only is cuda or cuda-host, of a fault of cuda')
    refused(folder, [{**RIGHT, 'old': 'int'}], place + 'the old text occurs ')

    # Space between tokens may differ, but not that between words.
    spaced = [{**RIGHT, 'id': name, 'old': old} for name, old in (('no_space', 'a+b;'), ('one_line', 'const  int sum = a + b ;'), ('call', 'return doubled( sum )'))]
    if (run := apply(folder, spaced)) != (0, ''):
        sys.exit(f'texts that differ by space alone: {run}')
    refused(folder, [{**RIGHT, 'old': 'intsum'}], place + 'the old text does not occur')
    refused(folder, [{**RIGHT, 'old': '} } ;'}], place + 'the old text occurs 2 times in kernels/cpu/add.cpp')

    # Two faults of one file, one of which edits a header and two places; both copies are linked into one program.
    both = [RIGHT, only | {'id': 'two', 'edits': [{'file': 'kernels/cpu/shared.hpp', 'old': '2 * x', 'new': '3 * x'}, {'old': 'a + b;', 'new': 'a * b;'}]}]
    code, said = apply(folder, both)
    made = build(folder, os.path.join(folder, 'runner.cpp'), '-o', os.path.join(folder, 'program'))
    if code != 0 or made.returncode != 0:
        sys.exit(f'two faults were not applied: {said}{made.stderr}')
    printed = subprocess.run([os.path.join(folder, 'program')], capture_output=True, text=True).stdout
    if printed != 'mutant/cpu/add/one -2\nmutant/cpu/add/two 36\n':
        sys.exit(f'other kernels than the two faulty ones, or other values: {printed}')

    # Errors inside an edit, and after an edit with more lines than it replaces.
    for new, text, line in (('a - absent;', KERNEL, 5), ('a\n - \n b;', KERNEL.replace('doubled(sum)', 'absent(sum)'), 7)):
        with open(os.path.join(folder, 'kernels/cpu/add.cpp'), 'w') as f:
            f.write(text)
        apply(folder, [{**RIGHT, 'new': new}])
        said = build(folder, '-fsyntax-only').stderr
        if not re.search(rf'^kernels/cpu/add\.cpp:{line}:\d+: error: .*absent', said, re.M):
            sys.exit(f'an error in line {line} of kernels/cpu/add.cpp was expected: {said}')
