#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares each of mxbpf's tables of prog.py on one version of MXNet with that version's own profiler.

  compare.py VERSION BUILTIN MXBPF.json [--bulk MXBPF.json] [--options MXBPF.json] [-o CELLS.json] [--without FEATURE]...

BUILTIN is the PREFIX of ../judge/gate.py's files. CELLS.json gets one verdict per feature: "yes", or what differs. Exit 0:
nothing differs.
"""
import argparse
import collections
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'judge'))
import compare as judge  # noqa: E402

# MXNet truncates a name to this many bytes.
NAME_BYTES = 127
# Operators that MXNet's profiler omits since 1.6: they only wait for those that it shows as "type::operator".
CUSTOM = ('Custom', '_backward_Custom', 'CustomOperatorWait')
# MXNet renames operators in these tables if a Custom operator's own thread pushed them.
CUSTOM_TABLE = 'Custom Operator'
PURE_PYTHON = '::pure_python'
# The profiler's own calls, which its table of the C API omits.
ITS_OWN = ('MXProfile', 'MXSetProfiler', 'MXSetProcessProfiler')
DOMAIN = 'Domain of the program'


def rows_of(data, table):
    return {row['name']: row['count'] for row in data['tables'].get(table, [])}


def operators_of_builtin(data, version):
    """Counts names as pushed, in any table: mxbpf may show Custom's in a table of their own or among the others."""
    rows = collections.Counter()
    for name, count in data['Time'].get('operator', {}).items():
        rows[name] += count['Count']
    for name, count in data['Time'].get(CUSTOM_TABLE, {}).items():
        if not name.endswith(PURE_PYTHON):
            rows[name.partition('::')[2]] += count['Count']
    if version.startswith('1.5'):  # 1.5 counts each twice
        if any(n % 2 for n in rows.values()):
            raise ValueError('an operator of 1.5 with an odd count')
        rows = collections.Counter({name: n // 2 for name, n in rows.items()})
    for name in CUSTOM:
        rows.pop(name, None)
    return rows


def operators_of_mxbpf(data):
    rows = collections.Counter()
    for row in data['tables'].get('operator', []):
        if row['name'] != judge.UNNAMED and row['name'] not in CUSTOM:
            count = row['count'] - row.get('in_segments', 0)
            rows[row['name'].encode()[:NAME_BYTES].decode(errors='replace')] += count
    for name, count in rows_of(data, CUSTOM_TABLE).items():
        if not name.endswith(PURE_PYTHON):
            rows[name.partition('::')[2]] += count
    return rows


def api_of(side):
    wrong = judge.check_sums(side)
    side.api = {name: n for name, n in side.api.items() if not name.startswith(ITS_OWN)}
    return wrong


def marks_of_builtin(data, prefix):
    """Reads markers from the trace, because the table of MXNet's profiler omits them."""
    rows = collections.Counter()
    for table, marks in data['Time'].items():
        if table.startswith(DOMAIN) or table == 'event':
            rows.update({name: v['Count'] for name, v in marks.items()})
    with open(prefix + '.trace.json') as f:
        rows.update(e['name'] for e in json.load(f)['traceEvents'] if 'instant_marker' in e.get('cat', ''))
    return rows


def marks_of_mxbpf(data):
    rows = collections.Counter()
    for table in ('Task', 'Frame', 'Event'):
        rows.update(rows_of(data, table))
    for mark in data.get('values', []) + [m for m in data.get('instants', []) if m['what'] == 'marker']:
        rows[mark['name']] += mark['count']
    return rows


def is_segment(name):
    return name.startswith('[') or ',' in name or '{' in name


def parts(name):
    """Returns the operators of a segment, "[A,B]" or in 2.0 "A{name=a;kernel=[2,2]},B{name=b;}]"."""
    names, depth = [''], 0
    for c in name.strip('[]') if is_segment(name) else name:
        depth += (c == '{') - (c == '}')
        if c == ',' and not depth:
            names.append('')
        elif not depth and c != '}':
            names[-1] += c
    return names


def whole_names(names, ours):
    """Returns mxbpf's names that begin with a name that MXNet has truncated, with the sum of their counts."""
    whole = collections.Counter()
    for name, n in names.items():
        longer = {row['name']: row['count'] for row in ours['tables']['operator'] if row['name'].startswith(name)}
        if len(name.encode()) < NAME_BYTES or sum(longer.values()) != n:
            longer = {name: n}
        whole.update(longer)
    return whole


def bulk_verdicts(theirs, single, ours, version):
    """With bulking, each operator has the same count as without: in a bulk, in a segment or by itself."""
    without, seen = collections.Counter(), collections.Counter()
    for name, n in whole_names(operators_of_builtin(theirs, version), single).items():
        for part in parts(name):
            without[part] += n
    for row in ours['tables']['operator']:
        if not is_segment(row['name']) and row['name'] not in CUSTOM + ('ImperativeBulk', judge.UNNAMED):
            seen[row['name']] += row['count']
    for name, n in rows_of(ours, CUSTOM_TABLE).items():
        if not name.endswith(PURE_PYTHON):
            seen[name.partition('::')[2]] += n
    for counts in without, seen:  # their number depends on that of segments, which bulking makes longer
        counts.pop('DeleteOperator', None)
    return {'operators in bulks': list(judge.differences('', without, seen, ()))}


def in_python(theirs):
    """Compares the Python part of Custom operators, which 1.5 does not show."""
    return {name: v['Count'] for name, v in theirs['Time'].get(CUSTOM_TABLE, {}).items() if name.endswith(PURE_PYTHON)}


def option_verdicts(ours):
    """Checks --life, --memory, --layers and --shapes; a refused option is absent."""
    cells = {'life of operators': [], 'iterations': [], 'memory by operator': ['refused'], 'layers, shapes': ['refused']}
    rows = collections.Counter()
    for row in ours['tables']['operator']:
        rows[row['name']] += row['count']
    for row in ours['life']['operators']:
        parts = [row[part]['count'] for part in ('dependencies', 'queue', 'run')]
        if len(set(parts)) != 1 or (row['name'] == 'DeleteVariable' and parts[0] != rows[row['name']]):
            cells['life of operators'].append('%s: %s of %d' % (row['name'], parts, rows[row['name']]))
    if not any(w['for'] == 'operator' for w in ours['life']['waits']):
        cells['life of operators'].append('no wait is for an operator')
    loops = ours.get('iterations', {}).get('loops', [])
    if [loop['told_by'] for loop in loops] != ['update']:
        cells['iterations'].append(str(loops))
    if 'memory' in ours:
        made = sum(row['allocs'] for row in ours['memory']['holders'])
        took = sum(row['allocs'] for row in ours['tables']['Device Storage'])
        cells['memory by operator'] = [] if made == took else ['%d of %d allocations' % (made, took)]
        held = sum(row['peak_bytes'] for row in ours['memory']['holders'])
        if held != sum(d['peak_bytes'] for d in ours['memory']['devices']):
            cells['memory by operator'].append('%d bytes at the peak' % held)
    if any(row.get('shapes') for row in ours['tables']['operator']):
        cells['layers, shapes'] = []
    return cells


def verdicts(version, builtin, mxbpf):
    a, b = judge.load(builtin), judge.load(mxbpf)
    with open(builtin + '.json') as f:
        theirs = json.load(f)
    with open(mxbpf) as f:
        ours = json.load(f)
    cells = {}
    cells['operators'] = list(judge.differences('', operators_of_builtin(theirs, version), operators_of_mxbpf(ours), ()))
    wrong = api_of(a) + api_of(b)
    cells['C API'] = wrong + list(judge.differences('', collections.Counter(a.api), collections.Counter(b.api), ()))
    cells['memory'] = list(judge.memory_differences(a.memory, b.memory))
    cells['user marks'] = list(judge.differences('', marks_of_builtin(theirs, builtin), marks_of_mxbpf(ours), ()))
    python = {name: n for name, n in rows_of(ours, CUSTOM_TABLE).items() if name.endswith(PURE_PYTHON)}
    cells['Custom in Python'] = [] if python and python == in_python(theirs) else [str(python)]
    calls = collections.Counter(rows_of(ours, 'Engine wait'))
    cells['waits'] = [] if calls['WaitForAll'] == a.api.get('MXNDArrayWaitAll') and calls['WaitForVar'] else [str(calls)]
    lost = {k: n for k, n in ours['loss'].items() if n and k in ('dropped', 'truncated', 'unreadable', 'unmatched')}
    cells['nothing lost'] = ['%s %d' % item for item in lost.items()]
    if not sum(operators_of_builtin(theirs, version).values()) or not a.api or not a.memory:
        raise ValueError('%s: operators, C API calls or allocations are missing' % builtin)
    return cells


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('version')
    p.add_argument('builtin')
    p.add_argument('mxbpf')
    p.add_argument('-o', metavar='CELLS', help='verdicts as JSON')
    p.add_argument('--bulk', metavar='MXBPF', help='of the program with bulking')
    p.add_argument('--options', metavar='MXBPF', help='with all options that this version has')
    p.add_argument('--without', metavar='FEATURE', action='append', default=[], help='may be missing')
    args = p.parse_args()
    cells = verdicts(args.version, args.builtin, args.mxbpf)
    if args.bulk:
        with open(args.builtin + '.json') as theirs, open(args.mxbpf) as single, open(args.bulk) as ours:
            cells.update(bulk_verdicts(json.load(theirs), json.load(single), json.load(ours), args.version))
    if args.options:
        with open(args.options) as ours:
            cells.update(option_verdicts(json.load(ours)))
    for feature, wrong in cells.items():
        print('%s %-14s %s' % (args.version, feature, 'equal' if not wrong else '\n  '.join([''] + wrong)))
    if args.o:
        with open(args.o, 'w') as f:
            json.dump({'version': args.version, 'cells': {k: not v for k, v in cells.items()}}, f)
    return int(any(wrong for feature, wrong in cells.items() if feature not in args.without))


if __name__ == '__main__':
    sys.exit(main())
