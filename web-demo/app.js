/**
 * The demo page: a text, or a stand-in for a language model, speaks through `dovecote.v1`; a key or a click interrupts.
 *
 * For whoever watches the page from outside, the root element says `data-state`, `data-played` (samples of the latest
 * passage) and `data-heard` (its text, after an interruption).
 *
 * @module app
 */

import { Session } from "./dovecote.js";
import { SAMPLES, stream } from "./samples.js";
import { chooseCodec, Speaker } from "./speaker.js";
import { element, fill, LevelPlot, showMessage, showNumber, showState, Turn } from "./view.js";

const PLAYED_EVERY_MS = 250;
const RETRY_FIRST_MS = 500;
const RETRY_LAST_MS = 8_000;
/** Close codes after which the page waits for its visitor: nobody was there. */
const CLOSED_IDLE = 4408;
const NOTHING = "–";

const ui = {
  text: /** @type {HTMLTextAreaElement} */ (element("text")),
  speak: /** @type {HTMLButtonElement} */ (element("speak")),
  stop: /** @type {HTMLButtonElement} */ (element("stop")),
  style: /** @type {HTMLSelectElement} */ (element("style")),
  voice: /** @type {HTMLSelectElement} */ (element("voice")),
  streamed: /** @type {HTMLInputElement} */ (element("streamed")),
  pace: /** @type {HTMLInputElement} */ (element("pace")),
};
const status = document.documentElement.dataset;
const levels = new LevelPlot(/** @type {HTMLCanvasElement} */ (element("level")));

/** A passage on its way: from the first word written to the last sample heard. */
class Passage {
  /** Ends the writing. */
  writing = new AbortController();
  startedAt = performance.now();
  /** Where the sound is known to be in the text: `[pos, code points]`, from the commits. */
  points = [[0, 0]];
  /** @type {number | null} The pos behind the last real sample, once it is known. */
  samples = null;
  /** @type {import("./speaker.js").Report | null} */
  report = null;
  /** Position of the listener when it was silenced. */
  stoppedAt = 0;
  hasPacket = false;
  hasSound = false;

  /**
   * @param {import("./dovecote.js").Context} context
   * @param {Turn} turn
   */
  constructor(context, turn) {
    this.context = context;
    this.turn = turn;
  }

  /** Position of the listener. */
  get played() {
    return Math.min(this.report?.played ?? 0, this.samples ?? Infinity);
  }

  /** UTF-16 units heard, evenly between what is known. */
  get heardUnits() {
    const next = this.points.findIndex(([pos]) => pos > this.played);
    // Whole words only: nobody hears half a letter.
    const units = (/** @type {number} */ points) =>
      [...this.context.text].slice(0, points).join("").replace(/\S+$/, "").length;
    if (next < 0) return units(this.points.at(-1)[1]);
    const [[from, first], [to, last]] = [this.points[next - 1], this.points[next]];
    return units(Math.floor(first + ((last - first) * (this.played - from)) / (to - from)));
  }
}

/** @type {Session | null} */ let session = null;
/** @type {Speaker | null} */ let speaker = null;
/** @type {Passage | null} */ let current = null;
let retryMs = RETRY_FIRST_MS;
/** Two quick clicks must not begin two passages. */
let isStarting = false;
const codec = await chooseCodec(new URLSearchParams(location.search).get("codec") === "pcm");

/** Connects, and again when the connection is lost. */
async function connect() {
  showState("connecting", "connecting");
  const url = new URL("/v1/tts/stream", location.href);
  url.protocol = url.protocol.replace("http", "ws");
  try {
    session = await Session.connect(url, { audio: codec });
  } catch {
    return retry();
  }
  retryMs = RETRY_FIRST_MS;
  session.addEventListener("message", (event) => showMessage(/** @type {CustomEvent} */ (event).detail));
  session.addEventListener("close", (event) => lost(/** @type {CustomEvent} */ (event).detail.code));
  fill(ui.voice, session.ready.voices.map((/** @type {any} */ voice) => voice.voice_id ?? voice.name));
  showStyles();
  showIdle();
}

