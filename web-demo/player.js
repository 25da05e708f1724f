/**
 * The audio thread's end: a ring of samples that plays what has arrived, and counts what it plays. Knows no context:
 * the page empties it between two passages. Runs in an AudioWorklet at the rate of the media clock.
 *
 *     page -> ring   {type: "samples", samples: Float32Array} | {type: "last"} | {type: "clear", id}
 *     ring -> page   {type: "report", played, buffered, peak, gaps, done} every 20 ms | {type: "cleared", id, played}
 *
 * @module player
 */

/** More than a server sends ahead of its listener (30 s at most, 6 s as we ask). */
const RING_S = 32;
/** Sound that must be there before it starts, so that a late packet is not heard as a gap. */
const START_S = 0.06;
const REPORT_S = 0.02;

class Player extends AudioWorkletProcessor {
  #ring = new Float32Array(Math.ceil(RING_S * sampleRate));
  /** Samples put in and taken out since the last clear; their places are these numbers modulo the ring's length. */
  #written = 0;
  #played = 0;
  #isPlaying = false;
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
    if (message.type === "samples") this.#write(message.samples);
    if (message.type === "last") this.#hasAll = true;
    if (message.type === "clear") {
      this.port.postMessage({ type: "cleared", id: message.id, played: this.#played });
      this.#written = this.#played = this.#gaps = 0;
      this.#isPlaying = this.#hasAll = false;
    }
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
    const count = this.#isPlaying ? Math.min(out.length, this.#buffered) : 0;
    for (let i = 0; i < count; i += 1) {
      const sample = this.#ring[(this.#played + i) % this.#ring.length];
      out[i] = sample;
      this.#peak = Math.max(this.#peak, Math.abs(sample));
    }
    this.#played += count;
    if (this.#isPlaying && count < out.length) {
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
    const [played, buffered, peak, gaps] = [this.#played, this.#buffered, this.#peak, this.#gaps];
    this.port.postMessage({ type: "report", played, buffered, peak, gaps, done });
    this.#peak = 0;
  }
}

registerProcessor("dovecote-player", Player);
