"""Our WebSocket against RFC 6455, section by section, with bytes made by hand."""
import json
import struct
import unittest

from raw_websocket import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, Gone, RawWebSocket, frame
from server_process import ServerProcess

ASK = json.dumps({"type": "flush", "context": "nobody"}).encode()  # answered by an error, which proves that the socket lives
PROTOCOL_ERROR, BAD_DATA, TOO_BIG, NO_BINARY = 1002, 1007, 1009, 1003
server: ServerProcess


def setUpModule():
    global server
    server = ServerProcess("--log-level", "warning", "--stream-max-wrong-messages", "1000000").__enter__()


def tearDownModule():
    server.__exit__()


class Case(unittest.TestCase):
    def connect(self) -> RawWebSocket:
        client = RawWebSocket(server.port)
        self.addCleanup(client.socket.close)
        self.assertEqual(client.receive_json()["type"], "ready")
        return client

    def assert_alive(self, client: RawWebSocket):
        client.send(frame(TEXT, ASK))
        self.assertEqual(client.receive_json("error")["code"], "unknown_context")

    def assert_closes(self, data: bytes, *codes: int):
        """The server closes with one of the codes, or ends the connection at once, which section 7.1.7 allows."""
        client = self.connect()
        try:
            client.send(data)
            code = client.wait_for_close()
        except Gone:
            code = None
        self.assertIn(code, (*codes, None))
        self.assert_server_lives()

    def assert_server_lives(self):
        self.assert_alive(self.connect())


class Section4Handshake(Case):
    def upgrade(self, expected: int, **changes) -> dict:
        with RawWebSocket(server.port, handshake=False) as client:
            status, headers, body = client.upgrade(**changes)
            self.assertEqual(status, expected, body)
            return headers

    def test_plain(self):
        headers = self.upgrade(101)
        self.assertEqual(headers["upgrade"].lower(), "websocket")
        self.assertEqual(headers["connection"].lower(), "upgrade")
        self.assertNotIn("sec-websocket-protocol", headers)
        self.assertIn("x-request-id", headers)

    def test_our_protocol_is_chosen(self):
        for offer in ("tts.v1", "other, tts.v1", "tts.v1,other"):
            with self.subTest(offer):
                self.assertEqual(self.upgrade(101, headers={"Sec-WebSocket-Protocol": offer})["sec-websocket-protocol"], "tts.v1")

    def test_other_protocols_are_refused(self):
        for offer in ("other", "tts.v2", "TTS.V1"):
            with self.subTest(offer):
                self.upgrade(400, headers={"Sec-WebSocket-Protocol": offer})

    def test_compression_is_declined(self):
        headers = self.upgrade(101, headers={"Sec-WebSocket-Extensions": "permessage-deflate; client_max_window_bits"})
        self.assertNotIn("sec-websocket-extensions", headers)

    def test_names_are_case_insensitive(self):
        self.upgrade(101, headers={"Upgrade": "WebSocket", "Connection": "keep-alive, UPGRADE"})

    def test_missing_parts(self):
        for name in ("Upgrade", "Connection", "Sec-WebSocket-Key", "Sec-WebSocket-Version"):
            with self.subTest(name):
                self.assertIn(self.upgrade_status(without=(name,)), (400, 426))

    def upgrade_status(self, **changes) -> int:
        with RawWebSocket(server.port, handshake=False) as client:
            return client.upgrade(**changes)[0]

    def test_wrong_version(self):
        for version in ("8", "12", "14", "x", ""):
            with self.subTest(version):
                self.assertIn(self.upgrade_status(headers={"Sec-WebSocket-Version": version}), (400, 426))

    def test_wrong_key(self):
        for key in ("", "short", "!" * 24):
            with self.subTest(key):
                self.assertIn(self.upgrade_status(headers={"Sec-WebSocket-Key": key}), (400,))

    def test_wrong_method(self):
        for method in ("POST", "HEAD", "PUT"):
            with self.subTest(method):
                with RawWebSocket(server.port, handshake=False) as client:
                    client.send(client.request(method=method, headers={"Content-Length": "0"})[0])
                    head = b""
                    while b"\r\n\r\n" not in head:
                        head += client.socket.recv(4096)
                    self.assertIn(int(head.split(b" ")[1]), (400, 405))

    def test_http_1_0(self):
        self.assertIn(self.upgrade_status(version="HTTP/1.0"), (400, 426))

    def test_foreign_origin(self):
        self.upgrade(403, headers={"Origin": "https://elsewhere.example"})
        self.upgrade(403, headers={"Origin": "null"})
        self.upgrade(101, headers={"Origin": f"http://127.0.0.1:{server.port}"})

    def test_plain_get_is_told_what_this_is(self):
        status, _, body = server.get("/v1/stream")
        self.assertEqual(status, 400)
        self.assertIn("WebSocket", json.loads(body)["error"]["message"])

    def test_the_query_is_ignored(self):
        with RawWebSocket(server.port, path="/v1/stream?resume_seq=17&x=%zz") as client:
            self.assertEqual(client.receive_json()["type"], "ready")

    def test_a_frame_before_the_answer(self):
        with RawWebSocket(server.port, handshake=False) as client:
            client.send(client.request()[0] + frame(TEXT, ASK))
            status, _, _ = client.read_reply()
            self.assertIn(status, (101, 400))


