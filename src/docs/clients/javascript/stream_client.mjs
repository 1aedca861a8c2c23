#!/usr/bin/env node
// Speaks text over the WebSocket of chattts-server, while the text is still being written. See HELP; websocket.md describes the protocol.

import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import WebSocket from 'ws';

const HELP = `usage: node stream_client.mjs [TEXT] -o FILE [options]        (once before: npm install)

Speaks TEXT, or without it standard input as it comes, and writes a WAV file:

    node stream_client.mjs "Nice to meet you. 今天天气很好。" -o hello.wav
    my_language_model | node stream_client.mjs -o answer.wav

  -o, --output FILE          where the audio goes
      --url URL              of the server (default: ws://127.0.0.1:8080/v1/stream)
      --voice ID             of GET /v1/voices
      --seed N               the same seed gives the same audio
      --words-per-second N   send the text word by word, as a language model writes it
      --cancel-after SECONDS interrupt so long after the first sound
      --break-after FRAMES   cut the link once after so many frames, to see it mended
      --help`;

const CONTEXT = 'speech';  // this client has one utterance, so one context
const HEADER_BYTES = 16;
const COME_BACK = [1006, 1011, 1012, 1013, 4008];  // close codes after which the session can be resumed; 1006: no close frame came
const WAIT_FIRST = [1012, 1013];
const MOST_TEXT = 4000;  // code points in a message

class GaveUp extends Error {}
class BrokenLink extends Error {
  constructor(why, wait = 0) {
    super(why);
    this.wait = wait;  // seconds that the server asked for
  }
}

class Client {
  constructor(options) {
    this.options = options;
    this.text = [];  // code points, for so the server counts
    this.textComplete = false;
    this.sent = 0;
    this.sentEnd = false;
    this.session = this.token = null;
    this.lastSeq = 0;
    this.attempts = 0;  // to mend the link, since the last frame
    this.started = false;
    this.finished = null;
    this.framesUntilBreak = options.breakAfter;
    this.pieces = [];  // of samples, 16 bit
    this.samples = 0;
    this.rate = 24000;
    this.firstTextAt = this.firstAudioAt = null;
    this.playedUntil = 0;
    this.gaps = 0;
    this.wake = () => {};  // the writer has written, or a socket has opened
  }

  // ---------------------------------------------------------------- text

  write(piece) {
    this.firstTextAt ??= performance.now() / 1000;
    for (const character of piece) if (character !== '\0') this.text.push(character);
    this.wake();
  }

  async writeAll() {
    const { text, wordsPerSecond } = this.options;
    const pieces = text === undefined ? process.stdin.setEncoding('utf8') : [text];
    for await (const piece of pieces) {
      if (!wordsPerSecond) {
        this.write(piece);
        continue;
      }
      // Chinese has no spaces: a few characters are a word.
      for (const word of piece.match(/[\u3000-\u9fff\uff00-\uffef]{1,2}|[^\s\u3000-\u9fff\uff00-\uffef]+\s*|\s+/gu) ?? []) {
        this.write(word);
        await sleep(1000 / wordsPerSecond);
      }
    }
    this.textComplete = true;
    this.wake();
  }

  // ---------------------------------------------------------------- sending

  send(socket, message) {
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
  }

  sendStart(socket) {
    const { voice, seed } = this.options;
    this.send(socket, { type: 'start', context: CONTEXT, format: 'pcm_s16le', voice, seed });
  }

  // From now on what is written goes to this socket.
  sendText(socket) {
    this.wake = () => {
      while (this.sent < this.text.length) {
        const piece = this.text.slice(this.sent, this.sent + MOST_TEXT);
        this.sent += piece.length;
        this.send(socket, { type: 'text', context: CONTEXT, text: piece.join('') });
      }
      if (this.textComplete && !this.sentEnd) {
        this.sentEnd = true;
        this.send(socket, { type: 'end', context: CONTEXT });
      }
    };
    this.wake();
  }

  buffered() {
    return Math.max(0, this.playedUntil - performance.now() / 1000);
  }

  acknowledge(socket) {
    this.send(socket, { type: 'ack', seq: this.lastSeq, context: CONTEXT, buffered_ms: Math.floor(this.buffered() * 1000) });
  }

