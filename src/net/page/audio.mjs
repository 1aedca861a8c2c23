// The way from samples to the loudspeaker. Samples may be pushed at once; what comes before the audio thread runs waits for it.

import { Playback } from "./playback.mjs";

const fallbackFrames = 1024;

export class AudioOutput {
  #context;
  #post = null;
  #waiting = [];
  #reports = new Map();
  #onMessage;

  // Call within a click or key press, or the browser will not let it sound. `onMessage` gets what playback.mjs notifies of.
  constructor(rate, onMessage, onError) {
    this.rate = rate;
    this.#onMessage = onMessage;
    this.#context = new AudioContext({ sampleRate: rate, latencyHint: "interactive" });
    this.#connect().catch(onError);
  }

  begin(id) { this.#send({ type: "begin", id }); }
  end(id) { this.#send({ type: "end", id }); }
  drop(id) { this.#send({ type: "drop", id }); }
  push(id, samples) { this.#send({ type: "samples", id, samples }, [samples.buffer]); } // `samples` (Int16Array) is given away

  // What playback.mjs has counted up to now.
  counters() {
    return new Promise((resolve) => {
      const token = Math.random();
      this.#reports.set(token, resolve);
      this.#send({ type: "report", token });
    });
  }

  resume() { return this.#context.resume(); }
  suspend() { return this.#context.suspend(); }
  close() { return this.#context.close(); }
  get running() { return this.#context.state === "running"; }
  get latencySeconds() { return (this.#context.outputLatency || 0) + (this.#context.baseLatency || 0); }

  async #connect() {
    // Browsers give worklets to https and localhost only; on a plain address of the local network, or when the worklet's file cannot be
    // had because the link is down, playback runs beside the page.
    this.#post = (this.#context.audioWorklet && (await this.#workletPost().catch(() => null))) || this.#pagePost();
    for (const [message, transfer] of this.#waiting) this.#post(message, transfer);
    this.#waiting = [];
  }

  async #workletPost() {
    await this.#context.audioWorklet.addModule(new URL("worklet.mjs", import.meta.url));
    const node = new AudioWorkletNode(this.#context, "playback", { numberOfInputs: 0, outputChannelCount: [1] });
    node.port.onmessage = ({ data }) => this.#receive(data);
    node.connect(this.#context.destination);
    return (message, transfer) => node.port.postMessage(message, transfer);
  }

  #pagePost() {
    const playback = new Playback(this.rate, (message) => this.#receive(message));
    const node = this.#context.createScriptProcessor(fallbackFrames, 0, 1);
    node.onaudioprocess = ({ outputBuffer }) => playback.render(outputBuffer.getChannelData(0));
    node.connect(this.#context.destination);
    this.fallback = node; // unreferenced script processors fall silent in some browsers
    return (message) => playback.handle(message);
  }

  #send(message, transfer = []) {
    if (this.#post) this.#post(message, transfer);
    else this.#waiting.push([message, transfer]);
  }

  #receive(message) {
    if (message.type === "report") {
      this.#reports.get(message.token)?.(message.counters);
      this.#reports.delete(message.token);
    } else {
      this.#onMessage(message);
    }
  }
}
