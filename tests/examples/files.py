# SPDX-License-Identifier: Apache-2.0
"""Finds the programs' files under $EXAMPLES/OWNER/NAME, a checkout of that repository. Nothing is downloaded here. Files with
other contents are refused, because the table of docs/examples.md is about exactly these."""
import hashlib
import os

ROOT = os.environ.get('EXAMPLES') or os.path.join(
    os.environ.get('O') or os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'build'), 'examples')


def path(program, name):
    return os.path.join(os.path.abspath(ROOT), program.repository, name)


def missing(program):
    """Returns the reason why the program cannot run, or ''."""
    for name, sha in program.files.items():
        file = path(program, name)
        if not os.path.isfile(file):
            return 'no %s: it is %s of github.com/%s at commit %s' % (file, name, program.repository, program.commit)
        with open(file, 'rb') as f:
            if hashlib.sha256(f.read()).hexdigest() != sha:
                return '%s is not what github.com/%s has at commit %s' % (file, program.repository, program.commit)
    return ''
