# SPDX-License-Identifier: Apache-2.0
"""The cells of the matrix: an option, the reference for its output, and the comparison. A check returns the largest allowed
difference as text ('' for none), or raises Wrong."""
import collections
import csv
import functools
import glob
import gzip
import json
import os
import re
import subprocess
import sys

import target as tg

sys.path.append(os.path.join(tg.HERE, '..', 'judge_torch'))

Cell = collections.namedtuple('Cell', 'option runtime reference check args needed')


class Wrong(Exception):
    pass


# Their number depends on whether the engine's worker or the program is first, so MXNet's own profiler differs from run to run.
RACES = {'WaitForVar', 'DeleteVariable', 'DeleteOperator', 'ResourceParallelRandomSetSeed', '[unnamed]'}
RACING = re.compile(r'(.*::)?(%s)' % '|'.join(map(re.escape, RACES)))
ROWS_VALIDATED = 400  # the schema check of more rows takes seconds
TABLES_OF_CALLS = ('operator', 'MXNET_C_API', 'Custom Operator', 'Data', 'KVStore')


def counts(report, pid=None, tables=TABLES_OF_CALLS):
    """Returns {table: {name: calls}} for one process, or for all."""
    result = {}
    for table in tables:
        rows = collections.Counter()
        for row in report['tables'].get(table) or []:
            if pid in (None, row.get('pid', pid)) and not RACING.fullmatch(row['name']):
                rows[row['name']] += row['count']
        if rows:
            result[table] = rows
    return result


def memory(report, pid=None):
    total = collections.Counter()
    for table in ('memory', 'Device Storage'):
        for row in report['tables'].get(table) or []:
            if pid in (None, row.get('pid', pid)):
                for key in ('allocs', 'frees', 'alloc_bytes', 'free_bytes'):
                    total[key] += row[key]
    return total


def difference(a, b, what):
    """Raises with the rows that differ most. `a` is the reference."""
    wrong = [(abs(a[row] - b[row]), row, a[row], b[row]) for row in set(a) | set(b) if a[row] != b[row]]
    if wrong:
        wrong.sort(reverse=True)
        raise Wrong('%s: %d of %d rows differ: %s' % (what, len(wrong), len(set(a) | set(b)), ', '.join(
            '%s %d, not %d' % (row, y, x) for _, row, x, y in wrong[:3])))


def same_counts(base, report, what='', pid=None, partly=False):
    a, b = counts(base, pid), counts(report, pid)
    for table in a:
        if table in b or not partly:
            difference(a[table], b.get(table, collections.Counter()), what + table)


class Context:
    """Data that several cells need, made once."""

    def __init__(self, name, target):
        self.name, self.target = name, target
        self.program = tg.PROGRAMS[name]
        self.digest = target.plain()
        self.base = None

    def path(self, name):
        return os.path.join(self.target.directory, name)

    def traced(self, args, out, **how):
        """Runs mxbpf around one run. With any option the program's result is unchanged, and mxbpf exits with 0."""
        status, said, digest = self.target.traced(args.split(), self.path(out), **how)
        if status:
            raise Wrong('mxbpf ended with %d: %s' % (status, said.strip().splitlines()[-1:]))
        if digest != self.digest:
            raise Wrong("the program's result is another")
        return said

    def json(self, args, out='out.json'):
        self.traced('--format json ' + args, out)
        return self.read(out, '--sample' in args)

    def read(self, out, sampled=False):
        with open(self.path(out)) as f:
            report = json.load(f)
        if sum(len(table or []) for table in report['tables'].values()) < ROWS_VALIDATED:
            validate(self.path(out))
        sound(report, sampled)
        return report

    @functools.cached_property
    def children(self):
        return self.name in ('dcgan', 'rpc_rnn')

    @functools.cached_property
    def builtin(self):
        out = 'builtin' + ('' if self.program.runtime == 'mxnet' else '.json')
        target = tg.Target(self.name, os.path.join(self.target.directory, 'builtin'))
        try:
            target.plain()  # as many runs as before mxbpf: torch.save() writes equal strings once if they are one object
            digest = target.builtin(out)
        finally:
            target.close()
        if digest != self.digest and not self.children:
            raise Wrong("the program's result is another under the runtime's own profiler")
        with open(os.path.join(target.directory, 'builtin.json')) as f:
            return json.load(f)

    def command(self, *args, **how):
        done = subprocess.run([tg.MXBPF, *args], cwd=self.target.directory, capture_output=True, text=True, timeout=tg.SECONDS, **how)
        if done.returncode:
            raise Wrong('mxbpf %s ended with %d: %s' % (' '.join(args), done.returncode, done.stderr.strip()[-200:]))
        return done


