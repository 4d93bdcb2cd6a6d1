#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The Python module, in a Jupyter kernel. Ground truth is what the program prints, and what the jobs count themselves.

load helpers

NOTEBOOK=$REPO/tests/notebook
JUPYTER=$O/deps/notebook/bin/python
packages() { echo "$O/deps/$1"/lib/python3*/site-packages; }

setup() {
	[[ -x $JUPYTER ]] || skip "no Jupyter at $JUPYTER: run tests/setup.sh"
	cd "$BATS_TEST_TMPDIR"
	export PYTHONPATH=$REPO/python PYTHONDONTWRITEBYTECODE=1 IPYTHONDIR=$PWD/ipython JUPYTER_RUNTIME_DIR=$PWD/runtime TMPDIR=$PWD/tmp
	mkdir tmp
}

# cells: those of cells.ipy, and after them the examples of the page on a process of a toy. Writes cells.ipynb.
cells() {
	start_toy
	{
		cat "$NOTEBOOK/cells.ipy"
		awk '$0 == "```" { on = 0 } on; $0 == "```python" { on = 1; print "# %%" }' "$REPO/docs/notebook.md" |
			sed "s/watch(1234, seconds=5/watch($READY_PID, seconds=0.2/"
	} >cells.ipy
	notebook "$PWD/cells" dataset torch
	stop_pid "$READY_PID" KILL
}

# notebook NAME [DEPS...]: runs it with the packages of these virtual environments, too. Writes the last part of NAME with .ipynb.
notebook() {
	local deps
	for deps in "${@:2}"; do PYTHONPATH+=:$(packages "$deps"); done
	"$JUPYTER" "$NOTEBOOK/run.py" "$1.ipy" "${1##*/}.ipynb"
}

@test "Every table of a recording is the same in pandas, Polars, Arrow and DuckDB, and its sums are those that the program prints" {
	"$O/unit/test_gpu_trace" gpu.mxd 20
	python3 "$REPO/tests/dataset/later.py" "$REPO/tests/golden/real.mxd" hostile.mxd --host 123 --rename Convolution=3c623ee280ae1b
	REAL=$REPO/tests/golden/real.mxd GPU=$PWD/gpu.mxd HOSTILE=$PWD/hostile.mxd notebook "$NOTEBOOK/tables" dataset
}

@test "%%mxbpf counts each operator of a cell, and the cell's value, output and error are as without it" {
	need_root
	need_torch
	take_shared notebook-cells cells
	jq -e '.cells[1].outputs | map(select(.name).text) == [["printed\n"]] and map(select(.output_type == "execute_result").data["text/plain"]) == [["64"]]' cells.ipynb
	# The traceback has the cell's own line, and none of the module.
	jq -r '.cells[3].outputs[] | select(.ename) | .traceback[]' cells.ipynb | sed 's/\x1b\[[0-9;]*m//g' >traceback
	grep -q '^----> 2 1 / 0$' traceback
	[[ $(grep -c '_magic.py' traceback) == 0 ]]
	jq -e '.cells[5].outputs == [.cells[5].outputs[] | select(.evalue == "unknown option '\''--no-such-option'\''; see: mxbpf record --help")]' cells.ipynb
	# -q shows no page, and a semicolon hides the value.
	expect_same 42 "$(jq -r '.cells[8].outputs[] | if .name == "stdout" then .text[] else tojson end' cells.ipynb | tr -d '\r' | grep .)"
}

@test "The page that a notebook shows works in a browser, in a frame that cannot reach the notebook" {
	need_root
	need_torch
	[[ -d $O/deps/perfetto/node_modules/puppeteer-core ]] || skip "no puppeteer-core; run tests/setup.sh"
	take_shared notebook-cells cells
	node "$REPO/tests/readers/notebook.mjs" "$O/deps" cells.ipynb >found.json
	jq -e '.errors == [] and .requests == [] and (.frames | length) == 4' found.json
	jq -e '.frames | all(.title | startswith("mxbpf: ")) and all(.at | startswith("about:srcdoc#")) and all(.reached == "") and any(.plots > 0)' found.json
	jq -e '.frames[0].tables[0] | map(select(.[0] == "aten::mm")[1]) == ["100"]' found.json
}

