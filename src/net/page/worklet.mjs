// The audio thread's end of audio.mjs.

import { Playback } from "./playback.mjs";

class PlaybackProcessor extends AudioWorkletProcessor {
  constructor() {
    super();
    this.playback = new Playback(sampleRate, (message) => this.port.postMessage(message));
    this.port.onmessage = ({ data }) => this.playback.handle(data);
  }

  process(inputs, outputs) {
    this.playback.render(outputs[0][0]);
    return true;
  }
}

registerProcessor("playback", PlaybackProcessor);
