#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Promises of make bench about its own contents. Its figures need a quiet machine, so no test checks them.

load helpers

@test "Every group of probes has a row in make bench, with options that mxbpf accepts" {
	cd "$REPO/tests/bench"
	python3 -B - "$MXBPF" <<-END
		import subprocess, sys
		from extra import plan_groups
		from modes import GROUPS, MODES
		known = subprocess.check_output([sys.argv[1], 'help', 'all'], text=True)
		groups = plan_groups()
		assert set(groups) == set(GROUPS), set(groups) ^ set(GROUPS)
		rows = [words for _, words in GROUPS.values()] + [getattr(mode[0], 'options', ()) for mode in MODES.values()]
		for words in rows:
		    for word in words:
		        assert not word.startswith('--') or word + ' ' in known or word + '\n' in known, word
		for name, (_, words) in GROUPS.items():
		    if groups[name]:
		        assert name in words[words.index('--probes') + 1].split(','), name
	END
}
