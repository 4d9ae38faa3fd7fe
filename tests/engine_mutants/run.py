#!/usr/bin/env python3
"""Runs the tests against mutants of the engine, and reports which test catches which mutant.

    run.py BUILD                        every mutant
    run.py BUILD --sample N [--seed S]  all by hand, and N automatic ones, drawn uniformly
        --file GLOB    only mutants of these sources
        --by-hand      only mutants of by_hand.py
        --name NAME    only this mutant, with the output of its tests
        --recorded     only mutants caught by a test program according to result.json, by that test: traces nothing
        --at-most T    of these, mutants caught within T seconds of processor time
        --again FILE   mutants not caught according to FILE, written by --json; the results of the others come from FILE
        --seconds T    start no further mutant after T seconds; prints the number of skipped mutants
        --jobs N       number of parallel mutants (default: the number of processors)
        --json FILE    write the result

A mutant is caught when a test, or a script that runs the program (scripts.txt of CMakeLists.txt), fails, crashes or
takes ten times its usual time. A trace, once per build, finds the tests that reach a mutated site. Exit code 1: a mutant
by hand survived. Automatic mutants equivalent to the engine survive as well: read the list. 2: wrong use, or a test
fails on the unmutated engine.
"""
import argparse
import concurrent.futures
import fnmatch
import glob
import hashlib
import json
import os
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', '..', 'falsify', 'mutation', 'source'))
import rewrite as schemata  # noqa: E402

VARIANTS = 16
SUITE = 1.0      # seconds: the cases of a suite that takes no longer are traced together
FAST = 0.5       # seconds: tests up to this long run in one process
EARLY = ('before the first test', 'before the first test (crashes)')
ALONGSIDE = ' (beside others)'
NEVER_ENDS = ' (never ends)'
TRACED = 60      # processor seconds for tracing a test; a longer test may reach more than the trace shows
ENDED_FOR_TIME = (-signal.SIGXCPU, 128 + signal.SIGXCPU)  # also as reported by a shell
# Tests of timing on a busy machine, such as one that runs mutants, and tests that take minutes in a rewritten engine.
NOT_RUN = ['WorkerTest.ABusyMachineMakesNoCallHang', 'Shards.TogetherFindWhatTheWholeFinds', 'Journal.ResumedAfterAnyLineGivesTheSameReport']
AREAS = [('comparator', r'comparator|error_map'), ('generators', r'draw|inputs|random\.hpp|case\.cpp'), ('canaries', r'arena|sandbox|child_|worker|pool'),
         ('certificates', r'src/contract/'), ('bounds', r'src/core/'), ('references', r'reference/|gradient'),
         ('verdicts and reports', r'')]


def area_of(path):
    return next(name for name, pattern in AREAS if re.search(pattern, path))


def fail(text):
    sys.stderr.write(f'run.py: {text}\n')
    sys.exit(2)


class Sandbox:
    """Runs a command whose mutant may signal, fork or write anything, in a process namespace if available."""

    def __init__(self):
        self.prefix = ['unshare', '--pid', '--fork', '--mount-proc', '--kill-child']
        try:
            works = subprocess.run([*self.prefix, 'true'], capture_output=True).returncode == 0
        except FileNotFoundError:
            works = False
        if not works:
            self.prefix = []

    def run(self, command, environment, cpu, wall):
        """Returns (exit status, or None if ended by the time limit, output, processor seconds)."""
        # Set only the soft limit of core files: a test checks that kernels leave none, whatever the limit.
        limits = ['prlimit', f'--cpu={int(cpu) + 1}:{int(cpu) + 2}', '--core=0:', f'--fsize={1 << 28}']
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as out:
            # A shell becomes the namespace's first process, to which special rules of signals apply.
            child = subprocess.Popen([*limits, *self.prefix, 'sh', '-c', '"$@"; exit $?', 'sh', *command], stdout=out, stderr=subprocess.STDOUT,
                                     stdin=subprocess.DEVNULL, start_new_session=True, cwd=folder,
                                     env={**os.environ, **environment, 'TMPDIR': folder})
            late = threading.Timer(wall, os.killpg, (child.pid, signal.SIGKILL))
            late.start()
            _, status, usage = os.wait4(child.pid, 0)
            ended = late.is_alive()
            late.cancel()
            child.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            return child.returncode if ended else None, out.read().decode(errors='replace'), usage.ru_utime + usage.ru_stime


