# SPDX-License-Identifier: Apache-2.0
"""usage: sudo.py PID     as an ordinary user who may use sudo"""
import os
import sys

import mxbpf

try:
    mxbpf.watch(int(sys.argv[1]), 0.1)
    sys.exit('watched without a right')
except mxbpf.Error as e:
    assert e.code == 4 and 'run with sudo' in str(e), (e.code, e)
recording = mxbpf.watch(int(sys.argv[1]), 0.1, sudo=True)
assert os.stat(recording.path).st_uid == os.getuid() and recording.duration_ns >= 1e8
recording.save('job.mxd')
assert int(sys.argv[1]) in [job['pid'] for job in mxbpf.jobs(sudo=True)]
