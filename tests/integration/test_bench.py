"""`chattts-server bench`: measures a server of its own or a running one, and says truthfully how that one fared."""
import json
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from server_process import BINARY, ROOT, ServerProcess

LEVEL_KEYS = {"name", "kind", "passed", "window_s", "asked", "completed", "refused", "failed", "unfinished", "first_byte_s", "first_audio_s", "gap_s",
              "rtf", "underruns", "audio_s_per_s", "client_cores"}


class BenchTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tts-bench-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def bench(self, *flags, status=0):
        output = self.folder / "out.json"
        command = [str(BINARY), "bench", "-o", str(output), *flags]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return json.loads(output.read_text(encoding="utf-8")), done.stdout

    def own(self, *flags, **keywords):
        return self.bench("--model", str(ROOT / "models/nano"), *flags, **keywords)

    def test_levels_of_a_server_of_its_own(self):
        plot = self.folder / "plot.svg"
        report, shown = self.own("--concurrency", "1,2", "--load", "50", "--requests", "6", "--lengths", "10,40", "--plot", str(plot))
        self.assertEqual([level["name"] for level in report["levels"]], ["closed 1", "closed 2", "open 50 %"])
        for level in report["levels"]:
            self.assertLessEqual(LEVEL_KEYS, level.keys())
            self.assertEqual(level["completed"], 6)
            self.assertEqual(level["asked"], 6)
            first_byte, first_audio = level["first_byte_s"], level["first_audio_s"]
            self.assertEqual(first_byte["count"], 6)
            self.assertTrue(0 < first_byte["p50"] <= first_byte["p95"] <= first_byte["p99"] <= first_byte["max"])
            self.assertGreaterEqual(first_audio["p50"], first_byte["p50"])
            self.assertGreater(level["audio_s_per_s"], 0)
            self.assertGreater(level["server_cores"], 0)
            self.assertGreater(level["engine"]["steps_per_s"], 0)
            self.assertEqual(level["passed"], level["underruns"]["count"] == 0)
            self.assertIn(level["name"], shown)
        self.assertEqual(report["model"]["id"], "nano")
        self.assertEqual(report["target"], "in this process")
        self.assertIn("weights", report["precision"])
        self.assertGreater(report["memory_mib"]["resident"], 50)
        self.assertTrue(report["machine"]["processor"] and report["version"] and report["date"])
        self.assertEqual(ElementTree.parse(plot).getroot().tag, "{http://www.w3.org/2000/svg}svg")

    def test_a_running_server_and_forced_lengths(self):
        with ServerProcess() as server:
            texts = self.folder / "texts.jsonl"
            texts.write_text('{"text": "Good morning.", "lang": "en"}\n你好，早上好。\n', encoding="utf-8")
            for audio_format in ("pcm", "wav", "opus"):
                report, _ = self.bench("--url", server.url, "--admin-url", server.admin_url, "--concurrency", "2", "--load", "0", "--requests", "4",
                                       "--texts", str(texts), "--steps", "47", "--format", audio_format)
                (level,) = report["levels"]
                self.assertEqual(level["completed"], 4)
                self.assertAlmostEqual(level["audio_s_per_request"], (2 * 47 - 1) * 256 / 24000, delta=0.001, msg=audio_format)
                self.assertNotIn("server_cores", level)
                self.assertGreater(level["engine"]["steps_per_s"], 0)
            self.assertEqual(report["target"], server.url)
            self.assertEqual(report["workload"]["steps"], 47)

    def test_refusals_are_counted_with_their_advice(self):
        report, _ = self.own("--max-requests", "1", "--concurrency", "3", "--load", "0", "--requests", "9", "--lengths", "120")
        (level,) = report["levels"]
        self.assertGreater(level["refused"], 0)
        self.assertEqual(level["completed"] + level["refused"], 9)
        self.assertGreater(level["retry_after_s"]["p50"], 0)
        self.assertFalse(level["passed"])
        self.assertIn("refused", level["problem"])
        self.assertEqual(report["settings"]["synthesis.max_requests"], 1)

    def test_capacity(self):
        report, shown = self.own("--find-capacity", "--max-streams", "2", "--seconds", "1", "--max-wait", "1", "--lengths", "10")
        capacity = report["capacity"]
        self.assertIn(capacity["streams"], (0, 1, 2))  # how many depends on the machine
        self.assertIn(f"{capacity['streams']} streams at once", shown)
        last = capacity["probes"][-1]
        self.assertEqual((last["streams"], last["passed"]), (capacity["streams"] or 1, capacity["streams"] > 0))
        self.assertEqual(report["levels"], [])

    def test_what_is_wrong_is_said(self):
        def stderr(*flags):
            done = subprocess.run([str(BINARY), "bench", *flags], capture_output=True, text=True, timeout=60, check=False)
            self.assertNotEqual(done.returncode, 0)
            return done.stderr

        self.assertIn("no answer from http://127.0.0.1:1", stderr("--url", "http://127.0.0.1:1"))
        self.assertIn("http://host:port", stderr("--url", "localhost:8080"))
        self.assertIn("cannot write", stderr("--url", "http://127.0.0.1:1", "-o", "/nonexistent/out.json"))
        self.assertIn("--concurrency", stderr("--concurrency", "0"))
        self.assertIn("mp3", stderr("--format", "mp3"))
        with ServerProcess() as server:
            self.assertIn("voice", stderr("--url", server.url, "--voice", "nobody"))
            self.assertIn("JSON object", stderr("--url", server.url, "--fields", "[1]"))
            self.assertIn("speaks", stderr("--url", server.url, "--languages", "fr"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
