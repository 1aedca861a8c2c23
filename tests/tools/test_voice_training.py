# SPDX-License-Identifier: Apache-2.0
"""tools/voice: what is done next after any interruption, schedules, resuming a run, export and import of the committed voice."""
import json
import os
import signal
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

import support

sys.path.insert(0, os.path.join(support.TOOLS, "voice"))
import pipeline
import progress
import schedule
import workspace
from pipeline import Plan, Reached, next_stage

try:
    import numpy as np
    import torch
    from safetensors import safe_open

    import checkpoints
    import dataset
    import export_nano
    import speech_models
    import train_gpt
    import training
    MISSING = None
except ImportError as e:
    MISSING = str(e)

NANO = os.path.join(support.ROOT, "models", "nano")


class PipelineTest(unittest.TestCase):
    def walk(self, plan, reached):
        """Stages until nothing is left, each reaching its target."""
        out = []
        while (found := next_stage(plan, reached)) is not None:
            stage, target = found
            out.append(found)
            self.assertLess(len(out), 40)
            change = {"corpus": {"corpus": True}, "import": {"imported": True}, "synthesize": {"audio": target}, "dvae": {"dvae": 1.0, "codes": 0.0},
                      "codes": {"codes": reached.audio}, "vocos": {"vocos": 1.0}, "gpt": {"gpt": target}}[stage]
            reached = Reached(**{**reached.__dict__, **change})
        return out

    def test_from_the_shipped_voice(self):
        stages = self.walk(Plan(False, 4.0, 0.0, 1.0, 8.0, 4), Reached())
        self.assertEqual([s for s, _ in stages], ["corpus", "import", "synthesize", "codes", "gpt", "synthesize", "codes", "gpt", "synthesize", "codes", "gpt", "gpt", "vocos"])
        self.assertEqual([t for s, t in stages if s == "synthesize"], [1.0, 2.5, 4.0])
        self.assertEqual([t for s, t in stages if s == "gpt"], [0.25, 0.5, 0.75, 1.0])

    def test_from_scratch(self):
        stages = [s for s, _ in self.walk(Plan(True, 0.5, 1.0, 1.0, 8.0, 1), Reached())]
        self.assertEqual(stages, ["corpus", "synthesize", "dvae", "codes", "gpt", "vocos"])

    def test_goes_on_where_it_was(self):
        plan = Plan(False, 4.0, 0.0, 1.0, 8.0, 4)
        self.assertEqual(next_stage(plan, Reached(True, True, 0.4)), ("synthesize", 1.0))
        self.assertEqual(next_stage(plan, Reached(True, True, 1.0, 0.9)), ("codes", None))
        self.assertEqual(next_stage(plan, Reached(True, True, 1.0, 1.0, 0, 0, 0.1)), ("gpt", 0.25))
        self.assertEqual(next_stage(plan, Reached(True, True, 1.0, 1.0, 0, 0, 0.25)), ("synthesize", 2.5))
        self.assertIsNone(next_stage(plan, Reached(True, True, 4.0, 4.0, 0, 1.0, 1.0)))
        self.assertEqual(next_stage(Plan(False, 4.0, 0.0, 1.0, 16.0, 4), Reached(True, True, 4.0, 4.0, 0, 1.0, 0.5)), ("gpt", 0.75))

    def test_synthesis_that_stops_short_by_a_sentence_is_done(self):
        self.assertEqual(next_stage(Plan(False, 1.0, 0.0, 0.0, 1.0, 1), Reached(True, True, 0.99, 0.99))[0], "gpt")

    def test_share_done(self):
        self.assertEqual(pipeline.share_done({}, 8), 0)
        self.assertEqual(pipeline.share_done({"core_hours": "2"}, 8), 0.25)
        self.assertEqual(pipeline.share_done({"core_hours": "7.999"}, 8), 1)
        towards = {"core_hours": "2", "share": "0.7", "deadline": "1000030"}
        self.assertEqual(pipeline.share_done(towards, 8, 1000000.0, now=900000.0), 0.7)
        self.assertEqual(pipeline.share_done(towards, 8, 2000000.0, now=900000.0), 0.25)
        self.assertEqual(pipeline.share_done(towards, 8, 2000000.0, now=2000000.0), 1)
        self.assertEqual(pipeline.share_done(towards, 0), 0)

    def test_the_last_of_the_time_is_for_the_vocoder(self):
        plan = Plan(False, 4.0, 0.0, 3.0, 8.0, 4)
        self.assertEqual(pipeline.deadlines(plan, None), {})
        self.assertEqual(pipeline.deadlines(plan, 100000.0, cores=2), {"gpt": 100000.0 - 5400, "vocos": 100000.0, "dvae": 100000.0 - 5400})
        # Synthesis was cut short by the clock: nothing but the vocoder is left.
        self.assertEqual(next_stage(plan, Reached(True, True, 0.3, 0.0, 0.0, 0.2, 1.0)), ("vocos", None))

    def test_a_signal_ends_the_children_and_the_loop(self):
        handlers = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
        self.addCleanup(lambda: [signal.signal(n, h) for n, h in handlers.items()])
        with tempfile.TemporaryDirectory() as scratch, mock.patch.object(pipeline, "HERE", scratch):
            with open(os.path.join(scratch, "waits.py"), "w", encoding="utf-8") as f:
                f.write("import time\ntime.sleep(600)\n")
            stages = pipeline.Stages(Plan(False, 1.0, 0.0, 0.0, 1.0, 1), None, [])
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
            self.assertFalse(stages.run(["waits.py"], ["waits.py"]))
        self.assertTrue(stages.stopping)
        self.assertEqual([child.returncode for child in stages.children], [-signal.SIGTERM] * 2)

    def test_arguments(self):
        self.assertEqual(support.run(pipeline.main, "--help")[0], 0)
        with mock.patch.dict(os.environ, clear=True):
            status, _, err = support.run(pipeline.main, "--status")
        self.assertEqual(status, 1)
        self.assertIn("TTS_VOICE_DIR", err)


