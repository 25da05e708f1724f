/**
 * Where each word lies in time: the sound as a wave, its words beneath, and where the listener is. It scrolls with the
 * listener, and by hand when nobody listens.
 *
 * @module timeline
 */

import { Plot } from "./plots.js";

const PX_PER_S = 116;
const PEAKS_PER_S = 50;
const WAVE_TOP = 8;
const WAVE_HEIGHT = 76;
const WORDS_TOP = 92;
const WORD_HEIGHT = 22;
/** Words that stand too close for one row. */
const ROWS = 2;
const WORD_GAP_PX = 3;
const RULER_HEIGHT = 16;
/** Where in the view the listener is kept. */
const FOLLOW = 0.4;

/** @typedef {import("./passage.js").Passage} Passage */
/** @typedef {import("./passage.js").Word} Word */

/** See above. */
export class Timeline extends Plot {
  /** @type {Passage | null} */ #passage = null;
  /** @type {Map<Word, {x: number, width: number, row: number, text: string}>} */ #places = new Map();
  /** Right ends of the rows of words, so far. */
  /** @type {number[]} */ #ends = [];
  /** Of the strip, and how far it is scrolled: kept, since asking has the browser lay out the page. */
  #stripWidth = 0;
  #left = 0;

  /**
   * @param {HTMLElement} scroller
   * @param {HTMLElement} strip As long as the sound; the canvas within it is as wide as the view.
   * @param {HTMLCanvasElement} canvas
   */
  constructor(scroller, strip, canvas) {
    super(canvas);
    this.scroller = scroller;
    this.strip = strip;
    scroller.addEventListener("scroll", () => {
      this.#left = scroller.scrollLeft;
      this.redraw();
    }, { passive: true });
  }

  /** @param {Passage} passage */
  show(passage) {
    this.#passage = passage;
    this.#places.clear();
    this.#ends = new Array(ROWS).fill(0);
    this.#scroll(0);
    this.update();
  }

  /** Something of the passage has changed. */
  update() {
    const passage = this.#passage;
    if (!passage) return;
    const width = (Math.ceil(passage.seconds) + 1) * PX_PER_S;
    if (width !== this.#stripWidth) this.strip.style.setProperty("width", `max(100%, ${width}px)`);
    this.#stripWidth = width;
    if (passage.stoppedAt === null) {
      const head = (passage.played / passage.rate) * PX_PER_S;
      const left = Math.round(Math.min(head - this.width * FOLLOW, width - this.width));
      if (left > 0 && left !== this.#left) this.#scroll(left);
    }
    this.redraw();
  }

  /** @param {number} left */
  #scroll(left) {
    this.#left = left;
    this.scroller.scrollLeft = left;
  }

  /**
   * @param {CanvasRenderingContext2D} pen
   * @param {number} width
   * @param {number} height
   * @param {(name: string) => string} colour
   */
  draw(pen, width, height, colour) {
    const passage = this.#passage;
    const left = this.#left;
    this.#ruler(pen, left, width, height, colour);
    if (!passage) return;
    const x = (/** @type {number} */ pos) => (pos / passage.rate) * PX_PER_S - left;
    const heardTo = passage.stoppedAt ?? passage.played;
    this.#wave(pen, passage, left, width, heardTo, colour);
    this.#place(pen, passage);
    for (const [word, place] of this.#places) {
      if (place.x + place.width < left || place.x > left + width) continue;
      this.#word(pen, word, place, left, x, heardTo, colour);
    }
    const head = Math.round(x(heardTo));
    pen.fillStyle = colour(passage.stoppedAt === null ? "teal" : "clay");
    pen.fillRect(head - 1, 0, 2, height - RULER_HEIGHT);
    pen.beginPath();
    pen.arc(head, 4, 4, 0, 2 * Math.PI);
    pen.fill();
  }

  /**
   * @param {CanvasRenderingContext2D} pen
   * @param {number} left
   * @param {number} width
   * @param {number} height
   * @param {(name: string) => string} colour
   */
  #ruler(pen, left, width, height, colour) {
    for (let second = Math.floor(left / PX_PER_S); second * PX_PER_S - left < width; second += 1) {
      const x = Math.round(second * PX_PER_S - left);
      pen.fillStyle = colour("line");
      pen.fillRect(x, 0, 1, height - RULER_HEIGHT);
      pen.fillStyle = colour("soft");
      pen.fillText(`${second} s`, x + 4, height - 4);
    }
  }

