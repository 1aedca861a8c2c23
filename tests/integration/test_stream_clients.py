"""The example clients of src/docs/clients and the conversation of src/docs/websocket.md, against the real server."""
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import wave
from pathlib import Path

import jsonschema
from websockets.sync.client import connect

from server_process import ROOT, ServerProcess, free_port

DOCS = ROOT / "src/docs"
CLIENTS = DOCS / "clients"
HEADER = struct.Struct("<BBHIQ")
SENTENCES = ["Nice to meet you. ", "今天天气很好，我们去公园散步吧。", "The train was late, so we walked home along the river."]
TEXT = "".join(SENTENCES)


def samples_of(path: Path) -> bytes:
    with wave.open(str(path)) as file:
        assert (file.getnchannels(), file.getsampwidth()) == (1, 2)
        return file.readframes(file.getnframes())


class Client:
    """One of the example clients: its command, and how it is told where the server is."""

    def __init__(self, name: str, command: list):
        self.name, self.command = name, command

    def address(self, port: int) -> list:
        return ["--port", str(port)] if self.name == "cpp" else ["--url", f"ws://127.0.0.1:{port}/v1/stream"]

    def run(self, *arguments, stdin=None):
        return subprocess.run([*self.command, *arguments], input=stdin, capture_output=True, text=True, timeout=120,
                              env={**os.environ, "NO_PROXY": "*"})


PYTHON = Client("python", [sys.executable, str(CLIENTS / "python/stream_client.py")])
JAVASCRIPT = Client("javascript", ["node", str(CLIENTS / "javascript/stream_client.mjs")])
CPP = Client("cpp", [os.environ.get("STREAM_CLIENT_BINARY", str(ROOT / "build/release/bin/stream_client"))])
HAS_NODE = shutil.which("node") and (CLIENTS / "javascript/node_modules/ws").exists()


class StreamClientsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = ServerProcess().__enter__()
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()
        cls.server.__exit__()

    def clients(self):
        for client in (PYTHON, JAVASCRIPT, CPP):
            with self.subTest(client.name):
                if client is JAVASCRIPT and not HAS_NODE:
                    self.skipTest("no npm when scripts/setup --tests ran")
                yield client

    def spoken(self, client: Client, *arguments, stdin=None):
        """(samples, what was said on the way) of one run."""
        out = Path(self.folder.name) / f"{client.name}.wav"
        out.unlink(missing_ok=True)
        result = client.run(*arguments, *client.address(self.server.port), "-o", str(out), stdin=stdin)
        self.assertEqual(result.returncode, 0, result.stderr)
        return samples_of(out), result.stderr

    def test_all_speak_the_same(self):
        heard = {}
        for client in self.clients():
            samples, said = self.spoken(client, TEXT, "--seed", "7")
            heard[client.name] = samples
            self.assertGreater(len(samples), 2 * 24000 * 4)
            self.assertGreater(max(abs(sample) for (sample,) in struct.iter_unpack("<h", samples)), 1000)
            for sentence in SENTENCES:
                self.assertIn(sentence.strip(), said)
            self.assertIn(f"done: {len(TEXT)} characters spoken in {len(samples) // 2} samples", said)
        self.assertEqual(len(set(heard.values())), 1)

    def test_a_broken_link_loses_nothing(self):
        for client in self.clients():
            whole, _ = self.spoken(client, TEXT, "--seed", "7")
            mended, said = self.spoken(client, TEXT, "--seed", "7", "--break-after", "5")
            self.assertIn("resumed: frame", said)
            self.assertTrue(whole == mended, f"{len(whole)} bytes, mended {len(mended)}")

    def test_a_link_that_breaks_while_text_is_written(self):
        arguments = ("--seed", "7", "--words-per-second", "20")
        for client in (PYTHON, JAVASCRIPT):
            with self.subTest(client.name):
                if client is JAVASCRIPT and not HAS_NODE:
                    self.skipTest("no npm when scripts/setup --tests ran")
                samples, said = self.spoken(client, *arguments, "--break-after", "2", stdin=TEXT)
                self.assertIn("resumed: frame", said)
                self.assertIn(f"done: {len(TEXT)} characters spoken in {len(samples) // 2} samples", said)

    def test_interrupting(self):
        for client in (PYTHON, JAVASCRIPT):
            with self.subTest(client.name):
                if client is JAVASCRIPT and not HAS_NODE:
                    self.skipTest("no npm when scripts/setup --tests ran")
                samples, said = self.spoken(client, TEXT * 10, "--seed", "7", "--cancel-after", "0.5")
                characters = int(re.search(r"cancelled: (\d+) characters", said).group(1))
                self.assertLess(characters, len(TEXT) * 9)
                self.assertGreater(len(samples), 0)

    def test_python_formats(self):
        for name, codec in (("mulaw", "pcm_mulaw"), ("alaw", "pcm_alaw")):
            with self.subTest(name):
                out = Path(self.folder.name) / f"{name}.wav"
                result = PYTHON.run(TEXT, "--format", name, "-o", str(out), *PYTHON.address(self.server.port))
                self.assertEqual(result.returncode, 0, result.stderr)
                probe = ["ffprobe", "-v", "error", "-of", "json", "-show_streams", str(out)]
                stream = json.loads(subprocess.run(probe, capture_output=True, check=True).stdout)["streams"][0]
                self.assertEqual((stream["codec_name"], stream["sample_rate"], stream["channels"]), (codec, "8000", 1))
                self.assertGreater(float(stream["duration"]), 4)
        out = Path(self.folder.name) / "speech.opus"
        result = PYTHON.run(TEXT, "--format", "ogg_opus", "--bitrate", "auto", "-o", str(out), *PYTHON.address(self.server.port))
        self.assertEqual(result.returncode, 0, result.stderr)
        info = subprocess.run(["opusinfo", str(out)], capture_output=True, text=True, check=True).stdout
        self.assertNotIn("WARNING", info)

    def test_what_is_wrong_is_named(self):
        for client in self.clients():
            result = client.run(TEXT, "--voice", "nobody", "-o", os.devnull, *client.address(self.server.port))
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn("there is no voice 'nobody'", result.stderr)

    def test_a_server_that_is_not_there_is_tried_three_times(self):
        port = free_port()
        for client in self.clients():
            result = client.run(TEXT, "-o", os.devnull, *client.address(port))
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertEqual(result.stderr.count("trying again"), 2)
            self.assertIn("gave up", result.stderr)

    def test_a_server_that_stops_finishes_what_it_speaks(self):
        out = Path(self.folder.name) / "last_words.wav"
        with ServerProcess() as server:
            command = [*PYTHON.command, TEXT, "--seed", "7", "-o", str(out), *PYTHON.address(server.port)]
            with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "NO_PROXY": "*"}) as process:
                said = process.stderr.readline() + process.stderr.readline()  # the voice, and the first sentence
                server.process.terminate()
                said += process.stderr.read()
            self.assertEqual(process.returncode, 0, said)
        self.assertIn("the server stops within", said)
        self.assertIn(f"done: {len(TEXT)} characters spoken in {len(samples_of(out)) // 2} samples", said)

    def test_help_and_wrong_usage(self):
        for client in self.clients():
            result = client.run("--help")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("--voice", result.stdout)
            self.assertEqual(client.run("hello").returncode, 2, "no place for the audio")


