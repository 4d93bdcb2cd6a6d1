#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a notebook in a Jupyter kernel and writes it with its outputs.
usage: run.py NOTEBOOK.ipy OUT.ipynb

Cells begin with a line "# %%" and, if one is to fail, the name of its error: "# %% ZeroDivisionError". Exit 1 if a cell fails
otherwise."""
import re
import sys

import nbclient
import nbformat
from jupyter_client import AsyncKernelManager

with open(sys.argv[1]) as f:
    _, *parts = re.split(r'^# %%[ ]?(\w*)\n', f.read(), flags=re.M)
wanted = parts[::2]
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell.rstrip('\n')) for cell in parts[1::2]])
kernel = AsyncKernelManager(kernel_name='python3', transport='ipc')
nbclient.NotebookClient(notebook, kernel, timeout=120, allow_errors=True).execute()
nbformat.write(notebook, sys.argv[2])
for cell, want in zip(notebook.cells, wanted):
    errors = [output for output in cell.outputs if output.output_type == 'error']
    if [error.ename for error in errors] != ([want] if want else []):
        sys.exit('\n'.join([cell.source, *(line for error in errors for line in error.traceback)]))
