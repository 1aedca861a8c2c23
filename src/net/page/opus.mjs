// Opus packets to samples with the browser's own decoder (WebCodecs).

export const opusRate = 48000; // what Opus decoders put out
const packetSeconds = 0.02;

const config = { codec: "opus", sampleRate: opusRate, numberOfChannels: 1 };

export async function opusIsSupported() {
  if (!("AudioDecoder" in globalThis)) return false;
  try {
    return (await AudioDecoder.isConfigSupported(config)).supported === true;
  } catch {
    return false;
  }
}

export function toInt16(samples) {
  const out = new Int16Array(samples.length);
  for (let i = 0; i < samples.length; ++i) out[i] = Math.max(-32768, Math.min(32767, Math.round(samples[i] * 32768)));
  return out;
}

// Calls `onSamples(Int16Array)` in order. The first `preSkip` samples are not sound and are left out; packets that were lost become
// silence of their length.
export class OpusDecoder {
  #decoder;
  #skip;
  #packets = 0; // given to the decoder or lost
  #holes = []; // {at: sample before which the silence belongs, length}
  #decoded = 0;
  #onSamples;
  #plane = new Float32Array(0);

  constructor(preSkip, onSamples, onError) {
    this.#skip = preSkip;
    this.#onSamples = onSamples;
    this.#decoder = new AudioDecoder({ output: (data) => this.#receive(data, onError), error: onError });
    this.#decoder.configure(config);
  }

  get packetFrames() { return Math.round(packetSeconds * opusRate); }
  get packets() { return this.#packets; }

  push(packet) {
    if (this.#decoder.state !== "configured") return; // it has failed, and said so
    const timestamp = Math.round(this.#packets * packetSeconds * 1e6);
    this.#decoder.decode(new EncodedAudioChunk({ type: "key", timestamp, data: packet }));
    ++this.#packets;
  }

  lose(packets) {
    this.#holes.push({ at: this.#packets * this.packetFrames, length: packets * this.packetFrames });
    this.#packets += packets;
  }

  // Resolves when every packet has come out.
  async finish() {
    if (this.#decoder.state !== "configured") return;
    await this.#decoder.flush();
    this.#fillHoles();
    this.close();
  }

  close() {
    if (this.#decoder.state !== "closed") this.#decoder.close();
  }

  #receive(data, onError) {
    if (data.sampleRate !== opusRate) {
      onError(new Error(`the decoder puts out ${data.sampleRate} Hz`));
      data.close();
      return;
    }
    this.#fillHoles();
    if (this.#plane.length < data.numberOfFrames) this.#plane = new Float32Array(data.numberOfFrames);
    const plane = this.#plane.subarray(0, data.numberOfFrames);
    data.copyTo(plane, { planeIndex: 0, format: "f32-planar" });
    data.close();
    this.#emit(toInt16(plane));
  }

  #fillHoles() {
    while (this.#holes.length > 0 && this.#holes[0].at <= this.#decoded) this.#emit(new Int16Array(this.#holes.shift().length));
  }

  #emit(samples) {
    this.#decoded += samples.length;
    const skipped = Math.min(this.#skip, samples.length);
    this.#skip -= skipped;
    if (skipped < samples.length) this.#onSamples(skipped > 0 ? samples.slice(skipped) : samples);
  }
}
