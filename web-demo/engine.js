/**
 * What the engine holds, asked for again and again while somebody looks: `GET /v1/engine`.
 *
 * @module engine
 */

const PATH = "/v1/engine";
/** While something is spoken, and while nothing is. */
const BUSY_MS = 150;
const IDLE_MS = 2_000;
/** So long it looks often after the last word, to see that memory is free again. */
const LINGER_MS = 3_000;

/**
 * @typedef {object} Glance
 * @property {number} contexts
 * @property {number} listeners
 * @property {number} parked
 * @property {number} steps
 * @property {{used: number, cached: number, total: number}[]} kv_blocks Of each stage.
 */

/** Event: `glance` (a {@link Glance}), or `gone` when the engine cannot be asked. */
export class EngineWatch extends EventTarget {
  #busyUntil = 0;
  #timer = 0;

  /** @param {() => HeadersInit} headers With the key, for a server that wants one. */
  constructor(headers) {
    super();
    this.headers = headers;
    document.addEventListener("visibilitychange", () => this.look());
  }

  /**
   * Whether something is being spoken: then it looks more often.
   * @param {boolean} is
   */
  set isBusy(is) {
    this.#busyUntil = is ? Infinity : performance.now() + LINGER_MS;
    this.look();
  }

  /** Looks now, and from now on. */
  async look() {
    clearTimeout(this.#timer);
    if (document.hidden) return;
    // Set first: two looks at once leave one timer.
    this.#timer = setTimeout(() => this.look(), performance.now() < this.#busyUntil ? BUSY_MS : IDLE_MS);
    try {
      const answer = await fetch(PATH, { headers: this.headers(), cache: "no-store" });
      if (!answer.ok) throw new Error(answer.statusText);
      this.dispatchEvent(new CustomEvent("glance", { detail: await answer.json() }));
    } catch {
      this.dispatchEvent(new CustomEvent("gone"));
    }
  }
}
