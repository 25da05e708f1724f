// The demo page in a real Chromium, against a real server. See README.md.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const BINARY = process.env.DOVECOTE ?? `${ROOT}/target/debug/dovecote`;
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
/** Longest wait for anything: a debug build on a machine that has other things to do. */
const PATIENCE_MS = 60_000;
/** Half a second on the slower media clock. */
const SOME_SAMPLES = 12_000;
const SIZES = { desktop: { width: 1180, height: 900 }, phone: { width: 390, height: 844 } };

const server = spawn(BINARY, ["serve", "--listen", "127.0.0.1:0"], { cwd: ROOT, stdio: ["ignore", "ignore", "pipe"] });
const browser = await chromium.launch({
  executablePath: CHROMIUM,
  args: ["--autoplay-policy=no-user-gesture-required", "--no-sandbox"],
});
try {
  const base = await demoAddress();
  await speaksAndIsInterrupted(base);
  await speaksAndIsInterrupted(`${base}?codec=pcm`);
  for (const [size, viewport] of Object.entries(SIZES)) {
    for (const colorScheme of ["light", "dark"]) await fits(base, size, { viewport, colorScheme });
  }
  console.log("the demo page holds");
} finally {
  await browser.close();
  server.kill();
}

/** The address that the server prints. */
async function demoAddress() {
  for await (const line of createInterface(server.stderr)) {
    const found = /http:\S+\/demo\//.exec(line);
    if (found) return found[0];
  }
  throw new Error("the server prints no address of the demo page");
}

/** Opens the page, gives it to `act`, and demands that it never complained and reached for nobody else. */
async function visit(url, options, act) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  const complaints = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => {
    if (new URL(request.url()).host !== new URL(url).host) complaints.push(`asked for ${request.url()}`);
  });
  await page.goto(url);
  await reaches(page, "ready");
  await act(page);
  assert.deepEqual(complaints, []);
  await context.close();
}

function reaches(page, state) {
  return page.waitForFunction((wanted) => document.documentElement.dataset.state === wanted, state);
}

function plays(page) {
  return page.waitForFunction((samples) => Number(document.documentElement.dataset.played) > samples, SOME_SAMPLES);
}

function notes(page) {
  return page.locator("#turns .note").allInnerTexts();
}

async function speaksAndIsInterrupted(url) {
  await visit(url, {}, async (page) => {
    const text = await page.inputValue("#text");
    await page.focus("#text");
    await page.keyboard.press("Enter");
    await plays(page);
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => document.documentElement.dataset.heard !== undefined);
    const heard = await page.evaluate(() => document.documentElement.dataset.heard);
    assert.ok(text.startsWith(heard) && heard.length < text.length, heard);

    // The next turn takes the place of the one before, and typing that of both.
    const travel = page.getByRole("button", { name: "Travel desk" });
    await travel.click();
    await plays(page);
    await travel.click();
    await page.waitForFunction(() => document.querySelectorAll("#turns .note.cut").length === 2);
    await plays(page);
    await page.focus("#text");
    await page.keyboard.type("x");
    await page.waitForFunction(() => document.querySelectorAll("#turns .note.cut").length === 3);
    assert.equal((await notes(page)).filter((note) => note.startsWith("Interrupted")).length, 3);

    await page.locator("#streamed").uncheck();
    await page.fill("#text", "Good night.");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.querySelector("#turns .note")?.textContent?.startsWith("Heard to the end"));
    await reaches(page, "ready");
  });
}

async function fits(url, name, options) {
  await visit(url, options, async (page) => {
    await page.getByRole("button", { name: "Small talk" }).click();
    await plays(page);
    await page.getByRole("button", { name: "Travel desk" }).click();
    await page.waitForFunction(() => document.querySelector("#turns .note.cut"));
    await plays(page);
    const overhang = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(overhang <= 0, `${name}: ${overhang} px too wide`);
    const folder = process.env.SCREENSHOTS;
    if (folder) await page.screenshot({ path: `${folder}/${name}-${options.colorScheme}.png`, fullPage: true });
  });
}
