#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// page.mjs DEPS_DIR PAGE.html [PICTURE.png]: opens a page of mxbpf in headless Chromium, uses it as a person would, and prints
// what it found as JSON: requests, errors, the text without JavaScript, tables as they were and as a click sorts them, rows
// that a search leaves, what the plots and flame graphs show, violations of the rules of accessibility in both themes.
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';

const CHROMIUM = ['chromium', 'chromium-browser', 'google-chrome'];
const [deps, file, picture] = process.argv.slice(2).map((arg) => path.resolve(arg));
const load = createRequire(path.join(deps, 'perfetto/'));

function chromium() {
  for (const dir of process.env.PATH.split(':'))
    for (const name of CHROMIUM)
      if (fs.existsSync(path.join(dir, name))) return path.join(dir, name);
  throw new Error(`no ${CHROMIUM[0]} in PATH`);
}

const readTables = () =>
  Object.fromEntries([...document.querySelectorAll('section.sheet table')].map((table) => [
    table.closest('section').querySelector('h2').innerText,
    { heads: [...table.tHead.rows[0].cells].map((c) => c.innerText),
      rows: [...table.tBodies[0].rows].filter((r) => !r.hidden).map((r) => [...r.cells].map((c) => c.dataset.v ?? c.innerText)) },
  ]));

async function violations(page) {
  const result = await page.evaluate(async () => {
    const all = await window.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] });
    return all.violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => n.target.join(' ')).join(', ')}`);
  });
  return result;
}

const puppeteer = load('puppeteer-core');
const browser = await puppeteer.launch({ executablePath: chromium(), args: ['--no-sandbox', '--disable-gpu'], defaultViewport: { width: 1280, height: 900 } });
const found = { requests: [], errors: [] };
try {
  const plain = await browser.newPage();
  await plain.setJavaScriptEnabled(false);
  await plain.goto(`file://${file}`);
  found.plain = await plain.evaluate(() => document.querySelector('main').innerText);
  await plain.close();

  const page = await browser.newPage();
  page.on('request', (r) => r.url() !== `file://${file}` && found.requests.push(r.url()));
  page.on('console', (m) => ['error', 'warning'].includes(m.type()) && found.errors.push(m.text()));
  page.on('pageerror', (e) => found.errors.push(e.message));
  page.on('dialog', (d) => { found.errors.push(`dialog: ${d.message()}`); d.dismiss(); });
  await page.goto(`file://${file}`);
  found.title = await page.title();
  found.tables = await page.evaluate(readTables);
  found.plots = await page.$$eval('.plot', (all) => all.map((p) => p.getAttribute('aria-label')));
  found.flames = await page.$$eval('.flames option', (all) => all.map((o) => o.innerText));
  found.frames = await page.$$eval('.flame .d3-flame-graph-label', (all) => all.map((f) => f.textContent));
  found.scripts = await page.$$eval('script', (all) => all.filter((s) => s.type !== 'application/json').length);

  const table = await page.$('section.sheet table');
  if (table) {
    await (await table.$('thead th:nth-child(2) button')).focus();
    await page.keyboard.press('Enter');
    found.down = (await page.evaluate(readTables))[Object.keys(found.tables)[0]].rows.map((r) => r[1]);
    await page.keyboard.press('Enter');
    found.up = (await page.evaluate(readTables))[Object.keys(found.tables)[0]].rows.map((r) => r[1]);
    const search = await page.$('section.sheet .tools input');
    if (search) {
      await search.type(Object.values(found.tables)[0].rows[0][0]);
      found.searched = (await page.evaluate(readTables))[Object.keys(found.tables)[0]].rows.map((r) => r[0]);
      await search.click({ clickCount: 3 });
      await page.keyboard.press('Backspace');
    }
  }
  if (found.plots.length) {
    await page.focus('.uplot');
    await page.keyboard.press('ArrowRight');
    found.iteration = await page.$eval('.plots .detail', (d) => d.innerText);
    const over = await (await page.$('.u-over')).boundingBox();
    const scale = () => page.$eval('.u-over', () => document.querySelector('.u-axis') && [...document.querySelectorAll('canvas')].map((c) => c.toDataURL()).join('').length);
    const before = await scale();
    await page.mouse.move(over.x + over.width / 4, over.y + 20);
    await page.mouse.down();
    await page.mouse.move(over.x + over.width / 2, over.y + 20, { steps: 5 });
    await page.mouse.up();
    await new Promise((done) => setTimeout(done, 100));
    found.zoomed = (await scale()) !== before;
  }
  await page.evaluate(fs.readFileSync(load.resolve('axe-core/axe.min.js'), 'utf8'));
  found.violations = await violations(page);
  await page.click('.theme button');
  found.violations.push(...(await violations(page)));
  if (picture) await page.screenshot({ path: picture, fullPage: true });
  console.log(JSON.stringify(found));
} catch (error) {
  console.error(error.stack);
  process.exitCode = 1;
} finally {
  await browser.close();
}
