// Draws a recording: what was played in the accent colour, what lies ahead in grey. The picture is as wide as the sound is long, and at
// least so many seconds that the first words do not jump about.

const leastSeconds = 8;
const barPixels = 2;
const gapPixels = 1;

export class Waveform {
  #canvas;
  #colours = {};
  #recording = null;
  #playedSeconds = 0;
  #drawn = "";

  constructor(canvas) {
    this.#canvas = canvas;
    new ResizeObserver(() => this.#resize()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#restyle());
    this.#restyle();
  }

  show(recording, playedSeconds) {
    this.#recording = recording;
    this.#playedSeconds = playedSeconds;
    this.#draw();
  }

  #restyle() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["accent", "wave", "line"]) this.#colours[name] = style.getPropertyValue(`--${name}`).trim();
    this.#drawn = "";
    this.#draw();
  }

  #resize() {
    const scale = devicePixelRatio || 1;
    this.#canvas.width = Math.round(this.#canvas.clientWidth * scale);
    this.#canvas.height = Math.round(this.#canvas.clientHeight * scale);
    this.#drawn = "";
    this.#draw();
  }

  #draw() {
    const { width, height } = this.#canvas;
    const scale = devicePixelRatio || 1;
    const step = (barPixels + gapPixels) * scale;
    const bars = Math.floor(width / step);
    const peaks = this.#recording?.peaks ?? [];
    const span = Math.max(leastSeconds, this.#recording?.seconds ?? 0) || leastSeconds;
    const playedBars = Math.floor((this.#playedSeconds / span) * bars);
    const state = `${width} ${height} ${peaks.length} ${playedBars}`;
    if (state === this.#drawn) return;
    this.#drawn = state;

    const context = this.#canvas.getContext("2d");
    context.clearRect(0, 0, width, height);
    context.fillStyle = this.#colours.line;
    context.fillRect(0, Math.round(height / 2), width, Math.max(1, scale / 2));
    if (peaks.length === 0) return;
    const peaksPerBar = span / this.#recording.peakSeconds / bars;
    const filled = Math.min(bars, Math.ceil(peaks.length / peaksPerBar));
    for (let bar = 0; bar < filled; ++bar) {
      let level = 0;
      const end = Math.min(peaks.length, Math.max(Math.floor(bar * peaksPerBar) + 1, Math.floor((bar + 1) * peaksPerBar)));
      for (let i = Math.floor(bar * peaksPerBar); i < end; ++i) level = Math.max(level, peaks[i]);
      const tall = Math.max(scale, Math.sqrt(level) * height * 0.94);
      context.fillStyle = bar < playedBars ? this.#colours.accent : this.#colours.wave;
      context.fillRect(bar * step, (height - tall) / 2, barPixels * scale, tall);
    }
    context.fillStyle = this.#colours.accent;
    context.fillRect(playedBars * step, 0, Math.max(1, scale), height);
  }
}
