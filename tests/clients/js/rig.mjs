// What the cases have in common.

import assert from "node:assert/strict";

export const KEY = process.env.KEY;
export const { SHORT, LONG, VERY_LONG } = process.env;

/** A turn that was heard to its end: sound in base64, as a file or raw 24 kHz PCM. */
export const heard = (text, bytes, format) => ({ text, sound: Buffer.from(bytes).toString("base64"), format });

/** A turn that was broken off. */
export const brokenOff = (text) => ({ text });

/** How many contexts the engine holds. */
export async function contexts(url) {
  return (await (await fetch(`${url}/v1/engine`)).json()).contexts;
}

/** Waits until the engine holds none; the runner's patience ends it otherwise. */
export async function untilIdle(url) {
  while ((await contexts(url)) > 0) await new Promise((resolve) => setTimeout(resolve, 20));
}

/** The error with which a request must end. */
export async function refusal(request, kind) {
  try {
    await request;
  } catch (error) {
    assert(error instanceof kind, String(error));
    return error;
  }
  assert.fail(`there was no ${kind.name}`);
}
