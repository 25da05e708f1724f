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
const SPOKEN = {
  ...WRITTEN,
  modalities: ["text", "audio"],
  audio: { voice: "alloy", format: "pcm16" },
  // Text has 64 tokens at most: what is left is sound.
  max_completion_tokens: 104,
};

/** A tone as a file: 16 bit, mono, 24 kHz. */
function wav(seconds) {
  const samples = Math.round(seconds * 24_000);
  const file = Buffer.alloc(44 + 2 * samples);
  file.write("RIFF", 0);
  file.writeUInt32LE(36 + 2 * samples, 4);
  file.write("WAVEfmt ", 8);
  [16, 1 | (1 << 16), 24_000, 48_000, 2 | (16 << 16)].forEach((word, i) => file.writeUInt32LE(word, 16 + 4 * i));
  file.write("data", 36);
  file.writeUInt32LE(2 * samples, 40);
  for (let i = 0; i < samples; i++) file.writeInt16LE(Math.round(9_000 * Math.sin(i * 0.05)), 44 + 2 * i);
  return file;
}

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
  "a recording is a question, and an answer is named": {
    server: "chat",
    async play(url) {
      const ai = client(url);
      const said = { data: wav(0.5).toString("base64"), format: "wav" };
      const content = [{ type: "text", text: "What is said?" }, { type: "input_audio", input_audio: said }];
      const heard = await ai.chat.completions.create({ ...WRITTEN, messages: [{ role: "user", content }] });
      assert(heard.usage.prompt_tokens_details.audio_tokens > 0);
      const { audio } = (await ai.chat.completions.create(SPOKEN)).choices[0].message;
      const earlier = { role: "assistant", audio: { id: audio.id } };
      const messages = [...WRITTEN.messages, earlier, { role: "user", content: "And then?" }];
      const next = await ai.chat.completions.create({ ...WRITTEN, messages });
      assert(["stop", "length"].includes(next.choices[0].finish_reason));
      return [];
    },
  },
  "speech by the model, and models": {
    server: "chat",
    async play(url) {
      const ai = client(url);
      const spoken = { model: WRITTEN.model, voice: "alloy", input: "Hi.", response_format: "pcm" };
      assert((await (await ai.audio.speech.create(spoken)).arrayBuffer()).byteLength > 0);
      const ids = [];
      for await (const model of ai.models.list()) ids.push(model.id);
      assert(ids.includes(WRITTEN.model));
      return [];
    },
  },
  "transcription, whole and in events": {
    server: "chat",
    async play(url) {
      const { transcriptions } = client(url).audio;
      // Three times what the model hears at once.
      const file = new File([wav(25)], "a.wav");
      const request = { model: WRITTEN.model, file };
      const verbose = await transcriptions.create({ ...request, response_format: "verbose_json" });
      assert.equal(Number(verbose.duration), 25);
      assert(verbose.segments.at(-1).start > 15);
      assert.equal(await transcriptions.create({ ...request, response_format: "text" }), `${verbose.text}\n`);
      let text = "";
      let done;
      for await (const event of await transcriptions.create({ ...request, stream: true })) {
        if (event.type === "transcript.text.delta") text += event.delta;
        else done = event;
      }
      assert.deepEqual([done.type, done.text, text], ["transcript.text.done", verbose.text, verbose.text]);
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
      const unread = await refusal(transcriptions.create({ model: WRITTEN.model, file }), OpenAI.BadRequestError);
      assert.deepEqual([unread.code, unread.param], ["cannot_decode", "file"]);
      await refusal(transcriptions.create({ model: "whisper-1", file }), OpenAI.NotFoundError);
      return [];
    },
  },
};
