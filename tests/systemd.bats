#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The service under a real systemd, which boots in a container with the restrictions of the unit.

load helpers

setup() {
	root_setup
	ROOT=$O/deps/systemd-root
	[[ -x $ROOT/usr/lib/systemd/systemd ]] || skip "no root file system with systemd: $(tail -n 1 "$O/deps/systemd.log" 2>/dev/null)"
}

@test "Under systemd the service is ready when it says so, counts a job, reloads, comes back, stops, and leaves no probe" {
	local before stage=$PWD/stage
	before=$(probe_links)
	make_static "$O/portable/stamp"
	make -s -C "$REPO" --no-print-directory O="$O" install DESTDIR="$stage" PREFIX=/usr
	: >said
	cat >test.service <<-END
		[Service]
		Type=oneshot
		ExecStart=/inside.sh
		StandardOutput=append:/said
		StandardError=inherit
		ExecStopPost=systemctl --force --no-block poweroff
	END
	# Its own filter of system calls would forbid those of mxbpf. Changes to the root stay in memory.
	SYSTEMD_SECCOMP=0 timeout 90 systemd-nspawn --quiet --directory="$ROOT" --volatile=overlay --register=no --keep-unit --capability=all \
		--bind-ro="$O/portable/mxbpf:/usr/bin/mxbpf" --bind-ro="$O/toy:/toy" --bind-ro="$REPO/tests/systemd/inside.sh:/inside.sh" \
		--bind-ro="$stage/usr/lib/systemd/system/mxbpf-serve.service:/usr/lib/systemd/system/mxbpf-serve.service" \
		--bind-ro="$PWD/test.service:/usr/lib/systemd/system/test.service" --bind="$PWD/said:/said" --tmpfs=/etc/mxbpf \
		--boot systemd.unit=test.service systemd.show_status=false </dev/null >boot 2>&1 || { tail -n 20 boot; cat said; return 1; }
	cat said
	for promise in 'starts and watches a job' 'counts what the job does' 'reads its configuration again' 'comes back after SIGKILL' stops \
		'refuses a wrong configuration and says why'; do
		grep -qx "it $promise" said
	done
	no_new_links "$before"
}
