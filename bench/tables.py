#!/usr/bin/env python3
"""Writes the tables of bench/README.md from bench/results/*.json, between the lines <!-- table: NAME --> and <!-- end -->.

  bench/tables.py            rewrites them
  bench/tables.py --check    exit status 1 when they are not what the results say
"""
import argparse
import json
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
MARKED = re.compile(r"(<!-- table: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def table(header: list[str], rows: list[list]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(str(cell) for cell in line) + " |\n" for line in lines)


def ms(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds * 1e3:.0f}"


def percentiles(distribution: dict | None, keys=("p50", "p95", "p99")) -> str:
    return "–" if not distribution else " / ".join(ms(distribution[key]) for key in keys)


def ratios(distribution: dict | None) -> str:
    return "–" if not distribution else f"{distribution['p50']:.2f} / {distribution['p99']:.2f}"


def share(part: float, whole: float) -> str:
    return "–" if whole <= 0 else f"{part / whole:.0%}"


def decode_share(level: dict) -> str:
    engine = level.get("engine")
    return share(engine["decode_share"], engine["decode_share"] + engine["generate_share"]) if engine else "–"


def spread(figure: dict, digits: int = 1) -> str:
    return f"{figure['median']:.{digits}f} [{figure['min']:.{digits}f}, {figure['max']:.{digits}f}]"


class Results:
    """The JSON files of a folder; a missing one is None."""

    def __init__(self, folder: Path):
        self.folder = folder

    def __getattr__(self, name: str):
        path = self.folder / f"{name}.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


class Missing(Exception):
    """Carries the name that bench/run_all knows the measurement by."""


def need(result, measurement: str):
    if result is None:
        raise Missing(measurement)
    return result


# -------------------------------------------------------------------- one function a table
def machine(results: Results) -> str:
    report = next((r for r in (results.nano, results.full_exact, results.growth) if r), None)
    report = need(report, "nano")
    m = report["machine"]
    return (f"{m['processor']}, {m['cores']} cores, {m['instructions']}, {m['memory_gib']:.0f} GiB, {m['system']}; "
            f"chattts-server {report['version']} at {report['commit']} ({report['build']}), {report['date']}.\n")


LEVEL_HEADER = ["load", "requests", "first byte, ms", "first sound, ms", "RTF", "audio s per s", "silences", "refused", "decoder and vocoder", "client, cores",
                "passed"]


def level_row(level: dict, label: str | None = None) -> list:
    return [label or level["name"], level["completed"], percentiles(level["first_byte_s"]), percentiles(level["first_audio_s"]), ratios(level["rtf"]),
            f"{level['audio_s_per_s']:.1f}", level["underruns"]["count"], level["refused"], decode_share(level), f"{level['client_cores']:.2f}",
            "yes" if level["passed"] else "no"]


def nano(results: Results) -> str:
    return table(LEVEL_HEADER, [level_row(level) for level in need(results.nano, "nano")["levels"]])


def full(results: Results) -> str:
    rows = []
    for mode in ("exact", "low"):
        report = need(getattr(results, f"full_{mode}"), "full")
        rows += [level_row(level, f"{mode}, {level['name']}") for level in report["levels"]]
    return table(LEVEL_HEADER, rows)


def capacity(results: Results) -> str:
    rows = []
    for label, name in (("bundled voice, Opus", "nano_capacity"), ("full size, int8", "full_capacity")):
        report = need(getattr(results, name), name)
        found, level = report["capacity"], report["capacity"]["level"] or {}
        asks = "after its playback" if report["workload"].get("pace") == "playback" else "at the audio's arrival"
        rows.append([label, found["streams"], asks, f"{found['seconds']:.0f} s", percentiles(level.get("first_audio_s")), ratios(level.get("rtf")),
                     f"{level.get('audio_s_per_s', 0):.1f}", f"{level.get('server_cores', 0):.2f}", decode_share(level)])
    return table(["model", "streams at once", "a listener asks anew", "without a silence for", "first sound, ms", "RTF", "audio s per s", "server, cores", "decoder and vocoder"], rows)


def growth(results: Results) -> str:
    rows = need(results.growth, "growth")["rows"]
    base = rows[0]["rtf"]["p50"]
    return table(["length of the audio", "RTF p50", "against the shortest", "mean step, ms"],
                 [[f"{row['audio_s']} s", f"{row['rtf']['p50']:.3f}", f"{row['rtf']['p50'] / base:.2f}", f"{row['engine']['step_s'] * 1e3:.2f}"] for row in rows])


def memory(results: Results) -> str:
    rows = []
    for label, name in (("full size, int8, one stream of about 400 positions", "memory_full"), ("bundled voice, one stream", "memory_nano")):
        m = need(getattr(results, name), "memory")["memory_mib"]
        rows.append([label, f"{m['resident']:.0f}", f"{m['peak']:.0f}"])
    return table(["process", "resident, MiB", "peak while loading or running, MiB"], rows)


def reference(results: Results) -> str:
    report = need(results.full_size_against_reference, "reference")
    theirs, rows = report["reference"], []
    for name, ours in report["ours"].items():
        for streams, row in ours["streams"].items():
            static = theirs["one_at_a_time"] if streams == "1" else theirs["static_batch"][streams]
            roof = row.get("roof")
            rows.append([name, streams, *(f"{row[delivery]['audio_s_per_s']['median']:.2f}" for delivery in ("streams", "whole")), f"{static['median']:.2f}",
                         *(spread(row[delivery]["times_one_at_a_time"]) for delivery in ("streams", "whole")), spread(row["whole"]["times_static_batch"]),
                         f"{roof['audio_s_per_s']:.1f} ({roof['limited_by']})" if roof else "–",
                         f"{row['whole']['step_s']['median'] * 1e3:.2f} ({roof['step_s'] * 1e3:.2f})" if roof else f"{row['whole']['step_s']['median'] * 1e3:.2f}",
                         f"{row['whole']['decode_share']['median']:.0%}"])
    text = (f"{report['machine']}, {report['threads']} threads, {report['rounds']} rounds, {report['date']}; prompt of {report['prompt_tokens']} positions and "
            f"{report['steps']} steps, on average {report['mean_context']} positions. The reference one at a time: "
            f"{theirs['one_at_a_time']['median']:.2f} audio seconds a second.\n\n")
    text += table(["number format", "at once", "streams, audio s per s", "whole replies", "reference, batch of that size", "streams, times one at a time", "whole, times one at a time",
                   "whole, times its batch", "roof, audio s per s", "mean step, ms (roof)", "decoder and vocoder"], rows)
    rows = [[f"{name}, {mode}", f"{row['s']['median'] * 1e3:.0f}", f"{theirs['first_audio_s']['median'] * 1e3:.0f}", spread(row["times_sooner"])]
            for name, ours in report["ours"].items() for mode, row in ours["first_audio"].items()]
    text += "\n" + table(["first audio of one stream", "ours, ms", "reference, ms", "times sooner"], rows)
    m = report["memory_mib"]
    rows = [[name, *(m.get(f"{name}_{streams}", "–") for streams in streams_of(report))] for name in [*report["ours"], "reference_peak"]]
    return text + "\n" + table(["resident memory after so many streams, MiB", *streams_of(report)], rows)


def roof(results: Results) -> str:
    probed = need(results.roof, "roof")
    rows = [["memory, read", f"{probed['read_gb_per_s']:.1f} GB/s"]]
    rows += [[f"arithmetic, {name}", f"{peak['giga_operations_per_s']:,.0f} GOP/s ({peak['instruction']})"] for name, peak in probed["peak"].items()]
    return table([f"{probed['threads']} threads", "at most"], rows)


def linears(results: Results) -> str:
    rows = []
    for line in need(results.linears, "engine")["lines"]:
        times = f"{line['min_ms'] / line['roof_ms']:.2f}" if "roof_ms" in line else "–"
        rows.append([line["model"], line["rows"], line["way"], f"{line['min_ms']:.2f}", f"{line['median_ms']:.2f}", times, "yes" if line["batch_invariant"] else "no"])
    return table(["model", "rows", "way", "best, ms", "median, ms", "best over the roof", "batch-invariant"], rows)


def steps(results: Results) -> str:
    rows = [[line["model"], line["weights"], line["kv"], line["batch"], f"{line['step_ms']['p50']:.2f}", f"{line['step_ms']['p95']:.2f}", f"{line['bytes'] / 1e6:.0f}",
             f"{line['bandwidth_bytes_per_s'] / 1e9:.1f}", f"{line['step_over_floor']:.2f}", f"{line['sampler_share']:.1%}", f"{line['audio_x_real_time']:.1f}",
             line["allocations"]] for line in need(results.steps, "engine")["lines"]]
    return table(["model", "weights", "KV", "batch", "step p50, ms", "p95", "read, MB", "bandwidth, GB/s", "step over the roof", "sampler", "audio s per s", "allocations"], rows)


def decode(results: Results) -> str:
    rows = []
    for run in need(results.decode, "engine")["models"]:
        pushes = [push for push in run["pushes"] if push["chunk"] == 12 and push["lookahead"] == "exact"]
        rows.append([run["model"], run["format"], *(f"{push['ms_per_step']:.3f}" for push in pushes)])
        streams = [push["streams"] for push in pushes]
    return table(["model", "number format", *(f"{count} streams" for count in streams)], rows)


def streams_of(report: dict) -> list[str]:
    return list(next(iter(report["ours"].values()))["streams"])


def find_level(report: dict, name: str) -> dict | None:
    return next((level for level in report["levels"] if level["name"] == name), None)


GOALS = {  # streams: (bf16, int8, int8 against the static batch), as times the reference
    "1": (4, 8, 8), "4": (14, 22, 9), "8": (20, 34, 8), "16": (27, 42, 7)}


def goals(results: Results) -> str:
    """What was asked of the engine beside what it does; a row appears when its measurement is there."""
    rows = []

    def add(what: str, wanted: str, measured: str, reached: bool):
        rows.append([what, wanted, measured, "yes" if reached else "no"])

    def first(what: str, level: dict, key: str, limit: float):
        audio, sound = level["first_byte_s"], level["first_audio_s"]
        if audio:
            add(what, f"{ms(limit)} ms", f"{ms(audio[key])} ms; to the first sample above -40 dBFS {ms(sound[key])} ms", audio[key] <= limit)

    if report := results.full_size_against_reference:
        for streams, (bf16, int8, batch) in GOALS.items():
            for name, key, factor in (("bfloat16", "times_one_at_a_time", bf16), ("int8", "times_one_at_a_time", int8), ("int8", "times_static_batch", batch)):
                row = report["ours"].get(name, {}).get("streams", {}).get(streams)
                if not row or (streams == "1" and key == "times_static_batch"):
                    continue
                against = "the reference one at a time" if key == "times_one_at_a_time" else "its static batch of that size"
                whole, live = row["whole"][key]["median"], row["streams"][key]["median"]
                add(f"{name}, {streams} at once, against {against}", f"{factor} times", f"{whole:.1f} times; as streams {live:.1f}", whole >= factor)
        for name, ours in report["ours"].items():
            for streams, row in ours["streams"].items():
                if "roof" in row and name != "float32":
                    times = row["whole"]["step_s"]["median"] / row["roof"]["step_s"]
                    add(f"{name}, {streams} at once: mean step, prompts included, over the machine's roof", "1.5", f"{times:.2f}", times <= 1.5)
    if report := results.steps:
        lines = [line for line in report["lines"] if line["model"] == "full" and line["weights"] != "float32"]
        for line in lines:
            add(f"decode step, {line['weights']}, batch {line['batch']}, over the bytes it reads", "1.5", f"{line['step_over_floor']:.2f}", line["step_over_floor"] <= 1.5)
        if lines:
            most = max(line["sampler_share"] for line in lines)
            add("sampler, full size", "1 % of a step", f"{most:.1%} at most", most <= 0.01)
            allocations = sum(line["allocations"] for line in lines)
            add("allocations in a decode step", "0", str(allocations), allocations == 0)
    if report := results.full_capacity:
        found = report["capacity"]
        add("full size, int8: streams at once without a silence over 60 s", "16", str(found["streams"]), found["streams"] >= 16 and found["seconds"] >= 60)
        if found["level"] and (engine := found["level"].get("engine")):
            part = engine["decode_share"] / (engine["decode_share"] + engine["generate_share"])
            add("full size at capacity: decoder and vocoder", "25 % of the time", f"{part:.0%}", part <= 0.25)
    for mode, limit in (("low", 0.130), ("exact", 0.330)):
        if report := getattr(results, f"full_{mode}"):
            if level := find_level(report, "closed 1"):
                first(f"full size, int8, one stream, {mode}: first audio p50", level, "p50", limit)
                times = level["first_byte_s"]
                add(f"full size, int8, one stream, {mode}: p99 over p50", "1.5", f"{times['p99'] / times['p50']:.2f}", times["p99"] <= 1.5 * times["p50"])
            if level := find_level(report, "open 75 %"):
                first(f"full size, int8, 75 % of capacity, {mode}: first audio p99", level, "p99", 0.600)
    if report := results.nano_capacity:
        found = report["capacity"]
        add("bundled voice, Opus: streams at once without a silence", "100", str(found["streams"]), found["streams"] >= 100)
    if report := results.nano:
        if level := find_level(report, "closed 1"):
            first("bundled voice, Opus, one stream: first audio p50", level, "p50", 0.040)
        if level := find_level(report, "open 75 %"):
            first("bundled voice, Opus, 75 % of capacity: first audio p99", level, "p99", 0.150)
    if report := results.growth:
        factor = report["rows"][-1]["rtf"]["p50"] / report["rows"][0]["rtf"]["p50"]
        add(f"cost of an audio second at {report['rows'][-1]['audio_s']} s against {report['rows'][0]['audio_s']} s", "1.2 times", f"{factor:.2f} times", factor <= 1.2)
    if report := results.memory_full:
        resident = report["memory_mib"]["resident"]
        add("full size, int8, one stream of 400 positions: resident memory", "450 MB", f"{resident * 1.048576:.0f} MB", resident * 1.048576 <= 450)
    if not rows:
        raise Missing("reference")
    return table(["goal", "wanted", "measured", "reached"], rows)


TABLES = {function.__name__: function for function in (machine, roof, goals, linears, steps, decode, nano, full, capacity, growth, memory, reference)}


def rewritten(text: str, results: Results) -> str:
    def fill(match: re.Match) -> str:
        try:
            content = TABLES[match[2]](results)
        except Missing as missing:
            content = f"Not measured here yet: `bench/run_all --only {missing}`.\n"
        return match[1] + "\n" + content + "\n" + match[4]

    return MARKED.sub(fill, text)


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing, tell whether something would change")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="[bench/results]")
    parser.add_argument("--page", type=Path, default=HERE / "README.md", help="[bench/README.md]")
    arguments = parser.parse_args(argv)
    before = arguments.page.read_text(encoding="utf-8")
    after = rewritten(before, Results(arguments.results))
    if arguments.check:
        if before != after:
            print(f"{arguments.page} does not say what the results say; run bench/tables.py", file=sys.stderr)
        return int(before != after)
    arguments.page.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
