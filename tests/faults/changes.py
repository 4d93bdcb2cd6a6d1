#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: changes.py WHOLE FILE   changes FILE without end: cuts it, makes it grow, writes into it, replaces it by WHOLE"""
import os
import random
import sys

with open(sys.argv[1], 'rb') as whole:
    DATA = whole.read()
FILE = sys.argv[2]


def write(mode, at, data):
    with open(FILE, mode) as f:
        f.seek(at)
        f.write(data)


random.seed(1)
while True:
    what = random.randrange(5)
    if what == 0:
        os.truncate(FILE, random.randrange(len(DATA)))
    elif what == 1:
        write('ab', 0, DATA[:random.randrange(len(DATA))])
    elif what == 2:
        write('r+b', random.randrange(len(DATA)), os.urandom(64))
    elif what == 3:
        write('r+b', 0, DATA)
    else:
        with open(FILE + '.new', 'wb') as f:
            f.write(DATA)
        os.rename(FILE + '.new', FILE)
