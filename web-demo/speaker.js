/**
 * The page's end of the sound: decodes packets, hands samples to the ring, and knows what the listener has heard.
 * Knows no protocol: a passage is begun, fed, and stopped.
 *
 * @module speaker
 */

const OPUS = { codec: "opus", sampleRate: 48_000, numberOfChannels: 1 };
const PCM_RATE = 24_000;
/** A ring that does not answer by then is taken at its last word. */
const CLEAR_MS = 100;

/**
 * @typedef {object} Report
 * @property {number} played Samples that have reached the ear, as far as the system tells its delay.
 * @property {number} bufferedMs
 * @property {number} peak 0 to 1.
 * @property {number} gaps Times that the sound ran dry.
 * @property {boolean} done Whether all of the passage has been played.
 */

/**
 * The best codec that this browser decodes.
 * @param {boolean} wantsPcm
 * @returns {Promise<{codec: "opus" | "pcm_s16le", sample_rate?: number}>}
 */
export async function chooseCodec(wantsPcm) {
  if (!wantsPcm && "AudioDecoder" in globalThis) {
    const { supported } = await AudioDecoder.isConfigSupported(OPUS).catch(() => ({ supported: false }));
    if (supported) return { codec: "opus" };
  }
  return { codec: "pcm_s16le", sample_rate: PCM_RATE };
}

/** Plays one passage at a time. Event: `report` (a {@link Report}). */
export class Speaker extends EventTarget {
  /** @type {AudioContext} */ #audio;
  /** @type {AudioWorkletNode} */ #ring;
  /** @type {AudioDecoder | null} */ #decoder = null;
  /** @type {Map<number, (played: number) => void>} */ #clears = new Map();
  #clearId = 0;
  #played = 0;

  /**
   * @param {AudioContext} audio
   * @param {AudioWorkletNode} ring
   */
  constructor(audio, ring) {
    super();
    this.#audio = audio;
    this.#ring = ring;
    ring.port.onmessage = ({ data }) => this.#hear(data);
    ring.connect(audio.destination);
  }

  /**
   * Opens the sound device; browsers allow this only after a key or a click.
   * @param {"opus" | "pcm_s16le"} codec
   */
  static async open(codec) {
    // The device runs at the rate of the media clock, so that a sample counted is a position on the wire.
    const audio = new AudioContext({ sampleRate: codec === "opus" ? OPUS.sampleRate : PCM_RATE });
    await audio.audioWorklet.addModule(new URL("./player.js", import.meta.url));
    const ring = new AudioWorkletNode(audio, "dovecote-player", { numberOfInputs: 0, outputChannelCount: [1] });
    return new Speaker(audio, ring);
  }

  /** Samples a second: the media clock. */
  get rate() {
    return this.#audio.sampleRate;
  }

  /** Wakes the device, which sleeps until the page is touched. */
  async wake() {
    if (this.#audio.state !== "running") await this.#audio.resume();
  }

  /**
   * Begins a passage; what was there is dropped.
   * @returns {(packet: Uint8Array, last: boolean) => void} Takes its packets in order.
   */
  begin() {
    this.stop();
    const isCurrent = ((id) => () => id === this.#clearId)(this.#clearId);
    if (this.rate === PCM_RATE) {
      return (packet, last) => {
        if (isCurrent()) this.#push(fromPcm(packet), last);
      };
    }
    const decoder = opusDecoder((samples) => {
      if (isCurrent()) this.#push(samples, false);
    });
    this.#decoder = decoder;
    let count = 0;
    return (packet, last) => {
      if (!isCurrent() || decoder.state !== "configured") return;
      decoder.decode(new EncodedAudioChunk({ type: "key", timestamp: count * 20_000, data: packet }));
      count += 1;
      // A decoder that is closed meanwhile rejects: then nobody waits for the rest.
      if (last) decoder.flush().then(() => isCurrent() && this.#ring.port.postMessage({ type: "last" }), () => {});
    };
  }

  /**
   * Falls silent at once.
   * @returns {Promise<number>} Position that the listener had reached.
   */
  stop() {
    if (this.#decoder && this.#decoder.state !== "closed") this.#decoder.close();
    this.#decoder = null;
    const id = (this.#clearId += 1);
    const last = this.#played;
    this.#played = 0;
    this.#ring.port.postMessage({ type: "clear", id });
    return new Promise((resolve) => {
      const late = setTimeout(() => this.#settle(id, last), CLEAR_MS);
      this.#clears.set(id, (played) => {
        clearTimeout(late);
        resolve(played);
      });
    });
  }

  /**
   * @param {number} id
   * @param {number} played
   */
  #settle(id, played) {
    this.#clears.get(id)?.(played);
    this.#clears.delete(id);
  }

  /**
   * @param {Float32Array} samples
   * @param {boolean} last
   */
  #push(samples, last) {
    this.#ring.port.postMessage({ type: "samples", samples }, [samples.buffer]);
    if (last) this.#ring.port.postMessage({ type: "last" });
  }

  /** @param {any} data */
  #hear(data) {
    const delay = Math.round((this.#audio.outputLatency || 0) * this.rate);
    const audible = Math.max(0, data.played - delay);
    if (data.type === "cleared") return this.#settle(data.id, audible);
    // A report from before the last clear counts samples of another passage.
    if (this.#clears.size > 0) return;
    this.#played = data.done ? data.played : audible;
    const bufferedMs = (data.buffered / this.rate) * 1000;
    const detail = { played: this.#played, bufferedMs, peak: data.peak, gaps: data.gaps, done: data.done };
    this.dispatchEvent(new CustomEvent("report", { detail }));
  }
}

/** @param {(samples: Float32Array) => void} push */
function opusDecoder(push) {
  const decoder = new AudioDecoder({
    output: (data) => {
      const samples = new Float32Array(data.numberOfFrames);
      data.copyTo(samples, { planeIndex: 0, format: "f32-planar" });
      data.close();
      push(samples);
    },
    error: (error) => console.error("the Opus decoder gave up:", error),
  });
  decoder.configure(OPUS);
  return decoder;
}

/** @param {Uint8Array} packet 16-bit little-endian */
function fromPcm(packet) {
  const view = new DataView(packet.buffer, packet.byteOffset, packet.byteLength);
  const samples = new Float32Array(packet.byteLength / 2);
  for (let i = 0; i < samples.length; i += 1) samples[i] = view.getInt16(2 * i, true) / 32_768;
  return samples;
}
