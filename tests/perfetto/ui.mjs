#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// ui.mjs DEPS_DIR TRACE OUT.png [--select NAME] [--around N] [--viewport 1600x900]: opens a trace in Perfetto's complete user
// interface in headless Chromium, as a user would, and takes a picture: zoomed to about N operators, one of them selected
// (NAME, else one that an arrow reaches). Exit 1 if the interface reports an import error or shows no such operator.
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { createRequire } from 'node:module';
import { parseArgs } from 'node:util';

const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.wasm': 'application/wasm',
  '.json': 'application/json', '.png': 'image/png', '.woff2': 'font/woff2' };
const CHROMIUM = ['chromium', 'chromium-browser', 'google-chrome'];
const LOAD_MS = 120_000;

function chromium() {
  for (const dir of process.env.PATH.split(':'))
    for (const name of CHROMIUM)
      if (fs.existsSync(path.join(dir, name))) return path.join(dir, name);
  throw new Error(`no ${CHROMIUM[0]} in PATH`);
}

// This build of the interface asks its server for a trace of its own; both answers make it take the one given.
function serve(root, trace) {
  const server = http.createServer((request, response) => {
    const name = decodeURIComponent(new URL(request.url, 'http://localhost').pathname);
    if (name === '/vizviewer_info' || name === '/file_info') {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
      return;
    }
    const file = name === '/localtrace' ? trace : path.join(root, name === '/' ? 'index.html' : name);
    if (file !== trace && !file.startsWith(root + path.sep) || !fs.existsSync(file)) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { 'content-type': TYPES[path.extname(file)] ?? 'application/octet-stream' });
    fs.createReadStream(file).pipe(response);
  });
  return new Promise((done) => server.listen(0, '127.0.0.1', () => done(server)));
}

// ---- in the page

async function stateOfTrace() {
  const engine = window.app.trace.engine;
  const errors = [];
  const result = await engine.query("select name, value from stats where value > 0 and severity != 'info'");
  for (const it = result.iter({ name: 'STR', value: 0 }); it.valid(); it.next()) errors.push(`${it.name} ${it.value}`);
  return { errors, importErrors: window.app.trace.traceInfo.importErrors, dialog: document.querySelector('.pf-modal, .modal-dialog')?.innerText };
}

// The operator to show: in the middle of those that an arrow reaches (or of that name).
async function findOperator(name) {
  const engine = window.app.trace.engine;
  const column = async (sql) => {
    const ids = [];
    for (const it = (await engine.query(sql)).iter({ id: 0 }); it.valid(); it.next()) ids.push(it.id);
    return ids;
  };
  const quoted = name && `'${name.replaceAll("'", "''")}'`;
  const ids = await column(`select s.id as id from slice s where s.category = 'cpu_op' ${quoted ? `and s.name = ${quoted}` : ''}
    and s.id in (select slice_in from flow) order by s.ts`);
  return ids[ids.length >> 1];
}

async function show(id, around) {
  const trace = window.app.trace;
  for (const node of trace.workspaces.currentWorkspace.flatTracks) node.expand?.();
  const row = async (sql) => (await trace.engine.query(sql)).firstRow({ a: 0n, b: 0n });
  const at = await row(`select ts as a, dur as b from slice where id = ${id}`);
  // From a little before to a little behind `around` operators about this one.
  const span = await row(`with o as (select ts, ts + dur as end, row_number() over (order by ts) as n from slice
      where category = 'cpu_op'), me as (select n from o where ts = ${at.a})
    select min(o.ts) as a, max(o.end) as b from o, me where o.n between me.n - ${around >> 1} and me.n + ${around >> 1}`);
  const margin = (span.b - span.a) / 20n;
  trace.selection.selectSqlEvent('slice', id, { scrollToSelection: true, switchToCurrentSelectionTab: true });
  trace.timeline.panSpanIntoView?.(span.a - margin, span.b + margin, { margin: 0, align: 'zoom' });
  const visible = trace.timeline.visibleWindow.constructor;
  if (visible.fromTimeSpan)
    trace.timeline.setVisibleWindow(visible.fromTimeSpan({ start: span.a - margin, end: span.b + margin, duration: span.b - span.a + 2n * margin }));
}

function titles() {
  return [...document.querySelectorAll('.pf-track__title, .pf-track__title-popup')].map((e) => e.innerText);
}

// ----

async function open(page, port) {
  const problems = [];
  page.on('pageerror', (e) => problems.push(String(e)));
  await page.goto(`http://127.0.0.1:${port}/`);
  await page.waitForFunction(() => window.app?.trace && document.querySelector('.pf-track'), { timeout: LOAD_MS });
  await page.evaluate(() => window.waitForPerfettoIdle());
  return problems;
}

async function picture(page, file, options) {
  const state = await page.evaluate(stateOfTrace);
  const id = await page.evaluate(findOperator, options.select ?? null);
  if (id !== undefined) await page.evaluate(show, id, Number(options.around));
  await page.evaluate(() => window.waitForPerfettoIdle());
  await page.screenshot({ path: file });
  return { ...state, selected: id !== undefined, tracks: await page.evaluate(titles) };
}

async function main() {
  const { values: options, positionals: [deps, trace, file] } = parseArgs({
    allowPositionals: true,
    options: { select: { type: 'string' }, around: { type: 'string', default: '40' }, viewport: { type: 'string', default: '1600x900' } },
  });
  if (!file) {
    console.error('usage: ui.mjs DEPS_DIR TRACE OUT.png [--select NAME] [--around N] [--viewport 1600x900]');
    return 2;
  }
  const [width, height] = options.viewport.split('x').map(Number);
  const puppeteer = createRequire(path.resolve(deps, 'x.js'))('puppeteer-core');
  const server = await serve(path.resolve(deps, 'ui'), path.resolve(trace));
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'mxbpf-chromium-'));
  const browser = await puppeteer.launch({
    executablePath: chromium(), headless: true, userDataDir: profile, defaultViewport: { width, height },
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync'],
  });
  try {
    const page = await browser.newPage();
    const problems = await open(page, server.address().port);
    const result = { ...await picture(page, file, options), problems };
    console.log(JSON.stringify(result, null, 2));
    return result.errors.length || result.importErrors || result.dialog || !result.selected ? 1 : 0;
  } finally {
    await browser.close();
    server.close();
    fs.rmSync(profile, { recursive: true, force: true });
  }
}

process.exitCode = await main();
