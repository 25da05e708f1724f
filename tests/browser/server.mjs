// The processes of the test: a server, the file that the browser's microphone hears, and a line that can be cut.

import { spawn, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const BINARY = process.env.DOVECOTE ?? `${process.env.CARGO_TARGET_DIR ?? `${ROOT}/target`}/debug/dovecote`;
const WAV_HEADER_BYTES = 44;

/**
 * Starts a server on a free port.
 * @param {string[]} [args]
 * @param {Record<string, string>} [settings] As environment variables.
 * @returns {Promise<{url: string, stop: () => Promise<void>}>}
 */
export async function serve(args = [], settings = {}) {
  const child = spawn(BINARY, ["serve", "--listen", "127.0.0.1:0", ...args], {
    cwd: ROOT,
    env: { ...process.env, ...settings },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const said = [];
  const url = await new Promise((resolve, reject) => {
    // Read to its end: a full pipe would stop the server.
    createInterface(child.stderr).on("line", (line) => {
      said.push(line);
      const found = /http:\S+\/demo\//.exec(line);
      if (found) resolve(found[0]);
    });
    child.on("error", reject);
    child.on("exit", () => reject(new Error(`the server ended:\n${said.join("\n")}`)));
  });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  const stop = async () => {
    child.kill("SIGKILL");
    await ended;
  };
  return { url, stop };
}

/**
 * Draws a key and puts it into a file.
 * @param {string} file
 * @returns {string}
 */
export function drawKey(file) {
  const { stdout, stderr } = run("key", "visitor");
  writeFileSync(file, stdout);
  const key = /dvk_\S+/.exec(stderr.toString());
  if (!key) throw new Error(`no key in: ${stderr}`);
  return key[0];
}

/**
 * What a visitor says into the microphone: speech, then silence for as long as it takes to be sure of its end.
 * @param {string} file A WAV file, which the browser plays over and over.
 * @param {string} text
 * @param {number} silenceS
 */
export function record(file, text, silenceS) {
  run("say", text, "-o", file);
  const wav = readFileSync(file);
  const data = wav.indexOf("data");
  const bytesPerSecond = wav.readUInt32LE(28);
  const sound = wav.subarray(data + 8, data + 8 + wav.readUInt32LE(data + 4));
  const silence = Buffer.alloc(Math.round(silenceS) * bytesPerSecond);
  // A plain header of its own: the browser's reader knows no other chunks.
  const header = Buffer.alloc(WAV_HEADER_BYTES);
  wav.copy(header, 0, 0, 36);
  header.writeUInt32LE(36 + silence.length + sound.length + silence.length, 4);
  header.writeUInt32LE(16, 16);
  header.write("data", 36);
  header.writeUInt32LE(silence.length + sound.length + silence.length, 40);
  writeFileSync(file, Buffer.concat([header, silence, sound, silence]));
}

function run(...args) {
  const done = spawnSync(BINARY, args, { cwd: ROOT });
  if (done.status !== 0) throw new Error(`dovecote ${args[0]}: ${done.stderr}`);
  return done;
}

/** A line to a server that can be cut, as a network fails: without a word. */
export class Line {
  /** @type {Set<import("node:net").Socket>} */ #sockets = new Set();
  #isDown = false;

  /** @param {string} url Of the page, as the server has it. */
  constructor(url) {
    this.target = new URL(url);
    this.server = createServer((near) => {
      if (this.#isDown) return near.resetAndDestroy();
      const far = connect(Number(this.target.port), this.target.hostname);
      for (const [one, other] of [[near, far], [far, near]]) {
        this.#sockets.add(one);
        one.pipe(other);
        one.on("error", () => {});
        one.on("close", () => {
          this.#sockets.delete(one);
          other.resetAndDestroy();
        });
      }
    });
  }

  /** @returns {Promise<string>} Where the page is to be had over this line. */
  async open() {
    await new Promise((resolve) => this.server.listen(0, "127.0.0.1", () => resolve(undefined)));
    const url = new URL(this.target);
    url.port = String(/** @type {import("node:net").AddressInfo} */ (this.server.address()).port);
    return url.href;
  }

  /** Breaks all connections off. */
  cut() {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  /**
   * Lets nobody in for the time being.
   * @param {boolean} is
   */
  set isDown(is) {
    this.#isDown = is;
    if (is) this.cut();
  }

  /** Cuts, and takes no more. */
  close() {
    this.server.close();
    this.cut();
  }
}
