"""A TCP proxy that breaks connections: after a random number of bytes to the client, in every way in which links break."""
import random
import select
import socket
import struct
import threading

FAULTS = ("reset", "close", "half_open", "stall")


class FaultProxy:
    """Forwards to a port of this machine, in pieces cut anywhere. `budget(random)` = bytes to the client before the fault, None = no fault.

    reset, close: both sides at once. half_open: only the client sees the end; the server keeps the connection. stall: nothing is
    forwarded any longer and nobody sees an end; the client must give up by itself.
    """

    def __init__(self, upstream: int, budget, faults=FAULTS, seed: int = 1):
        self.upstream, self.budget, self.faults = upstream, budget, faults
        self.random = random.Random(seed)
        self.broken: dict[str, int] = {fault: 0 for fault in faults}
        self.kept: list[socket.socket] = []  # sides that nobody was told of
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.accept, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listener.close()
        for kept in self.kept:
            kept.close()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            seed = self.random.random()
            threading.Thread(target=self.forward, args=(client, random.Random(seed)), daemon=True).start()

    def forward(self, client: socket.socket, chance: random.Random):
        server = socket.create_connection(("127.0.0.1", self.upstream))
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        left = self.budget(chance)
        fault = chance.choice(self.faults)
        try:
            while True:
                for side in select.select([client, server], [], [], 60)[0]:
                    data = side.recv(chance.choice((1, 7, 100, 1460, 65536)))
                    if not data:
                        client.close()
                        server.close()
                        return
                    if side is client:
                        server.sendall(data)
                        continue
                    if left is not None and len(data) >= left:
                        client.sendall(data[:left])
                        return self.break_link(fault, client, server)
                    left = None if left is None else left - len(data)
                    client.sendall(data)
        except OSError:
            client.close()
            server.close()

    def break_link(self, fault: str, client: socket.socket, server: socket.socket):
        self.broken[fault] += 1
        if fault == "reset":
            for side in (client, server):
                side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                side.close()
        elif fault == "close":
            client.close()
            server.close()
        elif fault == "half_open":
            client.close()
            self.kept.append(server)
        else:
            self.kept += [client, server]
