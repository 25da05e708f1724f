/**
 * What the page shows: meters, transcript, wire log. Decides nothing; everything arrives by a call.
 *
 * @module view
 */

const WIRE_LINES = 80;
/** Peaks in the level plot, one in 20 ms. */
const LEVELS = 250;

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
 * @param {string[]} names
 */
export function fill(select, names) {
  const chosen = select.value;
  select.replaceChildren(...names.map((name) => new Option(name, name, false, name === chosen)));
}

/** @param {{direction: "in" | "out", message: any}} detail */
export function showMessage({ direction, message }) {
  const list = element("wire");
  const isAtEnd = list.scrollTop + list.clientHeight >= list.scrollHeight - 4;
  const line = document.createElement("li");
  line.className = direction;
  line.textContent = `${direction === "out" ? "→" : "←"} ${JSON.stringify(message)}`;
  line.title = line.textContent;
  list.append(line);
  while (list.childElementCount > WIRE_LINES) list.firstElementChild?.remove();
  if (isAtEnd) list.scrollTop = list.scrollHeight;
}

/** One passage in the transcript. */
export class Turn {
  #text = "";
  #marked = 0;
  #heard = document.createElement("span");
  #rest = document.createElement("span");
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
    this.#heard.className = "heard";
    this.#rest.className = "ahead";
    this.#note.className = "note";
    // Read out when it is written; the words themselves are spoken anyway.
    this.#note.role = "status";
    answer.append(this.#heard, this.#rest);
    item.append(answer, this.#note);
    element("empty").hidden = true;
    // The newest is on top, where it is seen without scrolling.
    element("turns").prepend(item);
  }

  /** @param {string} piece */
  write(piece) {
    this.#text += piece;
    this.#split();
  }

  /** @param {number} units UTF-16 units that have been heard, as far as is known. */
  mark(units) {
    if (units <= this.#marked) return;
    this.#marked = units;
    this.#split();
  }

  /**
   * It was stopped.
   * @param {string} heard
   * @param {string} note
   */
  cut(heard, note) {
    this.#marked = heard.length;
    this.#rest.className = "unheard";
    this.#split();
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

  #split() {
    this.#heard.textContent = this.#text.slice(0, this.#marked);
    this.#rest.textContent = this.#text.slice(this.#marked);
  }
}

/** The last seconds of the sound. */
export class LevelPlot {
  /** @type {number[]} */ #levels = new Array(LEVELS).fill(0);
  #isDrawing = false;

  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    const redraw = () => this.#draw();
    new ResizeObserver(redraw).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  }

  /** @param {number} peak 0 to 1. */
  push(peak) {
    this.#levels.push(peak);
    this.#levels.shift();
    if (this.#isDrawing) return;
    this.#isDrawing = true;
    requestAnimationFrame(() => {
      this.#isDrawing = false;
      this.#draw();
    });
  }

  #draw() {
    const { canvas } = this;
    const scale = devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    canvas.width = width * scale;
    canvas.height = height * scale;
    const pen = canvas.getContext("2d");
    if (!pen) return;
    pen.scale(scale, scale);
    // A resolved colour: the canvas does not read the style sheet's variables.
    pen.fillStyle = getComputedStyle(element("speak")).backgroundColor;
    const step = width / LEVELS;
    for (const [index, level] of this.#levels.entries()) {
      const bar = Math.max(1, Math.min(1, Math.sqrt(level)) * (height - 16));
      pen.fillRect(index * step, (height - bar) / 2, Math.max(0.6, step * 0.7), bar);
    }
  }
}
