#!/usr/bin/env python3
"""Speaks text over the WebSocket of chattts-server, while the text is still being written.

    pip install -r requirements.txt
    python3 stream_client.py "Nice to meet you. 今天天气很好。" -o hello.wav
    python3 stream_client.py --play --words-per-second 4 < story.txt
    my_language_model | python3 stream_client.py --play

Text is sent as it comes from standard input (or word by word, with --words-per-second), audio is written or played as it
arrives. A broken link is mended: see Client.run(). The protocol is described in websocket.md.
"""
import argparse
import asyncio
import codecs
import json
import os
import queue
import random
import re
import shutil
import struct
import subprocess
import sys
import threading
import time

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

CONTEXT = "speech"  # this client has one utterance, so one context
HEADER = struct.Struct("<BBHIQ")  # version, flags, context id, seq, first sample
BYTES_PER_SAMPLE = {"pcm_s16le": 2, "mulaw": 1, "alaw": 1}
WAV_TAGS = {"pcm_s16le": 1, "alaw": 6, "mulaw": 7}
SILENCE = {"pcm_s16le": b"\0\0", "mulaw": b"\xff", "alaw": b"\xd5"}
COME_BACK = {1006, 1011, 1012, 1013, 4008}  # close codes after which the session can be resumed; 1006 = no close frame came
WAIT_FIRST = {1012, 1013}
MOST_TEXT = 4000  # code points in a message


class GaveUp(Exception):
    pass


class BrokenLink(Exception):
    def __init__(self, why: str, wait: float = 0.0):
        super().__init__(why)
        self.wait = wait  # what the server asked for


def say(*words):
    print(*words, file=sys.stderr, flush=True)


def wav_header(name: str, rate: int, size: int) -> bytes:
    width = BYTES_PER_SAMPLE[name]
    form = struct.pack("<HHIIHH", WAV_TAGS[name], 1, rate, rate * width, width, 8 * width)
    return b"RIFF" + struct.pack("<I", 36 + size) + b"WAVEfmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", size)


class Player:
    """Another program that plays samples. It takes them as slowly as they are heard, so a thread waits for it."""

    def __init__(self, rate: int):
        commands = [["aplay", "-q", "-t", "raw", "-f", "S16_LE", "-r", str(rate), "-c", "1", "-"],
                    ["ffplay", "-loglevel", "error", "-nodisp", "-autoexit", "-f", "s16le", "-ar", str(rate), "-"]]
        command = next((command for command in commands if shutil.which(command[0])), None)
        if command is None:
            raise GaveUp("--play needs aplay or ffplay; use -o FILE instead")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE)
        self.queue = queue.SimpleQueue()
        self.thread = threading.Thread(target=self.feed, daemon=True)
        self.thread.start()

    def feed(self):
        try:
            while payload := self.queue.get():
                self.process.stdin.write(payload)
                self.process.stdin.flush()
            self.process.stdin.close()
        except BrokenPipeError:
            pass  # it was closed by whoever listens

    def stop(self, at_once: bool):
        if at_once:
            self.process.terminate()
        self.queue.put(b"")
        self.thread.join()
        self.process.wait()


class Sound:
    """The audio of the context: each sample once, at its place, whatever the link does. Knows what a listener would hear."""

    def __init__(self, name: str, play: bool):
        self.name, self.play = name, play
        self.rate = 0
        self.data = bytearray()
        self.player = None
        self.first_audio_at = None
        self.played_until = 0.0  # when a listener has heard all of this
        self.gaps = []           # seconds of silence in the middle

    def begin(self, rate: int):
        self.rate = rate
        if self.play and self.player is None:
            self.player = Player(rate)

    @property
    def measurable(self) -> bool:
        """Whether bytes tell how long they sound."""
        return self.name in BYTES_PER_SAMPLE

    @property
    def samples(self) -> int:
        return len(self.data) // BYTES_PER_SAMPLE[self.name]

    def add(self, first_sample: int, payload: bytes):
        if self.measurable:
            missing = first_sample - self.samples
            if missing > 0:  # after resume_gap: these frames are gone
                payload = SILENCE[self.name] * missing + payload
            elif missing < 0:
                payload = payload[-missing * BYTES_PER_SAMPLE[self.name]:]
        if not payload:
            return
        self.data += payload
        if self.player:
            self.player.queue.put(payload)
        now = time.monotonic()
        if self.first_audio_at is None:
            self.first_audio_at = self.played_until = now
        elif self.measurable and now > self.played_until:
            self.gaps.append(now - self.played_until)
            self.played_until = now
        if self.measurable:
            self.played_until += len(payload) / (self.rate * BYTES_PER_SAMPLE[self.name])

    def buffered(self) -> float:
        return max(0.0, self.played_until - time.monotonic())

    def heard_samples(self) -> int:
        return max(0, self.samples - int(self.buffered() * self.rate))

    def save(self, path: str):
        with open(path, "wb") as file:
            if self.measurable:
                file.write(wav_header(self.name, self.rate, len(self.data)))
            file.write(self.data)

    def finish(self, at_once: bool):
        if self.player:
            self.player.stop(at_once)