@test "An interrupt of the kernel ends mxbpf.watch() with every call so far" {
	need_root
	start_toy 50 2 hold
	"$JUPYTER" "$NOTEBOOK/interrupt.py" "$READY_PID" "$(out toy)" report.json
	same_counts "$(out toy)" report.json
	expect_same 'tmp' "$(find tmp)" # the recording and its tables went with the kernel
	end_pid "$READY_PID" USR1
}

@test "An ordinary user gets the program's message, and with sudo=True a recording of his own" {
	need_root
	local as_user=(setpriv --reuid 65534 --regid 65534 --clear-groups env "HOME=$PWD/home" "TMPDIR=$PWD/home" "PYTHONPATH=$(for_others "$REPO/python")" "MXBPF=$(for_others "$MXBPF")")
	install -d -o 65534 home
	chmod a+x . .. ../..
	printf 'Defaults use_pty\nroot ALL=(ALL) ALL\n#65534 ALL=(root) NOPASSWD: ALL\n' >sudoers
	chmod 440 sudoers
	start_ready toy "${as_user[@]}" "$(for_others "$O/toy")/toy" >/dev/null
	# shellcheck disable=SC2016 # for that shell
	unshare -m bash -c 'mount --bind sudoers /etc/sudoers && cd home && exec "$@"' _ "${as_user[@]}" \
		python3 "$(for_others "$NOTEBOOK")/sudo.py" "$READY_PID"
	"$MXBPF" report home/job.mxd -f json >report.json
	jq -e --argjson pid "$READY_PID" '.target.pid == $pid' report.json
}

@test "What fails has the program's words and its exit code: a wrong pid, a file that is no recording, no program" {
	echo nothing >file.mxd
	expect_run 0 python3 - <<-'END'
		import os
		import mxbpf
		def said(call, *args):
		    try:
		        call(*args)
		    except mxbpf.Error as e:
		        return e.code, str(e)
		code, text = said(mxbpf.watch, 4194304)
		assert code == 3 and text.startswith('no process with pid 4194304'), (code, text)
		code, text = said(mxbpf.read, 'file.mxd')
		assert code == 1 and text.startswith(os.getcwd() + '/file.mxd: '), (code, text)
		os.environ['MXBPF'] = '/nowhere/mxbpf'
		assert said(mxbpf.read, 'file.mxd') == (-1, 'cannot run /nowhere/mxbpf: No such file or directory')
		os.environ['MXBPF'], os.environ['PATH'] = '', '/nowhere'
		assert said(mxbpf.read, 'file.mxd')[1].startswith('cannot find the program mxbpf: ')
	END
	[[ -z $output ]]
}

@test "A damaged recording gives its report with a warning that names the damage, and no table that is not whole" {
	cp "$REPO/tests/golden/real.mxd" bad.mxd
	printf '\xff\xff\xff\xff' | dd of=bad.mxd bs=1 seek="$(($(stat -c %s bad.mxd) / 2))" conv=notrunc status=none
	expect_run 0 python3 - <<-'END'
		import warnings
		import mxbpf
		with warnings.catch_warnings(record=True) as caught:
		    warnings.simplefilter('always')
		    recording = mxbpf.read('bad.mxd')
		assert len(caught) == 1 and 'warning: ' in str(caught[0].message) and 'bad.mxd: damaged at ' in str(caught[0].message), caught
		assert recording.report['tables']
		try:
		    recording.spans
		except mxbpf.Error as e:
		    assert e.code == 1 and 'bad.mxd: damaged at ' in str(e), e
		    print('refused')
	END
	expect_same refused "$output"
	head -c 400000 "$REPO/tests/golden/real.mxd" >cut.mxd
	expect_re ', incomplete>$' "$(python3 -c 'import mxbpf; print(repr(mxbpf.read("cut.mxd")))')"
}

