"""POST /synthesize and /synthesize_stream with curl and plain sockets, every format, every documented error."""
import json
import shutil
import socket
import struct
import subprocess
import tempfile
import unittest
from pathlib import Path

from server_process import ServerProcess, eventually

MANDARIN = "你好，欢迎使用语音合成服务。"
ENGLISH = "The weather is nice today, let us go for a walk."
LONG = "今天天气很好，我们去公园散步吧。" * 20


def probe(data: bytes, suffix: str) -> dict:
    """What ffprobe says of the first audio stream; fails when it complains about anything."""
    with tempfile.NamedTemporaryFile(suffix=suffix) as file:
        file.write(data)
        file.flush()
        result = subprocess.run(["ffprobe", "-v", "warning", "-of", "json", "-show_streams", "-show_format", file.name],
                                capture_output=True, text=True, check=True)
        assert result.stderr == "", result.stderr
        found = json.loads(result.stdout)
        return {**found["format"], **found["streams"][0]}


def wav_samples(data: bytes) -> list[int]:
    assert data[:4] == b"RIFF" and data[8:12] == b"WAVE", data[:16]
    at = 12
    while data[at:at + 4] != b"data":
        at += 8 + struct.unpack("<I", data[at + 4:at + 8])[0]
    size = struct.unpack("<I", data[at + 4:at + 8])[0]
    payload = data[at + 8:at + 8 + size]
    return list(struct.unpack(f"<{len(payload) // 2}h", payload[:len(payload) // 2 * 2]))


class HttpTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = ServerProcess().__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def error(self, path, body, status, headers=None):
        got, reply_headers, data = self.server.post(path, body, headers)
        self.assertEqual(got, status, data)
        self.assertIn("x-request-id", {name.lower() for name in reply_headers.keys()})
        return json.loads(data)["error"]

    def test_curl_gets_a_playable_file_in_both_languages(self):
        for text in (MANDARIN, ENGLISH):
            with tempfile.TemporaryDirectory() as folder:
                out = Path(folder) / "hello.wav"
                subprocess.run(["curl", "-sS", "--fail", self.server.url + "/synthesize", "-H", "Content-Type: application/json",
                                "-d", json.dumps({"text": text}), "-o", out], check=True)
                samples = wav_samples(out.read_bytes())
            self.assertGreater(len(samples), 24000)
            self.assertGreater(max(map(abs, samples)), 1000)
            self.assertEqual(len(samples) % 256, 0)

    def test_every_format_is_what_it_says(self):
        cases = {"wav": ("audio/wav", "pcm_s16le", 24000), "mp3": ("audio/mpeg", "mp3", 24000), "flac": ("audio/flac", "flac", 24000),
                 "opus": ("audio/ogg", "opus", 48000)}
        for name, (content_type, codec, rate) in cases.items():
            for path in ("/synthesize", "/synthesize_stream"):
                with self.subTest(format=name, path=path):
                    status, headers, data = self.server.post(path, {"text": ENGLISH, "format": name, "seed": 3})
                    self.assertEqual(status, 200, data[:300])
                    self.assertEqual(headers["Content-Type"].split(";")[0], content_type)
                    if path == "/synthesize":
                        found = probe(data, "." + name)
                        self.assertEqual((found["codec_name"], int(found["sample_rate"]), int(found["channels"])), (codec, rate, 1))

    def test_pcm_equals_the_wav_payload(self):
        body = {"text": MANDARIN, "seed": 11}
        _, headers, pcm = self.server.post("/synthesize", {**body, "format": "pcm"})
        _, _, wav = self.server.post("/synthesize", {**body, "format": "wav"})
        self.assertEqual(headers["X-Sample-Rate"], "24000")
        self.assertEqual(list(struct.unpack(f"<{len(pcm) // 2}h", pcm)), wav_samples(wav))

    def test_stream_and_whole_reply_carry_the_same_samples(self):
        body = {"text": LONG[:64], "seed": 5, "format": "pcm"}
        whole = self.server.post("/synthesize", body)[2]
        streamed = self.server.post("/synthesize_stream", body)[2]
        self.assertEqual(whole, streamed)

    def test_opus_has_the_length_of_the_pcm(self):
        body = {"text": ENGLISH, "seed": 5}
        pcm = self.server.post("/synthesize", {**body, "format": "pcm"})[2]
        opus = self.server.post("/synthesize", {**body, "format": "opus"})[2]
        with tempfile.NamedTemporaryFile(suffix=".opus") as file:
            file.write(opus)
            file.flush()
            info = subprocess.run(["opusinfo", file.name], capture_output=True, text=True, check=True).stdout
        self.assertNotIn("WARNING", info)
        decoded = float(probe(opus, ".opus")["duration"])
        self.assertAlmostEqual(decoded, len(pcm) / 2 / 24000, delta=0.01)

    def test_first_bytes_of_a_stream_leave_while_the_rest_is_made(self):
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=60) as client:
            body = json.dumps({"text": LONG, "format": "pcm"}).encode()
            client.sendall(b"POST /synthesize_stream HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            received = b""
            while received.count(b"\r\n\r\n") == 0 or len(received.split(b"\r\n\r\n", 1)[1]) < 1000:
                received += client.recv(4096)
            self.assertIn(b"chunked", received.lower())
            self.assertGreaterEqual(self.server.metric("tts_active_rows"), 1)
        eventually(lambda: self.server.metric("tts_active_rows") == 0, "leaving the socket frees the engine")
        self.assertGreaterEqual(self.server.metric("tts_cancelled_total"), 1)

    def test_packets_hold_the_time_that_was_asked_for(self):
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=60) as client:
            body = json.dumps({"text": MANDARIN, "format": "pcm", "packet_ms": 100}).encode()
            client.sendall(b"POST /synthesize_stream HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
                           b"Content-Length: %d\r\n\r\n" % len(body) + body)
            received = b""
            while part := client.recv(65536):
                received += part
        payload, sizes = received.split(b"\r\n\r\n", 1)[1], []
        while True:
            line, payload = payload.split(b"\r\n", 1)
            size = int(line, 16)
            if size == 0:
                break
            sizes.append(size)
            payload = payload[size + 2:]
        self.assertGreater(len(sizes), 5)
        self.assertEqual(set(sizes[:-1]), {4800})
        self.assertLessEqual(sizes[-1], 4800)

    def test_same_seed_same_bytes_other_seed_other_bytes(self):
        body = {"text": MANDARIN, "format": "pcm"}
        first = self.server.post("/synthesize", {**body, "seed": 1})[2]
        self.assertEqual(first, self.server.post("/synthesize", {**body, "seed": 1})[2])
        self.assertNotEqual(first, self.server.post("/synthesize", {**body, "seed": 2})[2])

    def test_speed_changes_the_length_and_only_that(self):
        body = {"text": ENGLISH, "seed": 4, "format": "pcm"}
        normal = len(self.server.post("/synthesize", body)[2])
        for speed in (0.5, 0.8, 1.5, 2.0):
            got = len(self.server.post("/synthesize", {**body, "speed": speed})[2])
            self.assertAlmostEqual(got, normal / speed, delta=0.03 * normal / speed, msg=f"speed {speed}")

    def test_sample_rates(self):
        body = {"text": ENGLISH, "seed": 4}
        base = len(wav_samples(self.server.post("/synthesize", body)[2]))
        for rate in (8000, 16000, 48000):
            data = self.server.post("/synthesize", {**body, "sample_rate": rate})[2]
            self.assertAlmostEqual(len(wav_samples(data)), base * rate / 24000, delta=rate * 0.01)

    def test_errors_name_what_is_wrong(self):
        for path in ("/synthesize", "/synthesize_stream"):
            for text in ("", "   \n\t "):
                self.assertEqual(self.error(path, {"text": text}, 400)["param"], "text")
            self.assertIn("4000", self.error(path, {"text": "好" * 4001}, 413)["message"])
            self.assertEqual(self.error(path, {"text": "hi", "voice": "nobody"}, 400)["param"], "voice")
            self.assertEqual(self.error(path, {"text": "hi", "format": "aiff"}, 400)["param"], "format")
            self.assertEqual(self.error(path, {"text": "hi", "colour": "red"}, 400)["param"], "colour")
            self.assertEqual(self.error(path, {"text": 7}, 400)["param"], "text")
            self.assertEqual(self.error(path, {"text": "hi", "speed": 2.5}, 400)["param"], "speed")
            self.assertEqual(self.error(path, {"text": "hi", "speed": "fast"}, 400)["param"], "speed")
            self.assertEqual(self.error(path, {}, 400)["param"], "text")
            self.assertRegex(self.error(path, b'{"text": "hi",}', 400)["message"], r"\d")
            self.error(path, b'{"text": "\xff\xfe"}', 400)
            self.error(path, b'{"text": "a\\ud800b"}', 400)
            self.error(path, b'{"text": "a\\u0000b"}', 400)
            self.error(path, b"[" * 200_000, 400)
            self.error(path, b'{"text": "' + b"a" * 300_000 + b'"}', 413)
        self.assertEqual(self.server.get("/nowhere")[0], 404)
        self.assertEqual(self.server.get("/synthesize")[0], 405)

    def test_ambiguous_framing_is_refused(self):
        head = b"POST /synthesize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        cases = {
            "length and chunked": head + b"Content-Length: 15\r\nTransfer-Encoding: chunked\r\n\r\nf\r\n{\"text\": \"hey\"}\r\n0\r\n\r\n",
            "chunked and length": head + b"Transfer-Encoding: chunked\r\nContent-Length: 15\r\n\r\nf\r\n{\"text\": \"hey\"}\r\n0\r\n\r\n",
            "two lengths": head + b"Content-Length: 15\r\nContent-Length: 15\r\n\r\n{\"text\": \"hey\"}",
            "chunked on 1.0": head.replace(b"HTTP/1.1", b"HTTP/1.0") + b"Transfer-Encoding: chunked\r\n\r\nf\r\n{\"text\": \"hey\"}\r\n0\r\n\r\n",
        }
        for name, request in cases.items():
            with self.subTest(name), socket.create_connection(("127.0.0.1", self.server.port), timeout=30) as client:
                client.sendall(request)
                reply = b""
                while part := client.recv(65536):
                    reply += part
                self.assertRegex(reply.split(b"\r\n", 1)[0], rb"^HTTP/1\.[01] 400")

    def test_voices_models_and_admin(self):
        voices = json.loads(self.server.get("/v1/voices")[2])
        self.assertIn("xiaobei", json.dumps(voices))
        self.assertIn("nano", json.dumps(json.loads(self.server.get("/v1/models")[2])))
        self.assertEqual(self.server.get("/livez", admin=True)[0], 200)
        self.assertEqual(self.server.get("/readyz", admin=True)[0], 200)
        self.assertEqual(self.server.get("/metrics")[0], 404)
        self.server.post("/synthesize", {"text": ENGLISH})
        text = self.server.get("/metrics", admin=True)[2].decode()
        for name in ("tts_queue_length", "tts_requests_total", "tts_first_packet_seconds_bucket", "tts_synthesis_rtf_ratio", "tts_step_seconds", "tts_batch_rows", "tts_rejected_total"):
            self.assertIn(name, text)


if __name__ == "__main__":
    assert shutil.which("ffprobe") and shutil.which("opusinfo"), "run scripts/setup --tests"
    unittest.main(verbosity=2)
