#!/usr/bin/env python3
"""Applies faults, which are data (falsify/mutation/faults/<back end>/<op>.yaml), to copies of kernel sources in the build tree.

    faults.py ROOT OUT FAULTS.yaml...    writes OUT/<back end>/<op>.cpp for each list, and the copies that it includes

A list holds entries of these keys:
    id      lower-case letters, digits and underscores; the mutant is mutant/<back end>/<op>/<id>
    kernel  the id of the right kernel
    class   one of CLASSES
    says    what is wrong, in one sentence
    old     text of the file that registers the kernel, and
    new     what stands there instead; or, where there are several places or other files,
    edits   a list of {file, old, new}; without a file, the one that registers the kernel
`old` must occur exactly once; spaces and line breaks match any others. What includes an edited file is copied, too. A copy lives in
a namespace of its own inside assay, in which KernelRegistration registers the faulty kernel and drops the file's others. Compilers'
messages name the file and line of the source. Exit code 1, and one sentence with the place, for a list that is wrong.
"""
import os
import re
import sys

try:
    import yaml
except ImportError:
    sys.exit('faults.py: Python has no yaml: install python3-yaml')

CLASSES = {
    'tile_edge': 'a tile or block that is not full, or the border between two of them',
    'joint_shape': 'right unless several dims are large, so that a second tile meets another second tile',
    'narrow_counter': 'an index, a count or an offset in too few bits',
    'rare_branch': 'a special case of a parameter, a shape or a value',
    'mask': 'which elements count: causal masks, lengths, padding',
    'head_map': 'which head, group or sequence belongs to which',
    'vector_tail': 'what is left behind the last whole vector',
    'alignment': 'an address that is no multiple of a vector',
    'stride': 'a leading dimension, a layout or an order of axes',
    'stale_memory': 'memory holds what an earlier row, tile or call left',
    'race': 'a barrier or an atomic operation that is missing',
    'formula': 'a term, a sign or a factor of the equation',
    'constant': 'a constant that is another or has too few digits',
    'precision': 'a value rounded to too few bits, or once too often',
    'accumulation': 'a sum in an order or a form that loses accuracy',
    'overflow': 'an intermediate result leaves the range that inputs and outputs have',
    'nonfinite': 'NaN, Inf, zeros of either sign, subnormals',
}
BACKENDS = {'cpu': 'kernels/cpu', 'cuda-host': 'kernels/cuda'}
NAMESPACE = re.compile(r'^namespace assay(?P<inner>(?:::\w+)*) \{', re.M)
INCLUDE = re.compile(r'^(#include ")(kernels/[^"]+)(")', re.M)
KEYS = {'id', 'kernel', 'class', 'says', 'old', 'new', 'edits'}


class Wrong(Exception):
    pass


def read(root, name):
    with open(os.path.join(root, name), encoding='utf-8') as f:
        return f.read()


def write_if_changed(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if not os.path.exists(path) or open(path, encoding='utf-8').read() != text:
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)


class Sources:
    def __init__(self, root):
        self.root, self.texts = root, {}

    def text(self, name):
        if name not in self.texts:
            self.texts[name] = read(self.root, name)
        return self.texts[name]

    def registering(self, kernel):
        """The file in which the id of the kernel stands."""
        op, backend, rest = kernel.split('/', 2)
        written = f'"{kernel}"' if backend == 'cpu' else f'"{op}/" ASSAY_CUDA_NAME "/{rest}"'
        found = []
        for folder, _, files in os.walk(os.path.join(self.root, BACKENDS[backend])):
            names = [os.path.relpath(os.path.join(folder, f), self.root) for f in files if f.endswith(('.cpp', '.cu'))]
            found += [name for name in names if written in self.text(name)]
        return found

    def included(self, name):
        """Files of kernels/ that this one includes: {file: those that it includes itself}."""
        graph, open_files = {}, [name]
        while open_files:
            at = open_files.pop()
            if at not in graph:
                graph[at] = [m[2] for m in INCLUDE.finditer(self.text(at)) if m[2] != at]
                open_files += graph[at]
        return graph


