// The page: what is clicked, what is shown. Sound, session and words are in the other modules.

import { AudioOutput } from "./audio.mjs";
import { opusIsSupported, opusRate } from "./opus.mjs";
import { StreamSession } from "./session.mjs";
import { examples, missingWords, preferredLanguage, translate } from "./strings.mjs";
import { Typist, clean, codePoints } from "./text.mjs";
import { Utterance, pcmRate } from "./utterance.mjs";
import { Waveform } from "./waveform.mjs";

const storageKey = "chattts-page";
const maxTries = 5; // of a busy server
const stallMs = 8000; // silence of the link in the middle of speech that looks like a dead one
const idleMs = 20_000; // after which the sound device is let go
const chinese = /\p{Script=Han}/u;

const $ = (id) => document.getElementById(id);
const url = (path) => new URL(path, document.baseURI);

const remembered = readStorage();
let language = remembered.language ?? preferredLanguage(navigator.languages ?? [navigator.language]);
let voices = [];
let opusAvailable = false;
let limit = null;

let output = null;
let current = null; // the utterance that is shown
let playing = null; // {id, utterance, replay}: what sounds or is about to
let typist = null;
let retry = null; // {timer, tries}
let status = { key: "ready", values: {} };
let problem = null;
let nextId = 1;
let idleTimer = 0;
let lastHeard = 0; // when the server was last heard of
let patienceMs = stallMs;
let painting = false;
const byName = new Map(); // utterances whose contexts are not over

const waveform = new Waveform($("wave"));
const session = new StreamSession(Object.assign(url("v1/stream"), { protocol: location.protocol === "https:" ? "wss:" : "ws:" }), {
  ready: (message) => {
    limit = message.limits?.max_text_characters ?? null;
    showCount();
  },
  state: showLink,
  message: receive,
  frame: (name, frame) => {
    lastHeard = Date.now();
    const utterance = byName.get(name);
    if (!utterance || utterance.interruptedAt !== null) return;
    const lost = utterance.lost;
    utterance.frame(frame);
    if (utterance.lost > lost) say("resumedGap", { ms: format((utterance.lost / utterance.rate) * 1000, 0) });
    paint();
  },
});

// For tests: the parts, and what the audio thread has counted.
globalThis.ttsPage = {
  session,
  missingWords,
  get utterance() { return current; },
  get wire() { return wireFormat(); },
  counters: () => output?.counters() ?? Promise.resolve(null),
};

// --- words -------------------------------------------------------------------------------------------------------------------------------

function t(key, values) { return translate(language, key, values); }

function format(value, digits) {
  return new Intl.NumberFormat(language, { minimumFractionDigits: digits, maximumFractionDigits: digits }).format(value);
}

function applyLanguage() {
  document.documentElement.lang = language === "zh" ? "zh-Hans" : "en";
  for (const element of document.querySelectorAll("[data-i18n]")) element.textContent = t(element.dataset.i18n);
  for (const element of document.querySelectorAll("[data-i18n-placeholder]")) element.placeholder = t(element.dataset.i18nPlaceholder);
  for (const element of document.querySelectorAll("[data-i18n-label]")) element.setAttribute("aria-label", t(element.dataset.i18nLabel));
  $("language").textContent = t("language");
  $("language").lang = language === "zh" ? "en" : "zh-Hans";
  showVoices();
  showCount();
  showSettings();
  showStatus();
  showProblem();
  paint();
}

function say(key, values = {}) {
  status = { key, values };
  showStatus();
}

function showStatus() { $("status").textContent = t(status.key, status.values); }

function report(key, values = {}) {
  problem = key === null ? null : { key: `problem_${key}`, values };
  showProblem();
}

function showProblem() { $("problem").textContent = problem ? t(problem.key, problem.values) : ""; }

// --- settings ----------------------------------------------------------------------------------------------------------------------------

function readStorage() {
  try {
    return JSON.parse(localStorage.getItem(storageKey)) ?? {};
  } catch {
    return {}; // storage may be forbidden
  }
}

function remember(values) {
  Object.assign(remembered, values);
  try {
    localStorage.setItem(storageKey, JSON.stringify(remembered));
  } catch {
    // not remembered, then
  }
}

