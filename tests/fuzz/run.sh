#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: tests/fuzz/run.sh [O [NAME...]]     NAME: only these targets, such as fuzz_agent
# Runs every fuzz target (built by `make fuzz`) for FUZZ_SECONDS (default 60) each. The corpus grows under O/fuzz/corpus. It
# starts from the recording of a real job and from small ELF objects that this script compiles.
set -euo pipefail
cd "$(dirname "$0")/../.."
O=$(realpath -m "${1:-build}")
names=("${@:2}")
((${#names[@]})) || mapfile -t names < <(basename -s .c tests/fuzz/fuzz_*.c)

# shellcheck disable=SC2317 # called as "seed_$name"
seed_fuzz_record() { cp tests/golden/real.mxd "$1"; }

# shellcheck disable=SC2317
seed_fuzz_views() { head -c 4000 tests/golden/real.mxd >"$1/real"; }

# The first byte selects the parser.
# shellcheck disable=SC2317
seed_fuzz_text() {
	local byte=0 file
	for file in self/maps self/maps self/status self/mountinfo stat; do
		{ printf '%b' "\\x0$byte"; head -c 4000 "/proc/$file"; } >"$1/text$byte"
		byte=$((byte + 1))
	done
	printf '\x05{"pid":1,"libs":[{"path":"a"}],"hits":"5"}' >"$1/session"
	for byte in 6 7 8; do
		printf '%b\0\x02\x02\x01\x7f\x80\xda\x01\xf8\x02' "\\x0$byte" >"$1/lines$byte"
	done
	{ printf '\x09\x14\0\0\0\0\0\0\0req'; head -c 29 /dev/zero; printf '\x02\0\0\0\x01'; head -c 15 /dev/zero; } >"$1/request"
}

# shellcheck disable=SC2317
seed_fuzz_elf() {
	local hash
	for hash in gnu sysv both; do
		echo 'int answer(int x) { return x ? answer(x - 1) + 1 : 42; } int other(void) { return answer(3); }' |
			cc -x c - -shared -nostdlib -O1 -fPIC -Wl,-z,noseparate-code,--hash-style="$hash",--build-id -o "$1/$hash.so"
	done
	# Code with landing pads, a jump table and a tail call.
	echo 'int t(int); extern "C" void free(void *) noexcept; struct g { void *p = nullptr; ~g() { free(p); } };
		extern "C" int alpha(int x) { g a; t(long(&a)); switch (x) { case 0: return t(1); case 1: t(2); break; case 2: return 9;
			case 3: t(4); t(5); break; case 4: return t(6); case 5: t(3); return t(8); } return t(x); }
		extern "C" int beta(int x) { try { t(x); } catch (...) { return 1; } if (x) return 2; return t(3); }' |
		c++ -x c++ - -shared -nostdlib -O2 -fPIC -Wl,-z,noseparate-code -Wl,-z,undefs -o "$1/cxx.so"
	# Code with a virtual table, a text used by one function, and a function whose address is taken.
	echo 'int t(const char *); int u(int (*)(int)); static int taken(int x) { return x + 1; }
		struct alpha { virtual int f(int); virtual int g(int); };
		int alpha::f(int x) { return t("alpha") + u(taken); } int alpha::g(int x) { return x; }' |
		c++ -x c++ - -shared -nostdlib -O2 -fPIC -Wl,-z,noseparate-code -Wl,-z,undefs -o "$1/hidden.so"
}

# shellcheck disable=SC2317
seed_fuzz_demangle() {
	grep -o '"_Z[^"]*"' tests/unit/test_demangle.c | tr -d '"' | while read -r name; do
		printf '%s' "$name" >"$1/${#name}"
	done
}

# Patches of 12 bytes: piece of memory, size, offset, value (hostile.h).
# shellcheck disable=SC2317
seed_fuzz_agent() {
	local piece
	for piece in 0 1 2 3 4 5 6 7 8; do
		printf '%b' "\\x0$piece\\x02\\x04\\x00\\xff\\xff\\xff\\xff\\x00\\x00\\x00\\x00" >"$1/piece-$piece"
	done
}

# 0xff stands for the token.
# shellcheck disable=SC2317
seed_fuzz_http() {
	printf 'GET /metrics?a=1&b=%%20 HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip;q=0.5, br\r\n\r\n' >"$1/get"
	printf 'HEAD /late HTTP/1.0\r\n\r\n' >"$1/head"
	printf 'POST /trace HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer fuzz-0123456789\r\n\r\n' >"$1/refused"
	printf 'POST /trace?a=5s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \xff\r\nContent-Length: 0\r\n\r\n' >"$1/post"
	printf 'POST /trace HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\xfe1\r\na\r\n0\r\n\r\n' >"$1/chunked"
}

# shellcheck disable=SC2317
seed_fuzz_gpu() { seed_fuzz_agent "$1"; }

status=0
for name in "${names[@]}"; do
	corpus=$O/fuzz/corpus/$name
	mkdir -p "$corpus"
	"seed_$name" "$corpus"
	echo "== $name"
	(cd "$corpus/.." && "$O/fuzz/$name" -max_total_time="${FUZZ_SECONDS:-60}" -timeout=10 -rss_limit_mb=2048 -max_len=600000 \
		-verbosity=0 -print_final_stats=1 "$corpus") || status=1
done
exit $status
