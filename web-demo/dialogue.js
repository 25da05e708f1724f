/**
 * What is being said: text goes to the session, sound to the speaker, and what becomes of both is shown. One passage at
 * a time; a barge-in or the next turn ends it.
 *
 * For whoever watches the page from outside, the root element says `data-played` (samples of the latest passage),
 * `data-words` (those that have a place in the sound) and `data-heard` (its text, after an interruption).
 *
 * @module dialogue
 */

import { Passage } from "./passage.js";
import { Bars, Trace } from "./plots.js";
import { stream } from "./samples.js";
import { Speaker } from "./speaker.js";
import { Timeline } from "./timeline.js";
import { element, showNumber, Turn } from "./view.js";

const PLAYED_EVERY_MS = 250;
const TURNS_SHOWN = 14;
/** Reports of the ring in the plot of the buffer, one in 40 ms: the last 8 s. */
const BUFFER_VALUES = 200;
/** Scale of that plot at least, in milliseconds. */
const BUFFER_FLOOR_MS = 1_000;
const NOTHING = "–";
/** How the visitor cut in, as the transcript tells it. */
const WAYS = { key: "by key", button: "", typing: "by typing", voice: "by voice", turn: "by the next turn" };

const status = document.documentElement.dataset;
const canvas = (/** @type {string} */ id) => /** @type {HTMLCanvasElement} */ (element(id));

/**
 * @typedef {object} Speech A passage on its way, with all that belongs to it.
 * @property {Passage} passage
 * @property {import("./dovecote.js").Context} context
 * @property {Turn} turn
 * @property {AbortController} writing Ends the writing.
 * @property {number} startedAt
 * @property {boolean} hasPacket
 * @property {boolean} hasSound
 * @property {{way: keyof typeof WAYS, at: number, silenceMs: number} | null} cut
 */

/** Events: `begin` and `end` of a passage. */
export class Dialogue extends EventTarget {
  /** @type {Speaker | null} */ #speaker = null;
  /** @type {Speech | null} */ #current = null;
  /** When the speaker was held for what may be a voice, and how long that took. */
  /** @type {{at: number, silenceMs: number} | null} */ #held = null;
  #turns = new Bars(canvas("turns-plot"), TURNS_SHOWN);
  #buffer = new Trace(canvas("buffer-plot"), { length: BUFFER_VALUES, floor: BUFFER_FLOOR_MS, colours: ["teal-faint"] });
  #timeline = new Timeline(element("scroller"), element("strip"), canvas("timeline"));

  /** @param {{codec: "opus" | "pcm_s16le", sample_rate?: number}} codec */
  constructor(codec) {
    super();
    this.codec = codec;
    setInterval(() => {
      const { context, passage } = this.#current ?? {};
      if (context && passage && passage.played > 0) context.played(passage.played);
    }, PLAYED_EVERY_MS);
  }

  /** Whether something is being said. */
  get isSpeaking() {
    return this.#current !== null;
  }