class Section5Framing(Case):
    def test_lengths_at_the_edges(self):
        for size in (2, 124, 125, 126, 127, 128, 1000, 4096, 65534, 65535, 65536):
            with self.subTest(size):
                client = self.connect()
                client.send(frame(TEXT, b"{}" + b" " * (size - 2)))
                self.assertEqual(client.receive_json("error")["code"], "invalid_message")
                self.assert_alive(client)

    def test_empty_text(self):
        client = self.connect()
        client.send(frame(TEXT, b""))
        self.assertEqual(client.receive_json("error")["code"], "invalid_message")

    def test_too_big(self):
        self.assert_closes(frame(TEXT, b" " * 65537), TOO_BIG)

    def test_too_big_by_claim(self):
        for claim in (65537, 1 << 20, 1 << 40, (1 << 63) - 1):
            with self.subTest(claim):
                self.assert_closes(frame(TEXT, b"x", length=claim, length_bytes=8), TOO_BIG)

    def test_too_big_in_fragments(self):
        self.assert_closes(frame(TEXT, b" " * 40000, fin=False) + frame(CONTINUATION, b" " * 40000), TOO_BIG)

    def test_length_with_the_highest_bit(self):
        self.assert_closes(frame(TEXT, b"x", length=1 << 63, length_bytes=8), PROTOCOL_ERROR, TOO_BIG)

    def test_length_not_in_the_shortest_way(self):
        for length_bytes in (2, 8):
            with self.subTest(length_bytes):
                self.assert_closes(frame(TEXT, b"{}", length_bytes=length_bytes), PROTOCOL_ERROR)
        self.assert_closes(frame(TEXT, b" " * 300, length_bytes=8), PROTOCOL_ERROR)

    def test_without_a_mask(self):
        for opcode in (TEXT, BINARY, PING, CLOSE):
            with self.subTest(opcode):
                self.assert_closes(frame(opcode, b"", mask=None), PROTOCOL_ERROR)

    def test_any_mask(self):
        for mask in (b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x00\xff\x00\x01"):
            with self.subTest(mask):
                client = self.connect()
                client.send(frame(TEXT, ASK, mask=mask))
                self.assertEqual(client.receive_json("error")["code"], "unknown_context")

    def test_reserved_bits(self):
        for rsv in range(1, 8):
            for opcode in (TEXT, PING):
                with self.subTest(rsv=rsv, opcode=opcode):
                    self.assert_closes(frame(opcode, b"", rsv=rsv), PROTOCOL_ERROR)

    def test_reserved_opcodes(self):
        for opcode in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15):
            with self.subTest(opcode):
                self.assert_closes(frame(opcode, b""), PROTOCOL_ERROR)

    def test_byte_by_byte(self):
        client = self.connect()
        for byte in frame(TEXT, ASK):
            client.send(bytes([byte]))
        self.assertEqual(client.receive_json("error")["code"], "unknown_context")

    def test_many_in_one_segment(self):
        client = self.connect()
        client.send(frame(TEXT, ASK) * 50)
        for _ in range(50):
            self.assertEqual(client.receive_json("error")["code"], "unknown_context")

    def test_binary_is_not_taken(self):
        self.assert_closes(frame(BINARY, b"\x01\x02"), NO_BINARY)
        self.assert_closes(frame(BINARY, b""), NO_BINARY)


