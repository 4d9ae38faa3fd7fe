#!/usr/bin/env python3
"""Applies faults, which are data, to copies of kernel sources in the build tree.

    faults.py ROOT OUT [--backend cpu|cuda|vulkan]... LIST.yaml...
    faults.py --names ROOT OUT LIST.yaml...    only prints <set>/<back end>/<op> of each file to be written, `alone` behind those that cannot
                                               share an object with others, and `alignment` behind those with a fault of that class

LIST is falsify/mutation/faults/<op>.yaml; it may hold those of <op>_backward, too. Its faults of each back end, or of those named, are written to OUT/<set>/<back end>/<op>.cpp, with
the copies that it includes: the set is `faults`, all of which must be killed, or `scored`, which shows how many faults a campaign finds that
nothing was tuned to. Faults of CUDA give OUT/.../<op>.cu, too; those of Vulkan <op>.cmake, which compiles their shaders. A list holds
entries of these keys:
    id      lower-case letters, digits and underscores; the mutant is mutant/<back end>/<op>/<id>
    kernel  the id of the right kernel; faults of CUDA are for cuda and cuda-host, and say cuda
    scored  true for the set `scored`
    only    cuda or cuda-host: the fault has no effect on the other one
    class   one of CLASSES
    says    the fault, in one sentence
    old     text of the kernel, and
    new     its replacement; or, for several places,
    edits   a list of {old, new}, with `file` if several files contain `old`
`old` must occur exactly once in the file that registers the kernel and in the files of kernels/ that it includes,
including shaders. Tokens are compared: spaces and line breaks between them may differ. Files that include an edited
file are copied, too. A copy has a namespace of its own inside assay, in which KernelRegistration registers the faulty
kernel; the file's other registrations are omitted. Compilers' messages name the file and line of the source. Exit
code 1, and one sentence with the place, for an invalid list.
"""
import argparse
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
    'adversarial': 'right only where tests look',
}
BACKENDS = {'cpu': 'kernels/cpu', 'cuda': 'kernels/cuda', 'vulkan': 'kernels/vulkan'}
NAMESPACE = re.compile(r'^namespace assay(?P<inner>(?:::\w+)*) \{', re.M)
INCLUDE = re.compile(r'^(#include ")(kernels/[^"]+)(")', re.M)
SHADER = re.compile(r'^#include "shaders/(\w+)\.hpp"$', re.M)  # made of a .comp by kernels/vulkan/shaders.cmake
GLSL = re.compile(r'^#include "(\w+\.glsl)"', re.M)
VARIANTS = re.compile(r'^#pragma shaders (.*)$', re.M)
REGISTRATION = re.compile(r'^const KernelRegistration \w+(\[\] = )?\{', re.M)
TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|\w+|[^\w\s]')
GAP = r'(?:\s|\\\n)'  # lines of a macro end in a backslash
KEYS = {'id', 'kernel', 'scored', 'only', 'class', 'says', 'old', 'new', 'edits'}


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
        self.root, self.texts, self.variants = root, {}, {}
        for name in sorted(f for f in os.listdir(os.path.join(root, 'kernels/vulkan')) if f.endswith('.comp')) if os.path.isdir(os.path.join(root, 'kernels/vulkan')) else ():
            for line in VARIANTS.findall(self.text('kernels/vulkan/' + name)):
                for variant in line.split(';'):
                    shader, *defines = variant.split()
                    self.variants[shader] = ('kernels/vulkan/' + name, defines)

    def text(self, name):
        if name not in self.texts:
            self.texts[name] = read(self.root, name)
        return self.texts[name]

    def registering(self, kernel):
        """Returns the files that contain the id of the kernel."""
        backend, written, found = kernel.split('/')[1], as_written(kernel), []
        for folder, _, files in os.walk(os.path.join(self.root, BACKENDS[backend])):
            names = [os.path.relpath(os.path.join(folder, f), self.root) for f in files if f.endswith(('.cpp', '.cu'))]
            found += [name for name in names if written in self.text(name)]
        return found

    def included(self, name):
        """Returns the graph of included files of kernels/ and shaders: {file or shader: its direct includes}."""
        graph, open_files = {}, [name]
        while open_files:
            at = open_files.pop()
            if at in graph:
                continue
            if at in self.variants:
                graph[at] = [self.variants[at][0]]
            elif at.endswith(('.comp', '.glsl')):
                graph[at] = [os.path.dirname(at) + '/' + m for m in GLSL.findall(self.text(at))]
            else:
                graph[at] = [m[2] for m in INCLUDE.finditer(self.text(at)) if m[2] != at] + [m for m in SHADER.findall(self.text(at)) if m in self.variants]
            open_files += graph[at]
        return graph


