"""The streaming protocol against the real server and the bundled voice: text in pieces, interruption, broken links, slow readers, drain."""
import json
import signal
import socket
import struct
import threading
import time
import unittest

from fault_proxy import FAULTS, FaultProxy
from raw_websocket import BINARY, CLOSE, TEXT, Gone, RawWebSocket, frame
from server_process import ServerProcess, eventually
from stream_session import StreamSession

TEXTS = ["今天天气很好，我们去公园散步吧。", "The quick brown fox jumps over the lazy dog.", "请问现在几点了？"]
LONG = "".join(TEXTS) * 4
PCM = {"format": "pcm_s16le", "seed": 7, "latency": "exact"}  # exact: equal bits however busy the machine is
CUTS = 40  # here; bench/stream/cuts.py makes a thousand


def speech_is_there(pcm: bytes) -> bool:
    samples = struct.unpack(f"<{len(pcm) // 2}h", pcm)
    return max(map(abs, samples), default=0) > 1000


class StreamingTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = ServerProcess("--log-level", "warning", "--max-batch", "8", "--stream-stall-timeout-ms", "1500").__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def session(self, port: int | None = None, **more) -> StreamSession:
        session = StreamSession(port or self.server.port, **more)
        self.addCleanup(session.close)
        return session

    def whole(self, text: str, **options) -> bytes:
        session = self.session()
        identity = session.speak("whole", text, **options)["id"]
        session.until("done")
        return bytes(session.audio[identity])

    def test_text_in_pieces_speaks_as_text_at_once(self):
        text = "Hello there. How are you today? 我很好，谢谢你。"
        session = self.session()
        session.send(type="start", context="a", **PCM)
        identity = session.until("started")["id"]
        for character in text:
            session.send(type="text", context="a", text=character)
        session.send(type="end", context="a")
        done = session.until("done")
        self.assertEqual(done["characters"], len(text))
        audio = bytes(session.audio[identity])
        self.assertEqual(done["samples"] * 2, len(audio))
        self.assertTrue(speech_is_there(audio))
        sentences = [message for message in session.messages if message["type"] == "sentence"]
        self.assertEqual([sentence["index"] for sentence in sentences], list(range(len(sentences))))
        self.assertEqual(text[sentences[0]["begin"]:sentences[0]["end"]].strip(), "Hello there.")
        for before, after in zip(sentences, sentences[1:]):
            self.assertLess(before["first_sample"], after["first_sample"])
            self.assertLessEqual(before["end"], after["begin"])

    def test_the_first_sentence_is_heard_while_the_second_is_being_written(self):
        session = self.session()
        session.send(type="start", context="a", **PCM)
        session.until("started")
        session.send(type="text", context="a", text="今天天气很好。")
        session.until("sentence")
        while not session.audio:
            session.step()
        session.send(type="text", context="a", text="我们走吧。")
        session.send(type="end", context="a")
        self.assertEqual(session.until("done")["characters"], 12)

    def test_a_slow_writer_is_heard_without_a_stop(self):
        session = self.session()
        session.send(type="start", context="a", max_buffer_delay_ms=200, **PCM)
        session.until("started")
        session.send(type="text", context="a", text="well this goes on and on without an end")
        session.until("sentence")

    def test_flush_speaks_what_is_held_and_says_when_its_audio_was_sent(self):
        session = self.session()
        session.send(type="start", context="a", max_buffer_delay_ms=0, **PCM)
        identity = session.until("started")["id"]
        session.send(type="text", context="a", text="no stop here")
        session.send(type="flush", context="a")
        self.assertEqual(session.until("flushed")["characters"], 12)
        self.assertTrue(speech_is_there(bytes(session.audio[identity])))

    def test_a_context_that_never_gets_text(self):
        session = self.session()
        session.send(type="start", context="a", **PCM)
        session.send(type="text", context="a", text=" … ")
        session.send(type="end", context="a")
        self.assertEqual(session.until("done")["samples"], 0)
        self.assertEqual(session.audio, {})

    def test_contexts_side_by_side(self):
        session = self.session()
        wanted = {name: self.whole(text, **PCM) for name, text in zip("abc", TEXTS)}
        identities = {name: session.speak(name, text, **PCM)["id"] for name, text in zip("abc", TEXTS)}
        for _ in wanted:
            session.until("done")
        for name, identity in identities.items():
            self.assertEqual(bytes(session.audio[identity]), wanted[name], name)

    def test_every_format(self):
        session = self.session()
        for form, rate in (("opus", 24000), ("opus", 48000), ("ogg_opus", 24000), ("pcm_s16le", 8000), ("pcm_s16le", 48000), ("mulaw", 8000), ("alaw", 8000)):
            with self.subTest(form=form, rate=rate):
                started = session.speak("f", TEXTS[1], format=form, sample_rate=rate, seed=3)
                self.assertEqual(started["sample_rate"], rate)
                done = session.until("done")
                audio = bytes(session.audio[started["id"]])
                self.assertGreater(done["samples"], rate)
                if form.startswith("pcm"):
                    self.assertEqual(len(audio), 2 * done["samples"])
                elif form.endswith("law"):
                    self.assertEqual(len(audio), done["samples"])
                elif form == "ogg_opus":
                    self.assertTrue(audio.startswith(b"OggS"))
                else:
                    at = packets = 0
                    while at < len(audio):
                        at += 2 + int.from_bytes(audio[at:at + 2], "little")
                        packets += 1
                    self.assertEqual(at, len(audio))
                    self.assertEqual(packets * rate // 50 - started["pre_skip"], done["samples"])

    def test_cancel_stops_at_once_and_frees_one_slot(self):
        session = self.session()
        session.send(type="start", context="a", **PCM)
        identity = session.until("started")["id"]
        session.send(type="text", context="a", text=LONG)
        session.until("sentence")
        while not session.audio:
            session.step()
        before = self.server.metric("tts_contexts_total", end="cancelled")
        session.send(type="cancel", context="a")
        cancelled = session.until("cancelled")
        self.assertEqual(cancelled["samples"] * 2, len(session.audio[identity]))
        self.assertGreater(cancelled["characters"], 0)
        self.assertLess(cancelled["characters"], len(LONG))
        length = len(session.audio[identity])
        session.speak("a", TEXTS[0], **PCM)
        session.until("done")
        self.assertEqual(len(session.audio[identity]), length, "nothing of the old context follows")
        self.assertEqual(self.server.metric("tts_contexts_total", end="cancelled"), before + 1)
        eventually(lambda: self.server.metric("tts_active_rows") == 0, "no slot is held")

    def test_cancel_before_any_text_and_right_after(self):
        session = self.session()
        for text in ("", TEXTS[0]):
            session.send(type="start", context="a", **PCM)
            session.until("started")
            if text:
                session.send(type="text", context="a", text=text)
            session.send(type="cancel", context="a")
            cancelled = session.until("cancelled")
            self.assertLessEqual(cancelled["characters"], len(text))
        eventually(lambda: self.server.metric("tts_active_rows") == 0, "no slot is held")

    def test_update_is_for_the_next_sentence(self):
        session = self.session()
        session.send(type="start", context="a", **PCM)
        identity = session.until("started")["id"]
        session.send(type="text", context="a", text=TEXTS[0], flush=True)
        session.until("flushed")
        slow = len(session.audio[identity])
        session.send(type="update", context="a", speed=2)
        session.send(type="text", context="a", text=TEXTS[0], flush=True)
        session.until("flushed")
        self.assertLess(len(session.audio[identity]) - slow, 0.75 * slow)

    def test_links_that_break_in_every_way_lose_nothing(self):
        wanted = self.whole(LONG, **PCM)
        budget = lambda chance: chance.randrange(1, max(2, 2 * len(wanted) // CUTS))
        with FaultProxy(self.server.port, budget) as proxy:
            session = StreamSession(proxy.port, patience=1.0)
            identity = session.speak("a", LONG, **PCM)["id"]
            session.until("done")
            self.assertEqual(bytes(session.audio[identity]), wanted)
            self.assertGreater(session.reconnects, CUTS // 3)
            self.assertGreater(min(proxy.broken[fault] for fault in FAULTS), 0, proxy.broken)
        eventually(lambda: self.server.metric("tts_active_rows") == 0, "no slot is held")

    def test_a_session_belongs_to_whoever_has_its_token(self):
        session = self.session()
        with RawWebSocket(self.server.port) as thief:
            thief.send_json({"type": "resume", "session": session.ready["session"], "token": "0" * 32, "seq": 0})
            thief.receive_json("resume_unknown")
        with RawWebSocket(self.server.port) as other:
            other.send_json({"type": "resume", "session": session.ready["session"], "token": session.ready["resume_token"], "seq": 0})
            other.receive_json("resumed")
            self.assertEqual(session.link.wait_for_close(), 4001)

    def test_slow_readers_more_than_slots_and_nobody_else_notices(self):
        wanted = self.whole(TEXTS[0], **PCM)
        slow = []
        for i in range(24):
            client = RawWebSocket(self.server.port)
            self.addCleanup(client.socket.close)
            client.send_json({"type": "start", "context": "s", "format": "pcm_s16le", "sample_rate": 48000, "seed": i})
            client.send_json({"type": "text", "context": "s", "text": LONG})
            client.send_json({"type": "end", "context": "s"})
            slow.append(client)  # and reads nothing
        eventually(lambda: self.server.metric("tts_sockets_closed_total", by="server") >= len(slow) // 2, "who reads nothing is closed", 60)
        self.assertEqual(self.whole(TEXTS[0], **PCM), wanted)
        codes = [client.wait_for_close() for client in slow]
        self.assertIn(4008, codes)

    def test_pings_find_out_who_is_gone(self):
        with ServerProcess("--log-level", "warning", "--stream-ping-interval-ms", "200") as server:
            with RawWebSocket(server.port) as silent, RawWebSocket(server.port) as alive:
                silent.receive_json("ready")
                began = time.monotonic()
                while time.monotonic() - began < 2:
                    opcode, payload = alive.receive()
                    if opcode == 9:
                        alive.send(frame(10, payload))
                eventually(lambda: server.metric("tts_sessions", state="waiting") == 1, "the silent one is dropped")
                alive.send_json({"type": "flush", "context": "x"})
                alive.receive_json("error")

    def test_a_server_that_stops_finishes_what_is_spoken_and_closes_with_1012(self):
        with ServerProcess("--log-level", "warning", "--stream-drain-spread-ms", "500") as server:
            session, idle = StreamSession(server.port), RawWebSocket(server.port)
            identity = session.speak("a", LONG, **PCM)["id"]
            session.until("sentence")
            server.process.send_signal(signal.SIGTERM)
            idle.receive_json("draining")
            self.assertEqual(idle.wait_for_close(), 1012)
            done = session.until("done")
            self.assertEqual(done["samples"] * 2, len(session.audio[identity]))
            self.assertEqual(session.link.wait_for_close(), 1012)
            self.assertEqual(server.process.wait(30), 0, server.log_text())

    def test_a_few_hundred_sockets_come_and_go(self):
        before = self.server.metric("tts_connections")
        sockets = [RawWebSocket(self.server.port) for _ in range(300)]
        for client in sockets:
            client.receive_json("ready")
        self.assertEqual(self.server.metric("tts_connections"), before + len(sockets))
        for client in sockets:
            client.send(frame(CLOSE, struct.pack(">H", 1000)))
        for client in sockets:
            self.assertEqual(client.wait_for_close(), 1000)
            client.socket.close()
        eventually(lambda: self.server.metric("tts_connections") <= before, "all are gone")
        eventually(lambda: self.server.metric("tts_sessions", state="attached") <= before, "and their sessions")


if __name__ == "__main__":
    unittest.main()
