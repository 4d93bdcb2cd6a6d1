# SPDX-License-Identifier: Apache-2.0
"""A table of a recording, for pandas, Polars and Arrow."""
from __future__ import annotations

import html
import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, List, Optional

from mxbpf import _describe
from mxbpf._program import Error, printable

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from mxbpf._recording import Recording

_SHOWN = 10  # rows of a table in a notebook
# Columns that have the same value in all tables of a recording.
_ABOUT = ('recording', 'window_start', 'job', 'runtime', 'mxbpf_version', 'host', 'rank', 'day')


def needed(module: str, package: str) -> Any:
    """Imports a module that only some users need."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as e:
        raise Error('this needs %s; run: pip install %s' % (package, package)) from e
    except ImportError as e:  # it is there, and does not fit something else
        raise Error('this needs %s, which cannot be imported: %s' % (package, e)) from e


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        name: its name; a name that ends in `_ns` is a time in nanoseconds, one in `_bytes` a size in bytes.
        type: the type of its values in Arrow.
        unit: 'ns', 'bytes', 'bytes/s', or '' for a count, a text or a moment.
        description: what the program says about it; '' if it says nothing.
    """

    name: str
    type: str
    unit: str
    description: str


class Table:
    """A table of a recording. It is read from the data set that `mxbpf export` wrote, each time it is converted.

    Times are in nanoseconds (`_ns`), sizes in bytes (`_bytes`), moments in UTC. A value that is not known is null.
    """

    def __init__(self, recording: Recording, name: str, folder: str, only: Optional[Dict[str, Any]] = None) -> None:
        self.name = name
        self._recording = recording
        self._folder = folder
        self._only = only or {}

    def _dataset(self) -> Any:
        arrow, dataset = needed('pyarrow', 'pyarrow'), needed('pyarrow.dataset', 'pyarrow')
        # The name of a host is text, also if it has only digits.
        parts = arrow.schema([('host', arrow.string()), ('rank', arrow.int32()), ('day', arrow.string())])
        read = dataset.dataset(self._folder, format='ipc', partitioning=dataset.partitioning(parts, flavor='hive'))
        for column, value in self._only.items():
            read = read.filter(dataset.field(column) == value)
        return read

    def where(self, **values: Any) -> Table:
        """Returns the rows that have these values: `recording.spans.where(name='aten::mm')`."""
        return Table(self._recording, self.name, self._folder, {**self._only, **values})

    def to_arrow(self) -> pyarrow.Table:
        """Returns the table as a `pyarrow.Table`."""
        table: pyarrow.Table = self._dataset().to_table()
        return table

    def to_polars(self) -> polars.DataFrame:
        """Returns the table as a `polars.DataFrame`."""
        frame: polars.DataFrame = needed('polars', 'polars').DataFrame(self.to_arrow())
        return frame

    def to_pandas(self) -> pandas.DataFrame:
        """Returns the table as a `pandas.DataFrame`. Integers are `Int64`, so that they stay exact beside a missing value."""
        frames = needed('pandas', 'pandas')
        types = {'int64': frames.Int64Dtype(), 'int32': frames.Int32Dtype(), 'bool': frames.BooleanDtype()}
        frame: pandas.DataFrame = self.to_arrow().to_pandas(types_mapper=lambda arrow: types.get(str(arrow)))
        return frame

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Gives the table to any library that takes Arrow's C stream, such as DuckDB."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    @property
    def columns(self) -> List[Column]:
        """The columns with their units, and with what the program says about them."""
        return [
            Column(
                field.name,
                str(field.type),
                ((field.metadata or {}).get(b'unit') or b'').decode(),
                _describe.description(self.name, field.name),
            )
            for field in self._dataset().schema
        ]

    def __len__(self) -> int:
        return int(self._dataset().count_rows())

    def __repr__(self) -> str:
        return '<mxbpf table %s: %d rows; %s>' % (self.name, len(self), self._recording.loss)

    def _repr_html_(self) -> str:
        """The first rows. Columns without a value, and those that say what `recordings` says, are left out."""
        table = self.to_arrow()
        names = [name for name in table.column_names if table[name].null_count < len(table)]
        if self.name != 'recordings':
            names = [name for name in names if name not in _ABOUT]
        rows = table.select(names).slice(0, _SHOWN).to_pylist()
        about = '%d rows of %s, %d shown; %s' % (len(table), self.name, len(rows), self._recording.loss)
        cells = [names] + [['' if row[name] is None else str(row[name]) for name in names] for row in rows]
        lines = ['<tr>%s</tr>' % ''.join('<td>%s</td>' % html.escape(printable(cell)) for cell in line) for line in cells]
        lines[0] = lines[0].replace('td>', 'th>')
        return '<p>%s</p><table>%s</table>' % (html.escape(about), ''.join(lines))