  cancelWhenDue(socket) {
    if (this.options.cancelAfter === undefined || this.firstAudioAt === null || this.cancelled === socket) return;
    if (performance.now() / 1000 < this.firstAudioAt + this.options.cancelAfter) return;
    this.cancelled = socket;
    const heard = Math.max(0, this.samples - Math.floor(this.buffered() * this.rate));
    this.send(socket, { type: 'cancel', context: CONTEXT, samples: heard });
  }

  // ---------------------------------------------------------------- receiving

  takeFrame(socket, frame) {
    const version = frame.readUInt8(0), seq = frame.readUInt32LE(4), firstSample = Number(frame.readBigUInt64LE(8));
    if (version !== 1) throw new GaveUp(`frames of version ${version} are not known here`);
    if (seq !== this.lastSeq + 1) throw new GaveUp(`frame ${seq} came after ${this.lastSeq}`);
    this.lastSeq = seq;
    this.attempts = 0;
    this.addSound(firstSample, frame.subarray(HEADER_BYTES));
    if (this.framesUntilBreak !== undefined && --this.framesUntilBreak <= 0) {
      this.framesUntilBreak = undefined;
      console.error('the link is cut, as --break-after asks for');
      socket.terminate();
    }
  }

  // Each sample once, at its place: a gap that nothing can fill is silence.
  addSound(firstSample, payload) {
    const missing = firstSample - this.samples;
    if (missing > 0) payload = Buffer.concat([Buffer.alloc(2 * missing), payload]);
    if (missing < 0) payload = payload.subarray(-2 * missing);
    if (payload.length === 0) return;
    this.pieces.push(payload);
    this.samples += payload.length / 2;
    const now = performance.now() / 1000;
    if (this.firstAudioAt === null) {
      this.firstAudioAt = this.playedUntil = now;
    } else if (now > this.playedUntil) {
      this.gaps += 1;
      this.playedUntil = now;
    }
    this.playedUntil += payload.length / 2 / this.rate;
  }

  takeMessage(socket, message, resuming) {
    switch (message.type) {
      case 'ready':
        if (resuming) break;
        this.session = message.session;
        this.token = message.resume_token;
        this.sendStart(socket);
        this.sendText(socket);
        break;
      case 'started':
        this.rate = message.sample_rate;
        this.started = true;
        break;
      case 'sentence':
        console.error(`  ${this.text.slice(message.begin, message.end).join('').trim()}`);
        break;
      case 'done':
      case 'cancelled':
        this.finished = message.type;
        console.error(`${message.type}: ${message.characters} characters spoken in ${message.samples} samples`);
        socket.close(1000);
        break;
      case 'error':
        if (message.retry_after_ms !== undefined && !this.started) {
          this.session = null;  // from the beginning, later
          this.sent = 0;
          this.sentEnd = false;
          throw new BrokenLink(message.message, message.retry_after_ms / 1000);
        }
        if (message.ended !== false) throw new GaveUp(`${message.code}: ${message.message}`);
        console.error(`the server says: ${message.message}`);
        break;
      case 'resumed':
      case 'resume_gap':
        console.error(`${message.type}: frame ${message.from} comes next`);
        this.lastSeq = message.from - 1;
        this.goOn(socket, message.contexts.find((context) => context.context === CONTEXT));
        break;
      case 'resume_unknown':
      case 'resume_expired':
        throw new GaveUp('the session is over');
      case 'draining':
        console.error(`the server stops within ${Math.round(message.deadline_ms / 1000)} s`);
        break;
    }
  }

  // Sends again what the link has lost.
  goOn(socket, ours) {
    if (ours) {
      this.sent = ours.characters;
      this.sentEnd = ours.ended;
    } else if (this.started) {
      return;  // only its last words are still to come
    } else {
      this.sent = 0;
      this.sentEnd = false;
      this.sendStart(socket);
    }
    this.sendText(socket);
  }

  // ---------------------------------------------------------------- the link

