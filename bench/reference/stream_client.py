"""Asks a running server for streamed speech and notes when it comes; for compare_reference.py. `chattts-server bench` is the load generator."""
import asyncio
import json
import time


async def speak(host: str, port: int, path: str, body: dict) -> dict:
    """{"first_byte": s, "total": s} of one POST; RuntimeError when it is not answered with audio."""
    start = time.perf_counter()
    reader, writer = await asyncio.open_connection(host, port)
    data = json.dumps(body).encode()
    writer.write(f"POST {path} HTTP/1.0\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
    head = await reader.readuntil(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1])
    if status != 200:
        text = await reader.read()
        writer.close()
        raise RuntimeError(f"the server answers {status}: {text[:300].decode(errors='replace')}")
    first, received = None, 0
    while piece := await reader.read(1 << 16):  # HTTP/1.0: the audio comes as it is, until the server closes
        first = first if first is not None else time.perf_counter() - start
        received += len(piece)
    writer.close()
    return {"first_byte": first, "total": time.perf_counter() - start, "bytes": received}


def speak_at_once(host: str, port: int, path: str, bodies: list[dict]) -> tuple[float, list[dict]]:
    """Seconds until all bodies, sent at the same moment, are answered, and the answers."""
    async def all_of_them():
        return await asyncio.gather(*(speak(host, port, path, body) for body in bodies))

    start = time.perf_counter()
    answers = asyncio.run(all_of_them())
    return time.perf_counter() - start, answers
