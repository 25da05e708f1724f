// Deepgram's JavaScript SDK over its WebSocket, and over HTTP.

import assert from "node:assert/strict";
import { DeepgramClient, DeepgramError } from "@deepgram/sdk";
import { KEY, LONG, SHORT, VERY_LONG, brokenOff, contexts, heard, refusal, untilIdle } from "./rig.mjs";

const FORMAT = { model: "aura-2-thalia-en", encoding: "linear16", sample_rate: 24000 };

async function connect(url, apiKey = KEY) {
  const client = new DeepgramClient({ apiKey, baseUrl: url.replace("http", "ws") });
  const socket = await client.speak.v1.connect({ ...FORMAT, reconnectAttempts: 0 });
  socket.connect();
  await socket.waitForOpen();
  return socket;
}

function say(socket, text) {
  for (const token of text.match(/\s*\S+/g)) socket.sendText({ type: "Speak", text: token });
  socket.sendFlush({ type: "Flush" });
}

/** All messages, as they come. */
const messages = (socket) => socket[Symbol.asyncIterator]();

const isSound = (message) => message instanceof Blob || message instanceof ArrayBuffer;

/** All sound up to an event. */
async function until(stream, type) {
  const pieces = [];
  for (;;) {
    const { value, done } = await stream.next();
    assert(!done, `the socket was closed before ${type}`);
    if (isSound(value)) pieces.push(Buffer.from(value instanceof Blob ? await value.arrayBuffer() : value));
    else if (value.type === type) return Buffer.concat(pieces);
  }
}

async function whole(socket, stream, text) {
  say(socket, text);
  return heard(text, await until(stream, "Flushed"), "pcm");
}

/** Over HTTP. */
function generate(url, text, apiKey = KEY, request = {}) {
  const client = new DeepgramClient({ apiKey, environment: { base: url, production: url, agent: url, agentRest: url } });
  const asked = { text, ...FORMAT, container: "none", ...request };
  return client.speak.v1.audio.generate(asked, { maxRetries: 0 });
}

const wholeFile = async (url, text) => heard(text, await (await generate(url, text)).arrayBuffer(), "pcm");

export const cases = {
  "short turn, long turn, on one socket": {
    server: "fast",
    async play(url) {
      const socket = await connect(url);
      const stream = messages(socket);
      return [await whole(socket, stream, SHORT), await whole(socket, stream, LONG)];
    },
  },
  "short turn over TLS, and over HTTP": {
    server: "fast+tls",
    async play(url) {
      const socket = await connect(url);
      return [await whole(socket, messages(socket), SHORT), await wholeFile(url, SHORT)];
    },
  },
  "barge-in by clear, then another turn": {
    server: "slow",
    async play(url) {
      const socket = await connect(url);
      const stream = messages(socket);
      say(socket, VERY_LONG);
      while (!isSound((await stream.next()).value));
      assert.equal(await contexts(url), 1);
      socket.sendClear({ type: "Clear" });
      await until(stream, "Cleared");
      await untilIdle(url);
      return [brokenOff(VERY_LONG), await whole(socket, stream, SHORT)];
    },
  },
  "refused: no good key": {
    server: "closed",
    async play(url) {
      await assert.rejects(connect(url, "wrong"), ({ message }) => message.includes("401"));
      const socket = await connect(url);
      return [await whole(socket, messages(socket), SHORT)];
    },
  },
  "clear with nothing to clear, then another turn": {
    server: "fast",
    async play(url) {
      const socket = await connect(url);
      const stream = messages(socket);
      const first = await whole(socket, stream, SHORT);
      socket.sendClear({ type: "Clear" });
      await until(stream, "Cleared");
      return [first, await whole(socket, stream, SHORT)];
    },
  },
  "refused while full, served when there is room": {
    server: "small",
    async play(url) {
      const socket = await connect(url);
      await assert.rejects(connect(url), ({ message }) => message.includes("503"));
      return [await whole(socket, messages(socket), SHORT)];
    },
  },
  "http: short turn, long turn, and mp3 by default": {
    server: "fast",
    async play(url) {
      const plain = { encoding: undefined, container: undefined, sample_rate: undefined };
      const mp3 = await (await generate(url, SHORT, KEY, plain)).arrayBuffer();
      return [heard(SHORT, mp3, "mp3"), await wholeFile(url, SHORT), await wholeFile(url, LONG)];
    },
  },
  "http: barge-in in the middle, then another turn": {
    server: "slow",
    async play(url) {
      const reader = (await generate(url, VERY_LONG)).stream().getReader();
      await reader.read();
      assert.equal(await contexts(url), 1);
      await reader.cancel();
      await untilIdle(url);
      return [brokenOff(VERY_LONG), await wholeFile(url, SHORT)];
    },
  },
  "http: refused: no good key": {
    server: "closed",
    async play(url) {
      assert.equal((await refusal(generate(url, SHORT, "wrong"), DeepgramError)).statusCode, 401);
      return [await wholeFile(url, SHORT)];
    },
  },
  "http: refused: unknown voice": {
    server: "strict",
    async play(url) {
      assert.equal((await refusal(generate(url, SHORT), DeepgramError)).statusCode, 400);
    },
  },
};
