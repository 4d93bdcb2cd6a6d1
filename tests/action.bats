#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The action for CI: a benchmark that became slower fails with a table, one that did not passes, and what the CI system reads is valid.

load helpers

RUN=$REPO/share/action/run.sh

setup() { cd "$BATS_TEST_TMPDIR" || return 1; }

teardown() {
	kill_started
	park_jobs
}

need_ci() {
	[[ -x $O/deps/ci/bin/check-jsonschema ]] && return 0
	echo "no schemas of CI systems at $O/deps/ci: run tests/setup.sh" >&2
	return 1
}

# Runs the script as GitHub does. The job shows what the script has written to the files `summary` and `told`.
act() { # COMMAND [VARIABLE=VALUE...]
	rm -f summary told
	env MXBPF="$MXBPF" MXBPF_COMMAND="$1" MXBPF_BASELINE=baseline GITHUB_STEP_SUMMARY=summary GITHUB_OUTPUT=told "${@:2}" "$RUN"
}

# bats test_tags=alone
@test "The first run of a benchmark is stored, an equal one passes, and a slower one fails with the table in the summary" {
	measured
	need_root
	need_torch
	local job="'$PYTHON_TORCH' '$REPO/tests/diff/job.py' 3" limits=$'operator(aten::bmm) > +50%\n  iteration < -90%'
	rm -rf baseline mxbpf-ci # of the first try
	expect_run 0 act "$job"
	expect_re 'no baseline yet' "$output"
	expect_re 'no baseline yet' "$(<summary)"
	expect_same "$(<told)" $'recordings=mxbpf-ci\nresult=stored'
	cmp mxbpf-ci/new-1.mxd baseline/new-1.mxd

	expect_run 0 act "$job" MXBPF_FAIL_ON="$limits"
	expect_re '^. `aten::bmm` .* not certain ' "$(<summary)"
	expect_same "$(tail -n 1 told)" result=passed

	expect_run 10 act "$job op 200" MXBPF_FAIL_ON="$limits" MXBPF_RECORD_OPTIONS=$'--shapes\n--ring-size 16M\n'
	expect_re '^. `aten::bmm` .* \*\*\+[0-9]+%\*\* .* changed ' "$(<summary)"
	expect_re "^    mxbpf: --fail-on 'operator.aten::bmm. > .50%' is broken: aten::bmm changed by" "$(<summary)"
	expect_same "$(tail -n 1 told)" result=broken
	cmp summary mxbpf-ci/diff.md
	jq -e '.rows | length > 20' mxbpf-ci/diff.json
	"$MXBPF" report mxbpf-ci/new-1.mxd --by shape >shapes # an error without --shapes
}

@test "A benchmark that fails, a wrong input and missing privileges end the action with a sentence, and nothing is stored" {
	expect_error 2 "error: no benchmark: MXBPF_COMMAND" act ''
	expect_error 2 "MXBPF_RUNS .input 'runs'. is '0', not a number from 1 to 99" act true MXBPF_RUNS=0
	expect_error 2 "error: there is no program none; install mxbpf" act true MXBPF=none
	expect_error 2 "error: nothing to compare with: MXBPF_BASELINE" act true MXBPF_BASELINE=
	need_root
	expect_run 7 act "LD_PRELOAD='$O/toy/libmxnet.so' bash -c 'exit 7'"
	chmod 777 .
	expect_error 2 'recording needs root' setpriv --reuid 65534 --regid 65534 --clear-groups env MXBPF="$(for_others "$MXBPF")" \
		MXBPF_COMMAND=true MXBPF_BASELINE=baseline MXBPF_OUTPUT=theirs PATH=/usr/bin:/bin "$(for_others "$RUN")"
	[[ ! -e baseline ]]
}

@test "The program can come in a wheel, the baseline as a list of files, and several runs are compared as one side" {
	need_root
	local golden=$REPO/tests/golden/real.mxd
	# A program that records by copying, so that the test is about the script.
	mkdir -p w/x-1.data/scripts w/x-1.dist-info
	cat >w/x-1.data/scripts/mxbpf <<-END
		#!/bin/sh
		[ "\$1" = record ] || exec '$MXBPF' "\$@"
		while [ "\$1" != -o ]; do shift; done
		cp '$golden' "\$2"
	END
	chmod +x w/x-1.data/scripts/mxbpf
	printf 'Metadata-Version: 2.1\nName: x\nVersion: 1\n' >w/x-1.dist-info/METADATA
	printf 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: py3-none-any\n' >w/x-1.dist-info/WHEEL
	(cd w && find . -type f -printf '%P,,\n' >x-1.dist-info/RECORD && "$O/deps/ci/bin/python" -m zipfile -c ../x-1-py3-none-any.whl ./*)
	cp "$golden" one.mxd
	cp "$golden" two.mxd
	mkdir temp
	PATH=$O/deps/ci/bin:$PATH expect_run 0 act true MXBPF="$PWD/x-1-py3-none-any.whl" MXBPF_RUNS=2 MXBPF_BASELINE=$'one.mxd\ntwo.mxd\nlater.mxd' RUNNER_TEMP=temp
	jq -e '.several and (.a.recordings | length) == 2 and (.b.recordings | length) == 2' mxbpf-ci/diff.json
	expect_same "$(tail -n 1 told)" result=passed
	[[ -z $(ls -A temp) ]]
}

@test "action.yml and the examples are valid by the schemas of the CI systems, and every input reaches the script" {
	need_ci
	"$O/deps/ci/bin/check-jsonschema" --builtin-schema vendor.github-actions "$REPO/action.yml"
	"$O/deps/ci/bin/python" - "$REPO/action.yml" "$RUN" "$REPO/docs/ci.md" <<-'END'
		import re, sys
		from ruamel.yaml import YAML
		text, script, page = (open(path).read() for path in sys.argv[1:])
		action = YAML(typ='safe').load(text)
		inputs, used = set(action['inputs']), set(re.findall(r'inputs[.]([a-z-]+)', text))
		assert inputs == used, inputs ^ used
		env = action['runs']['steps'][0]['env']
		assert set(env) == set(re.findall(r'\$\{(MXBPF\w*)', script)), env
		outputs = {value['value'].split('.')[-1].rstrip(' }') for value in action['outputs'].values()}
		assert outputs == set(re.findall(r'\btell (\w+)', script)), outputs
		for name in inputs | set(env):
		    assert '`%s`' % name in page, name
		for number, (kind, example) in enumerate(re.findall(r'<!-- schema: (\S+) -->\n```yaml\n(.*?)```', page, re.S)):
		    open('%d.%s.yml' % (number, kind), 'w').write(example)
	END
	for file in ?.*.yml; do
		"$O/deps/ci/bin/check-jsonschema" --builtin-schema "vendor.$(cut -d . -f 2 <<<"$file")" "$file"
	done
	[[ $file == 1.* ]] # two examples
}
