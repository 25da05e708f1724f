/**
 * A client of `dovecote.v1` for browsers: text goes out while it is still being written, sound comes back, and a lost
 * connection is taken up where it broke off.
 *
 *     const session = await Session.connect("wss://voice.example/v1/tts/stream", { audio: { codec: "opus" } });
 *     const context = session.open({ style: "conversational" });
 *     context.addEventListener("audio", ({ detail: frame }) => play(frame.packet));
 *     context.write("The train leaves ");
 *     context.write("at nine.");
 *     context.end();
 *     // The user barges in, having heard up to `pos`:
 *     const { heard } = await context.cancel(pos);
 *
 * It knows no audio device and decodes nothing. docs/browser.md shows its use, docs/protocol.md has every message.
 *
 * @module dovecote
 */

/** The subprotocol that both sides must name. */
export const SUBPROTOCOL = "dovecote.v1";

const HEADER_BYTES = 20;
/** Of the length of one packet of a pack. */
const LENGTH_BYTES = 2;
const KIND_AUDIO = 1;
const FLAG_LAST_OF_CONTEXT = 2;
const FLAG_GAP = 4;
const FLAG_PACKED = 16;
const CLOSE_NORMAL = 1000;
const CLOSE_LOST = 1006;
/** Closes by which the server says that the session is over; any other is a lost connection. */
const CLOSES_FOR_GOOD = new Set([CLOSE_NORMAL, 1007, 1009, 1011, 1012, 4400, 4401, 4408, 4409]);
/** How long a session is to be kept for its client, unless that says otherwise. */
const RESUME_WINDOW_MS = 10_000;
/** Between tries to come back: the first, and the longest. */
const RETRY_FIRST_MS = 200;
const RETRY_LAST_MS = 2_000;
/** A try that has no answer by then is given up; the next may take another way through the network. */
const DIAL_MS = 5_000;
/** A connection that brought no answer between two of these is taken for lost. */
const PING_MS = 5_000;
/** When text is offered again that the server had no room for, and did not say when it will. */
const TEXT_AGAIN_MS = 500;
/** Most UTF-16 units of one message: far below what a server takes. */
const PIECE_UNITS = 2_000;
/** Most flushes, and most marks, that may wait for their sound at once. */
const ASKS = 64;

/**
 * @typedef {object} Frame One packet of sound.
 * @property {number} handle The server's number of the context.
 * @property {number} seq 0, 1, 2 ... in the context.
 * @property {number} pos The first sample, on the media clock.
 * @property {boolean} last Whether no sound of the context follows.
 * @property {boolean} gap Whether packets before it are lost for good.
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
 * @typedef {object} ConnectOptions `token`, and fields of `session.start`.
 * @property {string | (() => string | Promise<string>)} [token] A token or key for a server that asks for one; a function
 *   is called for each connection, so that it can fetch a fresh one.
 * @property {{codec?: string, sample_rate?: number, bitrate?: number, frame_ms?: number}} [audio]
 * @property {object} [defaults] For every context: `voice`, `language`, `style`, `seed` ...
 * @property {"none" | "word" | "char"} [timestamps]
 * @property {{max_ahead_ms?: number, release?: "frame" | "commit"}} [flow]
 * @property {number} [resume_window_ms] How long the server keeps the session when the connection is lost: 10,000; 0 ends it.
 */

/**
 * @typedef {object} Piece Text with a number; said again it counts once. The last may be the empty one that ends it.
 * @property {number} seq
 * @property {string} text
 * @property {boolean} end
 */

/**
 * @typedef {object} Ask A flush or a mark.
 * @property {"flush" | "mark"} type
 * @property {string} id
 * @property {"flushed" | "mark"} answer
 * @property {number} offset Of the text before it, in code points.
 * @property {boolean} isAnswered
 */

/** A message of the server that says why something cannot be done. */
export class DovecoteError extends Error {
  /** @param {{code: string, message: string}} told */
  constructor(told) {
    super(told.message);
    this.name = "DovecoteError";
    /** One of the codes in docs/protocol.md, or `closed`: nobody answers, or lets the client in. */
    this.code = told.code;
  }
}

/**
 * One session, over one connection after the other. Events: `message` (every message, `{direction, message}`), `lost`
 * (`{code}`: the connection went, and a new one is tried), `resumed` (`{resumed}`: it is back; `false` when the server
 * had given the session up, and its contexts with it), `error` (a {@link DovecoteError} of no context), and `close`
 * (`{code, reason}`: it is over).
 */