def validate(file):
    done = subprocess.run([tg.PYTHON['mxnet'], '-W', 'ignore', '-m', 'jsonschema', '-i', file,
                           os.path.join(tg.O, 'report.schema.json')], capture_output=True, text=True)
    if done.returncode:
        raise Wrong('the JSON does not follow its schema: %s' % done.stderr.strip()[:200])


def is_possible(row):
    """A row of a thread, device or layer has calls of many names, nested in each other: its total is their self time."""
    of_many = row['total_ns'] == row['self_ns'] and row['avg_ns'] * row['count'] > row['total_ns']
    return 0 <= row['min_ns'] <= row['avg_ns'] + 1 and row['avg_ns'] <= row['max_ns'] and 0 <= row['self_ns'] <= row['total_ns'] and \
        (of_many or row['max_ns'] <= row['total_ns'])


def sound(report, sampled=False):
    """Checks any report: no loss, and no impossible number."""
    loss = report['loss']
    lost = {kind: loss[kind] for kind in ('dropped', 'truncated', 'unreadable', 'unmatched') if loss[kind]}
    if sampled:  # Python's frames may be unreadable in the middle of a call
        lost.pop('unreadable', None)
    if lost or loss['attempted'] != loss['stored'] + loss['dropped']:
        raise Wrong('it lost %s' % (lost or loss))
    if report['window'].get('unfollowed') or report['window'].get('fallbacks'):
        raise Wrong('unfollowed %s, fallbacks %s' % (report['window'].get('unfollowed'), report['window'].get('fallbacks')))
    for title, table in report['tables'].items():
        for row in table or []:
            if row.get('count') and 'total_ns' in row and title in TABLES_OF_CALLS and not is_possible(row):
                raise Wrong('%s: %s: calls %d, min %d, avg %d, max %d, self %d, total %d' % (title, row['name'], row['count'], *(
                    row[k + '_ns'] for k in ('min', 'avg', 'max', 'self', 'total'))))
            if re.match(r'\[0x', row.get('name') or ''):
                raise Wrong('%s: a row is called %s' % (title, row['name']))


# ---- checks


def base(context):
    """The reference of the other cells: two runs are equal."""
    context.traced('--format json', 'base.json')
    with open(context.path('base.json')) as f:
        context.base = json.load(f)
    sound(context.base)
    same_counts(context.base, context.json('', 'again.json'), 'two runs: ')
    return ''


# These enclose operators with rows of their own; dumps() has none of the three for custom operators in a graph.
BLOCKS = {'ImperativeBulk', 'Custom', '_backward_Custom', 'CustomOperatorWait'}


def individual(report):
    """Operators one by one, like MXNet's profiler: without bulks, segments and entries that are not operators of a graph."""
    rows = counts(report)['operator']
    return collections.Counter({name: n for name, n in rows.items() if not name.startswith('[') and name not in BLOCKS})


def builtin_mxnet(context):
    table = lambda name: collections.Counter({
        row: v['Count'] for row, v in context.builtin['Time'].get(name, {}).items() if not RACING.fullmatch(row)})
    difference(collections.Counter({k: v for k, v in table('operator').items() if k not in BLOCKS}), individual(context.base),
               'operator')
    mine = counts(context.base).get('MXNET_C_API', collections.Counter())
    theirs = collections.Counter({k: v for k, v in table('MXNET_C_API').items() if not re.match(
        'MXNet C API|MXSetProcessProfiler|MXAggregateProfile|MXDumpProcess', k)})
    difference(theirs, mine, 'C API')
    difference(table('Custom Operator'), counts(context.base).get('Custom Operator', collections.Counter()), 'Custom Operator')
    return ''


def of_process(report, pid):
    report = json.loads(json.dumps(report))
    for title, rows in report['tables'].items():
        report['tables'][title] = [row for row in rows or [] if row.get('pid', pid) == pid]
    return report


