# SPDX-License-Identifier: Apache-2.0
"""Finds and runs the program `mxbpf`. Everything that this module knows of a recording comes from it."""
from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import warnings
import weakref
from typing import Any, List, Sequence, Union


class Error(Exception):
    """What the program said when it failed.

    Attributes:
        code: its exit status (`mxbpf help all` lists them), or -1 if it could not be run.
    """

    def __init__(self, message: str, code: int = -1) -> None:
        super().__init__(message)
        self.code = code


def _folders() -> List[str]:
    """Returns the folders in which pip may have put the program: of this interpreter, of the user, of `pip --target`."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folders = [sysconfig.get_path('scripts')]
    if os.name + '_user' in sysconfig.get_scheme_names():
        folders.append(sysconfig.get_path('scripts', os.name + '_user'))
    return folders + [os.path.join(here, 'bin')]


def find() -> str:
    """Returns the path of the program: that of the environment variable MXBPF, the one that pip installed, or that of PATH."""
    if os.environ.get('MXBPF'):
        return os.environ['MXBPF']
    path = shutil.which('mxbpf', path=os.pathsep.join(_folders())) or shutil.which('mxbpf')
    if not path:
        raise Error('cannot find the program mxbpf: install the wheel, which has it, or set MXBPF to its path')
    return path


class Folder:
    """A temporary folder that goes with this object."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix='mxbpf-')
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def words(options: Union[str, Sequence[str]]) -> List[str]:
    """Returns options that may be written as on a command line."""
    return shlex.split(options) if isinstance(options, str) else list(options)


def printable(text: str) -> str:
    """Escapes what would change a terminal or turn a line around. Texts of the profiled program may be anything."""
    return ''.join(c if c.isprintable() else c.encode('unicode_escape').decode() for c in text)


def command(args: Sequence[str], sudo: bool = False) -> List[str]:
    """Returns the command line that runs the program with these arguments."""
    return (['sudo', '-n'] if sudo else []) + [find(), *args]


def started(args: Sequence[str], sudo: bool = False, **how: Any) -> 'subprocess.Popen[str]':
    """Starts the program. Its texts are UTF-8."""
    line = command(args, sudo)
    try:
        return subprocess.Popen(line, stdin=subprocess.DEVNULL, encoding='utf-8', errors='replace', **how)
    except OSError as e:
        raise Error('cannot run %s: %s' % (line[0], e.strerror)) from e


def failure(said: Sequence[str], code: int) -> Error:
    """Makes an Error of the lines that the program printed: of its errors, or of all if there are none."""
    errors = [line.partition('error: ')[2] for line in said if line.startswith('mxbpf: error: ')]
    return Error('\n'.join(errors or said) or 'mxbpf ended with status %d' % code, code)


def output(args: Sequence[str], sudo: bool = False) -> str:
    """Runs the program and returns its output. What is damaged in a recording becomes a warning if there is output of the rest."""
    child = started(args, sudo, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with child:
        out, said = child.communicate()
    if child.returncode and not out:
        raise failure(said.splitlines(), child.returncode)
    for line in said.splitlines():
        warn(line)
    return out


def warn(line: str) -> None:
    """Turns a message of the program into a warning of Python."""
    if line.startswith('mxbpf: '):
        warnings.warn(line, stacklevel=2)


def as_json(args: Sequence[str], sudo: bool = False) -> Any:
    """Runs the program and returns its JSON."""
    return json.loads(output([*args, '-f', 'json'], sudo))


def version() -> str:
    """Returns the version of the installed package, or that of the program if it was not installed by pip."""
    from importlib import metadata

    try:
        return metadata.version('mxbpf')
    except metadata.PackageNotFoundError:
        return output(['--version']).split()[1]


def become(args: Sequence[str]) -> None:
    """Replaces this process by the program."""
    try:
        line = command(args)
        os.execv(line[0], line)
    except (Error, OSError) as e:
        sys.exit('mxbpf: error: %s' % e)
