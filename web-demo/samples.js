/**
 * Sample conversations, and a stand-in for the language model that would write the answers.
 *
 * @module samples
 */

/**
 * @typedef {object} Sample
 * @property {string} name
 * @property {string} about What it shows.
 * @property {string} style
 * @property {{user: string, answer: string}[]} turns
 */

/** @type {Sample[]} */
export const SAMPLES = [
  {
    name: "Small talk",
    about: "conversational",
    style: "conversational",
    turns: [
      {
        user: "How was your walk this morning?",
        answer:
          "It was lovely, thank you. The air was cold and clear, and the river was so still that you could see the " +
          "whole bridge in it. I met the old man with the two dogs again, and we talked about the weather for a while.",
      },
      {
        user: "And what will you do this evening?",
        answer:
          "I think I will stay at home. There is a pot of soup on the stove, and I have a good book that I want to " +
          "finish. If the rain stops, I might sit outside for a little and listen to the birds.",
      },
      {
        user: "What is the book about?",
        answer:
          "It is about a woman who keeps a light at the end of the world. Every night she writes down which ships " +
          "went by. Then one winter the same ship passes three times, and nobody on board answers her lamp.",
      },
    ],
  },
  {
    name: "Travel desk",
    about: "agentic",
    style: "agentic",
    turns: [
      {
        user: "When does the next train to the coast leave?",
        answer:
          "The next train leaves at 9:05 from platform 4, and it takes about 2 hours. There is another one at 10:20, " +
          "but you would have to change trains on the way. Shall I book a seat for you on the first one?",
      },
      {
        user: "Yes please, by the window.",
        answer:
          "I have booked seat 27 by the window for $48.50. Your ticket is on its way to your phone. Please be at the " +
          "station 10 minutes early on May 3rd, because the front half of the train goes to another town.",
      },
      {
        user: "Can I take my bicycle?",
        answer:
          "Yes, for $6 more. The rack is in coach 2, behind the driver. It holds 8 bicycles and 3 are booked so far, " +
          "so I would not wait too long. Do you want me to add it to your ticket?",
      },
    ],
  },
  {
    name: "A story",
    about: "read aloud",
    style: "audiobook",
    turns: [
      {
        user: "Tell me a story.",
        answer:
          "At the edge of the village stood a tall round house with a hundred small doors. Nobody knew who had built " +
          "it. Every evening, when the light turned gold, the doves came home over the fields, and each of them knew " +
          "her own door. One night a door stayed empty, and the old keeper put a lamp in it and waited.",
      },
      {
        user: "And did she come?",
        answer:
          "Toward morning, when the oil was nearly gone, he heard wings above the mill. She came in low over the wet " +
          "grass, and she was not alone. Since then there have been a hundred and one doors in the round house.",
      },
    ],
  },
];

/**
 * Writes a text as a language model does: word by word, never quite evenly.
 *
 * @param {string} text
 * @param {number} wordsPerSecond 0: all at once.
 * @param {AbortSignal} signal Ends it.
 * @param {(piece: string) => void} write
 * @returns {Promise<boolean>} Whether it came to its end.
 */
export async function stream(text, wordsPerSecond, signal, write) {
  const pieces = wordsPerSecond > 0 ? (text.match(/\s*\S+\s*$|\s*\S+/g) ?? []) : [text];
  for (const [index, piece] of pieces.entries()) {
    if (index > 0) await pause((1000 / wordsPerSecond) * (0.5 + Math.random()), signal);
    if (signal.aborted) return false;
    write(piece);
  }
  return true;
}

/**
 * @param {number} ms
 * @param {AbortSignal} signal
 */
function pause(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve(undefined)), { once: true });
  });
}