def pickle_bytes(context, line):
    """The language model saves and loads a pickle of a module. Equal strings are in it once or twice, depending on which of
    them are one object, and the buffer for it is an allocation."""
    match = re.match(r'memory +cpu (?:alloc|free)_bytes +(\d+) +(\d+)$', line)
    return match and 'model.pt' in context.program.saves and abs(int(match[1]) - int(match[2])) < 400


def builtin_torch(context):
    """torch.profiler records only its own process."""
    if not context.builtin['rows']:
        return 'torch.profiler sees nothing of it'
    mine = context.path('mine.json')
    with open(mine, 'w') as f:
        json.dump(of_process(context.base, context.target.pid), f)
    done = subprocess.run([tg.PYTHON['torch'], os.path.join(tg.REPO, 'tests/judge_torch/compare.py'),
                           os.path.join(context.target.directory, 'builtin/builtin.json'), mine], capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines()[1:] if not pickle_bytes(context, line)]
    if done.returncode == 2 or done.returncode and lines:
        raise Wrong('%d lines differ: %s' % (len(lines), '; '.join(' '.join(line.split()) for line in lines[:4])))
    return ''


# Each program's own account: {name of the row: calls}.
ACCOUNTS = {
    'lstm_crf': {'operator': {'RNN': 14, '_backward_RNN': 12}},
    'custom_softmax': {'Custom Operator': {'softmax::pure_python': 16, '_backward_softmax::pure_python': 12}},
    # 320 rows in batches of 32, and 96 for evaluation.
    'sparse_linear': {'operator': {'dot': 13, '_backward_dot': 10, 'Custom': 13}},
    # A worker calls torch.randn() for each of 24 images in two epochs; the program for each of 12 batches and for the fixed noise.
    'dcgan': {'operator': {'aten::randn': 48 + 12 + 1}},
    # 10 epochs of 5 batches.
    'rpc_rnn': {'operator': {'aten::lstm': 50, 'aten::embedding': 50, 'aten::cross_entropy_loss': 50}},
}


def account(context):
    for table, rows in ACCOUNTS.get(context.name, {}).items():
        seen = counts(context.base)[table]
        difference(collections.Counter(rows), collections.Counter({name: seen[name] for name in rows}), table)
    return '' if context.name in ACCOUNTS else 'says nothing'


def plain_option(context, args, partly=False):
    """An option that adds or leaves out data: the rest stays equal."""
    report = context.json(args)
    same_counts(context.base, report, partly=partly)
    return unreadable(report)


def unreadable(report):
    """Loss that a sampling session may report."""
    return '%d samples unreadable, which is told' % report['loss']['unreadable'] if report['loss']['unreadable'] else ''


def alone(context):
    """Without child processes only rows of the process itself remain."""
    same_counts(of_process(context.base, context.target.pid), context.json('--no-follow'))
    return ''


def grouped(context, args):
    """--by: rows of calls add up to those by name."""
    report = context.json(args)
    for table, rows in counts(context.base).items():
        seen = sum(row['count'] for row in report['tables'].get(table) or [] if not RACING.fullmatch(row['name']))
        if 'thread' not in args and 'device' not in args and seen != sum(rows.values()):
            raise Wrong('%s: its rows have %d calls, not %d' % (table, seen, sum(rows.values())))
    if 'thread' in args:
        return threads(report)
    return ''


def threads(report):
    window, most = report['window']['duration_ns'], 0
    for title in ('operator', 'MXNET_C_API'):
        for row in report['tables'].get(title) or []:
            for key in ('self_ns', 'total_ns'):
                most = max(most, row[key])
                if row[key] > window * 1.001:
                    raise Wrong('%s: thread %s has %s of %.3f s in a window of %.3f s' % (
                        title, row['name'], key, row[key] / 1e9, window / 1e9))
    return ''


def table(context, args):
    context.traced(args, 'out.txt')
    with open(context.path('out.txt')) as f:
        text = f.read()
    if not text.strip():
        raise Wrong('stdout is empty')
    for what, line in (('a number that is none', r'\bnan\b|\binf\b|-nan'), ('an escape', '\x1b')):
        if re.search(line, text):
            raise Wrong('%s in the tables' % what)
    return ''


