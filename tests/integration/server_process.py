"""Starts the real server on free ports with the bundled voice, for the integration tests."""
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BINARY = Path(os.environ.get("CHATTTS_SERVER_BINARY", ROOT / "build/release/bin/chattts-server"))
os.environ["TTS_MODEL_DEVICE"] = "cpu"  # also where there is a GPU; a test that wants another says so with a flag


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class ServerProcess:
    """`with ServerProcess(...) as server:` runs until the block ends; the log is shown when a test fails to start it."""

    START_SECONDS = 60

    def __init__(self, *flags: str, model: str | Path = ROOT / "models/nano"):
        self.port, self.admin_port = free_port(), free_port()
        self.log = tempfile.NamedTemporaryFile("w+", prefix="chattts-server-", suffix=".log", delete=False)
        self.command = [str(BINARY), "serve", "--port", str(self.port), "--admin-port", str(self.admin_port), "--model", str(model), *flags]
        self.process: subprocess.Popen | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def admin_url(self) -> str:
        return f"http://127.0.0.1:{self.admin_port}"

    def __enter__(self) -> "ServerProcess":
        self.process = subprocess.Popen(self.command, stdout=self.log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + self.START_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"the server exited with {self.process.returncode} while starting:\n{self.log_text()}")
            if self.ready():
                return self
            time.sleep(0.05)
        self.process.kill()
        raise RuntimeError(f"the server was not ready after {self.START_SECONDS} s:\n{self.log_text()}")

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()
        os.unlink(self.log.name)

    def ready(self) -> bool:
        try:
            return urllib.request.urlopen(self.admin_url + "/readyz", timeout=2).status == 200
        except (urllib.error.URLError, OSError):
            return False

    def log_text(self) -> str:
        return Path(self.log.name).read_text(encoding="utf-8", errors="replace")

    def resident_bytes(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) * 1024

    def has_loaded(self, library: str) -> bool:
        return library in Path(f"/proc/{self.process.pid}/maps").read_text(encoding="ascii", errors="replace")

    def metric(self, name: str, **labels: str) -> float:
        """Sum of the samples of one metric whose labels include the given ones; 0 when there is none."""
        text = urllib.request.urlopen(self.admin_url + "/metrics", timeout=5).read().decode()
        total = 0.0
        for line in text.splitlines():
            if line.startswith(name) and line[len(name)] in "{ " and all(f'{k}="{v}"' in line for k, v in labels.items()):
                total += float(line.rsplit(" ", 1)[1])
        return total

    def post(self, path: str, body, headers: dict | None = None, timeout: float = 120):
        """(status, headers, bytes) of a POST; `body` is sent as JSON unless it is bytes already."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json", **(headers or {})})
        try:
            with urllib.request.urlopen(request, timeout=timeout) as reply:
                return reply.status, reply.headers, reply.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read()

    def get(self, path: str, admin: bool = False):
        try:
            with urllib.request.urlopen((self.admin_url if admin else self.url) + path, timeout=10) as reply:
                return reply.status, reply.headers, reply.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read()


def eventually(condition, what: str, seconds: float = 20.0):
    """Waits for another process to reach a state; fails with `what` when it does not."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"did not happen within {seconds} s: {what}")
        time.sleep(0.02)
