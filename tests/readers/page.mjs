#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// page.mjs DEPS_DIR PAGE.html [PICTURE.png]: opens a page of mxbpf in headless Chromium, uses it as a person would, and prints
// what it found as JSON: requests, errors, the text without JavaScript, tables as they were and as a click sorts them, rows
// that a search leaves, what the plots, the strip and the flame graphs show, elements that no page of mxbpf has, characters that
// rewrite a line, violations of the rules of accessibility in both themes.
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
  found.bars = await page.$$eval('.share-bar', (all) => all.map((b) => b.getAttribute('aria-label')));
  found.flames = await page.$$eval('.flames option', (all) => all.map((o) => o.innerText));
  found.frames = await page.$$eval('.flame .d3-flame-graph-label', (all) => all.map((f) => f.textContent));
  found.parts = await page.$$eval('section', (all) => all.filter((s) => !s.hidden).map((s) => s.querySelector('h2').innerText));
  found.explained = await page.$$eval('.columns dt', (all) => all.map((t) => t.textContent));
  found.holders = await page.$$eval('.held .bars tbody td:nth-child(3)', (all) => all.map((c) => c.innerText));
  found.scripts = await page.$$eval('script', (all) => all.filter((s) => s.type !== 'application/json').length);

  const unfold = await page.$('section.sheet .tools button[aria-expanded]');
  if (unfold) {
    const shown = () => unfold.evaluate((b) => [...b.closest('section').querySelector('tbody').rows].filter((r) => r.checkVisibility()).length);
    found.folded = await shown();
    await unfold.click();
    found.unfolded = await shown();
  }

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
  if (await page.$('.plots .uplot')) {
    await page.focus('.plots .uplot');
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
  if (await page.$('.map')) {
    const shown = () => page.$eval('.map', (m) => m.getAttribute('aria-valuetext'));
    found.strip = { whole: await shown() };
    await page.focus('.map');
    await page.keyboard.press('+');
    await page.keyboard.press('ArrowRight');
    found.strip.zoomed = await shown();
    await page.keyboard.press('0');
    found.strip.again = await shown();
    const map = await (await page.$('.map')).boundingBox();
    await page.mouse.move(map.x + map.width / 4, map.y + 5);
    await page.mouse.down();
    await page.mouse.move(map.x + map.width / 2, map.y + 5, { steps: 5 });
    await page.mouse.up();
    found.strip.dragged = await shown();
    found.strip.hidden = await page.$eval('.perfetto', (p) => p.hidden);
    await (await page.$('[aria-controls^=perfetto]')).press('Enter');
    found.strip.shown = await page.$eval('.perfetto', (p) => p.innerText);
  }
  if (await page.$('.flame')) {
    found.walked = [];
    await page.mouse.move(0, 0); // a frame below the pointer would tell of itself
    await page.focus('.flame');
    for (const key of ['ArrowDown', 'ArrowDown']) {
      await page.keyboard.press(key);
      found.walked.push(await page.$eval('.flames .detail', (d) => d.innerText));
    }
  }
  found.planted = await page.$$eval('img, u, iframe, object, [onerror], [onclick], [href^="javascript"]', (all) => all.map((e) => e.outerHTML.slice(0, 200)));
  // All that the script has drawn and read: control characters, marks of direction, separators of lines.
  found.unsafe = await page.evaluate(() => document.documentElement.outerHTML
    .match(/.{0,40}[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g)?.map((text) => JSON.stringify(text)) ?? []);
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
