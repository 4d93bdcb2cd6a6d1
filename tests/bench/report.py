# SPDX-License-Identifier: Apache-2.0
"""Turns samples into medians, tables and goals. Also reads an old result: report.py build/bench.json"""
import json
import sys
from statistics import median, quantiles

import speed
from modes import MODES, PAIRS

BUILTIN = ('builtin-trace', 'builtin-agg')
# Upper bounds of the job's CPU time relative to the bare loop.
TORCH_LIMITS = (('torch-tiny', 'mxbpf', 3.9), ('torch-tiny', 'mxbpf-agent', 1.25),
                ('torch-tiny', 'mxbpf-agent-account', 1.25), ('torch-tiny', 'mxbpf-agent-mem', 1.32),
                ('torch-layer', 'mxbpf-agent', 1.03), ('torch-layer', 'mxbpf-agent-mem', 1.03), ('torch-cnn', 'mxbpf', 1.10))
MIB = 1 << 20


def spread(values):
    """Median and quartiles, or the extremes if there are few values."""
    values = sorted(values)
    low, _, high = quantiles(values, n=4, method='inclusive') if len(values) > 1 else values * 3
    return {'median': median(values), 'low': low, 'high': high, 'n': len(values)}


def added_cpu_ns(sample):
    return sample['cpu_ns'] - sample['bare_cpu_ns']


# Values that a row of the summary takes from samples that have them.
MEASURES = {
    'cpu_ratio': lambda s: s['cpu_ns'] / s['bare_cpu_ns'],
    'wall_ratio': lambda s: s['wall_ns'] / s['bare_wall_ns'],
    'bare_cpu_ns_per_step': lambda s: s['bare_cpu_ns'] / s['steps'],
    'bare_wall_ns_per_step': lambda s: s['bare_wall_ns'] / s['steps'],
    'added_cpu_ns_per_step': lambda s: added_cpu_ns(s) / s['steps'],
    'added_cpu_ns_per_event': lambda s: added_cpu_ns(s) / s['events'],
    'tool_cpu_ns_per_event': lambda s: s['tool_section_cpu_ns'] / s['events'],
    'total_cpu_ratio': lambda s: (s['cpu_ns'] + s.get('end_cpu_ns', 0)) / s['bare_cpu_ns'],
    'end_cpu_ratio': lambda s: s['end_cpu_ns'] / s['bare_cpu_ns'],
    'events_per_step': lambda s: s['events'] / s['steps'],
    'events_per_s': lambda s: s['events'] / s['wall_ns'] * 1e9,
    'attach_ns': lambda s: s['attach_ns'],
    'attach_said_ns': lambda s: s['attach_said_ns'],
    'detach_ns': lambda s: s['detach_ns'],
    'detach_said_ns': lambda s: s['detach_said_ns'],
    'done_ns': lambda s: s['done_ns'],
    'tool_cpu_ns': lambda s: s['tool_cpu_ns'],
    'tool_cpu_share': lambda s: s['tool_section_cpu_ns'] / s['wall_ns'],
    'hwm_bytes': lambda s: s['hwm_bytes'],
    'anon_bytes': lambda s: s['anon_bytes'],
    'file_bytes': lambda s: s['file_bytes'],
    'maps_bytes': lambda s: s['maps_bytes'],
    'bpf_bytes': lambda s: s['bpf_bytes'],
}


def measured(samples, measure):
    values = []
    for sample in samples:
        try:
            values.append(MEASURES[measure](sample))
        except KeyError: # this mode has no such value
            continue
    return spread(values) if values else None


def summaries(samples):
    rows = []
    for loop, mode in dict.fromkeys((s['loop'], s['mode']) for s in samples):
        mine = [s for s in samples if (s['loop'], s['mode']) == (loop, mode)]
        row = {'loop': loop, 'mode': mode, 'lost': sum(s['lost'] for s in mine) if 'lost' in mine[0] else None}
        row.update((name, measured(mine, name)) for name in MEASURES)
        rows.append(row)
    return rows


def row_of(result, loop, mode):
    return next((r for r in result['summary'] if (r['loop'], r['mode']) == (loop, mode)), None)


# ---- the goals: each returns (name, value in words, reached), or None if the run did not measure it