@test "The module needs nothing but Python, says what to install for a table, and finds the program that pip installed" {
	local pip=$PWD/pip
	python3 -m venv --without-pip pip
	# shellcheck disable=SC2016 # for Python
	expect_run 0 "$pip/bin/python" -c 'import sys, mxbpf; print(*sorted({"pandas", "polars", "pyarrow", "IPython", "numpy"} & set(sys.modules)))'
	[[ -z $output ]]
	expect_run 0 "$pip/bin/python" -W error - "$REPO/tests/golden/real.mxd" <<-'END'
		import sys
		import mxbpf
		recording = mxbpf.read(sys.argv[1])
		assert recording.tables == ['calls', 'memory', 'recordings', 'spans'] and recording.loss.stored == 1026
		try:
		    recording.operators.to_arrow()
		except mxbpf.Error as e:
		    print(e)
	END
	expect_same 'this needs pyarrow; run: pip install pyarrow' "$output"
	mkdir -p other/pyarrow && echo 'raise ImportError("pyarrow requires another NumPy")' >other/pyarrow/__init__.py
	# shellcheck disable=SC2016 # for Python
	PYTHONPATH+=:$PWD/other expect_error 1 'Error: this needs pyarrow, which cannot be imported: pyarrow requires another NumPy$' \
		"$pip/bin/python" -c 'import sys, mxbpf; len(mxbpf.read(sys.argv[1]).calls)' "$REPO/tests/golden/real.mxd"
	ln -s "$MXBPF" pip/bin/mxbpf
	expect_same "$("$MXBPF" --version)" "$(env -u MXBPF PATH=/nowhere "$pip/bin/python" -m mxbpf --version)"
	# pip install --user and --target put it elsewhere.
	mkdir -p user/bin target/bin
	cp -r "$REPO/python/mxbpf" target
	cp -P pip/bin/mxbpf user/bin
	mv pip/bin/mxbpf target/bin
	expect_same "$PWD/user/bin/mxbpf" "$(env -u MXBPF PATH=/nowhere PYTHONUSERBASE="$PWD/user" "$pip/bin/python" -c 'from mxbpf._program import find; print(find())')"
	expect_same "$PWD/target/bin/mxbpf" "$(env -u MXBPF PATH=/nowhere PYTHONPATH="$PWD/target" "$pip/bin/python" -c 'from mxbpf._program import find; print(find())')"
	ln -s "$MXBPF" pip/bin/mxbpf
	expect_same "$("$MXBPF" --version | cut -d' ' -f2)" "$(env -u MXBPF PATH=/nowhere "$pip/bin/python" -c 'import mxbpf; print(mxbpf.__version__)')"
	expect_error 3 'no process with pid 4194304' env -u MXBPF PATH=/nowhere "$pip/bin/python" -m mxbpf --pid 4194304
}

@test "Types of the module are complete, and a checker uses them" {
	"$JUPYTER" -m mypy --strict --disable-error-code import-untyped --disable-error-code import-not-found --cache-dir mypy "$REPO/python/mxbpf"
	echo 'import mxbpf; rows: int = mxbpf.read("job.mxd").loss.dropped; wrong: str = mxbpf.watch(1).duration_ns' >user.py
	# A checker uses an installed package only if that says that it has types (py.typed).
	mkdir site && cp -r "$REPO/python/mxbpf" site
	expect_run 1 env "PYTHONPATH=$PWD/site" "$JUPYTER" -m mypy --strict --cache-dir mypy user.py
	expect_same 'user.py:1: error: Incompatible types in assignment (expression has type "int", variable has type "str")  [assignment]' "$(grep user.py: <<<"$output")"
}

@test "The module is Python 3.8" {
	python3 - "$REPO"/python/mxbpf/*.py <<-'END'
		import ast, sys
		for path in sys.argv[1:]:
		    ast.parse(open(path).read(), path, feature_version=(3, 8))
	END
	[[ -x $O/deps/pythons/3.9/python ]] || skip "no $O/deps/pythons/3.9/python"
	expect_same calls "$("$O/deps/pythons/3.9/python" -c 'import mxbpf, sys; print(mxbpf.read(sys.argv[1]).tables[0])' "$REPO/tests/golden/real.mxd")"
}
