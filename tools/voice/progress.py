# SPDX-License-Identifier: Apache-2.0
"""What a long run shows: one line now and then with the losses, the share done and the time left; the same numbers as a curve in a file."""
import time

from workspace import append_jsonl


def duration(seconds):
    """95 -> '1m35s', 7300 -> '2h02m'"""
    seconds = int(max(0, seconds))
    if seconds < 3600:
        return f"{seconds // 60}m{seconds % 60:02d}s"
    return f"{seconds // 3600}h{seconds // 60 % 60:02d}m"


class Progress:
    """Averages what add() gets and prints every `seconds`. `share` runs from 0 to 1 over the whole run; time left is extrapolated from this call."""

    def __init__(self, name, curve=None, seconds=30.0, clock=time.time):
        self.name, self.curve, self.seconds, self.clock = name, curve, seconds, clock
        self.sums, self.count = {}, 0
        self.first = self.last = clock()
        self.first_share = None

    def add(self, step, share, values, **shown):
        if self.first_share is None:
            self.first_share = share
        for key, value in values.items():
            self.sums[key] = self.sums.get(key, 0.0) + value
        self.count += 1
        now = self.clock()
        if now - self.last < self.seconds:
            return
        mean = {key: value / self.count for key, value in self.sums.items()}
        self.sums, self.count, self.last = {}, 0, now
        self.line(step, share, mean, **shown)
        if self.curve:
            append_jsonl(self.curve, {"time": round(now), "step": step, **{k: round(v, 5) for k, v in mean.items()}, **shown})

    def time_left(self, share):
        gained = share - (self.first_share or 0.0)
        return (self.clock() - self.first) * (1.0 - share) / gained if gained > 0 else None

    def line(self, step, share, values, **shown):
        left = self.time_left(share)
        print(f"{time.strftime('%H:%M:%S')} {self.name} {100 * share:5.1f} % step {step} " + " ".join(f"{k} {v:.4g}" for k, v in {**values, **shown}.items())
              + (f", {duration(left)} left" if left is not None else ""), flush=True)