  /** Wakes the sound device; browsers allow that only after a key or a click. */
  async wake() {
    if (!this.#speaker) {
      const speaker = await Speaker.open(this.codec.codec);
      speaker.addEventListener("report", (event) => this.#hear(/** @type {CustomEvent} */ (event).detail));
      speaker.addEventListener("sound", (event) => this.#current?.passage.hear(/** @type {CustomEvent} */ (event).detail));
      this.#speaker = speaker;
    }
    await this.#speaker.wake();
  }

  /**
   * Says what is to come in another codec.
   * @param {{codec: "opus" | "pcm_s16le", sample_rate?: number}} codec
   */
  async change(codec) {
    await this.interrupt("button");
    await this.#speaker?.close();
    this.#speaker = null;
    this.codec = codec;
  }

  /**
   * Speaks a text; what is being said gives way.
   * @param {import("./dovecote.js").Session} session
   * @param {string} text
   * @param {{pace: number, user?: string, voice?: string, style?: string}} options `pace` in words a second, 0: all at once.
   */
  async begin(session, text, { pace, user, ...manner }) {
    const before = await this.#hush("turn");
    const speaker = this.#speaker;
    if (!speaker) return;
    // One message stops the old passage and opens the new one.
    const context = session.open({ ...manner, ...(before ? { replaces: [before.context.id] } : {}) });
    const passage = new Passage(speaker.rate);
    const turn = new Turn(user);
    const writing = new AbortController();
    const startedAt = performance.now();
    const speech = { passage, context, turn, writing, startedAt, hasPacket: false, hasSound: false, cut: null };
    this.#current = speech;
    this.#follow(speech, speaker.begin());
    this.#clear();
    this.#timeline.show(passage);
    this.dispatchEvent(new Event("begin"));
    const write = (/** @type {string} */ piece) => {
      context.write(piece);
      passage.write(piece);
      turn.write(piece);
    };
    // Not awaited: the next passage may begin while this one is still being written.
    stream(text, pace, writing.signal, write).then((isWhole) => isWhole && context.end());
  }

  #clear() {
    for (const id of ["first-packet", "first-sound", "silence", "buffered"]) showNumber(id, NOTHING);
    showNumber("gaps-note", "");
    status.played = status.words = "0";
    delete status.heard;
    element("time-empty").hidden = true;
    this.#turns.next();
  }

  /**
   * @param {Speech} speech
   * @param {(frame: import("./dovecote.js").Frame) => void} play
   */
  #follow(speech, play) {
    const { context, passage, turn } = speech;
    const on = (/** @type {string} */ type, /** @type {(detail: any) => void} */ act) =>
      context.addEventListener(type, (event) => act(/** @type {CustomEvent} */ (event).detail));
    on("audio", (frame) => {
      if (!speech.hasPacket) this.#turns.set({ inner: this.#since(speech, "first-packet") });
      speech.hasPacket = true;
      play(frame);
    });
    on("commit", (commit) => {
      passage.commit(commit);
      if (speech === this.#current) status.words = String(passage.words.length);
    });
    on("done", ({ samples }) => {
      passage.samples = samples;
      if (samples > 0 || speech !== this.#current) return;
      turn.say("There was nothing in it to say.");
      this.#finish();
    });
    on("cancelled", (cancelled) => this.#showCancelled(speech, cancelled));
    on("lost", () => this.#fail(speech, "The connection was lost."));
    on("error", ({ message }) => {
      // Without an opened context there is no last message to wait for.
      if (context.opened) turn.say(message, true);
      else this.#fail(speech, message);
    });
  }

  /**
   * @param {Speech} speech
   * @param {string} id
   */
  #since({ startedAt }, id) {
    const ms = performance.now() - startedAt;
    showNumber(id, `${Math.round(ms)} ms`);
    return ms;
  }

  /**
   * @param {Speech} speech
   * @param {string} why
   */
  #fail(speech, why) {
    speech.turn.say(why, true);
    if (speech !== this.#current) return;
    speech.passage.stoppedAt = speech.passage.played;
    this.#speaker?.stop();
    this.#finish();
  }

  /** @param {import("./speaker.js").Report} report */
  #hear(report) {
    const speech = this.#current;
    this.#buffer.push([speech ? report.bufferedMs : 0]);
    if (!speech) return;
    const { passage, turn, context } = speech;
    passage.listen(report.played);
    if (report.played > 0 && !speech.hasSound) {
      speech.hasSound = true;
      this.#turns.set({ outer: this.#since(speech, "first-sound") });
    }
    this.#showWords(speech);
    this.#timeline.update();
    showNumber("buffered", `${(report.bufferedMs / 1000).toFixed(1)} s`);
    showNumber("played", `${(passage.played / passage.rate).toFixed(1)} s`);
    showNumber("gaps-note", report.gaps > 0 ? ` · ${report.gaps} ${report.gaps === 1 ? "gap" : "gaps"}` : "");
    status.played = String(passage.played);
    if (report.done && passage.samples !== null) {
      context.played(passage.samples);
      turn.mark(passage.text);
      turn.say(`Heard to the end: ${(passage.samples / passage.rate).toFixed(1)} s.`);
      this.#finish();
    }
  }

  /** @param {Speech} speech */
  #showWords({ passage, turn }) {
    const word = passage.word;
    if (word) turn.mark(passage.slice(0, word.from), passage.slice(word.from, word.to));
    else turn.mark(passage.slice(0, passage.heard));
  }

  /** Nothing is being said any more. */
  #finish() {
    this.#current?.writing.abort();
    this.#current = null;
    this.#held = null;
    showNumber("buffered", NOTHING);
    this.#timeline.update();
    this.dispatchEvent(new Event("end"));
  }

