#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# `mxbpf serve` sends metrics by OTLP, and profiles. Ground truth is the text file of the same interval, and what the decoder
# of OpenTelemetry and Go's pprof read.

load helpers

PYTHON_OTLP=$O/deps/otlp/bin/python

setup() {
	root_setup torch
	[[ -x $PYTHON_OTLP ]] || skip "no decoder of OTLP; run tests/setup.sh"
	mkdir got
	start_bg receiver env -C got "$PYTHON_OTLP" "$REPO/tests/serve/receiver.py"
	wait_line "$(out receiver)" '^listening'
	RECEIVER=127.0.0.1:$(awk '{ print $2; exit }' "$(out receiver)")
}

# SIGUSR1: a hundred iterations.
JOB='
import os, signal, sys
signals = {signal.SIGUSR1, signal.SIGTERM}
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
import torch
torch.set_num_threads(1)
weight = torch.nn.Parameter(torch.ones(8))
optimizer = torch.optim.SGD([weight], lr=0.1)
def waits_for_word():
    return signal.sigwait(signals)
print("ready", os.getpid(), flush=True)
did = 0
while waits_for_word() != signal.SIGTERM:
    for _ in range(100):
        torch.sinh(weight)
        weight.sum().backward()
        optimizer.step()
    did += 100
    print("did", did, flush=True)
'

start_job() { # sets JOB_PID
	start_code job "$JOB" >/dev/null
	JOB_PID=$READY_PID
}

start_serve() { # ARGUMENTS...: with the environment that FROM has
	start_bg serve env no_proxy=127.0.0.1 "${FROM[@]}" "$MXBPF" serve --pid "$JOB_PID" --interval 200ms --max-overhead 100% --textfile m.prom \
		--listen none --verbose "$@"
	SERVE_PID=$BG_PID
	wait_line "$(err serve)" 'attached: [0-9]+ probes' "$SERVE_PID"
}

answer() { # MODE: of the receiver from now on
	echo "$1" >got/mode.new
	mv got/mode.new got/mode
}

end_serve() {
	kill -s INT "$SERVE_PID"
	wait_exit "$SERVE_PID" 60 # far beyond the times that mxbpf gives a receiver
	cat "$(err serve)"
}

decode() { (cd got && "$PYTHON_OTLP" "$REPO/tests/serve/decode.py" "$@"); }

@test "A collector gets each value of the text by OTLP, with what the environment says, and no secret is told" {
	start_job
	FROM=("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://user:pass-in-url@$RECEIVER/base/v1/metrics?key=key-in-url"
		OTEL_EXPORTER_OTLP_HEADERS='authorization=Bearer%20token-in-header, x-tenant = a%2Cb'
		OTEL_RESOURCE_ATTRIBUTES='deployment.environment=test,host.name=h%201' OTEL_SERVICE_NAME=training)
	start_serve
	kill -s USR1 "$JOB_PID"
	wait_line "$(out job)" '^did 100'
	wait_lines 3 "$(out receiver)" '/v1/metrics'
	end_serve
	jq -e '.path == "/base/v1/metrics?key=key-in-url" and .headers["content-type"] == "application/x-protobuf" and
		.headers["x-tenant"] == "a,b" and .headers.authorization == "Bearer token-in-header"' got/1.head
	decode same "$PWD/m.prom"
	expect_same "$(printf '%s\n' deployment.environment=test 'host.name=h 1' 'service.instance.id=h 1' service.name=training \
		"service.version=$("$MXBPF" --version | awk '{ print $2 }')")" "$(decode resource | sort)"
	expect_re " info: sending metrics to http://$RECEIVER/base/v1/metrics\$" "$(<"$(err serve)")"
	run ! grep -E 'pass-in-url|key-in-url|token-in-header|warning' "$(err serve)"
}

@test "A collector that fails is named once, and once when it works again; what it refuses is told" {
	local mode
	start_job
	answer 503
	start_serve --otlp "http://$RECEIVER/"
	wait_line "$(err serve)" "warning: metrics cannot be sent to http://$RECEIVER/v1/metrics: the answer has the status 503"
	kill -s USR1 "$JOB_PID"
	wait_line "$(out job)" '^did 100'
	wait_lines 3 "$(out receiver)" '/v1/metrics'
	for mode in ok 404 ok endless redirect ok partial ok; do
		answer "$mode"
		case $mode in
		404) wait_lines 2 "$(err serve)" 'metrics cannot be sent' ;;
		redirect) wait_lines 3 "$(err serve)" 'metrics cannot be sent' ;;
		partial) wait_line "$(err serve)" 'metrics are refused in part' ;;
		esac
		wait_lines "$(($(wc -l <"$(out receiver)") + 3))" "$(out receiver)" '/|listening'
	done
	end_serve
	expect_same "metrics cannot be sent to http://$RECEIVER/v1/metrics: the answer has the status 503 (an error of the receiver)