async function loadVoices() {
  try {
    const reply = await fetch(url("v1/voices"));
    if (!reply.ok) throw new Error(`status ${reply.status}`);
    voices = (await reply.json()).data;
    showVoices();
  } catch {
    report("voices");
  }
}

function showVoices() {
  if (voices.length === 0) return;
  const chosen = remembered.voice ?? voices.find((voice) => voice.default)?.id;
  const names = new Intl.DisplayNames([language], { type: "language" });
  $("voice").replaceChildren(...voices.map(({ id, title, languages }) => {
    const spoken = languages.map((tag) => names.of(tag)).join(language === "zh" ? "、" : ", ");
    return new Option(`${title} (${spoken})`, id, id === chosen, id === chosen);
  }));
  showVoiceNote();
}

function showVoiceNote() {
  const voice = voices.find(({ id }) => id === $("voice").value);
  const mismatch = voice && !voice.languages.includes("zh") && chinese.test($("text").value);
  $("voice-note").textContent = mismatch ? t("voiceMismatch", { voice: voice.title }) : "";
}

function showCount() {
  const count = format(codePoints($("text").value).length, 0);
  $("count").textContent = limit === null ? t("countOnly", { count }) : t("count", { count, limit: format(limit, 0) });
}

function showSettings() {
  $("speed-value").textContent = t("times", { value: format(Number($("speed").value), 2) });
  $("pace-value").textContent = t("perSecond", { value: $("pace").value });
  for (const [input, shown] of [["speed", "speed-value"], ["pace", "pace-value"]]) $(input).setAttribute("aria-valuetext", $(shown).textContent);
  $("pace-field").hidden = !$("live").checked;
}

function wireFormat() { return opusAvailable && $("wire").value === "opus" ? "opus" : "pcm_s16le"; }

function settingsNow() {
  const settings = { format: wireFormat(), sample_rate: pcmRate, speed: Number($("speed").value) };
  if (voices.length > 0) settings.voice = $("voice").value;
  const seed = $("seed").value.trim();
  if (seed !== "") settings.seed = Number(seed);
  return settings;
}

async function chooseWire() {
  opusAvailable = await opusIsSupported();
  if (remembered.wire) $("wire").value = remembered.wire;
  if (!opusAvailable) withoutOpus();
}

function withoutOpus() {
  opusAvailable = false;
  $("wire").querySelector("[value=opus]").disabled = true;
  $("wire").value = "pcm_s16le";
}

// --- speaking ----------------------------------------------------------------------------------------------------------------------------

function speak() {
  const clickedAt = Date.now();
  const text = clean($("text").value);
  const count = codePoints(text).length;
  report(null);
  if (text.trim() === "") return refuse("text", "empty");
  if (limit !== null && count > limit) return refuse("text", "too_long", { count: format(count, 0), limit: format(limit, 0) });
  if (!/^\d*$/.test($("seed").value.trim())) return refuse("seed", "seed");
  if (voices.length === 0) loadVoices();
  interrupt();

  const settings = settingsNow();
  const id = nextId++;
  if (!sound(settings.format === "opus" ? opusRate : pcmRate)) return;
  const utterance = new Utterance(id, settings, (samples) => { if (playing?.id === id) output.push(id, samples); }, () => decoderFailed(utterance));
  utterance.clickedAt = clickedAt;
  current = utterance;
  playing = { id, utterance, replay: false };
  patienceMs = stallMs;
  lastHeard = clickedAt;
  retry = { timer: 0, tries: 0 };
  output.begin(id);
  $("nothing-yet").hidden = true;
  say(session.state === "open" ? "waiting" : "connecting");
  openContext(utterance);
  if ($("live").checked) {
    typist = new Typist(text, () => Number($("pace").value), (piece) => write(utterance, piece), () => session.end(utterance.name));
  } else {
    typist = null;
    write(utterance, text);
    session.end(utterance.name);
  }
  showButtons();
  paint();
}

function refuse(input, key, values) {
  report(key, values);
  if (input === "seed") $("more").open = true;
  $(input).setAttribute("aria-invalid", "true");
  $(input).focus();
}

