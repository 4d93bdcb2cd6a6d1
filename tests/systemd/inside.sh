#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs in the container of ../systemd.bats, as a service of its systemd. Prints each promise that holds, and ends at the first that
# does not. The test has a limit of time, and what is waited for has none.
set -euo pipefail
trap 'echo "failed at line $LINENO: $BASH_COMMAND"; journalctl -u mxbpf-serve -u job --no-pager' ERR
TEXTFILE=/var/lib/prometheus/node-exporter/mxbpf.prom

# shellcheck disable=SC2188 # it waits, and reads from nobody
until_true() { until "$@"; do read -rt 0.05 <> <(:) || :; done; }
property() { systemctl show -P "$1" mxbpf-serve; }
metric() { sed -n "s/^$1.* //p" "$TEXTFILE" 2>/dev/null; }
watches() { journalctl "_PID=$(property MainPID)" -o cat --no-pager | grep '^attached: ' >/dev/null; } # not -q, which pipefail punishes

mkdir -p "${TEXTFILE%/*}" /etc/systemd/system/mxbpf-serve.service.d
printf '[Service]\nExecStart=/toy/toy 200 3 hold\n' >/run/systemd/system/job.service
printf '[Service]\nRestartSec=100ms\n' >/etc/systemd/system/mxbpf-serve.service.d/test.conf
printf '%s\n' 'interval = 200ms' 'listen = none' 'max-overhead = 100%' "textfile = $TEXTFILE" >/etc/mxbpf/serve.conf
systemctl daemon-reload

systemctl start job mxbpf-serve # returns when the service says that it is ready
[[ $(property ActiveState) == active ]]
until_true watches
echo 'it starts and watches a job'

systemctl kill -s USR1 job
all_calls() { # small rows are in one called "other", so the sum is compared
	local calls
	calls=$(journalctl -u job -o cat --no-pager | sed -n 's/.*"MXNET_C_API": {\([^}]*\).*/\1/p' | tail -n 1 | grep -o '[0-9]*' | paste -sd +)
	[[ -n $calls ]] && (($(metric 'mxbpf_call_duration_seconds_count{.*kind="c_api"' | paste -sd +) + 0 == calls))
}
until_true all_calls
echo 'it counts what the job does'

pid=$(property MainPID)
systemctl reload mxbpf-serve
[[ $(property ActiveState) == active && $(property MainPID) == "$pid" ]]
echo 'it reads its configuration again'

kill -s KILL "$pid"
is_new() { [[ $(property ActiveState) == active && $(property MainPID) != "$pid" ]]; }
until_true is_new
until_true watches
echo 'it comes back after SIGKILL'

systemctl stop mxbpf-serve
[[ $(property Result) == success && $(property ExecMainStatus) == 0 ]]
echo 'it stops'

echo 'pace = 1s' >>/etc/mxbpf/serve.conf
if systemctl start mxbpf-serve; then
	systemctl is-failed mxbpf-serve # Restart= goes on until the limit of systemd
fi
says_why() { journalctl -q -u mxbpf-serve -o cat --no-pager | grep -F "'--pace'"; }
until_true says_why
echo 'it refuses a wrong configuration and says why'