class ScheduleTest(unittest.TestCase):
    def test_rate(self):
        s = schedule.Schedule(1.0, 2.0, cooldown=0.5, floor=0.1, warmup=10)
        self.assertAlmostEqual(s.rate(0.0, 0), 0.1)
        self.assertAlmostEqual(s.rate(0.3, 100), 1.0)
        self.assertAlmostEqual(s.rate(0.75, 100), 0.55)
        self.assertAlmostEqual(s.rate(1.0, 100), 0.1)
        self.assertAlmostEqual(s.progress(3600), 0.5)
        self.assertEqual(s.progress(1e9), 1.0)
        self.assertEqual(schedule.Schedule(1.0, 0.0).progress(0), 1.0)

    def test_deadline(self):
        s = schedule.Schedule(1.0, 100.0, started=1000.0, deadline=2000.0)
        self.assertAlmostEqual(s.progress(0, now=1500.0), 0.5)
        self.assertEqual(s.progress(0, now=2500.0), 1.0)

    def test_clock(self):
        now = time.mktime((2026, 5, 4, 12, 0, 0, 0, 0, -1))
        self.assertEqual(schedule.clock_time("12:30", now) - now, 1800)
        self.assertEqual(schedule.clock_time("11:30", now) - now, 86400 - 1800)
        self.assertEqual(schedule.clock_time("+1.5h", now) - now, 5400)
        self.assertEqual(schedule.clock_time("+10m", now) - now, 600)
        for bad in ("25:00", "12", "", "+3d"):
            with self.assertRaises(ValueError):
                schedule.clock_time(bad, now)

    def test_progress(self):
        now = [0.0]
        p = progress.Progress("x", seconds=10, clock=lambda: now[0])
        self.assertIsNone(p.time_left(0.0))
        _, out, _ = support.run(lambda _: p.add(1, 0.0, {"loss": 2.0}))
        self.assertEqual(out, "")
        now[0] = 20.0
        _, out, _ = support.run(lambda _: p.add(2, 0.25, {"loss": 4.0}, rate=0.5))
        self.assertIn("25.0 % step 2 loss 3 rate 0.5, 1m00s left", out)
        self.assertEqual([progress.duration(s) for s in (5, 95, 7300)], ["0m05s", "1m35s", "2h01m"])