class Section54Fragmentation(Case):
    def test_pieces_of_every_size(self):
        for size in (1, 2, 7, 20):
            with self.subTest(size):
                client = self.connect()
                parts = [ASK[i:i + size] for i in range(0, len(ASK), size)]
                for i, part in enumerate(parts):
                    client.send(frame(TEXT if i == 0 else CONTINUATION, part, fin=i == len(parts) - 1))
                self.assertEqual(client.receive_json("error")["code"], "unknown_context")

    def test_empty_pieces(self):
        client = self.connect()
        client.send(frame(TEXT, b"", fin=False) + frame(CONTINUATION, ASK, fin=False) + frame(CONTINUATION, b""))
        self.assertEqual(client.receive_json("error")["code"], "unknown_context")

    def test_control_frames_between(self):
        client = self.connect()
        client.send(frame(TEXT, ASK[:9], fin=False) + frame(PING, b"between") + frame(PONG, b"") + frame(CONTINUATION, ASK[9:]))
        self.assertEqual(client.receive(), (PONG, b"between"))
        self.assertEqual(client.receive_json("error")["code"], "unknown_context")

    def test_control_frames_in_pieces(self):
        for opcode in (PING, PONG, CLOSE):
            with self.subTest(opcode):
                self.assert_closes(frame(opcode, b"", fin=False), PROTOCOL_ERROR)

    def test_a_continuation_of_nothing(self):
        for fin in (True, False):
            with self.subTest(fin):
                self.assert_closes(frame(CONTINUATION, b"x", fin=fin), PROTOCOL_ERROR)

    def test_a_message_within_a_message(self):
        for opcode in (TEXT, BINARY):
            with self.subTest(opcode):
                self.assert_closes(frame(TEXT, b"{", fin=False) + frame(opcode, b"}"), PROTOCOL_ERROR)

    def test_a_continuation_after_the_end(self):
        self.assert_closes(frame(TEXT, b"{", fin=False) + frame(CONTINUATION, b"}") + frame(CONTINUATION, b"x"), PROTOCOL_ERROR)


class Section55Control(Case):
    def test_pings_are_answered_with_their_payload(self):
        for payload in (b"", b"x", bytes(range(125))):
            with self.subTest(len(payload)):
                client = self.connect()
                client.send(frame(PING, payload))
                self.assertEqual(client.receive(), (PONG, payload))

    def test_many_pings(self):
        client = self.connect()
        for i in range(100):
            client.send(frame(PING, str(i).encode()))
        last = b""
        while last != b"99":  # section 5.5.3: the newest may be answered alone
            opcode, last = client.receive()
            self.assertEqual(opcode, PONG)
        self.assert_alive(client)

    def test_pongs_that_nobody_asked_for(self):
        client = self.connect()
        client.send(frame(PONG, b"hello") + frame(PONG, b""))
        self.assert_alive(client)

    def test_too_long(self):
        for opcode in (PING, PONG, CLOSE):
            with self.subTest(opcode):
                self.assert_closes(frame(opcode, b"\x03\xe8" + b"x" * 124), PROTOCOL_ERROR)


class Section7Closing(Case):
    def close_with(self, payload: bytes) -> int | None:
        client = self.connect()
        client.send(frame(CLOSE, payload))
        return client.wait_for_close()

    def test_codes_that_may_be_sent(self):
        for code in (1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999):
            with self.subTest(code):
                self.assertEqual(self.close_with(struct.pack(">H", code) + b"why"), code)

    def test_codes_that_may_not(self):
        for code in (0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999):
            with self.subTest(code):
                self.assertIn(self.close_with(struct.pack(">H", code)), (PROTOCOL_ERROR, None))

    def test_codes_that_nobody_has_defined(self):
        for code in (5000, 65535):
            with self.subTest(code):
                self.assertIn(self.close_with(struct.pack(">H", code)), (code, PROTOCOL_ERROR, None))

    def test_without_a_code(self):
        self.assertIn(self.close_with(b""), (1005, 1000))

    def test_half_a_code(self):
        self.assertIn(self.close_with(b"\x03"), (PROTOCOL_ERROR, None))

    def test_a_reason_that_is_not_utf8(self):
        self.assertIn(self.close_with(struct.pack(">H", 1000) + b"\xff\xfe"), (PROTOCOL_ERROR, BAD_DATA, None))

    def test_nothing_is_read_after_a_close(self):
        client = self.connect()
        client.send(frame(CLOSE, struct.pack(">H", 1000)) + frame(TEXT, ASK))
        self.assertEqual(client.wait_for_close(), 1000)
        with self.assertRaises(Gone):
            client.receive()

    def test_the_server_ends_the_connection_after_the_handshake(self):
        client = self.connect()
        client.send(frame(CLOSE, struct.pack(">H", 1000)))
        client.wait_for_close()
        with self.assertRaises(Gone):
            client.fill()

    def test_a_client_that_just_vanishes(self):
        for data in (b"", frame(TEXT, ASK)[:3], frame(TEXT, ASK, fin=False)):
            with self.subTest(len(data)):
                client = self.connect()
                client.send(data)
                client.socket.close()
        self.assert_server_lives()


