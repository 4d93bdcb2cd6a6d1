#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// notebook.mjs DEPS_DIR NOTEBOOK.ipynb [PICTURE.png]: shows the HTML outputs of a notebook in headless Chromium, on a page with a
// secret, and prints as JSON what each frame has: its title, its tables, its plots, whether its script can reach the secret, and
// where a link to one of its parts leads. And all errors, and requests of a network.
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';

const [deps, file, picture] = process.argv.slice(2).map((arg) => path.resolve(arg));
const puppeteer = createRequire(path.join(deps, 'perfetto/'))('puppeteer-core');
const CHROMIUM = ['chromium', 'chromium-browser', 'google-chrome'];
const executablePath = process.env.PATH.split(':').flatMap((dir) => CHROMIUM.map((name) => path.join(dir, name))).find(fs.existsSync);

const outputs = JSON.parse(fs.readFileSync(file)).cells.flatMap((cell) => cell.outputs).map((output) => output.data?.['text/html']).filter(Boolean);
const html = outputs.map((lines) => [lines].flat().join('')).join('\n');
const shown = path.resolve('shown.html');
fs.writeFileSync(shown, `<!doctype html><meta charset="utf-8"><script>window.secret = 'secret'</script><body>${html}</body>`);

const browser = await puppeteer.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'], defaultViewport: { width: 1280, height: 900 } });
const found = { frames: [], requests: [], errors: [] };
try {
  const page = await browser.newPage();
  page.on('request', (r) => r.url().startsWith('http') && found.requests.push(r.url()));
  page.on('console', (m) => ['error', 'warning'].includes(m.type()) && found.errors.push(m.text()));
  page.on('pageerror', (e) => found.errors.push(e.message));
  await page.goto(`file://${shown}`, { waitUntil: 'load' });
  found.tables = await page.$$eval('table', (all) => all.map((t) => [...t.rows].map((r) => [...r.cells].map((c) => c.innerText))));
  for (const frame of page.frames().slice(1)) {
    const link = await frame.waitForSelector('a[href^="#"]');
    await link.click();
    await frame.waitForFunction(() => location.hash);
    found.frames.push(await frame.evaluate(() => {
      let reached = '';
      try { reached = window.parent.secret; } catch { /* it must not */ }
      const tables = [...document.querySelectorAll('section.sheet table')].map((t) => [...t.tBodies[0].rows].map((r) => [...r.cells].map((c) => c.innerText)));
      return { title: document.title, plots: document.querySelectorAll('.plot canvas').length, at: location.href, tables, reached };
    }));
  }
  if (picture) await page.screenshot({ path: picture });
} finally {
  await browser.close();
}
console.log(JSON.stringify(found));
