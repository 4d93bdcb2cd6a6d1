#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// engine.mjs DEPS_DIR TRACE: opens a trace in Perfetto's own engine (the WebAssembly of its user interface, run in node)
// and prints its contents by the engine as one JSON object. Exit 1 if the engine counted an import error.
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import vm from 'node:vm';
import zlib from 'node:zlib';

const CHUNK_BYTES = 32 << 20;

// The glue code expects a browser's worker: it checks for 64-bit memory, fetches its code and hides its bridge.
const GLUE_EDITS = [
  ['this.useMemory64 = hasMemory64Support();', 'this.useMemory64 = false;'],
  ['locateFile: (s) => s,', 'locateFile: (s) => s, wasmBinary: globalThis.perfettoWasm,'],
  ['const wasmBridge = new wasm_bridge_1.WasmBridge();',
    'const wasmBridge = globalThis.perfettoBridge = new wasm_bridge_1.WasmBridge();'],
];

function loadBridge(dir) {
  let glue = fs.readFileSync(path.join(dir, 'engine_bundle.node.js'), 'utf8');
  for (const [from, to] of GLUE_EDITS) {
    if (!glue.includes(from)) throw new Error(`the engine's glue has changed: no "${from}"`);
    glue = glue.replace(from, to);
  }
  const define = (name, value) => Object.defineProperty(globalThis, name, { value, configurable: true });
  define('self', globalThis);
  define('WorkerGlobalScope', function WorkerGlobalScope() {});
  define('location', { href: pathToFileURL(dir).href + '/' });
  define('require', createRequire(import.meta.url));
  globalThis.perfettoWasm = new Uint8Array(fs.readFileSync(path.join(dir, 'trace_processor.wasm')));
  vm.runInThisContext(glue, { filename: 'engine_bundle.node.js' });
  return globalThis.perfettoBridge;
}

export async function openTrace(depsDir, bytes) {
  const dir = path.resolve(depsDir, 'engine');
  console.warn = () => {}; // the engine's log; errors are in its stats
  const { EngineBase } = await import(pathToFileURL(path.join(dir, 'engine.mjs')).href);
  const bridge = loadBridge(dir);
  const { port1, port2 } = new MessageChannel();
  class Engine extends EngineBase {
    mode = 'WASM';
    id = 'node';
    rpcSendRequestBytes(data) { port2.postMessage(data); }
  }
  const engine = new Engine();
  port2.onmessage = (m) => engine.onRpcResponseBytes(m.data);
  while (!bridge.reqBufferAddr) await new Promise(setImmediate);
  bridge.initialize(port1);
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) await engine.parse(bytes.subarray(at, at + CHUNK_BYTES));
  await engine.notifyEof();
  const query = async (sql) => {
    const result = await engine.query(sql);
    const rows = [];
    for (const it = result.iter({}); it.valid(); it.next())
      rows.push(Object.fromEntries(result.columns().map((c) => [c, plain(it.get(c))])));
    return rows;
  };
  return { query, close: () => { port1.close(); port2.close(); } };
}

function plain(v) {
  return typeof v === 'bigint' && v >= Number.MIN_SAFE_INTEGER && v <= Number.MAX_SAFE_INTEGER ? Number(v) : v;
}

const ns = (us) => Math.round(us * 1000);

// The start and end of each arrow in the file, as one string.
function arrowsOf(trace) {
  const ends = new Map();
  for (const e of trace.traceEvents) {
    if (e.ph !== 's' && e.ph !== 'f') continue;
    const arrow = ends.get(e.id) ?? {};
    arrow[e.ph] = `${e.pid}/${e.tid}@${ns(e.ts)}`;
    ends.set(e.id, arrow);
  }
  return [...ends.values()].map((a) => `${a.s} -> ${a.f}`);
}

const FLOWS = `
  select src.ts as src_ts, src_t.tid as src_tid, src_p.pid as src_pid, src.category as src_cat,
         dst.ts as dst_ts, dst_t.tid as dst_tid, dst_p.pid as dst_pid, dst.category as dst_cat
  from flow join slice src on flow.slice_out = src.id join slice dst on flow.slice_in = dst.id
    join thread_track src_tt on src.track_id = src_tt.id join thread src_t on src_tt.utid = src_t.utid
    join process src_p on src_t.upid = src_p.upid
    join thread_track dst_tt on dst.track_id = dst_tt.id join thread dst_t on dst_tt.utid = dst_t.utid
    join process dst_p on dst_t.upid = dst_p.upid`;

async function inspect(query, trace) {
  const number = async (sql) => (await query(sql))[0].n;
  const flows = await query(FLOWS);
  const meant = new Set(arrowsOf(trace));
  const slices = await query('select category, count(*) as n from slice where dur >= 0 group by category order by category');
  return {
    errors: await query("select name, value from stats where value > 0 and severity != 'info'"),
    slices: Object.fromEntries(slices.map((r) => [r.category, r.n])),
    // Spans that had not ended, and slices without an end, of which a trace must have none.
    open: await query("select name from slice where category glob '*,unfinished'"),
    endless: await query('select name from slice where dur < 0'),
    flows: await number('select count(*) as n from flow'),
    // Both ends are the slices that the file names, and the arrow ends at an operator or at a GPU activity.
    flow_pairs_ok: flows.filter((f) => ['cpu_op', 'kernel', 'gpu_memcpy', 'gpu_memset'].includes(f.dst_cat) &&
      meant.has(`${f.src_pid}/${f.src_tid}@${f.src_ts} -> ${f.dst_pid}/${f.dst_tid}@${f.dst_ts}`)).length,
    // Tracks of allocations. Those of the machine and its control groups vary.
    counters: await number("select count(*) as n from counter c join counter_track t on c.track_id = t.id " +
      "where t.name glob 'memory *'"),
    thread_instants: await number("select count(*) as n from slice s join thread_track t on s.track_id = t.id " +
      "where s.category = 'cpu_instant_event'"),
    counter_tracks: await query(`select t.name as name, count(*) as n, min(c.value) as min, max(c.value) as max
      from counter c join counter_track t on c.track_id = t.id group by t.name order by t.name`),
    processes: await query('select pid, name from process where pid in (select distinct pid from thread ' +
      'join process using (upid) join thread_track using (utid)) order by pid'),
    threads: await query(`select t.tid as tid, p.pid as pid, t.name as name, count(s.id) as slices, max(s.depth) + 1 as depth
      from slice s join thread_track tt on s.track_id = tt.id join thread t on tt.utid = t.utid
      left join process p on t.upid = p.upid group by t.utid order by p.pid, t.tid`),
    operators: await query(`select name, count(*) as n, sum(dur) as total_ns from slice where category = 'cpu_op' and dur >= 0
      group by name order by name`),
    other_data: trace.otherData,
  };
}

async function main(args) {
  const [deps, file] = args.filter((a) => a !== '--json');
  if (!file) {
    console.error('usage: engine.mjs DEPS_DIR TRACE [--json]');
    return 2;
  }
  const bytes = new Uint8Array(fs.readFileSync(file));
  const text = bytes[0] === 0x1f && bytes[1] === 0x8b ? zlib.gunzipSync(bytes) : Buffer.from(bytes.buffer);
  const engine = await openTrace(deps, bytes);
  const trace = JSON.parse(text);
  const result = await inspect(engine.query, Array.isArray(trace) ? { traceEvents: trace } : trace);
  engine.close();
  console.log(JSON.stringify(result, null, args.includes('--json') ? 0 : 2));
  return result.errors.length ? 1 : 0;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href)
  process.exitCode = await main(process.argv.slice(2));
