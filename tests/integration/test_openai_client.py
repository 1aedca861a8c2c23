"""The official OpenAI Python client, unchanged, with its own voice and model names."""
import io
import unittest
import wave

import openai

from server_process import ServerProcess


class OpenAiClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = ServerProcess().__enter__()
        cls.client = openai.OpenAI(base_url=cls.server.url + "/v1", api_key="unused", max_retries=0)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.server.__exit__()

    def test_default_reply_is_mp3(self):
        reply = self.client.audio.speech.create(model="tts-1", voice="alloy", input="Hello, how are you?")
        self.assertEqual(reply.response.headers["content-type"], "audio/mpeg")
        data = reply.read()
        self.assertTrue(data[:3] == b"ID3" or data[0] == 0xFF and data[1] & 0xE0 == 0xE0)
        self.assertGreater(len(data), 5000)

    def test_every_openai_voice_and_model_name_speaks(self):
        for voice in ("alloy", "ash", "ballad", "coral", "echo", "fable", "nova", "onyx", "sage", "shimmer", "verse"):
            data = self.client.audio.speech.create(model="gpt-4o-mini-tts", voice=voice, input="Yes.", response_format="pcm").read()
            self.assertGreater(len(data), 4800, voice)

    def test_formats(self):
        magic = {"wav": b"RIFF", "flac": b"fLaC", "opus": b"OggS"}
        for name, head in magic.items():
            data = self.client.audio.speech.create(model="tts-1-hd", voice="nova", input="你好，世界。", response_format=name).read()
            self.assertEqual(data[:4], head, name)

    def test_streaming_response(self):
        with self.client.audio.speech.with_streaming_response.create(model="tts-1", voice="alloy", input="This is a longer sentence, so that it comes in parts.",
                                                                     response_format="wav") as reply:
            parts = list(reply.iter_bytes(4096))
        data = b"".join(parts)
        self.assertGreater(len(parts), 3)
        with wave.open(io.BytesIO(data)) as file:
            self.assertEqual((file.getframerate(), file.getnchannels(), file.getsampwidth()), (24000, 1, 2))

    def test_speed_and_instructions(self):
        def length(**more):
            return len(self.client.audio.speech.create(model="tts-1", voice="alloy", input="One two three four five.", response_format="pcm",
                                                       extra_body={"seed": 9}, **more).read())
        self.assertAlmostEqual(length(speed=2.0), length() / 2, delta=length() * 0.05)
        reply = self.client.audio.speech.create(model="tts-1", voice="alloy", input="Hi there.", instructions="Speak happily.")
        self.assertTrue(reply.read())

    def test_unknown_fields_are_named_not_refused(self):
        reply = self.client.audio.speech.with_raw_response.create(model="tts-1", voice="alloy", input="Hi there.", extra_body={"mood": "sunny"})
        self.assertIn("mood", reply.headers.get("warning", ""))

    def test_errors_become_the_clients_exceptions(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.audio.speech.create(model="tts-1", voice="alloy", input="")
        self.assertEqual(caught.exception.body["param"], "input")
        with self.assertRaises(openai.BadRequestError):
            self.client.audio.speech.create(model="tts-1", voice="nobody-by-this-name", input="Hi.")
        with self.assertRaises(openai.BadRequestError):
            self.client.audio.speech.create(model="tts-1", voice="alloy", input="Hi.", speed=4.0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
