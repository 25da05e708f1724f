/**
 * What the page shows: numbers, transcript, wire log. Decides nothing; everything arrives by a call.
 *
 * @module view
 */

const WIRE_LINES = 80;
/** Passages that stay in the transcript. */
const TURNS = 50;
/** What would fill the log and says little. */
const QUIET = new Set(["ping", "pong", "played"]);

/**
 * The element with an id of index.html.
 * @template {HTMLElement} [T=HTMLElement]
 * @param {string} id
 * @returns {T}
 */
export function element(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`index.html has no #${id}`);
  return /** @type {T} */ (found);
}

/**
 * @param {string} state One word, for the style sheet and for whoever watches the page.
 * @param {string} text
 */
export function showState(state, text) {
  const pill = element("connection");
  document.documentElement.dataset.state = pill.dataset.state = state;
  if (pill.textContent !== text) pill.textContent = text;
}

/**
 * @param {string} id
 * @param {string} value
 */
export function showNumber(id, value) {
  const target = element(id);
  if (target.textContent !== value) target.textContent = value;
}

/**
 * Fills a list of choices; the one that was chosen stays.
 * @param {HTMLSelectElement} select
 * @param {{value: string, name: string}[]} choices
 */
export function fill(select, choices) {
  const chosen = select.value;
  select.replaceChildren(...choices.map(({ value, name }) => new Option(name, value, false, value === chosen)));
}

/** The latest messages on the wire; drawn only while somebody looks. */
export class WireLog {
  /** @type {HTMLDetailsElement} */ #frame = element("developers");
  #list = element("wire");
  /** @type {{direction: "in" | "out", message: any}[]} */ #messages = [];

  constructor() {
    this.#frame.addEventListener("toggle", () => {
      this.#list.replaceChildren(...(this.#frame.open ? this.#messages.map(line) : []));
      this.#list.scrollTop = this.#list.scrollHeight;
    });
  }

  /** @param {{direction: "in" | "out", message: any}} told */
  add(told) {
    if (QUIET.has(told.message.type)) return;
    this.#messages.push(told);
    if (this.#messages.length > WIRE_LINES) this.#messages.shift();
    if (!this.#frame.open) return;
    const list = this.#list;
    const isAtEnd = list.scrollTop + list.clientHeight >= list.scrollHeight - 4;
    list.append(line(told));
    while (list.childElementCount > WIRE_LINES) list.firstElementChild?.remove();
    if (isAtEnd) list.scrollTop = list.scrollHeight;
  }
}

/** @param {{direction: "in" | "out", message: any}} told */
function line({ direction, message }) {
  const item = document.createElement("li");
  item.className = direction;
  item.textContent = `${direction === "out" ? "→" : "←"} ${JSON.stringify(message)}`;
  item.title = item.textContent;
  return item;
}

/** One passage in the transcript. */
export class Turn {
  #text = "";
  #shown = "";
  #heard = span("heard");
  #now = span("now");
  #rest = span("ahead");
  #note = document.createElement("p");

  /** @param {string} [user] What the user said before. */
  constructor(user) {
    const item = document.createElement("li");
    if (user) {
      const said = document.createElement("p");
      said.className = "user";
      said.textContent = user;
      item.append(said);
    }
    const answer = document.createElement("p");
    answer.className = "answer";
    this.#note.className = "note";
    // Read out when it is written; the words themselves are spoken anyway.
    this.#note.role = "status";
    answer.append(this.#heard, this.#now, this.#rest);
    item.append(answer, this.#note);
    element("empty").hidden = true;
    // The newest is on top, where it is seen without scrolling.
    element("turns").prepend(item);
    element("turns").children[TURNS]?.remove();
  }

  /** @param {string} piece */
  write(piece) {
    this.#text += piece;
    this.#rest.textContent += piece;
  }

  /**
   * How far the listener is.
   * @param {string} heard The start of the text.
   * @param {string} [now] What is being heard, behind that.
   */
  mark(heard, now = "") {
    const shown = `${heard}\n${now}`;
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.#heard.textContent = heard;
    this.#now.textContent = now;
    this.#rest.textContent = this.#text.slice(heard.length + now.length);
  }

  /**
   * It was stopped.
   * @param {string} heard
   * @param {string} note
   */
  cut(heard, note) {
    this.#rest.className = "unheard";
    this.mark(heard);
    this.say(note, true);
  }

  /**
   * @param {string} note
   * @param {boolean} [isCut]
   */
  say(note, isCut = false) {
    this.#note.className = isCut ? "note cut" : "note";
    this.#note.textContent = note;
  }
}

/** @param {string} name */
function span(name) {
  return Object.assign(document.createElement("span"), { className: name });
}
