# SPDX-License-Identifier: Apache-2.0
"""GPT (codes given symbols) trained together with the Decoder that reads its hidden states.

Losses
  codes   cross-entropy of the four code heads; the first code of each group carries the phone and weighs more
  aligned attention of a few heads towards the symbol being spoken, known from the teacher's durations. Nothing of it remains at run time
  mel     L1 of the Decoder's spectrogram
The code history is corrupted (see corrupt()): without that the model learns to continue sound and never to read.
"""
import argparse
import random

import torch
from torch.nn import functional as F

import checkpoints
from dataset import batches, epochs, utterances
from dvae import Dvae, NUM_VQ
from gpt import Decoder, END_CODE, Gpt, MASKED
from schedule import Schedule, clock_time
from symbols import PAD
from training import Run, adamw
from voices import SIZES, SPEAKERS
from workspace import Workspace, lowest_priority

IGNORED = -100
CODE_WEIGHTS = torch.tensor([1.4, 0.6, 1.4, 0.6]) / 4
NOISE_WEIGHTS = torch.tensor([1.0, 2.5, 1.0, 2.5])  # residual codes are nearly unpredictable when sampled
BLOCK = 8  # steps that are replaced together


def collate(items):
    """Rows of text then codes, padded at the right. Targets sit one position before what they predict."""
    rows, length, steps = len(items), max(it["steps"] + it["length"] for it in items), max(it["steps"] for it in items)
    o = dict(text=torch.full((rows, length), PAD), codes=torch.zeros(rows, length, NUM_VQ, dtype=torch.long), is_code=torch.zeros(rows, length, dtype=torch.bool),
             target=torch.full((rows, length, NUM_VQ), IGNORED), spoken=torch.full((rows, length), IGNORED), speaker=torch.tensor([it["speaker"] for it in items]),
             mel=torch.zeros(rows, 100, 2 * steps), place=torch.zeros(rows, steps, dtype=torch.long), heard=torch.zeros(rows, steps, dtype=torch.bool))
    for i, it in enumerate(items):
        n, t = it["length"], it["steps"]
        o["text"][i, :n] = torch.tensor(it["text"])
        o["codes"][i, n:n + t] = it["codes"]
        o["is_code"][i, n:n + t] = True
        o["target"][i, n - 1:n - 1 + t] = it["codes"]
        o["target"][i, n - 1 + t] = END_CODE
        o["spoken"][i, n - 1:n - 1 + t] = it["spoken"]
        o["mel"][i, :, :2 * t] = it["mel"].float()
        o["place"][i, :t] = torch.arange(n - 1, n - 1 + t)
        o["heard"][i, :t] = True
    return o