function retry() {
  showState("offline", "no server, trying again");
  setTimeout(connect, retryMs);
  retryMs = Math.min(2 * retryMs, RETRY_LAST_MS);
}

/** @param {number} code */
function lost(code) {
  session = null;
  if (current) {
    current.turn.say("The connection was lost.", true);
    finish();
  }
  if (code === CLOSED_IDLE) showState("asleep", "asleep until you speak");
  else retry();
}

function showStyles() {
  const voices = session?.ready.voices ?? [];
  const voice = voices.find((/** @type {any} */ each) => (each.voice_id ?? each.name) === ui.voice.value) ?? voices[0];
  fill(ui.style, voice?.styles ?? []);
}

function showIdle() {
  showState("ready", "ready");
  ui.stop.disabled = true;
}

/**
 * Speaks a text; what is being said gives way.
 * @param {string} text
 * @param {{style?: string, user?: string}} [options]
 */
async function speak(text, options = {}) {
  if (isStarting || text.trim() === "") return;
  isStarting = true;
  try {
    if (!session) await connect();
    speaker ??= await openSpeaker();
    await speaker.wake();
    await begin(text, options);
  } catch (error) {
    showState("offline", error instanceof Error ? error.message : String(error));
  } finally {
    isStarting = false;
  }
}

async function openSpeaker() {
  const opened = await Speaker.open(codec.codec);
  opened.addEventListener("report", (event) => hear(/** @type {CustomEvent} */ (event).detail));
  showNumber("codec", codec.codec === "opus" ? "Opus 48 kHz" : "PCM 24 kHz");
  return opened;
}

/**
 * @param {string} text
 * @param {{style?: string, user?: string}} options
 */
async function begin(text, { style, user }) {
  const before = await hush();
  if (!session || !speaker) return;
  // One message stops the old passage and opens the new one.
  const replaces = before ? { replaces: [before.context.id] } : {};
  const context = session.open({ voice: ui.voice.value || undefined, style: style || ui.style.value || undefined, ...replaces });
  const passage = new Passage(context, new Turn(user));
  current = passage;
  follow(passage, speaker.begin());
  for (const id of ["first-packet", "first-sound", "buffered", "played", "gaps"]) showNumber(id, NOTHING);
  status.played = "0";
  delete status.heard;
  ui.stop.disabled = false;
  showState("speaking", "speaking");
  const write = (/** @type {string} */ piece) => {
    context.write(piece);
    passage.turn.write(piece);
  };
  const pace = ui.streamed.checked ? ui.pace.valueAsNumber : 0;
  // Not awaited: the next passage may begin while this one is still being written.
  stream(text, pace, passage.writing.signal, write).then((isWhole) => isWhole && context.end());
}

/**
 * @param {Passage} passage
 * @param {(packet: Uint8Array, last: boolean) => void} play
 */
function follow(passage, play) {
  const on = (/** @type {string} */ type, /** @type {(detail: any) => void} */ act) =>
    passage.context.addEventListener(type, (event) => act(/** @type {CustomEvent} */ (event).detail));
  on("audio", (frame) => {
    if (!passage.hasPacket) showNumber("first-packet", since(passage));
    passage.hasPacket = true;
    play(frame.packet, frame.last);
  });
  on("commit", ({ to, text }) => {
    const [, known] = passage.points.at(-1);
    if (text.to > known) passage.points.push([to, text.to]);
  });
  on("done", ({ samples }) => {
    passage.samples = samples;
    if (samples === 0 && current === passage) {
      passage.turn.say("There was nothing in it to say.");
      finish();
    }
  });
  on("cancelled", (cancelled) => showCancelled(passage, cancelled));
  on("error", ({ message }) => {
    passage.turn.say(message, true);
    // Without an opened context there is no last message to wait for.
    if (!passage.context.opened && current === passage) finish();
  });
}

/** @param {Passage} passage */
function since(passage) {
  return `${Math.round(performance.now() - passage.startedAt)} ms`;
}

