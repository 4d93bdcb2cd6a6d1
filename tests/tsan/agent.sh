#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: tests/tsan/agent.sh [O]     `make agent-tsan`
# Runs the agent's library under ThreadSanitizer in a real PyTorch whose threads call operators, run backward passes and end. The
# library is compiled with GCC's sanitizer, whose runtime library is preloaded into Python. An mxbpf with this library loads it as
# always. PyTorch, Python and OpenMP are not instrumented, so only the agent's own accesses are looked at. First the same is done
# with a race that is planted in the library: it must be reported. Exits with 1 if there is a report, or none of the planted race.
set -euo pipefail
cd "$(dirname "$0")/../.."
O=$(realpath -m "${1:-build}")
RUNTIME=$(realpath "$(gcc -print-file-name=libtsan.so)")
PYTHON=$O/deps/torch/bin/python
work=$(mktemp -d)
calls=0
trap 'rm -rf "$work"' EXIT
# Two threads may try to take one slot. The sanitizer takes the attempt that fails for a write.
echo 'race:agent_take_slot' >"$work/suppressions"

# Linked without the runtime library: GNU ld then loses a symbol that both it and libc have.
build() { # FOLDER [FILE SED]
	local to=$work/$1 file at
	mkdir -p "$to/o"
	for file in user/agent/lib/*.c user/agent/cupti/*.c; do
		at=$file
		if [[ $file == "${2:-}" ]]; then
			at=$to/${file##*/}
			sed "$3" "$file" >"$at"
			! cmp -s "$file" "$at" || { echo "FAILED: the line to change is not there"; exit 1; }
		fi
		gcc -std=gnu11 -O1 -g -D_GNU_SOURCE -fPIC -fvisibility=hidden -fcf-protection=none -fno-stack-protector -Iinclude \
			-Iuser/agent/lib -Iuser/agent/cupti "-ffile-prefix-map=$to/=user/agent/lib/" -fsanitize=thread -c -o "$to/o/$(basename "$file" .c).o" "$at"
	done
	gcc -shared -nostartfiles -Wl,--build-id=sha1,-z,now,-z,relro -o "$to/agent.so" "$to"/o/*.o -lc
	gcc -c -Iuser -Iinclude "-Wa,-I$to,-Iuser/agent" -o "$to/image.o" user/agent/image.c
	# shellcheck disable=SC2046 # libraries
	gcc -o "$to/mxbpf" "$O/obj/user/main.o" "$to/image.o" "$O/libmxbpf.a" $(MAKEFLAGS='' make -s O="$O" print-libs)
}

# Without randomized addresses, because the sanitizer wants memory at fixed ones.
run_job() { # FOLDER ARGS...
	timeout 60 "$work/$1/mxbpf" --agent --force -o "$work/$1/out.json" --format json "${@:2}" -- setarch -R env LD_PRELOAD="$RUNTIME" \
		OMP_NUM_THREADS=2 TSAN_OPTIONS="log_path=$work/$1/report exitcode=0 suppressions=$work/suppressions" "$PYTHON" tests/tsan/job.py >"$work/$1/log" 2>&1 ||
		{ cat "$work/$1/log"; exit 1; }
	jq -e '.loss.stored > 1000' "$work/$1/out.json" >/dev/null ||
		{ cat "$work/$1/log"; jq .loss "$work/$1/out.json"; exit 1; }
	calls=$((calls + $(jq .loss.stored "$work/$1/out.json")))
}

# Reports of the agent. Others are of glibc, which lets go of a thread's memory.
reports() { # FOLDER
	cat "$work/$1"/report* 2>/dev/null | awk -v RS='==================\n' '/user\/agent\/lib\//'
}

build planted user/agent/lib/torch.c '/^static void begin(const void /,/^}/s/^}/	planted++;\n}/
	s/^static void begin(const void .*/static unsigned planted;\n&/'
run_job planted
reports planted | grep -q "Location is global 'planted'" || { echo "FAILED: a race that is planted is not reported"; exit 1; }

build honest
calls=0
run_job honest --memory --backward --shapes --by shape
run_job honest --memory --py-stacks --by stack
if reports honest | grep -q .; then
	reports honest
	echo "FAILED: the agent has races"
	exit 1
fi
echo "the agent in PyTorch under ThreadSanitizer: $calls calls, no report"
