#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a wheel: the static program with its manual and completion, the Python module of python/mxbpf, the page for assistants, the
licences, and the list of what is linked (PEP 770). A
program without libraries fits any C library, so the wheel has the tags of glibc and of musl. Its times are SOURCE_DATE_EPOCH, so
that two wheels of a tree are identical.
usage: share/wheel.py O VERSION     O: the folder in which make has built everything
Prints the path of the wheel."""
import base64
import hashlib
import os
import re
import sys
import time
import zipfile

REPO = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
TAGS = ('manylinux_2_17_x86_64', 'musllinux_1_1_x86_64')

METADATA = """\
Metadata-Version: 2.4
Name: mxbpf
Version: %(version)s
Summary: Profiler of running, unmodified deep-learning jobs on PyTorch and MXNet
License-Expression: Apache-2.0 AND (GPL-2.0-only OR BSD-2-Clause)
%(licences)s
Keywords: profiler,pytorch,mxnet,ebpf,gpu
Classifier: Development Status :: 4 - Beta
Classifier: Environment :: Console
Classifier: Framework :: Jupyter
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C
Classifier: Programming Language :: Python :: 3
Classifier: Topic :: Software Development :: Debuggers
Classifier: Topic :: System :: Monitoring
Classifier: Typing :: Typed
Requires-Python: >=3.8
Provides-Extra: notebook
Requires-Dist: pyarrow; extra == "notebook"
Requires-Dist: pandas; extra == "notebook"
Requires-Dist: ipython; extra == "notebook"
Description-Content-Type: text/markdown

%(readme)s"""


def read(path):
    with open(path, 'rb') as f:
        return f.read()


def readme():
    """Returns README.md without pictures and comments, whose files a package index does not have, and with the names of pages alone."""
    text = read(os.path.join(REPO, 'README.md')).decode()
    text = re.sub(r'^!\[.*\]\(.*\)\n|^<!--.*-->\n', '', text, flags=re.M)
    return re.sub(r'\[([^]]*)\]\((?!http)[^)]*\)', r'\1', text)


def files(out, version):
    """Yields each file of the wheel: its name, its content, whether it is a program."""
    info, data = 'mxbpf-%s.dist-info/' % version, 'mxbpf-%s.data/' % version
    portable = os.path.join(out, 'portable')
    module = os.path.join(REPO, 'python', 'mxbpf')
    for name in sorted(os.listdir(module)):
        if name.endswith(('.py', '.typed')):
            yield 'mxbpf/' + name, read(os.path.join(module, name)), False
    yield data + 'scripts/mxbpf', read(os.path.join(portable, 'mxbpf')), True
    yield data + 'data/share/man/man1/mxbpf.1', read(os.path.join(out, 'mxbpf.1')), False
    yield data + 'data/share/bash-completion/completions/mxbpf', read(os.path.join(out, 'mxbpf.bash')), False
    yield data + 'data/share/mxbpf/SKILL.md', read(os.path.join(REPO, 'share', 'skill', 'SKILL.md')), False
    licences = os.path.join(portable, 'licences')
    names = sorted(os.listdir(licences))
    for name in names:
        yield info + 'licenses/' + name, read(os.path.join(licences, name)), False
    yield info + 'sboms/mxbpf.spdx.json', read(os.path.join(portable, 'mxbpf.spdx.json')), False
    lines = '\n'.join('License-File: ' + name for name in names)
    yield info + 'METADATA', (METADATA % {'version': version, 'licences': lines, 'readme': readme()}).encode(), False
    lines = ''.join('Tag: py3-none-%s\n' % tag for tag in TAGS)
    yield info + 'WHEEL', ('Wheel-Version: 1.0\nGenerator: mxbpf\nRoot-Is-Purelib: false\n' + lines).encode(), False


def main():
    if len(sys.argv) != 3:
        sys.exit('wheel: error: ' + __doc__.splitlines()[-2])
    out, version = sys.argv[1:]
    when = time.gmtime(int(os.environ['SOURCE_DATE_EPOCH']))[:6]
    path = os.path.join(out, 'mxbpf-%s-py3-none-%s.whl' % (version, '.'.join(TAGS)))
    record = []

    def add(wheel, name, data, runs):
        entry = zipfile.ZipInfo(name, when)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (0o100755 if runs else 0o100644) << 16
        wheel.writestr(entry, data, compresslevel=9)
        record.append('%s,sha256=%s,%d\n' % (
            name, base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode(), len(data)))

    with zipfile.ZipFile(path + '.new', 'w') as wheel:
        for file in files(out, version):
            add(wheel, *file)
        name = 'mxbpf-%s.dist-info/RECORD' % version
        add(wheel, name, (''.join(record) + name + ',,\n').encode(), False)
    os.rename(path + '.new', path)
    print(path)


main()
