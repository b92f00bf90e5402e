"""Breaks invariants one at a time and checks that the tests which name them fail (`make mutations`).

A mutation is a row of `tools/mutations/*.toml`: the invariant's words, a file below `src/checkrein`, a text
that occurs in it exactly once, and its replacement. Only a copy of the source is changed.
By default a sample drawn with a fixed seed is run.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tools.invariants import ROOT, SOURCE, marks, namings

ROWS = ROOT / "tools" / "mutations"
SEED = 20261118
SAMPLE = 20


@dataclass(frozen=True)
class Mutation:
    """One way to break one invariant."""

    invariant: str
    file: str
    old: str
    new: str


def mutations() -> list[Mutation]:
    """Every row, in the order of the files. A row that no longer fits the source is an error."""
    found = []
    for path in sorted(ROWS.glob("*.toml")):
        for row in tomllib.loads(path.read_text(encoding="utf-8")).get("mutation", []):
            mutation = Mutation(**row)
            count = (SOURCE / mutation.file).read_text(encoding="utf-8").count(mutation.old)
            if count != 1:
                where = f"{path.name}, {mutation.invariant!r}"
                sys.exit(f"{where}: the old text occurs {count} times in {mutation.file}, not once.")
            found.append(mutation)
    return found


def survives(mutation: Mutation, nodes: list[str], seconds: float) -> bool:
    """Whether these tests pass although the invariant is broken."""
    room = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108
    with tempfile.TemporaryDirectory(dir=room) as folder:
        copy = Path(folder, "checkrein")
        shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        broken = copy / mutation.file
        text = broken.read_text(encoding="utf-8")
        broken.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *nodes]
        environment = os.environ | {"PYTHONPATH": folder}
        try:
            ended = subprocess.run(  # noqa: S603
                command, cwd=ROOT, env=environment, timeout=seconds, capture_output=True, check=False
            )
        except subprocess.TimeoutExpired:
            return False
    if ended.returncode not in {0, 1}:
        sys.exit(f"pytest could not run {' '.join(nodes)}:\n{ended.stdout.decode()[-2000:]}")
    return ended.returncode == 0


def main() -> int:
    """Run the chosen mutations; the exit status is 1 if any survived, or if a drawn invariant has no row."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutations", description=__doc__)
    parser.add_argument("--all", action="store_true", help="run every row instead of a sample")
    parser.add_argument(
        "--only", metavar="TEXT", help="run the rows whose invariant or file contains this text"
    )
    parser.add_argument(
        "--seconds", type=float, default=300, help="give up on one mutation after this time (caught)"
    )
    options = parser.parse_args()
    rows, missing = mutations(), list[str]()
    if options.only:
        chosen = [row for row in rows if options.only in row.invariant or options.only in row.file]
    elif options.all:
        chosen = rows
    else:
        words = sorted({mark.words for mark in marks() if mark.strict})
        drawn = random.Random(SEED).sample(words, SAMPLE)  # noqa: S311
        chosen = [row for words in drawn for row in rows if row.invariant == words]
        missing = sorted(set(drawn) - {row.invariant for row in chosen})
        print(*(f"NO ROW    {each}\n" for each in missing), sep="", end="")
    named = namings()
    survivors = 0
    for row in chosen:
        nodes = [each.node for each in named if each.words == row.invariant and each.quick]
        survived = not nodes or survives(row, nodes, options.seconds)
        survivors += survived
        print(f"{'SURVIVED ' if survived else 'caught   '} {row.invariant} ({row.file})", flush=True)
    print(f"{len(chosen)} mutations, {len(chosen) - survivors} caught, {survivors} survived.")
    return 1 if survivors or missing or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