def goal_added_cpu(result):
    ours = row_of(result, 'tiny', 'mxbpf')
    theirs = [row_of(result, 'tiny', mode) for mode in BUILTIN]
    if not ours or None in theirs:
        return None
    added = [row['cpu_ratio']['median'] - 1 for row in (ours, *theirs)]
    cheaper = min(added[1:])
    words = '%.2f of it: mxbpf %+.1f %%, trace %+.1f %%, aggregate %+.1f %%' % (
        added[0] / cheaper, *(100 * a for a in added))
    late = row_of(result, 'tiny', 'builtin-late')
    if late:
        words += '; told to write nothing before its end %+.1f %%, and %.1f %% more then' % (
            100 * late['cpu_ratio']['median'] - 100, 100 * late['end_cpu_ratio']['median'])
    return {'goal': "added CPU at most half of MXNet's profiler's (the cheaper one), tiny loop, everything",
            'value': words,
            'measured': added[0] / cheaper, 'limit': 0.5, 'reached': added[0] <= 0.5 * cheaper}


def goal_all(result):
    """Goal for options that MXNet's profiler has no equivalent for."""
    ours = row_of(result, 'tiny', 'mxbpf-all')
    theirs = [row_of(result, 'tiny', mode) for mode in BUILTIN]
    if not ours or None in theirs:
        return None
    added = [row['cpu_ratio']['median'] - 1 for row in (ours, *theirs)]
    part = added[0] / min(added[1:])
    return {'goal': "with --life --layers --shapes --memory no more added CPU than MXNet's profiler (the cheaper one), tiny loop",
            'value': '%.2f of it: mxbpf %+.1f %%, trace %+.1f %%, aggregate %+.1f %%' % (part, *(100 * a for a in added)),
            'measured': part, 'limit': 1, 'reached': part <= 1}


def goal_loss(result):
    samples = [s for s in result['samples'] if s['mode'].startswith('mxbpf')] + result.get('busy', []) + \
        list(result.get('steady', {}).values())
    if not samples:
        return None
    lost, events = sum(s['lost'] for s in samples), sum(s['events'] for s in samples)
    return {'goal': 'no loss', 'value': '%d of %d events in %d sessions' % (lost, events, len(samples)),
            'measured': lost, 'limit': 0, 'reached': lost == 0}


def goal_time(result, key, title, limit_ms):
    calm = [s[key] / 1e6 for s in result['samples']
            if s['mode'] in ('mxbpf', 'mxbpf-trace') and not s['loop'].startswith('torch')]
    busy = [s[key] / 1e6 for s in result.get('busy', [])]
    if not calm and not busy:
        return None
    groups = [(name, group) for name, group in (('waiting', calm), ('busy', busy)) if group]
    worst = max(median(group) for _, group in groups)
    return {'goal': '%s within %d ms' % (title, limit_ms),
            'value': ', '.join('%s job %.0f ms (longest %.0f of %d)' % (name, median(group), max(group), len(group))
                               for name, group in groups),
            'measured': worst, 'limit': limit_ms, 'reached': worst <= limit_ms}


def goal_agent_time(result):
    """Time from the start of mxbpf until the agent records, in a job that calls operators meanwhile."""
    groups = [(MODES[mode][1], [s['attach_ns'] / 1e6 for s in result['samples'] if s['mode'] == mode])
              for mode in ('mxbpf-agent', 'mxbpf-agent-account', 'mxbpf-agent-mem')]
    groups = [(title, values) for title, values in groups if values]
    if not groups:
        return None
    worst = max(median(values) for _, values in groups)
    return {'goal': 'active within 150 ms with the agent',
            'value': '; '.join('%s: %.0f ms (longest %.0f of %d)' % (title, median(values), max(values), len(values))
                               for title, values in groups),
            'measured': worst, 'limit': 150, 'reached': worst <= 150}


def goals_torch(result):
    found = []
    for loop, mode, limit in TORCH_LIMITS:
        row = row_of(result, loop, mode)
        if row:
            measured = row['cpu_ratio']['median']
            found.append({'goal': '%s on the %s loop at most x%.2f' % (MODES[mode][1], loop, limit),
                          'value': 'x%.2f' % measured, 'measured': measured, 'limit': limit,
                          'reached': measured <= limit})
    agent, theirs = (row_of(result, 'torch-tiny', mode) for mode in ('mxbpf-agent', 'torch-profiler'))
    if agent and theirs:
        added = [row['cpu_ratio']['median'] - 1 for row in (agent, theirs)]
        found.append({'goal': '--agent adds at most half of what torch.profiler adds on the torch-tiny loop',
                      'value': '%.2f of it' % (added[0] / added[1]), 'measured': added[0] / added[1], 'limit': 0.5,
                      'reached': added[0] <= added[1] / 2})
    return found