def layout_mxnet(context):
    context.traced('--layout mxnet --format json', 'layout.json')
    with open(context.path('layout.json')) as f:
        rows = {k: v['Count'] for k, v in json.load(f)['Time']['operator'].items() if not RACING.fullmatch(k)}
    mine = counts(context.base)['operator']
    inside = collections.Counter()
    for row in context.base['tables']['operator']:
        inside[row['name']] += row.get('in_segments', 0)
    # dumps() shows a segment as one operator, and omits bulks and custom operators of a graph.
    expected = collections.Counter({k: n - inside[k] for k, n in mine.items() if k not in BLOCKS and n > inside[k]})
    difference(expected, collections.Counter(rows), 'operator')
    return ''


def layout_torch(context, name):
    context.traced('--layout ' + name, 'out.txt')
    with open(context.path('out.txt')) as f:
        lines = f.read().splitlines()
    calls = 0
    for line in lines:
        words = re.split(r' {2,}', line.strip())
        if len(words) > 4 and words[-1].isdigit():
            calls += int(words[-1])
    mine = sum(counts(context.base)['operator'].values())
    if name == 'torch' and calls != mine:
        raise Wrong('its rows have %d calls, not %d' % (calls, mine))
    return ''


def as_csv(context):
    context.traced('--format csv', 'out.csv')
    with open(context.path('out.csv'), newline='') as f:
        rows = list(csv.DictReader(f, strict=True, restkey='surplus'))
    seen = collections.defaultdict(collections.Counter)
    for row in rows:
        if 'surplus' in row or None in row.values():
            raise Wrong('a row has another number of cells')
        if row['table'] in TABLES_OF_CALLS and not RACING.fullmatch(row['name']):
            seen[row['table']][row['name']] += int(row['count'])
    for name, rows in counts(context.base).items():
        difference(rows, seen[name], name)
    return ''


def intervals(context, args):
    """The last of cumulative windows, or the sum of windows with --reset, equals the whole."""
    context.traced('--format json ' + args, 'out.jsonl')
    total = collections.defaultdict(collections.Counter)
    with open(context.path('out.jsonl')) as f:
        reports = [json.loads(line) for line in f]
    for report in reports:
        if '--reset' not in args:
            total.clear()
        for name, rows in counts(report).items():
            total[name].update(rows)
    lost = sum(report['loss'][k] for report in (reports if '--reset' in args else reports[-1:]) for k in ('dropped', 'unmatched'))
    if lost:
        raise Wrong('it lost %d' % lost)
    for name, rows in counts(context.base).items():
        difference(rows, total[name], '%d windows: %s' % (len(reports), name))
    return '%d windows' % len(reports)


def trace(context, args, name):
    context.traced('%s --trace %s' % (args, name), 'out.txt')
    return perfetto(context, name)


def perfetto(context, name, rows=True):
    done = subprocess.run(['node', os.path.join(tg.REPO, 'tests/perfetto/engine.mjs'), os.path.join(tg.O, 'deps/perfetto'),
                           context.path(name), '--json'], capture_output=True, text=True, timeout=tg.SECONDS)
    if done.returncode:
        raise Wrong('Perfetto: %s' % (json.loads(done.stdout)['errors'] if done.stdout else done.stderr[-200:]))
    seen = collections.Counter({row['name']: row['n'] for row in json.loads(done.stdout)['operators']})
    if rows:
        # Annotations have a category of their own.
        written = {row['name'] for row in context.base['tables']['operator'] if row.get('annotation')}
        expected = collections.Counter({k: n for k, n in counts(context.base)['operator'].items() if k not in written})
        difference(expected, collections.Counter({name: seen[name] for name in expected}), 'Perfetto')
    return ''


def record(context, name, args):
    """A recording, and every output made from it."""
    context.traced('%s -o %s' % (args, name), 'out.txt', subcommand=('record',))
    report = context.command('report', name, '--format', 'json').stdout
    with open(context.path('report.json'), 'w') as f:
        f.write(report)
    report = context.read('report.json', '--sample' in args)
    same_counts(context.base, report)
    return unreadable(report)


def reported(context, name, args):
    text = context.command('report', name, *args.split()).stdout
    if not text.strip():
        raise Wrong('nothing')
    if '--format json' in args and '--layout' not in args:
        with open(context.path('report.json'), 'w') as f:
            f.write(text)
        report = context.read('report.json', sampled=True)
        if '--by thread' in args:
            threads(report)
        elif '--by event' not in args:
            for title, rows in counts(context.base).items():
                seen = sum(row['count'] for row in report['tables'].get(title) or [] if not RACING.fullmatch(row['name']))
                if '--by device' not in args and seen != sum(rows.values()):
                    raise Wrong('%s: its rows have %d calls, not %d' % (title, seen, sum(rows.values())))
    return ''