export class Session extends EventTarget {
  /** @type {WebSocket | null} */ #socket = null;
  /** @type {Map<string, Context>} */ #contexts = new Map();
  /** @type {Map<number, Context>} */ #byHandle = new Map();
  #opened = 0;
  #lastN = 0;
  #isOver = false;
  /** When the ping was sent that has no answer yet. */
  #pingedAt = 0;

  /**
   * What the server said of itself: `voices`, `models`, `audio`, `limits` ...
   * @type {any}
   */
  ready = null;
  /** Milliseconds to the server and back, when last measured; measured while something is spoken. */
  roundTripMs = NaN;

  /**
   * Use {@link Session.connect}.
   * @param {string | URL} url
   * @param {ConnectOptions} options
   */
  constructor(url, { token, ...start }) {
    super();
    this.url = url;
    this.token = token;
    this.start = { resume_window_ms: RESUME_WINDOW_MS, ...start };
    const beat = setInterval(() => this.#beat(), PING_MS);
    this.addEventListener("close", () => clearInterval(beat));
  }

  /**
   * Connects and starts a session.
   *
   * @param {string | URL} url Of `/v1/tts/stream`, as `ws:` or `wss:`.
   * @param {ConnectOptions} [options]
   * @returns {Promise<Session>} Rejected with a {@link DovecoteError} when the server wants nothing of it.
   */
  static async connect(url, options = {}) {
    const session = new Session(url, options);
    try {
      await session.#dial(session.start);
    } catch (error) {
      session.#close(CLOSE_LOST, String(error));
      throw error;
    }
    return session;
  }

  /** Whether messages arrive now. */
  get isOpen() {
    return !this.#isOver && this.ready !== null && this.#socket?.readyState === WebSocket.OPEN;
  }

  /**
   * Begins a passage of speech; while the connection is away, as soon as it is back.
   *
   * @param {{replaces?: string[] | "*", [field: string]: unknown}} [options] Fields of `context.open`. `replaces`
   *   stops what is being said in the same message: tell its position with {@link Context#played} before.
   * @returns {Context}
   */
  open(options = {}) {
    this.#opened += 1;
    const context = new Context(this, `t${this.#opened}`, options);
    if (this.#isOver) {
      queueMicrotask(() => context.take("lost", { code: CLOSE_LOST, reason: "the session is over" }));
      return context;
    }
    this.#contexts.set(context.id, context);
    context.send({ type: "context.open", ...options });
    return context;
  }

  /** Ends the session. With `drain`, what is open is spoken to its end. */
  end(drain = false) {
    if (this.isOpen) return this.send({ type: "session.end", drain });
    this.#socket?.close(CLOSE_NORMAL);
    this.#close(CLOSE_NORMAL, "");
  }

  /** Leaves the connection as it is, and comes back over a new one: for a device that has changed its network. */
  reconnect() {
    if (this.isOpen) this.#lost(CLOSE_LOST, "left by the client");
  }

  /**
   * Sends a message as it is; nothing happens while there is no connection.
   * @param {{type: string, [field: string]: unknown}} message
   */
  send(message) {
    if (!this.isOpen) return;
    this.#socket?.send(JSON.stringify(message));
    this.#tell("message", { direction: "out", message });
  }

  /**
   * One connection, up to its `session.ready`.
   * @param {object} start
   */
  async #dial(start) {
    const token = typeof this.token === "function" ? await this.token() : this.token;
    const protocols = token ? [SUBPROTOCOL, `dovecote.token.${base64url(token)}`] : [SUBPROTOCOL];
    const socket = new WebSocket(this.url, protocols);
    socket.binaryType = "arraybuffer";
    this.#socket = socket;
    let isReady = false;
    await new Promise((resolve, reject) => {
      const ended = (/** @type {number} */ code, /** @type {string} */ reason) => {
        clearTimeout(late);
        reject(new DovecoteError({ code: "closed", message: reason || `the connection closed (${code})` }));
        if (isReady && socket === this.#socket) this.#lost(code, reason);
      };
      const late = setTimeout(() => {
        ended(CLOSE_LOST, "no answer in time");
        this.#socket = null;
        if (socket.readyState === WebSocket.CONNECTING) socket.close();
      }, DIAL_MS);
      socket.onopen = () => socket.send(JSON.stringify({ type: "session.start", ...start }));
      socket.onclose = ({ code, reason }) => ended(code, reason);
      socket.onmessage = ({ data }) => {
        // What is still on its way over a connection that was left will be sent again.
        if (socket !== this.#socket) return;
        if (data instanceof ArrayBuffer) return this.#audio(data);
        const message = JSON.parse(data);
        if (!isReady && message.type === "session.ready") {
          isReady = true;
          clearTimeout(late);
          this.#begin(message);
          resolve(undefined);
        } else if (!isReady && message.type === "error") {
          reject(new DovecoteError(message));
        } else this.#text(message);
      };
    });
  }

  /** @param {any} ready */
  #begin(ready) {
    const isFirst = this.ready === null;
    this.ready = ready;
    this.#lastN = ready.n;
    this.#pingedAt = 0;
    this.#tell("message", { direction: "in", message: ready });
    if (isFirst) return;
    if (ready.resumed) {
      for (const context of this.#contexts.values()) context.again(ready.next_text_seq?.[context.id]);
    } else this.#forgetAll({ code: CLOSE_LOST, reason: "the session was given up" });
    this.#tell("resumed", { resumed: ready.resumed });
  }

  /**
   * @param {number} code
   * @param {string} reason
   */
  #lost(code, reason) {
    const left = this.#socket;
    this.#socket = null;
    if (this.#isOver) return;
    if (CLOSES_FOR_GOOD.has(code) || !this.ready.resume_window_ms) return this.#close(code, reason);
    this.#tell("lost", { code, reason });
    this.#comeBack().then(() => {
      // Closed when its place is taken, since a close would end the session.
      if (left && left.readyState < WebSocket.CLOSING) left.close();
    });
  }

