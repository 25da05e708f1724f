/**
 * The audio thread's end: a ring of samples that plays what has arrived, and counts what it plays. Runs in an
 * AudioWorklet at the rate of the media clock.
 *
 *     page -> ring      {type: "source", port}, once | {type: "hold", on} | {type: "clear", id}
 *     decoder -> ring   {id, samples} | {id, last}
 *     ring -> page      {type: "report", id, played, buffered, peak, gaps, done} | {type: "held"} | {type: "cleared", id, played}
 *
 * `id` counts passages. `clear` ends the one before `id`; what comes of an earlier one is dropped.
 *
 * @module player
 */

/** More than a server sends ahead of its listener (30 s at most, 3 s as we ask). */
const RING_S = 32;
/** Sound that must be there before it starts, so that a late packet is not heard as a gap. */
const START_S = 0.06;
const REPORT_S = 0.04;

class Player extends AudioWorkletProcessor {
  #ring = new Float32Array(Math.ceil(RING_S * sampleRate));
  #id = 0;
  /** Samples put in and taken out in the passage; their places are these numbers modulo the ring's length. */
  #written = 0;
  #played = 0;
  /** Where the passage before was left. */
  #left = 0;
  #isPlaying = false;
  #isHeld = false;
  #hasAll = false;
  #gaps = 0;
  #peak = 0;
  #sinceReport = 0;

  constructor() {
    super();
    this.port.onmessage = ({ data }) => this.#obey(data);
  }

  /** @param {any} message */
  #obey(message) {
    if (message.type === "source") message.port.onmessage = (/** @type {MessageEvent} */ { data }) => this.#take(data);
    if (message.type === "hold") {
      this.#isHeld = message.on;
      this.port.postMessage({ type: "held" });
    }
    if (message.type === "clear") {
      this.#begin(message.id);
      this.port.postMessage({ type: "cleared", id: message.id, played: this.#left });
    }
  }

  /** @param {{id: number, samples?: Float32Array, last?: boolean}} message */
  #take({ id, samples, last }) {
    if (id < this.#id) return;
    // The two ports are not in step: a new passage may overtake the word that the old one is over.
    this.#begin(id);
    if (samples) this.#write(samples);
    if (last) this.#hasAll = true;
  }

  /** @param {number} id */
  #begin(id) {
    if (id <= this.#id) return;
    this.#id = id;
    this.#left = this.#played;
    // What was heard of the passage before is no loudness of this one.
    this.#written = this.#played = this.#gaps = this.#peak = 0;
    this.#isPlaying = this.#isHeld = this.#hasAll = false;
  }

  /** @param {Float32Array} samples */
  #write(samples) {
    const size = this.#ring.length;
    // A server that does not keep to its word loses sound; nothing that waits is overwritten.
    const fitting = samples.subarray(0, size - this.#buffered);
    const at = this.#written % size;
    const head = fitting.subarray(0, size - at);
    this.#ring.set(head, at);
    this.#ring.set(fitting.subarray(head.length), 0);
    this.#written += fitting.length;
  }

  get #buffered() {
    return this.#written - this.#played;
  }

  /**
   * @param {Float32Array[][]} _inputs
   * @param {Float32Array[][]} outputs
   */
  process(_inputs, outputs) {
    const out = outputs[0][0];
    if (!this.#isPlaying) this.#isPlaying = this.#buffered >= START_S * sampleRate || (this.#hasAll && this.#buffered > 0);
    const count = this.#isPlaying && !this.#isHeld ? Math.min(out.length, this.#buffered) : 0;
    for (let i = 0; i < count; i += 1) {
      const sample = this.#ring[(this.#played + i) % this.#ring.length];
      out[i] = sample;
      this.#peak = Math.max(this.#peak, Math.abs(sample));
    }
    this.#played += count;
    if (this.#isPlaying && !this.#isHeld && count < out.length) {
      this.#isPlaying = false;
      if (!this.#hasAll) this.#gaps += 1;
    }
    this.#report(out.length);
    return true;
  }

  /** @param {number} elapsed In samples. */
  #report(elapsed) {
    this.#sinceReport += elapsed;
    if (this.#sinceReport < REPORT_S * sampleRate) return;
    this.#sinceReport = 0;
    const done = this.#hasAll && this.#buffered === 0;
    const [id, played, buffered, peak, gaps] = [this.#id, this.#played, this.#buffered, this.#peak, this.#gaps];
    this.port.postMessage({ type: "report", id, played, buffered, peak, gaps, done });
    this.#peak = 0;
  }
}

registerProcessor("dovecote-player", Player);
