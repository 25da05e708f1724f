/**
 * A passage on its way, as plain data: what was written, where its words lie in the sound, and how much of it the
 * listener has. Knows no page, no device and no connection.
 *
 *     text     The train leaves at nine.        in code points, as the server counts
 *     words    [0,3] [4,9] [10,16] ...          each with its place in the sound, once that is known
 *     sound    0 ........ played ..... made     in samples of the media clock
 *
 * @module passage
 */

/**
 * @typedef {object} Word
 * @property {number} from First code point.
 * @property {number} to Behind its last.
 * @property {number} start First sample.
 * @property {number} end Behind its last.
 */

/** See above. */
export class Passage {
  /** Every character that was written. */
  /** @type {string[]} */ #chars = [];
  /** Code points that are accounted for. */
  #known = 0;

  /** @type {Word[]} */ words = [];
  /** Ends of the commits, in samples. */
  /** @type {number[]} */ commits = [];
  /** Loudness of the sound that has arrived, 0 to 1, 50 a second. */
  /** @type {number[]} */ peaks = [];
  /** Samples that have arrived. */
  made = 0;
  /** Position of the listener. */
  played = 0;
  /** @type {number | null} The pos behind the last real sample, once it is known. */
  samples = null;
  /** @type {number | null} Where the listener was when it was silenced. */
  stoppedAt = null;

  /** @param {number} rate Samples a second: the media clock. */
  constructor(rate) {
    this.rate = rate;
  }

  /** All that was written. */
  get text() {
    return this.#chars.join("");
  }

  /** Seconds of sound that are there. */
  get seconds() {
    return Math.max(this.made, this.samples ?? 0) / this.rate;
  }

  /** @param {string} piece */
  write(piece) {
    this.#chars.push(...piece);
  }

  /**
   * More sound has arrived.
   * @param {import("./speaker.js").Sound} sound
   */
  hear({ peaks, made }) {
    this.peaks.push(...peaks);
    this.made = made;
  }

  /**
   * The server has told where words lie.
   * @param {{to: number, text: {to: number}, words?: number[][]}} commit
   */
  commit({ to, text, words = [] }) {
    this.commits.push(to);
    this.words.push(...words.map(([from, to, start, end]) => ({ from, to, start, end })));
    this.#known = Math.max(this.#known, text.to);
  }

  /**
   * The listener is here now.
   * @param {number} pos
   */
  listen(pos) {
    this.played = Math.min(pos, this.samples ?? Infinity);
  }

  /** The word that is heard now, or undefined between words. */
  get word() {
    return this.words.find(({ start, end }) => start <= this.played && this.played < end);
  }

  /** Code points that lie behind the listener: whole words, each from its middle on, with the signs behind it. */
  get heard() {
    const next = this.words.findIndex(({ start, end }) => (start + end) / 2 > this.played);
    if (next < 0) return this.played > 0 ? this.#known : 0;
    return next === 0 ? 0 : this.words[next].from;
  }

  /**
   * A part of the text.
   * @param {number} from Code points.
   * @param {number} [to]
   */
  slice(from, to) {
    return this.#chars.slice(from, to).join("");
  }

  /** The whole text, with what has no place in the sound. */
  get length() {
    return this.#chars.length;
  }
}