def as_written(kernel):
    """Returns the id as the source of the kernel writes it."""
    op, backend, rest = kernel.split('/', 2)
    return f'"{op}/" ASSAY_CUDA_NAME "/{rest}"' if backend == 'cuda' else f'"{kernel}"'


def closing(text, begin):
    """Returns the position after the bracket that closes the one at `begin`, ignoring strings."""
    depth, at = 0, begin
    while at < len(text):
        if text[at] == '"':
            at = re.compile(r'"(?:[^"\\\n]|\\.)*"').match(text, at).end()
            continue
        depth += (text[at] in '({[') - (text[at] in ')}]')
        at += 1
        if depth == 0:
            return at
    raise ValueError


def parts_of(text, begin, end):
    """Returns the spans between commas outside of brackets."""
    spans, first, at = [], begin, begin
    while at < end:
        if text[at] in '({[':
            at = closing(text, at)
        elif text[at] == '"':
            at = re.compile(r'"(?:[^"\\\n]|\\.)*"').match(text, at).end()
        else:
            if text[at] == ',':
                spans.append((first, at + 1))
                first = at + 1
            at += 1
    return spans + [(first, end)]


def pruned(text, written):
    """Removes the registrations of other kernels, which need not be compiled. Keeps line numbers."""
    cuts, kept = [], 0
    for found in REGISTRATION.finditer(text):
        end = closing(text, found.end() - 1)
        if not found[1]:
            if written in text[found.start():end]:
                kept += 1
            else:
                cuts.append((found.start(), text.index(';', end) + 1))
            continue
        spans = [(begin, stop) for begin, stop in parts_of(text, found.end(), end - 1) if text[begin:stop].strip()]
        own = [span for span in spans if written in text[span[0]:span[1]]]
        kept += len(own)
        cuts += [span for span in spans if span not in own] if own else [(found.start(), text.index(';', end) + 1)]
    if kept != 1:
        return text  # the id is elsewhere, for example in a function that registers
    for begin, end in sorted(cuts, reverse=True):
        text = text[:begin] + '\n' * text.count('\n', begin, end) + text[end:]
    return text


