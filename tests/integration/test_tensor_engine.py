"""The engine that GPUs run, on CPU tensors, behind the real server: two of them, with their layers in two pieces, against the CPU engine."""
import array
import json
import math
import socket
import subprocess
import unittest
from concurrent.futures import ThreadPoolExecutor

import server_process
from server_process import BINARY, ROOT, ServerProcess, eventually

server_process.ServerProcess.START_SECONDS = 300  # its warm-up speaks five sentences, some times slower than the CPU engine

EXACT = ["--latency", "exact"]
TENSORS = [*EXACT, "--device", "cpu-tensors", "--instances", "2", "--device-map", "0-3:cpu,4-7:cpu"]
FLOAT32 = ["--weights", "float32", "--kv", "float32", "--sound", "float32"]
TEXTS = ["你好。", "今天天气很好。", "Good morning.", "请把门关上。"]


def bodies():
    return [{"text": text, "seed": i, "format": "pcm"} for i, text in enumerate(TEXTS)]


def samples(pcm: bytes) -> array.array:
    return array.array("h", pcm)


class TensorEngineTest(unittest.TestCase):
    def speak(self, server, body):
        status, _, data = server.post("/synthesize", body, timeout=400)
        self.assertEqual(status, 200, data[:200])
        return data

    def test_it_says_what_the_cpu_engine_says(self):
        with ServerProcess(*EXACT, *FLOAT32) as server:
            expected = [self.speak(server, body) for body in bodies()]
            self.assertFalse(server.has_loaded("libtorch_cpu.so"), "the CPU engine does without it, and without its memory")
        with ServerProcess(*TENSORS) as server:
            self.assertIn("engine:  2 x cpu-tensors, float32 weights", server.log_text())
            self.assertEqual(server.metric("tts_build_info", device="2 x cpu-tensors"), 1)
            self.assertTrue(server.has_loaded("libtorch_cpu.so"))
            with ThreadPoolExecutor(len(TEXTS)) as pool:
                got = list(pool.map(lambda body: self.speak(server, body), bodies()))
            for text, one, other in zip(TEXTS, expected, got):
                a, b = samples(one), samples(other)
                self.assertEqual(len(a), len(b), text)
                signal = sum(x * x for x in a)
                noise = sum((x - y) ** 2 for x, y in zip(a, b))
                self.assertGreater(10 * math.log10(signal / max(noise, 1)), 40, text)
            eventually(lambda: server.metric("tts_active_rows") == 0, "both engines come to rest")

    def test_a_listener_who_leaves_frees_the_engine(self):
        with ServerProcess(*TENSORS) as server:
            body = json.dumps({"text": "这是一个比较长的句子，用来检查听众中途离开的情况。" * 40, "format": "pcm"}).encode()
            with socket.create_connection(("127.0.0.1", server.port), 60) as client:
                client.sendall(b"POST /synthesize_stream HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                self.assertTrue(client.recv(1))
                self.assertGreater(server.metric("tts_active_rows"), 0, "the listener left in the middle")
            eventually(lambda: server.metric("tts_active_rows") == 0, "the rows are free", 60)
            self.speak(server, bodies()[0])

    def test_devices_that_do_not_exist_are_named(self):
        for flags, said in ((["--device", "cuda:250"], "device 'cuda:250'"), (["--device", "gpu"], "expected auto, cpu, cuda, or a list"),
                            (["--device", "cpu", "--instances", "2"], "device_map and instances are for GPUs"),
                            (["--device", "cpu-tensors", "--device-map", "0-8:cpu"], "must name each of the layers 0-7 once")):
            done = subprocess.run([BINARY, "serve", "--model", ROOT / "models/nano", "--port", "0", "--admin-port", "0", *flags],
                                  capture_output=True, text=True, timeout=60)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
