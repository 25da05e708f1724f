// The demo page in a real Chromium, against a real server. See README.md.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { chromium } from "playwright-core";

import { visit, withoutWebCodecs } from "./page.mjs";
import { drawKey, Line, record, serve } from "./server.mjs";

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const VENDOR = new URL("../../web-demo/vendor/", import.meta.url);
/** Half a second on the slower media clock. */
const SOME_SAMPLES = 12_000;
/** Longer than the silence that ends what a visitor says. */
const SILENCE_S = 2;
const LONG = "The doves are home for the night. Nobody knows who built the tall round house at the edge of the village.";
const WIDTHS = [320, 390, 768, 1280];

const folder = mkdtempSync(join(tmpdir(), "dovecote-browser-"));
/** @type {Awaited<ReturnType<typeof serve>>} */ let server;
/** @type {import("playwright-core").Browser} */ let browser;

before(async () => {
  const voice = join(folder, "voice.wav");
  record(voice, "Excuse me, could you please wait for a moment?", SILENCE_S);
  server = await serve();
  browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: [
      "--no-sandbox",
      "--autoplay-policy=no-user-gesture-required",
      "--use-fake-ui-for-media-stream",
      "--use-fake-device-for-media-stream",
      `--use-file-for-fake-audio-capture=${voice}`,
    ],
  });
});

after(async () => {
  await browser?.close();
  await server?.stop();
  rmSync(folder, { recursive: true });
});

test("text is spoken while it is written, and every way to interrupt ends in silence and tells what was heard", () =>
  visit(browser, server.url, async (here) => {
    const { page } = here;
    await here.reaches("ready");
    assert.match(await page.innerText("#codec"), /^Opus 48 kHz$/);
    await here.speak(LONG);
    await here.plays(SOME_SAMPLES);
    await page.waitForFunction(() => Number(document.documentElement.dataset.words) > 3);
    await page.waitForFunction(() => document.querySelector("#turns .now")?.textContent !== "");
    await page.keyboard.press("Escape");
    const heard = await here.heard();
    assert.ok(LONG.startsWith(heard) && heard.length < LONG.length, heard);
    await here.isSilent();
    assert.match(await here.noted("Interrupted by key"), /words heard.*silent in \d+ ms, told in \d+ ms/);
    assert.equal(here.said("context.cancelled").at(-1).heard.text, heard);

    // The next turn takes the place of the one before, and typing that of both.
    const travel = page.getByRole("button", { name: "Travel desk" });
    await travel.click();
    await here.plays(SOME_SAMPLES);
    await travel.click();
    await page.waitForFunction(() => document.querySelectorAll("#turns .note.cut").length === 2);
    await here.plays(SOME_SAMPLES);
    await page.focus("#text");
    await page.keyboard.type("x");
    await here.noted("Interrupted by typing");
    await here.isSilent();
    await page.waitForFunction(() => document.querySelector("#blocks")?.textContent?.startsWith("0 of "));
  }));

test("a browser without WebCodecs gets PCM, and the page says so", () =>
  visit(
    browser,
    server.url,
    async (here) => {
      await here.reaches("ready");
      assert.match(await here.page.innerText("#codec"), /^PCM 24 kHz, this browser decodes no Opus$/);
      await here.page.locator("#streamed").uncheck();
      await here.speak("Good night to all of you.");
      await here.plays(SOME_SAMPLES / 2);
      await here.noted("Heard to the end");
      assert.equal(Number(await here.status("played")), here.said("context.done").at(-1).samples);
      await here.reaches("ready");
    },
    { before: withoutWebCodecs },
  ));