function write(utterance, text) {
  utterance.write(text);
  session.write(utterance.name, text);
  paint();
}

function openContext(utterance) {
  utterance.name = `speech-${utterance.id}-${retry.tries}`;
  byName.set(utterance.name, utterance);
  session.start(utterance.name, utterance.settings);
}

// Whether there is a way to be heard. Within a click or key press, or the browser holds the sound back.
function sound(rate) {
  clearTimeout(idleTimer);
  const failed = (error) => report("audio", { message: error.message });
  if (output?.rate !== rate) {
    output?.close();
    output = null;
    try {
      output = new AudioOutput(rate, hear, failed);
    } catch (error) {
      failed(error);
      return false;
    }
  }
  const opened = output;
  opened.resume().catch(() => {});
  setTimeout(() => { if (output === opened && playing && !opened.running) say("suspended"); }, 1500);
  return true;
}

// Silence first, then everything else.
function interrupt() {
  if (!playing) return;
  const { id, utterance, replay } = playing;
  output.drop(id);
  playing = null;
  restLater();
  if (!replay) {
    utterance.interruptedAt = Date.now();
    utterance.over = true;
    utterance.abandon();
    typist?.stop();
    clearTimeout(retry.timer);
    const heard = Math.max(0, utterance.played - output.latencySeconds * utterance.rate);
    session.cancel(utterance.name, Math.floor(heard / utterance.scale));
  }
  if (replay) say("ready");
  else if (utterance.stoppedMs === null) say("interrupting");
  showButtons();
  paint();
}

function replay() {
  const utterance = current;
  if (!utterance || utterance.recording.samples === 0) return;
  if (playing) interrupt();
  if (!sound(utterance.rate)) return;
  const id = nextId++;
  playing = { id, utterance, replay: true };
  utterance.played = 0;
  output.begin(id);
  for (const chunk of utterance.recording.chunks) output.push(id, chunk.slice());
  output.end(id);
  say("replaying");
  showButtons();
}

function restLater() {
  clearTimeout(idleTimer);
  idleTimer = setTimeout(() => { if (!playing) output?.suspend(); }, idleMs);
}

// --- what the server says ----------------------------------------------------------------------------------------------------------------

function receive(name, message) {
  lastHeard = Date.now();
  const utterance = byName.get(name);
  if (["done", "cancelled", "error"].includes(message.type) && message.ended !== false) byName.delete(name);
  switch (message.type) {
    case "started":
      utterance.begin(message);
      break;
    case "sentence":
      utterance.sentence(message);
      break;
    case "done":
      settle(utterance, message.samples);
      break;
    case "cancelled":
      cancelled(utterance, message);
      break;
    case "error":
      failed(utterance, message);
      break;
    case "draining":
      say("draining");
      break;
  }
  showButtons();
  paint();
}

// No more samples will come. `samples`: how many there should be; absent when it ended in an error.
async function settle(utterance, samples) {
  if (utterance.interruptedAt !== null) return;
  const missing = await utterance.finish(samples).catch(() => 0); // rejected when it is interrupted meanwhile
  if (missing > 0) report("incomplete", { samples: missing });
  if (playing?.utterance === utterance && !playing.replay) output.end(playing.id);
  showButtons();
}

function cancelled(utterance, message) {
  utterance.stoppedMs = Date.now() - utterance.interruptedAt;
  if (utterance !== current || playing) return;
  say("interrupted", { characters: format(message.characters, 0), total: format(utterance.points.length, 0), ms: format(utterance.stoppedMs, 0) });
}