  // Until the context has ended. Rejects with BrokenLink or GaveUp.
  oneSocket() {
    const resuming = this.session !== null;
    const socket = new WebSocket(this.options.url, ['tts.v1'], { perMessageDeflate: false });
    const timers = [setInterval(() => this.acknowledge(socket), 1000), setInterval(() => this.cancelWhenDue(socket), 10)];
    return new Promise((resolve, reject) => {
      const fail = (error) => {
        reject(error);  // the first one counts
        socket.terminate();
      };
      socket.on('open', () => {
        if (resuming) this.send(socket, { type: 'resume', session: this.session, token: this.token, seq: this.lastSeq });
      });
      socket.on('message', (data, binary) => {
        if (socket.readyState !== WebSocket.OPEN) return;
        try {
          if (binary) this.takeFrame(socket, data);
          else this.takeMessage(socket, JSON.parse(data), resuming);
        } catch (error) {
          fail(error);
        }
      });
      socket.on('close', (code, reason) => {
        if (this.finished) return resolve();
        const why = `${reason.toString() || 'the link broke'} (${code})`;
        fail(COME_BACK.includes(code) ? new BrokenLink(why, WAIT_FIRST.includes(code) ? 1 : 0) : new GaveUp(`closed: ${why}`));
      });
      socket.on('unexpected-response', (request, response) => {
        const busy = [429, 503].includes(response.statusCode);
        const why = `the server answered ${response.statusCode}`;
        fail(busy ? new BrokenLink(why, Number(response.headers['retry-after'] ?? 1)) : new GaveUp(why));
      });
      socket.on('error', (error) => fail(new BrokenLink(error.message || error.code)));
    }).finally(() => {
      timers.forEach(clearInterval);
      this.wake = () => {};
    });
  }

  // Three steps when the link breaks: again at once; again after about two seconds; give up. What the server asks for is waited first. A
  // frame of audio counts as success: then it begins anew.
  async run() {
    const writing = this.writeAll();
    while (!this.finished) {
      try {
        await this.oneSocket();
      } catch (error) {
        if (!(error instanceof BrokenLink)) throw error;
        if (++this.attempts > 2) throw new GaveUp(`${error.message}; tried again at once and after a while`);
        const wait = error.wait + (this.attempts === 1 ? 0 : 2 * (0.8 + 0.4 * Math.random()));
        console.error(`${error.message}; trying again${wait ? ` in ${wait.toFixed(1)} s` : ''}`);
        await sleep(1000 * wait);
      }
    }
    if (this.finished === 'done') await writing;
  }

  wav() {
    const data = Buffer.concat(this.pieces), header = Buffer.alloc(44);
    header.write('RIFF', 0);
    header.writeUInt32LE(36 + data.length, 4);
    header.write('WAVEfmt ', 8);
    header.writeUInt32LE(16, 16);
    header.writeUInt16LE(1, 20);
    header.writeUInt16LE(1, 22);
    header.writeUInt32LE(this.rate, 24);
    header.writeUInt32LE(2 * this.rate, 28);
    header.writeUInt16LE(2, 32);
    header.writeUInt16LE(16, 34);
    header.write('data', 36);
    header.writeUInt32LE(data.length, 40);
    return Buffer.concat([header, data]);
  }

  report() {
    if (this.firstAudioAt === null) return console.error('no audio came');
    const first = (this.firstAudioAt - this.firstTextAt).toFixed(2), speech = (this.samples / this.rate).toFixed(2);
    console.error(`first audio ${first} s after the first word; ${speech} s of speech, ${this.gaps || 'no'} gaps`);
  }
}

function readOptions() {
  const string = { type: 'string' };
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      output: { type: 'string', short: 'o' }, help: { type: 'boolean', short: 'h' }, url: string, voice: string, seed: string,
      'words-per-second': string, 'cancel-after': string, 'break-after': string,
    },
  });
  if (values.help) {
    console.log(HELP);
    process.exit(0);
  }
  const number = (name) => {
    if (values[name] === undefined) return undefined;
    const value = Number(values[name]);
    if (!Number.isFinite(value) || value < 0) throw new TypeError(`--${name} must be a number, not '${values[name]}'`);
    return value;
  };
  if (!values.output) throw new TypeError('say where the audio goes: -o FILE');
  if (positionals.length > 1) throw new TypeError('put the text in quotes');
  return {
    text: positionals[0], output: values.output, url: values.url ?? 'ws://127.0.0.1:8080/v1/stream', voice: values.voice,
    seed: number('seed'), wordsPerSecond: number('words-per-second'), cancelAfter: number('cancel-after'),
    breakAfter: number('break-after'),
  };
}

let options;
try {
  options = readOptions();
} catch (error) {
  console.error(`${error.message}\n\n${HELP}`);
  process.exit(2);
}
const client = new Client(options);
let status = 0;
try {
  await client.run();
} catch (error) {
  if (!(error instanceof GaveUp)) throw error;
  console.error(`gave up: ${error.message}`);
  status = 1;
} finally {
  if (client.samples > 0) writeFileSync(options.output, client.wav());
  client.report();
}
process.exit(status);
