// One session of the streaming protocol (subprotocol tts.v1): contexts on a socket, and what keeps them going when the socket breaks.
// A context is what the client wrote; the session knows how much of it the server has, so that after a break nothing is lost or said twice.

const subprotocol = "tts.v1";
const openTimeoutMs = 6000;
const retryDelaysMs = [0, 1000, 3000]; // at once, then after 1 to 3 s, then no more
const jitter = 0.2;
const pausesMs = new Map([[1012, 1000], [1013, 3000]]); // the server asked for a moment
const hopelessCodes = new Set([1002, 1003, 1007, 1009, 4000, 4001]);
const pointsPerMessage = 4096; // keeps messages below any server's limit on their bytes
const headBytes = 16;

// `url` of the socket. `on`: state(state, detail), message(name, message), frame(name, {first, last, payload}), and ready(message).
// States: "closed" (no link and none wanted), "opening", "open", "reconnecting" (with {tries, inMs}), "lost" (it gave up).
export class StreamSession {
  limits = {};
  counters = { breaks: 0, resumes: 0, frames: 0, bytes: 0, repeated: 0 };
  #url;
  #on;
  #socket = null;
  #state = "closed";
  #identity = null; // {session, token} that a new socket can go on with
  #fresh = null; // the identity that comes with a new socket, for when the old one is gone
  #resuming = false;
  #seq = 0;
  #acknowledged = 0;
  #contexts = new Map();
  #names = new Map(); // id of a context in frames → its name
  #tries = 0;
  #timer = 0;
  #openTimer = 0;
  #givenUp = [];

  constructor(url, on) {
    this.#url = url;
    this.#on = on;
  }

