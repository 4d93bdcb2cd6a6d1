// SPDX-License-Identifier: Apache-2.0
// Sorts and searches the tables, and draws the data of the page. Texts become text nodes, never markup.
'use strict';
(() => {
	const COLORS = ['#3f7fbf', '#8f63b8', '#c2853a', '#3a9a6b', '#b0506a', '#8a8f98'];
	const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

	function make(tag, attributes, ...children) {
		const element = document.createElement(tag);
		for (const [name, value] of Object.entries(attributes || {}))
			element.setAttribute(name, value);
		element.append(...children);
		return element;
	}

	const UNITS = [['s', 1e9], ['ms', 1e6], ['us', 1e3], ['ns', 1]];
	function ns(v) {
		const [unit, of] = UNITS.find(u => Math.abs(v) >= u[1]) || UNITS[3];
		return (v / of).toPrecision(3).replace(/\.?0+$/, m => m.includes('.') ? '' : m) + ' ' + unit;
	}
	function bytes(v) {
		const names = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
		let i = 0;
		for (; Math.abs(v) >= 1024 && i < 4; i++)
			v /= 1024;
		return (i ? v.toPrecision(3) : v) + ' ' + names[i];
	}

	// Control characters and marks of direction could rewrite the line in which they stand. They are shown as in tables.
	const UNSAFE = /[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
	const hex = c => [...new TextEncoder().encode(c)].map(b => '\\x' + b.toString(16).padStart(2, '0')).join('');
	const parse = text => JSON.parse(text, (_, v) => typeof v === 'string' ? v.replace(UNSAFE, hex) : v);

	const BINARY = Array.from({length: 50}, (_, i) => 2 ** i);

	// ---- tables

	function valueOf(row, column) {
		const cell = row.cells[column], v = cell && cell.dataset.v;
		return v === undefined ? (cell ? cell.textContent : '') : v === '' ? -Infinity : +v;
	}

	function sortBy(table, head, column) {
		const down = head.getAttribute('aria-sort') !== 'descending', body = table.tBodies[0];
		const text = !head.classList.contains('n'), sign = down !== text ? -1 : 1;
		for (const other of table.tHead.rows[0].cells)
			other.removeAttribute('aria-sort');
		head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
		const order = (a, b) => a < b ? -1 : a > b ? 1 : 0;
		body.append(...[...body.rows].map(row => [valueOf(row, column), row])
			.sort((a, b) => sign * order(a[0], b[0])).map(pair => pair[1]));
	}

	const FEW = 10; // a long table shows so many rows until it is unfolded; page.css has the number, too

	function makeTable(table) {
		[...table.tHead.rows[0].cells].forEach((head, column) => {
			const button = make('button', {type: 'button'}, head.textContent);
			if (head.title)
				button.title = head.title;
			head.replaceChildren(button);
			button.addEventListener('click', () => sortBy(table, head, column));
		});
		if (table.tBodies[0].rows.length < 8)
			return;
		const n = table.tBodies[0].rows.length, count = make('span', {'aria-live': 'polite'});
		const unfold = make('button', {type: 'button', 'aria-expanded': 'true'});
		const show = all => {
			table.classList.toggle('few', !all);
			unfold.setAttribute('aria-expanded', all);
			unfold.textContent = all ? `first ${FEW} rows` : `all ${n} rows`;
		};
		unfold.addEventListener('click', () => show(table.classList.contains('few')));
		const search = make('input', {type: 'search', placeholder: 'search', 'aria-label': 'Search in this table'});
		search.addEventListener('input', () => {
			const wanted = search.value.toLowerCase();
			let shown = 0;
			if (wanted && n > FEW)
				show(true);
			for (const row of table.tBodies[0].rows) {
				row.hidden = !row.textContent.toLowerCase().includes(wanted);
				shown += !row.hidden;
			}
			count.textContent = wanted ? `${shown} of ${n} rows` : '';
		});
		table.closest('.scroll').before(make('div', {class: 'tools'}, search, ...n > FEW ? [unfold] : [], count));
		if (n > FEW)
			show(false);
	}

	// ---- plots

	const BELOW = 30; // height of an axis below a plot, in pixels
	const SECONDS = {label: 's', value: (u, v) => v === null ? '' : v.toPrecision(5)};
	const secondsAxis = () => axis(v => v + ' s', BELOW);

	function axis(values, size = 70) {
		return {stroke: css('--fg'), grid: {stroke: css('--line'), width: 1}, ticks: {stroke: css('--line')}, size,
			values: values && ((u, all) => all.map(v => v === null ? '' : values(v)))};
	}

	function plot(section, title, options, data) {
		const place = make('div', {class: 'plot', role: 'img', 'aria-label': title});
		section.append(make('h3', {}, title), place);
		const width = () => Math.max(300, (section.clientWidth || document.querySelector('main').clientWidth) - 8);
		const u = new uPlot({width: width(), height: 200, cursor: {sync: {key: 'time'}, drag: {x: true, y: false}},
			scales: {x: {time: false}, y: {range: (u, low, high) => [Math.min(0, low), high * 1.05 || 1]}}, ...options}, data, place);
		addEventListener('resize', () => u.setSize({width: width(), height: 200}));
		return u;
	}

	// A job of several loops, which are threads of processes: the choice of one stands above the plots.
	function drawLoops(section, of) {
		const loops = new Map(of.rows.map(row => [`${row[0]}/${row[6]}`, row]));
		const several = pid => [...loops.values()].filter(row => row[0] === pid).length > 1;
		const name = ([pid, , , , , , tid]) => `process ${pid}` + (several(pid) ? `, thread ${tid}` : '');
		const choice = make('select', {'aria-label': 'Loop'}, ...[...loops].map(([key, row]) => make('option', {value: key}, name(row))));
		const place = make('div');
		const draw = key => drawIterations(place, of, of.rows.filter(row => `${row[0]}/${row[6]}` === key), name(loops.get(key)));
		if (loops.size > 1)
			section.append(make('div', {class: 'tools'}, choice));
		section.append(place);
		choice.addEventListener('change', () => {
			place.replaceChildren();
			draw(choice.value);
		});
		draw(loops.keys().next().value);
	}

	function drawIterations(section, of, rows, name) {
		const first = of.columns.length;
		const parts = rows.filter(row => row.length > first);
		const detail = make('p', {class: 'detail', 'aria-live': 'polite'}, 'Drag to zoom, double-click to see all; click for one iteration.');
		const say = i => {
			const row = rows[i], told = of.parts.map((name, k) => [name, row[first + k]]).filter(part => part[1]).sort((a, b) => b[1] - a[1]);
			detail.textContent = `Iteration ${row[1]} at ${row[2].toFixed(3)} s took ${ns(row[3])}` +
				(told.length ? ': ' + told.map(([name, v]) => `${ns(v)} ${name}`).join(', ') : '') +
				(row[5] ? `; ${ns(row[5])} of work on GPUs` : '');
		};
		const label = of.each_of > 1 ? `Iterations: each point is the longest of ${of.each_of}` : 'Iterations';
		const u = plot(section, `${label}, of ${name}`, {
			axes: [secondsAxis(), axis(ns)],
			series: [SECONDS, {label: 'iteration', stroke: COLORS[0], paths: () => null, points: {show: true, size: 5, fill: COLORS[0]}, value: (u, v) => v === null ? '' : ns(v)}],
		}, [rows.map(row => row[2]), rows.map(row => row[3])]);
		u.over.addEventListener('click', () => u.cursor.idx !== null && say(u.cursor.idx));
		u.root.tabIndex = 0;
		u.root.setAttribute('aria-label', 'Iterations; arrow keys go from one to the next');
		let at = -1;
		u.root.addEventListener('keydown', e => {
			const step = {ArrowRight: 1, ArrowLeft: -1}[e.key];
			if (!step)
				return;
			e.preventDefault();
			say(at = Math.min(rows.length - 1, Math.max(0, at + step)));
		});
		section.append(detail);
		if (parts.length)
			drawParts(section, of, parts, first);
	}

	function drawParts(section, of, rows, first) {
		drawBands(section, 'What an iteration is made of', of.parts, COLORS, rows.map(row => [row[2], row.slice(first)]));
	}

	// Each row is a time in s and the ns of its parts. Bands lie on one another: series k is the sum of the parts up to k, drawn from the
	// largest sum down.
	function drawBands(section, title, names, colors, rows) {
		const used = names.map((name, k) => k).filter(k => rows.some(row => row[1][k]));
		const sums = used.map((_, n) => rows.map(row => used.slice(0, n + 1).reduce((sum, k) => sum + row[1][k], 0)));
		const order = used.map((_, n) => n).reverse();
		plot(section, title, {
			axes: [secondsAxis(), axis(ns)],
			series: [SECONDS, ...order.map(n => ({label: names[used[n]], stroke: colors[used[n]], fill: colors[used[n]], width: 0, points: {show: false}, paths: uPlot.paths.stepped({align: 1}),
				value: (u, v, series, i) => i === null ? '' : ns(rows[i][1][used[n]])}))],
		}, [rows.map(row => row[0]), ...order.map(n => sums[n])]);
	}

	// ---- GPUs: busy time and the causes of idle time

	// Busy first; waits are warm colours, work on the host is blue.
	const GPU_COLORS = ['#3a9a6b', '#c2853a', '#3f7fbf', '#6f9fd0', '#b0506a', '#c9a3b0', '#2f9e9e', '#9bb86a', '#c8a32b', '#8f63b8', '#d06f3a', '#8a8f98', '#2c5f9e',
		'#8c3f7a', '#cdb0ca'];

	function drawGpu(section, of, gpu, several) {
		const whole = gpu.ns.reduce((sum, v) => sum + v, 0) || 1, used = gpu.ns.map((_, k) => k).filter(k => gpu.ns[k] > 0);
		const order = [...used].sort((a, b) => !a ? -1 : !b ? 1 : gpu.ns[b] - gpu.ns[a]);
		const said = k => `${of.causes[k]} ${(100 * gpu.ns[k] / whole).toFixed(1)} %`;
		const name = `GPU ${gpu.gpu}` + (several ? ` of process ${gpu.pid}` : '');
		const bar = make('div', {class: 'share-bar', role: 'img', 'aria-label': `${name}, ${ns(whole)} from its first to its last work: ${order.map(said).join(', ')}`});
		const colored = (tag, k, attributes) => { const e = make(tag, attributes); e.style.background = GPU_COLORS[k]; return e; };
		for (const k of order) {
			const part = colored('span', k, {title: `${said(k)}, ${ns(gpu.ns[k])}`});
			part.style.width = `${100 * gpu.ns[k] / whole}%`;
			bar.append(part);
		}
		section.append(make('h3', {}, name), bar, make('div', {class: 'tools'}, ...order.map(k => make('span', {}, colored('span', k, {class: 'swatch'}), ' ', said(k)))));
		if (gpu.iterations.length > 1)
			drawBands(section, `${name} in each iteration` + (gpu.each_of > 1 ? `: each point is the one with the most idle time of ${gpu.each_of}` : ''),
				of.causes, GPU_COLORS, gpu.iterations.map(row => [row[0], row.slice(1)]));
	}

	function drawGpus(section, of) {
		section.hidden = false;
		const several = new Set(of.gpus.map(gpu => gpu.pid)).size > 1;
		of.gpus.forEach(gpu => drawGpu(section, of, gpu, several));
	}

	// ---- memory over time

	// A curve of each device of each process. Only recordings have it.
	function recordedCurves(of) {
		return of.devices.map(d => ({...d, xs: d.bytes.map((_, i) => (i + 0.5) * of.slice_ns / 1e9), peak_at: d.peak_bytes && Math.floor(d.peak_s * 1e9 / of.slice_ns),
			title: `${d.name} of process ${d.pid}`}));
	}

	// Of a live session only the ends of iterations are known.
	function iterationCurves(of) {
		return [...new Set(of.rows.map(row => row[0]))].map(pid => of.rows.filter(row => row[0] === pid).sort((a, b) => a[2] - b[2])).filter(rows => rows.length > 1 && rows.some(row => row[4]))
			.map(rows => ({xs: rows.map(row => row[2]), bytes: rows.map(row => row[4]), title: `Process ${rows[0][0]}, at the end of each iteration`}));
	}

	// One curve at a time, with the holders of its device; the one with the most comes first.
	function drawMemory(section, curves) {
		if (!curves.length)
			return;
		section.hidden = false;
		curves.sort((a, b) => Math.max(...b.bytes) - Math.max(...a.bytes));
		const choice = make('select', {'aria-label': 'Device'}, ...curves.map((d, i) => make('option', {value: i}, d.title)));
		const place = section.querySelector('.curves'), one = make('div');
		const draw = () => {
			const d = curves[choice.value];
			one.replaceChildren();
			drawCurve(one, d);
			section.querySelectorAll('.holders').forEach(h => { h.hidden = d.device !== undefined && h.dataset.of !== `${d.pid} ${d.device}`; });
		};
		if (curves.length > 1)
			place.append(make('div', {class: 'tools'}, choice));
		place.append(one);
		choice.addEventListener('change', draw);
		draw();
	}

	function drawCurve(place, d) {
		const peaks = d.xs.map(() => null), said = (u, v) => v === null ? '' : bytes(v);
		if (d.peak_bytes)
			peaks[Math.min(d.xs.length - 1, Math.max(0, d.peak_at))] = d.peak_bytes;
		plot(place, `${d.title}, beyond what was there when the window began` + (d.peak_bytes ? `: at most ${bytes(d.peak_bytes)}, at ${d.peak_s.toFixed(3)} s` : ''), {
			axes: [secondsAxis(), {...axis(bytes), incrs: BINARY}],
			series: [SECONDS, {label: 'live', stroke: COLORS[3], fill: COLORS[3] + '40', points: {show: false}, value: said},
				{label: 'peak', stroke: COLORS[4], paths: () => null, points: {show: true, size: 9, fill: COLORS[4]}, value: said}],
		}, [d.xs, d.bytes, peaks]);
	}

	// ---- threads and streams: a row each, a column for each slice of the part of the window that is shown

	const STATE_COLORS = [COLORS[3], COLORS[1], COLORS[0], COLORS[2], COLORS[4], '#2f9e9e', '#c8a32b'];

	function paint(canvas, slices, used, from, to) {
		const c = canvas.getContext('2d'), w = canvas.width / (to - from), height = canvas.height;
		c.clearRect(0, 0, canvas.width, height);
		for (let i = Math.floor(from); i < to; i++) {
			let y = height;
			for (const k of used) {
				const h = Math.min(y, (slices[i][k] || 0) * height / 1000);
				c.fillStyle = STATE_COLORS[k];
				c.fillRect((i - from) * w, y - h, w + 0.5, h);
				y -= h;
			}
		}
	}

	// Calls select(from, to) with shares of the element's width, while the pointer is dragged and at the end of it.
	function onDrag(element, begin, select) {
		const at = e => { const r = element.getBoundingClientRect(); return Math.min(1, Math.max(0, (e.clientX - r.left) / r.width)); };
		element.addEventListener('pointerdown', e => {
			const first = at(e), state = begin(first);
			element.setPointerCapture(e.pointerId);
			const move = e => select(state, first, at(e), false);
			const up = e => {
				element.removeEventListener('pointermove', move);
				select(state, first, at(e), true);
			};
			element.addEventListener('pointermove', move);
			element.addEventListener('pointerup', up, {once: true});
		});
	}

	let helps = 0;

	function perfettoHelp() {
		const id = `perfetto${helps++}`, text = make('div', {class: 'help perfetto', hidden: '', id},
			make('p', {}, 'This strip has shares of time. A trace has every single call of every thread and stream, and Perfetto shows it:'),
			make('pre', {class: 'said'}, 'mxbpf export job.mxd -o job.json.gz'),
			make('p', {}, 'Then open ui.perfetto.dev in a browser, choose "Open trace file", and take job.json.gz. Perfetto reads the file in the browser and ' +
				'sends it nowhere. job.mxd is the recording of this page: mxbpf record --pid PID -o job.mxd'));
		const button = make('button', {type: 'button', 'aria-expanded': 'false', 'aria-controls': id}, 'the whole timeline in Perfetto');
		button.addEventListener('click', () => {
			text.hidden = !text.hidden;
			button.setAttribute('aria-expanded', String(!text.hidden));
		});
		return [button, text];
	}

	function drawStrips(section, of) {
		const lanes = of.lanes.filter(lane => lane.slices.some(slice => slice.some(v => v)));
		if (!lanes.length)
			return;
		section.hidden = false;
		const n = lanes[0].slices.length, s = i => (i * of.slice_ns / 1e9).toFixed(3), LEAST = 8;
		const used = of.states.map((_, k) => k).filter(k => lanes.some(lane => lane.slices.some(slice => slice[k])));
		const swatch = k => { const s = make('span', {class: 'swatch'}); s.style.background = STATE_COLORS[k]; return s; };
		const all = lanes[0].slices.map((_, i) => of.states.map((_, k) => lanes.reduce((sum, lane) => sum + (lane.slices[i][k] || 0), 0) / lanes.length));
		const brush = make('div', {class: 'brush'}), small = make('canvas', {'aria-hidden': 'true', height: 28});
		const map = make('div', {class: 'map', tabindex: 0, role: 'slider', 'aria-label': 'Part of the window that is shown: arrow keys move it, plus and minus zoom, 0 shows all',
			'aria-valuemin': 0, 'aria-valuemax': n}, small, brush);
		const detail = make('p', {class: 'detail', 'aria-live': 'polite'});
		const rows = make('div', {class: 'lanes'});
		const [button, help] = perfettoHelp();
		let from = 0, to = n;
		const width = () => Math.round(Math.max(200, section.clientWidth - 216));
		const draw = () => {
			brush.style.left = `${100 * from / n}%`;
			brush.style.width = `${100 * (to - from) / n}%`;
			map.setAttribute('aria-valuenow', String(Math.round(from)));
			map.setAttribute('aria-valuetext', `${s(from)} s to ${s(to)} s of ${s(n)} s`);
			detail.textContent = `${s(from)} s to ${s(to)} s of ${s(n)} s. Drag in the map above or in a row to zoom, double-click to see all.`;
			[...rows.children].forEach((row, k) => paint(row.lastChild, lanes[k].slices, used, from, to));
		};
		const show = (a, b) => {
			const span = Math.min(n, Math.max(LEAST, b - a));
			from = Math.min(n - span, Math.max(0, a));
			to = from + span;
			draw();
		};
		const zoom = (factor, at = (from + to) / 2) => show(at - (at - from) * factor, at + (to - at) * factor);
		const pick = (a, b) => Math.abs(b - a) >= 2 && show(Math.min(a, b), Math.max(a, b));
		onDrag(map, first => to - from < n && first * n >= from && first * n <= to ? [from, to] : null,
			(moved, first, now, last) => moved ? show(moved[0] + (now - first) * n, moved[1] + (now - first) * n) : last && pick(first * n, now * n));
		map.addEventListener('keydown', e => {
			const step = (to - from) / 4;
			const act = {ArrowLeft: () => show(from - step, to - step), ArrowRight: () => show(from + step, to + step), Home: () => show(0, to - from),
				End: () => show(n - to + from, n), '+': () => zoom(0.5), ArrowUp: () => zoom(0.5), '-': () => zoom(2), ArrowDown: () => zoom(2),
				0: () => show(0, n), Escape: () => show(0, n)}[e.key];
			if (!act)
				return;
			e.preventDefault();
			act();
		});
		map.addEventListener('wheel', e => {
			e.preventDefault();
			zoom(e.deltaY > 0 ? 1.25 : 0.8, e.offsetX / map.clientWidth * n);
		}, {passive: false});
		for (const lane of lanes) {
			const canvas = make('canvas', {role: 'img', 'aria-label': `${lane.name} over time`, height: 16});
			onDrag(canvas, () => [from, to], (shown, first, now, last) => last &&
				pick(shown[0] + first * (shown[1] - shown[0]), shown[0] + now * (shown[1] - shown[0])));
			canvas.addEventListener('mousemove', e => {
				const i = Math.min(n - 1, Math.max(0, Math.floor(from + e.offsetX / canvas.width * (to - from))));
				detail.textContent = `${lane.name}, ${s(i)} s: ` + (used.filter(k => lane.slices[i][k])
					.map(k => `${(lane.slices[i][k] / 10).toFixed(0)} % ${of.states[k]}`).join(', ') || 'your Python code');
			});
			rows.append(make('div', {class: 'lane'}, make('span', {class: 'lane-name', title: `${lane.name} of process ${lane.pid}`}, lane.name), canvas));
		}
		const fit = () => {
			small.width = width();
			rows.querySelectorAll('canvas').forEach(canvas => { canvas.width = width(); });
			paint(small, all, used, 0, n);
			draw();
		};
		for (const element of [map, rows])
			element.addEventListener('dblclick', () => show(0, n));
		addEventListener('resize', fit);
		section.append(make('div', {class: 'tools'}, ...used.map(k => make('span', {}, swatch(k), ' ', of.states[k])), button), help,
			make('div', {class: 'lane'}, make('span', {class: 'lane-name'}, 'all'), map), rows, detail);
		if (of.lanes_left_out)
			section.append(make('p', {class: 'help'}, `${of.lanes_left_out} more threads or streams are not shown.`));
		fit();
	}

	// ---- flame graphs

	function tree(rows, weigh) {
		const root = {name: 'all', value: 0, children: []};
		for (const row of rows) {
			const value = weigh(row), lines = [...row[0]].reverse();
			if (!(value > 0))
				continue;
			if (row[1])
				lines.push(row[1]);
			let node = root;
			node.value += value;
			for (const line of lines) {
				let child = node.children.find(c => c.name === line);
				if (!child)
					node.children.push(child = {name: line, value: 0, children: []});
				child.value += value;
				node = child;
			}
		}
		return root;
	}

	// Down goes to the largest frame inside, up to the frame around, left and right to the neighbours.
	function walkFrames(place, say) {
		let at = null;
		place.tabIndex = 0;
		place.onkeydown = e => {
			const frames = [...place.querySelectorAll('g.frame')], datum = g => d3.select(g).datum();
			const known = new Set(frames.map(datum)), row = at && at.parent ? at.parent.children : [];
			const next = {ArrowDown: () => at && (at.children || []).filter(c => known.has(c)).sort((a, b) => b.value - a.value)[0], ArrowUp: () => at.parent,
				ArrowRight: () => row[row.indexOf(at) + 1], ArrowLeft: () => row[row.indexOf(at) - 1], Enter: () => at}[e.key];
			if (!next || !frames.length)
				return;
			e.preventDefault();
			at = at && known.has(at) ? next() || at : datum(frames[0]);
			const shown = frames.find(g => datum(g) === at);
			place.querySelectorAll('.at').forEach(g => g.classList.remove('at'));
			if (shown) {
				shown.classList.add('at');
				if (e.key === 'Enter')
					shown.dispatchEvent(new MouseEvent('click'));
			}
			say(at);
		};
	}

	// Controls and a place for a flame graph. make(kind) returns {root, label, color} of a kind: [name, ...].
	function flamePlace(section, kinds, graph, ...controls) {
		section.hidden = false;
		const choice = make('select', {'aria-label': 'What the width means'}, ...kinds.map((kind, i) => make('option', {value: i}, kind[0])));
		const search = make('input', {type: 'search', placeholder: 'search', 'aria-label': 'Search in the flame graph'});
		const reset = make('button', {type: 'button'}, 'zoom out');
		const place = make('div', {class: 'flame'});
		const detail = make('p', {class: 'detail', 'aria-live': 'polite'});
		section.append(make('div', {class: 'tools'}, choice, ...controls, search, reset), place, detail);
		let chart;
		const draw = () => {
			const {root, label, color} = graph(kinds[choice.value]);
			place.replaceChildren();
			chart = flamegraph().width(Math.max(300, section.clientWidth - 8)).cellHeight(18).minFrameSize(2).transitionDuration(0)
				.inverted(true).selfValue(false).label(label).onHover(d => { detail.textContent = label(d); })
				.setColorMapper((d, old) => d.highlight ? '#e600e6' : color(d));
			d3.select(place).datum(root).call(chart);
			place.setAttribute('role', 'group');
			place.setAttribute('aria-label', `Flame graph: ${kinds[choice.value][0]}. Arrow keys go from frame to frame, Enter zooms`);
			walkFrames(place, d => { detail.textContent = label(d); });
		};
		for (const control of [choice, ...controls])
			control.addEventListener('change', draw);
		search.addEventListener('input', () => search.value ? chart.search(search.value) : chart.clear());
		reset.addEventListener('click', () => chart.resetZoom());
		draw();
	}

	// Stacks are lists of places in the lines.
	function withLines(of) {
		for (const member of ['looks', 'operators', 'kernels'])
			of[member].forEach(row => { row[0] = row[0].map(at => of.lines[at] || '[unknown]'); });
		return of;
	}

	const nameColor = d => `hsl(${[...d.data.name].reduce((h, c) => (h * 31 + c.charCodeAt(0)) % 60, 7)}, 65%, 68%)`;

	function drawFlames(section, data) {
		const kinds = [
			['lines of Python, by the clock', data.looks, row => row[2], v => v + ' samples'],
			['operators, by their own time', data.operators, row => row[2], ns],
			['operators, by the time of their kernels and copies on GPUs', data.kernels, row => row[2], ns],
			['operators, by calls', data.operators, row => row[3], v => v + ' calls'],
			['operators, by memory that they keep', data.operators, row => row[4], bytes],
		].filter(kind => kind[1].some(row => kind[2](row) > 0));
		if (kinds.length)
			flamePlace(section, kinds, ([, rows, weigh, unit]) => {
				const root = tree(rows, weigh);
				return {root, color: nameColor, label: d => `${d.data.name}: ${unit(d.data.value)}, ${(100 * d.data.value / root.value).toFixed(1)} %`};
			});
	}

	// ---- the comparison of two sides

	const LINE = /^(?:.*\/)?([^/]*)\((\d+)\): (.*)$/s;

	// Versions of a program lie in other folders and have other line numbers. So a function is the same if its name and that of its file are,
	// and its lines are told apart only if those of one side are also lines of the other. Returns the key of a frame.
	function frameKeys(rows) {
		const lines = rows.map(list => {
			const of = new Map();
			for (const [stack] of list)
				for (const [, file, nr, name] of stack.map(line => LINE.exec(line)).filter(Boolean)) {
					const key = `${file}: ${name}`;
					of.set(key, (of.get(key) || new Set()).add(nr));
				}
			return of;
		});
		const subset = (a, b) => [...a].every(nr => b.has(nr));
		return line => {
			const m = LINE.exec(line), key = m && `${m[1]}: ${m[3]}`, [a, b] = m ? lines.map(of => of.get(key)) : [];
			return !m ? line : a && b && (subset(a, b) || subset(b, a)) ? `${m[1]}(${m[2]}): ${m[3]}` : key;
		};
	}

	// A node has what it takes of a unit on each side: of.
	function pairTree(rows) {
		const root = {name: 'all', of: [0, 0], children: new Map()}, frameKey = frameKeys(rows);
		rows.forEach((list, side) => list.forEach(([stack, name, value]) => {
			const lines = [...stack].reverse();
			if (name)
				lines.push(name);
			let node = root;
			node.of[side] += value;
			for (const line of lines) {
				const key = frameKey(line);
				let child = node.children.get(key);
				if (!child)
					node.children.set(key, child = {name: line, of: [0, 0], children: new Map()});
				child.lines = child.lines || [new Set(), new Set()];
				child.lines[side].add(line);
				child.name = child.lines[side].size > 1 ? key : side || !child.of[1] ? line : child.name;
				child.of[side] += value;
				node = child;
			}
		}));
		return root;
	}

	// The tree as wide as one side; what the side does not have is left out.
	function sideTree(node, side) {
		return {name: node.name, of: node.of, value: node.of[side],
			children: [...node.children.values()].filter(c => c.of[side] > 0).map(c => sideTree(c, side))};
	}

	function greatest(node) {
		return Math.max(Math.abs(node.of[1] - node.of[0]), ...[...node.children.values()].map(greatest));
	}

	function drawDifference(section, of) {
		const looks = of.sides.map(side => side.runs.reduce((sum, run) => sum + run.looks.reduce((n, row) => n + row[2], 0), 0));
		const rows = (member, at) => of.sides.map(side => {
			const units = side.runs.reduce((sum, run) => sum + run.units, 0) || 1;
			return side.runs.flatMap(run => run[member].map(row => [row[0], row[1], row[at] / units])).filter(row => row[2] > 0);
		});
		const share = of.sides.map((side, k) => side.runs.flatMap(run => run.looks.map(row => [row[0], row[1], 100 * row[2] / (looks[k] || 1)])));
		const number = v => v.toPrecision(3);
		const kinds = [
			[`operators, by their own time of ${of.unit === 'second' ? 'a second' : 'an iteration'}`, rows('operators', 2), ns],
			['operators, by the time of their kernels and copies on GPUs', rows('kernels', 2), ns],
			['operators, by calls', rows('operators', 3), v => number(v) + ' calls'],
			['operators, by memory that they keep', rows('operators', 4), bytes],
			['lines of Python, by the clock', share, v => number(v) + ' % of samples'],
		].filter(kind => kind[1].some(list => list.length));
		if (!kinds.length)
			return;
		const width = make('select', {'aria-label': 'Which side the width is of'}, make('option', {value: 1}, 'width of B'), make('option', {value: 0}, 'width of A'));
		section.append(make('p', {class: 'help'}, 'Red frames take more in B than in A, blue ones less; the stronger the colour, the larger the difference. ' +
			'The table says which changes are certain. What only one side has is seen in the width of that side.'));
		flamePlace(section, kinds, ([, lists, unit]) => {
			const pair = pairTree(lists), most = greatest(pair) || 1;
			const label = d => {
				const [a, b] = d.data.of, change = b - a;
				return `${d.data.name}: A ${unit(a)}, B ${unit(b)}, ${change < 0 ? '-' : '+'}${unit(Math.abs(change))}` + (a > 0 ? ` (${change < 0 ? '' : '+'}${(100 * change / a).toFixed(0)} %)` : ' (new)');
			};
			const color = d => {
				const change = (d.data.of[1] - d.data.of[0]) / most;
				return `hsl(${change < 0 ? 215 : 5}, 75%, ${92 - 32 * Math.sqrt(Math.abs(change))}%)`;
			};
			return {root: sideTree(pair, +width.value), label, color};
		}, width);
	}

	// Shares of the iterations of each side that took so long, in equal steps.
	function drawSpread(section, of) {
		const sides = of.sides.filter(side => (side.iterations || []).length > 1), BARS = 60;
		if (sides.length < 2)
			return;
		section.hidden = false;
		const at = (side, share) => side.iterations[Math.floor(share * (side.iterations.length - 1))];
		const low = Math.min(...sides.map(side => at(side, 0))), high = Math.max(...sides.map(side => at(side, 0.98)));
		const step = (high - low) / BARS || 1, xs = Array.from({length: BARS + 1}, (_, i) => low + i * step);
		const shares = sides.map(side => {
			const bars = xs.map(() => 0);
			for (const v of side.iterations)
				bars[Math.min(BARS, Math.floor((v - low) / step))] += 100 / side.iterations.length;
			return bars;
		});
		const colors = [COLORS[0], COLORS[2]], percent = v => v === null ? '' : v.toFixed(v < 10 ? 1 : 0) + ' %';
		const said = sides.map(side => `${side.side}: half of them take ${ns(at(side, 0.5))} at most, nine of ten ${ns(at(side, 0.9))}`).join('; ');
		plot(section, `Share of the iterations by how long they took. ${said}`, {
			cursor: {drag: {x: true, y: false}},
			axes: [axis(ns, BELOW), axis(percent)],
			series: [{label: 'time', value: (u, v) => v === null ? '' : ns(v)}, ...sides.map((side, i) => ({label: side.side, stroke: colors[i], fill: colors[i] + '50', width: 2,
				points: {show: false}, paths: uPlot.paths.stepped({align: 1}), value: (u, v) => percent(v)}))],
		}, [xs, ...shares]);
		section.append(make('p', {class: 'help'}, `The last step has all that took longer. Drag to zoom, double-click to see all.`));
	}

	// ---- the page

	function addTheme(main) {
		const dark = () => (document.documentElement.dataset.theme || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark';
		const button = make('button', {type: 'button'}, dark() ? 'light' : 'dark');
		button.addEventListener('click', () => {
			document.documentElement.dataset.theme = dark() ? 'light' : 'dark';
			button.textContent = dark() ? 'light' : 'dark';
			drawAll();
		});
		main.prepend(make('div', {class: 'tools theme'}, button));
	}

	function addContents(main) {
		const nav = make('nav', {class: 'contents', 'aria-label': 'Contents'});
		main.querySelectorAll('section').forEach((section, i) => {
			if (section.hidden)
				return;
			section.id = `part${document.querySelectorAll('section[id]').length}`;
			nav.append(make('a', {href: `#${section.id}`}, section.querySelector('h2').textContent), ' ');
		});
		main.querySelector('header').after(nav);
	}

	function drawAll() {
		for (const main of document.querySelectorAll('main')) {
			const read = name => { const script = main.querySelector(`script.${name}`); return script && parse(script.textContent); };
			const data = read('data'), memory = read('memory'), strip = read('strip');
			const part = name => main.querySelector(`.${name}`);
			for (const section of [part('plots'), part('idle'), part('strips'), part('flames'), part('spread')])
				while (section && section.children.length > 1)
					section.lastChild.remove();
			part('curves')?.replaceChildren();
			if (part('spread')) {
				const diff = read('diff');
				diff.sides.forEach(side => side.runs.forEach(withLines));
				drawSpread(part('spread'), diff);
				drawDifference(part('flames'), diff);
				continue;
			}
			if (part('plots') && data.iterations.rows.length > 1) {
				part('plots').hidden = false;
				drawLoops(part('plots'), data.iterations);
			}
			if (part('idle'))
				drawGpus(part('idle'), read('gpus'));
			if (part('flames'))
				drawFlames(part('flames'), withLines(data));
			if (part('held'))
				drawMemory(part('held'), memory.devices.length ? recordedCurves(memory) : iterationCurves(data.iterations));
			if (part('strips'))
				drawStrips(part('strips'), strip);
		}
	}

	addEventListener('DOMContentLoaded', () => {
		document.querySelectorAll('section.sheet table').forEach(makeTable);
		addTheme(document.querySelector('main'));
		drawAll();
		document.querySelectorAll('main').forEach(addContents);
	});
})();
