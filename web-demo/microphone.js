/**
 * Hears whether somebody speaks, for a barge-in by voice. The detector is fetched when it is first turned on; what the
 * microphone hears stays in the page.
 *
 *     off -> loading -> listening <-> hearing          off again by a click, or when the microphone is refused
 *
 * @module microphone
 */

const DETECTOR = new URL("./vendor/vad.min.js", import.meta.url);
const FILES = new URL(".", DETECTOR).pathname;
/** Above this a frame of 32 ms is speech: higher than the library's own, against what is left of our own voice. */
const IS_SPEECH = 0.6;
const IS_SILENCE = 0.35;
/** Speech that must be there before a passage is given up for it; a cough is shorter. */
const BARGE_IN_MS = 130;
/** Silence that ends what the visitor says. */
const PAUSE_MS = 700;
const RATE = 16_000;

/**
 * Events: `start` (somebody begins to speak, or coughs), `sure` (it is speech), `false-alarm` (it was not), `end`
 * (`{seconds}` of speech are over), `level` (`{speech}`: 0 to 1, every 32 ms), `state`.
 */
export class Microphone extends EventTarget {
  /** @type {any} */ #vad = null;
  /** @type {"off" | "loading" | "listening" | "hearing"} */ state = "off";

  /** Whether this browser lets a page listen at all: over https, or from this machine. */
  static get isPossible() {
    return navigator.mediaDevices?.getUserMedia !== undefined && "WebAssembly" in globalThis;
  }

  /** Turns it on; rejected when the visitor or the browser says no. */
  async on() {
    if (this.state !== "off") return;
    this.#become("loading");
    try {
      this.#vad ??= await this.#open();
      await this.#vad.start();
      this.#become("listening");
    } catch (error) {
      this.#vad = null;
      this.#become("off");
      throw error;
    }
  }

  /** Turns it off and lets go of the device. */
  async off() {
    if (this.state !== "listening" && this.state !== "hearing") return;
    this.#become("off");
    await this.#vad.pause();
  }

  async #open() {
    await load(DETECTOR);
    const tell = (/** @type {string} */ type, /** @type {object} */ detail = {}) =>
      this.dispatchEvent(new CustomEvent(type, { detail }));
    return /** @type {any} */ (globalThis).vad.MicVAD.new({
      model: "v5",
      baseAssetPath: FILES,
      onnxWASMBasePath: FILES,
      startOnLoad: false,
      positiveSpeechThreshold: IS_SPEECH,
      negativeSpeechThreshold: IS_SILENCE,
      minSpeechMs: BARGE_IN_MS,
      redemptionMs: PAUSE_MS,
      // One thread: a page needs no more, and more would ask for headers that forbid other things.
      ortConfig: (/** @type {any} */ ort) => Object.assign(ort.env.wasm, { numThreads: 1 }),
      onFrameProcessed: (/** @type {{isSpeech: number}} */ { isSpeech }) => tell("level", { speech: isSpeech }),
      onSpeechStart: () => {
        this.#become("hearing");
        tell("start");
      },
      onSpeechRealStart: () => tell("sure"),
      onVADMisfire: () => {
        this.#become("listening");
        tell("false-alarm");
      },
      onSpeechEnd: (/** @type {Float32Array} */ sound) => {
        this.#become("listening");
        tell("end", { seconds: sound.length / RATE });
      },
    });
  }

  /** @param {"off" | "loading" | "listening" | "hearing"} state */
  #become(state) {
    // A last word of the detector after it was turned off changes nothing.
    if (this.state === "off" && state !== "loading") return;
    this.state = state;
    this.dispatchEvent(new CustomEvent("state", { detail: { state } }));
  }
}

/**
 * Runs a script that is no module.
 * @param {URL} url
 * @returns {Promise<void>}
 */
function load(url) {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = url.href;
    script.onload = () => resolve();
    script.onerror = () => reject(new Error("the speech detector cannot be loaded"));
    document.head.append(script);
  });
}