  get state() { return this.#state; }
  get busy() { return this.#contexts.size > 0; }

  // Opens the link now; contexts open it by themselves.
  open() {
    if (this.#state === "opening" || this.#state === "open") return;
    this.#tries = 0;
    this.#connect();
  }

  close() {
    clearTimeout(this.#timer);
    this.#contexts.clear();
    this.#forget();
    this.#discard(1000);
    this.#become("closed");
  }

  // Gives up the present socket though it looks open. Closing it would end the session: the next one takes it over.
  relink() {
    const socket = this.#socket;
    if (!socket) return;
    clearTimeout(this.#openTimer);
    socket.onopen = socket.onmessage = socket.onclose = null;
    this.#socket = null;
    this.#givenUp.push(socket);
    this.#broken(0);
  }

  start(name, settings) {
    this.#contexts.set(name, { name, settings, points: [], sent: 0, startSent: false, started: false, ended: false, endSent: false, cancel: null, cancelSent: false, update: null, updateSent: false });
    if (this.#state === "closed" || this.#state === "lost") this.open();
    this.#pump(name);
  }

  write(name, text) {
    const context = this.#contexts.get(name);
    if (!context) return;
    for (const point of text) context.points.push(point);
    this.#pump(name);
  }

  end(name) { this.#change(name, (context) => { context.ended = true; }); }

  // `heard`: samples that the listener has heard.
  cancel(name, heard) {
    const context = this.#contexts.get(name);
    if (!context) return;
    if (!context.startSent || this.#state === "lost") {
      this.#over(name);
      if (this.#state === "lost" && this.#contexts.size === 0) this.#forget();
      this.#on.message(name, { type: "cancelled", context: name, characters: 0, samples: 0 });
      return;
    }
    this.#change(name, () => { context.cancel = { samples: heard }; });
  }

  // For sentences that have not been begun.
  update(name, changes) {
    this.#change(name, (context) => {
      context.update = { ...context.update, ...changes };
      context.updateSent = false;
    });
  }

  // Tells the server that what came is safe, and how long it lasts.
  acknowledge(name, bufferedMs) {
    if (this.#state !== "open" || this.#seq === 0) return;
    const named = this.#contexts.has(name);
    if (this.#seq === this.#acknowledged && !named) return;
    this.#send(named ? { type: "ack", seq: this.#seq, context: name, buffered_ms: Math.round(bufferedMs) } : { type: "ack", seq: this.#seq });
    this.#acknowledged = this.#seq;
  }

  #change(name, apply) {
    const context = this.#contexts.get(name);
    if (!context) return;
    apply(context);
    this.#pump(name);
  }

  // Sends what the server does not have yet of a context.
  #pump(name) {
    const context = this.#contexts.get(name);
    if (!context || this.#state !== "open") return;
    if (!context.startSent) {
      context.startSent = true;
      this.#send({ type: "start", context: name, ...context.settings });
    }
    while (context.sent < context.points.length) {
      const points = context.points.slice(context.sent, context.sent + pointsPerMessage);
      context.sent += points.length;
      this.#send({ type: "text", context: name, text: points.join("") });
    }
    if (context.update && !context.updateSent) {
      context.updateSent = true;
      this.#send({ type: "update", context: name, ...context.update });
    }
    if (context.ended && !context.endSent) {
      context.endSent = true;
      this.#send({ type: "end", context: name });
    }
    if (context.cancel && !context.cancelSent) {
      context.cancelSent = true;
      this.#send({ type: "cancel", context: name, ...context.cancel });
    }
  }

  #send(message) {
    this.#socket.send(JSON.stringify(message));
  }

  #connect() {
    clearTimeout(this.#timer);
    this.#discard();
    ++this.#tries;
    this.#become(this.#identity ? "reconnecting" : "opening", { tries: this.#tries, inMs: 0 });
    const socket = new WebSocket(this.#url, subprotocol);
    socket.binaryType = "arraybuffer";
    this.#socket = socket;
    this.#resuming = this.#identity !== null;
    socket.onopen = () => {
      if (this.#resuming) this.#send({ type: "resume", session: this.#identity.session, token: this.#identity.token, seq: this.#seq });
    };
    socket.onmessage = ({ data }) => {
      if (socket !== this.#socket) return;
      if (typeof data === "string") this.#receive(JSON.parse(data));
      else this.#receiveFrame(data);
    };
    socket.onclose = ({ code }) => {
      if (socket !== this.#socket) return;
      this.#discard();
      this.#broken(code);
    };
    this.#openTimer = setTimeout(() => this.relink(), openTimeoutMs);
  }

  #discard(code) {
    clearTimeout(this.#openTimer);
    const socket = this.#socket;
    this.#socket = null;
    if (!socket) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close(code);
  }

  #broken(code) {
    if (this.#state === "open") ++this.counters.breaks;
    if (hopelessCodes.has(code)) {
      for (const name of [...this.#contexts.keys()]) this.#fail(name, "link_refused", String(code));
      this.#forget();
      this.#become("lost", { code });
      return;
    }
    if (this.#contexts.size === 0) {
      this.#forget();
      this.#become(this.#state === "open" ? "closed" : "lost", { code });
      return;
    }
    if (this.#tries >= retryDelaysMs.length) {
      this.#become("lost", { code });
      return;
    }
    const chance = 1 - jitter + 2 * jitter * Math.random();
    const inMs = Math.max(pausesMs.get(code) ?? 0, retryDelaysMs[this.#tries]) * chance;
    this.#become("reconnecting", { tries: this.#tries, inMs });
    this.#timer = setTimeout(() => this.#connect(), inMs);
  }

  #opened() {
    clearTimeout(this.#openTimer);
    for (const socket of this.#givenUp.splice(0)) socket.close();
    this.#tries = 0;
    this.#become("open");
    for (const name of [...this.#contexts.keys()]) this.#pump(name);
  }

  #receive(message) {
    switch (message.type) {
      case "ready":
        this.limits = message.limits ?? {};
        this.#on.ready(message);
        this.#fresh = { session: message.session, token: message.resume_token };
        if (!this.#resuming) this.#adopt();
        return;
      case "resumed":
      case "resume_gap":
        this.#resumed(message);
        return;
      case "resume_unknown":
      case "resume_expired":
        for (const context of [...this.#contexts.values()]) if (context.startSent) this.#fail(context.name, "session_lost", message.type);
        this.#adopt();
        return;
      case "draining":
        this.#on.message(null, message);
        return;
    }
    const name = message.context;
    const context = this.#contexts.get(name);
    if (message.type === "error" && (message.context === undefined || message.ended === false)) {
      this.#on.message(context ? name : null, message);
      return;
    }
    if (!context) return; // over for us, or told twice after a break
    if (message.type === "started") {
      context.started = true;
      this.#names.set(message.id, name);
    }
    if (["done", "cancelled", "error"].includes(message.type)) this.#over(name);
    this.#on.message(name, message);
  }

  // The new socket's own session becomes ours.
  #adopt() {
    this.#identity = this.#fresh;
    this.#resuming = false;
    this.#seq = this.#acknowledged = 0;
    this.#names.clear();
    this.#opened();
  }

  #resumed(message) {
    ++this.counters.resumes;
    this.#resuming = false;
    if (message.type === "resume_gap") this.#seq = message.from - 1; // the frames' first samples tell how much is missing
    const arrived = new Map((message.contexts ?? []).map((each) => [each.context, each]));
    for (const context of this.#contexts.values()) {
      const known = arrived.get(context.name);
      if (known) {
        context.sent = Math.min(known.characters, context.points.length);
        context.endSent = known.ended;
        context.cancelSent = context.updateSent = false;
      } else if (!context.started) {
        context.startSent = context.endSent = context.cancelSent = context.updateSent = false;
        context.sent = 0;
      }
    }
    this.#opened();
  }

  #receiveFrame(buffer) {
    const head = new DataView(buffer);
    if (buffer.byteLength < headBytes || head.getUint8(0) !== 1) return;
    const seq = head.getUint32(4, true);
    if (seq <= this.#seq) {
      ++this.counters.repeated;
      return;
    }
    if (seq !== this.#seq + 1) { // a server that leaves frames out without saying so
      this.#discard(1000);
      this.#broken(1002);
      return;
    }
    this.#seq = seq;
    ++this.counters.frames;
    this.counters.bytes += buffer.byteLength;
    const name = this.#names.get(head.getUint16(2, true));
    if (!this.#contexts.has(name)) return;
    this.#on.frame(name, { last: (head.getUint8(1) & 1) !== 0, first: Number(head.getBigUint64(8, true)), payload: buffer.slice(headBytes) });
  }

  #fail(name, code, message) {
    this.#over(name);
    this.#on.message(name, { type: "error", context: name, code, message });
  }

  #over(name) {
    this.#contexts.delete(name);
  }

  #forget() {
    this.#identity = this.#fresh = null;
    this.#resuming = false;
    this.#names.clear();
  }

  #become(state, detail = {}) {
    this.#state = state;
    this.#on.state(state, detail);
  }
}
