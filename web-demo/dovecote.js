/**
 * A client of `dovecote.v1` for browsers: text goes out while it is still being written, sound comes back.
 *
 *     const session = await Session.connect("ws://127.0.0.1:8080/v1/tts/stream", { audio: { codec: "opus" } });
 *     const context = session.open({ style: "conversational" });
 *     context.addEventListener("audio", ({ detail: frame }) => play(frame.packet));
 *     context.write("The train leaves ");
 *     context.write("at nine.");
 *     context.end();
 *     // The user barges in, having heard up to `pos`:
 *     const { heard } = await context.cancel(pos);
 *
 * It knows no audio device and decodes nothing: see docs/protocol.md for every field of every message.
 *
 * @module dovecote
 */

/** The subprotocol that both sides must name. */
export const SUBPROTOCOL = "dovecote.v1";

const HEADER_BYTES = 20;
const KIND_AUDIO = 1;
const FLAG_LAST = 2;
const CLOSE_NORMAL = 1000;

/**
 * @typedef {object} Frame One packet of sound.
 * @property {number} handle The server's number of the context.
 * @property {number} seq 0, 1, 2 ... in the context.
 * @property {number} pos The first sample, on the media clock.
 * @property {boolean} last Whether no sound of the context follows.
 * @property {Uint8Array} packet Opus or PCM, as agreed at the start.
 */

/**
 * @typedef {object} Heard What the listener heard before a barge-in.
 * @property {number} text_to Code points of the context's text.
 * @property {string} text The start of the text, as it was sent.
 * @property {number} last_word_index
 * @property {boolean} partial_word Whether the last word was cut off.
 */

/**
 * @typedef {object} Cancelled
 * @property {string} ctx
 * @property {boolean} late Whether everything had been made before.
 * @property {string} reason
 * @property {number} generated In samples, like `sent` and `played`.
 * @property {number} sent
 * @property {number} played
 * @property {boolean} exact Whether `heard` was measured, not estimated.
 * @property {Heard} heard
 * @property {number} dropped_ms
 * @property {{kv_blocks: number, ms: number}} freed
 */

/**
 * @typedef {object} StartOptions Fields of `session.start`.
 * @property {{codec?: string, sample_rate?: number, bitrate?: number, frame_ms?: number}} [audio]
 * @property {object} [defaults] For every context: `voice`, `language`, `style`, `seed` ...
 * @property {{max_ahead_ms?: number}} [flow]
 */

/** A message of the server that says why something cannot be done. */
export class DovecoteError extends Error {
  /** @param {{code: string, message: string}} told */
  constructor(told) {
    super(told.message);
    this.name = "DovecoteError";
    /** One of the codes in docs/protocol.md. */
    this.code = told.code;
  }
}

/**
 * One connection. Events: `message` (every message, `{direction, message}`), `error` (errors of no context),
 * `close` (`{code, reason}`).
 */
export class Session extends EventTarget {
  /** @type {WebSocket} */ #socket;
  /** @type {Map<string, Context>} */ #contexts = new Map();
  /** @type {Map<number, Context>} */ #byHandle = new Map();
  #opened = 0;

  /**
   * What the server said of itself: `voices`, `models`, `audio`, `limits` ...
   * @type {any}
   */
  ready = null;

  /** @param {WebSocket} socket */
  constructor(socket) {
    super();
    this.#socket = socket;
  }

  /**
   * Connects and starts a session.
   *
   * @param {string | URL} url Of `/v1/tts/stream`, as `ws:` or `wss:`.
   * @param {StartOptions} [options]
   * @returns {Promise<Session>} Rejected with a {@link DovecoteError} when the server wants nothing of it.
   */
  static connect(url, options = {}) {
    const socket = new WebSocket(url, SUBPROTOCOL);
    socket.binaryType = "arraybuffer";
    const session = new Session(socket);
    return new Promise((resolve, reject) => {
      socket.onopen = () => session.send({ type: "session.start", ...options });
      socket.onclose = ({ code, reason }) => {
        reject(new DovecoteError({ code: "closed", message: reason || `the connection closed (${code})` }));
        session.#close(code, reason);
      };
      socket.onmessage = ({ data }) => {
        if (data instanceof ArrayBuffer) return session.#audio(data);
        const message = JSON.parse(data);
        if (message.type === "session.ready") {
          session.ready = message;
          resolve(session);
        } else if (message.type === "error" && !session.ready) {
          reject(new DovecoteError(message));
        }
        session.#text(message);
      };
    });
  }

  /** Whether messages still arrive. */
  get isOpen() {
    return this.#socket.readyState === WebSocket.OPEN;
  }