class Test:
    """A test case or a suite of quick ones in a test program, or a script that runs the program `assay`."""

    def __init__(self, program, path, case, seconds, script=None):
        self.program, self.path, self.case, self.seconds, self.script = program, path, case, seconds, script
        self.reached, self.cut = set(), False

    def fast(self):
        return self.script is None and self.seconds <= FAST

    def may_reach(self, mutant):
        """Returns true if the trace was cut off and it reached other sites of the same source."""
        site = mutant['site']
        return self.cut and (site < schemata.SITES or any(n // VARIANTS // schemata.SITES == site // schemata.SITES for n in self.reached))


def built(build, folder):
    """Returns the test programs of the current mutants: programs select a mutant by number, and older ones number them
    differently."""
    now = os.path.getmtime(os.path.join(build, 'engine_mutants', 'rewritten.stamp'))
    return sorted(path for path in glob.glob(os.path.join(build, 'engine_mutants', folder, 'mutated_*')) if os.path.getmtime(path) >= now)


def scripts(build):
    """Returns the scripts by name: the command, with the rewritten program in it."""
    with open(os.path.join(build, 'engine_mutants', 'scripts.txt')) as f:
        return {name: command for name, *command in (line.rstrip('\n').split('|') for line in f)}


def command_of(tests):
    """Returns the command that runs these tests in one process, or this script."""
    if tests[0].script is not None:
        return tests[0].script
    return [tests[0].path, '--gtest_fail_fast', '--gtest_color=no', '--gtest_filter=' + ':'.join(t.case for t in tests)]


def binaries(build):
    """Returns the test programs by name, with rewritten references if built."""
    found = {}
    for folder in ('bin', 'references'):
        for path in built(build, folder):
            found[os.path.basename(path).removeprefix('mutated_')] = path
    if not found:
        fail(f'{build} holds no tests of mutants: build the target engine_mutants')
    return found


def first_failure(output):
    started, failed = re.findall(r'\[ RUN +\] (\S+)', output), re.findall(r'\[  FAILED  \] (\S+?)(?:,| \()', output)
    return failed[0] if failed else started[-1] if started else 'before the first test'


def catcher(recorded):
    """Returns (program, test case) that caught a recorded mutant."""
    return re.sub(r' \((never ends|crashes)\)$', '', recorded['by']).split(': ', 1)


def alone_catches(recorded):
    """Returns true if the record names a test of a test program that catches this mutant alone."""
    return recorded is not None and recorded['outcome'] == 'caught' and not recorded['by'].endswith((*EARLY, ALONGSIDE)) and catcher(recorded)[0] != 'assay'


class Runner:
    def __init__(self, build, pool):
        self.pool, self.sandbox, self.build, self.programs, self.tests = pool, Sandbox(), build, binaries(build), []
        self.scripts, self.took = scripts(build), {}

    def try_tests(self, tests, number, times=10, idle=60):
        """Runs tests of one program in one process; returns (caught, catcher, output, processor seconds). The limits
        are `times` the usual time, and `idle` seconds more of waiting."""
        seconds = times * sum(t.seconds for t in tests)
        status, output, used = self.sandbox.run(command_of(tests), {'ASSAY_ENGINE_MUTANT': str(number)}, seconds + 3, seconds + idle)
        if status == 0:
            return False, '', output, used
        if tests[0].script is not None:  # may depend on the machine's load: only a second failure counts
            again, output, more = self.sandbox.run(tests[0].script, {'ASSAY_ENGINE_MUTANT': str(number)}, seconds + 3, seconds + idle)
            if again == 0:
                return False, '', output, used + more
            return True, f'{tests[0].program}: {tests[0].case}' + (NEVER_ENDS if status is None else ''), output, used
        if '[ RUN ' not in output and self.sandbox.run([tests[0].path, '--gtest_list_tests'], {'ASSAY_ENGINE_MUTANT': '0'}, 60, 600)[0] != 0:
            fail(f'{tests[0].path} does not start: {output[-500:]}')
        how = '' if status == 1 else NEVER_ENDS if status is None or status in ENDED_FOR_TIME else ' (crashes)'
        return True, f'{tests[0].program}: {first_failure(output)}{how}', output, used

    def time_script(self, case):
        """Checks that the script passes on the unmutated engine; returns its time."""
        begin = time.monotonic()
        status, output, _ = self.sandbox.run(self.scripts[case], {'ASSAY_ENGINE_MUTANT': '0'}, 3600, 3600)
        if status != 0:
            fail(f'{case} fails on the engine as it is:\n{output[-3000:]}')
        return time.monotonic() - begin

    def list_tests(self, program, path):
        """Checks that the program passes on the unmutated engine; returns its test cases and their times."""
        sys.stderr.write(f'running {program} without a mutant\n')
        if program == 'assay':
            return [Test(program, path, case, self.time_script(case), command) for case, command in self.scripts.items()]
        status, output, _ = self.sandbox.run([path, '--gtest_color=no', '--gtest_filter=-' + ':'.join(NOT_RUN)], {'ASSAY_ENGINE_MUTANT': '0'}, 3600, 3600)
        if status != 0:
            fail(f'{path} fails on the engine as it is:\n{output[-3000:]}')
        suites, tests = {}, []
        for case, ms in re.findall(r'\[       OK \] (\S+) \((\d+) ms\)', output):
            suites.setdefault(case.split('.')[0], []).append((case, int(ms) / 1000))
        for suite, cases in suites.items():
            together = sum(seconds for _, seconds in cases)
            if together <= SUITE and not any(t.startswith(suite + '.') for t in NOT_RUN):
                tests.append(Test(program, path, suite + '.*', together))
            else:
                tests += [Test(program, path, case, seconds) for case, seconds in cases]
        return tests

    def expect_passing(self, results):
        """Checks that the recorded catchers of these mutants pass without a mutant; records their times."""
        cases = {}
        for r in results:
            program, case = catcher(r)
            cases.setdefault(program, set()).add(case)

        def run(program, some):
            if program not in self.programs:
                fail(f'result.json names tests of {program}, which is not built')
            return self.sandbox.run([self.programs[program], '--gtest_color=no', '--gtest_filter=' + ':'.join(sorted(some))],
                                    {'ASSAY_ENGINE_MUTANT': '0'}, 600, 1800)

        for (program, some), (status, output, _) in zip(cases.items(), self.pool.map(run, *zip(*cases.items()))):
            ran = re.search(r'\[==========\] (\d+) tests? from .* ran', output)
            if status != 0 or ran is None or int(ran[1]) != len(some):
                fail(f'{program} fails on the engine as it is, or lacks a test that result.json names:\n{output[-3000:]}')
            self.took.update({(program, case): int(ms) / 1000 for case, ms in re.findall(r'\[       OK \] (\S+) \((\d+) ms\)', output)})

    def trace_one(self, t, places):
        with tempfile.NamedTemporaryFile() as file:
            file.truncate(4 * places)
            status, output, used = self.sandbox.run(command_of([t]), {'ASSAY_ENGINE_REACHED': file.name}, TRACED, 60 * TRACED)
            t.cut = status != 0
            if t.cut and used < TRACED and status not in ENDED_FOR_TIME:
                fail(f'{t.program} ends in {t.case} while it is traced:\n{output[-3000:]}')
            t.reached = {site * VARIANTS + v for site, (bits,) in enumerate(struct.iter_unpack('<I', file.read())) if bits for v in range(VARIANTS) if bits >> v & 1}

    def trace(self, places):
        """Traces the mutants that each test reaches; the trace is valid until its program changes."""
        fresh = {}
        for program, path in self.programs.items():
            with open(path, 'rb') as f:
                stamp = hashlib.file_digest(f, 'sha256').hexdigest()
            cache = self.cache(program)
            if os.path.exists(cache):
                with open(cache) as f:
                    known = json.load(f)
                if known['stamp'] == stamp:
                    for entry in known['tests']:
                        self.tests.append(Test(program, path, *entry['test'], self.scripts[entry['test'][0]] if program == 'assay' else None))
                        self.tests[-1].reached, self.tests[-1].cut = set(entry['reached']), entry['cut']
                    continue
            fresh[program] = stamp
        listed = dict(zip(fresh, self.pool.map(lambda program: self.list_tests(program, self.programs[program]), fresh)))
        traced = [t for tests in listed.values() for t in tests]
        sys.stderr.write(f'tracing {len(traced)} tests\n')
        list(self.pool.map(lambda t: self.trace_one(t, places), sorted(traced, key=lambda t: -t.seconds)))
        for program, tests in listed.items():
            cache = self.cache(program)
            with open(cache + '.new', 'w') as f:
                json.dump({'stamp': fresh[program],
                           'tests': [{'test': [t.case, t.seconds], 'cut': t.cut, 'reached': sorted(t.reached)} for t in tests]}, f)
            os.replace(cache + '.new', cache)
        self.tests += traced

    def cache(self, program):
        return os.path.join(self.build, 'engine_mutants', f'traced_{program}.json')

    def judge(self, mutant, known=None):
        number = mutant['site'] * VARIANTS + mutant['variant']
        result = {**{k: mutant[k] for k in ('name', 'file', 'line', 'family', 'says')}, 'outcome': 'survived', 'by': '', 'seconds': 0.0}

        def attempt(tests, **limits):
            caught, by, output, used = self.try_tests(tests, number, **limits)
            result['seconds'] += used
            if caught:
                result.update(outcome='caught', by=by, output=output)
            return caught

        if known is not None and known['outcome'] == 'caught':
            program, case = catcher(known)
            # A mutant that ran into ten times the limit never ends: wait less for it than for an unknown one.
            attempt([Test(program, self.programs[program], case, self.took[program, case])], **({'times': 3, 'idle': 3} if known['by'].endswith(NEVER_ENDS) else {'idle': 10}))
            return result
        reaching = [t for t in self.tests if number in t.reached]
        unsure = [t for t in self.tests if number not in t.reached and t.may_reach(mutant)]
        if not reaching:
            if any(mutant['site'] * VARIANTS in t.reached for t in self.tests):
                result['outcome'] = 'no variant'
                return result
            result['outcome'] = 'unreached'
        reaching.sort(key=lambda t: t.seconds)
        for program in sorted({t.program for t in reaching if t.fast()}):
            together = [t for t in reaching if t.program == program and t.fast()]
            if attempt(together):
                # A test may depend on the state left by an earlier one: the named test must catch the mutant alone.
                beside = dict(result)
                alone = Test(program, self.programs[program], catcher(result)[1], FAST)
                if len(together) == 1 or result['by'].endswith(EARLY) or any(attempt([t]) for t in [alone, *together]):
                    return result
                return {**beside, 'by': beside['by'] + ALONGSIDE}
        for t in [t for t in reaching if not t.fast()] + sorted(unsure, key=lambda t: t.seconds):
            if attempt([t]):
                return result
        return result


def load_mutants(build):
    folder = os.path.join(build, 'engine_mutants')
    try:
        with open(os.path.join(folder, 'mutants.json')) as f:
            files = json.load(f)
    except OSError as e:
        fail(f'{e}: build the target engine_mutants')
    left_out = set()
    for path in glob.glob(os.path.join(build, 'tests', 'engine_mutants', '**', '*.left_out.json'), recursive=True):
        with open(path) as f:
            left_out.update(json.load(f))
    mutants = [{**m, 'file': f['file']} for f in files for m in f['mutants']]
    # Including headers: all rewritten files are compiled with these numbers.
    places = max(m['site'] for m in mutants) + 1
    if not built(build, 'references'):  # headers are compiled into the tests of references
        mutants = [m for m in mutants if not m['file'].endswith('.hpp')]
        print('mutants of headers are left out: build the target engine_mutants_references to have them')
    return [m for m in mutants if m['site'] not in left_out], sum(m['site'] in left_out for m in mutants), places


def select(mutants, options):
    if options.name:
        return [m for m in mutants if m['name'] == options.name] or fail(f'no mutant is named {options.name}')
    if options.file:
        mutants = [m for m in mutants if any(fnmatch.fnmatch(m['file'], g) for g in options.file)]
    by_hand = [m for m in mutants if m['family'] == 'by hand']
    automatic = [] if options.by_hand else [m for m in mutants if m['family'] != 'by hand']
    # Draw by name, so that other files do not change the sample; mutants drawn first are tried first.
    if options.sample is not None:
        automatic = sorted(automatic, key=lambda m: random.Random(f'{options.seed} {m["name"]} {m["variant"]}').random())[:options.sample]
    return by_hand + automatic


def totals(results):
    rows = {}
    for r in results:
        row = rows.setdefault((area_of(r['file']), 'by hand' if r['family'] == 'by hand' else 'automatic'), {})
        row[r['outcome']] = row.get(r['outcome'], 0) + 1
    return rows


def print_totals(results):
    print(f'\n{"area":22} {"":10} {"mutants":>8} {"caught":>8} {"survived":>9} {"unreached":>10}')
    for (area, kind), row in sorted(totals(results).items()):
        print(f'{area:22} {kind:10} {sum(row.values()) - row.get("no variant", 0):8} {row.get("caught", 0):8} {row.get("survived", 0):9} {row.get("unreached", 0):10}')
    for kind in ('by hand', 'automatic'):
        some = [r for r in results if (r['family'] == 'by hand') == (kind == 'by hand') and r['outcome'] != 'no variant']
        if some:
            caught = sum(r['outcome'] == 'caught' for r in some)
            print(f'{kind}: {caught} of {len(some)} caught, {100 * caught / len(some):.1f}%')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build')
    parser.add_argument('--sample', type=int)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--file', action='append')
    parser.add_argument('--by-hand', action='store_true')
    parser.add_argument('--name')
    parser.add_argument('--recorded', action='store_true')
    parser.add_argument('--at-most', type=float)
    parser.add_argument('--again', metavar='FILE')
    parser.add_argument('--seconds', type=float)
    parser.add_argument('--jobs', type=int, default=os.cpu_count())
    parser.add_argument('--json')
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    mutants, left_out, places = load_mutants(build)
    chosen = select(mutants, options)
    recorded = {}
    if options.recorded:
        with open(os.path.join(HERE, 'result.json')) as f:
            recorded = {(r['file'], r['name']): r for r in json.load(f)['mutants']}
        chosen = [m for m in chosen if alone_catches(recorded.get((m['file'], m['name'])))]
        if options.at_most:
            chosen = [m for m in chosen if recorded[m['file'], m['name']]['seconds'] <= options.at_most]
    known = []
    if options.again:
        with open(options.again) as f:
            before = json.load(f)
        options.seed, options.sample = before['seed'], before['sample']
        known = [r for r in before['mutants'] if r['outcome'] in ('caught', 'no variant')]
        open_ones = {(r['file'], r['name']) for r in before['mutants']} - {(r['file'], r['name']) for r in known}
        chosen = [m for m in mutants if (m['file'], m['name']) in open_ones]
    pool = concurrent.futures.ThreadPoolExecutor(options.jobs)
    runner = Runner(build, pool)
    if options.recorded:
        runner.expect_passing([recorded[m['file'], m['name']] for m in chosen])
    else:
        runner.trace(places)
    begin, results = time.monotonic(), []

    def judged(mutant):
        if options.seconds and time.monotonic() - begin > options.seconds:
            return None
        return runner.judge(mutant, recorded.get((mutant['file'], mutant['name'])))

    for done in concurrent.futures.as_completed([pool.submit(judged, m) for m in chosen]):
        r = done.result()
        if r is None:
            continue
        output = r.pop('output', '')
        results.append(r)
        print(f'{r["outcome"].upper() if r["outcome"] != "caught" else "caught":9} {r["name"]:20} {r["file"]}:{r["line"]}: {r["says"][:110]}  '
              f'[{r["by"]}]', flush=True)
        if options.name:
            print(output)
    untried = len(chosen) - len(results)
    results += known
    print_totals(results)
    if left_out:
        print(f'{left_out} mutants do not compile and are not counted')
    if untried:
        print(f'{untried} of {len(chosen)} were not tried: {options.seconds} s had passed')
    if options.json:
        for r in results:
            r['seconds'] = round(r['seconds'], 2)
        with open(options.json, 'w') as f:
            json.dump({'seed': options.seed, 'sample': options.sample, 'mutants_in_all': len(mutants), 'untried': untried,
                       'mutants': sorted(results, key=lambda r: (r['file'], r['line'], r['name']))}, f, indent=1)
            f.write('\n')
    sys.exit(1 if any(r['outcome'] in ('survived', 'unreached') and r['family'] == 'by hand' for r in results) else 0)


if __name__ == '__main__':
    main()
