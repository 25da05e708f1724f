// OpenAI's JavaScript SDK with a speech language model. Its weights are random: the same seed gives the same, whatever that means.

import assert from "node:assert/strict";
import OpenAI from "openai";
import { KEY, refusal, untilIdle } from "./rig.mjs";

const client = (url) => new OpenAI({ baseURL: `${url}/v1`, apiKey: KEY, maxRetries: 0 });

const WRITTEN = {
  model: "bagpiper-tiny",
  messages: [{ role: "user", content: "How are you?" }],
  seed: 7,
  max_completion_tokens: 40,
};
const SPOKEN = { ...WRITTEN, modalities: ["text", "audio"], audio: { voice: "alloy", format: "pcm16" } };

export const cases = {
  "written answer, whole and in chunks": {
    server: "chat",
    async play(url) {
      const ai = client(url);
      const whole = await ai.chat.completions.create(WRITTEN);
      let content = "";
      let usage;
      const options = { stream: true, stream_options: { include_usage: true } };
      for await (const chunk of await ai.chat.completions.create({ ...WRITTEN, ...options })) {
        content += chunk.choices[0]?.delta.content ?? "";
        usage = chunk.usage ?? usage;
      }
      assert.equal(content, whole.choices[0].message.content);
      assert.deepEqual(usage, whole.usage);
      return [];
    },
  },
  "spoken answer, whole and in chunks": {
    server: "chat",
    async play(url) {
      const ai = client(url);
      const { audio } = (await ai.chat.completions.create(SPOKEN)).choices[0].message;
      const pieces = [];
      let transcript = "";
      for await (const chunk of await ai.chat.completions.create({ ...SPOKEN, stream: true })) {
        const piece = chunk.choices[0].delta.audio ?? {};
        if (piece.data) pieces.push(Buffer.from(piece.data, "base64"));
        transcript += piece.transcript ?? "";
      }
      const sound = Buffer.concat(pieces);
      assert(sound.length > 0 && sound.equals(Buffer.from(audio.data, "base64")));
      assert.equal(transcript, audio.transcript);
      return [];
    },
  },
  "an answer that is broken off": {
    server: "chat",
    async play(url) {
      const abort = new AbortController();
      const request = { ...SPOKEN, max_completion_tokens: undefined, stream: true };
      const stream = await client(url).chat.completions.create(request, { signal: abort.signal });
      await stream[Symbol.asyncIterator]().next();
      abort.abort();
      await untilIdle(url);
      return [];
    },
  },
  "refusals have names": {
    server: "chat",
    async play(url) {
      const ask = (options) => client(url).chat.completions.create({ ...WRITTEN, ...options });
      const unknown = await refusal(ask({ model: "gpt-x" }), OpenAI.NotFoundError);
      assert.equal(unknown.code, "model_not_found");
      assert.equal((await refusal(ask({ n: 2 }), OpenAI.BadRequestError)).param, "n");
      const file = new File(["no sound"], "a.wav");
      const { transcriptions } = client(url).audio;
      const deaf = await refusal(transcriptions.create({ model: WRITTEN.model, file }), OpenAI.BadRequestError);
      assert.equal(deaf.param, "file");
      return [];
    },
  },
};
