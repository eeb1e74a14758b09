#!/usr/bin/env python3
"""PyTorch's ways and this library's, taken in turns in one run: a table of ratios, JSON, pictures.

Every method runs once a round, one process after another on one core, so that what slows the
machine for a while slows them all; the figures are medians over the rounds of each process's second
repetition (its first touches fresh memory). README.md has the commands.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parent
PEERS = BENCH / "peers" / "peers.py"
# Freed memory stays in the process, on huge pages: page faults would dominate PyTorch's time.
TUNABLES = (
    "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=1099511627776:"
    "glibc.malloc.trim_threshold=1099511627776:glibc.malloc.top_pad=67108864"
)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, nargs="+", default=[512])
    parser.add_argument("--peers", nargs="*", default=["plain", "checkpoint", "streambp"],
                        help="methods of peers.py")
    parser.add_argument("--ours", nargs="+", default=["budget=200MiB"],
                        help="options of long_sequence without their dashes, one string a plan, "
                        "such as plain or 'budget=200MiB no-fuse'; the first one is compared")
    parser.add_argument("--model", default="",
                        help="options of the shape, such as 'vocabulary=152000 blocks=4'")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--core", type=int, default=0, help="the processor that all are pinned to")
    parser.add_argument("--python", default=sys.executable, help="one that imports torch")
    parser.add_argument("--long-sequence", type=Path, default=Path("build/bench/long_sequence"),
                        help="the built program")
    parser.add_argument("--counter", type=Path, default=Path("build/bench/libpeak_counter.so"),
                        help="the built peak counter")
    parser.add_argument("--limit-gib", type=float, default=0,
                        help="of a peer's memory; one that needs more has no point")
    parser.add_argument("--timeout", type=float, default=3600, help="seconds of one process")
    parser.add_argument("--out", type=Path, default=Path("build/bench/side_by_side"),
                        help="folder of results")
    return parser.parse_args()


# Our names of the shape's options where peers.py has others.
SHAPE = {"width": "hidden", "blocks": "layers", "inner": "intermediate"}


def flags(words, names={}):
    """'budget=200MiB plain' -> ['--budget=200MiB', '--plain']"""
    pairs = (word.partition("=") for word in words.split())
    return ["--" + names.get(name, name) + sign + value for name, sign, value in pairs]


def peer_command(a, method, tokens):
    limit = [f"--limit-gib={a.limit_gib}"] if a.limit_gib else []
    return [a.python, str(PEERS), f"--method={method}", f"--tokens={tokens}", "--threads=1",
            "--repetitions=2", *flags(a.model, SHAPE), *limit]


def our_command(a, options, tokens):
    return [str(a.long_sequence.resolve()), f"--tokens={tokens}", "--threads=1",
            "--repetitions=2", "--json", *flags(a.model), *flags(options)]


def run(a, command, counted):
    """The JSON line of one process; what went wrong is a point of its own."""
    environment = dict(os.environ, OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
    if counted:
        environment |= {"LD_PRELOAD": str(a.counter.resolve()), "GLIBC_TUNABLES": TUNABLES}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=a.timeout,
                              env=environment, preexec_fn=lambda: os.sched_setaffinity(0, {a.core}))
    except subprocess.TimeoutExpired:
        return {"error": f"more than {a.timeout:.0f} s"}
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        return {"error": last[:200]}
    return json.loads(lines[-1])


def bytes_of(point):
    """Beyond weights and gradients: what malloc gave out at most, and our arena."""
    if "arena_bytes" in point:
        return point["arena_bytes"] + point["malloc_bytes"]
    return point["live_bytes"]


def summary(points):
    good = [p for p in points if "error" not in p]
    if not good:
        return {"error": points[0]["error"]}
    return {
        "seconds": statistics.median(p["seconds"][1] for p in good),
        "fastest": min(p["seconds"][1] for p in good),
        "slowest": max(p["seconds"][1] for p in good),
        "bytes": max(bytes_of(p) for p in good),
    }


def measure(a):
    """{tokens: {method: [point of each round]}}, in the order of the table."""
    methods = {f"PyTorch, {name}": (peer_command, name, True) for name in a.peers}
    methods |= {f"this library, {options}": (our_command, options, False) for options in a.ours}
    points = {}
    for tokens in a.tokens:
        points[tokens] = {name: [] for name in methods}
        for turn in range(a.rounds):
            for name, (command, option, preload) in methods.items():
                point = run(a, command(a, option, tokens), preload)
                points[tokens][name].append(point)
                said = point.get("error") or f"{point['seconds'][1]:.2f} s"
                print(f"{tokens} tokens, round {turn + 1}, {name}: {said}", file=sys.stderr)
    return points


def table(a, results):
    reference = f"this library, {a.ours[0]}"
    lines = [
        f"Ratios: this library with {a.ours[0]} to the method; below 1 it needs less.",
        "",
        "| tokens | method | seconds | MiB | ratio of seconds | ratio of bytes |",
        "|---:|---|---:|---:|---:|---:|",
    ]
    failures = []
    for tokens, methods in results.items():
        base = methods[reference]
        for name, r in methods.items():
            if "error" in r:
                lines.append(f"| {tokens} | {name} | none | | | |")
                failures.append(f"- {tokens} tokens, {name}: {r['error']}")
                continue
            ratios = " | |"
            if "error" not in base:
                ratios = (f" {base['seconds'] / r['seconds']:.2f} |"
                          f" {base['bytes'] / r['bytes']:.2f} |")
            lines.append(f"| {tokens} | {name} | {r['seconds']:.2f} | {r['bytes'] / 2**20:.0f} |"
                         + ratios)
    return "\n".join(lines + ([""] + failures if failures else [])) + "\n"


def write_columns(path, results, value):
    """Tokens, then a column a method; what could not run is 'nan', which gnuplot leaves out."""
    names = list(next(iter(results.values())))
    rows = ["tokens\t" + "\t".join(names)]
    for tokens, methods in sorted(results.items()):
        rows.append("\t".join([str(tokens)] + [f"{value(methods[n])}" for n in names]))
    path.write_text("\n".join(rows) + "\n")


def write_pictures(a, results):
    write_columns(a.out / "seconds.tsv", results, lambda r: r.get("seconds", "nan"))
    write_columns(a.out / "mebibytes.tsv", results,
                  lambda r: r["bytes"] / 2**20 if "bytes" in r else "nan")
    try:
        subprocess.run(["gnuplot", str(BENCH / "side_by_side.gnuplot")], cwd=a.out, check=True)
    except FileNotFoundError:
        print("no pictures: gnuplot is not installed", file=sys.stderr)


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def main():
    a = arguments()
    for needed in (a.long_sequence, a.counter):
        if not needed.exists():
            sys.exit(f"side_by_side: {needed} does not exist; README.md says how to build it")
    a.out.mkdir(parents=True, exist_ok=True)
    points = measure(a)
    results = {t: {name: summary(p) for name, p in methods.items()}
               for t, methods in points.items()}
    data = {"processor": processor(), "rounds": a.rounds, "model": a.model, "ours": a.ours,
            "results": results, "points": points}
    (a.out / "side_by_side.json").write_text(json.dumps(data, indent=1) + "\n")
    (a.out / "side_by_side.md").write_text(table(a, results))
    write_pictures(a, results)
    print(table(a, results), end="")


if __name__ == "__main__":
    main()
