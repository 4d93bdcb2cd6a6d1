#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Long run of mxbpf on a busy job: its memory stays flat, no event is lost, and the job's result equals an unprofiled run's.
# Then it makes 10^9 calls with the agent, and injects the agent into 200 processes with each allocator.
# usage: tests/soak.sh [MINUTES] [O]     as root, after tests/setup.sh; MINUTES: 10 by default; the agent takes 5 more
set -euo pipefail
cd "$(dirname "$0")/.."
minutes=${1:-10}
O=$(realpath -m "${2:-build}")
python=$O/deps/venv/bin/python
dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$dir"' EXIT

job() { "$python" tests/workload/mxnet_train.py --tiny --seed 7 --print-result "$@"; }

# Only anonymous memory counts: the ring is shared with the kernel.
rss_kib() { awk '/^RssAnon/ {print $2}' "/proc/$1/status"; }

job --seconds $((minutes * 60)) >"$dir/job" &
until grep -qs '^ready' "$dir/job"; do read -rt 0.1 <> <(:) || true; done
"$O/mxbpf" --exact --pid "$(sed -n 's/^ready //p' "$dir/job")" --format json >"$dir/report" 2>"$dir/err" &
mxbpf=$!
until grep -qs attached "$dir/err"; do read -rt 0.1 <> <(:) || true; done
# During the first half pools grow to the size of the largest burst.
first=0
last=0
while kill -0 $mxbpf 2>/dev/null; do
	now=$(rss_kib $mxbpf 2>/dev/null || true)
	last=${now:-$last}
	((SECONDS > minutes * 30)) || first=$last
	read -rt 5 <> <(:) || true
done
wait $mxbpf
read -r _ steps result < <(grep '^result' "$dir/job")
echo "job: $steps steps in $minutes minutes, result ${result:0:16}"
echo "mxbpf: memory after half the time $first KiB, at the end $last KiB"
jq -r '"mxbpf: \(.loss.attempted) events, \(.loss.dropped) dropped, \(.loss.unreadable) unreadable"' "$dir/report"
echo "repeating the steps without mxbpf ..."
job --steps "$steps" >"$dir/plain"
read -r _ _ plain < <(grep '^result' "$dir/plain")
echo "unprofiled: result ${plain:0:16}"
[[ -n $result && $result == "$plain" ]] || { echo "FAILED: the results differ"; exit 1; }
jq -e '.loss.dropped == 0' "$dir/report" >/dev/null || { echo "FAILED: events were lost"; exit 1; }
((last <= first + 1024)) || { echo "FAILED: memory grew"; exit 1; }
echo "the agent: 10^9 calls, 200 processes for each allocator ..."
MXBPF_TEST_CALLS=1000000000 "$O/unit/test_agent_lib"
MXBPF_TEST_TARGETS=200 "$O/unit/test_inject_kernel"
echo "ok"
