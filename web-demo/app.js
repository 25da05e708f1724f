/**
 * The demo page: a text, or a stand-in for a language model, speaks through `dovecote.v1`; a key, a click or a voice
 * interrupts. This file ties the controls to the rest.
 *
 * For whoever watches the page from outside, the root element says `data-state` (of the connection, or `speaking`),
 * `data-mic` (of the microphone) and `data-resumes` (how often a lost connection was taken up again).
 *
 * @module app
 */

import { Connection } from "./connection.js";
import { Dialogue } from "./dialogue.js";
import { EngineWatch } from "./engine.js";
import { Microphone } from "./microphone.js";
import { Trace } from "./plots.js";
import { SAMPLES } from "./samples.js";
import { chooseCodec } from "./speaker.js";
import { SpokenForm } from "./spoken.js";
import { element, fill, showNumber, showState, WireLog } from "./view.js";

/** Sound that the server makes ahead of its listener: enough for a bad network, and little is thrown away. */
const AHEAD_MS = 3_000;
/** Glances in the plot of the blocks: twenty seconds while something is spoken. */
const GLANCES = 130;
/** Scale of that plot at least, in blocks. */
const BLOCKS_FLOOR = 24;
const STAGE_COLOURS = ["stage-0", "stage-1", "stage-2", "stage-3"];
const MIC_LABELS = {
  off: "Interrupt by voice",
  loading: "Opening the microphone",
  listening: "Listening for you",
  hearing: "Hearing you",
};

const ui = {
  text: /** @type {HTMLTextAreaElement} */ (element("text")),
  speak: /** @type {HTMLButtonElement} */ (element("speak")),
  stop: /** @type {HTMLButtonElement} */ (element("stop")),
  mic: /** @type {HTMLButtonElement} */ (element("mic")),
  style: /** @type {HTMLSelectElement} */ (element("style")),
  voice: /** @type {HTMLSelectElement} */ (element("voice")),
  codecs: /** @type {HTMLSelectElement} */ (element("codecs")),
  streamed: /** @type {HTMLInputElement} */ (element("streamed")),
  pace: /** @type {HTMLInputElement} */ (element("pace")),
  spoken: /** @type {HTMLInputElement} */ (element("spoken")),
  key: /** @type {HTMLInputElement} */ (element("key")),
};
const status = document.documentElement.dataset;
status.resumes = "0";
ui.codecs.value = new URLSearchParams(location.search).get("codec") ?? "";
const codec = await chooseCodec(ui.codecs.value === "pcm");
const connection = new Connection(options(codec));
const dialogue = new Dialogue(codec);
const microphone = new Microphone();
const wire = new WireLog();
const engine = new EngineWatch(() => connection.headers());
const blocks = new Trace(/** @type {HTMLCanvasElement} */ (element("blocks-plot")), {
  length: GLANCES,
  floor: BLOCKS_FLOOR,
  colours: STAGE_COLOURS,
});
const spokenForm = new SpokenForm(element("said"), () => connection.headers());
/** Two quick clicks must not begin two passages. */
let isStarting = false;
/** Says the next turn of the sample that was chosen last. */
/** @type {((user?: string) => void) | null} */ let nextTurn = null;
/** Whether it was a voice that interrupted: then its end is the visitor's turn. */
let isVisitorsTurn = false;

/** @param {{codec: string, sample_rate?: number}} audio */
function options(audio) {
  return { audio, flow: { max_ahead_ms: AHEAD_MS } };
}

/**
 * Speaks a text.
 * @param {string} text
 * @param {{style?: string, user?: string}} [options]
 */
async function speak(text, { style, user } = {}) {
  if (isStarting || text.trim() === "") return;
  isStarting = true;
  try {
    await dialogue.wake();
    if (!connection.session) await connection.open();
    const pace = ui.streamed.checked ? ui.pace.valueAsNumber : 0;
    const manner = { voice: ui.voice.value || undefined, style: style || ui.style.value || undefined };
    if (connection.session) await dialogue.begin(connection.session, text, { pace, user, ...manner });
  } catch (error) {
    showState("silent", error instanceof Error ? error.message : String(error));
  } finally {
    isStarting = false;
  }
}

function showStyles() {
  const voices = connection.session?.ready.voices ?? [];
  const voice = voices.find((/** @type {any} */ each) => each.voice_id === ui.voice.value) ?? voices[0];
  fill(ui.style, (voice?.styles ?? []).map((/** @type {string} */ name) => ({ value: name, name })));
}

/** @param {import("./dovecote.js").Session} session */
function showSession(session) {
  session.addEventListener("message", (event) => wire.add(/** @type {CustomEvent} */ (event).detail));
  wire.add({ direction: "in", message: session.ready });
  fill(ui.voice, session.ready.voices.map((/** @type {any} */ voice) => ({ value: voice.voice_id, name: voice.name })));
  showStyles();
  const { codec, sample_rate } = session.ready.audio;
  const why = codec !== "opus" && ui.codecs.value === "" ? ", this browser decodes no Opus" : "";
  showNumber("codec", `${codec === "opus" ? "Opus" : "PCM"} ${sample_rate / 1000} kHz${why}`);
  showTie();
  engine.look();
  if (ui.spoken.checked) spokenForm.show(ui.text.value);
}

function showTie() {
  const session = connection.session;
  const trip = session && session.roundTripMs >= 0 ? `, ${Math.round(session.roundTripMs)} ms there and back` : "";
  const resumes = status.resumes === "0" ? "" : `, taken up again ${status.resumes} times`;
  showNumber("session", session ? `Session ${session.ready.session_id.slice(0, 10)}…${trip}${resumes}` : "No session");
}

