#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs every check of the GPU in under ten minutes. The machine needs Python with PyTorch for CUDA and a driver; this directory
# and a statically linked mxbpf (make static) are all that has to be copied there, and facts.so (make gpu-double) for the checks
# of CUPTI itself. It installs and compiles nothing.
# Without BPF, the checks that need it are skipped with the reason.
# usage: run.sh [--out DIR] [--list] [--double DIR] [CHECK...]
#   --out DIR      write gpu.md, facts.md, results.json, log and fixtures/ here; default ./gpu-results
#   --list         print the names of the checks
#   --double DIR   use the double of a GPU in DIR (make gpu-double), which tests the checks
#   CHECK          run only these checks
#   PYTHON=PATH    use this Python; default python3
#   MXBPF=PATH     use this mxbpf; default: mxbpf-static beside this file, else in build/
#   LIMIT=SECONDS  limit the time of one check; default 60
#   TOTAL=SECONDS  start no check after this time; default 540
# Exit code: 0 all checks passed, 1 some failed, 2 wrong usage, 3 there is no GPU.
here=$(cd "$(dirname "$0")" && pwd)
export MXBPF
for MXBPF in "$MXBPF" "$here/mxbpf-static" "$here/../../build/mxbpf-static" "$here/../../build/mxbpf"; do
	[ -x "$MXBPF" ] && exec "${PYTHON:-python3}" "$here/run.py" "$@"
done
echo "run.sh: no mxbpf: copy build/mxbpf-static beside run.sh (make static), or set MXBPF=PATH" >&2
exit 2
