#!/usr/bin/env python3
"""Compiles a rewritten kernel source (rewrite.py), without the places that do not compile.

    compile.py ROOT OUT COMMAND...      a compiler launcher: CMake appends the compiler's command

Some places cannot be mutated: a literal that must be constant, an operator of a type that has no other. Places that
the compiler rejects keep the source's text, in copies of the files for this object alone, and the rest is compiled
again. OBJECT.left_out.json and, for reports, OUT/left_out/LIBRARY/ name the rejected places.
"""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from rewrite import File, write_if_changed  # noqa: E402

ROUNDS = 15


def rejected_lines(messages, trees):
    """Returns {file: lines} of the rewritten sources with errors: the error's own line, or the line that required it."""
    lines, context = {}, []
    place = re.compile(r'^(?:In file included )?(?:\s*from )?(?P<path>[^\s:]+):(?P<line>\d+)(?::\d+)?:?\s*(?P<rest>.*)$')
    for message in messages.split('\n'):
        m = place.match(message)
        if not m:
            continue
        path = os.path.abspath(m['path'])
        inside = next((os.path.relpath(path, t) for t in trees if path.startswith(t + os.sep)), None)
        if 'error:' in m['rest'] or 'fatal error' in m['rest']:
            here = [(inside, int(m['line']))] if inside else context
            for name, line in here:
                lines.setdefault(name, set()).add(line)
            context = []
        elif 'required' in m['rest'] and inside and not context:
            context = [(inside, int(m['line']))]
        elif 'In ' in m['rest'] or 'In file' in message:
            context = []
    return lines


def main():
    root, out, command = sys.argv[1], os.path.abspath(sys.argv[2]), sys.argv[3:]
    if '-o' not in command or '-c' not in command:
        sys.exit(subprocess.call(command))
    target = command[command.index('-o') + 1]
    source = command[command.index('-c') + 1]
    private = os.path.abspath(target + '.sources')
    with open(os.path.join(out, 'mutants.json')) as f:
        bases = {entry['file']: entry['base'] for entry in json.load(f)}
    left_out, widened = {}, {}
    for _ in range(ROUNDS):
        tried = list(command)
        if left_out:
            at = next(i for i, a in enumerate(tried) if a == f'-I{out}')
            tried[at:at] = [f'-I{private}', f'-I{private}/src']
            name = os.path.relpath(os.path.abspath(source), out)
            if name in left_out:
                tried[tried.index('-c') + 1] = os.path.join(private, name)
            elif name.startswith(os.pardir):  # CMake's unity source
                with open(source) as f:
                    together = f.read()
                for path in left_out:
                    together = together.replace(f'"{os.path.join(out, path)}"', f'"{os.path.join(private, path)}"')
                tried[tried.index('-c') + 1] = os.path.join(private, os.path.basename(source))
                write_if_changed(os.path.join(private, os.path.basename(source)), together)
        result = subprocess.run(tried, stderr=subprocess.PIPE, text=True)
        if result.returncode == 0:
            sys.stderr.write(result.stderr)
            if left_out and '-MF' in command:  # the depfile names only the copies: add their originals
                with open(command[command.index('-MF') + 1], 'a') as f:
                    f.write(f'\n{target}: {" ".join([source, *(os.path.join(out, path) for path in sorted(left_out))])}\n')
            sites = json.dumps(sorted(s for sites in left_out.values() for s in sites))
            write_if_changed(target + '.left_out.json', sites)
            library = re.search(r'assay_schemata_([\w-]+)\.dir', target)
            if library:
                write_if_changed(os.path.join(out, 'left_out', library[1], os.path.basename(source) + '.json'), sites)
            return
        grown = False
        for path, lines in rejected_lines(result.stderr, (out, private)).items():
            if path not in bases:
                continue
            with open(os.path.join(root, path)) as f:
                text = f.read()
            sites = File(path, text, bases[path]).sites
            for line in lines:
                # An error may be reported lines after its cause: if the same line fails again, reject the lines before it too.
                span = widened[path, line] = widened.get((path, line), -1) + 1
                for n, site in enumerate(sites):
                    if line - 4 * span <= site['line'] <= line + span and bases[path] + n not in left_out.setdefault(path, set()):
                        left_out[path].add(bases[path] + n)
                        grown = True
            excluded = {s - bases[path] for s in left_out.get(path, ())}
            write_if_changed(os.path.join(private, path), File(path, text, bases[path], excluded).rewritten())
        if not grown and not widened:
            break
    sys.stderr.write(result.stderr)
    sys.exit(1)


if __name__ == '__main__':
    main()
