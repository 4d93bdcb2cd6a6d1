#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Flips one bit of a library's build-id, in place."""
import re
import subprocess
import sys

notes = subprocess.run(['readelf', '-n', sys.argv[1]], stdout=subprocess.PIPE, universal_newlines=True).stdout
build_id = bytes.fromhex(re.search(r'Build ID: (\w+)', notes)[1])
with open(sys.argv[1], 'r+b') as f:
    at = f.read(1 << 20).index(build_id)
    f.seek(at)
    f.write(bytes([build_id[0] ^ 1]))
