#!/usr/bin/env python3
"""Plants the faults of list.txt one by one in a copy of the headers and says which tests notice.

    tests/mutants/run.py                  every mutant (an hour on one core)
    tests/mutants/run.py stage visit.     those whose name begins so
    tests/mutants/run.py --baseline       the named tests of the tree as it is: all must pass
    tests/mutants/run.py --list           compiles nothing: every text must stand once in its file

A mutant is killed when a test file named for it fails (a static_assert of its own included),
crashes or hangs; it survives when all of them pass. Ends with status 1 when a mutant survives that
the list does not explain, or when a text has moved. Not part of CI.
"""
import argparse
import collections
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

here = pathlib.Path(__file__).resolve().parent
root = here.parent.parent
seconds = 300  # a test that runs longer hangs


class Mutant:
    def __init__(self, name):
        self.name, self.file, self.tests, self.why = name, None, [], ""
        self.old, self.new = [], []


def read_list(path):
    """Blocks of `[name]`, `file`, `test` (tried in order), `- old` and `+ new` lines, `why`."""
    mutants = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        key, _, rest = line.partition(" ")
        if line.startswith("["):
            mutants.append(Mutant(line.strip("[]")))
        elif key == "file":
            mutants[-1].file = "include/streambp/" + rest
        elif key == "test":
            mutants[-1].tests += ["tests/" + t + ".cpp" for t in rest.split()]
        elif key == "-":
            mutants[-1].old.append(rest)
        elif key == "+":
            mutants[-1].new.append(rest)
        elif key == "why":  # it changes no behaviour: the test cannot notice
            mutants[-1].why += rest + " "
        else:
            sys.exit(f"{path}:{number}: '{key}' is no key of a mutant")
    names = collections.Counter(m.name for m in mutants)
    twice = [n for n, count in names.items() if count > 1]
    if twice:
        sys.exit(f"{path}: two mutants are called {twice[0]}")
    return mutants


def mutated(m, folder):
    """The file's text with the mutant in it; None when its text does not stand there just once."""
    text = (folder / m.file).read_text()
    # A text begins and ends anywhere in its lines; between lines it is compared with its indent.
    old, new = "\n".join(m.old), "\n".join(m.new)
    if not m.old or text.count(old) != 1:
        return None
    return text.replace(old, new)


class Tree:
    """A copy of the headers and tests to compile in."""

    def __init__(self, folder, options):
        self.folder = pathlib.Path(folder)
        for name in ("include", "tests", "examples"):
            shutil.copytree(root / name, self.folder / name)
        self.compiler = [options.compiler, "-std=c++20", options.optimise, "-DNDEBUG",
                         "-march=x86-64-v3", "-w", "-Iinclude", "-Itests",
                         "-isystem", options.eigen,
                         f'-DSTREAMBP_REFERENCE_DIR="{self.folder}/tests/reference"']
        self.call([*self.compiler, "-c", "tests/main.cpp", "-o", "main.o"], check=True)

    def call(self, command, **more):
        return subprocess.run(["nice", "-n", "5", *command], cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", **more)

    def run(self, test):
        """'passes', 'fails', 'does not compile'; and the first line that says why."""
        built = self.call([*self.compiler, test, "main.o", "-o", "test", "-pthread"])
        if built.returncode:
            errors = [l for l in built.stdout.splitlines() if "error" in l]
            own = [l for l in errors if l.startswith("tests/") and "static assertion" in l]
            return ("fails", own[0]) if own else ("does not compile", (errors or ["?"])[0])
        try:
            ran = self.call(["./test", "--no-skipped-summary"], timeout=seconds)
        except subprocess.TimeoutExpired:
            return "fails", f"still running after {seconds} s"
        if ran.returncode == 0:
            return "passes", ""
        failed = [l for l in ran.stdout.splitlines() if "ERROR" in l]
        return "fails", (failed or [f"status {ran.returncode}"])[0].replace("ERROR: ", "")


def judge(tree, m):
    text = mutated(m, tree.folder)
    if text is None:
        return "text has moved", ""
    path = tree.folder / m.file
    original = path.read_text()
    path.write_text(text)
    try:
        for test in m.tests:
            result, detail = tree.run(test)
            if result == "fails":
                return "killed", detail
            if result == "does not compile":
                return result, detail
        return ("equivalent" if m.why else "survived"), ""
    finally:
        path.write_text(original)


def area(m):
    return m.file.split("/")[2]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="beginnings of names")
    parser.add_argument("--baseline", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--optimise", default="-Og")
    parser.add_argument("--eigen", default="/usr/include/eigen3")
    options = parser.parse_args()
    everything = read_list(here / "list.txt")
    chosen = list(dict.fromkeys(m for beginning in options.names or [""] for m in everything
                                if m.name.startswith(beginning)))

    if options.list:
        moved = [m for m in chosen if mutated(m, root) is None]
        for m in moved:
            print(f"{m.name}: its text does not stand just once in {m.file}")
        lost = [(m, t) for m in chosen for t in m.tests if not (root / t).exists()]
        for m, t in lost:
            print(f"{m.name}: there is no {t}")
        print(f"{len(chosen)} mutants, {len(moved)} of them moved, {len(lost)} tests lost")
        return 1 if moved or lost else 0

    with tempfile.TemporaryDirectory(prefix="mutants.") as folder:
        tree = Tree(folder, options)
        if options.baseline:
            bad = 0
            for test in sorted({t for m in chosen for t in m.tests}):
                result, detail = tree.run(test)
                bad += result != "passes"
                print(f"{result:<17} {test} {detail}", flush=True)
            return 1 if bad else 0

        counts = collections.defaultdict(collections.Counter)
        for m in chosen:
            start = time.monotonic()
            result, detail = judge(tree, m)
            counts[area(m)][result] += 1
            print(f"{result:<17} {m.name:<32} {time.monotonic() - start:4.0f} s  {detail[:110]}",
                  flush=True)
    kinds = ["killed", "does not compile", "equivalent", "survived", "text has moved"]
    print("\n" + f"{'':<12}" + "".join(f"{k:>18}" for k in kinds))
    total = sum(counts.values(), collections.Counter())
    for name, row in [*sorted(counts.items()), ("all", total)]:
        print(f"{name:<12}" + "".join(f"{row[k]:>18}" for k in kinds))
    return 1 if total["survived"] or total["text has moved"] else 0


if __name__ == "__main__":
    sys.exit(main())
