#!/usr/bin/env python3
"""Closed-loop load on a running server: N listeners, each asks for the next sentence when the last one has arrived.

  bench/load/speak_load.py --url http://127.0.0.1:8080 --concurrency 1,8,16 --requests 24

Reports per level, over all requests:
  first byte     request sent to first audio byte (s)
  first sound    the same to the first sample above -40 dBFS, counted at its place on the listener's clock (s)
  gaps           requests whose listener, who starts playing at the first byte, would have run dry before the end
  RTF            wall time of one request / audio it brought; the level's throughput is audio seconds per wall second
Only the standard library is used. The server should run on the same machine; nothing but 127.0.0.1 is contacted by default.
"""
import argparse
import asyncio
import json
import os
import platform
import statistics
import struct
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

SAMPLE_RATE = 24000
AUDIBLE = 328  # -40 dBFS in 16-bit steps
SENTENCES = Path(__file__).resolve().parents[2] / "tests/data/sentences.jsonl"


async def speak(host: str, port: int, body: dict) -> dict:
    reader, writer = await asyncio.open_connection(host, port)
    data = json.dumps(body).encode()
    start = time.perf_counter()
    writer.write(b"POST /synthesize_stream HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
                 % (host.encode(), len(data)) + data)
    head = await reader.readuntil(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1])
    if status != 200:
        text = await reader.read()
        writer.close()
        return {"status": status, "error": text[:200].decode(errors="replace")}
    arrivals, pcm = [], bytearray()
    while True:
        size = int(await reader.readuntil(b"\r\n"), 16)
        if size == 0:
            break
        pcm += await reader.readexactly(size)
        await reader.readexactly(2)
        arrivals.append((time.perf_counter() - start, len(pcm) // 2))
    writer.close()
    samples = struct.unpack(f"<{len(pcm) // 2}h", pcm)
    audible = next((i for i, s in enumerate(samples) if abs(s) > AUDIBLE), len(samples))
    first = arrivals[0][0]
    gap = 0.0  # longest time the listener would have waited, had they started at the first byte
    for (_, had), (at, _) in zip(arrivals, arrivals[1:]):
        gap = max(gap, (at - first) - had / SAMPLE_RATE)
    total = time.perf_counter() - start
    return {"status": 200, "first_byte": first, "first_sound": first + audible / SAMPLE_RATE, "gap": gap, "total": total,
            "audio": len(samples) / SAMPLE_RATE}


async def level(host: str, port: int, concurrency: int, requests: int, texts: list[str], extra: dict) -> dict:
    results, queue = [], list(range(requests))
    began = time.perf_counter()

    async def listener():
        while queue:
            i = queue.pop(0)
            results.append(await speak(host, port, {"text": texts[i % len(texts)], "seed": i, "format": "pcm", **extra}))
            print(f"\r  {concurrency} at once: {len(results)}/{requests}", end="", file=sys.stderr, flush=True)

    await asyncio.gather(*(listener() for _ in range(concurrency)))
    wall = time.perf_counter() - began
    print(file=sys.stderr)
    good = [r for r in results if r["status"] == 200]
    if not good:
        raise SystemExit(f"no request succeeded: {results[0]}")

    def quantiles(key: str) -> dict:
        values = sorted(r[key] for r in good)
        return {"p50": round(statistics.median(values), 4), "p95": round(values[min(len(values) - 1, int(len(values) * 0.95))], 4), "max": round(values[-1], 4)}

    for r in good:
        r["rtf"] = r["total"] / r["audio"]
    return {"concurrency": concurrency, "requests": requests, "failed": len(results) - len(good), "first_byte_s": quantiles("first_byte"),
            "first_sound_s": quantiles("first_sound"), "rtf": quantiles("rtf"), "longest_gap_s": quantiles("gap"),
            "with_gap": sum(r["gap"] > 0 for r in good), "audio_s_per_s": round(sum(r["audio"] for r in good) / wall, 2)}


def machine() -> str:
    model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo", encoding="ascii") if line.startswith("model name")), platform.processor())
    return f"{model}, {os.cpu_count()} cores, {platform.platform()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    parser.add_argument("--concurrency", default="1,8,16")
    parser.add_argument("--requests", type=int, default=24, help="per level, at least twice the concurrency is used")
    parser.add_argument("--languages", default="zh,en")
    parser.add_argument("--body", default="{}", help='more fields of the request as JSON, e.g. \'{"min_steps": 96, "max_steps": 96}\'')
    parser.add_argument("--text", help="speak this instead of the test sentences")
    parser.add_argument("--output", type=Path, help="write the figures as JSON")
    arguments = parser.parse_args()
    rows = [json.loads(line) for line in SENTENCES.open(encoding="utf-8")]
    texts = [arguments.text] if arguments.text else [row["spoken"] for row in rows if row["lang"] in arguments.languages.split(",")]
    parts = urlsplit(arguments.url)
    host, port = parts.hostname or "127.0.0.1", parts.port or 80
    extra = json.loads(arguments.body)
    asyncio.run(level(host, port, 1, 2, texts, extra))  # warm caches; not reported
    report = {"machine": machine(), "date": time.strftime("%Y-%m-%d"), "levels": []}
    print(report["machine"])
    print(f"{'at once':>7} {'first byte p50/p95':>20} {'first sound p50/p95':>20} {'RTF p50/p95':>16} {'gaps':>8} {'audio s/s':>10}")
    for concurrency in map(int, arguments.concurrency.split(",")):
        r = asyncio.run(level(host, port, concurrency, max(arguments.requests, 2 * concurrency), texts, extra))
        report["levels"].append(r)
        pair = lambda key: f"{r[key]['p50']:.3f} / {r[key]['p95']:.3f}"  # noqa: E731
        print(f"{concurrency:>7} {pair('first_byte_s'):>20} {pair('first_sound_s'):>20} {pair('rtf'):>16} {r['with_gap']:>4}/{r['requests']:<3} {r['audio_s_per_s']:>10.2f}", flush=True)
    if arguments.output:
        arguments.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
