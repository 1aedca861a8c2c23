# SPDX-License-Identifier: Apache-2.0
"""One training run: optimiser steps with a schedule, a moving average of the weights, saving and resuming, progress, pausing, stopping.

    for _ in run:                      # until the schedule's end, a deadline, the stop share or a signal
        run.update(loss, {"mel": ...})

Core-hours are processor time of this process, so they mean the same on a busy machine. What is exported is the average: it needs no
finished schedule to be good, so a run may be stopped at any time.
"""
import copy
import os
import signal
import time

import torch

import checkpoints
from progress import Progress


class MovingAverage:
    """Exponential average of the floating-point values of a module's state."""

    def __init__(self, module, decay=0.999):
        self.module = copy.deepcopy(module).eval().requires_grad_(False)
        self.decay, self.updates = decay, 0

    @torch.no_grad()
    def update(self, module):
        self.updates += 1
        weight = 1.0 - min(self.decay, (1 + self.updates) / (10 + self.updates))
        mine, other = [], []
        for a, b in zip(self.module.state_dict().values(), module.state_dict().values()):
            if a.is_floating_point():
                mine.append(a)
                other.append(b)
        torch._foreach_lerp_(mine, other, weight)


class Run:
    """`parts` are trained together and saved as one weight file each. `make_optimisers(module)` gets them as one module."""

    SAVE_EVERY = 300.0

    def __init__(self, work, name, parts, make_optimisers, schedule, stop_share=1.0, average=0.999, curve=True):
        self.work, self.name, self.schedule, self.stop_share = work, name, schedule, stop_share
        self.parts = torch.nn.ModuleDict(parts)
        self.step = self.optimiser_steps = 0
        self.spent = 0.0
        self.extra = {}  # further things that a trainer wants to find again
        self.metadata = {}  # goes into the weight files beside step, core_hours, share and deadline
        self.stopping = False
        self._load_weights()
        self.average = MovingAverage(self.parts, average)
        self.optimisers = make_optimisers(self.parts)
        self._load_state()
        self.from_step = self.step
        self.progress = Progress(name, work.made("curves", name + ".jsonl") if curve else None)
        self._start_clock()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)

    # ------------------------------------------------------------------ saving
    def _state_path(self):
        return self.work.path("checkpoints", self.name + ".state.pt")

    def _load_weights(self):
        for name, part in self.parts.items():
            found = checkpoints.load(self.work.checkpoint(name), part)
            if found is not None:
                self.step = max(self.step, int(found.get("step", 0)))
                self.metadata.update({k: v for k, v in found.items() if k not in ("step", "core_hours", "share", "deadline", "format")})

    def _load_state(self):
        if not os.path.exists(self._state_path()):
            return
        state = torch.load(self._state_path(), weights_only=True)
        self.parts.load_state_dict(checkpoints.fitted(state["weights"], self.parts))
        self.average.module.load_state_dict(checkpoints.fitted(state["average"], self.parts))
        self.average.updates = state["average_updates"]
        if self._fits(state["optimisers"]):
            for optimiser, saved in zip(self.optimisers, state["optimisers"]):
                optimiser.load_state_dict(saved)
        else:  # another optimiser, or a table has grown: the moments start again
            state["optimiser_steps"] = 0
        for key in ("step", "optimiser_steps", "spent", "extra"):
            setattr(self, key, state[key])

    def _fits(self, saved):
        """Whether saved moments belong to the parameters as they are now."""
        if len(saved) != len(self.optimisers):
            return False
        for optimiser, old in zip(self.optimisers, saved):
            own = optimiser.state_dict()
            shapes = [p.shape for group in optimiser.param_groups for p in group["params"]]
            if [len(g["params"]) for g in own["param_groups"]] != [len(g["params"]) for g in old["param_groups"]] or \
                    any(v.shape != shapes[i] for i, moments in old["state"].items() for v in moments.values() if torch.is_tensor(v) and v.dim()):
                return False
        return True

    def _start_clock(self):
        """A run towards a deadline that is resumed counts from its first start."""
        if self.schedule.deadline is None:
            return
        before = self.extra.get("clock")
        if not before or abs(before[1] - self.schedule.deadline) > 90:
            self.extra["clock"] = before = [time.time(), self.schedule.deadline]
        self.schedule.started = before[0]

    def save(self):
        path = self.work.made("checkpoints", self.name + ".state.pt")
        torch.save({"weights": self.parts.state_dict(), "average": self.average.module.state_dict(), "average_updates": self.average.updates,
                    "optimisers": [o.state_dict() for o in self.optimisers], "step": self.step, "optimiser_steps": self.optimiser_steps,
                    "spent": self.spent, "extra": self.extra}, path + ".tmp")
        os.replace(path + ".tmp", path)
        for name, part in self.average.module.items():
            checkpoints.save(self.work.checkpoint(name), part.state_dict(), step=self.step, core_hours=round(self.spent / 3600, 3), share=round(self.share(), 4),
                             deadline=round(self.schedule.deadline or 0), **self.metadata)

    # ------------------------------------------------------------------ the loop
    def _stop(self, *_):
        self.stopping = True

    def share(self):
        return self.schedule.progress(self.spent)

    def __iter__(self):
        self.parts.train()
        saved = time.time()
        while not self.stopping and self.share() < self.stop_share:
            self.work.wait_while_paused()
            before = time.process_time()
            self.rate = self.schedule.rate(self.share(), self.optimiser_steps)
            for optimiser in self.optimisers:
                for group in optimiser.param_groups:
                    group["lr"] = self.rate * group.get("rate_factor", 1.0)
            yield self.step
            self.spent += time.process_time() - before
            if time.time() - saved > self.SAVE_EVERY:
                self.save()
                saved = time.time()
        self.save()
        self.progress.line(self.step, self.share(), {})

    def update(self, loss, values, clip=1.0):
        """One optimiser step on a loss; a step whose gradient is not finite is left out."""
        for optimiser in self.optimisers:
            optimiser.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.parts.parameters(), clip)
        if torch.isfinite(norm):
            for optimiser in self.optimisers:
                optimiser.step()
            self.average.update(self.parts)
        self.step += 1
        self.optimiser_steps += 1
        self.progress.add(self.step, self.share(), values, rate=self.rate)


def adamw(module, decay, betas=(0.9, 0.98)):
    """Weight decay on matrices and kernels only."""
    matrices = [p for p in module.parameters() if p.dim() >= 2]
    others = [p for p in module.parameters() if p.dim() < 2]
    return [torch.optim.AdamW([{"params": matrices, "weight_decay": decay}, {"params": others, "weight_decay": 0.0}], lr=1e-3, betas=betas, fused=True)]