  /**
   * Begins a passage of speech.
   *
   * @param {{replaces?: string[] | "*", [field: string]: unknown}} [options] Fields of `context.open`. `replaces`
   *   stops what is being said in the same message: tell its position with {@link Context#played} before.
   * @returns {Context}
   */
  open(options = {}) {
    this.#opened += 1;
    const context = new Context(this, `t${this.#opened}`);
    this.#contexts.set(context.id, context);
    this.send({ type: "context.open", ctx: context.id, ...options });
    return context;
  }

  /** Ends the session. With `drain`, what is open is spoken to its end. */
  end(drain = false) {
    if (this.isOpen) this.send({ type: "session.end", drain });
    else this.#socket.close(CLOSE_NORMAL);
  }

  /**
   * Sends a message as it is; nothing happens on a closed connection.
   * @param {{type: string, [field: string]: unknown}} message
   */
  send(message) {
    if (!this.isOpen) return;
    this.#socket.send(JSON.stringify(message));
    this.#tell("message", { direction: "out", message });
  }

  /** @param {ArrayBuffer} bytes */
  #audio(bytes) {
    if (bytes.byteLength < HEADER_BYTES) return;
    const view = new DataView(bytes);
    if (view.getUint8(0) !== KIND_AUDIO) return;
    const handle = view.getUint32(4);
    /** @type {Frame} */
    const frame = {
      handle,
      seq: view.getUint32(8),
      pos: Number(view.getBigUint64(12)),
      last: (view.getUint8(1) & FLAG_LAST) !== 0,
      packet: new Uint8Array(bytes, HEADER_BYTES),
    };
    this.#byHandle.get(handle)?.take("audio", frame);
  }

  /** @param {any} message */
  #text(message) {
    this.#tell("message", { direction: "in", message });
    const context = this.#contexts.get(message.ctx);
    if (message.type === "error" && !context) this.#tell("error", new DovecoteError(message));
    if (!context) return;
    if (message.type === "context.opened") this.#byHandle.set(message.handle, context);
    context.take(message.type.replace("context.", ""), message);
    if (message.type === "context.cancelled") this.#forget(context);
  }

  /** @param {Context} context */
  #forget(context) {
    this.#contexts.delete(context.id);
    for (const [handle, other] of this.#byHandle) {
      if (other === context) this.#byHandle.delete(handle);
    }
  }

  /**
   * @param {number} code
   * @param {string} reason
   */
  #close(code, reason) {
    for (const context of this.#contexts.values()) context.take("lost", { code, reason });
    this.#contexts.clear();
    this.#byHandle.clear();
    this.#tell("close", { code, reason });
  }

  /**
   * @param {string} type
   * @param {unknown} detail
   */
  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}

/**
 * One passage of speech. Events carry the server's message as `detail`: `opened`, `audio` (a {@link Frame}), `commit`,
 * `flushed`, `parked`, `resumed`, `pressure`, `done`, `cancelled`, `error`; and `lost` when the connection went.
 */
export class Context extends EventTarget {
  #seq = 0;
  #text = "";
  /** @type {((cancelled: Cancelled) => void)[]} */ #waiting = [];

  /**
   * @param {Session} session
   * @param {string} id
   */
  constructor(session, id) {
    super();
    this.session = session;
    /** Its `ctx` on the wire. */
    this.id = id;
    /**
     * Its `context.opened`.
     * @type {any}
     */
    this.opened = null;
  }

  /** Everything that was written. */
  get text() {
    return this.#text;
  }

  /**
   * Appends text, as small a piece as there is.
   * @param {string} text
   */
  write(text) {
    this.session.send({ type: "text", ctx: this.id, seq: this.#seq, text });
    this.#seq += 1;
    this.#text += text;
  }

  /**
   * Has everything so far spoken.
   * @param {string} id Comes back in `flushed`.
   */
  flush(id) {
    this.session.send({ type: "flush", ctx: this.id, id });
  }

  /** No more text: `done` follows the last sound. */
  end() {
    this.session.send({ type: "end", ctx: this.id });
  }

  /**
   * Tells how far the listener is: every 200 to 500 ms, and once at the end.
   * @param {number} pos On the media clock.
   */
  played(pos) {
    this.session.send({ type: "played", ctx: this.id, pos });
  }

  /**
   * Stops it. No sound follows the answer.
   *
   * @param {number} [played] Position that the listener had reached.
   * @returns {Promise<Cancelled | null>} What was heard; null when the connection is lost.
   */
  cancel(played) {
    if (!this.session.isOpen) return Promise.resolve(null);
    this.session.send({ type: "cancel", ctx: this.id, played });
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /**
   * For the session: something of this context has arrived.
   * @param {string} type
   * @param {any} detail
   */
  take(type, detail) {
    if (type === "opened") this.opened = detail;
    if (type === "cancelled" || type === "lost") {
      for (const resolve of this.#waiting.splice(0)) resolve(type === "lost" ? null : detail);
    }
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}
