#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs every check of the GPU in under nine minutes. The machine needs a driver, Python and libcupti; checks with operators need
# PyTorch for CUDA. This directory, a statically linked mxbpf (make static) and facts.so (make gpu-double) are all that has to be
# copied there; without facts.so a C compiler makes it. It installs nothing. A check that cannot run is skipped with the reason.
# usage: run.sh [--out DIR] [--resume] [--list] [--double [DIR]] [CHECK...]
#   --out DIR      write gpu.md (the table) and gpu.tar.gz (all results) here; default ./gpu-results. Both are whole after each
#                  check. Results that are there already are kept, unless the same check is run again
#   --resume       run only checks that have not been run, were skipped or have failed
#   --list         print the names of the checks
#   --double DIR   use the mock of a GPU in DIR (make gpu-double; default build/gpu), which tests the checks
#   CHECK          run only these checks
#   PYTHON=PATH    use this Python; default python3, and with the mock the one that tests use (build/deps/torch)
#   MXBPF=PATH     use this mxbpf; default: mxbpf-static beside this file, else in build/
#   FACTS=PATH     use this facts.so; default: facts.so beside this file, else in build/gpu
#   LIMIT=SECONDS  limit the time of each check, and of the driver's first answer
#   TOTAL=SECONDS  end after this time; default 520
# Exit code: 0 all checks passed or were skipped, 1 some failed, 2 wrong usage, 3 there is no GPU, 4 the time was over (--resume).
here=$(cd "$(dirname "$0")" && pwd)
export MXBPF
for MXBPF in "$MXBPF" "$here/mxbpf-static" "$here/../../build/mxbpf-static" "$here/../../build/mxbpf" ""; do
	[ -x "$MXBPF" ] && break
done
[ "$MXBPF" ] || echo "run.sh: no mxbpf: copy build/mxbpf-static beside run.sh (make static), or set MXBPF=PATH; only CUPTI itself is checked" >&2
case " $* " in *" --double "*)
	python=$here/../../build/deps/torch/bin/python
	[ "$PYTHON" ] || [ ! -x "$python" ] || PYTHON=$python
	;;
esac
exec "${PYTHON:-python3}" "$here/run.py" "$@"