class Client:
    def __init__(self, options):
        self.options = options
        self.sound = Sound(options.format, options.play)
        # What is to be said, as far as it has been written; `changed` tells that there is more.
        self.text, self.text_complete = "", False
        self.changed = asyncio.Event()
        self.first_text_at = None
        # The session, and how far we are in it.
        self.session = self.token = None
        self.last_seq = 0
        self.attempts = 0         # to mend the link, since the last frame
        self.started = False
        self.sent, self.sent_end = 0, False
        self.finished = None      # "done" or "cancelled"
        self.frames_until_break = options.break_after

    # ------------------------------------------------------------ text

    def write(self, piece: str):
        self.text += piece.encode("utf-8", "replace").decode().replace("\0", "")
        if self.first_text_at is None and piece:
            self.first_text_at = time.monotonic()
        self.changed.set()

    def write_end(self):
        self.text_complete = True
        self.changed.set()

    async def write_words(self, words):
        """Like a language model: a word, and the space behind it, at a time."""
        for word in words:
            self.write(word)
            await asyncio.sleep(1 / self.options.words_per_second)
        self.write_end()

    def read_standard_input(self, loop):
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        try:
            while data := os.read(0, 4096):
                loop.call_soon_threadsafe(self.write, decoder.decode(data))
            loop.call_soon_threadsafe(self.write, decoder.decode(b"", final=True))
            loop.call_soon_threadsafe(self.write_end)
        except RuntimeError:
            pass  # nobody listens any more

    def begin_writing(self):
        """Returns the task that writes, if it is one."""
        if self.options.text is None and self.options.words_per_second is None:
            loop = asyncio.get_running_loop()
            threading.Thread(target=self.read_standard_input, args=(loop,), daemon=True).start()
            return None
        text = sys.stdin.read() if self.options.text is None else self.options.text
        if self.options.words_per_second is None:
            self.write(text)
            self.write_end()
            return None
        # Chinese has no spaces: a few characters are a word.
        words = re.findall(r"[\u3000-\u9fff\uff00-\uffef]{1,2}|[^\s\u3000-\u9fff\uff00-\uffef]+\s*|\s+", text)
        return asyncio.create_task(self.write_words(words))

    # ------------------------------------------------------------ sending

    async def send(self, socket, **message):
        await socket.send(json.dumps(message, ensure_ascii=False))

    async def send_start(self, socket):
        fields = ("voice", "format", "sample_rate", "bitrate", "speed", "seed", "language", "latency", "pace")
        given = {name: getattr(self.options, name) for name in fields if getattr(self.options, name) is not None}
        await self.send(socket, type="start", context=CONTEXT, **given)

    async def send_text(self, socket):
        """Sends what has been written and not been sent, for as long as the socket lives."""
        while not self.sent_end:
            self.changed.clear()
            while self.sent < len(self.text):
                piece = self.text[self.sent:self.sent + MOST_TEXT]
                self.sent += len(piece)
                await self.send(socket, type="text", context=CONTEXT, text=piece)
            if self.text_complete:
                self.sent_end = True
                await self.send(socket, type="end", context=CONTEXT)
            else:
                await self.changed.wait()

    async def send_acknowledgements(self, socket):
        while True:
            await asyncio.sleep(1)
            if self.sound.measurable:
                await self.send(socket, type="ack", seq=self.last_seq, context=CONTEXT, buffered_ms=int(self.sound.buffered() * 1000))
            else:
                await self.send(socket, type="ack", seq=self.last_seq)

    async def send_cancel(self, socket):
        if self.options.cancel_after is None:
            return
        while self.sound.first_audio_at is None or time.monotonic() < self.sound.first_audio_at + self.options.cancel_after:
            await asyncio.sleep(0.01)
        heard = {"samples": self.sound.heard_samples()} if self.sound.measurable else {}
        await self.send(socket, type="cancel", context=CONTEXT, **heard)

    # ------------------------------------------------------------ receiving

    async def receive(self, socket):
        """Until the context has ended. Raises ConnectionClosed when the link breaks."""
        resuming = self.session is not None
        tasks = []
        try:
            async for message in socket:
                if isinstance(message, bytes):
                    self.take_frame(message)
                    if self.frames_until_break is not None:
                        self.frames_until_break -= 1
                        if self.frames_until_break <= 0:
                            self.frames_until_break = None
                            say("the link is cut, as --break-after asks for")
                            socket.transport.abort()
                    continue
                if await self.take_message(socket, json.loads(message), resuming):
                    tasks = [asyncio.create_task(send(socket)) for send in (self.send_text, self.send_acknowledgements, self.send_cancel)]
                if self.finished:
                    return
            raise GaveUp("the server closed the socket")
        finally:
            for task in tasks:
                task.cancel()
            for outcome in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(outcome, Exception) and not isinstance(outcome, ConnectionClosed):
                    raise outcome

    def take_frame(self, message: bytes):
        version, flags, _context, seq, first_sample = HEADER.unpack_from(message)
        if version != 1:
            raise GaveUp(f"frames of version {version} are not known here")
        if seq != self.last_seq + 1:
            raise GaveUp(f"frame {seq} came after {self.last_seq}")
        self.last_seq = seq
        self.attempts = 0
        self.sound.add(first_sample, message[HEADER.size:])

    async def take_message(self, socket, message: dict, resuming: bool) -> bool:
        """True when text may be sent from now on."""
        kind = message["type"]
        if kind == "ready" and not resuming:
            self.session, self.token = message["session"], message["resume_token"]
            await self.send_start(socket)
            return True
        elif kind == "started":
            self.sound.begin(message["sample_rate"])
            if not self.started:
                self.started = True
                say(f"voice {message['voice']}, {message['format']} at {message['sample_rate']} Hz, seed {message['seed']}")
        elif kind == "sentence":
            say(f"  {self.text[message['begin']:message['end']].strip()}")
        elif kind in ("done", "cancelled"):
            self.finished = kind
            say(f"{kind}: {message['characters']} characters spoken in {message['samples']} samples")
        elif kind == "error":
            if "retry_after_ms" in message and not self.started:
                self.session, self.sent, self.sent_end = None, 0, False  # from the beginning, later
                raise BrokenLink(message["message"], message["retry_after_ms"] / 1000)
            if message.get("ended", True):
                raise GaveUp(f"{message['code']}: {message['message']}")
            say(f"the server says: {message['message']}")
        elif kind in ("resumed", "resume_gap"):
            say(f"{kind}: frame {message['from']} comes next")
            self.last_seq = message["from"] - 1
            return await self.go_on(socket, message["contexts"])
        elif kind in ("resume_unknown", "resume_expired"):
            raise GaveUp("the session is over")
        elif kind == "draining":
            say(f"the server stops within {message['deadline_ms'] / 1000:.0f} s")
        return False

    async def go_on(self, socket, contexts: list) -> bool:
        """Sends again what the link has lost."""
        ours = next((context for context in contexts if context["context"] == CONTEXT), None)
        if ours:
            self.sent, self.sent_end = ours["characters"], ours["ended"]
            return True
        if self.started:
            return False  # only its last words are still to come
        self.sent, self.sent_end = 0, False
        await self.send_start(socket)
        return True

    # ------------------------------------------------------------ the link

    async def one_socket(self):
        try:
            async with connect(self.options.url, subprotocols=["tts.v1"], compression=None, max_size=None) as socket:
                if self.session:
                    await self.send(socket, type="resume", session=self.session, token=self.token, seq=self.last_seq)
                await self.receive(socket)
        except ConnectionClosed as closed:
            code = closed.rcvd.code if closed.rcvd else 1006
            reason = closed.rcvd.reason if closed.rcvd else "the link broke"
            if code not in COME_BACK:
                raise GaveUp(f"closed with {code}: {reason}") from None
            raise BrokenLink(f"{reason} ({code})", 1.0 if code in WAIT_FIRST else 0.0) from None
        except InvalidStatus as refused:
            response = refused.response
            if response.status_code not in (429, 503):
                raise GaveUp(f"the server answered {response.status_code}: {(response.body or b'').decode(errors='replace')}") from None
            raise BrokenLink(f"the server answered {response.status_code}", float(response.headers.get("Retry-After", 1))) from None
        except InvalidHandshake as failed:
            raise GaveUp(str(failed)) from None
        except (OSError, TimeoutError) as failed:
            raise BrokenLink(str(failed)) from None

    async def run(self):
        """Three steps when the link breaks: again at once; again after about two seconds; give up. What the server asks for is
        waited first. A frame of audio counts as success: then it begins anew."""
        writing = self.begin_writing()
        while not self.finished:
            try:
                await self.one_socket()
            except BrokenLink as broken:
                self.attempts += 1
                if self.attempts > 2:
                    raise GaveUp(f"{broken}; tried again at once and after a while") from None
                wait = broken.wait + (0 if self.attempts == 1 else 2 * random.uniform(0.8, 1.2))
                say(f"{broken}; trying again" + (f" in {wait:.1f} s" if wait else ""))
                await asyncio.sleep(wait)
        if writing:
            writing.cancel()

    def report(self):
        sound = self.sound
        if sound.first_audio_at is None:
            return say("no audio came")
        summary = f"first audio {sound.first_audio_at - self.first_text_at:.2f} s after the first word"
        if sound.measurable:
            gaps = f"{len(sound.gaps)} gaps, {sum(sound.gaps):.2f} s in all" if sound.gaps else "no gaps"
            summary += f"; {sound.samples / sound.rate:.2f} s of speech, {gaps}"
        say(summary)


