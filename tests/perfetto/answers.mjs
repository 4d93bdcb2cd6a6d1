#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// answers.mjs DEPS_DIR TRACE [BYTES]: asks Perfetto's own engine ten questions about a trace, or about its first BYTES, and
// prints the answers, one line each. A trace in JSON and one in Perfetto's format must give the same lines.
import fs from 'node:fs';
import { openTrace } from './engine.mjs';

// The engine puts the args of JSON under "args" and those of its own format under "debug".
const KEY = "substr(flat_key, instr(flat_key, '.') + 1)";
const ARGS = "(flat_key glob 'args.*' or flat_key glob 'debug.*')";
const THREADS = 'thread_track tt using (utid) join process p using (upid)';
// A process id has 31 bits in Perfetto's format, so ids that mxbpf makes up for what is no process are smaller there.
const PID = '(p.pid & 2147483647)';
// The engine reads 1.91 in JSON as 1.9100000000000001.
const value = (sql) => `round(${sql}, 6)`;
const PLACED = `slice s join thread_track tt on s.track_id = tt.id join thread t using (utid) join process p using (upid)`;

const QUESTIONS = {
  'slices of each track and name, their sums': `select ${PID} as pid, t.tid, s.category, s.name, count(*) as n, sum(dur) as ns,
    min(s.ts) as first, max(s.ts + dur) as last from ${PLACED} group by 1, 2, 3, 4 order by 1, 2, 3, 4`,
  'nesting': `select ${PID} as pid, t.tid, s.depth, count(*) as n, sum(s.ts) as starts from ${PLACED}
    group by 1, 2, 3 order by 1, 2, 3`,
  'parents': `select q.name as parent, s.name, count(*) as n from slice s join slice q on s.parent_id = q.id
    group by 1, 2 order by 1, 2`,
  'arrows': `select a.ts as from_ts, a.name as from_name, a.track_id is b.track_id as same, b.ts as to_ts, b.name as to_name
    from flow join slice a on slice_out = a.id join slice b on slice_in = b.id order by 1, 4, 2, 5`,
  'counters': `select ${PID} as pid, t.name, count(*) as n, ${value('min(value)')} as least, ${value('max(value)')} as most,
    ${value('sum(value)')} as total
    from counter c join process_counter_track t on c.track_id = t.id join process p using (upid) group by 1, 2 order by 1, 2`,
  'last values of counters': `select ${PID} as pid, t.name, ${value('value')} as value, max(c.id) > 0 as known
    from counter c join process_counter_track t on c.track_id = t.id join process p using (upid) group by 1, 2 order by 1, 2`,
  'args of slices': `select s.name, ${KEY} as key, count(*) as n, sum(int_value) as ints, round(sum(real_value), 3) as reals,
    min(string_value) as first, max(string_value) as last, count(distinct string_value) as texts
    from slice s join args using (arg_set_id) where ${ARGS} group by 1, 2 order by 1, 2`,
  'time of slices in themselves, by extract_arg': `select name, sum(coalesce(extract_arg(arg_set_id, 'args.self_ns'),
    extract_arg(arg_set_id, 'debug.self_ns'))) as ns from slice group by 1 order by 1`,
  'processes and threads, in order': `select ${PID} as pid, p.name as process, t.tid, t.name from thread t join ${THREADS} order by tt.id`,
  'instants': `select s.ts, s.name, s.category, t.type from slice s join track t on s.track_id = t.id where dur = 0
    order by 1, 2, 3, 4`,
};

async function main([deps, file, bytes]) {
  if (!file) {
    console.error('usage: answers.mjs DEPS_DIR TRACE [BYTES]');
    return 2;
  }
  const trace = new Uint8Array(fs.readFileSync(file));
  const engine = await openTrace(deps, bytes ? trace.subarray(0, Number(bytes)) : trace);
  const errors = await engine.query("select name, value from stats where value > 0 and severity in ('error', 'data_loss')");
  for (const [question, sql] of Object.entries(QUESTIONS))
    console.log(`${question}: ${JSON.stringify(await engine.query(sql))}`);
  engine.close();
  for (const e of errors) console.log(`import error: ${JSON.stringify(e)}`);
  return errors.length ? 1 : 0;
}

process.exitCode = await main(process.argv.slice(2));
