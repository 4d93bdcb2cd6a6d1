#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// speedscope.mjs DEPS_DIR PROFILE: opens a profile in speedscope in headless Chromium, as a user would, and prints the rows
// of its sandwich view as JSON: name -> share of the total in percent. Exit 1 if it cannot be imported.
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';

const CHROMIUM = ['chromium', 'chromium-browser', 'google-chrome'];
const LOAD_MS = 60_000;
const [deps, profile] = process.argv.slice(2).map((arg) => path.resolve(arg));

function chromium() {
  for (const dir of process.env.PATH.split(':'))
    for (const name of CHROMIUM)
      if (fs.existsSync(path.join(dir, name))) return path.join(dir, name);
  throw new Error(`no ${CHROMIUM[0]} in PATH`);
}

// Rows exist only while they are visible, so the window must be high enough for all.
const VIEWPORT = { width: 1600, height: 8000 };
const readRows = () => [...document.querySelectorAll('tr')].map((row) => [...row.querySelectorAll('td')].map((d) => d.innerText.trim()));

const puppeteer = createRequire(path.join(deps, 'perfetto/'))('puppeteer-core');
const browser = await puppeteer.launch({ executablePath: chromium(), args: ['--no-sandbox', '--disable-gpu'], defaultViewport: VIEWPORT });
let status = 0;
try {
  const page = await browser.newPage();
  const says = [];
  page.on('dialog', (dialog) => { says.push(dialog.message()); dialog.dismiss(); });
  await page.goto(`file://${deps}/speedscope/index.html`);
  await (await page.waitForSelector('input[type=file]', { timeout: LOAD_MS })).uploadFile(profile);
  await page.waitForFunction(() => document.body.innerText.includes('Sandwich'), { timeout: LOAD_MS });
  await page.keyboard.press('3');
  await page.waitForFunction(() => document.querySelectorAll('tr td').length > 0, { timeout: LOAD_MS }).catch((e) => {
    throw new Error(`${says.join('; ')} ${e.message}`);
  });
  const rows = {};
  for (const [total, , name] of await page.evaluate(readRows))
    if (name) rows[name] = parseFloat(total.match(/\(([0-9.]+)%\)/)?.[1] ?? 'NaN');
  console.log(JSON.stringify(rows, null, 1));
} catch (error) {
  console.error(error.message);
  status = 1;
} finally {
  await browser.close();
}
process.exit(status);
