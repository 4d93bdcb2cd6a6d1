# SPDX-License-Identifier: Apache-2.0
"""The cell magic %%mxbpf."""
from __future__ import annotations

import ast
import os
import shlex
import sys
from typing import Any, List, Optional, Tuple

from mxbpf._program import Error
from mxbpf._table import needed
from mxbpf._watch import Session


def _parsed(line: str) -> Tuple[List[str], Optional[str], bool, bool]:
    """Returns options of the program, the name of the variable, and what --sudo and --quiet say."""
    options = shlex.split(line)
    name: Optional[str] = None
    if '-o' in options:
        at = options.index('-o')
        name = options[at + 1] if at + 1 < len(options) else ''
        if not name.isidentifier():
            raise Error('-o: %r is no name of a variable; write %%%%mxbpf -o NAME, and later NAME.save(FILE)' % name)
        del options[at : at + 2]
    sudo = '--sudo' in options
    quiet = any(option in options for option in ('-q', '--quiet'))
    return [option for option in options if option not in ('--sudo', '-q', '--quiet')], name, sudo, quiet


def _run(shell: Any, cell: str) -> Any:
    """Runs a cell in the user's namespace, and returns the value of its last expression."""
    source = shell.transform_cell(cell)
    file = shell.compile.cache(source, shell.execution_count)
    tree = ast.parse(source, file)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, file, 'exec'), shell.user_global_ns, shell.user_ns)
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), file, 'eval'), shell.user_global_ns, shell.user_ns)


def _show_warning(line: str) -> None:
    if line.startswith('mxbpf: warning: '):
        print(line, file=sys.stderr, flush=True)


def load(shell: Any) -> None:
    """Registers the magic (`%load_ext mxbpf`)."""
    display = needed('IPython.display', 'ipython').display

    def mxbpf(line: str, cell: str) -> Any:
        """%%mxbpf [-o NAME] [-q] [--sudo] [options of mxbpf record]

        Records this kernel's process while the cell runs, and shows the page. The value of the cell stays that of its last
        expression, and its output and its exception are as without the magic. -o NAME keeps the recording in the variable NAME.
        -q shows nothing. --sudo runs the program by `sudo -n`.
        """
        options, name, sudo, quiet = _parsed(line)
        session = Session(os.getpid(), options, sudo, _show_warning)
        session.wait_started()
        try:
            return _run(shell, cell)
        finally:
            session.interrupt()
            recording = session.finish()
            if name:
                shell.user_ns[name] = recording
            if not quiet:
                display(recording)

    shell.register_magic_function(mxbpf, 'cell')
