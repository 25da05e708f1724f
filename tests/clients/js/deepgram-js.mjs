// Deepgram's JavaScript SDK over its WebSocket.

import assert from "node:assert/strict";
import { DeepgramClient } from "@deepgram/sdk";
import { KEY, LONG, SHORT, brokenOff, contexts, heard, untilIdle } from "./rig.mjs";

async function connect(url, apiKey = KEY) {
  const client = new DeepgramClient({ apiKey, baseUrl: url.replace("http", "ws") });
  const format = { model: "aura-2-thalia-en", encoding: "linear16", sample_rate: 24000 };
  const socket = await client.speak.v1.connect({ ...format, reconnectAttempts: 0 });
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

export const cases = {
  "short turn, long turn, on one socket": {
    server: "fast",
    async play(url) {
      const socket = await connect(url);
      const stream = messages(socket);
      return [await whole(socket, stream, SHORT), await whole(socket, stream, LONG)];
    },
  },
  "barge-in by clear, then another turn": {
    server: "slow",
    async play(url) {
      const socket = await connect(url);
      const stream = messages(socket);
      say(socket, LONG);
      while (!isSound((await stream.next()).value));
      assert.equal(await contexts(url), 1);
      socket.sendClear({ type: "Clear" });
      await until(stream, "Cleared");
      await untilIdle(url);
      return [brokenOff(LONG), await whole(socket, stream, SHORT)];
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
};
