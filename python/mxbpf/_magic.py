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


def _compiled(shell: Any, cell: str) -> List[Any]:
    """Returns the code of a cell, and that of its last expression if it ends with one."""
    source = shell.transform_cell(cell)
    file = shell.compile.cache(source, shell.displayhook.prompt_count)
    tree = ast.parse(source, file)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    codes = [shell.compile(tree, file, 'exec')]
    if isinstance(last, ast.Expr):
        codes.append(shell.compile(ast.Expression(last.value), file, 'eval'))
    return codes


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
        __tracebackhide__ = True
        options, name, sudo, quiet = _parsed(line)
        codes = _compiled(shell, cell)
        session = Session(os.getpid(), options, sudo, _show_warning)
        session.wait_started()
        value = None
        try:
            for code in codes:
                value = eval(code, shell.user_global_ns, shell.user_ns)
        finally:
            session.interrupt()
            try:
                recording = session.finish()
            except Error as e:  # the cell did run, and its value is not lost
                print('mxbpf: warning: no recording: %s' % e, file=sys.stderr)
            else:
                if name:
                    shell.user_ns[name] = recording
                if not quiet:
                    display(recording)
        return value

    # Then a semicolon at the end of the cell hides its value. Older versions of IPython lack this.
    silenced = getattr(needed('IPython.core.magic', 'ipython'), 'output_can_be_silenced', lambda magic: magic)
    shell.register_magic_function(silenced(mxbpf), 'cell')
