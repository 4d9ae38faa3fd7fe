#!/usr/bin/env python3
"""Rewrites and compiles a small source, runs every mutant of it, and compares the results with the description of each
mutant. Also checks that every accepted mutant of rewritten kernels exists."""
import json
import os
import subprocess
import sys
import tempfile

top, compiler, manifest = sys.argv[1:4]
schemata = os.path.join(top, 'falsify', 'mutation', 'source')

SOURCE = '''#include <algorithm>
#include <cmath>
#define UNTOUCHED(x) ((x) + 1)
namespace toy {
constexpr int kTile = 4 + 4;
static_assert(kTile == 8);
struct Kernel { const char* id; int priority = 3 - 1; };
Kernel row() { return {.id = "row", .priority = 1 + 1}; }
template <int n> int scaled(int a) { return a * n; }
int sum(const int* x, int n) {
  int s = 0;
  for (int i = 0; i < n; ++i) s += x[i];
  return s;
}
float ratio(float a, float b) { return (a + b) / 2.0F; }
int pick(bool c, int a, int b) {
  if (c && a < b) return a - b;
  return scaled<2 + 1>(b);
}
int most(int a, int b) { return std::max({a, b, 3}); }
float shape(float v) {
  float cut[4];
  cut[0] = std::max(v, 1.0F);
  return -cut[0];
}
int at(int i, int j) {
  const auto m = [](int p, int q) { return 10 * p + q; };
  return m(i, j);
}
}  // namespace toy
'''
MAIN = '''#include <cstdio>
#include <cstdlib>
#include "falsify/mutation/source/mutate.hpp"
namespace assay_mutate {
State state;
int chosen(std::uint32_t site, std::uint32_t applicable) {
  if (state.mask == 0) std::printf("%u %u\\n", site, applicable);
  return state.mask == 0 ? 0 : static_cast<int>(state.variant);
}
void never_ends() { std::printf("never ends"), std::fflush(nullptr), std::_Exit(0); }
}
namespace toy {
int sum(const int*, int); float ratio(float, float); int pick(bool, int, int); int most(int, int); float shape(float); int at(int, int);
}
int main(int, char** a) {
  auto& s = assay_mutate::state;
  s.site = std::atoi(a[1]), s.variant = std::atoi(a[2]), s.turns = 1000;
  if (s.site == 1) s.mask = 0, s.turns = 1 << 20;
  const int x[] = {5, 7, 100};
  std::printf("%d %.9g %d %d %.9g %d", toy::sum(x, 2), toy::ratio(1.1F, 3.7F), toy::pick(true, 2, 5), toy::most(1, 2), toy::shape(2.5F), toy::at(1, 2));
}
'''
# Results by description of the mutant; the other mutants must only differ from the source.
RIGHT = '12 2.4000001 -3 3 -2.5 12'
EXPECTED = {'+ -> -: float ratio': '12 -1.29999995 -3 3 -2.5 12', '< -> <=: for (int i': '112 2.4000001 -3 3 -2.5 12', '+= -> =: for': '7 2.4000001 -3 3 -2.5 12',
            '++ left out: for': 'never ends', 'assignment to s left out': '0 2.4000001 -3 3 -2.5 12', 'a < b': None, '< negated: if (c': '12 2.4000001 15 3 -2.5 12',
            'c negated: if': '12 2.4000001 15 3 -2.5 12', 'operands of - exchanged': '12 2.4000001 3 3 -2.5 12', 'std::max -> std::min: cut': '12 2.4000001 -3 3 -1 12',
            '- left out: return': '12 2.4000001 -3 3 2.5 12', 'i and j exchanged': '12 2.4000001 -3 3 -2.5 21', 'result of / cut to bfloat16': '12 2.390625 -3 3 -2.5 12',
            '2.0F a tenth more': '12 2.18181825 -3 3 -2.5 12'}
failures = []


def check(condition, what):
    if not condition:
        failures.append(what)


with tempfile.TemporaryDirectory() as folder:
    for name, text in (('toy.cpp', SOURCE), ('main.cpp', MAIN)):
        with open(os.path.join(folder, name), 'w') as f:
            f.write(text)
    out = os.path.join(folder, 'out')
    subprocess.run([sys.executable, f'{schemata}/rewrite.py', folder, out, 'toy.cpp'], check=True)
    with open(f'{out}/mutants.json') as f:
        mutants = json.load(f)[0]['mutants']
    lines = SOURCE.split('\n')
    for m in mutants:
        line = lines[m['line'] - 1]
        check(not line.startswith(('#', 'constexpr', 'static_assert', 'struct', 'Kernel')), f'is no code of a kernel: {line}')
    check(len({m['hash'] for m in mutants}) == len(mutants), 'hashes name mutants')
    obj = f'{folder}/toy.o'
    base = [compiler, '-std=c++20', '-w', f'-I{out}', f'-I{top}', '-include', f'{schemata}/mutate.hpp']
    subprocess.run([sys.executable, f'{schemata}/compile.py', folder, out, *base, '-MD', '-MT', obj, '-MF', obj + '.d',
                    '-o', obj, '-c', f'{out}/toy.cpp'], check=True)
    with open(obj + '.d') as f:
        check(f'{out}/toy.cpp' in f.read().split(), 'the object depends on the rewritten source, not only on its copy without that place')
    with open(obj + '.left_out.json') as f:
        left_out = set(json.load(f))
    check({lines[m['line'] - 1] for m in mutants if m['site'] in left_out} == {next(x for x in lines if 'most' in x)},
          'the one place that does not compile is left out, and no other')
    subprocess.run([*base, f'{folder}/main.cpp', obj, '-o', f'{folder}/main'], check=True)

    def run(site, variant):
        return subprocess.run([f'{folder}/main', str(site), str(variant)], stdout=subprocess.PIPE, text=True, check=True).stdout

    check(run(0, 0) == RIGHT, f'no variant: {run(0, 0)}')
    recorded = run(1, 0).split('\n')
    check(recorded[-1] == RIGHT, 'while places are noted, the source runs')
    applicable = dict(map(int, line.split()) for line in recorded[:-1])
    seen = set()
    for m in mutants:
        if m['site'] in left_out or not applicable.get(m['site'], 0) >> m['variant'] & 1:
            continue
        got = run(m['site'], m['variant'])
        for key, value in EXPECTED.items():
            if key in m['says']:
                seen.add(key)
                check(value is None or got == value, f"{m['says']}: {got}, not {value}")
    check(seen == set(EXPECTED), f'mutants that should be there: {set(EXPECTED) - seen}')

with open(manifest) as f:
    there = {m['hash'] for source in json.load(f) for m in source['mutants']}
with open(os.path.join(top, 'falsify', 'mutation', 'study', 'accepted.json')) as f:
    accepted = json.loads(''.join(line for line in f if not line.startswith('//')))
for entry in accepted:
    check('/vulkan/' in entry['kernel'] or entry['hash'] in there, f"accepted.json: no source has the mutant {entry['hash']} any more")

print('\n'.join(f'FAILED: {f}' for f in failures) or f'{len(mutants)} mutants: as described')
sys.exit(1 if failures else 0)