class ConversationTest(unittest.TestCase):
    """Plays the conversation of websocket.md, a code block a socket, and compares what the server says."""

    # What depends on the machine or on chance. Client messages take them from what was received.
    VARIES = {"session", "resume_token", "token", "server", "samples", "first_sample", "seq", "from"}

    @classmethod
    def setUpClass(cls):
        cls.server = ServerProcess().__enter__()
        schema = json.loads((DOCS / "websocket.schema.json").read_text(encoding="utf-8"))
        jsonschema.Draft202012Validator.check_schema(schema)
        cls.validators = {side: jsonschema.Draft202012Validator({**schema, "oneOf": [{"$ref": f"#/$defs/{side}"}]})
                          for side in ("client", "server")}

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def receive(self, socket, skipped: list) -> dict:
        """The next message that is not in `skipped`; checks the frames before it."""
        while True:
            message = socket.recv(timeout=60)
            if isinstance(message, bytes):
                version, flags, context, seq, first_sample = HEADER.unpack_from(message)
                self.assertEqual((version, flags & ~1, seq), (1, 0, self.last_seq + 1))
                self.assertIn(context, self.ids)
                self.last_seq = seq
                continue
            message = json.loads(message)
            self.validators["server"].validate(message)
            if message not in skipped:
                return message

    def comparable(self, message: dict, expected: dict) -> dict:
        varies = self.VARIES | ({"characters"} if expected["type"] == "cancelled" else set())
        return {name: "…" if name in varies else value for name, value in message.items()}

    def play(self, lines: list, known: dict, skipped: list):
        said = []
        with connect(f"ws://127.0.0.1:{self.server.port}/v1/stream", subprotocols=["tts.v1"], compression=None, proxy=None) as socket:
            self.assertEqual(socket.subprotocol, "tts.v1")
            for line in lines:
                expected = json.loads(line[1:])
                if line[0] == "→":
                    if expected["type"] == "resume":
                        expected.update(known, seq=self.last_seq)
                    elif expected["type"] == "ack":
                        expected["seq"] = self.last_seq
                    if "txt" not in expected:  # the mistake that is shown
                        self.validators["client"].validate(expected)
                    socket.send(json.dumps(expected))
                    continue
                message = self.receive(socket, skipped)
                said.append(message)
                self.assertEqual(self.comparable(message, expected), self.comparable(expected, expected), line)
                if message["type"] == "ready":
                    known.setdefault("session", message["session"])
                    known.setdefault("token", message["resume_token"])
                elif message["type"] == "started":
                    self.ids.add(message["id"])
                elif message["type"] == "resumed":
                    self.assertEqual((message["session"], message["from"]), (known["session"], self.last_seq + 1))
            socket.socket.shutdown(2)  # as a link breaks, without a closing frame
        return said

    def test_conversation(self):
        document = (DOCS / "websocket.md").read_text(encoding="utf-8")
        blocks = document.split("```")[1::2]
        sockets = [lines for block in blocks if (lines := re.findall(r"^[→←] \{.*$", block, re.MULTILINE))]
        self.assertEqual(len(sockets), 2)
        self.last_seq, self.ids, known, skipped = 0, set(), {}, []
        for lines in sockets:
            skipped += self.play(lines, known, skipped)  # what stood behind the last frame may come twice
        self.assertGreater(self.last_seq, 10)


if __name__ == "__main__":
    assert shutil.which("ffprobe") and shutil.which("opusinfo"), "run scripts/setup --tests"
    unittest.main(verbosity=2)