def check(fault, place, sources, seen, op):
    unknown = sorted(set(fault) - KEYS)
    if unknown:
        raise Wrong(f'{place}: {unknown[0]} is no key of a fault: it has {", ".join(sorted(KEYS))}')
    for key in ('id', 'kernel', 'class', 'says'):
        if not isinstance(fault.get(key), str) or not fault[key]:
            raise Wrong(f'{place}: {key} is missing, or no text')
    if not re.fullmatch(r'[a-z][a-z0-9_]*', fault['id']):
        raise Wrong(f'{place}: an id has lower-case letters, digits and underscores')
    of, backend = (fault['kernel'].split('/') + [''])[:2]
    if (of, backend, fault['id']) in seen:
        raise Wrong(f'{place}: this id stands twice among the faults of {of} on {backend}: rename one')
    seen.add((of, backend, fault['id']))
    if fault['class'] not in CLASSES:
        raise Wrong(f'{place}: there is no class {fault["class"]}: it is one of {", ".join(CLASSES)}')
    if not re.fullmatch(rf'{op}(_backward)?/({"|".join(BACKENDS)})/\w+', fault['kernel']):
        raise Wrong(f'{place}: {fault["kernel"]} is no kernel of {op} on one of {", ".join(BACKENDS)}: move the fault to the list of its operation')
    files = sources.registering(fault['kernel'])
    if len(files) != 1:
        raise Wrong(f'{place}: no file in {BACKENDS[backend]} registers {fault["kernel"]}: `assay list` prints the kernels')
    if 'only' in fault and (backend != 'cuda' or fault['only'] not in ('cuda', 'cuda-host')):
        raise Wrong(f'{place}: only is cuda or cuda-host, of a fault of cuda')
    if fault.get('scored', True) is not True:
        raise Wrong(f'{place}: scored is true, or left out')
    edits = fault['edits'] if 'edits' in fault else [{key: fault.get(key) for key in ('old', 'new')}]
    if ('edits' in fault) == ('old' in fault or 'new' in fault) or not edits:
        raise Wrong(f'{place}: a fault has old and new, or edits')
    for edit in edits:
        if not isinstance(edit, dict) or not isinstance(edit.get('old'), str) or not isinstance(edit.get('new'), str) or not edit['old'].strip():
            raise Wrong(f'{place}: an edit has old and new, both text')
        if stray := sorted(set(edit) - {'file', 'old', 'new'}):
            raise Wrong(f'{place}: {stray[0]} is no key of an edit: quote texts that hold a comma or a colon')
    return of, backend, 'scored' if 'scored' in fault else 'faults', files[0], edits


def pattern_of(text):
    """Matches the tokens of the text, whatever space is between them."""
    tokens, pattern = TOKEN.findall(text), ''
    for before, token in zip(['', *tokens], tokens):
        words = re.search(r'\w$', before) and re.match(r'\w', token)
        pattern += (GAP + ('+' if words else '*') if before else '') + re.escape(token)
    return re.compile(pattern)


def located(edits, sources, graph, root_file, place):
    """Returns the edits by file."""
    by_file = {}
    for edit in edits:
        if 'file' in edit and edit['file'] not in graph:
            raise Wrong(f'{place}: {root_file}, which registers the kernel, does not include {edit["file"]}')
        files = [edit['file']] if 'file' in edit else [name for name in graph if name not in sources.variants]
        found = [name for name in files for _ in pattern_of(edit['old']).finditer(sources.text(name))]
        if len(found) != 1:
            times = 'does not occur' if not found else f'occurs {len(found)} times'
            where = edit.get('file') or (' and '.join(sorted(set(found))) if found else f'{root_file} and what it includes of kernels/')
            raise Wrong(f'{place}: the old text {times} in {where}, and must occur once: "{" ".join(edit["old"].split())[:80]}"')
        by_file.setdefault(found[0], []).append(edit)
    return by_file


def edited(text, name, edits, place):
    """Applies the edits; a #line after each keeps line numbers."""
    spans = []
    for edit in edits:
        found = pattern_of(edit['old']).search(text)
        spans.append((found.start(), found.end(), edit['new'].rstrip('\n')))
    spans.sort()
    for (_, end, _), (begin, _, _) in zip(spans, spans[1:]):
        if begin < end:
            raise Wrong(f'{place}: two edits of {name} overlap')
    for begin, end, new in reversed(spans):
        line_end = text.find('\n', end)
        while text[line_end - 1] == '\\':  # within a macro
            line_end = text.find('\n', line_end + 1)
        line = f'\n#line {text.count(chr(10), 0, line_end) + 2} "{name}"'
        text = text[:begin] + new + text[end:line_end] + line + text[line_end:]
    return text


