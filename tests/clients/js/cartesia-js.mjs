// Cartesia's JavaScript SDK over its WebSocket, which it opens with TLS only.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { KEY, LONG, SHORT, brokenOff, contexts, heard, untilIdle } from "./rig.mjs";

// It finds the package ws, without which Node 20 has no WebSocket, only when it is loaded in this way.
const { default: Cartesia } = createRequire(import.meta.url)("@cartesia/cartesia-js");

const FORMAT = { container: "raw", encoding: "pcm_s16le", sample_rate: 24000 };
const VOICE = "6ccbfb76-1fc6-48f7-b71d-91ac6298247b";

async function connect(url, apiKey = KEY) {
  const socket = await new Cartesia({ apiKey, baseURL: url }).tts.websocket();
  // What goes wrong is told to whoever waits as well.
  socket.on("error", () => {});
  return socket.connect();
}

const open = (socket, options = {}) =>
  socket.context({ model_id: "sonic-3", voice: VOICE, output_format: FORMAT, add_timestamps: true, ...options });

async function say(context, text) {
  for (const transcript of text.match(/\s*\S+/g)) await context.push({ transcript });
  await context.no_more_inputs();
}

async function whole(socket, text) {
  const context = open(socket);
  await say(context, text);
  const [pieces, words] = [[], []];
  let last;
  for await (const event of context.receive()) {
    last = event.type;
    if (event.type === "chunk") pieces.push(event.audio);
    if (event.type === "timestamps") words.push(...event.word_timestamps.words);
  }
  assert.equal(last, "done");
  assert.deepEqual(words, text.split(" "));
  return heard(text, Buffer.concat(pieces), "pcm");
}

export const cases = {
  "short turn, long turn, on one socket": {
    server: "fast+tls",
    async play(url) {
      const socket = await connect(url);
      return [await whole(socket, SHORT), await whole(socket, LONG)];
    },
  },
  "barge-in by cancel, then another turn": {
    server: "slow+tls",
    async play(url) {
      const socket = await connect(url);
      const context = open(socket);
      await say(context, LONG);
      await context.receive().next();
      assert.equal(await contexts(url), 1);
      await context.cancel();
      await untilIdle(url);
      return [brokenOff(LONG), await whole(socket, SHORT)];
    },
  },
  "refused: no good key": {
    server: "closed+tls",
    async play(url) {
      // It is told once more, to nobody, and that would end the process.
      process.on("unhandledRejection", () => {});
      await assert.rejects(connect(url, "wrong"), ({ message }) => message.includes("401"));
      return [await whole(await connect(url), SHORT)];
    },
  },
};
