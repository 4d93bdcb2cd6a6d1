#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The files for Kubernetes: the chart, the profile for kubectl debug and GKE's allowlist are valid, say the same, and are enough for mxbpf.

load helpers

CHART=$REPO/share/helm/mxbpf
KUBE=$O/deps/kubernetes

setup() { cd "$BATS_TEST_TMPDIR" || return 1; }

teardown() {
	kill_started
	park_jobs
}

need_helm() {
	[[ -x $KUBE/helm ]] || skip "no helm and kubectl at $KUBE: $(tail -n 1 "$O/deps/kubernetes.log" 2>/dev/null)"
}

need_checkers() {
	[[ -x $O/deps/share/bin/kubernetes-validate && -x $O/deps/ci/bin/python ]] && return 0
	echo "no schemas of Kubernetes at $O/deps/share and $O/deps/ci: run tests/setup.sh" >&2
	return 1
}

# helm says that the chart has a symbolic link.
rendered() { "$KUBE/helm" template mxbpf "$CHART" --namespace mxbpf "$@" 2>errors || { cat errors >&2; return 1; }; }

json_of() { # FILE
	"$O/deps/share/bin/python" -c 'import json, sys, yaml
print(json.dumps([o for o in yaml.safe_load_all(sys.stdin) if o]))' <"$1"
}

