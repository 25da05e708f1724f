/**
 * The page's end of the sound: hands packets to the decoder and that to the ring, and knows what the listener has heard.
 * Knows no protocol: a passage is begun, fed, held, and stopped.
 *
 *     packets -> decoder.js, a worker -> player.js, the audio thread -> reports
 *
 * @module speaker
 */

const OPUS_RATE = 48_000;
const PCM_RATE = 24_000;
/** A ring that does not answer by then is taken at its last word. */
const CLEAR_MS = 100;

/**
 * @typedef {object} Report
 * @property {number} played Samples that have reached the ear, as far as the system tells its delay.
 * @property {number} bufferedMs
 * @property {number} gaps Times that the sound ran dry.
 * @property {boolean} done Whether all of the passage has been played.
 */

/**
 * @typedef {object} Sound What was decoded.
 * @property {number[]} peaks Loudness, 0 to 1, 50 a second, of what is new.
 * @property {number} made All samples of the passage up to now.
 */

/**
 * @typedef {object} Packet
 * @property {Uint8Array} packet
 * @property {number} pos
 * @property {boolean} last
 */

/**
 * The best codec that this browser decodes: Opus where it has WebCodecs, which pages without TLS have not.
 * @param {boolean} [wantsPcm] Though it may decode Opus.
 * @returns {Promise<{codec: "opus" | "pcm_s16le", sample_rate?: number}>}
 */
export async function chooseCodec(wantsPcm = false) {
  if (!wantsPcm && "AudioDecoder" in globalThis) {
    const opus = { codec: "opus", sampleRate: OPUS_RATE, numberOfChannels: 1 };
    const { supported } = await AudioDecoder.isConfigSupported(opus).catch(() => ({ supported: false }));
    if (supported) return { codec: "opus" };
  }
  return { codec: "pcm_s16le", sample_rate: PCM_RATE };
}

/** Plays one passage at a time. Events: `report` (a {@link Report}), `sound` (a {@link Sound}). */
export class Speaker extends EventTarget {
  /** @type {AudioContext} */ #audio;
  /** @type {AudioWorkletNode} */ #ring;
  #decoder = new Worker(new URL("./decoder.js", import.meta.url), { type: "module" });
  /** @type {Map<number, (played: number) => void>} */ #clears = new Map();
  /** @type {((value: void) => void)[]} */ #holds = [];
  /** Of the passage: what comes of another one is late. */
  #id = 0;
  #played = 0;

  /**
   * Use {@link Speaker.open}.
   * @param {AudioContext} audio
   * @param {AudioWorkletNode} ring
   */
  constructor(audio, ring) {
    super();
    this.#audio = audio;
    this.#ring = ring;
    ring.port.onmessage = ({ data }) => this.#hear(data);
    ring.connect(audio.destination);
    const { port1, port2 } = new MessageChannel();
    ring.port.postMessage({ type: "source", port: port1 }, [port1]);
    this.#decoder.postMessage({ ring: port2, rate: this.rate }, [port2]);
    this.#decoder.onmessage = ({ data }) => {
      if (data.id === this.#id) this.dispatchEvent(new CustomEvent("sound", { detail: data }));
    };
  }

  /**
   * Opens the sound device; browsers allow this only after a key or a click.
   * @param {"opus" | "pcm_s16le"} codec
   */
  static async open(codec) {
    // The device runs at the rate of the media clock, so that a sample counted is a position on the wire.
    const audio = new AudioContext({ sampleRate: codec === "opus" ? OPUS_RATE : PCM_RATE });
    // Asked for now: after the next wait the click is forgotten.
    const isAwake = audio.resume();
    if (!audio.audioWorklet) throw new Error("This browser plays sound only for pages over https or from this machine.");
    await audio.audioWorklet.addModule(new URL("./player.js", import.meta.url));
    await isAwake;
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

  /** Lets go of the sound device. */
  async close() {
    this.#decoder.terminate();
    await this.#audio.close();
  }

  /**
   * Begins a passage; what was there is dropped.
   * @returns {(packet: Packet) => void} Takes its packets in order.
   */
  begin() {
    this.stop();
    const id = this.#id;
    return ({ packet, pos, last }) => {
      if (id === this.#id) this.#decoder.postMessage({ id, packet, pos, last });
    };
  }

  /**
   * Falls silent without forgetting, or goes on.
   * @param {boolean} on
   * @returns {Promise<void>} Resolved when it has.
   */
  hold(on) {
    this.#ring.port.postMessage({ type: "hold", on });
    return new Promise((resolve) => this.#holds.push(resolve));
  }

  /**
   * Falls silent at once.
   * @returns {Promise<number>} Position that the listener had reached.
   */
  stop() {
    const id = (this.#id += 1);
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

  /** @param {any} data */
  #hear(data) {
    if (data.type === "held") return this.#holds.shift()?.();
    const delay = Math.round((this.#audio.outputLatency || 0) * this.rate);
    const audible = Math.max(0, data.played - delay);
    if (data.type === "cleared") return this.#settle(data.id, audible);
    if (data.id !== this.#id) return;
    this.#played = data.done ? data.played : audible;
    const bufferedMs = (data.buffered / this.rate) * 1000;
    const detail = { played: this.#played, bufferedMs, gaps: data.gaps, done: data.done };
    this.dispatchEvent(new CustomEvent("report", { detail }));
  }
}
