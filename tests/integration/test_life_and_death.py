"""Start, drain and stop of the process, and the command line."""
import json
import signal
import socket
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path

from server_process import BINARY, ROOT, ServerProcess, eventually
from test_http import wav_samples

LONG = "今天天气很好，我们去公园散步吧。" * 12


def run(*arguments, **more):
    return subprocess.run([str(BINARY), *arguments], capture_output=True, timeout=120, cwd=ROOT, **more)


class LifeTest(unittest.TestCase):
    def test_sigterm_lets_a_running_stream_finish_and_exits_zero(self):
        with ServerProcess() as server:
            whole = server.post("/synthesize", {"text": LONG, "seed": 1, "format": "pcm"})[2]
            received, started = [], threading.Event()

            def listen():
                body = json.dumps({"text": LONG, "seed": 1, "format": "pcm"}).encode()
                with socket.create_connection(("127.0.0.1", server.port), timeout=60) as client:
                    client.sendall(b"POST /synthesize_stream HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                    while part := client.recv(4096):
                        received.append(part)
                        started.set()

            listener = threading.Thread(target=listen)
            listener.start()
            self.assertTrue(started.wait(60))
            server.process.send_signal(signal.SIGTERM)
            listener.join(60)
            self.assertEqual(server.process.wait(60), 0, server.log_text())
            self.assertEqual(b"".join(received).split(b"\r\n\r\n", 1)[1], whole)

    def test_sigterm_while_starting_never_opens_the_port(self):
        with tempfile.NamedTemporaryFile() as log:
            process = subprocess.Popen([str(BINARY), "serve", "--port", "0", "--admin-port", "0"], stdout=log, stderr=log, cwd=ROOT)
            try:
                eventually(lambda: b"chattts-server " in Path(log.name).read_bytes(), "the server says that it starts")
                process.send_signal(signal.SIGTERM)
                self.assertEqual(process.wait(60), 0)
            finally:
                process.kill()
            self.assertIn(b"stopped while starting", Path(log.name).read_bytes())
            self.assertNotIn(b"ready", Path(log.name).read_bytes())

    def test_an_ipv6_address_is_shown_as_a_url_can_hold_it(self):
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError:
            self.skipTest("no IPv6 loopback here")
        with ServerProcess("--host", "::1") as server:
            eventually(lambda: f"ready: http://[::1]:{server.port}/" in server.log_text(), "the address is in brackets", 5)

    def test_the_tightest_limits_let_the_server_start(self):
        with ServerProcess("--max-queue", "1", "--max-requests", "1", "--max-wait-ms", "1", "--max-text-chars", "5") as server:
            self.assertEqual(server.post("/synthesize", {"text": "hello"})[0], 200)
        with ServerProcess("--max-audio-seconds", "1") as server:
            self.assertEqual(server.post("/synthesize", {"text": LONG})[0], 413)

    def test_draining_is_visible_and_refuses_new_work(self):
        with ServerProcess() as server:
            body = json.dumps({"text": LONG * 10, "format": "pcm"}).encode()
            with socket.create_connection(("127.0.0.1", server.port), timeout=60) as slow:
                slow.sendall(b"POST /synthesize_stream HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                slow.recv(1000)
                server.process.send_signal(signal.SIGTERM)
                eventually(lambda: server.get("/readyz", admin=True)[0] == 503, "readiness turns 503 while draining")
                self.assertEqual(server.get("/livez", admin=True)[0], 200)
            self.assertEqual(server.process.wait(60), 0)

    def test_bad_flags_and_files_end_with_everything_that_is_wrong(self):
        with tempfile.TemporaryDirectory() as folder:
            config = Path(folder) / "bad.json"
            config.write_text('{"server": {"port": 99999999, "colour": 1}}', encoding="utf-8")
            result = run("check", "--config", str(config))
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(b"port", result.stderr + result.stdout)
            self.assertIn(b"colour", result.stderr + result.stdout)

    def test_a_damaged_model_is_refused_by_name(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "nano"
            subprocess.run(["cp", "-r", str(ROOT / "models/nano"), str(copy)], check=True)
            with open(copy / "vocos.safetensors", "r+b") as file:
                file.seek(1000)
                file.write(b"\xde\xad\xbe\xef")
            result = run("say", "hi", "-o", str(Path(folder) / "x.wav"), "--model", str(copy))
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(b"vocos.safetensors", result.stderr)


class SayTest(unittest.TestCase):
    def test_say_writes_a_file_from_argument_and_stdin(self):
        with tempfile.TemporaryDirectory() as folder:
            one, two = Path(folder) / "a.wav", Path(folder) / "b.wav"
            result = run("say", "你好，世界。", "-o", str(one), "--seed", "3")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(b"RTF", result.stderr)
            self.assertEqual(run("say", "-o", str(two), "--seed", "3", input="你好，世界。".encode()).returncode, 0)
            self.assertEqual(one.read_bytes(), two.read_bytes())
            self.assertGreater(len(wav_samples(one.read_bytes())), 12000)

    def test_say_spoils_no_file_when_it_has_nothing_to_write(self):
        with tempfile.TemporaryDirectory() as folder:
            old, new = Path(folder) / "old.wav", Path(folder) / "new.wav"
            old.write_bytes(b"x" * 1_000_000)
            for path in (old, new):
                result = run("say", "！！", "-o", str(path))
                self.assertEqual(result.returncode, 1)
                self.assertIn(b"nothing in the text can be spoken", result.stderr)
            empty = run("say", "", "-o", str(new), input=b"not this")
            self.assertEqual(empty.returncode, 1, "an empty argument is an empty text, not a reason to read standard input")
            self.assertEqual(old.stat().st_size, 1_000_000)
            self.assertFalse(new.exists())
            self.assertEqual(run("say", "hi", "-o", str(old)).returncode, 0)
            self.assertLess(old.stat().st_size, 100_000, "nothing of the old file is left behind")

    def test_help_and_check(self):
        help_text = run("--help").stdout.decode()
        for word in ("serve", "say", "check"):
            self.assertIn(word, help_text)
        result = run("check")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(b"max_batch", result.stdout)
        with open("/dev/full", "wb") as full:
            for arguments in (["check"], ["check", "--defaults"]):
                result = subprocess.run([str(BINARY), *arguments], stdout=full, stderr=subprocess.PIPE, timeout=30)
                self.assertEqual(result.returncode, 1)
                self.assertIn(b"cannot write", result.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