  /** Tries until the server no longer keeps the session. */
  async #comeBack() {
    const { session_id, token, resume_window_ms } = this.ready;
    const deadline = performance.now() + resume_window_ms;
    for (let wait = RETRY_FIRST_MS; performance.now() < deadline; wait = Math.min(2 * wait, RETRY_LAST_MS)) {
      await new Promise((resolve) => setTimeout(resolve, wait));
      if (this.#isOver) return;
      const seen = [...this.#contexts.values()].filter((context) => context.lastSeq >= 0);
      const last = Object.fromEntries(seen.map((context) => [context.id, context.lastSeq]));
      const resume = { session_id, token, last_n: this.#lastN, last };
      try {
        return await this.#dial({ ...this.start, resume });
      } catch (error) {
        // Nobody answers yet; whoever says no will say it again.
        if (!(error instanceof DovecoteError) || error.code !== "closed") break;
      }
    }
    this.#close(CLOSE_LOST, "the connection could not be taken up again");
  }

  /** Asks whether the server is still there, while something is spoken; an idle session may fall asleep. */
  #beat() {
    const isSpeaking = [...this.#contexts.values()].some((context) => !context.isDone);
    if (!this.isOpen || !isSpeaking) return;
    if (this.#pingedAt > 0) return this.reconnect();
    this.#pingedAt = performance.now();
    this.send({ type: "ping", t: Math.round(this.#pingedAt) });
  }

  /** @param {ArrayBuffer} bytes */
  #audio(bytes) {
    if (bytes.byteLength < HEADER_BYTES) return;
    const view = new DataView(bytes);
    if (view.getUint8(0) !== KIND_AUDIO) return;
    const [flags, count, handle] = [view.getUint8(1), view.getUint16(2), view.getUint32(4)];
    const context = this.#byHandle.get(handle);
    const { sample_rate, frame_ms } = this.ready.audio;
    const isPacked = (flags & FLAG_PACKED) !== 0;
    // The lengths of all packets, then the packets.
    let at = HEADER_BYTES + (isPacked ? count * LENGTH_BYTES : 0);
    for (let i = 0; context && i < count && at <= bytes.byteLength; i += 1) {
      const rest = bytes.byteLength - at;
      const size = isPacked ? Math.min(view.getUint16(HEADER_BYTES + i * LENGTH_BYTES), rest) : rest;
      context.hear({
        handle,
        seq: view.getUint32(8) + i,
        pos: Number(view.getBigUint64(12)) + (i * sample_rate * frame_ms) / 1000,
        last: (flags & FLAG_LAST_OF_CONTEXT) !== 0 && i === count - 1,
        gap: (flags & FLAG_GAP) !== 0 && i === 0,
        packet: new Uint8Array(bytes, at, size),
      });
      at += size;
    }
  }

  /** @param {any} message */
  #text(message) {
    this.#lastN = Math.max(this.#lastN, message.n ?? 0);
    this.#tell("message", { direction: "in", message });
    if (message.type === "pong" && this.#pingedAt > 0) {
      this.roundTripMs = performance.now() - this.#pingedAt;
      this.#pingedAt = 0;
    }
    const context = this.#contexts.get(message.ctx);
    if (message.type === "error" && !context) this.#tell("error", new DovecoteError(message));
    if (!context) return;
    if (message.type === "context.opened") this.#byHandle.set(message.handle, context);
    context.take(message.type.replace("context.", ""), message);
    const isRefused = message.type === "error" && message.ref?.type === "context.open" && !context.opened;
    if (message.type === "context.cancelled" || isRefused) this.#forget(context);
    // So long it can still be asked what was heard of it.
    if (message.type === "context.done") context.late = setTimeout(() => this.#forget(context), this.ready.limits.retain_ms);
  }

  /** @param {Context} context */
  #forget(context) {
    this.#contexts.delete(context.id);
    if (context.opened) this.#byHandle.delete(context.opened.handle);
  }

  /** @param {{code: number, reason: string}} why */
  #forgetAll(why) {
    for (const context of this.#contexts.values()) {
      // A program that has nothing else to do may end.
      clearTimeout(context.late);
      context.take("lost", why);
    }
    this.#contexts.clear();
    this.#byHandle.clear();
  }

  /**
   * @param {number} code
   * @param {string} reason
   */
  #close(code, reason) {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#forgetAll({ code, reason });
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
 * `flushed`, `mark`, `parked`, `resumed`, `pressure`, `done`, `cancelled`, `error`; and `lost` when the session went.
 */
export class Context extends EventTarget {
  /**
   * All that is said, in order: text, and flushes and marks, which mean the text before them.
   * @type {(Piece | Ask)[]}
   */
  #said = [];
  /** What of it is sent next. */
  #next = 0;
  /**
   * Where the pieces of text are, by `seq`.
   * @type {number[]}
   */
  #places = [];
  #chars = 0;
  /** Whether text had no room, so that what followed it came before its turn. */
  #wasRefused = false;
  /** @type {{type: string, [field: string]: unknown}[]} */ #cancels = [];
  /** @type {((cancelled: Cancelled | null) => void)[]} */ #waiting = [];
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #again;
  #options;

  /**
   * Use {@link Session#open}.
   * @param {Session} session
   * @param {string} id
   * @param {object} options
   */
  constructor(session, id, options) {
    super();
    this.session = session;
    this.#options = options;
    /** Its `ctx` on the wire. */
    this.id = id;
    /**
     * Its `context.opened`.
     * @type {any}
     */
    this.opened = null;
    /** Whether all of its sound has been made. */
    this.isDone = false;
    /** Of the last packet that arrived; -1 before the first. */
    this.lastSeq = -1;
    /**
     * For the session: runs until nobody can be asked about it any more.
     * @type {ReturnType<typeof setTimeout> | undefined}
     */
    this.late = undefined;
  }

  /** Everything that was written. */
  get text() {
    return this.#said.map((item) => ("text" in item ? item.text : "")).join("");
  }

  /**
   * Appends text, as small a piece as there is.
   * @param {string} text
   */
  write(text) {
    // By characters, so that none is cut in two.
    for (let rest = Array.from(text); rest.length > 0; ) this.#append(rest.splice(0, PIECE_UNITS / 2).join(""), false);
  }

  /** No more text: `done` follows the last sound. */
  end() {
    // As a piece of text it has a number, and can be said twice.
    this.#append("", true);
  }

  /**
   * Has everything so far spoken.
   * @param {string} id Comes back in `flushed`.
   */
  flush(id) {
    this.#ask("flush", id);
  }

  /**
   * Asks where the text so far ends in the sound.
   * @param {string} id Comes back in `mark`.
   */
  mark(id) {
    this.#ask("mark", id);
  }

  /**
   * Tells how far the listener is: every 200 to 500 ms, and once at the end.
   * @param {number} pos On the media clock.
   */
  played(pos) {
    this.send({ type: "played", pos });
  }

  /**
   * Stops it. No sound follows the answer.
   *
   * @param {number} [played] Position that the listener had reached.
   * @param {"now" | "word" | "sentence"} [at] Whether what is being heard is said to its end.
   * @returns {Promise<Cancelled | null>} What was heard; null when the session is lost.
   */
  cancel(played, at = "now") {
    const answer = new Promise((resolve) => this.#waiting.push(resolve));
    const message = { type: "cancel", played, at };
    this.#cancels.push(message);
    this.send(message);
    return answer;
  }

  /**
   * Sends a message about it.
   * @param {{type: string, [field: string]: unknown}} message
   */
  send({ type, ...fields }) {
    this.session.send({ type, ctx: this.id, ...fields });
  }

  /**
   * For the session: there is a new connection, and the server has text up to here, or does not know the context.
   * @param {number | undefined} nextSeq
   */
  again(nextSeq) {
    if (nextSeq === undefined && !this.opened) this.send({ type: "context.open", ...this.#options });
    clearTimeout(this.#again);
    this.#again = undefined;
    // What was asked behind the last piece that the server has may have been lost.
    if (nextSeq) this.#next = this.#places[nextSeq - 1] + 1;
    else this.#next = nextSeq === undefined && this.opened ? this.#said.length : 0;
    if (!this.isDone) this.#say();
    for (const message of this.#cancels) this.send(message);
  }

  /**
   * For the session: a packet has arrived.
   * @param {Frame} frame
   */
  hear(frame) {
    // Sent twice, after a doubt whether it had arrived.
    if (frame.seq <= this.lastSeq) return;
    this.lastSeq = frame.seq;
    this.#tell("audio", frame);
  }

  /**
   * For the session: something about it has arrived.
   * @param {string} type
   * @param {any} detail
   */
  take(type, detail) {
    if (type === "opened") this.opened = detail;
    if (type === "done") this.isDone = true;
    if ((type === "flushed" || type === "mark") && !this.#isAnswer(type, detail)) return;
    if (type === "cancelled" || type === "lost") {
      this.isDone = true;
      clearTimeout(this.#again);
      this.#cancels = [];
      for (const resolve of this.#waiting.splice(0)) resolve(type === "lost" ? null : detail);
    }
    if (type === "error" && this.#isForLater(detail)) return;
    this.#tell(type, detail);
  }

  /**
   * Whether an error says that text must wait, and will be sent again.
   * @param {{code: string, ref?: {type: string, seq?: number}, retry_after_ms?: number}} error
   */
  #isForLater({ code, ref, retry_after_ms }) {
    if (ref?.type === "context.open" && code === "ctx_exists") return this.opened !== null || this.lastSeq >= 0;
    if (ref?.type !== "text" || ref.seq === undefined) return false;
    // What follows a piece that was not taken is not taken either.
    if (code === "seq_gap") return this.#wasRefused;
    if (code !== "text_overflow" && code !== "overloaded") return false;
    this.#wasRefused = true;
    this.#next = this.#places[ref.seq];
    clearTimeout(this.#again);
    this.#again = setTimeout(() => {
      this.#again = undefined;
      this.#say();
    }, retry_after_ms ?? TEXT_AGAIN_MS);
    return true;
  }

  /**
   * Whether an answer is to something asked: not when it came twice, or when text before it had found no room.
   * @param {"flushed" | "mark"} type
   * @param {{id: string, text_offset: number}} answer
   */
  #isAnswer(type, { id, text_offset }) {
    const asked = this.#said.find((item) => "offset" in item && !item.isAnswered && item.answer === type && item.id === id && item.offset === text_offset);
    if (!asked) return false;
    /** @type {Ask} */ (asked).isAnswered = true;
    // There may be one more that waited for its turn.
    this.#say();
    return true;
  }

  /**
   * @param {string} text
   * @param {boolean} end
   */
  #append(text, end) {
    this.#places.push(this.#said.length);
    this.#said.push({ seq: this.#places.length - 1, text, end });
    this.#chars += Array.from(text).length;
    this.#say();
  }

  /**
   * @param {"flush" | "mark"} type
   * @param {string} id
   */
  #ask(type, id) {
    const answer = type === "flush" ? "flushed" : "mark";
    this.#said.push({ type, id, answer, offset: this.#chars, isAnswered: false });
    this.#say();
  }

  /** Says what the server has not got yet, unless it has no connection or no room. */
  #say() {
    for (; this.session.isOpen && this.#again === undefined && this.#next < this.#said.length; this.#next += 1) {
      const item = this.#said[this.#next];
      if ("text" in item) {
        const { seq, text, end } = item;
        this.send({ type: "text", seq, text, ...(end ? { end } : {}) });
      } else if (!item.isAnswered) {
        const isLike = (/** @type {Piece | Ask} */ other) => "offset" in other && other.type === item.type && !other.isAnswered;
        if (this.#said.slice(0, this.#next).filter(isLike).length >= ASKS) return;
        this.send({ type: item.type, id: item.id });
      }
    }
  }

  /**
   * @param {string} type
   * @param {unknown} detail
   */
  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}

/** @param {string} text */
function base64url(text) {
  const bytes = String.fromCharCode(...new TextEncoder().encode(text));
  return btoa(bytes).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}
