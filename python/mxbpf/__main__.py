# SPDX-License-Identifier: Apache-2.0
"""`python -m mxbpf ARGS...` is `mxbpf ARGS...`."""
import sys

from mxbpf._program import become

if __name__ == '__main__':
    become(sys.argv[1:])
