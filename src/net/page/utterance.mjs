// One thing that is said: its text, its sound, and what was measured of it.

import { codePoints } from "./text.mjs";
import { OpusDecoder, opusRate } from "./opus.mjs";
import { Recording } from "./recording.mjs";

export const pcmRate = 24000;

export class Utterance {
  points = []; // of what was written so far
  sentences = []; // {index, begin, end, first}: positions in `points` and in samples of the recording
  gaps = []; // {at, frames}
  bytes = 0;
  played = 0;
  buffered = 0;
  clickedAt = Date.now();
  firstSoundMs = null;
  typedAtFirstSound = null;
  interruptedAt = null;
  stoppedMs = null;
  started = null; // the server's `started`
  complete = false; // every sample has come
  over = false; // nothing more will be played
  lost = 0; // samples that the server no longer had after a break
  #decoder = null;
  #sink;
  #onDecoderError;

  // `sink(Int16Array)` gets the samples in order.
  constructor(id, settings, sink, onDecoderError) {
    this.id = id;
    this.settings = settings;
    this.rate = settings.format === "opus" ? opusRate : pcmRate;
    this.recording = new Recording(this.rate);
    this.#sink = sink;
    this.#onDecoderError = onDecoderError;
  }

  get scale() { return this.rate / (this.started?.sample_rate ?? this.rate); } // samples of the recording for one of the server's
  get playedSeconds() { return this.played / this.rate; }
  get bufferedMs() { return (Math.max(0, this.recording.samples - this.played) / this.rate) * 1000; }

  write(text) {
    for (const point of codePoints(text)) this.points.push(point);
  }

  begin(started) {
    if (this.started) return;
    this.started = started;
    if (started.format === "opus") {
      this.#decoder = new OpusDecoder(Math.round(started.pre_skip * this.scale), (samples) => this.#receive(samples), this.#onDecoderError);
    }
  }

  sentence({ index, begin, end, first_sample: first }) {
    if (!this.sentences.some((each) => each.index === index)) this.sentences.push({ index, begin, end, first: first * this.scale });
  }

  // The sentence at a position of the recording.
  sentenceAt(sample) {
    return this.sentences.findLast((each) => each.first <= sample) ?? null;
  }

  // Gaps where one sentence had ended and the next had not come.
  get gapsBetween() {
    const tolerance = this.rate / 50; // Opus packets reach over the end of a sentence
    return this.gaps.filter(({ at }) => this.sentences.some(({ first }) => first > 0 && Math.abs(first - at) <= tolerance)).length;
  }

  frame({ first, payload }) {
    this.bytes += payload.byteLength;
    if (this.#decoder) this.#opusFrame(first, payload);
    else this.#pcmFrame(first, payload);
  }

  // Resolves when all that came has gone to the sink, with how much is missing of `samples` (the server's `done`; absent after an error).
  async finish(samples) {
    await this.#decoder?.finish();
    this.#decoder = null;
    this.complete = true;
    if (samples === undefined) return 0;
    const all = Math.round(samples * this.scale);
    this.recording.trim(all);
    return all - this.recording.samples;
  }

  abandon() {
    this.#decoder?.close();
    this.#decoder = null;
  }

  #pcmFrame(first, payload) {
    const missing = first - this.recording.samples;
    if (missing > 0) {
      this.lost += missing;
      this.#receive(new Int16Array(missing));
    }
    if (payload.byteLength > 0) this.#receive(new Int16Array(payload));
  }

  // Packets behind their length. Where the frame begins tells how many packets are missing before it.
  #opusFrame(first, payload) {
    const decoder = this.#decoder;
    if (payload.byteLength > 0) {
      const at = Math.round((first * this.scale + this.started.pre_skip * this.scale) / decoder.packetFrames);
      const missing = first === 0 ? 0 : at - decoder.packets;
      if (missing > 0) {
        this.lost += missing * decoder.packetFrames;
        decoder.lose(missing);
      }
    }
    const view = new DataView(payload);
    for (let i = 0; i + 2 <= payload.byteLength;) {
      const length = view.getUint16(i, true);
      decoder.push(new Uint8Array(payload, i + 2, length));
      i += 2 + length;
    }
  }

  #receive(samples) {
    this.recording.push(samples);
    this.#sink(samples.slice());
  }
}
