#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges what the tasks of guest.sh left on a kernel, and makes docs/kernels.md of the results.

  matrix.py judge DIR          prints the result of each check as JSON; DIR has the files of the guest
  matrix.py same DIR [NAME...] judges DIR and compares the checks, or those that are named, with the result that is kept for this
                               kernel; prints what differs and exits with 1
  matrix.py page               prints the page of all results in tests/kernels/results

A result is {"works": true}, or {"works": false} with "refused" (mxbpf's message, after which it ends with code 4) or "fails" (what
is wrong). A unit program adds "passed" and "skipped", the reasons of tests that were skipped. A check is absent if its task did
not run.
"""
import glob
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
RESULTS = os.path.join(HERE, 'results')
LIMIT = 1000000  # BPF_COMPLEXITY_LIMIT_INSNS of the kernel


def text(*path):
    with open(os.path.join(*path), errors='replace') as f:
        return f.read()


def last(*path):
    """The only document of a file, or the last one of a file with one in each line."""
    its = text(*path).strip()
    try:
        return json.loads(its)
    except ValueError:
        return json.loads(its.splitlines()[-1])


class Session:
    """What a task with mxbpf and the toy left."""

    def __init__(self, directory, task):
        self.dir = os.path.join(directory, task)
        self.status = int(text(self.dir, 'status') or -1)
        self.errors = [re.sub('^mxbpf: error: ', '', line) for line in text(self.dir, 'mxbpf.err').splitlines() if ' error: ' in line]

    def report(self):
        return last(self.dir, 'mxbpf.json')

    def toy(self):
        return last(self.dir, 'toy')

    def says(self):
        """How the session's end is to be told, or None if it ended well."""
        if self.status == 4 and self.errors:
            return {'works': False, 'refused': self.errors[0]}
        return None if self.status == 0 else {'works': False, 'fails': '; '.join([f'exit code {self.status}'] + self.errors)}


def counts(report):
    """The counts of each table in the toy's form, with the number of lost calls, which the toy says are 0."""
    seen = {}
    for name, rows in report['tables'].items():
        memory = {key: rows[0][key] for key in ('allocs', 'frees', 'alloc_bytes', 'free_bytes')} if 'count' not in rows[0] else None
        seen[name] = memory or {row['name']: row['count'] for row in rows}
    loss = report['loss']
    seen['lost'] = sum(loss[key] for key in ('dropped', 'truncated', 'unreadable', 'unmatched', 'attempted')) - loss['stored']
    return seen


def counted(s):
    return counts(s.report()) == {**s.toy(), 'lost': 0}


def switched(s):
    return sum(call['futex_ns'] + call['other_ns'] for call in s.report()['off_cpu']['calls']) > 0 and counted(s)


def counters(s):
    rows = [row['counters'] for table in s.report()['tables'].values() for row in table if row.get('counters')]
    return sum(row['calls'] for row in rows) > 100 and all(row['task-clock'] > 0 for row in rows)


def samples(s):
    its = s.report()['samples']
    return its['hz'] == 997 and its['count'] > 10


def memory(s):
    its, storage = s.report()['memory'], s.toy()['Device Storage']
    return (all(sum(holder[key] for holder in its['holders']) == storage[key] for key in ('allocs', 'frees')) and
            all(holder['category'] for holder in its['holders']) and
            all(d['missed_frees'] == 0 and d['untracked_allocs'] == 0 for d in its['devices']))


def teams(s):
    rows = {row['name']: row for row in s.report()['teams']['operators']}
    return all(rows['aten::' + name]['regions'] == its['regions'] and rows['aten::' + name]['cpu_ns'] > 0.9 * its['cpu_ns']
               for name, its in s.toy().items())


def throttled(s):
    """The window contains all of the throttling, except what the kernel adds at the end of a period."""
    before, after = ({key: int(value) for key, value in (line.split() for line in text(s.dir, name).splitlines())}
                     for name in ('cpu.stat.0', 'cpu.stat.1'))
    report = s.report()
    gauges = {(g['group'], g['name']): g for g in report['machine']['gauges'] if g.get('group')}

    def outer(name):
        return gauges['/outer', name]

    def inner(name):
        return gauges['/outer/inner', name]
    return (0 < before['throttled_usec'] <= outer('throttled')['difference'] / 1000 <= after['throttled_usec'] and
            before['nr_throttled'] <= outer('periods_throttled')['difference'] <= after['nr_throttled'] and
            outer('cpu_max')['last'] == 300 and outer('memory_max')['last'] is None and
            inner('group_cpu')['difference'] > 0 and inner('group_memory')['last'] > 0 and inner('cpu_max')['last'] is None and
            any(re.search(r"^throttled [0-9]+ %.* of the window by the cgroup's cpu\.max \(0\.30 CPUs\): /outer$", line)
                for line in report['machine']['says']) and switched(s))


