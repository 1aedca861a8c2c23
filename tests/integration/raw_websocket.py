"""A WebSocket client that sends exactly the bytes it is told to: RFC 6455 by hand, for tests that break it."""
import base64
import hashlib
import json
import os
import socket
import struct

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TIMEOUT = 20.0  # turns a hang into a failure


class Gone(Exception):
    """The peer ended the connection."""


def frame(opcode: int, payload: bytes = b"", *, fin: bool = True, rsv: int = 0, mask: bytes | None = b"\x12\x34\x56\x78",
          length_bytes: int | None = None, length: int | None = None) -> bytes:
    """length_bytes 0, 2 or 8 = how the length is written, whether or not that is the shortest way; length = what is claimed."""
    claimed = len(payload) if length is None else length
    if length_bytes is None:
        length_bytes = 0 if claimed < 126 else 2 if claimed < 65536 else 8
    head = bytes([(0x80 if fin else 0) | rsv << 4 | opcode])
    flag = 0x80 if mask is not None else 0
    if length_bytes == 0:
        head += bytes([flag | claimed])
    elif length_bytes == 2:
        head += bytes([flag | 126]) + struct.pack(">H", claimed)
    else:
        head += bytes([flag | 127]) + struct.pack(">Q", claimed)
    if mask is None:
        return head + payload
    return head + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))


class RawWebSocket:
    """`handshake` False: only the TCP connection. Frames of the server come out of receive() as (opcode, payload)."""

    def __init__(self, port: int, *, handshake: bool = True, path: str = "/v1/stream", host: str = "127.0.0.1"):
        self.port, self.path = port, path
        self.socket = socket.create_connection((host, port), timeout=TIMEOUT)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""
        if handshake:
            status, headers, _ = self.upgrade()
            if status != 101:
                raise AssertionError(f"the handshake was answered {status}")
            self.headers = headers

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data: bytes):
        try:
            self.socket.sendall(data)
        except OSError as error:
            raise Gone(str(error)) from error

    def request(self, *, headers: dict | None = None, method: str = "GET", version: str = "HTTP/1.1", without: tuple = ()) -> tuple[bytes, str]:
        """The upgrade request and the key in it; `headers` override, `without` leaves out."""
        key = base64.b64encode(os.urandom(16)).decode()
        fields = {"Host": f"127.0.0.1:{self.port}", "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": key,
                  "Sec-WebSocket-Version": "13", **(headers or {})}
        lines = [f"{method} {self.path} {version}"] + [f"{name}: {value}" for name, value in fields.items() if name not in without]
        return ("\r\n".join(lines) + "\r\n\r\n").encode(), key

    def upgrade(self, **changes) -> tuple[int, dict, bytes]:
        request, key = self.request(**changes)
        self.send(request)
        status, headers, body = self.read_reply()
        if status == 101:
            expected = base64.b64encode(hashlib.sha1(key.encode() + GUID).digest()).decode()
            assert headers["sec-websocket-accept"] == expected, "the accept value is wrong"
        return status, headers, body

    def read_reply(self) -> tuple[int, dict, bytes]:
        while b"\r\n\r\n" not in self.buffer:
            self.fill()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        lines = head.decode().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:])}
        status = int(lines[0].split(" ")[1])
        length = int(headers.get("content-length", 0)) if status != 101 else 0
        while len(self.buffer) < length:
            self.fill()
        body, self.buffer = self.buffer[:length], self.buffer[length:]
        return status, headers, body

    def fill(self):
        try:
            data = self.socket.recv(65536)
        except (ConnectionResetError, BrokenPipeError) as error:
            raise Gone(str(error)) from error
        if not data:
            raise Gone("end of file")
        self.buffer += data

    def take(self, count: int) -> bytes:
        while len(self.buffer) < count:
            self.fill()
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def receive(self) -> tuple[int, bytes]:
        first, second = self.take(2)
        assert first & 0x70 == 0, "the server set a reserved bit"
        assert second & 0x80 == 0, "the server masked a frame"
        assert first & 0x80, "the server fragments nothing"
        length = second & 0x7F
        if length == 126:
            length = struct.unpack(">H", self.take(2))[0]
        elif length == 127:
            length = struct.unpack(">Q", self.take(8))[0]
        return first & 0x0F, self.take(length)

    def receive_json(self, kind: str | None = None) -> dict:
        """The next text message, or the next of that type."""
        while True:
            opcode, payload = self.receive()
            if opcode == CLOSE:
                raise Gone(f"closed with {self.close_code(payload)}")
            if opcode == TEXT and (kind is None or json.loads(payload)["type"] == kind):
                return json.loads(payload)

    def send_json(self, message: dict):
        self.send(frame(TEXT, json.dumps(message, ensure_ascii=False).encode()))

    def wait_for_close(self) -> int | None:
        """The code with which the server closes; None when the connection just ends."""
        try:
            while True:
                opcode, payload = self.receive()
                if opcode == CLOSE:
                    return self.close_code(payload)
        except Gone:
            return None

    @staticmethod
    def close_code(payload: bytes) -> int:
        return struct.unpack(">H", payload[:2])[0] if len(payload) >= 2 else 1005
