"""A client of the streaming protocol that goes on after broken links, over frames made by hand."""
import struct

from raw_websocket import BINARY, CLOSE, PING, PONG, TEXT, Gone, RawWebSocket, frame
import json


class StreamSession:
    """`patience`: seconds without a byte after which a link counts as broken."""

    def __init__(self, port: int, patience: float = 20.0):
        self.port, self.patience = port, patience
        self.messages: list[dict] = []
        self.audio: dict[int, bytearray] = {}
        self.seq = 0
        self.reconnects = 0
        self.asked: dict[str, tuple[str, dict]] = {}  # text and options of contexts that are not over
        self.link: RawWebSocket | None = None
        self.connect()
        self.ready = self.messages[-1]

    def close(self):
        try:
            self.link.send(frame(CLOSE, struct.pack(">H", 1000)))
            self.link.wait_for_close()
        except Gone:
            pass
        self.link.socket.close()

    def connect(self):
        while True:
            try:
                self.link = RawWebSocket(self.port)
                self.link.socket.settimeout(self.patience)
                self.messages.append(self.link.receive_json("ready"))
                return
            except (Gone, TimeoutError):
                self.link.socket.close()

    def resume(self):
        while True:
            self.reconnects += 1
            self.link.socket.close()
            self.connect()
            try:
                self.link.send_json({"type": "resume", "session": self.ready["session"], "token": self.ready["resume_token"], "seq": self.seq})
                answer = self.link.receive_json()
                if answer["type"] != "resumed":
                    raise AssertionError(f"not resumed but {answer}")
                if answer["from"] != self.seq + 1:
                    raise AssertionError(f"resumed from {answer['from']} after frame {self.seq}")
                self.send_what_is_missing({known["context"]: known for known in answer["contexts"]})
                return
            except (Gone, TimeoutError):
                continue

    def send_what_is_missing(self, arrived: dict):
        for name, (text, options) in self.asked.items():
            known = arrived.get(name)
            if known is None:
                self.link.send_json({"type": "start", "context": name, **options})
            rest = text[known["characters"]:] if known else text
            if rest:
                self.link.send_json({"type": "text", "context": name, "text": rest})
            if not known or not known["ended"]:
                self.link.send_json({"type": "end", "context": name})

    def send(self, **message):
        """Not sent again after a broken link: for use while the link is whole."""
        self.link.send_json(message)

    def step(self) -> dict | None:
        """The next message; None = it was a frame of audio, or the link was mended."""
        try:
            opcode, payload = self.link.receive()
        except (Gone, TimeoutError):
            self.resume()
            return None
        if opcode == TEXT:
            self.messages.append(json.loads(payload))
            if self.messages[-1]["type"] in ("done", "cancelled"):
                self.asked.pop(self.messages[-1]["context"], None)
            return self.messages[-1]
        if opcode == BINARY:
            version, flags, context, seq, first_sample = struct.unpack("<BBHIQ", payload[:16])
            if version != 1 or seq != self.seq + 1:
                raise AssertionError(f"frame {seq} of version {version} after frame {self.seq}")
            self.seq = seq
            self.audio.setdefault(context, bytearray()).extend(payload[16:])
        elif opcode == PING:
            self.link.send(frame(PONG, payload))
        elif opcode == CLOSE:
            raise AssertionError(f"the server closed with {RawWebSocket.close_code(payload)}")
        return None

    def until(self, kind: str, context: str | None = None) -> dict:
        while True:
            message = self.step()
            if message is None:
                continue
            if message["type"] == "error" and kind != "error":
                raise AssertionError(f"instead of {kind}: {message}")
            if message["type"] == kind and (context is None or message.get("context") == context):
                return message

    def speak(self, context: str, text: str, **options) -> dict:
        """Starts a context and gives it its text; until `started`. Over a link that breaks, too."""
        self.asked[context] = (text, options)
        try:
            self.send_what_is_missing({name: {"characters": len(text), "ended": True} for name, (text, _) in self.asked.items() if name != context})
        except Gone:
            self.resume()
        return self.until("started", context)