def check(fault, place, sources, seen, backend, op):
    unknown = sorted(set(fault) - KEYS)
    if unknown:
        raise Wrong(f'{place}: {unknown[0]} is no key of a fault: it has {", ".join(sorted(KEYS))}')
    for key in ('id', 'kernel', 'class', 'says'):
        if not isinstance(fault.get(key), str) or not fault[key]:
            raise Wrong(f'{place}: {key} is missing, or no text')
    if not re.fullmatch(r'[a-z][a-z0-9_]*', fault['id']):
        raise Wrong(f'{place}: an id has lower-case letters, digits and underscores')
    if fault['id'] in seen:
        raise Wrong(f'{place}: this id stands twice in the list: rename one')
    if fault['class'] not in CLASSES:
        raise Wrong(f'{place}: there is no class {fault["class"]}: it is one of {", ".join(CLASSES)}')
    if not fault['kernel'].startswith(f'{op}/{backend}/'):
        raise Wrong(f'{place}: {fault["kernel"]} is no kernel of {op} on {backend}: move the fault to the list of its operation')
    files = sources.registering(fault['kernel'])
    if len(files) != 1:
        raise Wrong(f'{place}: no file in {BACKENDS[backend]} registers {fault["kernel"]}: `assay list` prints the kernels')
    edits = fault['edits'] if 'edits' in fault else [{key: fault.get(key) for key in ('old', 'new')}]
    if ('edits' in fault) == ('old' in fault or 'new' in fault) or not edits:
        raise Wrong(f'{place}: a fault has old and new, or edits')
    for edit in edits:
        if not isinstance(edit, dict) or not isinstance(edit.get('old'), str) or not isinstance(edit.get('new'), str) or not edit['old'].strip():
            raise Wrong(f'{place}: an edit has old and new, both text')
    return files[0], edits


def edited(text, name, edits, place):
    """The text with these edits; #line after each keeps the numbers of lines."""
    spans = []
    for edit in edits:
        pattern = r'\s+'.join(re.escape(word) for word in edit['old'].split())
        found = list(re.finditer(pattern, text))
        if len(found) != 1:
            times = 'does not occur' if not found else f'occurs {len(found)} times'
            raise Wrong(f'{place}: the old text {times} in {name}, and must occur once: "{" ".join(edit["old"].split())[:80]}"')
        spans.append((found[0].start(), found[0].end(), edit['new'].rstrip('\n')))
    spans.sort()
    for (_, end, _), (begin, _, _) in zip(spans, spans[1:]):
        if begin < end:
            raise Wrong(f'{place}: two edits of {name} overlap')
    for begin, end, new in reversed(spans):
        line_end = text.find('\n', end)
        line = f'\n#line {text.count(chr(10), 0, line_end) + 2} "{name}"'
        text = text[:begin] + new + text[end:line_end] + line + text[line_end:]
    return text


def apply(place, sources, out, root_file, edits, namespace, edited_by_list):
    """Writes the copies; the path of the one that registers the kernel. Headers that another fault of the list edits are copied
    too: beside their originals, calls would be ambiguous."""
    by_file = {}
    for edit in edits:
        by_file.setdefault(edit.get('file', root_file), []).append(edit)
    graph = sources.included(root_file)
    for name in by_file:
        if name not in graph:
            raise Wrong(f'{place}: {root_file}, which registers the kernel, does not include {name}')
    copied, grown = {root_file, *by_file, *edited_by_list.intersection(graph)}, True
    while grown:
        users = {name for name, uses in graph.items() if copied.intersection(uses)}
        grown = not users <= copied
        copied |= users
    folder = os.path.join(out, namespace)
    for name in copied:
        text = edited(sources.text(name), name, by_file.get(name, []), place)
        text = INCLUDE.sub(lambda m: f'{m[1]}{os.path.join(folder, m[2]) if m[2] in copied else m[2]}{m[3]}', text)
        text = re.sub(r'\bASSAY_KERNELS_\w+_INL\b', rf'\g<0>_{namespace}', text)  # toggles of headers for each instruction set
        text = re.sub(r'^#(undef|define) HWY_TARGET_INCLUDE\b', r'// \g<0>', text, flags=re.M)
        text = NAMESPACE.sub(lambda m: opened(m['inner'], namespace), text)
        if not NAMESPACE.search(sources.text(name)):
            raise Wrong(f'{place}: no line of {name} opens a namespace of assay, so that its copy cannot have one of its own')
        write_if_changed(os.path.join(folder, name), f'#line 1 "{name}"\n{text}')
    return os.path.join(folder, root_file)


