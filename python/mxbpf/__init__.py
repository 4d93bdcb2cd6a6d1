# SPDX-License-Identifier: Apache-2.0
"""mxbpf in Python and in notebooks: what a running deep-learning job (MXNet, PyTorch) does.

    import mxbpf

    job = mxbpf.read('job.mxd')        # a recording of `mxbpf record`
    job.operators.to_pandas()          # or to_polars(), to_arrow()
    job.tables                         # names of all tables; each is an attribute
    job.findings, job.loss, job.cost   # what bounds the job, what was not seen, what mxbpf cost

    mxbpf.watch(1234, seconds=5)       # record a running process; a notebook shows the page

    %load_ext mxbpf                    # then %%mxbpf records the kernel while a cell runs

Times are in nanoseconds (names end in `_ns`) and sizes in bytes (`_bytes`). This module runs the program `mxbpf` and reads what it
writes. It imports pyarrow, pandas, Polars or IPython only when they are asked for.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from mxbpf._program import Error
from mxbpf._recording import Cost, Finding, Loss, Recording, diff, jobs, read
from mxbpf._table import Column, Table
from mxbpf._watch import watch

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    __version__: str

__all__ = ['Column', 'Cost', 'Error', 'Finding', 'Loss', 'Recording', 'Table', 'diff', 'jobs', 'read', 'watch']


def __getattr__(name: str) -> str:
    if name == '__version__':
        from mxbpf._program import version

        return version()
    raise AttributeError('module %r has no attribute %r' % (__name__, name))


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Called by `%load_ext mxbpf`."""
    from mxbpf._magic import load

    load(shell)