def number_or_auto(text: str):
    return text if text == "auto" else int(text)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", nargs="?", help="what to say; without it, standard input")
    parser.add_argument("--url", default="ws://127.0.0.1:8080/v1/stream", help="of the server (default: %(default)s)")
    parser.add_argument("-o", "--output", metavar="FILE", help="write a WAV file (with --format ogg_opus, an Opus file)")
    parser.add_argument("--play", action="store_true", help="play with aplay or ffplay")
    parser.add_argument("--words-per-second", type=float, metavar="N", help="send the text word by word, as a language model writes it")
    parser.add_argument("--cancel-after", type=float, metavar="SECONDS", help="interrupt so long after the first sound")
    parser.add_argument("--break-after", type=int, metavar="FRAMES", help="cut the link once after so many frames, to see it mended")
    parser.add_argument("--format", default="pcm_s16le", choices=["pcm_s16le", "mulaw", "alaw", "ogg_opus"], help="(default: %(default)s)")
    parser.add_argument("--sample-rate", type=int, choices=[8000, 16000, 24000, 48000])
    parser.add_argument("--bitrate", type=number_or_auto, help="of ogg_opus: 16000 to 64000, or auto")
    parser.add_argument("--voice", help="an id of GET /v1/voices")
    parser.add_argument("--speed", type=float, help="0.5 to 2")
    parser.add_argument("--seed", type=int, help="the same seed gives the same audio")
    parser.add_argument("--language", choices=["auto", "zh", "en"], help="of numbers and the like")
    parser.add_argument("--latency", choices=["low", "exact"])
    parser.add_argument("--pace", choices=["fast", "realtime"])
    options = parser.parse_args()
    if options.play and options.format != "pcm_s16le":
        parser.error("--play needs --format pcm_s16le")
    if not options.play and not options.output:
        parser.error("say where the audio goes: -o FILE or --play")
    if options.words_per_second is not None and options.words_per_second <= 0:
        parser.error("--words-per-second must be above 0")
    return options


async def main() -> int:
    options = arguments()
    client = Client(options)
    try:
        await client.run()
    except GaveUp as failed:
        say(f"gave up: {failed}")
        return 1
    finally:
        client.sound.finish(at_once=client.finished != "done")
        if options.output and client.sound.data:
            client.sound.save(options.output)
        client.report()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(main()))
    except KeyboardInterrupt:
        sys.exit(130)
