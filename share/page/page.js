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
		const count = make('span', {'aria-live': 'polite'});
		const search = make('input', {type: 'search', placeholder: 'search', 'aria-label': 'Search in this table'});
		search.addEventListener('input', () => {
			const wanted = search.value.toLowerCase();
			let shown = 0;
			for (const row of table.tBodies[0].rows) {
				row.hidden = !row.textContent.toLowerCase().includes(wanted);
				shown += !row.hidden;
			}
			count.textContent = wanted ? `${shown} of ${table.tBodies[0].rows.length} rows` : '';
		});
		table.closest('.scroll').before(make('div', {class: 'tools'}, search, count));
	}

	// ---- plots

	function axis(values) {
		return {stroke: css('--fg'), grid: {stroke: css('--line'), width: 1}, ticks: {stroke: css('--line')}, size: 70,
			values: values && ((u, all) => all.map(v => v === null ? '' : values(v)))};
	}

	function plot(section, title, options, data) {
		const place = make('div', {class: 'plot', role: 'img', 'aria-label': title});
		section.append(make('h3', {}, title), place);
		const width = () => Math.max(300, section.clientWidth - 8);
		const u = new uPlot({width: width(), height: 200, cursor: {sync: {key: 'time'}, drag: {x: true, y: false}},
			scales: {x: {time: false}, y: {range: (u, low, high) => [Math.min(0, low), high * 1.05 || 1]}}, ...options}, data, place);
		addEventListener('resize', () => u.setSize({width: width(), height: 200}));
		return u;
	}

	// A job of several processes: the choice of one stands above the plots.
	function drawProcesses(section, of) {
		const pids = [...new Set(of.rows.map(row => row[0]))];
		const choice = make('select', {'aria-label': 'Process'}, ...pids.map(pid => make('option', {value: pid}, `process ${pid}`)));
		const place = make('div');
		if (pids.length > 1)
			section.append(make('div', {class: 'tools'}, choice));
		section.append(place);
		choice.addEventListener('change', () => {
			place.replaceChildren();
			drawIterations(place, of, +choice.value);
		});
		drawIterations(place, of, pids[0]);
	}

	function drawIterations(section, of, pid) {
		const first = of.columns.length;
		const rows = of.rows.filter(row => row[0] === pid), parts = rows.filter(row => row.length > first);
		const detail = make('p', {class: 'detail', 'aria-live': 'polite'}, 'Drag to zoom, double-click to see all; click for one iteration.');
		const say = i => {
			const row = rows[i], told = of.parts.map((name, k) => [name, row[first + k]]).filter(part => part[1]).sort((a, b) => b[1] - a[1]);
			detail.textContent = `Iteration ${row[1]} at ${row[2].toFixed(3)} s took ${ns(row[3])}` +
				(told.length ? ': ' + told.map(([name, v]) => `${ns(v)} ${name}`).join(', ') : '') +
				(row[5] ? `; ${ns(row[5])} of work on GPUs` : '');
		};
		const label = of.each_of > 1 ? `Iterations: each point is the longest of ${of.each_of}` : 'Iterations';
		const u = plot(section, `${label}, of process ${pid}`, {
			axes: [axis(v => v + ' s'), axis(ns)],
			series: [{label: 's'}, {label: 'iteration', stroke: COLORS[0], paths: () => null, points: {show: true, size: 5, fill: COLORS[0]}, value: (u, v) => v === null ? '' : ns(v)}],
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
		if (rows.some(row => row[4]))
			plot(section, 'Live memory at the end of each iteration', {
				axes: [axis(v => v + ' s'), axis(bytes)],
				series: [{label: 's'}, {label: 'live', stroke: COLORS[3], fill: COLORS[3] + '40', value: (u, v) => v === null ? '' : bytes(v)}],
			}, [rows.map(row => row[2]), rows.map(row => row[4])]);
	}

	// Bands lie on one another: series k is the sum of the parts up to k, drawn from the largest sum down.
	function drawParts(section, of, rows, first) {
		const used = of.parts.map((name, k) => k).filter(k => rows.some(row => row[first + k]));
		const sums = used.map((_, n) => rows.map(row => used.slice(0, n + 1).reduce((sum, k) => sum + row[first + k], 0)));
		const order = used.map((_, n) => n).reverse();
		plot(section, 'What an iteration is made of', {
			axes: [axis(v => v + ' s'), axis(ns)],
			series: [{label: 's'}, ...order.map(n => ({label: of.parts[used[n]], stroke: COLORS[used[n]], fill: COLORS[used[n]], width: 0, points: {show: false}, paths: uPlot.paths.stepped({align: 1}),
				value: (u, v, series, i) => i === null ? '' : ns(rows[i][first + used[n]])}))],
		}, [rows.map(row => row[2]), ...order.map(n => sums[n])]);
	}

	// ---- threads and streams: a row each, a column for each slice of the window

	function drawStrips(section, of) {
		const lanes = of.lanes.filter(lane => lane.slices.some(slice => slice.some(v => v)));
		if (!lanes.length)
			return;
		section.hidden = false;
		const used = of.states.map((_, k) => k).filter(k => lanes.some(lane => lane.slices.some(slice => slice[k])));
		const colors = [COLORS[3], COLORS[1], COLORS[0], COLORS[2], COLORS[4], '#2f9e9e', '#c8a32b'];
		const swatch = k => { const s = make('span', {class: 'swatch'}); s.style.background = colors[k]; return s; };
		const zoom = make('input', {type: 'range', min: 1, max: 20, value: 1, 'aria-label': 'Zoom'});
		const detail = make('p', {class: 'detail', 'aria-live': 'polite'}, 'For every single call, open a trace of this recording in Perfetto: mxbpf export job.mxd -o job.json.gz');
		const rows = make('div', {class: 'scroll', tabindex: 0});
		section.append(make('div', {class: 'tools'}, ...used.map(k => make('span', {}, swatch(k), ' ', of.states[k])), make('label', {}, 'zoom ', zoom)), rows, detail);
		const draw = () => {
			rows.replaceChildren(...lanes.map(lane => {
				const canvas = make('canvas', {role: 'img', 'aria-label': `${lane.name} over time`}), n = lane.slices.length;
				canvas.width = Math.round(Math.max(200, section.clientWidth - 230) * zoom.value);
				canvas.height = 16;
				const c = canvas.getContext('2d'), w = canvas.width / n;
				lane.slices.forEach((slice, i) => {
					let y = 16;
					for (const k of used) {
						const h = Math.min(y, slice[k] * 16 / 1000);
						c.fillStyle = colors[k];
						c.fillRect(i * w, y - h, w + 0.5, h);
						y -= h;
					}
				});
				canvas.addEventListener('mousemove', e => {
					const i = Math.min(n - 1, Math.floor(e.offsetX / w));
					detail.textContent = `${lane.name}, ${(i * of.slice_ns / 1e9).toFixed(3)} s: ` + (used.filter(k => lane.slices[i][k])
						.map(k => `${(lane.slices[i][k] / 10).toFixed(0)} % ${of.states[k]}`).join(', ') || 'outside the runtime');
				});
				return make('div', {class: 'lane'}, make('span', {class: 'lane-name', title: `${lane.name} of process ${lane.pid}`}, lane.name), canvas);
			}));
		};
		zoom.addEventListener('input', draw);
		if (of.lanes_left_out)
			section.append(make('p', {class: 'help'}, `${of.lanes_left_out} more threads or streams are not shown.`));
		draw();
	}

	// ---- flame graphs

	function tree(rows, weigh) {
		const root = {name: 'all', value: 0, children: []};
		for (const row of rows) {
			const value = weigh(row), lines = row[0].split('\n').filter(Boolean).reverse();
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

	function drawFlames(section, data) {
		const kinds = [
			['lines of Python, by the clock', data.looks, row => row[2], v => v + ' looks'],
			['operators, by their own time', data.operators, row => row[2], ns],
			['operators, by calls', data.operators, row => row[3], v => v + ' calls'],
			['operators, by memory that they keep', data.operators, row => row[4], bytes],
		].filter(kind => kind[1].some(row => kind[2](row) > 0));
		if (!kinds.length)
			return;
		section.hidden = false;
		const choice = make('select', {'aria-label': 'What the width means'}, ...kinds.map((kind, i) => make('option', {value: i}, kind[0])));
		const search = make('input', {type: 'search', placeholder: 'search', 'aria-label': 'Search in the flame graph'});
		const reset = make('button', {type: 'button'}, 'zoom out');
		const place = make('div', {class: 'flame'});
		const detail = make('p', {class: 'detail', 'aria-live': 'polite'});
		section.append(make('div', {class: 'tools'}, choice, search, reset), place, detail);
		let chart;
		const draw = () => {
			const [name, rows, weigh, unit] = kinds[choice.value], root = tree(rows, weigh);
			const label = d => `${d.data.name}: ${unit(d.data.value)}, ${(100 * d.data.value / root.value).toFixed(1)} %`;
			place.replaceChildren();
			chart = flamegraph().width(Math.max(300, section.clientWidth - 8)).cellHeight(18).minFrameSize(2).transitionDuration(0)
				.inverted(true).selfValue(false).label(label).onHover(d => { detail.textContent = label(d); })
				.setColorMapper((d, color) => d.highlight ? '#e600e6' : `hsl(${[...d.data.name].reduce((h, c) => (h * 31 + c.charCodeAt(0)) % 60, 7)}, 65%, 68%)`);
			d3.select(place).datum(root).call(chart);
			place.setAttribute('role', 'img');
			place.setAttribute('aria-label', `Flame graph: ${name}`);
		};
		choice.addEventListener('change', draw);
		search.addEventListener('input', () => search.value ? chart.search(search.value) : chart.clear());
		reset.addEventListener('click', () => chart.resetZoom());
		draw();
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

	function drawAll() {
		for (const main of document.querySelectorAll('main')) {
			const data = JSON.parse(main.querySelector('script.data').textContent);
			const strip = main.querySelector('script.strip');
			const plots = main.querySelector('.plots'), flames = main.querySelector('.flames'), strips = main.querySelector('.strips');
			for (const section of [plots, strips, flames])
				while (section && section.children.length > 1)
					section.lastChild.remove();
			if (plots && data.iterations.rows.length > 1) {
				plots.hidden = false;
				drawProcesses(plots, data.iterations);
			}
			if (strips && strip)
				drawStrips(strips, JSON.parse(strip.textContent));
			if (flames)
				drawFlames(flames, data);
		}
	}

	addEventListener('DOMContentLoaded', () => {
		document.querySelectorAll('table').forEach(makeTable);
		addTheme(document.querySelector('main'));
		drawAll();
	});
})();
