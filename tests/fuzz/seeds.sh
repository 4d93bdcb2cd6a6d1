#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: tests/fuzz/seeds.sh NAME DIR
# Puts first inputs of a fuzzer, such as fuzz_elf, into a folder: those that are made of other files or by a compiler.
set -euo pipefail
cd "$(dirname "$0")/../.."

# shellcheck disable=SC2317 # called as "seed_$1"
{
# A recording, and records of all kinds with few values and several sizes, five chunks in a file: see fuzz_record.c.
seed_fuzz_record() {
	head -c 60000 tests/golden/real.mxd >"$1/seed-real"
	python3 - "$1" <<-'END'
		import random, struct, sys
		r = random.Random(7)
		piece = lambda place, kind, seq, data: bytes([place, kind, seq, len(data) // 8]) + data
		def record(kind):
		    size = r.randrange(24, 208, 8)
		    body = bytes(r.choice((0, 0, 0, 1, 1, 2)) if i % 4 == 0 or r.random() < .1 else 0 for i in range(size - 16))
		    return struct.pack('<HHIQ', kind, size, r.getrandbits(1), r.choice((5, 5000))) + body
		todo = [kind for kind in range(1, 79) for i in range(6)]
		for n in range(0, len(todo), 5):
		    data = b'\0' + b''.join(piece(1 + i, 2, 1 + i, record(kind)) for i, kind in enumerate(todo[n:n + 5]))
		    open(f'{sys.argv[1]}/seed-kinds-{n}', 'wb').write(data)
	END
}

# Rows of each table, with few values, and with columns that are missing, unknown or of arrays.
seed_fuzz_table() {
	python3 - "$1" <<-'END'
		import random, struct, sys
		r = random.Random(3)
		names = ['teams', 'samples', 'raised', 'backward', 'kernels by range', 'none']
		columns = ['name_id', 'stack_id', 'range_id', 'class', 'between', 'flags', 'count', 'regions', 'threads_ns',
		           'first_unix_ns', 'last_unix_ns', 'total_ns', 'min_ns', 'max_ns', 'gone']
		for i in range(120):
		    cols = r.sample(columns, r.randrange(1, len(columns)))
		    of = [(name.encode(), 1 if name != 'gone' else 3, {'name_id': 1, 'range_id': 1, 'stack_id': 4}.get(name, 0),
		           name.endswith('unix_ns')) for name in cols]
		    nrows = r.randrange(0, 9)
		    cells = [r.choice((0, 1, 2, 12, 13, 2**64 - 1, 2**63)) for _ in range(nrows * sum(n for _, n, _, _ in of))]
		    data = struct.pack('<HHIQ24sHHI', 78, 0, r.randrange(3), 0, names[i % 6].encode(), len(of), nrows, 0)
		    data += b''.join(struct.pack('<24sHBBI', *column, 0) for column in of) + struct.pack(f'<{len(cells)}Q', *cells)
		    open(f'{sys.argv[1]}/seed-{i}', 'wb').write(data)
	END
}

# Records of all kinds with zeros, small numbers, -1 or any bytes, for each output. They are always the same.
seed_fuzz_views() {
	python3 - "$1" <<-'END'
		import random, sys
		r = random.Random(5)
		for i in range(600):
		    data = bytes([r.getrandbits(8), r.getrandbits(8), i % 20 + 128 * (i // 20 % 2)])
		    for kind in r.sample(range(1, 79), 24):
		        plain = r.choice((0, 1, 2, 3, 255)) if r.random() < 0.7 else None
		        data += bytes([kind, r.getrandbits(4)]) + bytes(r.getrandbits(8) if plain is None else plain for _ in range(126))
		    open(f'{sys.argv[1]}/seed-{i}', 'wb').write(data)
	END
}

# A trace of every kind of event, plain, compressed, cut, and as a list; databases of old and new versions.
seed_fuzz_import() {
	cp tests/import/gpu.json "$1/seed-plain"
	gzip -9 -n -c tests/import/gpu.json >"$1/seed-gzip"
	head -c 1500 tests/import/gpu.json >"$1/seed-cut"
	jq -c .traceEvents tests/import/gpu.json >"$1/seed-list"
	sed 's/"ts": [0-9.]*/"ts": NaN/; s/gpu/\\xff/; s/"stream"/"str\tm"/' tests/import/gpu.json >"$1/seed-no-json"
	local version
	for version in old new; do
		rm -f "$1/seed-nsys-$version" "$1/seed-nvprof-$version" # of an earlier run, to which they would be added
		python3 tests/import/make_nsys.py $version "$1/seed-nsys-$version"
		python3 tests/import/make_nvprof.py $version "$1/seed-nvprof-$version"
	done
	cp tests/import/mxnet.json tests/import/mxnet.table.txt tests/import/mxnet.sums.json "$1"
}

# Descriptions of a session: with every member, and with null for every text. A list of mounts with long paths.
seed_fuzz_text() {
	python3 - "$1" <<-'END'
		import json, re, sys
		source = open('user/record/meta.c').read()
		values = {'U64': '5', 'BOOL': True, 'U32': 1, 'U16': 1, 'U32_OR_NULL': 1}
		def of(struct, text):
		    return {name: values.get(kind, text) for name, kind in re.findall(rf'IN\({struct}, ([\w.]+), (\w+)\)', source)}
		mount = '30 24 0:26 /%s /%s rw - cgroup2 cgroup2 rw\n' % ('b' * 40, 'a' * 4200)
		open(f'{sys.argv[1]}/seed-mounts', 'wb').write(b'\3' + mount.encode())
		for n, text in enumerate(('a', None)):
		    o = of('mdl_session', text)
		    o['loss'] = of('mxbpf_loss', text)
		    o['class_title'] = [None, 'a', 'b']
		    for member, struct in re.findall(r'\tARRAY\((\w+), (\w+),', source):
		        o[member] = [of(struct, text)] * 2
		    open(f'{sys.argv[1]}/seed-session-{n}', 'wb').write(b'\5' + json.dumps(o).encode())
	END
}

# A result against itself, and against one with other numbers.
seed_fuzz_diff() {
	cp tests/golden/real.json "$1/seed-same"
	{ cat tests/golden/real.json; printf '\0'; tr 1357 2468 <tests/golden/real.json; } >"$1/seed-other"
}

# Each condition and limit of the manual, and each option alone with values of several forms: see fuzz_options.c.
seed_fuzz_options() {
	python3 - "$1" <<-'END'
		import sys
		conditions = ['iteration > 3 * median', 'iteration > 50ms', 'operator.p50(a) > 1s', 'operator.p99(a(b) c) > 50ms for 10s',
		              'operator.max(x) > 2m', 'operator.avg(y) > 5us', 'memory.live(cpu/0) > 14GiB', 'gpu.idle > 50% for 60s', 'gpu.idle.max_ns(waits*) > 50ms', 'raised.count > 3',
		              'finding(data_wait) > 30%', 'hang 60s', 'iteration > +5%', 'memory.peak < -10%', 'memory.iteration > 1%',
		              'operator(aten::mm(x)) > 3%', 'data > 20%', 'results < 1.5e0 %', 'exchange > 0%', 'program > 7%',
		              'iteration > 50ms f', 'iteration > 50ms for', 'iteration >', 'operator(', 'hang']
		for i, text in enumerate(conditions):
		    open(f'{sys.argv[1]}/seed-condition-{i}', 'wb').write(b'b' + text.encode())
		for row in range(1, 160):
		    if row != 10:
		        open(f'{sys.argv[1]}/seed-option-{row}-often', 'wb').write(bytes([250, 255]) + b'\n'.join([bytes([row]) + b'1'] * 39))
		pids = b'\6' + b','.join([b'1'] * 190)
		open(f'{sys.argv[1]}/seed-pids', 'wb').write(bytes([250, 255]) + pids + b'\n' + pids)
		for row in set(range(1, 160)) - {10}:
		    for k, value in enumerate((b'\1\1', b'50', b'1M', b'2s', b'5%', b'a,b')):
		        open(f'{sys.argv[1]}/seed-option-{row}-{k}', 'wb').write(bytes([250, 255, row]) + value)
	END
}

# Each tool in both forms of the protocol, on a result of a real job, and requests that are refused.
seed_fuzz_mcp() {
	python3 - "$1" tests/golden/real.json <<-'END'
		import json, sys
		meta = {'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {}}
		old = {'jsonrpc': '2.0', 'id': 'a', 'method': 'initialize', 'params': {'protocolVersion': '2025-11-25'}}
		with open(sys.argv[2]) as f:
		    report = json.load(f)
		for rows in report['tables'].values():
		    del rows[3:]
		listed = {'processes': [{'pid': 7, 'comm': 'python', 'runtime': 'PyTorch 2.13', 'attach': 'yes', 'library': 'x', 'reason': 'none'}]}
		of = {'of': 'job.mxd'}
		tools = [('jobs', {}), ('look', {'pid': 7}), ('look', {'pid': 7, 'seconds': 3, 'record': True, 'options': ['--sched', '--by=stack', '--gpu']}),
		         ('look', {'pid': 7, 'options': ['--output=x']}), ('findings', of), ('table', of), ('table', {**of, 'key': 'operator', 'sort': 'self_ns', 'top': 2, 'match': 'o', 'by': 'stack'}),
		         ('operator', {**of, 'name': 'Convolution'}), ('diff', {'a': 'a.mxd', 'b': 'b.mxd', 'table': 'memory'}), ('hang', {'pid': 7, 'job': True}),
		         ('more', {'handle': 'a1', 'offset': 9}), ('none', {}), ('look', {'pid': 0}), ('jobs', {'x': 1})]
		finding = {'finding': 'data_wait', 'text': 'The loop waits', 'evidence': 'x', 'share_permille': 9, 'next': '--pid PID --sched --gpu', 'pid': 7, 'advice': 'y'}
		outputs = [report, {**report, 'findings': [finding, {**finding, 'next': 'now --pid PID --job'}]}, listed, 'text ' * 3000, '! mxbpf: error: no']
		def put(name, lines, output):
		    text = '\n'.join(json.dumps(line) for line in lines) + '\0' + (output if isinstance(output, str) else json.dumps(output))
		    open(f'{sys.argv[1]}/seed-{name}', 'w').write(text)
		def call(name, args, meta):
		    return {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': {'name': name, 'arguments': args, **({'_meta': meta} if meta else {})}}
		for i, (name, args) in enumerate(tools):
		    for k, output in enumerate(outputs):
		        put(f'new-{i}-{k}', [call(name, args, meta), call('more', {'handle': 'a1', 'offset': 4000}, meta)], output)
		    put(f'old-{i}', [old, call(name, args, None)], outputs[1])
		for i, (method, params) in enumerate([('server/discover', {'_meta': meta}), ('tools/list', {'_meta': meta}), ('tools/list', {}), ('ping', {}),
		        ('server/discover', {'_meta': {**meta, 'io.modelcontextprotocol/protocolVersion': '1999-01-01'}}), ('tools/list', {'_meta': meta, 'cursor': 'x'}),
		        ('nothing', {}), ('initialize', {}), ('notifications/cancelled', {'requestId': 1})]):
		    put(f'method-{i}', [{'jsonrpc': '2.0', 'id': 2, 'method': method, 'params': params}], '')
		put('notice', [{'jsonrpc': '2.0', 'method': 'notifications/cancelled', 'params': {'requestId': 1}}, [], {'id': 1}], '')
	END
}

seed_fuzz_elf() {
	local hash
	for hash in gnu sysv both; do
		echo 'int answer(int x) { return x ? answer(x - 1) + 1 : 42; } int other(void) { return answer(3); }' |
			cc -x c - -shared -nostdlib -O1 -fPIC -Wl,-z,noseparate-code,--hash-style="$hash",--build-id -o "$1/seed-$hash"
	done
	# Code with landing pads, a jump table and a tail call.
	echo 'int t(int); extern "C" void free(void *) noexcept; struct g { void *p = nullptr; ~g() { free(p); } };
		extern "C" int alpha(int x) { g a; t(long(&a)); switch (x) { case 0: return t(1); case 1: t(2); break; case 2: return 9;
			case 3: t(4); t(5); break; case 4: return t(6); case 5: t(3); return t(8); } return t(x); }
		extern "C" int beta(int x) { try { t(x); } catch (...) { return 1; } if (x) return 2; return t(3); }' |
		c++ -x c++ - -shared -nostdlib -O2 -fPIC -Wl,-z,noseparate-code -Wl,-z,undefs -o "$1/seed-cxx"
	# Code with a virtual table, a text used by one function, and a function whose address is taken.
	echo 'int t(const char *); int u(int (*)(int)); static int taken(int x) { return x + 1; }
		struct alpha { virtual int f(int); virtual int g(int); };
		int alpha::f(int x) { return t("alpha") + u(taken); } int alpha::g(int x) { return x; }' |
		c++ -x c++ - -shared -nostdlib -O2 -fPIC -Wl,-z,noseparate-code -Wl,-z,undefs -o "$1/seed-hidden"
	# States of a frame that are restored and were not saved, or too many of them, and a chain of loads.
	echo '.globl alpha, beta
		alpha: .cfi_startproc
		.cfi_escape 0x0b
		mov (%rsi), %rax; mov 8(%rax), %rax; mov (%rax), %rax; mov (%rax), %rsi; mov (%rsi), %rax; mov (%rax), %rax; ret
		.cfi_endproc
		.type alpha, @function; .size alpha, .-alpha
		beta: .cfi_startproc
		.rept 40; .cfi_escape 0x0a; .endr
		nop; .cfi_escape 0x0b; mov 8(%rsp), %eax; ret
		.cfi_endproc
		.type beta, @function; .size beta, .-beta' |
		cc -x assembler - -shared -nostdlib -Wl,-z,noseparate-code,--eh-frame-hdr -o "$1/seed-frames"
	seed_fields "$1/seed-fields"
	seed_fields "$1/seed-fields-O1" -O1 -fno-plt -fno-omit-frame-pointer -Wl,-z,lazy
}

# Code that reads fields of a block, of a handle, and of a handle that is on the stack; with throws, and an expression of a frame.
seed_fields() {
	echo 'extern "C" char *strncpy(char *, const char *, unsigned long); extern "C" void free(void *);
		struct object { long a[11]; char name[40]; }; struct handle { void *p; long bytes; int type, id; void *more; };
		struct block { long x; object *o; long y; int type, id; }; int use(char *, int, int); int use2(int, int, void *);
		extern "C" int alpha(void *self, block *b) { char name[64]; strncpy(name, b->o->name, 63); use(name, b->type, b->id);
			if (b->x) { use2(b->type, b->id, self); strncpy(name, b->o->name, 63); } return use(name, b->type, b->id); }
		extern "C" int beta(void *self, handle *h) { if (!h->bytes || !h->p) throw 1; use2(h->type, h->id, h->p); return h->id; }
		extern "C" int copy(void *self, handle h) { if (!h.bytes) return 0; use2(h.type, h.id, h.p); return use2(h.type, h.id, self); }
		int main(int n, char **v) { char *p = (char *)__builtin_alloca(n); use(p, n, 0); return copy(p, handle{p, n, 1, 2, v}); }' |
		c++ -x c++ - -shared -nostdlib -O2 -fPIC -Wl,-z,noseparate-code -Wl,-z,undefs "${@:2}" -o "$1"
}

seed_fuzz_demangle() {
	grep -o '"_Z[^"]*"' tests/unit/test_demangle.c | tr -d '"' | while read -r name; do
		printf '%s' "$name" >"$1/seed-${#name}"
	done
}
}

! declare -F "seed_$1" >/dev/null || "seed_$1" "$2"