def exported(context, name, output, *args):
    context.command('export', name, '-o', output, *args)
    if output.endswith(('.json', '.json.gz')) and 'memory' not in output:
        return perfetto(context, output, rows='chrome-classic' not in args)  # the classic form has categories of its own
    if not glob.glob(context.path(output) + ('*' if output.endswith('/') else '')):
        raise Wrong('no file')
    return ''


def merged(context):
    report = context.command('report', 'all.mxd', 'all2.mxd', '--format', 'json').stdout
    report = json.loads(report)
    for name, rows in counts(context.base).items():
        difference(collections.Counter({k: 2 * n for k, n in rows.items()}), counts(report).get(name, collections.Counter()), name)
    return ''


def launched(context, args=''):
    """As a command launched by mxbpf: from the runtime's first call to its end, with the warm-up that the served runs have had."""
    directory = context.path('launched')  # not the files of the program that continues
    os.makedirs(directory, exist_ok=True)
    out = context.path('launched.json')
    with open(out, 'w') as f, open(context.path('launched.err'), 'w') as e:
        done = subprocess.run([tg.MXBPF, '--exact', '--api', 'all', '--format', 'json', '--quiet', *args.split(), '--', 'sh', '-c', '"$@" >digest', 'sh',
                               *context.target.command], cwd=directory, env=tg.environment(), stdout=f,
                              stderr=e, timeout=tg.SECONDS)
    if done.returncode:
        raise Wrong('mxbpf ended with %d: %s' % (done.returncode, open(context.path('launched.err')).read()[-200:]))
    with open(os.path.join(directory, 'digest')) as f:
        if f.read().strip() != context.digest:
            raise Wrong("the program's result is another")
    report = context.read('launched.json')
    fewer = [(n - counts(report)[title][name], name) for title, rows in counts(context.base).items() for name, n in rows.items()
             if counts(report)[title][name] < n and not context.children]
    if fewer:
        raise Wrong('fewer calls than an attached session sees: %s' % sorted(fewer, reverse=True)[:3])
    return ''


def refused(context, args):
    """An option that this runtime does not support is refused with the reason, and the program is not touched."""
    status, said, _ = context.target.traced(args.split(), context.path('out.txt'))
    if not status or not said.strip():
        raise Wrong('exit code %d: %r' % (status, said[-200:]))
    return 'exit code %d: %s' % (status, said.strip().splitlines()[-1][:90])


def some(context, args, table='operator'):
    """A subset of the whole: the option runs, the report is valid and not empty."""
    report = context.json(args)
    rows = counts(report).get(table, {})
    whole = counts(context.base)[table]
    more = {name: n for name, n in rows.items() if n > whole[name]}
    if more:
        raise Wrong('more calls than the whole has: %s' % more)
    return '%d of %d calls' % (sum(rows.values()), sum(whole.values()))


def cell(option, check, *args, runtime='', reference='the same program without the option', needed=False):
    return Cell(option, runtime, reference, check, args, needed)