test("a passage outlives its connection: no word is lost, and none is heard twice", async () => {
  const line = new Line(server.url);
  const url = await line.open();
  await visit(browser, url, async (here) => {
    await here.reaches("ready");
    // Slowly: there is text to write before, while and after the connection is away.
    await here.page.fill("#pace", "4");
    await here.speak(LONG);
    await here.plays(SOME_SAMPLES);
    line.cut();
    await here.page.waitForFunction(() => document.documentElement.dataset.resumes === "1");
    await here.page.locator(".wire summary").click();
    await here.page.click("#drop");
    await here.page.waitForFunction(() => document.documentElement.dataset.resumes === "2");
    await here.noted("Heard to the end");
    const [done] = here.said("context.done");
    assert.equal(done.text_chars, LONG.length);
    assert.equal(Number(await here.status("played")), done.samples);
    const written = await here.page.evaluate(() => reports.at(-1).played);
    assert.ok(written - done.samples < 1_920, `${written} samples were played of ${done.samples}: at most a packet of padding`);
    const sessions = new Set(here.said("session.ready").map((ready) => ready.session_id));
    assert.equal(sessions.size, 1);
  });
  line.close();
});

test("what is asked for while the connection is away is done when it is back", async () => {
  const line = new Line(server.url);
  const url = await line.open();
  await visit(
    browser,
    url,
    async (here) => {
      await here.reaches("ready");
      await here.page.locator("#streamed").uncheck();
      await here.speak("Good night.");
      await here.noted("Heard to the end");
      line.isDown = true;
      await here.reaches("lost");
      await here.speak("The doves are home.");
      await here.page.waitForFunction(() => document.querySelectorAll("#turns li").length === 2);
      line.isDown = false;
      await here.noted("Heard to the end");
      await here.reaches("ready");
      assert.deepEqual(here.said("context.done").map((done) => done.text_chars), ["Good night.".length, "The doves are home.".length]);
    },
    { isQuiet: true },
  );
  line.close();
});

test("the library alone: flushes and marks are answered, text without room is offered again, a session drains", async () => {
  const small = await serve(["--engine", "stub"], { DOVECOTE_LIMITS_MAX_PENDING_CHARS: "200" });
  try {
    await visit(browser, small.url, async (here) => {
      const told = await here.page.evaluate(async () => {
        const { Session } = await import("/demo/dovecote.js");
        const session = await Session.connect(`ws://${location.host}/v1/tts/stream`, { audio: { codec: "opus", pack: 5 } });
        const when = (target, type) => new Promise((resolve) => target.addEventListener(type, ({ detail }) => resolve(detail), { once: true }));
        const context = session.open();
        const frames = [];
        context.addEventListener("audio", ({ detail }) => frames.push([detail.seq, detail.pos, detail.last]));
        const [flushed, done] = [when(context, "flushed"), when(context, "done")];
        context.write("One sentence comes first. ");
        context.flush("f");
        const { text_offset } = await flushed;
        // Twice what may wait, at once; each mark means the text before it all the same.
        const [marks, offsets] = [[], []];
        context.addEventListener("mark", ({ detail }) => marks.push([detail.id, detail.text_offset]));
        for (let i = 0; i < 8; i += 1) {
          context.write("Then there are a good many more of them, all alike. ");
          context.mark(`m${i}`);
          offsets.push([`m${i}`, context.text.length]);
        }
        context.end();
        const told = { text_offset, marks, offsets, done: await done, length: context.text.length, frames };
        const next = session.open();
        next.write("The last one.");
        next.end();
        const closed = when(session, "close");
        const spoken = when(next, "done");
        session.end(true);
        return { ...told, spoken: (await spoken).text_chars, code: (await closed).code };
      });
      assert.equal(told.text_offset, "One sentence comes first. ".length);
      assert.deepEqual(told.marks, told.offsets);
      assert.equal(told.done.text_chars, told.length);
      assert.equal(told.spoken, "The last one.".length);
      assert.equal(told.code, 1000);
      // Packs are taken apart: every packet is there, and at its place.
      assert.deepEqual(told.frames, told.frames.map(([, , last], i) => [i, i * 960, last]));
      assert.equal(told.frames.length, told.done.seq_last + 1);
      assert.ok(here.said("error").some(({ code }) => code === "text_overflow"), "there was too much at once");
    });
  } finally {
    await small.stop();
  }
});

