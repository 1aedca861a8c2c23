// What the listener hears, sample by sample. It runs on the audio thread (worklet.mjs) or, in browsers that give none to the page, beside
// the page (audio.mjs), and knows nothing of either. One utterance is current at a time; what belongs to another is never heard.

const startCushionSeconds = 0.04; // to have before the first sound
const refillCushionSeconds = 0.12; // to have after running dry, so that one late packet is one gap and not five
const fadeFrames = 128; // under 6 ms: dropping is at once, and yet no click
const reportSeconds = 0.05;
const audibleLevel = 0.003;

export class Playback {
  #rate;
  #notify;
  #line = null;
  #fade = null;
  #sinceReport = 0;

  // Counted where samples leave. `emitted`: samples of speech; `audible`: those above the noise floor; `stray`: samples other than zero
  // that left while no utterance was current (there must be none); `late`: samples that came for an utterance that is not current.
  counters = { rendered: 0, emitted: 0, audible: 0, stray: 0, late: 0 };

  constructor(rate, notify) {
    this.#rate = rate;
    this.#notify = notify;
  }

  handle(message) {
    switch (message.type) {
      case "begin":
        this.#line = { id: message.id, chunks: [], chunk: 0, offset: 0, buffered: 0, played: 0, begun: false, playing: false, ended: false, dry: 0, gaps: 0, gapFrames: 0 };
        break;
      case "samples":
        this.#push(message.id, message.samples);
        break;
      case "end":
        if (this.#line?.id === message.id) this.#line.ended = true;
        break;
      case "drop":
        this.#drop(message.id);
        break;
      case "report":
        this.#notify({ type: "report", token: message.token, counters: { ...this.counters } });
        break;
    }
  }

  // Fills `out` (one channel of floats).
  render(out) {
    out.fill(0);
    this.counters.rendered += out.length;
    const line = this.#line;
    if (line) this.#renderLine(line, out);
    if (this.#fade) {
      this.#renderFade(out);
    } else if (!line) {
      for (let i = 0; i < out.length; ++i) if (out[i] !== 0) ++this.counters.stray;
    }
  }

  #push(id, samples) {
    const line = this.#line;
    if (line?.id !== id) {
      this.counters.late += samples.length;
      return;
    }
    line.chunks.push(samples);
    line.buffered += samples.length;
  }

  #drop(id) {
    const line = this.#line;
    if (line?.id !== id) {
      this.#notify({ type: "dropped", id, played: 0, counters: { ...this.counters } });
      return;
    }
    const played = line.played;
    const tail = new Float32Array(line.playing ? Math.min(fadeFrames, line.buffered) : 0);
    this.#take(line, tail, 0);
    this.#line = null;
    this.#fade = { id, tail, played };
  }

  #renderFade(out) {
    const { id, tail, played } = this.#fade;
    const count = Math.min(tail.length, out.length);
    for (let i = 0; i < count; ++i) out[i] += tail[i] * (1 - (i + 1) / count);
    this.#fade = null;
    this.#notify({ type: "dropped", id, played, counters: { ...this.counters } });
  }

  #renderLine(line, out) {
    if (line.ended && line.buffered === 0) {
      this.#finish(line);
      return;
    }
    if (!line.playing && !this.#mayPlay(line)) {
      if (line.begun) line.dry += out.length;
      return;
    }
    const copied = this.#take(line, out, 0);
    this.counters.emitted += copied;
    for (let i = 0; i < copied; ++i) if (out[i] > audibleLevel || out[i] < -audibleLevel) ++this.counters.audible;
    line.played += copied;
    if (copied < out.length) {
      if (line.ended) {
        this.#finish(line);
        return;
      }
      line.playing = false;
      line.dry = out.length - copied;
      this.#notify({ type: "dry", ...this.#position(line) });
    }
    this.#sinceReport += out.length;
    if (this.#sinceReport >= reportSeconds * this.#rate) {
      this.#sinceReport = 0;
      this.#notify({ type: "position", ...this.#position(line) });
    }
  }

  #mayPlay(line) {
    const cushion = (line.begun ? refillCushionSeconds : startCushionSeconds) * this.#rate;
    if (!line.ended && line.buffered < cushion) return false;
    if (!line.begun) {
      line.begun = true;
      this.#notify({ type: "began", id: line.id, at: Date.now() });
    } else {
      ++line.gaps;
      line.gapFrames += line.dry;
      this.#notify({ type: "gap", at: line.played, frames: line.dry, ...this.#position(line) });
    }
    line.playing = true;
    return true;
  }

  // Silence between the last sample and the news that it was the last is no gap.
  #finish(line) {
    this.#line = null;
    this.#notify({ type: "finished", ...this.#position(line) });
  }

  #position(line) {
    return { id: line.id, played: line.played, buffered: line.buffered, gaps: line.gaps, gapFrames: line.gapFrames, counters: { ...this.counters } };
  }

  #take(line, out, at) {
    const from = at;
    while (at < out.length && line.chunk < line.chunks.length) {
      const samples = line.chunks[line.chunk];
      const count = Math.min(samples.length - line.offset, out.length - at);
      for (let i = 0; i < count; ++i) out[at + i] = samples[line.offset + i] / 32768;
      at += count;
      line.offset += count;
      if (line.offset === samples.length) {
        line.chunks[line.chunk] = null; // played samples leave memory
        ++line.chunk;
        line.offset = 0;
      }
    }
    line.buffered -= at - from;
    return at - from;
  }
}