# The options of the rendered DaemonSet, without folders of the image: mxbpf ends with 3, because there is no such process.
serve_accepts() { # FILE
	local args=()
	json_of "$1" >objects.json
	mapfile -t args < <(jq -r '.[] | select(.kind == "DaemonSet").spec.template.spec.containers[0].args[]' objects.json)
	((${#args[@]} > 1))
	args=("${args[@]//=\//=.\/}")
	mkdir -p recordings textfile
	expect_run 3 timeout 60 "$MXBPF" "${args[@]}" --pid 4194304
}

ALL=(--set port=9464,createNamespace=true,privateLibraries=true,serviceMonitor.enabled=true,prometheusRule.enabled=true,priorityClassName=high
	--set serviceMonitor.labels.release=prometheus,image.digest=sha256:$(printf %064d 7),podLabels.team=a,podAnnotations.b=c,serviceMonitor.scrapeTimeout=10s
	--set 'extraArgs={--interval=30s,--on=iteration > 3 * median,--job-name=main.py=resnet}' --set imagePullSecrets[0].name=secret
	--set 'serviceMonitor.metricRelabelings[0].action=drop,serviceMonitor.metricRelabelings[0].regex=x,extraEnv[0].name=A,extraEnv[0].value=b'
	--set 'extraVolumes[0].name=more,extraVolumes[0].emptyDir.sizeLimit=1Mi,extraVolumeMounts[0].name=more,extraVolumeMounts[0].mountPath=/more')
LEAST=(--set textfile=,recordings.folder=,networkPolicy.enabled=false,port=8080,affinity=null,tolerations=null)

@test "Kubernetes accepts what the chart makes of several sets of values, helm lints it, and serve accepts the options" {
	need_helm
	need_checkers
	"$KUBE/helm" lint --strict "$CHART"
	rendered >default.yaml
	rendered "${ALL[@]}" >all.yaml
	rendered "${LEAST[@]}" >least.yaml
	local file
	for file in default all least; do
		# Schemas of Kubernetes itself; the types of Prometheus' operator are below.
		"$O/deps/share/bin/python" - $file.yaml >$file.own.yaml <<-'END'
			import sys, yaml
			objects = [o for o in yaml.safe_load_all(open(sys.argv[1])) if o]
			print(yaml.safe_dump_all(o for o in objects if not o['apiVersion'].startswith('monitoring.')))
		END
		"$O/deps/share/bin/kubernetes-validate" --quiet --strict -k 1.25.0 $file.own.yaml
		"$O/deps/share/bin/kubernetes-validate" --quiet --strict $file.own.yaml
		serve_accepts $file.yaml
	done
	expect_same "$(json_of least.yaml | jq -r 'map(.kind) | sort | join(" ")')" 'DaemonSet Service ServiceAccount'
	json_of all.yaml >objects.json
	expect_same "$(jq -r 'map(.kind) | sort | join(" ")' objects.json)" \
		'DaemonSet Namespace NetworkPolicy PrometheusRule Service ServiceAccount ServiceMonitor'
	expect_same "$("$O/deps/ci/bin/python" "$REPO/tests/chart/monitoring.py" objects.json | sort)" $'PrometheusRule\nServiceMonitor'
	# What must fit together: the service's port and labels, and the alerts of the repository.
	jq -e '(map({(.kind): .}) | add) as $o | $o.Service.spec.selector as $pods
		| ($o.DaemonSet.spec.template.metadata.labels | contains($pods)) and $o.NetworkPolicy.spec.podSelector.matchLabels == $pods
		and ($o.Service.metadata.labels | contains($o.ServiceMonitor.spec.selector.matchLabels))
		and $o.ServiceMonitor.spec.endpoints[0].port == $o.Service.spec.ports[0].name and $o.ServiceMonitor.metadata.labels.release == "prometheus"
		and $o.DaemonSet.spec.template.spec.containers[0].ports[0].name == $o.Service.spec.ports[0].targetPort
		and ($o.DaemonSet.spec.template.spec.containers[0].image | endswith("mxbpf@sha256:" + "0" * 63 + "7"))' objects.json
	expect_same "$(json_of "$REPO/share/serve/alerts.yml" | jq -S '.[0]')" "$(jq -S '.[] | select(.kind == "PrometheusRule").spec' objects.json)"
}

@test "The DaemonSet has three capabilities, no token and nothing to write but two folders; daemonset.yaml is what the chart makes" {
	need_helm
	need_checkers
	rendered --set createNamespace=true >made.yaml
	expect_same "$(tail -n +4 "$REPO/share/serve/daemonset.yaml")" "$(<made.yaml)"
	json_of made.yaml >objects.json
	jq -e 'map(.kind) | sort == ["DaemonSet", "Namespace", "ServiceAccount"]' objects.json
	jq -e 'all(.[] | select(.kind == "ServiceAccount"); .automountServiceAccountToken == false)' objects.json
	jq -e '.[] | select(.kind == "DaemonSet").spec.template.spec' objects.json >pod.json
	jq -e '.automountServiceAccountToken == false and .hostPID and (.hostNetwork or .hostIPC | not)' pod.json
	jq -e '.containers | length == 1 and (.[0].securityContext | .capabilities == {drop: ["ALL"], add: ["BPF", "PERFMON", "SYS_PTRACE"]}
		and .readOnlyRootFilesystem and .privileged == false and .allowPrivilegeEscalation == false
		and .seccompProfile.type == "RuntimeDefault")' pod.json
	jq -e '[.containers[0].volumeMounts[] | select(.readOnly | not).mountPath] | sort == ["/recordings", "/textfile", "/tmp"]' pod.json
	expect_same "$(<"$REPO/VERSION")" "$(sed -n 's/^appVersion: //p' "$CHART/Chart.yaml")"
}

@test "A wrong value of the chart is refused, and the message has its name" {
	need_helm
	local wrong
	for wrong in port=70000 port=80 port=true image.pullpolicy=Always image.tag=a:b image.digest=sha256:1 textfile=relative recordings.flightRecord=30 extraArgs={x} \
		serviceMonitor.interval=often updateStrategy.type=Now privateLibraries=1 networkPolicy.from=null surprise=1; do
		echo "$wrong"
		expect_run 1 rendered --set "$wrong"
		expect_re "[/' .]$(sed 's/=.*//; s/.*[.]//' <<<"$wrong")\b" "$output"
	done
	expect_error 1 'serviceMonitor.enabled needs a port' rendered --set serviceMonitor.enabled=true
	# The schema knows every value.
	expect_same "$(json_of "$CHART/values.yaml" | jq -c '.[0] | keys')" "$(jq -c '.properties | del(.global) | keys' "$CHART/values.schema.json")"
}

@test "GKE's allowlist matches the DaemonSet of the chart: options, capabilities, folders" {
	need_helm
	need_checkers
	rendered >made.yaml
	json_of made.yaml | jq -S '.[] | select(.kind == "DaemonSet").spec.template.spec | {
		hostPID,
		containers: [.containers[] | {name, image: (.image | sub(":[^:]*$"; "")), args,
			securityContext: (.securityContext | {capabilities, privileged}), volumeMounts}],
		volumes: [.volumes[] | {name} + if .hostPath then {hostPath: (.hostPath | {path})} else {} end]}' >pod.json
	json_of "$REPO/share/gke/allowlist.yaml" >allowlist.json
	expect_same "$(<pod.json)" "$(jq -S '.[0].matchingCriteria' allowlist.json)"
	# Of each constraint that the pod breaks there is an exemption.
	jq -e '.[0] | .apiVersion == "auto.gke.io/v1" and .kind == "WorkloadAllowlist" and .exemptions == ["autogke-default-linux-capabilities",
		"autogke-disallow-hostnamespaces", "autogke-no-write-mode-hostpath"]' allowlist.json
	jq -e '.[0].metadata.name == "mxbpf-'"$(<"$REPO/VERSION")"'"' allowlist.json
}