def corrupt(codes, is_code, noise, span, chance):
    """A share `span` of the blocks of the history is replaced by contiguous codes from elsewhere in the batch (plausible speech that says
    something else), a share `noise` of the remaining single codes by random ones."""
    flat = codes[is_code]
    n = len(flat)
    hit = torch.rand(n, NUM_VQ, generator=chance) < noise * NOISE_WEIGHTS
    new = torch.where(hit, flat[torch.randint(n, (n,), generator=chance)], flat)
    first = int(torch.randint(BLOCK, (1,), generator=chance))
    replaced = (torch.rand(n // BLOCK + 2, generator=chance) < span)[(torch.arange(n) + first) // BLOCK]
    elsewhere = flat.roll(int(torch.randint(min(50, n), max(51, n - 50), (1,), generator=chance)), 0)
    out = codes.clone()
    out[is_code] = torch.where(replaced[:, None], elsewhere, new)
    return out


def alignment_loss(scores, spoken, targets):
    """Cross-entropy of the supervised heads' attention. -> loss, mean probability on the right symbol"""
    length, known = scores.shape[-1], (spoken != IGNORED)[:, None]
    scores = scores.float().masked_fill(torch.ones(length, length, dtype=torch.bool).triu(1), MASKED)
    aim = spoken[:, None] + torch.tensor(targets)[None, :, None] * known
    chosen = scores.log_softmax(-1).gather(-1, aim.clamp(min=0)[..., None])[..., 0][known.expand_as(aim)]
    return -chosen.mean(), chosen.detach().exp().mean()


def losses(gpt, decoder, o, a, chance=None):
    """-> weighted sum, parts for the screen. Without `chance` the history stays clean (validation)."""
    codes = corrupt(o["codes"], o["is_code"], a.noise, a.span, chance) if chance else o["codes"]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        x = torch.where(o["is_code"][..., None], gpt.embed_codes(codes), gpt.embed_text(o["text"], o["speaker"]))
        hidden, scores = gpt.trunk(x, aligned=True)
        chosen = o["target"][..., 0] != IGNORED
        logits = gpt.logits(hidden[chosen])
    ce = F.cross_entropy(logits.float().flatten(0, 1), o["target"][chosen].flatten(), reduction="none").view(-1, NUM_VQ).mean(0)
    aligned, hit = alignment_loss(scores, o["spoken"], gpt.ALIGNED_TO)
    heard = hidden.gather(1, o["place"][..., None].expand(-1, -1, hidden.shape[-1])) * o["heard"][..., None]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mel = decoder(heard.transpose(1, 2)).float()
    mask = o["heard"].repeat_interleave(2, 1)[:, None]
    distance = ((mel - o["mel"]).abs() * mask).sum() / (mask.sum() * mel.shape[1])
    total = (ce * CODE_WEIGHTS).sum() + a.align_weight * aligned + a.mel_weight * distance
    ce = ce.tolist()
    return total, {"code": (ce[0] + ce[2]) / 2, "fine": (ce[1] + ce[3]) / 2, "hit": hit.item(), "mel": distance.item()}


def optimisers(kind):
    def make(parts):
        if kind == "adamw":
            return adamw(parts, decay=0.05)
        matrices = [p for layer in parts["gpt"].layers for p in layer.parameters() if p.dim() == 2]
        chosen = {id(p) for p in matrices}
        rest = [p for p in parts.parameters() if id(p) not in chosen]
        return [torch.optim.Muon(matrices, lr=1e-3, momentum=0.95, weight_decay=0.05, adjust_lr_fn="match_rms_adamw"),
                torch.optim.AdamW(rest, lr=1e-3, betas=(0.9, 0.98), weight_decay=0.01, fused=True)]
    return make


def build(work):
    """The networks with the DVAE's band levels in the Decoder; weights are filled by the caller."""
    gpt, decoder, dvae = Gpt(SIZES["gpt"], len(SPEAKERS)), Decoder(SIZES["decoder"]), Dvae(SIZES["dvae"])
    if checkpoints.load(work.checkpoint("dvae"), dvae) is not None:
        decoder.coef.copy_(dvae.coef)
    return gpt, decoder


def validate(average, held, a):
    sums, count = {}, 0
    with torch.inference_mode():
        for batch in batches(held, a.budget):
            _, parts = losses(average["gpt"], average["decoder"], collate([held[i] for i in batch]), a)
            for key, value in parts.items():
                sums[key] = sums.get(key, 0.0) + value * len(batch)
            count += len(batch)
    return {key: value / count for key, value in sums.items()} if count else {}


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--hours", type=float, required=True, help="core-hours of the whole run, earlier calls included")
    p.add_argument("--until", help="stop by then with the learning rate fallen: HH:MM, +90m, +2h")
    p.add_argument("--stop-share", type=float, default=1.0, help="stop this call when so much of the run is done (default: %(default)s)")
    p.add_argument("--budget", type=int, default=3000, help="padded positions of a batch (default: %(default)s)")
    p.add_argument("--rate", type=float, default=1.3e-3, help="peak learning rate (default: %(default)s)")
    p.add_argument("--optimiser", choices=("adamw", "muon"), default="adamw")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--noise", type=float, default=0.12, help="share of single codes corrupted (default: %(default)s)")
    p.add_argument("--span", type=float, default=0.3, help="share of blocks replaced (default: %(default)s)")
    p.add_argument("--align-weight", type=float, default=1.0)
    p.add_argument("--mel-weight", type=float, default=1.5)
    p.add_argument("--validate-every", type=int, default=300, help="steps (default: %(default)s)")
    p.add_argument("--no-compile", action="store_true", help="skip torch.compile: about a minute sooner to start, a third slower afterwards")
    return p.parse_args()


def main():
    a = arguments()
    lowest_priority()
    torch.set_num_threads(a.threads)
    work = Workspace()
    train, held = utterances(work)
    if not train:
        return "nothing to train on: run `train` or synthesize.py and extract_codes.py first"
    gpt, decoder = build(work)
    run = Run(work, "gpt", {"gpt": gpt, "decoder": decoder}, optimisers(a.optimiser),
              Schedule(a.rate, a.hours, deadline=clock_time(a.until) if a.until else None), stop_share=a.stop_share)
    known = set(run.metadata.get("speakers", "").split()) | {SPEAKERS[it["speaker"]].teacher for it in train}
    run.metadata["speakers"] = " ".join(s.teacher for s in SPEAKERS if s.teacher in known)
    if not a.no_compile:
        for part in [*gpt.layers, *decoder.decoder.decoder_block]:
            part.forward = torch.compile(part.forward, dynamic=True)
    hours = sum(it["steps"] for it in train) * 512 / 24000 / 3600
    print(f"gpt: {len(train)} utterances, {hours:.2f} h; {sum(p.numel() for p in run.parts.parameters()) / 1e6:.2f} M parameters; from step {run.step}, "
          f"{run.spent / 3600:.2f} core-hours", flush=True)
    chance = torch.Generator().manual_seed(run.step)
    source = epochs(train, a.budget, random.Random(run.step).random())
    for step in run:
        loss, parts = losses(gpt, decoder, collate(next(source)), a, chance)
        run.update(loss, parts)
        if held and (step + 1) % a.validate_every == 0:
            run.progress.line(run.step, run.share(), {f"held_out_{k}": v for k, v in validate(run.average.module, held, a).items()})
    if held:
        print("gpt: held out", {k: round(v, 4) for k, v in validate(run.average.module, held, a).items()}, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
