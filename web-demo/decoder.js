/**
 * A worker between the page and the audio thread: packets in, samples out. So a page that is busy drawing costs no sound.
 *
 *     page -> here   {ring: MessagePort, rate}, once | {id, packet, pos, last}, in order
 *     here -> ring   {id, samples} | {id, last}
 *     here -> page   {id, peaks, made} some times a second: how loud the sound is, and how many samples there are
 *
 * `id` names a passage; packets of another one end what is left of the one before.
 *
 * @module decoder
 */

const OPUS_RATE = 48_000;
const BYTES_PER_SAMPLE = 2;
/** Shorter holes are roundings of a decoder's clock. */
const GAP_S = 0.01;
/** Peaks of a second of sound. */
const PEAKS_PER_S = 50;
/** So many are told at once: five times a second. */
const PEAKS_AT_ONCE = 10;

/** One passage on its way. */
class Passage {
  #made = 0;
  /** @type {number[]} */ #peaks = [];
  #peak = 0;
  #inPeak = 0;

  /**
   * @param {number} id
   * @param {MessagePort} ring
   * @param {number} rate
   */
  constructor(id, ring, rate) {
    this.id = id;
    this.ring = ring;
    this.rate = rate;
  }

  /**
   * @param {Float32Array} samples
   * @param {number} pos Of the first one.
   */
  push(samples, pos) {
    // Silence for what is lost for good: a position stays a position.
    if (pos - this.#made > GAP_S * this.rate) this.#give(new Float32Array(pos - this.#made));
    this.#give(samples);
  }

  /** Nothing follows. */
  end() {
    this.#tell();
    this.ring.postMessage({ id: this.id, last: true });
  }

  /** @param {Float32Array} samples */
  #give(samples) {
    this.#made += samples.length;
    const step = this.rate / PEAKS_PER_S;
    for (const sample of samples) {
      this.#peak = Math.max(this.#peak, Math.abs(sample));
      if (++this.#inPeak < step) continue;
      this.#peaks.push(this.#peak);
      this.#peak = this.#inPeak = 0;
    }
    this.ring.postMessage({ id: this.id, samples }, [samples.buffer]);
    if (this.#peaks.length >= PEAKS_AT_ONCE) this.#tell();
  }

  #tell() {
    postMessage({ id: this.id, peaks: this.#peaks, made: this.#made });
    this.#peaks = [];
  }
}

/** @type {MessagePort} */ let ring;
let rate = 0;
/** @type {Passage | null} */ let passage = null;
/** @type {AudioDecoder | null} */ let decoder = null;

/** @param {Passage} of */
function opusDecoder(of) {
  const made = new AudioDecoder({
    output: (data) => {
      const samples = new Float32Array(data.numberOfFrames);
      data.copyTo(samples, { planeIndex: 0, format: "f32-planar" });
      const pos = Math.round((data.timestamp / 1e6) * OPUS_RATE);
      data.close();
      of.push(samples, pos);
    },
    error: (error) => console.error("the Opus decoder gave up:", error),
  });
  made.configure({ codec: "opus", sampleRate: OPUS_RATE, numberOfChannels: 1 });
  return made;
}

/** @param {Uint8Array} packet 16-bit little-endian */
function fromPcm(packet) {
  const view = new DataView(packet.buffer, packet.byteOffset, packet.byteLength);
  const samples = new Float32Array(packet.byteLength / BYTES_PER_SAMPLE);
  for (let i = 0; i < samples.length; i += 1) samples[i] = view.getInt16(BYTES_PER_SAMPLE * i, true) / 32_768;
  return samples;
}

/** @param {{id: number, packet: Uint8Array, pos: number, last: boolean}} message */
function take({ id, packet, pos, last }) {
  if (passage?.id !== id) {
    if (decoder && decoder.state !== "closed") decoder.close();
    passage = new Passage(id, ring, rate);
    decoder = rate === OPUS_RATE ? opusDecoder(passage) : null;
  }
  const current = passage;
  if (!decoder) {
    current.push(fromPcm(packet), pos);
    if (last) current.end();
  } else if (decoder.state === "configured") {
    const timestamp = Math.round((pos / OPUS_RATE) * 1e6);
    decoder.decode(new EncodedAudioChunk({ type: "key", timestamp, data: packet }));
    // A decoder that is closed meanwhile rejects: then nobody waits for the rest.
    if (last) decoder.flush().then(() => current.end(), () => {});
  }
}

onmessage = ({ data }) => {
  if (data.ring) [ring, rate] = [data.ring, data.rate];
  else take(data);
};