metrics are sent to http://$RECEIVER/v1/metrics again
metrics cannot be sent to http://$RECEIVER/v1/metrics: the answer has the status 404 (nothing is at this path)
metrics are sent to http://$RECEIVER/v1/metrics again
metrics cannot be sent to http://$RECEIVER/v1/metrics: the answer has the status 307, a redirect, which mxbpf does not follow
metrics are sent to http://$RECEIVER/v1/metrics again
metrics are refused in part by http://$RECEIVER/v1/metrics: 3 data points, because too \\x1b[31mred
metrics are sent to http://$RECEIVER/v1/metrics again" \
		"$(grep -E 'metrics (are|cannot)' "$(err serve)" | sed 's/^[^ ]* [a-z]*: //; s/; mxbpf tries.*//')"
	run ! grep elsewhere "$(out receiver)"
	decode same "$PWD/m.prom" # nothing is missing, because the values are sums
}

# Until so many further intervals were written to the text file.
intervals() { # N
	local i before
	for ((i = 0; i < $1; i++)); do
		before=$(grep '^mxbpf_watched_seconds_total' m.prom)
		timeout "$WAIT_SECONDS" bash -c 'while grep -qFx "$0" m.prom; do read -rt 0.02 <> <(:) || :; done' "$before"
	done
}

@test "A collector that never answers, or is not there, holds neither the intervals nor the end up" {
	local port
	start_job
	answer hang
	FROM=(OTEL_EXPORTER_OTLP_TIMEOUT=500000)
	start_serve --otlp "http://$RECEIVER"
	wait_line "$(out receiver)" '/v1/metrics'
	intervals 5
	[[ $(grep -c '^got' "$(out receiver)") == 1 ]]
	end_serve # within 10 s
	FROM=(OTEL_EXPORTER_OTLP_TIMEOUT=300)
	start_serve --otlp "http://$RECEIVER"
	wait_lines 4 "$(out receiver)" '/v1/metrics'
	end_serve
	[[ $(grep -c "metrics cannot be sent to http://$RECEIVER/v1/metrics: Timeout was reached" "$(err serve)") == 1 ]]
	# Nobody listens.
	port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
	start_serve --otlp "http://127.0.0.1:$port"
	wait_line "$(err serve)" "metrics cannot be sent to http://127.0.0.1:$port/v1/metrics: Couldn't connect"
	intervals 2
	end_serve
	[[ $(grep -c 'cannot be sent' "$(err serve)") == 1 ]]
}

@test "A collector whose certificate nobody vouches for gets nothing" {
	start_job
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=x \
		-addext subjectAltName=IP:127.0.0.1 2>/dev/null
	start_bg secure env -C got "$PYTHON_OTLP" "$REPO/tests/serve/receiver.py" "$PWD/cert.pem" "$PWD/key.pem"
	wait_line "$(out secure)" '^listening'
	RECEIVER=127.0.0.1:$(awk '{ print $2; exit }' "$(out secure)")
	start_serve --otlp "https://$RECEIVER"
	wait_line "$(err serve)" "metrics cannot be sent to https://$RECEIVER/v1/metrics: SSL"
	end_serve
	run ! grep got "$(out secure)"
	FROM=("OTEL_EXPORTER_OTLP_CERTIFICATE=$PWD/cert.pem")
	start_serve --otlp "https://$RECEIVER"
	wait_lines 1 "$(out secure)" '/v1/metrics'
	end_serve
	run ! grep 'cannot be sent' "$(err serve)"
}