def goal_torch_total(result):
    """CPU time of the job. Starting, stopping and writing results is the job's work only with torch.profiler."""
    words, worst = [], 0
    for loop in dict.fromkeys(r['loop'] for r in result['summary'] if r['mode'] == 'torch-profiler'):
        theirs = row_of(result, loop, 'torch-profiler')['total_cpu_ratio']['median']
        ours = [r for r in result['summary'] if r['loop'] == loop and r['mode'].startswith('mxbpf')]
        for row in ours:
            worst = max(worst, (row['total_cpu_ratio']['median'] - 1) / (theirs - 1))
        words.append('%s: torch.profiler x%.2f, %s' % (loop, theirs, ', '.join(
            '%s x%.2f' % (row['mode'], row['total_cpu_ratio']['median']) for row in ours)))
    if not worst:
        return None
    return {'goal': "total cost with start, stop and export below torch.profiler's in every row",
            'value': '; '.join(words), 'measured': worst, 'limit': 1, 'reached': worst < 1}


def goal_memory(result):
    if 'steady' not in result:
        return None
    words, worst, grown = [], 0, 0
    for name, run in result['steady'].items():
        course = [(row['at_s'], row['anon_bytes'] + row['file_bytes']) for row in run['course']]
        first, last = next(b for at, b in course if at >= 2), course[-1][1]
        words.append('%s %.1f MB at 2 s, %.1f at %.0f s' % (name, first / 1e6, last / 1e6, run['seconds']))
        worst, grown = max(worst, last), max(grown, last - first)
    return {'goal': 'steady memory under 32 MB plus maps, whatever the length', 'value': ', '.join(words),
            'measured': worst / 1e6, 'limit': 32, 'reached': worst < 32e6 and grown < MIB}


def export_speed(run, events):
    return events / run['cpu_ns'] * 1e9


def goal_export(result):
    if 'export' not in result:
        return None
    speed = median(export_speed(run, result['export']['events']) for run in result['export']['runs'])
    return {'goal': 'export of a million events a second on one core', 'value': '%.2f M events/s' % (speed / 1e6),
            'measured': speed, 'limit': 1e6, 'reached': speed >= 1e6}


def switch_ns(result, name, whose):
    return min(result['switch'][name][whose])


def goal_switch(result):
    if 'switch' not in result:
        return None
    added = {whose: switch_ns(result, 'mxbpf --sched', whose) - switch_ns(result, 'bare', whose)
             for whose in ('target', 'other')}
    return {'goal': '--sched adds at most 500 ns to a switch of the target',
            'value': '+%.0f ns with its waking; +%.0f ns to one of another process' % (added['target'], added['other']),
            'measured': added['target'], 'limit': 500, 'reached': added['target'] <= 500}


def goal_cost(result):
    """The median of each loop and its options."""
    if not result.get('cost'):
        return None
    worst = max(abs(ratio - 1) for ratio, _, _ in cost_ratios(result['cost']).values())
    return {'goal': 'an iteration without the cost is within 10 % of one that nobody watches',
            'value': 'the worst median is %.1f %% off' % (100 * worst), 'measured': worst, 'limit': 0.1, 'reached': worst <= 0.1}


def cost_ratios(samples):
    """(said / bare, watched / bare, number) by loop and options: medians."""
    found = {}
    for s in samples:
        if s['said_ns']:
            found.setdefault((s['loop'], s['options']), []).append((s['said_ns'] / s['bare_ns'], s['watched_ns'] / s['bare_ns']))
    return {key: (median(r[0] for r in ratios), median(r[1] for r in ratios), len(ratios))
            for key, ratios in found.items()}


SELF_SHARE, SELF_NS = 0.15, 300


def self_times(samples):
    """(torch.profiler, as it ran, without the cost: ns; whether they agree) by loop and operator: medians."""
    found = {}
    for s in samples:
        found.setdefault((s['loop'], s['name']), []).append((s['torch_ns'], s['raw_ns'], s['ns']))
    found = {key: [median(column) for column in zip(*rows)] for key, rows in found.items() if len(rows) * 2 > len(samples) / 20}
    return {key: (*row, abs(row[2] - row[0]) <= max(SELF_SHARE * row[0], SELF_NS)) for key, row in found.items()}


