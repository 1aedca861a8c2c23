"""What a machine allows for the full-size language model: bytes over its bandwidth, operations over its peak, whichever takes longer."""
import json
import subprocess
from pathlib import Path

PROBE = Path(__file__).resolve().parents[2] / "build/release/bin/roof_bench"
BYTES = {"float32": 4, "bfloat16": 2, "int8": 1}

LAYERS, HIDDEN, INNER, HEADS = 20, 768, 3072, 4 * 626
WEIGHTS = LAYERS * (4 * HIDDEN * HIDDEN + 3 * HIDDEN * INNER) + HEADS * HIDDEN  # read by every step: 190.7 M
CACHED = LAYERS * 2 * HIDDEN  # keys and values of one position
STEP_SECONDS = 512 / 24000    # audio of one step


class Roof:
    def __init__(self, probed: dict):
        self.probed = probed

    @classmethod
    def probe(cls, threads: int) -> "Roof | None":
        if not PROBE.exists():
            print(f"no roof: {PROBE} is missing; configure with -DTTS_BUILD_BENCH=ON and build it")
            return None
        return cls(json.loads(subprocess.run([str(PROBE), "--threads", str(threads)], capture_output=True, text=True, check=True).stdout))

    def raised_to(self, other: "Roof") -> "Roof":
        """The better of two probes: what disturbs one only ever lowers it."""
        peak = {name: max(self.probed["peak"][name], other.probed["peak"][name], key=lambda rate: rate["giga_operations_per_s"]) for name in self.probed["peak"]}
        return Roof({**self.probed, "read_gb_per_s": max(self.probed["read_gb_per_s"], other.probed["read_gb_per_s"]), "peak": peak})

    def as_json(self) -> dict:
        return self.probed

    def limits(self, number_format: str, streams: int, context: float) -> dict[str, float]:
        """Seconds that one step of `streams` rows at `context` positions takes at least, by what it waits for."""
        size = BYTES[number_format]
        read = (WEIGHTS + streams * context * CACHED) * size
        operations = 2 * streams * (WEIGHTS + context * CACHED)
        return {"memory": read / (self.probed["read_gb_per_s"] * 1e9),
                "arithmetic": operations / (self.probed["peak"][number_format]["giga_operations_per_s"] * 1e9)}

    def step_seconds(self, number_format: str, streams: int, context: float) -> float:
        return max(self.limits(number_format, streams, context).values())

    def limit(self, number_format: str, streams: int, context: float) -> str:
        limits = self.limits(number_format, streams, context)
        return max(limits, key=limits.get)

    def audio_rate(self, number_format: str, streams: int, context: float) -> float:
        """Seconds of audio a second, if nothing but the language model's steps took time."""
        return streams * STEP_SECONDS / self.step_seconds(number_format, streams, context)
