#!/usr/bin/env python3
"""Proves the module order: a module may include only modules on the lines above its own.

Usage: check_include_order.py ROOT
Looks at every #include "tts/<module>/..." in include/tts and src, and that private headers (src/<module>/...) are included
only by their own module. Prints every violation; exit status 1 when there is one.
"""
import re
import sys
from pathlib import Path

LINES = [
    ["base"],
    ["observability", "engine"],
    ["text", "audio", "resume", "cache", "model", "scheduling", "rpc"],
    ["dispatch"],
    ["synthesis"],
    ["api"],
    ["stream"],
    ["net"],
    ["config"],
    ["app"],
]
LEVEL = {module: level for level, line in enumerate(LINES) for module in line}
NOT_MODULES = {"docs", "third_party"}
TORCH_ONLY_IN = "model"
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
TORCH = re.compile(r"^(ATen|torch|c10)/")


def module_of(root: Path, path: Path) -> str:
    parts = path.relative_to(root).parts
    return parts[2] if parts[0] == "include" else parts[1]


def check_file(root: Path, path: Path) -> list[str]:
    module = module_of(root, path)
    where = path.relative_to(root)
    if module not in LEVEL:
        return [f"{where}: folder '{module}' is not a module of the design; add it to the order or move the file"]
    problems = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        quote, target = match.groups()
        public = re.match(r"tts/([a-z_]+)/", target)
        if public:
            other = public.group(1)
            if other not in LEVEL:
                problems.append(f"{where}:{number}: includes unknown module '{other}'")
            elif other != module and LEVEL[other] >= LEVEL[module]:
                problems.append(f"{where}:{number}: {module} may not include {other} ({target})")
        elif quote == '"' and (target.startswith("../") or target.startswith("src/")):
            problems.append(f"{where}:{number}: reaches out of its folder ({target})")
        elif TORCH.match(target) and module != TORCH_ONLY_IN:
            problems.append(f"{where}:{number}: only {TORCH_ONLY_IN} may include libtorch ({target})")
        if path.parts[-3:-2] and where.parts[0] == "include" and TORCH.match(target):
            problems.append(f"{where}:{number}: a public header may not show libtorch ({target})")
    return problems


def check_tree(root: Path) -> tuple[int, list[str]]:
    files = [p for top in ("include/tts", "src") for p in sorted((root / top).rglob("*")) if p.suffix in (".h", ".cpp")]
    files = [p for p in files if module_of(root, p) not in NOT_MODULES]
    return len(files), [problem for p in files for problem in check_file(root, p)]


def main() -> int:
    count, problems = check_tree(Path(sys.argv[1]).resolve())
    if count == 0:
        problems.append("no source files found: wrong root?")
    print("\n".join(problems) if problems else f"{count} files keep the module order")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
