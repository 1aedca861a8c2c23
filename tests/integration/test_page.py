"""The page at "/" in headless Chromium, against the real server with the bundled voice.

What is heard is measured twice: by the page's audio thread, and by a tap that the test puts between it and the loudspeaker.
"""
import array
import json
import math
import shutil
import socket
import struct
import threading
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

from server_process import ServerProcess, free_port

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
TEXT = "The weather is nice today. We could walk to the river, and sit there for a while. 然后，我们一起回家吧。"
SENTENCES = 3
LONG = "The old man walked down to the harbour every morning, and every morning he looked at the same grey ships. " * 6
TWO = LONG[:211]  # its first two sentences
WAIT_MS = 40_000
expect.set_options(timeout=WAIT_MS)

# Runs before the page: hears what leaves for the loudspeaker, and keeps every status and every highlighted sentence.
SPY = """
globalThis.spy = { frames: 0, loud: 0, statuses: [], marks: [], copied: 0 };
const connect = AudioNode.prototype.connect;
AudioNode.prototype.connect = function (target, ...rest) {
  if (target instanceof AudioDestinationNode && !(this instanceof ScriptProcessorNode)) {
    const tap = this.context.createScriptProcessor(1024, 1, 1);
    tap.onaudioprocess = ({ inputBuffer }) => {
      const samples = inputBuffer.getChannelData(0);
      spy.frames += samples.length;
      for (const sample of samples) if (sample !== 0) ++spy.loud;
    };
    connect.call(this, tap);
    connect.call(tap, target);
    spy.tap = tap;
  }
  return connect.call(this, target, ...rest);
};
addEventListener("DOMContentLoaded", () => {
  const watch = (id, list, pick) => new MutationObserver(() => {
    const text = pick(document.getElementById(id));
    if (text && text !== list.at(-1)) list.push(text);
  }).observe(document.getElementById(id), { childList: true, characterData: true, subtree: true });
  watch("status", spy.statuses, (element) => element.textContent);
  watch("transcript", spy.marks, (element) => element.querySelector("mark")?.textContent);
});
"""


# Drives the page's playback without an audio thread: `steps` are messages to it, or numbers of blocks to render. Answers what was heard
# (as 16 bit values), what it told, and its counters.
PLAYBACK = """
async (steps) => {
  const { Playback } = await import("/page/playback.mjs");
  const told = [], heard = [];
  const playback = new Playback(24000, (message) => told.push(message));
  for (const step of steps) {
    if (typeof step === "object") playback.handle(step.from === undefined ? step : { ...step, samples: Int16Array.from({ length: step.count }, (_, i) => step.from + i) });
    for (let block = 0; block < step; ++block) {
      const out = new Float32Array(128).fill(0.5);
      playback.render(out);
      heard.push(...out);
    }
  }
  return { told, heard: heard.map((sample) => Math.round(sample * 32768)), counters: playback.counters };
}
"""


