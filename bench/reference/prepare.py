#!/usr/bin/env python3
"""Makes what compare_reference.py measures against, in one folder, and leaves what is there already:

  environment/  a Python of its own with the reference (requirements.txt)      1.5 GB, 2 minutes; 6 GB where pip's index serves CUDA builds
  checkpoint/   random numbers in the official layout and size, for both       1.1 GB, 20 seconds
  model/        the same as our server reads it: links and a manifest          5 seconds

  bench/reference/prepare.py FOLDER
"""
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def run(what: str, *command):
    print(f"  {what} ...", end="", flush=True)
    start = time.monotonic()
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f" failed\n{done.stdout}{done.stderr}")
    print(f" {time.monotonic() - start:.0f} s", flush=True)
    return done.stdout


def make_environment(folder: Path):
    requirements = [line for line in (HERE / "requirements.txt").read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    torch = next(line for line in requirements if line.startswith("torch=="))
    python = folder / "bin/python3"
    run("environment: venv", sys.executable, "-m", "venv", folder)
    run(f"environment: {torch}", python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", torch)
    run("environment: the reference", python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements)
    # torchaudio's compiled part comes for CUDA only; the reference uses the Python part, which does without where the files are missing.
    has_cuda = run("environment: torch", python, "-c", "import torch; print(torch.version.cuda is not None)").strip() == "True"
    if not has_cuda:
        for library in folder.glob("lib/python*/site-packages/torchaudio/lib/*.so"):
            library.unlink()
    run("environment: import", python, "-c", "import ChatTTS")
    (folder / "complete").touch()


def prepare(folder: Path) -> tuple[Path, Path, Path]:
    """(interpreter, checkpoint, model) in `folder`; what is missing is made."""
    environment, checkpoint, model = folder / "environment", folder / "checkpoint", folder / "model"
    python = environment / "bin/python3"
    folder.mkdir(parents=True, exist_ok=True)
    if not (environment / "complete").exists():
        print(f"preparing {folder}: the reference's own environment (1.5 GB with a CPU build of torch, about 2 minutes)")
        make_environment(environment)
    if not (checkpoint / "speaker_stat.txt").exists():
        print(f"preparing {folder}: a full-size checkpoint of random numbers (1.1 GB, about 20 seconds)")
        run("checkpoint", python, ROOT / "tools/make_random_checkpoint.py", checkpoint, "--size", "official")
    if not (model / "manifest.json").exists():
        run("model", python, ROOT / "tools/import_chattts.py", checkpoint, "--allow-unknown-hashes", "--out", model,
            "--name", "random", "--title", "Random numbers in full size", "--license", "none")
    return python, checkpoint, model


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    for path in prepare(Path(sys.argv[1])):
        print(path)
