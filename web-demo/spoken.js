/**
 * Shows how a text will be said: `POST /v1/text`.
 *
 * @module spoken
 */

const PATH = "/v1/text";
/** After the last key. */
const REST_MS = 250;

/** Keeps an element filled with the spoken form of a text. */
export class SpokenForm {
  #timer = 0;
  #asked = 0;

  /**
   * @param {HTMLElement} target
   * @param {() => HeadersInit} headers With the key, for a server that wants one.
   */
  constructor(target, headers) {
    this.target = target;
    this.headers = headers;
  }

  /**
   * The text has changed.
   * @param {string} text
   */
  show(text) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#ask(text), REST_MS);
  }

  /** @param {string} text */
  async #ask(text) {
    const turn = (this.#asked += 1);
    try {
      const answer = await fetch(PATH, {
        method: "POST",
        headers: { ...this.headers(), "content-type": "application/json" },
        body: JSON.stringify({ input: text }),
      });
      const { spoken, map, error } = await answer.json();
      // An answer that was overtaken by a newer one is no longer wanted.
      if (turn !== this.#asked) return;
      if (error) this.target.textContent = error.message;
      else this.target.replaceChildren(...pieces([...text], [...spoken], map));
    } catch {
      this.target.textContent = "The server does not answer.";
    }
  }
}

/**
 * The spoken text; what is said otherwise than it is written is marked, with what is written as its title.
 * @param {string[]} written
 * @param {string[]} spoken
 * @param {[number, number][]} map For each spoken character, the range of the written ones.
 * @returns {Node[]}
 */
function pieces(written, spoken, map) {
  const nodes = [];
  for (let at = 0; at < spoken.length; ) {
    const [from, to] = map[at];
    let end = at + 1;
    while (end < spoken.length && map[end][0] === from && map[end][1] === to) end += 1;
    const [said, stood] = [spoken.slice(at, end).join(""), written.slice(from, to).join("")];
    if (said === stood || stood.trim() === "") nodes.push(document.createTextNode(said));
    else nodes.push(Object.assign(document.createElement("mark"), { textContent: said, title: stood }));
    at = end;
  }
  return nodes;
}
