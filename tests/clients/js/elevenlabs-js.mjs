// ElevenLabs' JavaScript SDK: files and streams over HTTP, with and without the times of characters.

import assert from "node:assert/strict";
import { ElevenLabsClient, ElevenLabsError } from "@elevenlabs/elevenlabs-js";
import { KEY, LONG, SHORT, VERY_LONG, brokenOff, contexts, heard, refusal, untilIdle } from "./rig.mjs";

const VOICE = "21m00Tcm4TlvDq8ikWAM";
const RATE = 24000;
const PCM = "pcm_24000";
/** Times are rounded to tenths of a millisecond. */
const TIME_TOLERANCE_S = 1e-3;

const client = (url, apiKey = KEY) => new ElevenLabsClient({ apiKey, baseUrl: url });

const stream = (ai, text, options = {}, request = {}) =>
  ai.textToSpeech.stream(VOICE, { text, outputFormat: PCM, ...options }, { maxRetries: 0, ...request });

/** All bytes of a body. */
async function bytes(body) {
  const pieces = [];
  for await (const piece of body) pieces.push(piece);
  return Buffer.concat(pieces);
}

const whole = async (ai, text) => heard(text, await bytes(await stream(ai, text)), "pcm");

/** Demands that each character has its time, in order and within the sound. */
function checkTimes(alignments, text, sound) {
  const known = alignments.filter((alignment) => alignment);
  const all = (field) => known.flatMap((alignment) => alignment[field]);
  assert.equal(all("characters").join(""), text);
  const [starts, ends] = [all("characterStartTimesSeconds"), all("characterEndTimesSeconds")];
  assert.deepEqual(starts, starts.toSorted((a, b) => a - b));
  assert.deepEqual(ends, ends.toSorted((a, b) => a - b));
  assert(starts.length === text.length && ends.at(-1) <= sound.length / 2 / RATE + TIME_TOLERANCE_S);
}

export const cases = {
  "short turn, long turn, on one client": {
    server: "fast",
    async play(url) {
      const ai = client(url);
      return [await whole(ai, SHORT), await whole(ai, LONG)];
    },
  },
  "short turn over TLS": {
    server: "fast+tls",
    play: async (url) => [await whole(client(url), SHORT)],
  },
  "files: mp3 by default, pcm, wav": {
    server: "fast",
    async play(url) {
      const turns = [];
      for (const [outputFormat, format] of [[undefined, "mp3"], [PCM, "pcm"], ["wav_24000", "wav"]]) {
        const body = await client(url).textToSpeech.convert(VOICE, { text: SHORT, outputFormat });
        turns.push(heard(SHORT, await bytes(body), format));
      }
      return turns;
    },
  },
  "long turn, streamed while it is made": {
    server: "slow",
    async play(url) {
      const pieces = [];
      for await (const piece of await stream(client(url), LONG)) {
        if (pieces.length === 0) assert.equal(await contexts(url), 1, "the first bytes came when all was made");
        pieces.push(piece);
      }
      return [heard(LONG, Buffer.concat(pieces), "pcm")];
    },
  },
  "a file and a stream with the times of characters": {
    server: "fast",
    async play(url) {
      const ai = client(url).textToSpeech;
      const file = await ai.convertWithTimestamps(VOICE, { text: LONG, outputFormat: PCM });
      const sound = Buffer.from(file.audioBase64, "base64");
      checkTimes([file.alignment], LONG, sound);
      const told = [];
      for await (const piece of await ai.streamWithTimestamps(VOICE, { text: LONG, outputFormat: PCM })) told.push(piece);
      const streamed = Buffer.concat(told.map(({ audioBase64 }) => Buffer.from(audioBase64, "base64")));
      checkTimes(told.map(({ alignment }) => alignment), LONG, streamed);
      return [heard(LONG, sound, "pcm"), heard(LONG, streamed, "pcm")];
    },
  },
  "barge-in in the middle, then another turn": {
    server: "slow",
    async play(url) {
      const ai = client(url);
      const reader = (await stream(ai, VERY_LONG)).getReader();
      await reader.read();
      assert.equal(await contexts(url), 1);
      await reader.cancel();
      await untilIdle(url);
      return [brokenOff(VERY_LONG), await whole(ai, SHORT)];
    },
  },
  "barge-in by a signal": {
    server: "slow",
    async play(url) {
      const ai = client(url);
      const abort = new AbortController();
      const reader = (await stream(ai, VERY_LONG, {}, { abortSignal: abort.signal })).getReader();
      await reader.read();
      abort.abort();
      await untilIdle(url);
      return [brokenOff(VERY_LONG), await whole(ai, SHORT)];
    },
  },
  "barge-in after the end, then another turn": {
    server: "fast",
    async play(url) {
      const ai = client(url);
      const abort = new AbortController();
      const sound = await bytes(await stream(ai, LONG, {}, { abortSignal: abort.signal }));
      abort.abort();
      return [heard(LONG, sound, "pcm"), await whole(ai, SHORT)];
    },
  },
  "refused: no good key": {
    server: "closed",
    async play(url) {
      assert.equal((await refusal(stream(client(url, "wrong"), SHORT), ElevenLabsError)).statusCode, 401);
      return [await whole(client(url), SHORT)];
    },
  },
  "refused: unknown voice": {
    server: "strict",
    async play(url) {
      assert.equal((await refusal(stream(client(url), SHORT), ElevenLabsError)).statusCode, 400);
    },
  },
  "refused while full, served when there is room": {
    server: "small",
    async play(url) {
      const ai = client(url);
      const reader = (await stream(ai, VERY_LONG)).getReader();
      await reader.read();
      assert.equal((await refusal(stream(ai, SHORT), ElevenLabsError)).statusCode, 503);
      await reader.cancel();
      await untilIdle(url);
      return [brokenOff(VERY_LONG), await whole(ai, SHORT)];
    },
  },
};