def apply(place, sources, out, kernel, root_file, edits, namespace, edited_by_list):
    """Writes the copies. Returns the path of the copy that registers the kernel, and the shaders to compile:
    {name: (file, definitions)}. Headers that another fault of the list edits are copied too: with copy and original
    visible, calls would be ambiguous."""
    graph = sources.included(root_file)
    by_file = located(edits, sources, graph, root_file, place)
    headers = {name for name in edited_by_list.intersection(graph) if not name.endswith(('.comp', '.glsl'))}
    copied, grown = {root_file, *by_file, *headers}, True
    while grown:
        users = {name for name, uses in graph.items() if copied.intersection(uses)}
        grown = not users <= copied
        copied |= users
    folder, shaders = os.path.join(out, namespace), {}

    def own_shader(match):
        name = match[1]
        if name not in copied:
            return match[0]
        file, defines = sources.variants[name]
        shaders[f'{namespace}_{name}'] = (os.path.join(folder, file), defines)
        return match[0].replace(name, f'{namespace}_{name}')

    for name in copied - set(sources.variants):
        text = edited(sources.text(name), name, by_file.get(name, []), place)
        if name.endswith(('.comp', '.glsl')):
            write_if_changed(os.path.join(folder, name), VARIANTS.sub('//', text) if name.endswith('.comp') else text)
            continue
        if name == root_file:
            text = pruned(text, as_written(kernel))
            text = SHADER.sub(lambda m: m[0] if f'shaders::{m[1]}' in text else '//', text)
        text = SHADER.sub(own_shader, text)
        text = re.sub(r'\bshaders::(\w+)', lambda m: own_shader(m) if m[1] in sources.variants else m[0], text)
        text = INCLUDE.sub(lambda m: f'{m[1]}{os.path.join(folder, m[2]) if m[2] in copied else m[2]}{m[3]}', text)
        text = re.sub(r'\bASSAY_KERNELS_\w+_INL\b', rf'\g<0>_{namespace}', text)  # include guards of per-target headers
        text = re.sub(r'^#(undef|define) HWY_TARGET_INCLUDE\b', r'// \g<0>', text, flags=re.M)
        text = NAMESPACE.sub(lambda m: opened(m['inner'], namespace), text)
        if not NAMESPACE.search(sources.text(name)):
            raise Wrong(f'{place}: no line of {name} opens a namespace of assay, so that its copy cannot have one of its own')
        write_if_changed(os.path.join(folder, name), f'#line 1 "{name}"\n{text}')
    return os.path.join(folder, root_file), shaders


def opened(inner, namespace):
    """Opens the namespace of a copy, with the names of the originals of its SIMD target visible."""
    text = f'namespace assay::{namespace}{inner} {{'
    if inner.endswith('::HWY_NAMESPACE'):
        shared = '::assay::cpu::HWY_NAMESPACE'
        text = f'namespace {shared[2:]} {{}} {text} using namespace {shared};'
    return text


def quoted(text):
    return '"' + ' '.join(text.split()).replace('\\', '\\\\').replace('"', '\\"') + '"'


def process(path, backends, names, sources, root, out):
    """One list."""
    name = os.path.relpath(path, root)
    op = os.path.splitext(os.path.basename(name))[0]
    if os.path.dirname(name) != 'falsify/mutation/faults':
        raise Wrong(f'{name}: lists of faults lie in falsify/mutation/faults')
    try:
        faults = yaml.safe_load(read(root, name))
    except yaml.YAMLError as e:
        raise Wrong(f'{name}: {" ".join(str(e).split())}') from None
    if not isinstance(faults, list) or not all(isinstance(f, dict) for f in faults):
        raise Wrong(f'{name}: a list of faults was expected')
    seen, groups = set(), {}
    for fault in faults:
        place = f'{name}: {fault.get("id", "a fault without an id")}'
        of, backend, group, root_file, edits = check(fault, place, sources, seen, op)
        if backend in backends:
            groups.setdefault((of, group, backend), []).append((fault, place, root_file, edits))
    for (of, group, backend), checked in groups.items():
        if names:
            # Highway kernels are compiled once for each instruction set; copies of headers would meet those of other lists.
            alone = any('/highway' in fault['kernel'] or any('file' in edit for edit in edits) for fault, _, _, edits in checked)
            print(f'{group}/{backend}/{of}', *['alone'] * alone, *['alignment'] * any(fault['class'] == 'alignment' for fault, *_ in checked))
        else:
            write(name, of, group, backend, checked, sources, out)


