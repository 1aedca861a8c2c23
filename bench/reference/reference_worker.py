#!/usr/bin/env python3
"""Runs the Python reference on command: one JSON request per line on stdin, one JSON answer per line on stdout.

Started by compare_reference.py with the reference's own interpreter. Requests: {"mode": "offline"|"stream", "batch": n, "steps": n}.
The end token is suppressed, so that every utterance has exactly `steps` steps.
"""
import json
import logging
import os
import resource
import sys
import time

os.environ["HF_HUB_OFFLINE"] = "1"
import torch  # noqa: E402

import ChatTTS  # noqa: E402
from dataclasses import asdict  # noqa: E402


def load(folder: str):
    chat = ChatTTS.Chat(logging.getLogger("reference"))
    chat.logger.setLevel(logging.ERROR)
    paths = {key: os.path.join(folder, value) for key, value in asdict(chat.config.path).items()}
    if chat._load(device=torch.device("cpu"), **paths) is False:
        raise SystemExit("the reference refused the checkpoint")
    return chat


def main():
    folder, text, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    torch.set_num_threads(threads)
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever the reference prints stays out of the answers
    chat = load(folder)
    speaker = chat.sample_random_speaker()
    for line in sys.stdin:
        request = json.loads(line)
        params = ChatTTS.Chat.InferCodeParams(max_new_token=request["steps"], min_new_token=request["steps"], show_tqdm=False, spk_emb=speaker)
        texts = [text] * request["batch"]
        start = time.perf_counter()
        first = None
        if request["mode"] == "stream":
            for _ in chat.infer(texts, stream=True, skip_refine_text=True, split_text=False, params_infer_code=params):
                first = first if first is not None else time.perf_counter() - start
        else:
            chat.infer(texts, skip_refine_text=True, split_text=False, params_infer_code=params)
        print(json.dumps({"total_s": time.perf_counter() - start, "first_s": first,
                          "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}), file=out, flush=True)


if __name__ == "__main__":
    main()
