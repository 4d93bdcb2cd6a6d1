#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tables.py DIFF A.json B.json TABLE KEYS NUMBERS: checks what diff --table says against the reports of both recordings.

DIFF is the JSON of diff. Rows of the reports with equal KEYS are added up. Each of their NUMBERS is in DIFF, per iteration or second.
"""
import collections
import json
import sys

diff, *reports = [json.load(open(path)) for path in sys.argv[1:4]]
table, keys, numbers = sys.argv[4], sys.argv[5].split(','), sys.argv[6].split(',')
expected = collections.defaultdict(lambda: [0, 0])
for side, report in enumerate(reports):
    per = diff['ab'[side]]['iterations'] if diff['per'] == 'iteration' else report['window']['duration_ns'] / 1e9
    rows = report
    for part in table.split('.'):
        rows = rows[part]
    for row in rows:
        for number in numbers:
            expected[(number,) + tuple('' if row.get(key) is None else str(row[key]) for key in keys)][side] += row[number] / per
expected = {name: values for name, values in expected.items() if any(values)}
assert all(set(row['keys']) <= set(keys) for row in diff['table_rows'])
said = {(row['column'],) + tuple(row['keys'].get(key, '') for key in keys): (row['a'], row['b']) for row in diff['table_rows']}
assert expected and set(said) == set(expected), sorted(set(said) ^ set(expected))
for name, values in expected.items():
    assert all(abs(a - b) <= 1e-6 * b for a, b in zip(said[name], values)), (name, said[name], values)