@test "kubectl debug takes the profile: the container that it adds to a pod has three capabilities, and Kubernetes accepts it" {
	need_helm
	need_checkers
	local port
	jq -n '{apiVersion: "v1", kind: "Pod", metadata: {name: "train-0", namespace: "default"}, spec: {securityContext: {runAsNonRoot: true},
		containers: [{name: "trainer", image: "train"}]}}' >pod.json
	start_bg api python3 "$REPO/tests/chart/api.py" pod.json
	wait_line "$(out api)" '^[0-9]+$' "$BG_PID"
	port=$(<"$(out api)")
	HOME=$PWD KUBECONFIG=/dev/null timeout 60 "$KUBE/kubectl" --server "http://127.0.0.1:$port" debug pod/train-0 --target=trainer \
		--image=registry.example/mxbpf:0.1.0 --profile=general --custom="$REPO/share/kubectl/profile.yaml" --arguments-only -- --pid 1 -d 10s
	wait_exit "$BG_PID"
	tail -n 1 "$(out api)" >patch.json
	jq -e '.spec.ephemeralContainers | length == 1 and (.[0] | .targetContainerName == "trainer" and .args == ["--pid", "1", "-d", "10s"]
		and .securityContext.capabilities == {drop: ["ALL"], add: ["BPF", "PERFMON", "SYS_PTRACE"]}
		and .securityContext.runAsUser == 0 and .securityContext.runAsNonRoot == false and .securityContext.allowPrivilegeEscalation == false)' patch.json
	jq -s '.[0] * .[1]' pod.json patch.json >with.json
	"$O/deps/share/bin/kubernetes-validate" --quiet --strict -k 1.25.0 with.json
	"$O/deps/share/bin/kubernetes-validate" --quiet --strict with.json
}

@test "The capabilities of the profile are enough for a look from another container with the PID namespace of the job" {
	need_root
	[[ $("$MXBPF" check) == *"ok   uprobe_multi"* ]] || skip "perf uprobes need CAP_SYS_ADMIN"
	local caps
	caps=$("$O/deps/share/bin/python" -c 'import sys, yaml
print("".join(",+" + c.lower() for c in yaml.safe_load(sys.stdin)["securityContext"]["capabilities"]["add"]))' <"$REPO/share/kubectl/profile.yaml")
	expect_same "$caps" ,+bpf,+perfmon,+sys_ptrace
	start_bg job unshare --pid --mount --fork --mount-proc --kill-child "$O/toy/libtorch_cpu.so"
	wait_line "$(out job)" '^ready 1$' "$BG_PID"
	# Another mount namespace, where the folder of the job's library is empty and the rest is read-only, as /sys is in a container.
	cat >look <<-'END'
		exec 9<"$2"
		mount --make-rprivate /
		mount -t proc proc /proc
		mount -o remount,ro /sys
		mount -t tmpfs none "$1"
		mount -t tmpfs none /tmp
		cat <&9 >/tmp/mxbpf
		chmod +x /tmp/mxbpf
		exec 9<&-
		mount -o remount,bind,ro /
		exec setpriv --bounding-set "-all$3" --inh-caps=-all --no-new-privs /tmp/mxbpf "${@:4}"
	END
	look() { timeout 60 nsenter --pid="/proc/$BG_PID/ns/pid_for_children" unshare --mount --fork bash -e look "$O/toy" "$MXBPF" "$caps" "$@"; }
	look --probes op --pid 1 -d 300ms -f json >tables.json
	jq -e '.target.pid == 1 and (.tables.operator[] | select(.name == "aten::honest").count > 0) and .loss.dropped == 0' tables.json
	look list | grep -q '^1 .* yes '
	look record -q --probes op --pid 1 -d 300ms -o /proc/1/cwd/job.mxd # into the file system of the job
	"$MXBPF" report job.mxd -o job.json
	jq -e '.tables.operator[] | select(.name == "aten::honest").count > 0' job.json
	# Without one of them there is no look.
	caps=,+bpf,+perfmon
	expect_error 4 'CAP_SYS_PTRACE' look --probes op --pid 1 -d 300ms
}