@test "Pyroscope and Parca get where the Python threads of each job stood, and go tool pprof reads it" {
	command -v go >/dev/null || skip "no go tool pprof"
	start_job
	FROM=(MXBPF_PROFILE_HEADERS='X-Scope-OrgID=tenant-7')
	start_serve --push-profile "http://$RECEIVER/pyro/ingest"
	wait_lines 1 "$(out receiver)" '/pyro/ingest'
	end_serve
	jq -e '.headers["x-scope-orgid"] == "tenant-7"' got/1.head
	expect_re '^mxbpf\{host=[^,]+,job_name=[^,]+,runtime=PyTorch [^,]+\}$' "$(decode ingest 1 "$PWD/pyro.pb.gz")"
	run ! grep tenant-7 "$(err serve)"
	start_serve --push-profile "http://$RECEIVER/profiles/writeraw"
	wait_lines 1 "$(out receiver)" 'writeraw'
	end_serve
	decode writeraw "$(awk '/writeraw/ { print $2; exit }' "$(out receiver)")" "$PWD/json.pb.gz" >labels
	start_serve --push-profile "http://$RECEIVER/api/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw"
	wait_lines 1 "$(out receiver)" 'WriteRaw'
	answer partial
	wait_line "$(err serve)" 'profiles are refused in part by http.*WriteRaw: grpc-status: 3.*wants a name'
	end_serve
	[[ $(grep -c 'warning: profiles' "$(err serve)") == 1 ]]
	decode grpc "$(awk '/WriteRaw/ { print $2; exit }' "$(out receiver)")" "$PWD/grpc.pb.gz" >labels_grpc
	cmp labels labels_grpc
	grep -x '__name__=mxbpf' labels
	grep '^job_name=.' labels
	for file in pyro.pb.gz json.pb.gz grpc.pb.gz; do
		go tool pprof -sample_index=samples -traces "$file" >traces
		go tool pprof -sample_index=wall -raw "$file" >raw
		cat traces raw
		grep -q 'waits_for_word' traces
		# Each look is a tenth of a second.
		awk '/^ +[0-9]+ +[0-9]+: / { sub(":", "", $2); n++; if ($2 != $1 * 100000000) exit 1 } END { exit !n }' raw
	done
}

@test "SIGHUP takes another collector, counters go on, and a URL that is wrong changes nothing" {
	start_job
	printf 'pid = %s\ninterval = 200ms\nmax-overhead = 100%%\ntextfile = m.prom\nlisten = none\notlp = http://%s/one\n' "$JOB_PID" "$RECEIVER" >serve.conf
	start_bg serve env no_proxy=127.0.0.1 "$MXBPF" serve --config serve.conf
	SERVE_PID=$BG_PID
	wait_line "$(err serve)" 'attached: [0-9]+ probes' "$SERVE_PID"
	kill -s USR1 "$JOB_PID"
	wait_line "$(out job)" '^did 100'
	wait_line "$(out receiver)" '/one/v1/metrics'
	sed -i 's|/one|/two|' serve.conf
	kill -s HUP "$SERVE_PID"
	wait_line "$(out receiver)" '/two/v1/metrics'
	sed -i 's|http:|ftp:|' serve.conf
	kill -s HUP "$SERVE_PID"
	wait_lines 3 "$(err serve)" 'attached: [0-9]+ probes'
	wait_lines "$(($(grep -c . "$(out receiver)") + 2))" "$(out receiver)" '^'
	end_serve
	expect_re '--otlp: the URL begins with http.*the options stay as they were' "$(<"$(err serve)")"
	[[ $(tail -n 1 "$(out receiver)") == *'/two/v1/metrics' ]]
	decode same "$PWD/m.prom"
}

@test "Without a URL nothing is sent, and libcurl is not in the process" {
	start_job
	FROM=(OTEL_EXPORTER_OTLP_ENDPOINT= OTEL_EXPORTER_OTLP_HEADERS=a=b)
	start_serve
	run ! grep -E 'libcurl|libssl' "/proc/$SERVE_PID/maps"
	end_serve
	FROM=("OTEL_EXPORTER_OTLP_ENDPOINT=http://$RECEIVER")
	start_serve --otlp none
	run ! grep libcurl "/proc/$SERVE_PID/maps"
	end_serve
	[[ $(wc -l <"$(out receiver)") == 1 ]]
	# What is wrong is said at the start, without its value.
	run -2 env OTEL_EXPORTER_OTLP_PROTOCOL=grpc OTEL_EXPORTER_OTLP_ENDPOINT=http://h "$MXBPF" serve --listen none
	expect_re 'OTEL_EXPORTER_OTLP_METRICS_PROTOCOL=http/protobuf' "$output"
	expect_error 2 'begins with http' env OTEL_EXPORTER_OTLP_ENDPOINT=ftp://h "$MXBPF" serve --listen none
	run -2 env OTEL_EXPORTER_OTLP_ENDPOINT=http://h OTEL_EXPORTER_OTLP_HEADERS='a=secret%0d%0aHost: x' "$MXBPF" serve --listen none
	expect_re 'OTEL_EXPORTER_OTLP_HEADERS is a list' "$output"
	[[ $output != *secret* ]]
	run -2 "$MXBPF" serve --listen none --otlp "$RECEIVER"
	expect_error 2 '/profiles/writeraw' "$MXBPF" serve --listen none --push-profile "http://$RECEIVER/profiles"
}