def write(name, op, group, backend, checked, sources, out):
    """The files of one set and back end; `checked`: its faults, each with its place, the file that registers its kernel, and its edits."""
    shared = 'ASSAY_CUDA_NAMESPACE' if backend == 'cuda' else backend
    parts, simd, shaders = [], False, {}
    target = os.path.join(out, group, backend, f'{op}.cpp')
    edited_by_list = set()
    for _, place, root_file, edits in checked:
        edited_by_list |= set(located(edits, sources, sources.included(root_file), root_file, place))
    for fault, place, root_file, edits in checked:
        namespace = f'{group}_{backend}_{op}_{fault["id"]}'
        copy, own_shaders = apply(place, sources, os.path.dirname(target), fault['kernel'], root_file, edits, namespace, edited_by_list)
        shaders |= own_shaders
        is_simd = 'foreach_target.h' in sources.text(root_file)  # included once for each instruction set
        simd, include = simd or is_simd, f'#include "{copy}"\n'
        mutant = f'"mutant/" ASSAY_CUDA_NAME "/{op}/{fault["id"]}"' if backend == 'cuda' else quoted(f'mutant/{backend}/{op}/{fault["id"]}')
        words = ', '.join((as_written(fault['kernel']), mutant, quoted(fault['says']), quoted(fault['class']), str(group == 'scored').lower()))
        part = f'''#ifndef ASSAY_{namespace}
#define ASSAY_{namespace}
#line 1 "{name}"
namespace assay::{shared} {{}}
namespace assay::{namespace} {{
namespace {shared} {{
using namespace ::assay::{shared};
}}
namespace {{  // cuda and cuda-host have lists in common
struct KernelRegistration {{
  explicit KernelRegistration(const Kernel& copy) {{ mutation::register_fault(copy, {{{words}}}); }}
}};
}}  // namespace
}}  // namespace assay::{namespace}
{"" if is_simd else include}#endif
{include if is_simd else ""}'''
        if 'only' in fault:
            part = f'#if {"" if fault["only"] == "cuda" else "!"}defined(__CUDACC__)\n{part}#endif\n'
        parts.append(part)
    head = '#include "falsify/mutation/fault.hpp"\n'
    if backend == 'cuda':
        head += '#include "runtime/cuda/launch.hpp"\n'
        write_if_changed(target[:-3] + 'cu', f'#include "{target}"\n')
    if backend == 'vulkan':
        lines = [f'assay_add_shader(${{faults}} {file} {shader} {" ".join(defines)})\n' for shader, (file, defines) in sorted(shaders.items())]
        write_if_changed(target[:-3] + 'cmake', f'# Made of {name} by faults.py.\n' + ''.join(lines))
    if simd:
        head += f'#undef HWY_TARGET_INCLUDE\n#define HWY_TARGET_INCLUDE "{target}"\n#include "hwy/foreach_target.h"\n'
    write_if_changed(target, f'// Made of {name} by faults.py.\n{head}' + ''.join(parts))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--names', action='store_true')
    parser.add_argument('root')
    parser.add_argument('out')
    parser.add_argument('--backend', action='append', choices=BACKENDS)
    parser.add_argument('lists', nargs='*')
    args = parser.parse_args()
    root, out = os.path.abspath(args.root), os.path.abspath(args.out)
    sources = Sources(root)
    try:
        for path in args.lists:
            process(os.path.abspath(path), args.backend or list(BACKENDS), args.names, sources, root, out)
    except Wrong as e:
        sys.exit(str(e))


if __name__ == '__main__':
    main()