class Section8Utf8(Case):
    GOOD = ("", "a", "é", "€", "中文", "𝄞", "\ud7ff", "\ue000", "\ufffd", "\U0010ffff")
    BAD = (b"\x80", b"\xbf", b"\xc0\xaf", b"\xc1\x81", b"\xc3", b"\xc3\x28", b"\xe0\x80\xaf", b"\xe2\x82", b"\xed\xa0\x80", b"\xed\xbf\xbf",
           b"\xf0\x80\x80\xaf", b"\xf0\x9d\x84", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xfe", b"\xff")

    def test_good(self):
        client = self.connect()
        for text in self.GOOD:
            with self.subTest(text):
                client.send(frame(TEXT, json.dumps({"type": "flush", "context": "c" + text}, ensure_ascii=False).encode()))
                self.assertEqual(client.receive_json("error")["context"], "c" + text)

    def test_bad(self):
        for data in self.BAD:
            with self.subTest(data):
                self.assert_closes(frame(TEXT, b'{"type":"' + data + b'"}'), BAD_DATA)

    def test_a_character_over_two_pieces(self):
        client = self.connect()
        message = json.dumps({"type": "flush", "context": "中"}, ensure_ascii=False).encode()
        at = message.index("中".encode()) + 1
        client.send(frame(TEXT, message[:at], fin=False) + frame(CONTINUATION, message[at:]))
        self.assertEqual(client.receive_json("error")["context"], "中")

    def test_a_character_that_never_ends(self):
        """Beast waits for the rest of the character though the message has ended, so it is the pings that find out."""
        with ServerProcess("--log-level", "warning", "--stream-ping-interval-ms", "300") as impatient, RawWebSocket(impatient.port) as client:
            client.send(frame(TEXT, b"{\xe4\xb8", fin=False) + frame(CONTINUATION, b""))
            self.assertIn(client.wait_for_close(), (BAD_DATA, None))

    def test_bad_in_the_second_piece(self):
        self.assert_closes(frame(TEXT, b"{", fin=False) + frame(CONTINUATION, b"\xff"), BAD_DATA)


class Messages(Case):
    def test_what_is_no_message_of_ours_is_named_and_the_socket_lives(self):
        client = self.connect()
        for text in ("", "nonsense", "[]", "1", "null", "{", "{}", '{"type":1}', '{"type":"sing"}', '{"type":"start"}', '{"type":"start","context":""}',
                     '{"type":"start","context":"a","type":"end"}', '{"type":"start","context":"a","tempo":2}', '{"type":"start","context":"a","speed":9}',
                     '{"type":"start","context":"a","voice":"nobody"}', '{"type":"start","context":"a","sample_rate":11025}',
                     '{"type":"text","context":"a"}', '{"type":"ack"}', '{"type":"ack","seq":-1}', '{"type":"ack","seq":1e99}',
                     '{"type":"text","context":"a","text":"\\ud800"}', '{"type":"text","context":"a","text":"\\u0000"}', "[" * 5000, '{"a":' * 5000):
            with self.subTest(text[:60]):
                client.send(frame(TEXT, text.encode()))
                error = client.receive_json("error")
                self.assertTrue(error["message"])
        self.assert_alive(client)


if __name__ == "__main__":
    unittest.main()