  /** Somebody may be speaking: silence at once, until it is known. */
  async hold() {
    if (!this.#speaker || !this.#current || this.#held) return;
    const held = (this.#held = { at: performance.now(), silenceMs: 0 });
    await this.#speaker.hold(true);
    held.silenceMs = performance.now() - held.at;
  }

  /** It was nobody: the passage goes on where it stood. */
  release() {
    if (this.#held) this.#speaker?.hold(false);
    this.#held = null;
  }

  /**
   * Silences what is being said, and tells the server how far its listener got.
   * @param {keyof typeof WAYS} way
   * @returns {Promise<Speech | null>} What was being said.
   */
  async #hush(way) {
    const [speech, speaker, held] = [this.#current, this.#speaker, this.#held];
    if (!speech || !speaker) return null;
    speech.writing.abort();
    this.#current = this.#held = null;
    const at = held?.at ?? performance.now();
    const { passage } = speech;
    passage.listen(await speaker.stop());
    passage.stoppedAt = passage.played;
    speech.cut = { way, at, silenceMs: held?.silenceMs || performance.now() - at };
    speech.context.played(passage.stoppedAt);
    return speech;
  }

  /**
   * The visitor barges in.
   * @param {keyof typeof WAYS} way
   * @returns {Promise<boolean>} Whether there was something to interrupt.
   */
  async interrupt(way) {
    const speech = await this.#hush(way);
    if (!speech) return false;
    this.#finish();
    showNumber("silence", `${Math.round(speech.cut?.silenceMs ?? 0)} ms`);
    await speech.context.cancel(speech.passage.stoppedAt ?? undefined);
    return true;
  }

  /**
   * @param {Speech} speech
   * @param {import("./dovecote.js").Cancelled} cancelled
   */
  #showCancelled(speech, { heard, reason, exact, generated, played, freed }) {
    const { passage, turn, cut } = speech;
    const seconds = (generated - played) / passage.rate;
    const words = heard.text.split(/\s+/).filter(Boolean).length;
    const parts = [
      `${words} of ${passage.text.split(/\s+/).filter(Boolean).length} words heard${exact ? "" : " (estimated)"}`,
      ...(heard.partial_word ? ["the last in part"] : []),
      ...(cut ? [`silent in ${Math.round(cut.silenceMs)} ms`, `told in ${Math.round(performance.now() - cut.at)} ms`] : []),
      ...(seconds >= 0.1 ? [`${seconds.toFixed(1)} s of sound thrown away`] : []),
      ...(freed?.kv_blocks > 0 ? [`${freed.kv_blocks} blocks free again`] : []),
    ];
    const why = reason === "client" || reason === "replaced" ? `Interrupted ${WAYS[cut?.way ?? "button"]}`.trim() : `Stopped by the server (${reason})`;
    passage.stoppedAt ??= passage.played;
    turn.cut(heard.text, `${why}: ${parts.join(", ")}.`);
    status.heard = heard.text;
    this.#timeline.update();
    if (speech === this.#current) this.#finish();
  }
}
