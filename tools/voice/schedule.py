# SPDX-License-Identifier: Apache-2.0
"""How far a training run is, by core-hours or by the clock, and the learning rate that follows from it."""
import re
import time


def clock_time(text, now=None):
    """'02:30' -> the next time a local clock shows that, in seconds since the epoch; also takes '+90m' and '+2h' from now."""
    now = time.time() if now is None else now
    relative = re.fullmatch(r"\+(\d+(?:\.\d+)?)([mh])", text)
    if relative:
        return now + float(relative[1]) * (60 if relative[2] == "m" else 3600)
    clock = re.fullmatch(r"(\d{1,2}):(\d{2})", text)
    if not clock or int(clock[1]) > 23 or int(clock[2]) > 59:
        raise ValueError(f"{text!r} is neither HH:MM nor +90m nor +2h")
    day = time.localtime(now)
    at = time.mktime((day.tm_year, day.tm_mon, day.tm_mday, int(clock[1]), int(clock[2]), 0, 0, 0, -1))
    return at if at > now else at + 86400


class Schedule:
    """Linear warm-up, a plateau, then a linear fall to `floor` x peak over the last `cooldown` of the run.

    hours     core-hours of the whole run, those of earlier calls included; progress is what was spent of them
    deadline  seconds since the epoch, or None; progress is never behind the share of the way from `started` to the deadline, so the rate
              has fallen by then even when others used the machine
    A run is over when progress reaches 1.
    """

    def __init__(self, peak, hours, cooldown=0.5, floor=0.03, warmup=150, started=None, deadline=None):
        self.peak, self.hours, self.cooldown, self.floor, self.warmup = peak, hours, cooldown, floor, warmup
        self.started, self.deadline = started, deadline

    def progress(self, spent_seconds, now=None):
        done = spent_seconds / (self.hours * 3600) if self.hours > 0 else 1.0
        if self.deadline is not None:
            now = time.time() if now is None else now
            done = max(done, (now - self.started) / max(1.0, self.deadline - self.started))
        return min(1.0, max(0.0, done))

    def rate(self, progress, steps_of_optimiser):
        """`steps_of_optimiser` counts from when its moments were empty: they need a warm-up again after weights were imported."""
        fall = min(1.0, (1.0 - progress) / self.cooldown)
        warm = min(1.0, (steps_of_optimiser + 1) / self.warmup)
        return self.peak * warm * (self.floor + (1.0 - self.floor) * fall)
