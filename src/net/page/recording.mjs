// The samples of one utterance as they were received: for the waveform, for hearing them again, and as a WAV file.

const peaksPerSecond = 100;

export class Recording {
  chunks = [];
  samples = 0;
  peaks = []; // loudest value (0 to 1) of each hundredth of a second
  #framesPerPeak;

  constructor(rate) {
    this.rate = rate;
    this.#framesPerPeak = rate / peaksPerSecond;
  }

  get seconds() { return this.samples / this.rate; }
  get peakSeconds() { return 1 / peaksPerSecond; }

  push(samples) {
    this.chunks.push(samples);
    for (let i = 0; i < samples.length; ++i) {
      const at = Math.floor((this.samples + i) / this.#framesPerPeak);
      const level = Math.abs(samples[i]) / 32768;
      if (!(this.peaks[at] >= level)) this.peaks[at] = level;
    }
    this.samples += samples.length;
  }

  // Cuts what lies behind `samples`: a last Opus packet is longer than the sound in it.
  trim(samples) {
    while (this.samples > samples) {
      const last = this.chunks.pop();
      const excess = this.samples - samples;
      this.samples -= Math.min(excess, last.length);
      if (excess < last.length) this.chunks.push(last.subarray(0, last.length - excess));
    }
    this.peaks.length = Math.ceil(this.samples / this.#framesPerPeak);
  }

  toWav() {
    const head = new DataView(new ArrayBuffer(44));
    const tag = (at, text) => [...text].forEach((letter, i) => head.setUint8(at + i, letter.charCodeAt(0)));
    const bytes = this.samples * 2;
    tag(0, "RIFF");
    head.setUint32(4, 36 + bytes, true);
    tag(8, "WAVEfmt ");
    head.setUint32(16, 16, true);
    head.setUint16(20, 1, true); // PCM
    head.setUint16(22, 1, true); // one channel
    head.setUint32(24, this.rate, true);
    head.setUint32(28, this.rate * 2, true);
    head.setUint16(32, 2, true);
    head.setUint16(34, 16, true);
    tag(36, "data");
    head.setUint32(40, bytes, true);
    return new Blob([head, ...this.chunks], { type: "audio/wav" });
  }
}
