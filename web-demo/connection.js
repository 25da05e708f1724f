/**
 * Keeps a session with the server: connects, comes back, and finds out why it cannot.
 *
 *     connecting -> ready <-> lost                 connecting -> key, full, refused, offline: and tries again
 *                     `--> asleep, until somebody wants to speak
 *
 * @module connection
 */

import { Session } from "./dovecote.js";

const RETRY_FIRST_MS = 500;
const RETRY_LAST_MS = 8_000;
/** Close code after which nobody needs a connection: nobody was there. */
const CLOSED_IDLE = 4408;
const CLOSED_UNAUTHORIZED = 4401;
const CLOSED_DOWN = 1012;
const STATES = {
  connecting: "connecting",
  ready: "ready",
  lost: "connection lost, coming back",
  key: "needs a key",
  forbidden: "this page may not connect here",
  full: "server is full, trying again",
  refused: "no place for this key, trying again",
  down: "server is going down, trying again",
  offline: "no server, trying again",
  asleep: "asleep until you speak",
};

/** Events: `state` (`{state, text}`), `session` (a new {@link Session}), `back` (the same one, over a new connection). */
export class Connection extends EventTarget {
  #retryMs = RETRY_FIRST_MS;
  #timer = 0;
  /** @type {Promise<void> | null} */ #opening = null;
  /** @type {Session | null} */ session = null;
  /** @type {keyof typeof STATES} */ state = "connecting";
  /** A key or token, for a server that asks for one. */
  key = "";

  /** @param {import("./dovecote.js").ConnectOptions} options */
  constructor(options) {
    super();
    this.options = options;
  }

  /**
   * Headers that show the key.
   * @returns {Record<string, string>}
   */
  headers() {
    return this.key ? { authorization: `Bearer ${this.key}` } : {};
  }

  /** Connects now, and again when it is lost. */
  open() {
    clearTimeout(this.#timer);
    this.#opening ??= this.#open().finally(() => (this.#opening = null));
    return this.#opening;
  }

  /** Ends the session and begins another, for other options. */
  async renew() {
    const before = this.session;
    this.session = null;
    before?.end();
    await this.open();
  }

  async #open() {
    this.#become("connecting");
    const url = new URL("/v1/tts/stream", location.href);
    url.protocol = url.protocol.replace("http", "ws");
    let session;
    try {
      session = await Session.connect(url, { ...this.options, token: this.key });
    } catch {
      return this.#explain();
    }
    this.#retryMs = RETRY_FIRST_MS;
    this.session = session;
    session.addEventListener("lost", () => this.#become("lost"));
    session.addEventListener("resumed", () => {
      this.#become("ready");
      this.dispatchEvent(new CustomEvent("back"));
    });
    session.addEventListener("close", (event) => this.#closed(session, /** @type {CustomEvent} */ (event).detail.code));
    this.dispatchEvent(new CustomEvent("session", { detail: session }));
    this.#become("ready");
  }

  /**
   * @param {Session} session
   * @param {number} code
   */
  #closed(session, code) {
    if (session !== this.session) return;
    this.session = null;
    if (code === CLOSED_IDLE) return this.#become("asleep");
    if (code === CLOSED_UNAUTHORIZED) return this.#become("key");
    this.#retry(code === CLOSED_DOWN ? "down" : "offline");
  }

  /** A browser does not tell why it was not let in; the plain requests do. */
  async #explain() {
    try {
      const { status } = await fetch("/v1/models", { headers: this.headers() });
      if (status === 401) return this.#become("key");
      if (status === 403) return this.#become("forbidden");
      const { ok } = await fetch("/readyz");
      this.#retry(ok ? "refused" : "full");
    } catch {
      this.#retry("offline");
    }
  }

  /** @param {keyof typeof STATES} state */
  #retry(state) {
    this.#become(state);
    this.#timer = setTimeout(() => this.open(), this.#retryMs);
    this.#retryMs = Math.min(2 * this.#retryMs, RETRY_LAST_MS);
  }

  /** @param {keyof typeof STATES} state */
  #become(state) {
    this.state = state;
    this.dispatchEvent(new CustomEvent("state", { detail: { state, text: STATES[state] } }));
  }
}
