"""Many requests share the engine: each gets exactly the audio it would have had alone, and the process stays small."""
import unittest
from concurrent.futures import ThreadPoolExecutor

from server_process import ServerProcess, eventually

TEXTS = ["你好。", "今天天气很好，我们去公园散步吧。", "Good morning, how are you today?", "请把门关上，谢谢你的帮助。", "I would like a cup of tea, please.",
         "这是一个比较长的句子，用来检查很多请求一起来的时候，每一个请求都拿到自己的声音。", "Yes.", "The quick brown fox jumps over the lazy dog."]
LIMIT_BYTES = 400 * 1024 * 1024


class ManyAtOnceTest(unittest.TestCase):
    def test_thirty_two_requests_equal_themselves_alone(self):
        with ServerProcess() as server:
            bodies = [{"text": TEXTS[i % len(TEXTS)], "seed": i, "format": "pcm"} for i in range(32)]

            def speak(body):
                status, _, data = server.post("/synthesize", body, timeout=300)
                self.assertEqual(status, 200, data[:200])
                return data

            alone = [speak(body) for body in bodies[:16]]
            with ThreadPoolExecutor(32) as pool:
                together = list(pool.map(speak, bodies))
            for i, (one, other) in enumerate(zip(alone, together)):
                self.assertEqual(one, other, f"request {i} sounds different in company")
            self.assertEqual(len(set(together)), 32)
            self.assertLess(server.resident_bytes(), LIMIT_BYTES)
            self.assertEqual(server.metric("tts_queue_length"), 0)

    def test_a_full_queue_answers_429_and_recovers(self):
        with ServerProcess("--max-batch", "1", "--max-queue", "1") as server:
            with ThreadPoolExecutor(12) as pool:
                replies = list(pool.map(lambda i: server.post("/synthesize", {"text": TEXTS[5], "seed": i, "format": "pcm"}, timeout=300), range(12)))
            statuses = [status for status, _, _ in replies]
            self.assertIn(429, statuses)
            self.assertIn(200, statuses)
            self.assertLessEqual(set(statuses), {200, 429})
            refused = next(headers for status, headers, _ in replies if status == 429)
            self.assertGreaterEqual(int(refused["Retry-After"]), 1)
            self.assertGreaterEqual(server.metric("tts_rejected_total"), 1)
            eventually(lambda: server.metric("tts_active_rows") == 0, "the engine comes to rest")
            self.assertEqual(server.post("/synthesize", {"text": TEXTS[0]})[0], 200)


if __name__ == "__main__":
    unittest.main(verbosity=2)
