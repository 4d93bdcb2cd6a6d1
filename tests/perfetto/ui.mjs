#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// ui.mjs DEPS_DIR TRACE OUT.png [--select NAME] [--operators N] [--viewport 1600x900]: opens a trace in Perfetto's complete
// user interface in headless Chromium, as a user would, and takes a screenshot: tracks are expanded, a slice is selected
// (NAME, or one with the most arrows), and the view shows it and the N operators that begin after it. Prints its
// findings as JSON. Exit 1 if the interface reports an import error or has no such slice.
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

// This build of the interface requests a trace from its server. With these two answers it opens the given one.
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
  const dialog = document.querySelector('.pf-modal-dialog, .modal-dialog')?.innerText ?? '';
  return { errors, import_errors: window.app.trace.traceInfo.importErrors, dialog };
}

// The slice to select: the middle one of those with the most arrows, or of those with that name.
async function findSlice(name) {
  const only = name === null ? '' : `and s.name = '${name.replaceAll("'", "''")}'`;
  const result = await window.app.trace.engine.query(`with a as (
      select s.id as id, s.ts as ts, (select count(*) from flow where slice_out = s.id or slice_in = s.id) as n
      from slice s where ${name === null ? 's.id in (select slice_out from flow)' : 's.dur >= 0'} ${only})
    select id from a where n = (select max(n) from a) order by ts`);
  const ids = [];
  for (const it = result.iter({ id: 0 }); it.valid(); it.next()) ids.push(it.id);
  return ids[ids.length >> 1];
}

async function select(id) {
  const trace = window.app.trace;
  for (const node of trace.workspaces.currentWorkspace.flatTracks) node.expand?.();
  trace.selection.selectSqlEvent('slice', id, { scrollToSelection: true, switchToCurrentSelectionTab: true });
  await window.waitForPerfettoIdle();
}

// The range from shortly before the slice to the end of the last of the operators after it.
async function zoom(id, operators) {
  const { engine, timeline } = window.app.trace;
  const { begin, end } = (await engine.query(`with me as (select ts, ts + dur as end from slice where id = ${id}),
      o as (select ts + dur as end from slice where category = 'cpu_op' and ts >= (select ts from me) order by ts limit ${operators})
    select me.ts as begin, max(me.end, coalesce((select max(end) from o), 0)) as end from me`))
    .firstRow({ begin: 0n, end: 0n });
  const margin = (end - begin) / 25n + 1n;
  timeline.setViewportTime(begin - margin, end + margin);
  await window.waitForPerfettoIdle();
}

function titles() {
  return [...document.querySelectorAll('.pf-track__title-popup')].map((e) => e.innerText);
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
  const id = await page.evaluate(findSlice, options.select ?? null);
  if (id !== undefined) {
    await page.evaluate(select, id);
    await page.evaluate(zoom, id, Number(options.operators));
  }
  await page.screenshot({ path: file });
  return { ...state, selected: id !== undefined, tracks: await page.evaluate(titles) };
}

async function main() {
  const { values: options, positionals: [deps, trace, file] } = parseArgs({
    allowPositionals: true,
    options: { select: { type: 'string' }, operators: { type: 'string', default: '30' }, viewport: { type: 'string', default: '1600x900' } },
  });
  if (!file) {
    console.error('usage: ui.mjs DEPS_DIR TRACE OUT.png [--select NAME] [--operators N] [--viewport 1600x900]');
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
    return result.errors.length || result.import_errors || result.dialog || !result.selected ? 1 : 0;
  } finally {
    await browser.close();
    server.close();
    fs.rmSync(profile, { recursive: true, force: true });
  }
}

process.exitCode = await main();
