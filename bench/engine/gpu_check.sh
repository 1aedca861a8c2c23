#!/usr/bin/env bash
# Builds against a CUDA libtorch, runs the tests that a GPU is for, and prints one JSON object with times of the engine on it.
#
#   bench/engine/gpu_check.sh [--torch FOLDER] [--model FOLDER] [--device cuda:0] [--quick]
#
# FOLDER of --torch: a CUDA build of libtorch with include/ and lib/, for instance .../site-packages/torch of `pip install torch`; without it,
# TTS_TORCH_ROOT or what the build finds. --model: the bundled voice unless given; tools/make_random_checkpoint.py makes a full-size one.
# Progress goes to standard error, the JSON to standard output. A few minutes, most of them compiling.
set -euo pipefail
cd "$(dirname "$0")/../.."

torch="${TTS_TORCH_ROOT:-}" model=models/nano device=cuda:0 batches=1,2,4,8,16,32,64 steps=288
while [ $# -gt 0 ]; do
  case "$1" in
    --torch) torch=$2; shift 2 ;;
    --model) model=$2; shift 2 ;;
    --device) device=$2; shift 2 ;;
    --quick) batches=1,16 steps=97; shift ;;
    *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
build=build/gpu

say() { echo "gpu_check: $*" >&2; }

say "building in $build"
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTTS_BUILD_BENCH=ON ${torch:+-DTTS_TORCH_ROOT="$torch"} >&2
torch=$(sed -n 's/^TTS_TORCH_ROOT:PATH=//p' "$build/CMakeCache.txt")
[ -e "$torch/lib/libtorch_cuda.so" ] || { say "the libtorch in $torch has no CUDA; name one with --torch"; exit 1; }
grep -q 'TTS_CUDA_INCLUDE:PATH=/' "$build/CMakeCache.txt" || { say "the CUDA toolkit's headers are missing (see the warning above)"; exit 1; }
cmake --build "$build" --target unit_model engine_bench >&2

say "tests: the GPU against the CPU engine"
filter='TorchCuda.*:ChooseDevices.*:PlanLayers.*'
"$build/bin/unit_model" --gtest_filter="$filter" --gtest_output=json:"$build/gpu_tests.json" >&2
python3 -c "
import json, sys
cases = [c for s in json.load(open('$build/gpu_tests.json'))['testsuites'] for c in s['testsuite'] if c['classname'] == 'TorchCuda']
sys.exit(all(c['result'] == 'SKIPPED' for c in cases))" || { say "every test was skipped: no GPU can be used here (nvidia-smi, CUDA_VISIBLE_DEVICES)"; exit 1; }

bench() {
  say "times: $*"
  "$build/bin/engine_bench" --model "$model" --device "$device" --batches "$batches" --steps "$steps" "$@"
}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
bench --weights float32 --kv float32 --sound float32 > "$out/float32.json"
bench > "$out/auto.json"
bench --weights int8 > "$out/int8.json"
python3 - "$out" "$build/gpu_tests.json" <<'PYTHON'
import json, subprocess, sys
from pathlib import Path
out = Path(sys.argv[1])
gpus = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"], capture_output=True, text=True)
report = {"gpus": gpus.stdout.split("\n")[:-1], "commit": subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()}
tests = [case for suite in json.loads(Path(sys.argv[2]).read_text())["testsuites"] for case in suite["testsuite"]]
skipped = [f'{case["classname"]}.{case["name"]}' for case in tests if case["result"] == "SKIPPED"]
report["tests"] = {"passed": len(tests) - len(skipped), "skipped": skipped}
for name in ("float32", "auto", "int8"):
    report[name] = json.loads((out / f"{name}.json").read_text())
print(json.dumps(report, indent=2))
PYTHON
