// OpenAI's JavaScript SDK: speech streamed, broken off, refused.

import assert from "node:assert/strict";
import OpenAI from "openai";
import { KEY, LONG, SHORT, VERY_LONG, brokenOff, contexts, heard, refusal, untilIdle } from "./rig.mjs";

const client = (url, options = {}) => new OpenAI({ baseURL: `${url}/v1`, apiKey: KEY, maxRetries: 0, ...options });

const speak = (ai, input, options = {}, request = {}) =>
  ai.audio.speech.create({ model: "gpt-4o-mini-tts", voice: "coral", input, ...options }, request);

const whole = async (ai, text, format) =>
  heard(text, await (await speak(ai, text, { response_format: format })).arrayBuffer(), format);

export const cases = {
  "short turn, pcm, wav, flac": {
    server: "fast",
    async play(url) {
      const turns = [];
      for (const format of ["pcm", "wav", "flac"]) turns.push(await whole(client(url), SHORT, format));
      return turns;
    },
  },
  "short turn, mp3 by default, and opus": {
    server: "fast",
    async play(url) {
      const mp3 = await (await speak(client(url), SHORT)).arrayBuffer();
      return [heard(SHORT, mp3, "mp3"), await whole(client(url), SHORT, "opus")];
    },
  },
  "short turn over TLS": {
    server: "fast+tls",
    play: async (url) => [await whole(client(url), SHORT, "pcm")],
  },
  "long turn, streamed while it is made": {
    server: "slow",
    async play(url) {
      const pieces = [];
      for await (const piece of (await speak(client(url), LONG, { response_format: "pcm" })).body) {
        if (pieces.length === 0) assert.equal(await contexts(url), 1, "the first bytes came when all was made");
        pieces.push(piece);
      }
      return [heard(LONG, Buffer.concat(pieces), "pcm")];
    },
  },
  "long turn, events": {
    server: "fast",
    async play(url) {
      const answer = await speak(client(url), LONG, { response_format: "pcm", stream_format: "sse" });
      const lines = (await answer.text()).split("\n").filter((line) => line.startsWith("data: "));
      const events = lines.map((line) => JSON.parse(line.slice(6)));
      assert.equal(events.pop().type, "speech.audio.done");
      assert(events.every(({ type }) => type === "speech.audio.delta"));
      const pieces = events.map(({ audio }) => Buffer.from(audio, "base64"));
      return [heard(LONG, Buffer.concat(pieces), "pcm")];
    },
  },
  "barge-in in the middle, then another turn": {
    server: "slow",
    async play(url) {
      const ai = client(url);
      const abort = new AbortController();
      const answer = await speak(ai, VERY_LONG, { response_format: "pcm" }, { signal: abort.signal });
      await answer.body.getReader().read();
      assert.equal(await contexts(url), 1);
      abort.abort();
      await untilIdle(url);
      return [brokenOff(VERY_LONG), await whole(ai, SHORT, "pcm")];
    },
  },
  "barge-in after the end, two turns on one client": {
    server: "fast",
    async play(url) {
      const ai = client(url);
      const abort = new AbortController();
      const answer = await speak(ai, LONG, { response_format: "pcm" }, { signal: abort.signal });
      const bytes = await answer.arrayBuffer();
      abort.abort();
      return [heard(LONG, bytes, "pcm"), await whole(ai, SHORT, "pcm")];
    },
  },
  "refused: no good key": {
    server: "closed",
    async play(url) {
      const error = await refusal(speak(client(url, { apiKey: "wrong" }), SHORT), OpenAI.AuthenticationError);
      assert.equal(error.code, "unauthorized");
      return [await whole(client(url), SHORT, "pcm")];
    },
  },
  "refused: unknown voice, format, text too long": {
    server: "fast",
    async play(url) {
      for (const [field, value] of [["voice", "nobody"], ["response_format", "aac"], ["input", "a".repeat(5000)]]) {
        const error = await refusal(speak(client(url), SHORT, { [field]: value }), OpenAI.BadRequestError);
        assert.equal(error.param, field);
      }
    },
  },
  "refused while full, served when there is room": {
    server: "small",
    async play(url) {
      const ai = client(url);
      const answer = await speak(ai, VERY_LONG, { response_format: "pcm" });
      const reader = answer.body.getReader();
      await reader.read();
      const error = await refusal(speak(ai, SHORT), OpenAI.InternalServerError);
      assert.equal(error.status, 503);
      await reader.cancel();
      await untilIdle(url);
      return [brokenOff(VERY_LONG), await whole(ai, SHORT, "pcm")];
    },
  },
};
