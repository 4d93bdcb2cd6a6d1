#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a data set of one recording as pyarrow, pandas, Polars and DuckDB do, and compares it with the recording's JSON report.
usage: readers.py DIRECTORY REPORT.json"""
import glob
import json
import math
import os
import re
import sys

import duckdb
import polars
import pyarrow.dataset
import pyarrow.feather

ROOT, REPORT = sys.argv[1], json.load(open(sys.argv[2]))
TABLES = sorted(name for name in os.listdir(ROOT) if not name.startswith('_'))
LEAD = {'recording', 'window_start', 'job', 'runtime', 'mxbpf_version', 'pid', 'category', 'host', 'rank', 'day'}


def dataset(name):
    return pyarrow.dataset.dataset('%s/%s' % (ROOT, name), format='ipc', partitioning='hive')


def rows_of(name):
    if name not in TABLES:
        return []
    return dataset(name).to_table().to_pylist()


def same(a, b):
    return math.isclose(a, b, rel_tol=1e-3, abs_tol=1e-3) if isinstance(a, float) or isinstance(b, float) else a == b


def flat(row, within=''):
    """Yields each value of a JSON row with the name that its column has."""
    for key, value in row.items():
        name = re.sub('[^a-z0-9]', '_', (within + key).lower())
        if key == 'counters':
            continue  # a table of its own
        if isinstance(value, dict):
            yield from flat(value, name + '_')
        elif isinstance(value, list) and value and all(isinstance(v, str) for v in value):
            yield name, '\n'.join(value)
        elif not isinstance(value, list):
            yield name, value


def compare(name, rows, of):
    assert len(rows) == len(of), (name, len(rows), len(of))
    for mine, other in zip(rows, of):
        want = dict(flat(other))
        for key, value in want.items():
            assert key in mine, (name, key, sorted(mine))
            assert same(mine[key], value), (name, key, mine[key], value)
        more = {key for key, value in mine.items() if value is not None} - set(want) - LEAD - {k for k, v in other.items() if isinstance(v, list)}
        assert not more, (name, more)


def json_tables():
    """Yields the name and the rows of each table of the JSON, as the data set calls it."""
    for member, value in REPORT.items():
        if member in ('processes', 'sources', 'labels', 'probes', 'notes'):
            continue
        if isinstance(value, list) and all(isinstance(row, dict) for row in value):
            yield member, value
        elif isinstance(value, dict):
            for key, rows in value.items():
                if isinstance(rows, list) and rows and all(isinstance(row, dict) for row in rows) and member not in ('tables', 'target', 'window'):
                    yield member + '_' + key, rows


def check_counters(calls):
    rows = {}
    for r in rows_of('counters'):
        value = r['value'] if r['value'] is not None else r['ratio']
        rows.setdefault((r['name'], r['pid'], r['device']), {}).setdefault(r['counter'], []).append(value)
    want = [r for r in calls if r.get('counters')]
    assert len(rows) == len({(r['name'], r['device']) for r in want}), len(rows)
    for r in want:
        mine = next(v for k, v in rows.items() if (k[0], k[2]) == (r['name'], r['device']))
        for counter, value in r['counters'].items():
            assert any(v is None and value is None or v is not None and same(v, value) for v in mine[counter]), (r['name'], counter, value, mine)


def check_tables():
    calls, memory = [], []
    for title, rows in REPORT['tables'].items():
        (memory if rows and 'allocs' in rows[0] else calls).extend(rows)
    compare('calls', rows_of('calls'), calls)
    check_counters(calls)
    if memory:
        compare('memory', rows_of('memory'), memory)
    seen = {'calls', 'memory', 'spans', 'activities', 'launches', 'recordings', 'processes', 'sources', 'counters'}
    for name, rows in json_tables():
        for key in {k for row in rows for k, v in row.items() if isinstance(v, list) and v and isinstance(v[0], dict)}:
            compare(name + '_' + key, rows_of(name + '_' + key), [{'of': row['name'], **item} for row in rows for item in row[key]])
            seen.add(name + '_' + key)
        compare(name, rows_of(name), rows)
        seen.add(name)
    assert set(TABLES) - seen <= {t for t in TABLES if t.endswith('_totals')}, set(TABLES) - seen
    return calls


def check_recording():
    [row] = rows_of('recordings')
    for key, value in list(REPORT['loss'].items()) + list(REPORT.get('cost', {}).items()):
        if not isinstance(value, dict):
            assert row[key] == value, (key, row[key], value)
    assert row['window_ns'] == REPORT['window']['duration_ns']
    assert row['cmdline'] == REPORT['target']['cmdline'] and row['pid'] == REPORT['target']['pid']
    assert row['window_start'].value == REPORT['window']['start_unix_ns']
    assert [r['dropped'] for r in rows_of('sources')] == [s['dropped'] for s in REPORT.get('sources', [])]


def sums(rows):
    """Sums of spans or of rows of calls by operator."""
    out = {}
    for name, count, total, own in rows:
        have = out.setdefault(name, [0, 0, 0])
        out[name] = [have[0] + int(count), have[1] + int(total), have[2] + int(own)]
    return out


def check_engines(calls):
    want = sums((r['name'], r['count'], r.get('raw_total_ns', r['total_ns']), r.get('raw_self_ns', r['self_ns'])) for r in calls)
    table = dataset('spans').to_table()
    rows = zip(*(table.column(c).to_pylist() for c in ('name', 'raw_total_ns', 'raw_self_ns')))
    assert sums((n, 1, t, s) for n, t, s in rows) == want
    frame = table.to_pandas()
    by = frame.groupby('name').agg(n=('name', 'size'), t=('raw_total_ns', 'sum'), s=('raw_self_ns', 'sum'))
    assert sums(by.itertuples()) == want
    assert str(frame['start'].dtype) == 'datetime64[ns, UTC]'
    assert (frame['total_ns'] <= frame['raw_total_ns']).all() and (frame['self_ns'] <= frame['raw_self_ns']).all()
    lazy = polars.scan_ipc('%s/spans/**/*.arrow' % ROOT, hive_partitioning=True)
    by = lazy.group_by('name').agg(polars.len(), polars.sum('raw_total_ns'), polars.sum('raw_self_ns')).collect()
    assert sums(by.iter_rows()) == want
    spans = dataset('spans')
    query = 'SELECT name, count(*), sum(raw_total_ns), sum(raw_self_ns) FROM spans WHERE rank = -1 GROUP BY name'
    assert sums(duckdb.sql(query).fetchall()) == want
    assert duckdb.sql('SELECT count(DISTINCT host) FROM spans').fetchall() == [(1,)]
    return sum(n for n, _, _ in want.values())


def check_gpu():
    """Single activities add up to the tables of GPUs, and know their launches."""
    gpu = REPORT.get('gpu', {})
    want = sums((r['name'], r['count'], r['total_ns'], 0) for t in ('kernels', 'copies', 'sets') for r in gpu.get(t, []))
    rows = [r for r in rows_of('activities') if r['category'] != 'cuda_sync']
    assert sums((r['name'], 1, r['total_ns'], 0) for r in rows) == want
    launches = {(r['pid'], r['edge_domain'], r['correlation']) for r in rows_of('launches')}
    assert all((r['pid'], r['edge_domain'], r['correlation']) in launches for r in rows), len(launches)


def check_files():
    """All files of a table have one schema, with distinct names."""
    for name in TABLES:
        schemas = set()
        for path in glob.glob('%s/%s/**/*.arrow' % (ROOT, name), recursive=True):
            schema = pyarrow.feather.read_table(path).schema
            assert len(set(schema.names)) == len(schema.names) and not {'host', 'rank', 'day'} & set(schema.names), path
            schemas.add(str(schema))
        assert len(schemas) == 1, name


def main():
    check_files()
    calls = check_tables()
    check_recording()
    n = check_engines(calls)
    assert n == sum(r['count'] for r in calls)
    check_gpu()
    print('%d spans, %d tables' % (n, len(TABLES)))


main()
