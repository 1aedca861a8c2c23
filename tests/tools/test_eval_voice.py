# SPDX-License-Identifier: Apache-2.0
"""eval_voice end to end, with a recogniser that answers from a list: what is sent to a server or program, how errors are counted and reported."""
import http.server
import io
import json
import os
import sys
import tempfile
import threading
import unittest
import wave
from unittest import mock

import support
import eval_voice


def wav(seconds):
    out = io.BytesIO()
    with wave.open(out, "wb") as w:
        w.setnchannels(1)
        w.setsampwidth(2)
        w.setframerate(24000)
        w.writeframes(b"\0\0" * int(24000 * seconds))
    return out.getvalue()


class Server(http.server.BaseHTTPRequestHandler):
    requests = []

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.requests.append((body, self.headers.get("Authorization")))
        failed = body["text"] == "No."
        reply = b'{"error":{"message":"boom"}}' if failed else wav(0.5)
        self.send_response(500 if failed else 200)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_):
        pass


class EvalVoiceTest(unittest.TestCase):
    HEARD = {"Yes it is.": "Yes, it was.", "Two of 2.": "2 of 2", "我的OK": "我的 ok。"}

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder, Server.requests = scratch.name, []
        open(os.path.join(self.folder, "model.bin"), "wb").close()
        with open(os.path.join(self.folder, "s.jsonl"), "w", encoding="utf-8") as f:
            for sid, lang, text in (("en-x-01", "en", "Yes it is."), ("en-num-01", "en", "Two of 2."), ("zh-mix-01", "zh", "我的OK"), ("en-x-02", "en", "No.")):
                f.write(json.dumps({"id": sid, "lang": lang, "text": text, "spoken": text}) + "\n")
        self.asked = []
        test = self

        class Recogniser:
            def __init__(self, folder, threads):
                pass

            def __call__(self, audio, lang):
                return test.HEARD[test.asked.pop(0)]

        patch = mock.patch.object(eval_voice, "Recogniser", Recogniser)
        patch.start()
        self.addCleanup(patch.stop)

    def evaluate(self, *arguments):
        out = os.path.join(self.folder, "out.json")
        status, text, err = support.run(eval_voice.main, "--whisper-dir", self.folder, "--sentences", os.path.join(self.folder, "s.jsonl"), "--out", out, *arguments)
        with open(out, encoding="utf-8") as f:
            return status, text, json.load(f)

    def test_server(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.asked = list(self.HEARD)
        status, text, result = self.evaluate("--url", f"http://127.0.0.1:{server.server_port}/synthesize", "--voice", "v", "--seed", "5", "--api-key", "k")
        self.assertEqual(Server.requests[0], ({"text": "Yes it is.", "voice": "v", "format": "wav", "seed": 5}, "Bearer k"))
        self.assertEqual(status, 1)  # one sentence failed
        self.assertIn("boom", result["failures"][0]["error"])
        self.assertEqual({g: v["sentences"] for g, v in result["groups"].items()}, {"en": 1, "mixed": 1, "numbers": 1})
        self.assertEqual(result["groups"]["en"]["wer"], {"rate": 0.3333, "errors": 1, "reference": 3})
        self.assertEqual(result["groups"]["numbers"]["wer"]["errors"], 0)
        self.assertEqual(result["groups"]["mixed"]["mer"]["errors"], 0)
        self.assertEqual(result["groups"]["en"]["audio_seconds"], 0.5)
        self.assertIn("WER 33.3 %", text)

    def test_program(self):
        program = os.path.join(self.folder, "say")
        with open(program, "w", encoding="utf-8") as f:
            f.write(f"#!{sys.executable}\nimport sys, shutil\na = sys.argv\nassert a[1] == 'say' and a[5:] == ['--voice', 'v', '--seed', '0', '--model', 'm'], a\n"
                    f"shutil.copyfile({os.path.join(self.folder, 'x.wav')!r}, a[a.index('-o') + 1])\n")
        os.chmod(program, 0o755)
        with open(os.path.join(self.folder, "x.wav"), "wb") as f:
            f.write(wav(0.25))
        self.asked = ["Yes it is."]
        status, _, result = self.evaluate("--say", program, "--voice", "v", "--ids", "en-x-01", "--keep", os.path.join(self.folder, "keep"), "--say-args", "--model", "m")
        self.assertEqual((status, result["failures"]), (0, []))
        self.assertTrue(os.path.isfile(os.path.join(self.folder, "keep", "en-x-01.wav")))

    def test_nothing_works(self):
        status, text, result = self.evaluate("--wav-dir", self.folder)
        self.assertEqual((status, len(result["failures"])), (1, 3))

    def test_arguments(self):
        self.assertEqual(support.run(eval_voice.main, "--url", "http://x", "--whisper-dir", self.folder, "--groups", "fr")[0], 2)
        self.assertEqual(support.run(eval_voice.main, "--url", "http://x", "--whisper-dir", os.path.join(self.folder, "none"))[0], 2)
        self.assertEqual(support.run(eval_voice.main, "--whisper-dir", self.folder)[0], 2)


if __name__ == "__main__":
    unittest.main()