test("a voice interrupts, and when it has ended the conversation goes on", () =>
  visit(
    browser,
    server.url,
    async (here) => {
      const { page } = here;
      await here.reaches("ready");
      await page.getByRole("button", { name: "A story" }).click();
      await here.plays(SOME_SAMPLES);
      await page.click("#mic");
      await here.noted("Interrupted by voice");
      assert.equal(here.said("context.cancelled")[0].reason, "client");
      await page.waitForFunction(() => document.querySelectorAll("#turns li").length === 2);
      assert.match(await page.locator("#turns .user").first().innerText(), /you spoke for \d/);
      await page.click("#mic");
      await page.waitForFunction(() => document.documentElement.dataset.mic === "off");
      assert.equal(await page.getAttribute("#mic", "aria-pressed"), "false");
    },
    { options: { permissions: ["microphone"] } },
  ));

test("the spoken form shows what is said otherwise than it is written", () =>
  visit(browser, server.url, async (here) => {
    await here.reaches("ready");
    await here.page.check("#spoken");
    await here.page.fill("#text", "It leaves at 9:30.");
    await here.page.waitForFunction(() => document.querySelector("#said")?.textContent === "It leaves at nine thirty.");
    assert.deepEqual(await here.page.locator("#said mark").allInnerTexts(), ["nine thirty"]);
  }));

test("nothing is cut off or too wide, at any width, in light and dark", () =>
  visit(browser, server.url, async (here) => {
    const { page } = here;
    await here.reaches("ready");
    await page.getByRole("button", { name: "Small talk" }).click();
    await here.plays(SOME_SAMPLES);
    await page.getByRole("button", { name: "Travel desk" }).click();
    await page.waitForFunction(() => document.querySelector("#turns .note.cut"));
    await here.plays(SOME_SAMPLES);
    await page.locator(".wire summary").click();
    for (const colorScheme of ["light", "dark"]) {
      for (const width of WIDTHS) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize({ width, height: width < 700 ? 844 : 800 });
        assert.deepEqual(await here.overhang(), { px: 0, names: [] }, `${width} px, ${colorScheme}`);
        const to = process.env.SCREENSHOTS;
        if (to) await page.screenshot({ path: join(to, `${width}-${colorScheme}.png`), fullPage: true });
      }
    }
  }));

test("a server that asks for a key, and one that is full, are told apart", async () => {
  const keys = join(folder, "keys.toml");
  const key = drawKey(keys);
  const closed = await serve(["--engine", "stub", "--keys-file", keys, "--max-sessions", "1"]);
  const knock = async (here, given) => {
    await here.reaches("key");
    await here.page.fill("#key", given);
    await here.page.press("#key", "Enter");
  };
  const settings = { isQuiet: true };
  try {
    await visit(browser, closed.url, async (first) => {
      await knock(first, "wrong");
      await knock(first, key);
      await first.reaches("ready");
      assert.equal(await first.page.isVisible("#door"), false);
      await visit(browser, closed.url, async (second) => {
        await knock(second, key);
        await second.reaches("full");
      }, settings);
    }, settings);
  } finally {
    await closed.stop();
  }
});

test("the files of others are those that their list names", () => {
  const list = readFileSync(new URL("README.md", VENDOR), "utf8");
  const rows = [...list.matchAll(/^\| `([^`]+)` \|.*\| `([0-9a-f]{64})` \|$/gm)];
  assert.equal(rows.length, 5);
  for (const [, name, digest] of rows) {
    const bytes = readFileSync(new URL(name, VENDOR));
    const whole = name.endsWith(".gz") ? gunzipSync(bytes) : bytes;
    assert.equal(createHash("sha256").update(whole).digest("hex"), digest, name);
  }
});
