// Cartesia's JavaScript SDK over its WebSocket, which it opens with TLS only, and over HTTP.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { KEY, LONG, SHORT, VERY_LONG, brokenOff, contexts, heard, refusal, untilIdle } from "./rig.mjs";

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

/** Over HTTP. */
function generate(url, transcript, apiKey = KEY, request = {}) {
  const asked = { model_id: "sonic-3", voice: { mode: "id", id: VOICE }, transcript, output_format: FORMAT };
  return new Cartesia({ apiKey, baseURL: url, maxRetries: 0 }).tts.generate(asked, request);
}

const wholeFile = async (url, text) => heard(text, await (await generate(url, text)).arrayBuffer(), "pcm");

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
      await say(context, VERY_LONG);
      await context.receive().next();
      assert.equal(await contexts(url), 1);
      await context.cancel();
      await untilIdle(url);
      return [brokenOff(VERY_LONG), await whole(socket, SHORT)];
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
  "barge-in after the end, then another turn": {
    server: "fast+tls",
    async play(url) {
      const socket = await connect(url);
      const context = open(socket);
      await say(context, SHORT);
      const pieces = [];
      for await (const event of context.receive()) if (event.type === "chunk") pieces.push(event.audio);
      await context.cancel();
      return [heard(SHORT, Buffer.concat(pieces), "pcm"), await whole(socket, SHORT)];
    },
  },
  "refused: unknown voice, a format that is none": {
    server: "strict+tls",
    async play(url) {
      const socket = await connect(url);
      for (const [options, named] of [[{}, "voice"], [{ output_format: { ...FORMAT, encoding: "pcm_s12be" } }, "pcm_s16le"]]) {
        const context = open(socket, options);
        await context.push({ transcript: SHORT });
        // It is an event first, and then it is thrown.
        const { value } = await context.receive().next();
        assert(value.type === "error" && value.message.includes(named), JSON.stringify(value));
      }
    },
  },
  "refused while full, served when there is room": {
    server: "small+tls",
    async play(url) {
      process.on("unhandledRejection", () => {});
      const socket = await connect(url);
      await assert.rejects(connect(url), ({ message }) => message.includes("503"));
      return [await whole(socket, SHORT)];
    },
  },
  "http: short turn, long turn": {
    server: "fast",
    async play(url) {
      return [await wholeFile(url, SHORT), await wholeFile(url, LONG)];
    },
  },
  "http: barge-in in the middle, then another turn": {
    server: "slow",
    async play(url) {
      const abort = new AbortController();
      const answer = await generate(url, VERY_LONG, KEY, { signal: abort.signal });
      await answer.body.getReader().read();
      assert.equal(await contexts(url), 1);
      abort.abort();
      await untilIdle(url);
      return [brokenOff(VERY_LONG), await wholeFile(url, SHORT)];
    },
  },
  "http: refused: no good key": {
    server: "closed",
    async play(url) {
      assert.equal((await refusal(generate(url, SHORT, "wrong"), Cartesia.AuthenticationError)).status, 401);
      return [await wholeFile(url, SHORT)];
    },
  },
};