/** @param {import("./speaker.js").Report} report */
function hear(report) {
  levels.push(report.peak);
  const passage = current;
  if (!passage || !speaker) return;
  passage.report = report;
  if (report.played > 0 && !passage.hasSound) {
    passage.hasSound = true;
    showNumber("first-sound", since(passage));
  }
  passage.turn.mark(passage.heardUnits);
  showNumber("buffered", `${Math.round(report.bufferedMs / 10) * 10} ms`);
  showNumber("played", `${(passage.played / speaker.rate).toFixed(1)} s`);
  showNumber("gaps", String(report.gaps));
  status.played = String(passage.played);
  if (report.done && passage.samples !== null) {
    passage.context.played(passage.samples);
    passage.turn.mark(passage.context.text.length);
    passage.turn.say(`Heard to the end: ${(passage.samples / speaker.rate).toFixed(1)} s.`);
    finish();
  }
}

/** Nothing is being said any more. */
function finish() {
  current?.writing.abort();
  current = null;
  showNumber("buffered", NOTHING);
  if (session) showIdle();
  else ui.stop.disabled = true;
}

/**
 * Silences what is being said, and tells the server how far its listener got.
 * @returns {Promise<Passage | null>} What was being said.
 */
async function hush() {
  const passage = current;
  if (!passage || !speaker) return null;
  passage.writing.abort();
  current = null;
  passage.stoppedAt = Math.min(await speaker.stop(), passage.samples ?? Infinity);
  passage.context.played(passage.stoppedAt);
  return passage;
}

/** The visitor barges in. */
async function interrupt() {
  const passage = await hush();
  if (!passage) return;
  finish();
  await passage.context.cancel(passage.stoppedAt);
}

/**
 * @param {Passage} passage
 * @param {import("./dovecote.js").Cancelled} cancelled
 */
function showCancelled(passage, { heard, reason, exact, generated, played }) {
  const total = [...passage.context.text].length;
  const share = `${heard.text_to} of ${total} characters were heard${exact ? "" : " (estimated)"}`;
  const last = heard.partial_word ? ", the last word in part" : "";
  const unplayed = (generated - played) / (passage.context.opened?.clock ?? Infinity);
  const rest = unplayed >= 0.1 ? `; ${unplayed.toFixed(1)} s of sound were thrown away` : "";
  const why = reason === "client" || reason === "replaced" ? "Interrupted" : `Stopped by the server (${reason})`;
  passage.turn.cut(heard.text, `${why}: ${share}${last}${rest}.`);
  status.heard = heard.text;
  if (current === passage) finish();
}

function addSamples() {
  for (const sample of Object.values(SAMPLES)) {
    const button = document.createElement("button");
    const next = document.createElement("small");
    let turn = 0;
    const show = () => (next.textContent = `“${sample.turns[turn].user}”`);
    button.type = "button";
    button.append(sample.name, next);
    button.addEventListener("click", () => {
      const { user, answer } = sample.turns[turn];
      const has = [...ui.style.options].some((option) => option.value === sample.style);
      turn = (turn + 1) % sample.turns.length;
      show();
      speak(answer, { user, style: has ? sample.style : undefined });
    });
    show();
    element("samples").append(button);
  }
}

function showPace() {
  ui.pace.disabled = !ui.streamed.checked;
  showNumber("pace-value", ui.streamed.checked ? `${ui.pace.value} words/s` : "all at once");
}

ui.speak.addEventListener("click", () => speak(ui.text.value));
ui.stop.addEventListener("click", interrupt);
ui.text.addEventListener("input", interrupt);
ui.text.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  speak(ui.text.value);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") interrupt();
});
ui.voice.addEventListener("change", showStyles);
for (const input of [ui.streamed, ui.pace]) input.addEventListener("input", showPace);
setInterval(() => {
  if (current?.report?.played) current.context.played(current.played);
}, PLAYED_EVERY_MS);

addSamples();
showPace();
connect();