  /**
   * @param {CanvasRenderingContext2D} pen
   * @param {Passage} passage
   * @param {number} left
   * @param {number} width
   * @param {number} heardTo
   * @param {(name: string) => string} colour
   */
  #wave(pen, passage, left, width, heardTo, colour) {
    const step = PX_PER_S / PEAKS_PER_S;
    const heard = (heardTo / passage.rate) * PEAKS_PER_S;
    const rest = colour(passage.stoppedAt === null ? "teal-faint" : "clay-faint");
    const middle = WAVE_TOP + WAVE_HEIGHT / 2;
    const to = Math.min(passage.peaks.length, Math.ceil((left + width) / step));
    for (let i = Math.max(0, Math.floor(left / step)); i < to; i += 1) {
      const tall = Math.max(1.5, Math.min(1, Math.sqrt(passage.peaks[i])) * WAVE_HEIGHT);
      pen.fillStyle = i < heard ? colour("teal") : rest;
      pen.fillRect(i * step - left, middle - tall / 2, step * 0.7, tall);
    }
  }

  /**
   * Finds a place for words that have none yet.
   * @param {CanvasRenderingContext2D} pen
   * @param {Passage} passage
   */
  #place(pen, passage) {
    for (const word of passage.words.slice(this.#places.size)) {
      const text = passage.slice(word.from, word.to);
      const from = (word.start / passage.rate) * PX_PER_S;
      const spoken = ((word.end - word.start) / passage.rate) * PX_PER_S;
      const width = Math.max(spoken, pen.measureText(text).width + 10) - 1;
      // The first row where it fits; at the worst a little to the right of its place.
      const free = this.#ends.findIndex((end) => end <= from);
      const row = free >= 0 ? free : this.#ends.indexOf(Math.min(...this.#ends));
      const x = Math.max(from, this.#ends[row]);
      this.#ends[row] = x + width + WORD_GAP_PX;
      this.#places.set(word, { x, width, row, text });
    }
  }

  /**
   * @param {CanvasRenderingContext2D} pen
   * @param {Word} word
   * @param {{x: number, width: number, row: number, text: string}} place
   * @param {number} left
   * @param {(pos: number) => number} x
   * @param {number} heardTo
   * @param {(name: string) => string} colour
   */
  #word(pen, word, place, left, x, heardTo, colour) {
    const isNow = word.start <= heardTo && heardTo < word.end && this.#passage?.stoppedAt === null;
    const isHeard = (word.start + word.end) / 2 <= heardTo;
    const isLost = !isHeard && this.#passage?.stoppedAt !== null;
    const top = WORDS_TOP + place.row * (WORD_HEIGHT + WORD_GAP_PX);
    const tint = isLost ? "clay" : "teal";
    pen.fillStyle = colour(tint);
    // From the sound to the word: a short bar as long as the word is spoken.
    pen.globalAlpha = isHeard || isNow ? 1 : 0.45;
    pen.fillRect(x(word.start), WAVE_TOP + WAVE_HEIGHT + 1, Math.max(2, x(word.end) - x(word.start) - 1), 3);
    pen.globalAlpha = 1;
    pen.fillStyle = colour(isNow ? "teal" : `${tint}-wash`);
    pen.beginPath();
    pen.roundRect(place.x - left, top, place.width, WORD_HEIGHT, 5);
    pen.fill();
    pen.fillStyle = colour(isNow ? "on-teal" : isLost ? "clay" : isHeard ? "ink" : "soft");
    pen.fillText(place.text, place.x - left + 5, top + 15);
  }
}