function failed(utterance, message) {
  if (!utterance || utterance.interruptedAt !== null) {
    if (!utterance) console.warn(`the server reports ${message.code}: ${message.message}`);
    return;
  }
  if (message.ended === false) {
    console.warn(`the server reports ${message.code}: ${message.message}`);
    return;
  }
  const fresh = utterance.recording.samples === 0;
  if (message.retry_after_ms !== undefined && fresh && retry.tries < maxTries) {
    ++retry.tries;
    say("busy", { seconds: format(message.retry_after_ms / 1000, message.retry_after_ms < 10_000 ? 1 : 0) });
    retry.timer = setTimeout(() => {
      say("waiting");
      openContext(utterance);
      session.write(utterance.name, utterance.points.join(""));
      if (!typist || typist.done) session.end(utterance.name);
    }, message.retry_after_ms);
    return;
  }
  typist?.stop();
  const known = ["queue_full", "unavailable", "nothing_to_say", "text_too_long", "session_lost", "link_refused"].includes(message.code);
  report(known ? message.code : "other", { message: message.message });
  settle(utterance);
}

function decoderFailed(utterance) {
  if (utterance.over) return;
  withoutOpus();
  interrupt();
  report("decoder");
}

function showLink(state, detail) {
  $("link").dataset.state = state;
  $("link-text").dataset.i18n = `link_${state}`;
  $("link-text").textContent = t(`link_${state}`);
  $("reconnect").hidden = state !== "lost";
  const speaking = playing && !playing.replay && !playing.utterance.complete;
  if (state === "reconnecting" && speaking) say("reconnecting");
  if (state === "open") {
    if (["unreachable", "refused"].includes(problem?.key.slice("problem_".length))) report(null);
    if (status.key === "reconnecting") say(problem ? "speaking" : "resumed");
    else if (status.key === "connecting") say("waiting");
  }
  if (state === "lost" && detail.code !== undefined) explainLoss();
}

// A socket that does not open tells no reason; a plain request does.
async function explainLoss() {
  let reached = false;
  try {
    reached = (await fetch(url("v1/voices"), { cache: "no-store" })).ok;
  } catch {
    // not reached
  }
  if (session.state === "lost" && !problem) report(reached ? "refused" : "unreachable");
}

// --- what the audio thread says ----------------------------------------------------------------------------------------------------------

function hear(message) {
  if (message.id !== playing?.id) return;
  const { utterance, replay: again } = playing;
  if (message.played !== undefined) {
    utterance.played = message.played;
    utterance.buffered = message.buffered;
  }
  if (message.type === "began" && !again) {
    utterance.firstSoundMs = message.at - utterance.clickedAt + output.latencySeconds * 1000;
    utterance.typedAtFirstSound = typist && !typist.done ? { typed: typist.typed, total: typist.total } : null;
    if (status.key !== "reconnecting") say("speaking");
  }
  if (message.type === "gap" && !again) utterance.gaps.push({ at: message.at, frames: message.frames });
  if (message.type === "finished") {
    utterance.over = true;
    playing = null;
    restLater();
    if (!problem) say("finished", { seconds: format(utterance.recording.seconds, 1) });
    else say("ready");
    showButtons();
  }
  paint();
}

// --- what is seen ------------------------------------------------------------------------------------------------------------------------

function showButtons() {
  const hadFocus = document.activeElement === $("interrupt");
  $("interrupt").disabled = !playing;
  if (hadFocus && !playing) $("speak").focus();
  const heard = (current?.recording.samples ?? 0) > 0;
  $("replay").disabled = $("download-wav").disabled = !heard;
  $("download-opus").disabled = !heard || $("download-opus").getAttribute("aria-busy") === "true";
}

function paint() {
  if (painting) return;
  painting = true;
  requestAnimationFrame(() => {
    painting = false;
    showSound();
  });
}

