/**
 * Small plots of numbers over time, drawn on canvases in the colours of the style sheet.
 *
 * @module plots
 */

/**
 * The colours of the page, as a canvas wants them: resolved.
 * @returns {(name: string) => string}
 */
export function colours() {
  const style = getComputedStyle(document.documentElement);
  return (name) => style.getPropertyValue(`--${name}`);
}

/** A canvas that is drawn anew when its size, the colours or its numbers change; at most once a frame. */
export class Plot {
  #isDue = false;
  /** In pixels of the style sheet. */
  width = 0;
  height = 0;

  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    // Told, not asked for: asking has the browser lay out the page each time.
    new ResizeObserver(([{ contentRect }]) => this.#resize(contentRect)).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
  }

  /** @param {DOMRectReadOnly} size */
  #resize({ width, height }) {
    const scale = devicePixelRatio || 1;
    [this.width, this.height] = [width, height];
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    // Reset by the new size.
    this.pen.scale(scale, scale);
    this.pen.font = `11px ${getComputedStyle(this.canvas).fontFamily}`;
    this.redraw();
  }

  /** Has it drawn soon. */
  redraw() {
    if (this.#isDue) return;
    this.#isDue = true;
    requestAnimationFrame(() => {
      this.#isDue = false;
      if (this.width === 0) return;
      this.pen.clearRect(0, 0, this.width, this.height);
      this.draw(this.pen, this.width, this.height, colours());
    });
  }

  /**
   * What a kind of plot shows.
   * @param {CanvasRenderingContext2D} _pen
   * @param {number} _width
   * @param {number} _height
   * @param {(name: string) => string} _colour
   */
  draw(_pen, _width, _height, _colour) {}
}

/** Values of the last seconds, several on top of each other, at the scale of the largest sum. */
export class Trace extends Plot {
  /** @type {number[][]} */ #values = [];

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {{length: number, floor: number, colours: string[]}} options `length` values across, `floor` the smallest
   *   scale, a colour for each value of a sum.
   */
  constructor(canvas, options) {
    super(canvas);
    this.options = options;
  }

  /** @param {number[]} values */
  push(values) {
    this.#values.push(values);
    if (this.#values.length > this.options.length) this.#values.shift();
    this.redraw();
  }

  /**
   * @param {CanvasRenderingContext2D} pen
   * @param {number} width
   * @param {number} height
   * @param {(name: string) => string} colour
   */
  draw(pen, width, height, colour) {
    const { length, floor } = this.options;
    const sum = (/** @type {number[]} */ values, to = values.length) => values.slice(0, to).reduce((a, b) => a + b, 0);
    const top = Math.max(floor, ...this.#values.map((values) => sum(values)));
    const x = (/** @type {number} */ index) => width - ((this.#values.length - 1 - index) * width) / (length - 1);
    const y = (/** @type {number} */ value) => height - 1 - (value / top) * (height - 6);
    for (const [layer, name] of [...this.options.colours.entries()].reverse()) {
      pen.beginPath();
      pen.moveTo(x(0), height);
      for (const [index, values] of this.#values.entries()) pen.lineTo(x(index), y(sum(values, layer + 1)));
      pen.lineTo(width, height);
      pen.fillStyle = colour(name);
      pen.fill();
    }
    pen.fillStyle = colour("line");
    pen.fillRect(0, height - 1, width, 1);
  }
}

/** Two latencies of each of the latest turns, one within the other. */
export class Bars extends Plot {
  /** @type {{inner: number, outer: number}[]} */ #bars = [];

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {number} length
   */
  constructor(canvas, length) {
    super(canvas);
    this.length = length;
  }

  /** Makes room for the next turn. */
  next() {
    this.#bars.push({ inner: 0, outer: 0 });
    if (this.#bars.length > this.length) this.#bars.shift();
    this.redraw();
  }

  /** @param {{inner?: number, outer?: number}} values Of the latest turn, in milliseconds. */
  set(values) {
    Object.assign(this.#bars.at(-1) ?? {}, values);
    this.redraw();
  }

  /**
   * @param {CanvasRenderingContext2D} pen
   * @param {number} width
   * @param {number} height
   * @param {(name: string) => string} colour
   */
  draw(pen, width, height, colour) {
    const longest = Math.max(...this.#bars.map(({ inner, outer }) => Math.max(inner, outer)), 0);
    const top = [100, 200, 300, 500, 1_000, 2_000, 3_000, 5_000].find((step) => step >= longest) ?? longest;
    const y = (/** @type {number} */ ms) => height - 1 - (ms / top) * (height - 14);
    pen.fillStyle = colour("line");
    pen.fillRect(0, height - 1, width, 1);
    pen.fillRect(0, Math.round(y(top)), width, 1);
    pen.fillStyle = colour("soft");
    pen.fillText(`${top} ms`, 0, 9);
    const step = width / this.length;
    const bar = (/** @type {number} */ index, /** @type {number} */ ms, /** @type {string} */ name, /** @type {number} */ thick) => {
      pen.fillStyle = colour(name);
      pen.fillRect(index * step + (step - thick) / 2, y(ms), thick, height - 1 - y(ms));
    };
    for (const [index, { inner, outer }] of this.#bars.entries()) {
      bar(index, outer, "teal-faint", Math.min(16, step * 0.72));
      bar(index, inner, "teal", Math.min(16, step * 0.72));
    }
  }
}
