#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: compare_lines.py BOOKS.json TABLES.json: the bytes that each line keeps equal those of mxbpf's table."""
import json
import re
import sys

with open(sys.argv[1], encoding='utf-8') as f:
    books = {int(line): n for line, n in json.load(f).items()}
with open(sys.argv[2], encoding='utf-8') as f:
    tables = json.load(f)
seen = {}
for h in tables['memory']['holders']:
    line = re.search(r'/lines\.py\((\d+)\): ', h['line'] or '')
    if line and h['live_bytes']:
        seen[int(line[1])] = seen.get(int(line[1]), 0) + h['live_bytes']
wrong = [f'line {n}: {books[n]} bytes, mxbpf says {seen.get(n)}' for n in sorted(books) if books[n] != seen.get(n)]
lineless = sum(d['lineless_allocs'] for d in tables['memory']['devices'])
print(f'{len(books)} lines, {sum(books.values())} bytes, {lineless} of '
      f'{sum(h["allocs"] for h in tables["memory"]["holders"])} allocations without a line')
sys.exit('\n'.join(wrong) or 0)