function showSound() {
  const utterance = current;
  waveform.show(utterance?.recording ?? null, utterance?.playedSeconds ?? 0);
  if (!utterance) {
    $("wave").setAttribute("aria-label", t("nothingYet"));
    return;
  }
  const seconds = (value) => t("seconds", { value: format(value, 1) });
  $("wave").setAttribute("aria-label", t("waveform", { played: format(utterance.playedSeconds, 1), total: format(utterance.recording.seconds, 1) }));
  $("first-sound").textContent = utterance.firstSoundMs === null ? "–" : t("milliseconds", { value: format(utterance.firstSoundMs, 0) });
  $("first-sound-hint").textContent = utterance.typedAtFirstSound ? t("firstSoundPieces", utterance.typedAtFirstSound) : t("firstSoundHint");
  const gapMs = utterance.gaps.reduce((sum, gap) => sum + gap.frames, 0) / utterance.rate * 1000;
  $("gaps").textContent = utterance.firstSoundMs === null ? "–"
    : utterance.gaps.length === 0 ? t("gapsNone") : t("gapsSome", { count: utterance.gaps.length, ms: format(gapMs, 0) });
  const between = utterance.gapsBetween;
  $("gaps-hint").textContent = between > 0 ? t("gapsBetween", { count: between }) : t("gapsHint");
  $("ahead").textContent = utterance.over ? "–" : seconds(utterance.bufferedMs / 1000);
  $("received").textContent = seconds(utterance.recording.seconds);
  $("received-hint").textContent = t("receivedHint", { bytes: format(utterance.bytes / 1000, 0), format: utterance.settings.format === "opus" ? "Opus" : "PCM" });
  $("stopped").textContent = utterance.stoppedMs === null ? "–" : t("milliseconds", { value: format(utterance.stoppedMs, 0) });
  if (utterance.recording.samples > 0 && $("replay").disabled) showButtons();
  showTranscript(utterance);
}

function showTranscript(utterance) {
  const box = $("transcript");
  const heard = playing ? Math.max(0, utterance.played - output.latencySeconds * utterance.rate) : utterance.played;
  const spoken = utterance.firstSoundMs !== null && !(utterance.over && utterance.complete && !playing) ? utterance.sentenceAt(heard) : null;
  const ended = utterance.over && utterance.complete && !playing;
  const state = `${utterance.id} ${utterance.points.length} ${utterance.sentences.length} ${spoken?.index} ${ended}`;
  if (box.dataset.state === state) return;
  box.dataset.state = state;
  const text = (from, to) => utterance.points.slice(from, to).join("");
  const begin = spoken?.begin ?? 0;
  const end = spoken?.end ?? 0;
  const mark = document.createElement("mark");
  mark.textContent = text(begin, end);
  const rest = document.createElement("span");
  rest.className = ended ? "" : "unsaid";
  rest.textContent = text(end);
  box.replaceChildren(text(0, begin), ...(spoken ? [mark] : []), rest);
  box.hidden = utterance.points.length === 0;
  if (spoken) box.scrollTop = mark.offsetTop - box.clientHeight / 3;
}

// --- files -------------------------------------------------------------------------------------------------------------------------------

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