class CuttingProxy:
    """Passes bytes on to `target_port` and breaks connections: each entry of `cuts` breaks one WebSocket after so many
    bytes from the server; a negative one lets it stand and passes nothing on any more."""

    def __init__(self, target_port: int, cuts: list[int] | None = None):
        self.target_port, self.cuts, self.made = target_port, list(cuts or []), 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.open: set[socket.socket] = set()
        self.lock = threading.Lock()
        threading.Thread(target=self.accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.target_port))
            except OSError:
                self.reset(client)
                continue
            with self.lock:
                self.open |= {client, server}
            state = {"cut": None}
            threading.Thread(target=self.upwards, args=(client, server, state), daemon=True).start()
            threading.Thread(target=self.downwards, args=(client, server, state), daemon=True).start()

    def upwards(self, client, server, state):
        try:
            while data := client.recv(65536):
                if b"GET /v1/stream" in data[:200]:
                    with self.lock:
                        state["cut"] = self.cuts.pop(0) if self.cuts else None
                server.sendall(data)
        except OSError:
            pass
        self.leave(client, server)

    def downwards(self, client, server, state):
        passed = 0
        try:
            while data := server.recv(4096):
                passed += len(data)
                if state["cut"] is not None and state["cut"] < 0:
                    if passed > -state["cut"]:
                        self.made += passed - len(data) <= -state["cut"]
                        continue
                elif state["cut"] is not None and passed > state["cut"]:
                    self.made += 1
                    self.reset(client)
                    break
                client.sendall(data)
        except OSError:
            pass
        self.leave(client, server)

    def reset(self, client):
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.leave(client)  # closing alone would wait for the thread that reads

    def leave(self, *sockets):
        for each in sockets:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            with self.lock:
                self.open.discard(each)

    def cut_all(self):
        with self.lock:
            sockets = list(self.open)
        self.leave(*sockets)

    def close(self):
        self.listener.close()
        self.cut_all()


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = ServerProcess("--latency", "exact").__enter__()  # "auto" looks at the load, and one seed may then sound in two ways
        cls.playwright = sync_playwright().start()
        cls.browser = cls.playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.playwright.stop()
        cls.server.__exit__()

    def setUp(self):
        self.contexts, self.complaints, self.foreign = [], [], []

    def tearDown(self):
        for context in self.contexts:
            context.close()
        self.assertEqual(self.foreign, [], "requests that leave the origin")
        self.assertEqual(self.complaints, [], "what the console says")

    def open(self, url: str | None = None, text: str | None = None, wire: str | None = None, seed: int | None = None, prepare=None,
             strict=True, **options):
        url = url or self.server.url
        context = self.browser.new_context(**{"locale": "en-US", "viewport": {"width": 1100, "height": 1000}, **options})
        self.contexts.append(context)
        context.add_init_script(SPY)
        page = context.new_page()
        page.set_default_timeout(WAIT_MS)
        own = (url, url.replace("http", "ws", 1), "blob:" + url)
        page.on("request", lambda request: None if request.url.startswith(own) else self.foreign.append(request.url))
        page.on("websocket", lambda link: None if link.url.startswith(own) else self.foreign.append(link.url))
        if strict:
            page.on("console", lambda message: self.complaints.append(message.text)
                    if message.type in ("error", "warning") and "ScriptProcessorNode" not in message.text else None)  # the tap is one
            page.on("pageerror", lambda error: self.complaints.append(str(error)))
        if prepare:
            prepare(page)
        page.goto(url + "/")
        page.wait_for_function("() => document.querySelectorAll('#voice option').length > 1")
        if text is not None:
            page.fill("#text", text)
        if wire or seed is not None:
            page.click("#more summary")
            if wire:
                page.select_option("#wire", wire)
            if seed is not None:
                page.fill("#seed", str(seed))
        return page

    def state(self, page, expression):
        return page.evaluate(f"() => {expression}")

    def counters(self, page) -> dict:
        return page.evaluate("() => ttsPage.counters()")

    def wait_until_finished(self, page):
        page.wait_for_function("() => ttsPage.utterance?.over && ttsPage.utterance?.complete")
        self.assertEqual(page.text_content("#problem"), "")

    def wav(self, page) -> tuple[int, bytes]:
        """Sample rate and samples of what the download button gives."""
        with page.expect_download() as download, TemporaryDirectory() as folder:
            page.click("#download-wav")
            path = Path(folder) / "speech.wav"
            download.value.save_as(path)
            data = path.read_bytes()
        self.assertEqual((data[:4], data[8:16], data[36:40]), (b"RIFF", b"WAVEfmt ", b"data"))
        self.assertEqual(struct.unpack("<I", data[4:8])[0], len(data) - 8)
        self.assertEqual(struct.unpack("<I", data[40:44])[0], len(data) - 44)
        return struct.unpack("<I", data[24:28])[0], data[44:]

    def speak_to_the_end(self, page) -> tuple[int, bytes]:
        page.click("#speak")
        self.wait_until_finished(page)
        return self.wav(page)

    def check_heard(self, page, rate, samples):
        counters = self.counters(page)
        self.assertEqual(counters["stray"], 0)
        self.assertEqual(counters["late"], 0)
        self.assertGreater(counters["audible"], rate // 2, "half a second of sound at the very least")
        self.assertGreater(self.state(page, "spy.loud"), rate // 2, "and it went on to the loudspeaker")
        self.assertGreaterEqual(counters["emitted"], samples)
        return counters

    # --- hearing ---

    def test_pcm_is_heard_sample_by_sample(self):
        page = self.open(text=TEXT, wire="pcm_s16le", seed=7)
        rate, pcm = self.speak_to_the_end(page)
        self.assertEqual(rate, 24000)
        self.assertGreater(max(map(abs, array.array("h", pcm))), 1000)
        counters = self.check_heard(page, rate, len(pcm) // 2)
        self.assertEqual(counters["emitted"], len(pcm) // 2, "each sample once")
        self.assertRegex(page.text_content("#first-sound"), r"\d ms")
        self.assertIn("PCM", page.text_content("#received-hint"))
        self.assertTrue(any("Speaking" in each for each in self.state(page, "spy.statuses")))
        self.assertRegex(page.text_content("#status"), r"Finished: \d+\.\d s")
        page.click("#replay")
        expect(page.locator("#interrupt")).to_be_disabled()  # it is enabled by the click, and until the end
        self.assertEqual(self.state(page, "ttsPage.utterance.played"), len(pcm) // 2)
        self.assertEqual(self.counters(page)["emitted"], 2 * (len(pcm) // 2), "and once more when played again")

    def test_opus_is_decoded_and_heard(self):
        page = self.open(text=TEXT, seed=7)
        page.wait_for_function("() => ttsPage.wire === 'opus'")
        rate, pcm = self.speak_to_the_end(page)
        self.assertEqual(rate, 48000)
        self.check_heard(page, rate, len(pcm) // 2)
        self.assertIn("Opus", page.text_content("#received-hint"))
        self.assertLess(self.state(page, "ttsPage.utterance.bytes"), len(pcm) / 8, "small on the way")
        exact = self.open(text=TEXT, wire="pcm_s16le", seed=7)
        _, original = self.speak_to_the_end(exact)
        self.assertIn(len(pcm) // 2 - len(original), range(960), "48 kHz of the same length, but for what fills the last packet")
        self.assertGreater(correlation(array.array("h", pcm)[::2], array.array("h", original)), 0.9, "and the same sound at the same place")

    def test_sentences_are_marked_while_they_are_spoken(self):
        page = self.open(text=TEXT, wire="pcm_s16le")
        self.speak_to_the_end(page)
        marks = self.state(page, "spy.marks")
        self.assertEqual(len(marks), SENTENCES, marks)
        self.assertEqual("".join(marks).replace(" ", ""), TEXT.replace(" ", ""), "the whole text, in order")
        self.assertEqual(page.text_content("#transcript"), TEXT)

    def test_opus_file_of_the_same_speech(self):
        page = self.open(text=TEXT, seed=7)
        self.speak_to_the_end(page)
        with page.expect_download() as download, TemporaryDirectory() as folder:
            page.click("#download-opus")
            path = Path(folder) / "speech.opus"
            download.value.save_as(path)
            data = path.read_bytes()
        self.assertEqual(data[:4], b"OggS")
        _, _, whole = self.server.post("/synthesize", {"text": TEXT, "seed": 7, "format": "opus"})
        self.assertAlmostEqual(len(data), len(whole), delta=len(whole) * 0.02)
        expect(page.locator("#download-opus")).to_have_text("Download Opus")

    # --- playback, sample by sample ---

    def play(self, *steps):
        if not hasattr(self, "silent_page"):
            self.silent_page = self.open()
        return self.silent_page.evaluate(PLAYBACK, list(steps))

    @staticmethod
    def samples(first, count, id=1):
        return {"type": "samples", "id": id, "from": first, "count": count}

    @staticmethod
    def told(result, *kinds):
        return [{key: value for key, value in message.items() if key not in ("counters", "at") or message["type"] == "gap" and key == "at"}
                for message in result["told"] if message["type"] in kinds]

    def test_playback_waits_for_a_cushion_and_then_leaves_nothing_out(self):
        begin = {"type": "begin", "id": 1}
        result = self.play(begin, self.samples(1, 959), 3)
        self.assertEqual((set(result["heard"]), result["told"]), ({0}, []), "39.96 ms are not enough")
        result = self.play(begin, self.samples(1, 959), self.samples(960, 1), self.samples(961, 320), 10, {"type": "end", "id": 1}, 2)
        self.assertEqual(result["heard"], list(range(1, 1281)) + [0] * 256)
        self.assertEqual(self.told(result, "began", "finished"), [{"type": "began", "id": 1},
                         {"type": "finished", "id": 1, "played": 1280, "buffered": 0, "gaps": 0, "gapFrames": 0}])
        self.assertEqual(result["counters"], {"rendered": 1536, "emitted": 1280, "audible": 1280 - 98, "stray": 0, "late": 0})
        result = self.play(begin, self.samples(1, 10), {"type": "end", "id": 1}, 1)
        self.assertEqual(result["heard"], list(range(1, 11)) + [0] * 118, "what is short and complete does not wait")
        result = self.play(begin, {"type": "end", "id": 1}, 1)
        self.assertEqual([message["type"] for message in result["told"]], ["finished"], "nothing at all never began")

    def test_playback_counts_what_was_missing_in_the_middle(self):
        result = self.play({"type": "begin", "id": 1}, self.samples(1, 1000), 8 + 10, self.samples(1001, 2879), 5, self.samples(3880, 1), 2,
                           {"type": "end", "id": 1}, 30)
        # 1000 samples are 7 blocks and 104 of the eighth; the 120 ms after a gap come with the last sample.
        silence = 24 + 10 * 128 + 5 * 128
        self.assertEqual(result["heard"][:1000 + silence + 256], list(range(1, 1001)) + [0] * silence + list(range(1001, 1257)))
        gap = {"type": "gap", "id": 1, "at": 1000, "frames": silence, "played": 1000, "buffered": 2880, "gaps": 1, "gapFrames": silence}
        self.assertEqual(self.told(result, "gap"), [gap])
        self.assertEqual(self.told(result, "finished")[0]["played"], 3880)
        ended = self.play({"type": "begin", "id": 1}, self.samples(1, 1000), 18, {"type": "end", "id": 1}, 1)
        self.assertEqual(self.told(ended, "gap"), [], "silence after the last sample is none")
        self.assertEqual(self.told(ended, "finished")[0]["gaps"], 0)

    def test_playback_drops_at_once_and_hears_nobody_else(self):
        loud = {"type": "samples", "id": 1, "from": 16000, "count": 4000}
        result = self.play({"type": "begin", "id": 1}, loud, 2, {"type": "drop", "id": 1}, self.samples(5, 1000), self.samples(7, 50, id=2), 20)
        self.assertEqual(result["heard"][:256], list(range(16000, 16256)))
        fade = result["heard"][256:384]
        self.assertEqual(fade, sorted(fade, reverse=True))
        self.assertEqual((fade[0], fade[-1]), (round(16256 * 127 / 128), 0), "one block of fading")
        self.assertEqual(set(result["heard"][384:]), {0})
        self.assertEqual(self.told(result, "dropped"), [{"type": "dropped", "id": 1, "played": 256}])
        self.assertEqual(result["counters"]["late"], 1050)
        again = self.play({"type": "begin", "id": 1}, loud, 2, {"type": "drop", "id": 1}, {"type": "begin", "id": 2}, self.samples(1, 2000, id=2),
                          {"type": "drop", "id": 1}, 2)
        self.assertEqual(again["heard"][384:], list(range(129, 257)), "the next is heard from its first sample, and a second drop does not touch it")
        self.assertEqual(again["counters"]["emitted"], 256 + 256)

    # --- interrupting ---

    def test_nothing_of_an_interrupted_speech_is_heard(self):
        for wire in ("pcm_s16le", "opus"):
            with self.subTest(wire):
                page = self.open(text=LONG, wire=wire)
                page.click("#speak")
                page.wait_for_function("() => ttsPage.utterance?.playedSeconds > 0.5 && ttsPage.utterance.bufferedMs > 2000")
                page.keyboard.press("Escape")
                dropped = self.counters(page)  # asked for behind the drop, so counted after it
                page.wait_for_function("() => ttsPage.utterance.stoppedMs !== null")
                # The tap hears two of its blocks later; from then on two seconds of it must be silence.
                page.wait_for_function("(then) => spy.frames > then + 4096", arg=self.state(page, "spy.frames"))
                loud, then = self.state(page, "[spy.loud, spy.frames]")
                page.wait_for_function("(then) => spy.frames > then + 96000", arg=then)
                self.assertEqual(self.state(page, "spy.loud"), loud, "samples left after the interruption")
                counters = self.counters(page)
                self.assertEqual(counters["emitted"], dropped["emitted"])
                self.assertEqual(counters["stray"], 0)
                self.assertGreater(counters["rendered"], dropped["rendered"] + 48000, "and the audio thread was running")
                self.assertRegex(page.text_content("#status"), r"Interrupted: \d+ of \d+ characters had been spoken. The server stopped after \d+ ms.")
                self.assertRegex(page.text_content("#stopped"), r"^\d+ ms$")
                page.fill("#text", "One more.")
                page.click("#speak")
                self.wait_until_finished(page)
                self.assertGreater(self.counters(page)["emitted"], counters["emitted"], "the next one is heard")
                self.assertEqual(self.counters(page)["stray"], 0)

    def test_speaking_again_replaces_what_is_being_spoken(self):
        page = self.open(text=LONG, wire="pcm_s16le")
        page.click("#speak")
        page.wait_for_function("() => ttsPage.utterance?.playedSeconds > 0.2")
        page.fill("#text", "Stop there.")
        page.keyboard.press("Control+Enter")
        self.wait_until_finished(page)
        self.assertEqual(page.text_content("#transcript"), "Stop there.")
        self.assertFalse(self.state(page, "ttsPage.session.busy"), "no context is left")

    # --- like a language model ---

    def test_sound_comes_before_the_last_word_was_sent(self):
        page = self.open(text=TEXT + " " + LONG[:200], wire="pcm_s16le")
        page.check("#live")
        page.locator("#pace").fill("5")
        sent = []
        page.on("websocket", lambda link: link.on("framesent", lambda data: sent.append(json.loads(data))))
        page.reload()
        page.wait_for_function("() => document.querySelectorAll('#voice option').length > 1")
        expect(page.locator("#live")).to_be_checked()
        page.fill("#text", TEXT + " " + LONG[:200])
        page.click("#speak")
        page.wait_for_function("() => ttsPage.utterance?.firstSoundMs !== null && ttsPage.utterance !== null")
        at_first_sound = self.state(page, "ttsPage.utterance.typedAtFirstSound")
        self.assertIsNotNone(at_first_sound, "all of the text was gone before the first sound")
        self.assertLess(at_first_sound["typed"], at_first_sound["total"] / 2)
        self.assertIn("pieces of text", page.text_content("#first-sound-hint"))
        self.wait_until_finished(page)
        pieces = [message["text"] for message in sent if message["type"] == "text"]
        self.assertEqual("".join(pieces), TEXT + " " + LONG[:200])
        self.assertGreater(len(pieces), 10)
        self.assertEqual([message["type"] for message in sent if message["type"] != "ack"][-1], "end")

    def test_a_piece_is_a_word_or_a_chinese_character(self):
        page = self.open()
        pieces = page.evaluate("async () => (await import('/page/text.mjs')).pieces('  Hi there,\\nyou. 我们 walk，好吗？ok')")
        self.assertEqual(pieces, ["  ", "Hi ", "there,\n", "you. ", "我", "们", " ", "walk，", "好", "吗", "？ok"])

    # --- the link ---

    def test_a_dropped_link_is_not_heard(self):
        page = self.open(text=TWO, wire="pcm_s16le", seed=11)
        undisturbed = self.speak_to_the_end(page)
        for cuts in ([60_000], [2_000], [30_000, 90_000, 400], [-30_000], [-600]):
            with self.subTest(cuts=cuts):
                proxy = CuttingProxy(self.server.port, cuts)
                self.addCleanup(proxy.close)
                page = self.open(proxy.url, text=TWO, wire="pcm_s16le", seed=11, strict=False)
                disturbed = self.speak_to_the_end(page)
                self.assertEqual(proxy.made, len(cuts), "each cut was made")
                self.assertTrue(disturbed == undisturbed, "bit for bit")  # assertEqual would explain for hours
                self.check_heard(page, 24000, len(disturbed[1]) // 2)
                link = self.state(page, "ttsPage.session.counters")
                self.assertGreaterEqual(link["resumes"], 1)
                self.assertTrue(any("Reconnecting" in each for each in self.state(page, "spy.statuses")), "it says so")
                self.assertTrue(any("Nothing was lost" in each for each in self.state(page, "spy.statuses")))

    def test_words_written_while_the_link_is_down_are_spoken(self):
        text = "One morning the wind had turned. Nobody had seen it coming. The boats lay still, and the gulls were silent."
        page = self.open(text=text, wire="pcm_s16le", seed=5)
        page.check("#live")
        page.locator("#pace").fill("20")
        undisturbed = self.speak_to_the_end(page)
        for cuts in ([700], [1_500, 20_000]):
            with self.subTest(cuts=cuts):
                proxy = CuttingProxy(self.server.port, cuts)
                self.addCleanup(proxy.close)
                page = self.open(proxy.url, text=text, wire="pcm_s16le", seed=5, strict=False)
                page.check("#live")
                page.locator("#pace").fill("20")
                self.assertTrue(self.speak_to_the_end(page) == undisturbed, "bit for bit")
                self.assertEqual(proxy.made, len(cuts))

    def test_a_server_that_is_gone_is_said_and_found_again(self):
        port = free_port()
        with ServerProcess() as other:
            proxy = CuttingProxy(other.port)
            page = self.open(proxy.url, text=TEXT, strict=False)
            expect(page.locator("#link-text")).to_have_text("Connected")
            proxy.target_port = port  # nobody listens there
            proxy.cut_all()
            page.click("#speak")
            expect(page.locator("#problem")).to_contain_text("cannot be reached", timeout=WAIT_MS)
            expect(page.locator("#link-text")).to_have_text("Disconnected")
            proxy.target_port = other.port
            page.click("#reconnect")
            page.wait_for_function("() => ttsPage.utterance?.over && ttsPage.utterance?.complete")
            self.assertEqual(page.text_content("#problem"), "")
            proxy.close()

    # --- what a server may answer, told by a stand-in ---

    def stand_in(self, page, answer):
        """Speaks the protocol on the page's socket. `answer(message, attempt, send)` sees every message but acknowledgements."""
        def handle(link):
            self.links += 1
            attempt = self.links
            send = lambda message: link.send(message if isinstance(message, bytes) else json.dumps(message))
            link.on_message(lambda data: (lambda message: message["type"] != "ack" and answer(message, attempt, send))(json.loads(data)))
            send({"type": "ready", "session": f"s{attempt}", "resume_token": "t", "epoch": 1, "server": "stand-in",
                  "limits": {"max_text_characters": 100, "max_contexts": 4, "max_message_bytes": 65536}})
        self.links = 0
        page.route_web_socket("**/v1/stream", handle)

    @staticmethod
    def frame(seq, first, samples, last=False, context=1):
        return struct.pack("<BBHIQ", 1, int(last), context, seq, first) + array.array("h", samples).tobytes()

    @staticmethod
    def tone(first, count):
        return [round(8000 * math.sin(2 * math.pi * 220 * (first + i) / 24000)) for i in range(count)]

    def speak_a_tone(self, message, send, samples=24000):
        if message["type"] == "start":
            send({"type": "started", "context": message["context"], "id": 1, "voice": "xiaobei", "format": "pcm_s16le", "sample_rate": 24000, "seed": 1})
        elif message["type"] == "end":
            send({"type": "sentence", "context": message["context"], "index": 0, "begin": 0, "end": 5, "first_sample": 0})
            send(self.frame(1, 0, self.tone(0, samples)))
            send(self.frame(2, samples, [], last=True))
            send({"type": "done", "context": message["context"], "characters": 5, "samples": samples})

    def test_a_busy_server_is_asked_again(self):
        starts = []

        def answer(message, _, send):
            if message["type"] == "start":
                starts.append(message["context"])
            if message["type"] == "start" and len(starts) < 3:
                send({"type": "error", "code": "queue_full", "message": "too many", "context": message["context"], "retry_after_ms": 300})
            elif message["context"] == starts[-1] and len(starts) == 3:
                self.speak_a_tone(message, send)

        page = self.open(text="Hello", wire="pcm_s16le", prepare=lambda page: self.stand_in(page, answer))
        rate, pcm = self.speak_to_the_end(page)
        self.assertEqual(len(set(starts)), 3)
        self.assertEqual(array.array("h", pcm).tolist(), self.tone(0, 24000))
        self.assertIn("The server is busy. Next try in 0.3 s.", self.state(page, "spy.statuses"))

    def test_a_busy_server_is_not_asked_for_ever_nor_after_an_interruption(self):
        starts = []

        def answer(message, _, send):
            if message["type"] == "start":
                starts.append(message["context"])
                send({"type": "error", "code": "queue_full", "message": "too many", "context": message["context"],
                      "retry_after_ms": 20 if len(starts) < 7 else 500})

        page = self.open(text="Hello", wire="pcm_s16le", prepare=lambda page: self.stand_in(page, answer))
        page.click("#speak")
        expect(page.locator("#problem")).to_contain_text("busy and stayed so")
        self.assertEqual(len(starts), 6, "the first and five more")
        expect(page.locator("#interrupt")).to_be_disabled()
        page.click("#speak")
        expect(page.locator("#status")).to_contain_text("Next try in 0.5 s")
        page.keyboard.press("Escape")
        expect(page.locator("#status")).to_have_text("Interrupted.")
        page.wait_for_timeout(1000)  # twice the time after which it would have asked
        self.assertEqual(len(starts), 7)

    def test_what_a_server_refuses_is_said(self):
        for code, words in {"nothing_to_say": "nothing in this text", "unavailable": "cannot speak at the moment", "engine_failure": "reports: because"}.items():
            with self.subTest(code):
                def answer(message, _, send):
                    if message["type"] == "start":
                        send({"type": "error", "code": code, "message": "because", "context": message["context"]})
                page = self.open(text="Hello", prepare=lambda page: self.stand_in(page, answer))
                page.click("#speak")
                expect(page.locator("#problem")).to_contain_text(words)
                expect(page.locator("#interrupt")).to_be_disabled()
                expect(page.locator("#first-sound")).to_have_text("–")

    def test_an_expired_session_keeps_what_was_heard(self):
        def handle(link):
            self.links += 1
            send = lambda message: link.send(message if isinstance(message, bytes) else json.dumps(message))
            send({"type": "ready", "session": f"s{self.links}", "resume_token": "t", "epoch": 1, "server": "stand-in", "limits": {}})
            second = self.links > 1

            def on_message(data):
                message = json.loads(data)
                if message["type"] == "resume":
                    self.resumes.append(message)
                    send({"type": "resume_expired"})
                elif message["type"] == "end" and not second:
                    send(self.frame(1, 0, self.tone(0, 24000)))
                    link.close(code=1011, reason="")
                elif message["type"] == "start":
                    self.speak_a_tone(message, send)
            link.on_message(on_message)

        self.links, self.resumes = 0, []
        page = self.open(text="Hello", wire="pcm_s16le", prepare=lambda page: page.route_web_socket("**/v1/stream", handle))
        page.click("#speak")
        expect(page.locator("#problem")).to_contain_text("let go of this speech")
        page.wait_for_function("() => ttsPage.utterance.over")
        self.assertEqual([(each["session"], each["token"], each["seq"]) for each in self.resumes], [("s1", "t", 1)])
        self.assertEqual(array.array("h", self.wav(page)[1]).tolist(), self.tone(0, 24000))

    def test_frames_that_come_twice_and_frames_that_are_gone(self):
        def handle(link):
            self.links += 1
            send = lambda message: link.send(message if isinstance(message, bytes) else json.dumps(message))
            send({"type": "ready", "session": f"s{self.links}", "resume_token": "t", "epoch": 1, "server": "stand-in", "limits": {}})

            def on_message(data):
                message = json.loads(data)
                if message["type"] == "start":
                    self.name = message["context"]
                    self.speak_a_tone(message, send)
                elif message["type"] == "end":
                    send(self.frame(1, 0, self.tone(0, 12000)))
                    link.close(code=1011, reason="")
                elif message["type"] == "resume" and self.links == 2:
                    send({"type": "resumed", "session": "s1", "epoch": 2, "from": 2, "contexts": [{"context": self.name, "characters": 5, "ended": True}]})
                    send(self.frame(1, 0, self.tone(0, 12000)))
                    send(self.frame(2, 12000, self.tone(12000, 6000)))
                    link.close(code=1011, reason="")
                elif message["type"] == "resume":
                    send({"type": "resume_gap", "session": "s1", "epoch": 3, "from": 4, "context": self.name, "first_sample": 20400,
                          "contexts": [{"context": self.name, "characters": 5, "ended": True}]})
                    send(self.frame(4, 20400, self.tone(20400, 3600)))
                    send(self.frame(5, 24000, [], last=True))
                    send({"type": "done", "context": self.name, "characters": 5, "samples": 24000})
            link.on_message(on_message)

        self.links = 0
        page = self.open(text="Hello", wire="pcm_s16le", prepare=lambda page: page.route_web_socket("**/v1/stream", handle))
        _, pcm = self.speak_to_the_end(page)
        expected = self.tone(0, 18000) + [0] * 2400 + self.tone(20400, 3600)
        self.assertEqual(array.array("h", pcm).tolist(), expected)
        self.assertIn("Reconnected, but 100 ms of sound were lost.", self.state(page, "spy.statuses"))
        self.assertEqual(self.state(page, "ttsPage.session.counters.repeated"), 1)

    def test_silence_in_the_middle_is_counted_as_a_gap(self):
        def answer(message, _, send):
            self.speak_a_tone(message, send) if message["type"] == "start" else None
            if message["type"] == "end":
                self.context, self.send = message["context"], send
                send(self.frame(1, 0, self.tone(0, 12000)))

        page = self.open(text="Hello", wire="pcm_s16le", prepare=lambda page: self.stand_in(page, answer))
        page.click("#speak")
        page.wait_for_function("() => ttsPage.utterance?.played === 12000")
        page.wait_for_function("(then) => spy.frames > then + 16000", arg=self.state(page, "spy.frames"))
        self.send(self.frame(2, 12000, self.tone(12000, 12000)))
        self.send({"type": "done", "context": self.context, "characters": 5, "samples": 24000})
        self.wait_until_finished(page)
        gaps = self.state(page, "ttsPage.utterance.gaps")
        self.assertEqual([gap["at"] for gap in gaps], [12000])
        self.assertGreater(gaps[0]["frames"], 12000)
        self.assertRegex(page.text_content("#gaps"), r"^1: [\d,]+ ms$")
        self.assertEqual(self.counters(page)["emitted"], 24000, "silence is not counted as speech")

    # --- texts that cannot be spoken ---

    def test_empty_long_and_wrong_input_is_told_before_anything_is_sent(self):
        page = self.open(text="  \n", prepare=lambda page: self.stand_in(page, lambda *_: self.fail("nothing should be sent")))
        page.click("#speak")
        expect(page.locator("#problem")).to_contain_text("no text")
        expect(page.locator("#text")).to_be_focused()
        self.assertEqual(page.get_attribute("#text", "aria-invalid"), "true")
        page.fill("#text", "好" * 101)
        expect(page.locator("#problem")).to_have_text("")
        expect(page.locator("#count")).to_have_text("101 of 100 characters")
        page.click("#speak")
        expect(page.locator("#problem")).to_contain_text("takes 100 at once")
        page.fill("#text", "Hello")
        page.click("#more summary")
        page.fill("#seed", "seven")
        page.click("#speak")
        expect(page.locator("#problem")).to_contain_text("whole number")
        expect(page.locator("#seed")).to_be_focused()

    # --- people ---

    def test_the_keyboard_is_enough(self):
        page = self.open(text=LONG, wire="pcm_s16le")
        page.focus("#text")
        page.keyboard.press("Control+Enter")
        page.wait_for_function("() => ttsPage.utterance?.playedSeconds > 0.2")
        page.keyboard.press("Escape")
        page.wait_for_function("() => ttsPage.utterance.stoppedMs !== null")
        page.reload()
        page.wait_for_function("() => document.querySelectorAll('#voice option').length > 1")
        order = []
        for _ in range(30):
            page.keyboard.press("Tab")
            order.append(self.state(page, "document.activeElement.id || document.activeElement.dataset.i18n || document.activeElement.tagName"))
            if order[-1] == "BODY":
                break
        visible = [each for each in order if each not in ("BODY", "SUMMARY")]
        self.assertEqual(visible[:12], ["skip", "language", "text", "example1", "example2", "example3", "example4", "voice", "speed", "live", "more", "speak"])

    def test_the_page_speaks_both_languages_and_remembers_which(self):
        page = self.open(locale="zh-CN")
        self.assertEqual(self.state(page, "ttsPage.missingWords()"), [])
        self.assertEqual(page.get_attribute("html", "lang"), "zh-Hans")
        expect(page.locator("#speak")).to_contain_text("朗读")
        self.assertRegex(page.input_value("#text"), r"[一-鿿]")
        leftover = page.evaluate("""() => [...document.querySelectorAll('[data-i18n]')].filter((element) => element.textContent.trim() === '').map((e) => e.dataset.i18n)""")
        self.assertEqual(leftover, [])
        page.click("#language")
        self.assertEqual(page.get_attribute("html", "lang"), "en")
        expect(page.locator("#speak")).to_contain_text("Speak")
        page.reload()
        expect(page.locator("#speak")).to_contain_text("Speak")
        english = self.open(locale="en-GB")
        expect(english.locator("#speak")).to_contain_text("Speak")
        page.click("#examples [lang=zh-Hans]")
        self.assertRegex(page.input_value("#text"), r"[一-鿿]")
        page.wait_for_function("() => ttsPage.utterance?.playedSeconds > 0.2")

    def test_an_example_does_not_lose_the_readers_own_text(self):
        page = self.open(text="My own words.")
        page.click("#examples button >> nth=0")
        self.assertIn("Good morning", page.input_value("#text"))
        page.keyboard.press("Escape")
        page.focus("#text")
        page.keyboard.press("Control+z")
        self.assertEqual(page.input_value("#text"), "My own words.")

    def test_it_is_accessible_in_light_and_dark_and_on_a_phone(self):
        for options in ({"color_scheme": "light"}, {"color_scheme": "dark"}, {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"},
                        {"locale": "zh-CN", "viewport": {"width": 360, "height": 740}}):
            with self.subTest(**options):
                page = self.open(text=TEXT, **options)
                page.check("#live")
                page.click("#more summary")
                page.click(".code summary")
                self.check_accessible(page)
                page.uncheck("#live")
                self.speak_to_the_end(page)
                page.fill("#text", "")
                page.click("#speak")
                expect(page.locator("#problem")).not_to_have_text("")
                self.check_accessible(page)
                width = page.viewport_size["width"]
                self.assertLessEqual(self.state(page, "document.documentElement.scrollWidth"), width, "nothing sticks out")

    def check_accessible(self, page):
        results = Axe().run(page)
        found = [f"{each['id']}: {each['help']}: {[node['html'][:120] for node in each['nodes']]}" for each in results.response["violations"]]
        self.assertEqual(found, [])

    def test_code_examples_run(self):
        page = self.open()
        page.click(".code summary")
        command = page.text_content("#code-http")
        self.assertIn(self.server.url + "/synthesize", command)
        body = command.split("-d '")[1].split("'")[0]
        status, headers, data = self.server.post("/synthesize", json.loads(body))
        self.assertEqual((status, data[:4]), (200, b"RIFF"))
        for link in page.locator(".code a").all():
            self.assertEqual(self.server.get("/" + link.get_attribute("href"))[0], 200)

    def test_pages_of_plain_addresses_are_heard_too(self):
        """Browsers give neither worklets nor decoders to pages that are not https or localhost."""
        hide = "delete globalThis.AudioDecoder; Object.defineProperty(BaseAudioContext.prototype, 'audioWorklet', { get: () => undefined });"
        page = self.open(text=TEXT, seed=7, prepare=lambda page: page.add_init_script(hide), strict=False)
        self.assertEqual(self.state(page, "ttsPage.wire"), "pcm_s16le")
        rate, pcm = self.speak_to_the_end(page)
        counters = self.counters(page)
        self.assertEqual((rate, counters["emitted"], counters["stray"]), (24000, len(pcm) // 2, 0))
        self.assertGreater(counters["audible"], 12000)
        expect(page.locator("#wire option[value=opus]")).to_be_disabled()


def correlation(a, b) -> float:
    count = min(len(a), len(b))
    dot = sum(x * y for x, y in zip(a, b))
    return dot / math.sqrt(sum(x * x for x in a[:count]) * sum(y * y for y in b[:count]))


if __name__ == "__main__":
    assert CHROMIUM, "run scripts/setup --tests"
    unittest.main(verbosity=2)
