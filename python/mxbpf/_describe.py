# SPDX-License-Identifier: Apache-2.0
"""What the columns of tables mean, from the schema of the program (`mxbpf --generate schema`)."""
from __future__ import annotations

import functools
import json
from typing import Any, Dict, Iterator, Tuple

from mxbpf import _program

# Tables of the data set that the schema has under other names.
_ROWS = {'calls': ('row',), 'spans': ('event', 'row'), 'memory': ('memory',)}
_ABOUT = ('window', 'loss', 'cost', 'target')  # the columns of `recordings`


class _Schema:
    def __init__(self, schema: Dict[str, Any]) -> None:
        self.defs = schema['$defs']
        self.tables: Dict[str, Dict[str, str]] = {}
        for name, node in schema['properties'].items():
            self.add(name, node)
        for table, rows in _ROWS.items():
            for row in rows:
                self.put(table, self.defs[row])
        for name in _ABOUT:
            self.put('recordings', schema['properties'][name])

    def resolved(self, node: Dict[str, Any]) -> Dict[str, Any]:
        if '$ref' not in node:
            return node
        return {**self.defs[node['$ref'].rpartition('/')[2]], **node}

    def columns(self, node: Dict[str, Any], prefix: str = '') -> Iterator[Tuple[str, str]]:
        """Yields name and description of each column. A member of an object has the name of the object before its own."""
        for key, member in self.resolved(node).get('properties', {}).items():
            member = self.resolved(member)
            if 'properties' in member:
                yield from self.columns(member, prefix + key + '_')
            elif 'description' in member:
                yield prefix + key, member['description']

    def put(self, table: str, node: Dict[str, Any]) -> None:
        known = self.tables.setdefault(table, {})
        for name, text in self.columns(node):
            known.setdefault(name, text)

    def add(self, name: str, node: Dict[str, Any]) -> None:
        """Adds the tables of a member: a list is one, and lists in its rows are others."""
        node = self.resolved(node)
        if 'items' in node:
            self.put(name, node['items'])
            node = self.resolved(node['items'])
        for key, member in node.get('properties', {}).items():
            self.add(name + '_' + key, member)


@functools.lru_cache(maxsize=None)
def _tables(program: str) -> Dict[str, Dict[str, str]]:
    return _Schema(json.loads(_program.output(['--generate', 'schema']))).tables


def description(table: str, column: str) -> str:
    """Returns what a column means; empty if the schema does not say it."""
    return _tables(_program.find()).get(table, {}).get(column, '')
