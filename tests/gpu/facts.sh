#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures on a machine with a GPU how CUPTI, PyTorch's profiler and the kernel behave, as a basis for GPU support in mxbpf.
# It takes about five minutes and installs nothing. It needs a C compiler (or a facts.so from elsewhere) and Python with
# PyTorch for CUDA, but no BPF. It has not been run on a GPU yet; docs/gpu-facts.md is added when it has.
# usage: facts.sh [FILE [CHECK...]]
#   FILE            write the results here as Markdown, after each check; default docs/gpu-facts.md
#   CHECK           run only these checks; `facts.py --list` prints their names
#   LIMIT=SECONDS   limit the time of one check; default 60
#   PYTHON=PATH     use this Python; default python3
#   FACTS=PATH      use this facts.so instead of a C compiler: cc -O2 -fPIC -shared -o facts.so facts.c -ldl
#   MXBPF=PATH      append the output of `check` of this mxbpf
# Exit code: 0 if every check has ended, 1 if one failed or exceeded its limit, 3 if there is no GPU.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
case ${1:-} in -*)
	sed -n '3,14s/^# //p' "${BASH_SOURCE[0]}"
	[[ $1 == --help || $1 == -h ]] && exit 0
	exit 2
	;;
esac
out=${1:-$here/../../docs/gpu-facts.md}
python=${PYTHON:-python3}
limit=${LIMIT:-60}

export FACTS_TAPE=${FACTS_TAPE:-${out%.md}.tape}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
library=${FACTS:-$work/facts.so}
if [[ ! ${FACTS:-} ]]; then
	"${CC:-cc}" -O2 -fPIC -shared -o "$library" "$here/facts.c" -ldl || {
		echo 'facts.sh: no facts.so: a C compiler is needed, or FACTS=PATH to one made elsewhere' >&2
		exit 1
	}
fi
if [[ ! ${MXBPF_GPU_DOUBLE:-} ]] && ! reason=$("$python" -c 'import torch; torch.cuda.init()' 2>&1); then
	echo "facts.sh: no GPU that PyTorch can use: ${reason##*$'\n'}" >&2
	exit 3
fi

checks=("${@:2}")
((${#checks[@]})) || mapfile -t checks < <("$python" "$here/facts.py" --list)
failed=0
{
	echo '# What CUPTI does on a real GPU'
	echo
	echo "Measured by \`tests/gpu/facts.sh\` on $(date -u +%Y-%m-%d). Each check ran in a process of its own."
	[[ ! ${MXBPF_GPU_DOUBLE:-} ]] || echo '**These are answers of the double of libcupti, not of a GPU.**'
} >"$out" || exit 1
for check in "${checks[@]}"; do
	echo "facts.sh: $check" >&2
	timeout -k 5 "$limit" "$python" "$here/facts.py" "$library" "$check" >>"$out" 2>"$work/err"
	rc=$?
	((rc == 0)) && continue
	failed=1
	if ((rc == 124 || rc == 137)); then
		echo "- **did not end within $limit s** and was ended" >>"$out"
	else
		echo "- **failed** with exit code $rc: $(tail -n 1 "$work/err")" >>"$out"
	fi
done
if [[ ${MXBPF:-} ]]; then
	{
		printf '\n## mxbpf check\n\n```\n'
		timeout -k 5 "$limit" "$MXBPF" check 2>&1
		printf '```\n'
	} >>"$out"
fi
echo "facts.sh: results in $out" >&2
exit "$failed"