class WorkspaceTest(unittest.TestCase):
    def test_manifest_survives_a_killed_worker(self):
        with tempfile.TemporaryDirectory() as scratch:
            work = workspace.Workspace(scratch)
            row = {"id": "s00002", "voice": "v", "samples": 1}
            with open(work.made("manifest", "0.jsonl"), "w", encoding="utf-8") as f:
                f.write(json.dumps(row) + "\n" + '{"id": "s000')
            workspace.append_jsonl(work.path("manifest", "1.jsonl"), {"id": "s00001", "voice": "v"})
            self.assertEqual([r["id"] for r in work.manifest()], ["s00001", "s00002"])
            self.assertFalse(work.paused())
            open(work.path("PAUSE"), "w").close()
            self.assertTrue(work.paused())


@unittest.skipIf(MISSING, MISSING)
class RunTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.work = workspace.Workspace(scratch.name)
        handlers = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
        self.addCleanup(lambda: [signal.signal(n, h) for n, h in handlers.items()])

    def run_of(self, hours=1.0, rows=3, **more):
        torch.manual_seed(rows)
        part = torch.nn.Embedding(rows, 2)
        return training.Run(self.work, "tiny", {"tiny": part}, lambda m: training.adamw(m, 0.0), schedule.Schedule(0.1, hours, warmup=1, **more))

    def train(self, run, steps):
        _, out, _ = support.run(lambda _: self._train(run, steps))
        return out

    def _train(self, run, steps):
        run.stopping = False
        for _ in run:
            run.update(run.parts["tiny"].weight.square().sum(), {})
            steps -= 1
            if steps == 0:
                run.stopping = True

    def test_resumes_with_moments_and_average(self):
        run = self.run_of()
        self.train(run, 5)
        again = self.run_of()
        self.assertEqual((again.step, again.optimiser_steps), (5, 5))
        self.assertAlmostEqual(again.spent, run.spent)
        self.train(run, 3)
        once = {k: v.clone() for k, v in run.parts.state_dict().items()}
        average = run.average.module["tiny"].weight.clone()
        self.train(again, 3)
        torch.testing.assert_close(again.parts.state_dict()["tiny.weight"], once["tiny.weight"])
        torch.testing.assert_close(again.average.module["tiny"].weight, average)

    def test_weights_without_state_are_a_start(self):
        checkpoints.save(self.work.checkpoint("tiny"), {"weight": torch.ones(2, 2)}, step=40, speakers="a b")
        run = self.run_of()
        self.assertEqual((run.step, run.optimiser_steps, run.metadata["speakers"]), (40, 0, "a b"))
        self.assertTrue((run.parts["tiny"].weight[:2] == 1).all())  # the table has grown by a row
        self.assertTrue((run.average.module["tiny"].weight[:2] == 1).all())
        self.train(run, 2)
        found = checkpoints.metadata(self.work.checkpoint("tiny"))
        self.assertEqual((found["step"], found["speakers"]), ("42", "a b"))

    def test_table_grows_between_calls(self):
        self.train(self.run_of(rows=3), 2)
        run = self.run_of(rows=4)
        self.assertEqual((run.step, run.optimiser_steps), (2, 0))
        self.train(run, 2)

    def test_deadline_counts_from_the_first_start(self):
        end = time.time() + 1000
        first = self.run_of(hours=100, deadline=end)
        self.train(first, 1)
        self.assertEqual(self.run_of(hours=100, deadline=end + 20).schedule.started, first.schedule.started)
        self.assertNotEqual(self.run_of(hours=100, deadline=end + 5000).schedule.started, first.schedule.started)

    def test_a_finished_run_does_nothing(self):
        run = self.run_of(hours=0.0)
        self.train(run, 5)
        self.assertEqual(run.step, 0)

    def test_a_step_without_a_finite_gradient_is_left_out(self):
        run = self.run_of()
        before = run.parts["tiny"].weight.clone()
        run.rate = 0.1
        run.update((run.parts["tiny"].weight * float("inf")).sum(), {})
        torch.testing.assert_close(run.parts["tiny"].weight.detach(), before.detach())