def now(directory):
    status = int(text(directory, 'now', 'status'))
    errors = [re.sub('^mxbpf: error: ', '', line) for line in text(directory, 'now', 'err').splitlines()]
    if status:
        return {'works': False, 'refused' if status == 4 else 'fails': '; '.join(errors) or f'exit code {status}'}
    threads = json.loads(text(directory, 'now', 'now.json'))['threads']
    ok = (len(threads) == 5 and last(directory, 'now', 'toy')['operator']['gated'] == 1 and
          any(t.get('lock_held_by') and any(f.get('call') == 'operator.start' for f in t['stack']) and
              any(f.get('function') == 'mxnet::engine::run_operators' for f in t['stack']) for t in threads))
    return {'works': ok} if ok else {'works': False, 'fails': 'stacks or locks are not those of the toy'}


def unit(directory, task):
    tap = text(directory, task + '.tap')
    plan = re.search(r'^1\.\.(\d+)', tap, re.M)
    bad = re.findall(r'^not ok \d+ - (.*)', tap, re.M)
    good = re.findall(r'^ok \d+ - (.*)', tap, re.M)
    skipped = sorted({line.split(' # SKIP ')[1] for line in good if ' # SKIP ' in line})
    passed = sum(' # SKIP ' not in line for line in good)
    if bad or not plan or len(good) < int(plan[1]):
        return {'works': False, 'fails': '; '.join(bad) or 'ended early'}
    return {'works': passed > 0, 'passed': passed, 'skipped': skipped}


def quiet(directory):
    """Whether the kernel has warned. Its time, CPU and process differ each time."""
    complaints = [line for path in sorted(glob.glob(directory + '/*.complaints')) for line in text(path).splitlines()]
    said = [re.sub(r'^\[ *[0-9.]+\] *|CPU: \d+ |PID: \d+ ', '', line).split('+0x')[0] for line in complaints]
    return {'works': False, 'fails': '; '.join(sorted(set(said)))} if said else {'works': True}


# name -> (title, task, function of the session or None for a unit program)
CHECKS = {
    'best': ('every call is counted, by the backend that mxbpf chooses', 'best', counted),
    'uprobe_multi': ('every call is counted by `--backend uprobe_multi`', 'uprobe_multi', counted),
    'perf': ('every call is counted by `--backend perf`', 'perf', counted),
    'counters': ('`--counters`: perf events are read in each call', 'options', counters),
    'memory': ('`--memory`: every allocation and its release is attributed', 'options', memory),
    'sched': ('`--sched`: threads are seen off the CPU, and the counts stay exact', 'options', switched),
    'sample': ('`--sample`: samples are taken in the clock\'s interrupt', 'options', samples),
    'omp': ('`--omp`: OpenMP teams have their regions and CPU time', 'omp', teams),
    'throttled': ('the throttling of cgroup v2 is that of the kernel\'s account', 'throttled', throttled),
    'now': ('`mxbpf now`: a hanging job is shown with complete stacks and locks', 'now', None),
    'programs': ('every BPF program loads with every option', 'test_programs_kernel', None),
    'attach': ('starts and ends are paired; probes come and go without harm', 'test_attach_kernel', None),
    'stack': ('stacks are walked', 'test_stack_kernel', None),
    'account': ('time on the CPU, waiting for it and blocked add up and equal /proc', 'test_account_kernel', None),
    'sessions': ('two sessions at once count their own target', 'test_sessions_kernel', None),
    'watch': ('exec, fork, libraries and exit are reported by the ring buffer', 'test_watch_kernel', None),
    'inject': ('an agent enters processes without harm, or the reason is given', 'test_inject_kernel', None),
    'quiet': ('the kernel logs no warning', 'offers', None),
}


def judge_session(directory, task, holds):
    s = Session(directory, task)
    said = s.says()
    if said:
        return said
    try:
        ok = holds(s)
    except (KeyError, IndexError, TypeError, ValueError) as e:
        return {'works': False, 'fails': f'the report lacks {e}'}
    return {'works': True} if ok else {'works': False, 'fails': 'the report is not what the toy did'}


def judge_check(directory, name):
    task, holds = CHECKS[name][1:]
    if name == 'quiet':
        return quiet(directory)
    if not os.path.exists(os.path.join(directory, task + '.complaints')):
        return None
    if task.startswith('test_'):
        return unit(directory, task)
    return now(directory) if task == 'now' else judge_session(directory, task, holds)


def offers(directory):
    """The features that `mxbpf check` lists: [works, required, detail] by name."""
    rows = re.findall(r'^  (ok|no|NO)   *(\S.*?)  +(\S.*)$', text(directory, 'offers'), re.M)
    return {name: {'works': ok == 'ok', **({} if ok == 'ok' else {'says': detail, 'required': ok == 'NO'})} for ok, name, detail in rows}