def opened(inner, namespace):
    """The namespace of a copy, with the names of the originals of its own SIMD target in sight."""
    text = f'namespace assay::{namespace}{inner} {{'
    if inner.endswith('::HWY_NAMESPACE'):
        shared = '::assay::cpu::HWY_NAMESPACE'
        text = f'namespace {shared[2:]} {{}} {text} using namespace {shared};'
    return text


def quoted(text):
    return '"' + ' '.join(text.split()).replace('\\', '\\\\').replace('"', '\\"') + '"'


def process(path, sources, root, out):
    name = os.path.relpath(path, root)
    backend, op = os.path.basename(os.path.dirname(path)), os.path.splitext(os.path.basename(path))[0]
    if backend not in BACKENDS:
        raise Wrong(f'{name}: lists of faults lie in folders named after a back end: {", ".join(BACKENDS)}')
    try:
        faults = yaml.safe_load(read(root, name))
    except yaml.YAMLError as e:
        raise Wrong(f'{name}: {" ".join(str(e).split())}') from None
    if not isinstance(faults, list) or not all(isinstance(f, dict) for f in faults):
        raise Wrong(f'{name}: a list of faults was expected')
    shared = 'cpu' if backend == 'cpu' else 'ASSAY_CUDA_NAMESPACE'
    parts, simd, seen = [], False, set()
    edited_by_list = {e['file'] for f in faults for e in f.get('edits') or [] if isinstance(e, dict) and isinstance(e.get('file'), str)}
    for fault in faults:
        place = f'{name}: {fault.get("id", "a fault without an id")}'
        root_file, edits = check(fault, place, sources, seen, backend, op)
        seen.add(fault['id'])
        namespace = f'fault_{op}_{fault["id"]}'
        copy = apply(place, sources, os.path.join(out, backend), root_file, edits, namespace, edited_by_list)
        is_simd = 'foreach_target.h' in sources.text(root_file)  # and is included once for each instruction set
        simd, include = simd or is_simd, f'#include "{copy}"\n'
        words = ', '.join(quoted(t) for t in (fault['kernel'], f'mutant/{backend}/{op}/{fault["id"]}', fault['says'], fault['class'], name))
        parts.append(f'''#ifndef ASSAY_{namespace}
#define ASSAY_{namespace}
namespace assay::{shared} {{}}
namespace assay::{namespace} {{
namespace {shared} {{
using namespace ::assay::{shared};
}}
struct KernelRegistration {{
  explicit KernelRegistration(const Kernel& copy) {{ mutation::register_fault(copy, {{{words}}}); }}
}};
}}  // namespace assay::{namespace}
{"" if is_simd else include}#endif
{include if is_simd else ""}''')
    target = os.path.join(out, backend, f'{op}.cpp')
    head = '#include "falsify/mutation/fault.hpp"\n'
    if backend != 'cpu':
        head += '#include "runtime/cuda/launch.hpp"\n'
    if simd:
        head += f'#undef HWY_TARGET_INCLUDE\n#define HWY_TARGET_INCLUDE "{target}"\n#include "hwy/foreach_target.h"\n'
    write_if_changed(target, f'// Made of {name} by faults.py.\n{head}' + ''.join(parts))
    return len(faults)


def main():
    root, out = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    sources = Sources(root)
    try:
        for path in sys.argv[3:]:
            process(os.path.abspath(path), sources, root, out)
    except Wrong as e:
        sys.exit(str(e))


if __name__ == '__main__':
    main()