async function downloadOpus() {
  const utterance = current;
  const button = $("download-opus");
  const label = button.textContent;
  button.setAttribute("aria-busy", "true");
  button.disabled = true;
  button.textContent = t("preparing");
  try {
    const { voice, speed } = utterance.settings;
    const body = { text: utterance.points.join(""), voice: utterance.started?.voice ?? voice, speed, seed: utterance.started?.seed, format: "opus" };
    const reply = await fetch(url("synthesize"), { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
    if (!reply.ok) throw new Error((await reply.json()).error.message);
    save(await reply.blob(), "speech.opus");
  } catch (error) {
    report("download", { message: error.message });
  } finally {
    button.removeAttribute("aria-busy");
    button.textContent = button.dataset.i18n ? t(button.dataset.i18n) : label;
    showButtons();
  }
}

// --- start -------------------------------------------------------------------------------------------------------------------------------

function showExamples() {
  $("examples").replaceChildren(...examples.map(({ lang, key, text }) => {
    const button = document.createElement("button");
    button.type = "button";
    button.lang = lang;
    button.dataset.i18n = key;
    button.onclick = () => {
      setText(text);
      $("text").removeAttribute("aria-invalid");
      showCount();
      showVoiceNote();
      speak();
    };
    return button;
  }));
}

// The reader's own text can be had back with the browser's undo.
function setText(text) {
  const box = $("text");
  if (box.value.trim() !== "" && !examples.some((each) => each.text === box.value)) {
    box.focus();
    box.select();
    if (document.execCommand("insertText", false, text)) return;
  }
  box.value = text;
}

function showCode() {
  const here = document.baseURI.replace(/[^/]*$/, "");
  const json = "-H 'Content-Type: application/json'";
  $("code-http").textContent = `curl ${here}synthesize ${json} \\\n  -d '{"text": "Hello! 你好！"}' -o hello.wav`;
  $("code-stream").textContent = `curl -sN ${here}synthesize_stream ${json} \\\n  -d '{"text": "Hello!", "format": "wav"}' | ffplay -nodisp -autoexit -`;
  $("code-openai").textContent = `curl ${here}v1/audio/speech ${json} \\\n  -d '{"model": "tts-1", "voice": "alloy", "input": "Hello!"}' -o hello.mp3`;
  $("code-socket").textContent = [
    `${here.replace(/^http/, "ws")}v1/stream   (subprotocol tts.v1)`,
    '{"type": "start", "context": "a", "format": "pcm_s16le"}',
    '{"type": "text", "context": "a", "text": "Hello!"}',
    '{"type": "end", "context": "a"}',
  ].join("\n");
}

function tick() {
  session.acknowledge(current?.name, current?.bufferedMs ?? 0);
  const waits = playing && !playing.replay && !current.complete && session.busy && current.bufferedMs < 20 && (!typist || typist.done);
  if (waits && session.state === "open" && Date.now() - lastHeard > patienceMs) {
    patienceMs *= 2; // a server that is merely slow is not asked again and again
    session.relink();
  }
}

function wire() {
  $("form").onsubmit = (event) => {
    event.preventDefault();
    speak();
  };
  $("interrupt").onclick = interrupt;
  $("replay").onclick = replay;
  $("reconnect").onclick = () => {
    report(null);
    session.open();
  };
  $("download-wav").onclick = () => save(current.recording.toWav(), "speech.wav");
  $("download-opus").onclick = downloadOpus;
  $("language").onclick = () => {
    language = language === "zh" ? "en" : "zh";
    remember({ language });
    applyLanguage();
  };
  $("text").oninput = () => {
    $("text").removeAttribute("aria-invalid");
    if (problem?.key === "problem_empty" || problem?.key === "problem_too_long") report(null);
    showCount();
    showVoiceNote();
  };
  $("seed").oninput = () => {
    $("seed").removeAttribute("aria-invalid");
    if (problem?.key === "problem_seed") report(null);
  };
  $("voice").onchange = () => {
    remember({ voice: $("voice").value });
    showVoiceNote();
    changeMidway({ voice: $("voice").value });
  };
  $("speed").oninput = () => showSettings();
  $("speed").onchange = () => {
    remember({ speed: $("speed").value });
    changeMidway({ speed: Number($("speed").value) });
  };
  $("pace").oninput = () => {
    remember({ pace: $("pace").value });
    showSettings();
  };
  $("live").onchange = () => {
    remember({ live: $("live").checked });
    showSettings();
  };
  $("wire").onchange = () => remember({ wire: $("wire").value });
  document.addEventListener("keydown", (event) => {
    if (event.isComposing) return; // keys of an input method
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      speak();
    } else if (event.key === "Escape" && playing) {
      event.preventDefault();
      interrupt();
    }
  });
  addEventListener("online", () => { if (session.state === "lost") session.open(); });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return;
    if (session.state === "lost" || session.state === "closed") session.open();
    if (playing) output.resume().catch(() => {}); // phones take the sound away from pages in the background
  });
  addEventListener("pagehide", () => session.close());
  addEventListener("pageshow", ({ persisted }) => { if (persisted) session.open(); });
  setInterval(tick, 1000);
}

// For sentences that have not been begun.
function changeMidway(changes) {
  if (playing && !playing.replay && !current.complete) session.update(current.name, changes);
}

showExamples();
showCode();
if (/mac|iphone|ipad/i.test(navigator.platform)) $("speak").querySelector("kbd").textContent = "⌘ ↵";
if (remembered.speed) $("speed").value = remembered.speed;
if (remembered.pace) $("pace").value = remembered.pace;
$("live").checked = remembered.live === true;
if ($("text").value === "") $("text").value = examples[language === "zh" ? 2 : 0].text;
wire();
applyLanguage();
loadVoices();
chooseWire();
session.open();