def verified(directory):
    """The number of instructions that the verifier looked at, by program."""
    path = os.path.join(directory, 'test_programs_kernel.tap')
    return {name: int(n) for name, n in re.findall(r'^# verified (\S+) (\d+)', text(path), re.M)} if os.path.exists(path) else {}


def judge(directory):
    checks = {name: judge_check(directory, name) for name in CHECKS}
    return {
        'release': text(directory, 'release').strip(),
        'offers': offers(directory),
        'checks': {name: its for name, its in checks.items() if its},
        'verified': {name: n for name, n in sorted(verified(directory).items()) if n},
    }


def series_of(release):
    return '.'.join(release.split('.')[:2])


def plain(its):
    """A verdict without what may differ between two runs."""
    return {key: value for key, value in its.items() if key in ('works', 'refused', 'says', 'required')}


def agree(now_is, was):
    """A unit program may have more tests than it had, but none of them may be skipped that was not."""
    return now_is and was and plain(now_is) == plain(was) and now_is.get('passed', 0) >= was.get('passed', 0)


def same(directory, names):
    result = judge(directory)
    series = series_of(result['release'])
    with open(os.path.join(RESULTS, series + '.json')) as f:
        kept = json.load(f)
    wanted = names or list(result['checks'])
    ok = True
    for kind in ('offers', 'checks'):
        for name in (result[kind] if kind == 'offers' else wanted):
            now_is, was = result[kind].get(name), kept[kind].get(name)
            if not agree(now_is, was):
                print(f'{name} on Linux {series}:\n  now  {json.dumps(now_is)}\n  kept {json.dumps(was)}')
                ok = False
    return 0 if ok else 1


def results():
    found = []
    for path in glob.glob(RESULTS + '/*.json'):
        with open(path) as f:
            found.append(json.load(f))
    return sorted(found, key=lambda r: [int(n) for n in series_of(r['release']).split('.')])


class Notes:
    """Messages and reasons, numbered in the order of their first use."""

    def __init__(self):
        self.texts = []

    def add(self, note):
        if note not in self.texts:
            self.texts.append(note)
        return f'[{self.texts.index(note) + 1}]'

    def lines(self):
        return [f'{i + 1}. {note}' for i, note in enumerate(self.texts)]


def mark(its, notes):
    if not its:
        return '-'
    if its['works']:
        return ' '.join(['yes'] + [notes.add('Not tried by some of the tests: ' + why + '.') for why in its.get('skipped', [])])
    said = its.get('refused') or its.get('says')
    return f'no {notes.add("`` " + said + " ``")}' if said else f'**fails** {notes.add(its["fails"])}'


def table(first, columns, rows):
    lines = [f'| {first} | ' + ' | '.join(columns) + ' |', '|---' * (len(columns) + 1) + '|']
    return '\n'.join(lines + ['| ' + ' | '.join(row) + ' |' for row in rows])


def check_rows(found, notes):
    return [[title] + [mark(r['checks'].get(name), notes) for r in found] for name, (title, _, _) in CHECKS.items()]


def offer_rows(found, notes):
    names = []
    for r in found:
        names += [name for name in r['offers'] if name not in names]
    return [[name] + [mark(r['offers'].get(name), notes) for r in found] for name in names]


def verified_rows(found):
    most = {}
    for r in found:
        for name, n in r['verified'].items():
            most[name] = max(n, most.get(name, 0))

    def cell(r, name):
        return f'{r["verified"][name]:,}' if name in r['verified'] else '-'
    return [[f'`{name}`'] + [cell(r, name) for r in found] + [f'{100 * most[name] / LIMIT:.1f} %']
            for name in sorted(most, key=most.get, reverse=True)]


def page():
    found, notes = results(), Notes()
    columns = [series_of(r['release']) for r in found]
    whole = [r for r in found if r['verified']]
    checks, offered = check_rows(found, notes), offer_rows(found, notes)
    print(text(HERE, 'page.md').rstrip().format(
        tried=table('kernel', ['release', 'where it is from', 'last tried'],
                    [[series_of(r['release']), f'`{r["release"]}`', r['from'], r['tried']] for r in found]),
        checks=table('what', columns, checks),
        offers=table('feature', columns, offered),
        notes='\n'.join(notes.lines()),
        verified=table('program', [series_of(r['release']) for r in whole] + ['of the limit'], verified_rows(whole))))


def main():
    command, args = sys.argv[1] if len(sys.argv) > 1 else '', sys.argv[2:]
    if command == 'judge' and len(args) == 1:
        json.dump(judge(args[0]), sys.stdout, indent=1)
        print()
    elif command == 'same' and args:
        return same(args[0], args[1:])
    elif command == 'page' and not args:
        page()
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == '__main__':
    sys.exit(main())