def goal_selves(result):
    if not result.get('selves'):
        return None
    rows = self_times(result['selves']).values()
    part = sum(row[3] for row in rows) / len(rows)
    return {'goal': "self times of operators are within 15 % or 0.3 us of torch.profiler's, both without their costs",
            'value': '%d of %d are' % (sum(row[3] for row in rows), len(rows)), 'measured': part, 'limit': 1, 'reached': part >= 1}


def goal_account(result):
    """The minimum of each: the machine causes everything above it."""
    if 'account' not in result:
        return None
    without, with_ = (min(pair[key] for pair in result['account']) for key in ('without_ns', 'with_ns'))
    part = with_ / without - 1
    return {'goal': 'an account adds at most 5 % to what a call costs',
            'value': '%.1f %%: %.0f ns a call, %.0f with its account; of each pair %s' % (
                100 * part, without, with_, ', '.join('%+.0f' % (p['with_ns'] - p['without_ns'])
                                                      for p in result['account'])),
            'measured': part, 'limit': 0.05, 'reached': part <= 0.05}


def goals_host(result):
    if 'host' not in result:
        return []
    of = result['host']
    busy, idle = of['busy'], of['idle']
    memory = busy['own_bytes'] + busy['maps_bytes']
    attach = median(of['attach_ms'])
    return [
        {'goal': 'ten targets of 5,000 events a second each take at most 3 % of one CPU',
         'value': '%.1f %% at %.0f events a second in all, %.1f %% when idle; %d dropped' % (
             100 * busy['cpu_share'], busy['events_per_s'], 100 * idle['cpu_share'], busy['dropped']),
         'measured': busy['cpu_share'], 'limit': 0.03, 'reached': busy['cpu_share'] <= 0.03},
        {'goal': '... and 64 MiB, BPF maps included',
         'value': '%.1f MiB, of which BPF maps %.1f' % (memory / MIB, busy['maps_bytes'] / MIB), 'measured': memory / MIB, 'limit': 64, 'reached': memory <= 64 * MIB},
        {'goal': 'ten targets among 1,000 other processes are attached to within a second',
         'value': '%.0f ms, %.0f without the others' % (attach, median(of['attach_alone_ms'])),
         'measured': attach, 'limit': 1000, 'reached': attach <= 1000}]


def goals_serve(result):
    if 'serve' not in result:
        return []
    found = []
    for limit in ('1%', '0.3%'):
        most = float(limit[:-1]) / 100
        ratios = {loop: of[limit]['ratio'] for loop, of in result['serve']['loops'].items()}
        worst = max(ratios.values(), default=1) - 1
        found.append({'goal': 'serve with --max-overhead %s adds at most that to the CPU time of a job' % limit,
                      'value': ', '.join('%s %+.1f %%' % (loop, 100 * (ratio - 1)) for loop, ratio in ratios.items()),
                      'measured': worst, 'limit': most, 'reached': worst <= most})
    ten = result['serve']['ten']
    own = ten['own_bytes'] / MIB
    return found + [
        {'goal': 'serve takes at most 1 % of a CPU for ten targets', 'value': '%.2f %%, with %d slices' % (100 * ten['cpu_share'], ten['slices']),
         'measured': ten['cpu_share'], 'limit': 0.01, 'reached': ten['cpu_share'] <= 0.01},
        {'goal': '... and 48 MiB', 'value': '%.1f MiB, and %.1f of BPF maps' % (own, ten['maps_bytes'] / MIB),
         'measured': own, 'limit': 48, 'reached': own <= 48}]


def goals_speed(result):
    if 'speed' not in result:
        return []
    of = {loop: row for (loop, tool), row in speed.rows(result['speed']).items() if tool == 'default'}
    return [{'goal': goal, 'value': ', '.join('%s %.2f' % (loop, row[i]) for loop, row in of.items()),
             'measured': min(row[i] for row in of.values()), 'limit': least, 'reached': all(row[i] >= least for row in of.values())}
            for goal, i, least in (('by default no five seconds of a session run at less than 0.88 of the speed alone', 2, 0.88),
                                   ('... and the median session runs at 0.92 or more', 1, 0.92)) if of]


def goals(result):
    found = [goal_added_cpu(result), goal_all(result), goal_loss(result), goal_time(result, 'attach_ns', 'active', 150),
             goal_time(result, 'detach_ns', 'detached', 200), goal_agent_time(result), goal_memory(result),
             goal_export(result), *goals_torch(result), goal_torch_total(result), goal_switch(result), goal_account(result), goal_cost(result),
             goal_selves(result), *goals_host(result), *goals_serve(result), *goals_speed(result)]
    return [goal for goal in found if goal]