/** @param {{state: string, text: string}} detail */
function showConnection({ state, text }) {
  element("door").hidden = state !== "key";
  if (state === "ready" && dialogue.isSpeaking) showState("speaking", "speaking");
  else showState(state, text);
  if (state === "key") ui.key.focus();
}

/** @param {import("./engine.js").Glance} glance */
function showEngine({ contexts, parked, kv_blocks }) {
  const used = kv_blocks.map((stage) => stage.used);
  const sum = (/** @type {"used" | "cached" | "total"} */ kind) => kv_blocks.reduce((all, stage) => all + stage[kind], 0);
  blocks.push(used);
  showNumber("blocks", `${sum("used")} of ${sum("total").toLocaleString("en")}`);
  showNumber("engine", used.map((count, stage) => `cb${stage} ${count}`).join(" · "));
  const others = contexts === 1 ? "1 context" : `${contexts} contexts`;
  showNumber("contexts", `${others} in the engine, ${parked} paused far ahead; ${sum("cached")} blocks kept for reuse`);
}

function addSamples() {
  for (const sample of SAMPLES) {
    const button = document.createElement("button");
    const about = Object.assign(document.createElement("em"), { textContent: sample.about });
    const next = document.createElement("small");
    let turn = 0;
    const show = () => (next.textContent = `“${sample.turns[turn].user}”`);
    const say = (/** @type {string} */ said = sample.turns[turn].user) => {
      const { answer } = sample.turns[turn];
      const has = [...ui.style.options].some((option) => option.value === sample.style);
      turn = (turn + 1) % sample.turns.length;
      show();
      nextTurn = say;
      speak(answer, { user: said, style: has ? sample.style : undefined });
    };
    button.type = "button";
    button.append(sample.name, " ", about, next);
    button.addEventListener("click", () => say());
    show();
    element("samples").append(button);
  }
}

function showPace() {
  ui.pace.disabled = !ui.streamed.checked;
  showNumber("pace-value", ui.streamed.checked ? `${ui.pace.value} words/s` : "all at once");
}

/** Only what was typed belongs to no conversation. */
function speakTyped() {
  nextTurn = null;
  speak(ui.text.value);
}

async function toggleMicrophone() {
  try {
    if (microphone.state === "off") await microphone.on();
    else await microphone.off();
  } catch (error) {
    const isRefused = error instanceof DOMException && error.name === "NotAllowedError";
    showNumber("mic-label", isRefused ? "The microphone was refused" : "There is no microphone");
  }
}

connection.addEventListener("state", (event) => showConnection(/** @type {CustomEvent} */ (event).detail));
connection.addEventListener("session", (event) => showSession(/** @type {CustomEvent} */ (event).detail));
connection.addEventListener("back", () => {
  status.resumes = String(Number(status.resumes) + 1);
  showTie();
});
dialogue.addEventListener("begin", () => {
  ui.stop.disabled = false;
  engine.isBusy = true;
  if (connection.state === "ready") showState("speaking", "speaking");
});
dialogue.addEventListener("end", () => {
  ui.stop.disabled = true;
  engine.isBusy = false;
  showTie();
  if (connection.state === "ready") showState("ready", "ready");
});
engine.addEventListener("glance", (event) => showEngine(/** @type {CustomEvent} */ (event).detail));
engine.addEventListener("gone", () => showNumber("engine", "The engine cannot be asked now."));

microphone.addEventListener("state", () => {
  status.mic = microphone.state;
  // Nobody is left who could say that it was a false alarm.
  if (microphone.state === "off") dialogue.release();
  ui.mic.ariaPressed = String(microphone.state !== "off");
  showNumber("mic-label", MIC_LABELS[microphone.state]);
});
microphone.addEventListener("level", (event) => {
  const { speech } = /** @type {CustomEvent} */ (event).detail;
  ui.mic.style.setProperty("--speech", speech.toFixed(2));
});
microphone.addEventListener("start", () => dialogue.hold());
microphone.addEventListener("false-alarm", () => dialogue.release());
microphone.addEventListener("sure", () => {
  isVisitorsTurn ||= dialogue.isSpeaking;
  dialogue.interrupt("voice");
});
microphone.addEventListener("end", (event) => {
  const { seconds } = /** @type {CustomEvent} */ (event).detail;
  if (isVisitorsTurn) nextTurn?.(`(you spoke for ${seconds.toFixed(1)} s)`);
  isVisitorsTurn = false;
});

ui.speak.addEventListener("click", speakTyped);
ui.stop.addEventListener("click", () => dialogue.interrupt("button"));
ui.mic.addEventListener("click", toggleMicrophone);
ui.text.addEventListener("input", () => {
  dialogue.interrupt("typing");
  if (ui.spoken.checked) spokenForm.show(ui.text.value);
});
ui.text.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  speakTyped();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") dialogue.interrupt("key");
});
ui.voice.addEventListener("change", showStyles);
for (const input of [ui.streamed, ui.pace]) input.addEventListener("input", showPace);
ui.spoken.addEventListener("input", () => {
  element("said").hidden = !ui.spoken.checked;
  if (ui.spoken.checked) spokenForm.show(ui.text.value);
});
element("drop").addEventListener("click", () => connection.session?.reconnect());
ui.codecs.addEventListener("change", async () => {
  const codec = await chooseCodec(ui.codecs.value === "pcm");
  await dialogue.change(codec);
  connection.options = options(codec);
  await connection.renew();
});
element("door").addEventListener("submit", (event) => {
  event.preventDefault();
  connection.key = ui.key.value.trim();
  ui.key.value = "";
  connection.open();
});

addSamples();
showPace();
if (!Microphone.isPossible) ui.mic.hidden = true;
connection.open();