@unittest.skipIf(MISSING, MISSING)
class BatchTest(unittest.TestCase):
    def item(self, steps, length):
        return dict(text=list(range(length)), codes=torch.arange(steps * 4).view(steps, 4) % 625, steps=steps, length=length, speaker=0,
                    mel=torch.zeros(100, 2 * steps, dtype=torch.float16), spoken=torch.full((steps,), 2))

    def test_batches_hold_everything_within_the_budget(self):
        items = [self.item(s, 5) for s in (3, 50, 7, 20, 21, 22)]
        found = dataset.batches(items, 80)
        self.assertEqual(sorted(i for b in found for i in b), list(range(6)))
        for b in found:
            self.assertTrue(len(b) == 1 or max(items[i]["steps"] + 5 for i in b) * len(b) <= 80)

    def test_targets_follow_their_inputs(self):
        o = train_gpt.collate([self.item(3, 4), self.item(5, 6)])
        self.assertEqual(o["is_code"].sum().item(), 8)
        self.assertEqual(o["target"][0, 3].tolist(), o["codes"][0, 4].tolist())
        self.assertEqual(o["target"][0, 6].tolist(), [625] * 4)
        self.assertEqual(o["target"][0, 2].tolist(), [train_gpt.IGNORED] * 4)
        self.assertEqual(o["place"][1].tolist(), [5, 6, 7, 8, 9])

    def test_corruption_keeps_the_rest(self):
        chance = torch.Generator().manual_seed(0)
        codes, is_code = torch.randint(0, 625, (2, 400, 4)), torch.zeros(2, 400, dtype=torch.bool)
        is_code[:, 100:] = True
        out = train_gpt.corrupt(codes, is_code, 0.0, 0.3, chance)
        self.assertTrue((out[:, :100] == codes[:, :100]).all())
        self.assertAlmostEqual((out != codes).any(-1)[is_code].float().mean().item(), 0.3, delta=0.12)
        self.assertTrue((train_gpt.corrupt(codes, is_code, 0.0, 0.0, chance) == codes).all())

    def test_spoken_symbol(self):
        self.assertEqual(dataset.spoken_symbol([0, 512, 1536], 3, 2).tolist(), [0, 1, 1])


@unittest.skipIf(MISSING, MISSING)
class ExportTest(unittest.TestCase):
    def test_import_and_export_give_the_committed_voice(self):
        states = speech_models.exported_states(NANO)
        with tempfile.TemporaryDirectory() as scratch:
            work = workspace.Workspace(scratch)
            for name, state in states.items():
                checkpoints.save(work.checkpoint(name), state, step=7, **({"speakers": " ".join(speech_models.exported_speakers(NANO))} if name == "gpt" else {}))
            out = os.path.join(scratch, "out")
            status, _, err = support.run(export_nano.main, "--checkpoints", work.path("checkpoints"), "--out", out)
            self.assertEqual((status, err), (0, ""))
            for name in ("gpt", "embed", "decoder", "dvae", "vocos", "speakers"):
                with safe_open(os.path.join(out, name + ".safetensors"), "np") as a, safe_open(os.path.join(NANO, name + ".safetensors"), "np") as b:
                    self.assertEqual(sorted(a.keys()), sorted(b.keys()))
                    for key in a.keys():
                        x, y = a.get_tensor(key), b.get_tensor(key)
                        self.assertEqual(x.dtype, y.dtype)
                        np.testing.assert_allclose(x.astype(np.float32), y.astype(np.float32), rtol=2e-3, atol=1e-6, err_msg=key)
            with open(os.path.join(out, "manifest.json"), encoding="utf-8") as f, open(os.path.join(NANO, "manifest.json"), encoding="utf-8") as g:
                made, committed = json.load(f), json.load(g)
            for key in ("architecture", "voices", "default_voice", "sampling", "limits", "text"):
                self.assertEqual(made[key], committed[key], key)
            self.assertEqual(made["training"]["gpt_steps"], 7)

    def test_missing_checkpoints_are_named(self):
        with tempfile.TemporaryDirectory() as scratch:
            status, _, err = support.run(export_nano.main, "--checkpoints", scratch, "--out", os.path.join(scratch, "out"))
        self.assertEqual(status, 2)
        self.assertIn("vocos.safetensors", err)


if __name__ == "__main__":
    unittest.main()