ALL = '--shapes --py-stacks --memory --sched --omp --sample 99 --counters task-clock,page-faults'
CELLS = [
    cell('--format json', base, reference='a second run', needed=True),
    cell('--format json', builtin_mxnet, runtime='mxnet', reference='mxnet.profiler'),
    cell('--format json', builtin_torch, runtime='torch', reference='torch.profiler'),
    cell('--format json', account, reference="the program's own account"),
    cell('--format table', table, '--format table'),
    cell('--format csv', as_csv),
    cell('--layout mxnet', layout_mxnet, runtime='mxnet'),
    cell('--layout mxnet --format table', table, '--layout mxnet'),
    cell('--layout torch', layout_torch, 'torch', runtime='torch'),
    cell('--layout torch-classic', layout_torch, 'torch-classic', runtime='torch'),
    *[cell('--probes ' + group, plain_option, '--probes ' + group, True, runtime='mxnet') for group in (
        'api', 'mem', 'api,wait', 'op,inside,custom', 'op,inside,custom,mark,data,kv')],
    cell('--probes op,custom', some, '--probes op,custom', runtime='mxnet'),
    *[cell('--probes ' + group, plain_option, '--probes ' + group, True, runtime='torch') for group in ('op', 'mem', 'op,mark')],
    cell('--api work', some, '--api work', 'MXNET_C_API', runtime='mxnet'),
    cell('--ops', some, "--ops aten::*mm*,aten::add*,*Backward0", runtime='torch'),
    cell('--ops', some, '--ops *FullyConnected*,sgd*', runtime='mxnet'),
    cell('--shapes', plain_option, '--shapes'),
    cell('--shapes --by shape', grouped, '--shapes --by shape'),
    cell('--layers', plain_option, '--layers', runtime='mxnet'),
    cell('--layers --by layer', grouped, '--layers --by layer', runtime='mxnet'),
    cell('--layers', refused, '--layers', runtime='torch', reference='its message'),
    cell('--life', refused, '--life', runtime='torch', reference='its message'),
    cell('--by thread', grouped, '--by thread'),
    cell('--by device', grouped, '--by device'),
    cell('--py-stacks', plain_option, '--py-stacks'),
    cell('--py-stacks --by stack', grouped, '--py-stacks --by stack'),
    cell('--py-stacks --by module', grouped, '--py-stacks --by module', runtime='torch'),
    cell('--memory', plain_option, '--memory'),
    cell('--life', plain_option, '--life', runtime='mxnet'),
    cell('--omp', plain_option, '--omp'),
    cell('--sched', plain_option, '--sched'),
    cell('--counters', plain_option, '--counters task-clock,page-faults,context-switches,cpu-migrations'),
    cell('--sample 99', plain_option, '--sample 99'),
    cell('--backward', plain_option, '--backward', runtime='torch'),
    cell('--interval 300ms', intervals, '--interval 300ms'),
    cell('--interval 300ms --reset', intervals, '--interval 300ms --reset'),
    cell('--no-account', plain_option, '--no-account'),
    cell('--no-follow', alone),
    cell('--sort self --top 3', some, '--sort self --top 3'),
    cell('--max-size 1M', plain_option, '--max-size 1M'),
    cell('--max-memory 1G', plain_option, '--max-memory 1G'),
    cell('--ring-size 64M', plain_option, '--ring-size 64M'),
    cell('--verbose', plain_option, '--verbose'),
    cell('--trace t.json', trace, '', 't.json', reference="Perfetto's engine"),
    cell('--trace t.json.gz, all options', trace, ALL, 't.json.gz', reference="Perfetto's engine"),
    cell('record, all options', record, 'all.mxd', ALL, reference='the same program, attached'),
    *[cell('report --by ' + by, reported, 'all.mxd', '--format json --by ' + by, reference='the same program, attached') for by in (
        'name', 'shape', 'stack', 'device', 'thread')],
    cell('report --by event', reported, 'all.mxd', '--format json --by event --top 20', reference='it prints'),
    cell('report --by module', reported, 'all.mxd', '--format json --by module', runtime='torch',
         reference='the same program, attached'),
    *[cell('report --sort ' + key, reported, 'all.mxd', '--sort ' + key, reference='it prints') for key in (
        'self', 'p99', 'alloc', 'runq', 'blocked')],
    *[cell('report --layout ' + name, reported, 'all.mxd', '--layout ' + name, reference='it prints') for name in (
        'mxnet', 'torch', 'torch-classic')],
    cell('report --format csv', reported, 'all.mxd', '--format csv', reference='it prints'),
    cell('export chrome', exported, 'all.mxd', 'x.json.gz', reference="Perfetto's engine"),
    cell('export chrome-classic', exported, 'all.mxd', 'c.json', '-f', 'chrome-classic', reference="Perfetto's engine"),
    cell('export folded', exported, 'all.mxd', 'x.folded', reference='it writes'),
    cell('export pprof', exported, 'all.mxd', 'x.pb.gz', reference='it writes'),
    cell('record, again', record, 'all2.mxd', ALL, reference='the same program, attached'),
    cell('report of two recordings', merged, reference='twice the program'),
    cell('export of two into a directory', exported, 'all.mxd', 'traces/', 'all2.mxd', reference='it writes'),
    cell('-- COMMAND', launched, reference='the same program, attached'),
    cell('--backend perf --probes op', plain_option, '--backend perf --probes op', True, runtime='torch'),
    cell('--backend perf --probes op,custom', some, '--backend perf --probes op,custom', runtime='mxnet'),
]
