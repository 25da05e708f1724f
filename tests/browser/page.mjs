// The page as a visitor has it, and what may be asked of it.

import assert from "node:assert/strict";

/** Longest wait for anything: a debug build on a machine that has other things to do. */
const PATIENCE_MS = 60_000;
/** What the nano voice is far above when it speaks, and no silence reaches. */
const LOUD = 0.02;
/** Reports in which silence has to last: 0.4 s. */
const REPORTS = 10;

/**
 * Writes down what the audio thread says it plays, and what the page last asked it to clear; the page does not know of it.
 * A report has the number of the clear before it.
 */
function eavesdrop() {
  const Original = globalThis.AudioWorkletNode;
  globalThis.reports = [];
  globalThis.askedToClear = 0;
  globalThis.AudioWorkletNode = class extends Original {
    constructor(audio, name, options) {
      super(audio, name, options);
      if (name !== "dovecote-player") return;
      let cleared = 0;
      this.port.addEventListener("message", ({ data }) => {
        if (data.type === "cleared") cleared = data.id;
        if (data.type === "report") globalThis.reports.push({ ...data, cleared });
      });
      const post = this.port.postMessage.bind(this.port);
      this.port.postMessage = (message, moved) => {
        if (message.type === "clear") globalThis.askedToClear = message.id;
        post(message, moved);
      };
    }
  };
}

/** A browser without WebCodecs, as every one is for a page without TLS on another machine. */
export function withoutWebCodecs() {
  delete globalThis.AudioDecoder;
}

/**
 * Opens the page, gives it to `act`, and demands that it never complained and asked nobody else.
 * @param {import("playwright-core").Browser} browser
 * @param {string} url
 * @param {(visit: Visit) => Promise<void>} act
 * @param {{options?: object, before?: () => void, isQuiet?: boolean}} [settings] `before` runs before the page's own
 *   scripts; `isQuiet`: requests are refused on purpose, and the browser says so.
 */
export async function visit(browser, url, act, { options = {}, before, isQuiet = false } = {}) {
  const context = await browser.newContext(options);
  try {
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    await page.addInitScript(eavesdrop);
    if (before) await page.addInitScript(before);
    const complaints = [];
    page.on("console", (message) => ["error", "warning"].includes(message.type()) && complaints.push(message.text()));
    page.on("pageerror", (error) => complaints.push(String(error)));
    const { host } = new URL(url);
    const asked = [];
    page.on("request", (request) => asked.push(new URL(request.url()).host));
    const here = new Visit(page);
    page.on("websocket", (socket) => {
      asked.push(new URL(socket.url()).host);
      socket.on("framereceived", ({ payload }) => typeof payload === "string" && here.messages.push(JSON.parse(payload)));
    });
    await page.goto(url);
    await act(here);
    assert.deepEqual([...new Set(asked)], [host], "the page asks its own server and nobody else");
    if (!isQuiet) assert.deepEqual(complaints, []);
  } finally {
    await context.close();
  }
}

/** One page that is open. */
export class Visit {
  /** @param {import("playwright-core").Page} page */
  constructor(page) {
    this.page = page;
    /** What the server said, the oldest first. */
    this.messages = [];
  }

  /** Waits for a state of the connection. */
  reaches(state) {
    return this.page.waitForFunction((wanted) => document.documentElement.dataset.state === wanted, state);
  }

  /** Waits until sound of the latest passage was played: loud, and so many samples of it. */
  plays(samples) {
    return this.page.waitForFunction(
      ([samples, loud]) =>
        Number(document.documentElement.dataset.played) > samples && reports.slice(-50).some(({ peak }) => peak > loud),
      [samples, LOUD],
    );
  }

  /** Waits until an interruption is told; returns what was heard. */
  async heard() {
    const handle = await this.page.waitForFunction(() => document.documentElement.dataset.heard !== undefined);
    await handle.dispose();
    return this.status("heard");
  }

  /** Demands that nothing more is played: the first reports behind the latest clear have no sound in them. */
  async isSilent() {
    // Reports of the time before may still be under way; their number tells them apart.
    await this.page.waitForFunction((some) => reports.filter(({ cleared }) => cleared === askedToClear).length >= some, REPORTS);
    const told = await this.page.evaluate(() => reports.filter(({ cleared }) => cleared === askedToClear));
    assert.deepEqual(told.filter(({ peak, played }) => peak > 0 || played > 0), []);
  }

  /** What the root element says of the page. */
  status(name) {
    return this.page.evaluate((name) => document.documentElement.dataset[name], name);
  }

  /** Waits until the note of the latest passage begins so. */
  async noted(start) {
    await this.page.waitForFunction((start) => document.querySelector("#turns .note")?.textContent?.startsWith(start), start);
    return this.page.locator("#turns .note").first().innerText();
  }

  /** Speaks what is typed. */
  async speak(text) {
    await this.page.fill("#text", text);
    await this.page.press("#text", "Enter");
  }

  /** What the server said of a type, the oldest first. */
  said(type) {
    return this.messages.filter((message) => message.type === type);
  }

  /** How wide the page is beyond its window, and what has text that is cut off. */
  overhang() {
    return this.page.evaluate(() => {
      const all = [...document.querySelectorAll("button, label, h1, h2, p, dt, dd, output, summary")];
      const isCut = (each) => each.checkVisibility() && !each.matches(".hidden") && each.scrollWidth > each.clientWidth + 1;
      // What stands in a line has no width of its own that it could exceed.
      const names = all.filter((each) => each.clientWidth > 0 && isCut(each)).map((each) => each.id || each.textContent);
      return { px: Math.max(0, document.documentElement.scrollWidth - innerWidth), names };
    });
  }
}