# ---- text

# Columns: title, measure, form, scale.
COSTS = [
    ('at its end', 'end_cpu_ratio', '+%.2f', 1),
    ('ns/event', 'added_cpu_ns_per_event', '%.0f', 1),
    ('events/step', 'events_per_step', '%.0f', 1),
    ('events/s', 'events_per_s', '%.0f', 1),
]
TOOL = [
    ('attach', 'attach_ns', '%.0f', 1e6),
    ('detach', 'detach_ns', '%.0f', 1e6),
    ('all done', 'done_ns', '%.0f', 1e6),
    ('CPU', 'tool_cpu_ns', '%.0f', 1e6),
    ('CPU share', 'tool_cpu_share', '%.1f %%', 0.01),
    ('peak', 'hwm_bytes', '%.1f', MIB),
    ('anon', 'anon_bytes', '%.1f', MIB),
    ('file', 'file_bytes', '%.1f', MIB),
    ('mapped', 'maps_bytes', '%.1f', MIB),
    ('BPF', 'bpf_bytes', '%.1f', MIB),
]


def cells(row, columns):
    return [form % (row[measure]['median'] / scale) if row[measure] else '-' for _, measure, form, scale in columns]


def titles(columns):
    return [column[0] for column in columns]


def ratio(row, name):
    r = row[name]
    return '%.2f (%.2f-%.2f)' % (r['median'], r['low'], r['high'])


def print_rows(rows):
    """The first row is the header. The first column is left-aligned."""
    rows = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print('  '.join(['', row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]))
    print()


def show_loop(loop, rows):
    print('%s loop: a bare step takes %.3f ms CPU, %.3f ms wall\n' % (
        loop, rows[0]['bare_cpu_ns_per_step']['median'] / 1e6, rows[0]['bare_wall_ns_per_step']['median'] / 1e6))
    print_rows([['to nothing attached', 'n', 'CPU', 'wall', 'with its end', *titles(COSTS), 'lost']] + [
        [MODES[row['mode']][1], row['cpu_ratio']['n'], ratio(row, 'cpu_ratio'), ratio(row, 'wall_ratio'),
         '%.2f' % row['total_cpu_ratio']['median'],
         *cells(row, COSTS), '-' if row['lost'] is None else row['lost']] for row in rows])
    print_rows([['times in ms, memory in MiB', *titles(TOOL)]] + [
        [MODES[row['mode']][1], *cells(row, TOOL)] for row in rows if row['attach_ns']])


def pair_ratio(samples, base, mode, what):
    """Ratios of this build to the other one, by rounds in which both took turns in one process."""
    ratios = []
    for number in {s['round'] for s in samples}:
        sums = [sum(what(s) for s in samples if (s['round'], s['mode']) == (number, of)) for of in (mode, base)]
        ratios.append(sums[0] / sums[1])
    return '%.3f (%.3f-%.3f)' % (median(ratios), min(ratios), max(ratios))


def show_pairs(loop, samples):
    modes = {s['mode'] for s in samples}
    rows = [[MODES[mode][1]] + [pair_ratio(samples, base, mode, what) for what in (
        added_cpu_ns, MEASURES['tool_cpu_ns_per_event'], MEASURES['attach_ns'])]
            for base, mode in PAIRS.items() if base in modes and mode in modes]
    if rows:
        print_rows([['%s loop: this build to the other one' % loop, 'added CPU', 'own CPU/event', 'attach'], *rows])


def show_export(export):
    print('export: %d events, recording %.1f MiB, Chrome JSON %.1f MiB, .pftrace %.1f MiB, one CPU' % (
        export['events'], export['recording_bytes'] / MIB, export['trace_bytes'] / MIB, export['pftrace_bytes'] / MIB))
    for form, runs in (('Chrome JSON', export['runs']), ('.pftrace', export['pftrace_runs'])):
        for run in runs:
            print('  %-11s %.2f M events/s (%.2f s CPU, %.2f s wall, peak %.1f MiB)' % (
                form, export_speed(run, export['events']) / 1e6, run['cpu_ns'] / 1e9, run['wall_ns'] / 1e9,
                run['hwm_bytes'] / MIB))
    print()


def show_steady(steady):
    print('memory of mxbpf on the tiny loop, MiB')
    for name, run in steady.items():
        print('  %-12s %s; peak %.1f, with what it writes at the end %.1f; CPU %.1f %% of one' % (
            name, ', '.join('%.1f' % ((c['anon_bytes'] + c['file_bytes']) / MIB) for c in run['course'][::5]),
            run['hwm_before_end_bytes'] / MIB, run['hwm_bytes'] / MIB, run['tool_cpu_ns'] / run['seconds'] / 1e7))
    print('  anonymous and of files, every five seconds; peaks include %.1f of mapped BPF maps\n' %
          (max(run['maps_bytes'] for run in (r['course'][-1] for r in steady.values())) / MIB))


def show_cost(samples):
    print('an iteration, relative to one that nobody watches: as it ran, and as mxbpf says it is without it')
    for (loop, options), (said, watched, n) in cost_ratios(samples).items():
        print('  %-12s %-40s %6.2f %6.2f   (medians of %d)' % (loop, options, watched, said, n))
    print()


def show_selves(samples):
    print("self times of operators in ns: torch.profiler's without its own cost, as it ran under mxbpf, and without the cost")
    for (loop, name), (its, raw, ns, agrees) in self_times(samples).items():
        print('  %-12s %-50s %8.0f %8.0f %8.0f%s' % (loop, name[-50:], its, raw, ns, '' if agrees else '  *'))
    print()


def show_serve(serve):
    print('CPU time of a job with serve, relative to the same job alone')
    for loop, of in serve['loops'].items():
        for limit, run in of.items():
            print('  %-12s %-5s %.3f (%s)   %s; %d slices' % (
                loop, limit, run['ratio'], ', '.join('%.3f' % r for r in run['ratios']),
                ('all calls recorded', 'calls estimated', 'calls and iterations estimated')[int(run['estimated'])], run['slices']))
    print()


def show_speed(sessions):
    print_rows([['speed of a job, 1: alone', '', 'sessions', 'median', 'worst five seconds', 'longest step', 'alone']] + [
        [loop, tool, n, '%.2f' % median_, '%.2f' % slowest if slowest else '-', '%.1f ms' % (longest / 1e6), '%.1f ms' % (alone / 1e6)]
        for (loop, tool), (n, median_, slowest, longest, alone) in speed.rows(sessions).items()])


def show_switch(switch):
    print('a switch of threads, with its waking: ns, the least of %d' % len(switch['bare']['target']))
    for name, of in switch.items():
        print('  %-14s %6.0f in the target %6.0f in another process' % (name, min(of['target']), min(of['other'])))
    print()


def show_groups(groups):
    print_rows([['group of probes', 'loop', 'options', 'CPU', 'events/step']] + [
        [name, row['loop'], row['options'], ratio({'r': spread(row['cpu_ratio'])}, 'r'),
         '%.0f' % median(row['events_per_step'])] for name, row in groups.items()])


def show_bpf(programs):
    print_rows([['BPF program, tiny loop', 'hits', 'ns/hit', 'instructions', 'verified', 'JIT bytes']] + [
        [p.get('probe', p['program']), p['runs'], '%.0f' % (p['run_ns'] / p['runs']) if p['runs'] else '-',
         p['xlated_insns'], p['verified_insns'], p['jited_bytes']] for p in programs])
    hits, ns = (sum(p[key] for p in programs if 'probe' in p) for key in ('runs', 'run_ns'))
    if hits:
        print('  all probes: %.0f ns a hit in the programs, the clock that measures it included\n' % (ns / hits))


def show(result):
    machine = result['machine']
    print('\n%s on %s, %d CPUs, Linux %s; load %.1f at start, %.1f at end; %d s\n' % (
        result['mxbpf'], machine['cpu'], machine['cpus'], machine['kernel'], machine['load_at_start'],
        machine['load_at_end'], machine['seconds']))
    for loop in dict.fromkeys(r['loop'] for r in result['summary']):
        show_loop(loop, [r for r in result['summary'] if r['loop'] == loop])
        show_pairs(loop, [s for s in result['samples'] if s['loop'] == loop])
    for name, show_block in (('bpf', show_bpf), ('steady', show_steady), ('export', show_export),
                             ('switch', show_switch), ('groups', show_groups), ('cost', show_cost), ('selves', show_selves), ('serve', show_serve), ('speed', show_speed)):
        if name in result:
            show_block(result[name])
    print('goals')
    for goal in result['goals']:
        print('  %-11s  %s\n%15s%s' % (
            'reached' if goal['reached'] else 'NOT reached', goal['goal'], '', goal['value']))


if __name__ == '__main__':
    with open(sys.argv[1]) as old:
        show(json.load(old))
