"""How search and indexing grow with what is stored: 1,000 records to a million, in one run.

A record is a passage of real text, stored as a message of its own (see growth_material.py). They
are recorded and indexed as always, and asked for with questions of the same data through
`Library.search`, the embedding of the question included, from a thread of 1,000 records: within it
(scope `thread`), and in everything (`project`). Beside it, in the same run, stands a plain scan of
lists of floats in Python, which is what the design that this project began with did.

Read ratios within a run, not milliseconds: they depend on the machine and on what else it does.
"""

import argparse
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scripts.bench.growth_seed import TOO_LONG_S
from scripts.bench.servers import ROOT, own_environment

QUICK_SIZES = (1_000, 10_000, 100_000)
SIZES = (*QUICK_SIZES, 1_000_000)
RATE_SIZES = QUICK_SIZES
SEED_SIZES = (1_000, 3_000, 10_000, 30_000, 100_000)
QUESTIONS, QUICK_QUESTIONS = 200, 100
RATE_EVENTS, QUICK_RATE_EVENTS = 256, 128
ORIGINALS = 1_024
FIGURES = ROOT / "scripts" / "bench" / "figures"
PLOT_PACKAGE = "matplotlib==3.11.2"


@dataclass
class Bench:
    """One run, and its figures as they come in."""

    data: list[Path]
    is_quick: bool
    sizes: tuple[int, ...]
    folder: Path
    """Of the stores, one a size; those of an earlier run with the same data are used again."""
    figures: dict[str, Any] = field(default_factory=dict)

    def run(self) -> None:
        digest = hashlib.sha256(b"".join(path.read_bytes() for path in self.data)).hexdigest()
        self.figures = {
            "data": [path.name for path in self.data],
            "data_sha256": digest,
            "machine": f"{os.cpu_count()} cores, {platform.machine()}",
            "python": platform.python_version(),
            "began_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "originals": ORIGINALS,
            "sizes": {},
            "seed": {},
        }
        say(f"embedding {ORIGINALS:,} passages for real; all others are turned copies")
        made = self.step("base", folder=str(self.folder / digest[:16]))
        identity, self.folder = made["identity"], Path(made["folder"])
        rows = self.folder / "originals.npy"
        self.figures["embedder"] = identity
        self.measure_seed(rows)
        self.measure(rows, identity)

    def measure_seed(self, rows: Path) -> None:
        for size in (size for size in SEED_SIZES if size <= self.sizes[-1]):
            p50_ms = self.step("seed", rows=str(rows), size=size)["p50_ms"]
            self.figures["seed"][size] = p50_ms
            say(f"{size:>9,} records, scanned in Python: {p50_ms:,.0f} ms")
            if p50_ms > TOO_LONG_S * 1e3:
                break

    def measure(self, rows: Path, identity: str) -> None:
        count = QUICK_QUESTIONS if self.is_quick else QUESTIONS
        added = QUICK_RATE_EVENTS if self.is_quick else RATE_EVENTS
        for smaller, size in zip((0, *self.sizes), self.sizes, strict=False):
            db = self.store_of(size, smaller, rows, identity)
            asked = self.step("ask", db=str(db), count=count)
            asked["load"] = os.getloadavg()[0]
            if size in RATE_SIZES:
                with tempfile.TemporaryDirectory(dir=self.folder) as folder:
                    copy = copied(db, Path(folder, db.name))
                    asked["indexing"] = self.step("rate", db=str(copy), first=size, count=added)
            self.figures["sizes"][size] = asked
            say(row_of(size, asked))

    def store_of(self, size: int, smaller: int, rows: Path, identity: str) -> Path:
        """Return a store of so many records, grown out of the next smaller one if it is new."""
        db = self.folder / f"growth-{size}.db"
        is_whole = db.with_suffix(".whole")
        if not is_whole.exists():
            for path in self.folder.glob(f"{db.name}*"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            if smaller:
                copied(self.folder / f"growth-{smaller}.db", db)
            grown = self.step(
                "grow", db=str(db), rows=str(rows), identity=identity, first=smaller, stop=size
            )
            is_whole.touch()
            say(f"{size:>9,} records stored, {grown['per_second']:,.0f} a second")
        return db

    def step(self, name: str, **given: Any) -> dict[str, Any]:
        """Run a step in a process of its own."""
        given |= {"data": [str(path) for path in self.data], "originals": ORIGINALS}
        done = subprocess.run(
            [sys.executable, "-m", "scripts.bench.growth_steps", name, json.dumps(given)],
            stdout=subprocess.PIPE,
            cwd=ROOT,
            check=True,
            text=True,
        )
        found = json.loads(done.stdout)
        assert isinstance(found, dict)
        return found

    # -- reporting -----------------------------------------------------------------------------
    def finish(self) -> None:
        """Put what a record takes beside the measured sizes, and what was to be reached."""
        sizes = self.figures["sizes"]
        first = self.sizes[0]
        for size in self.sizes[1:]:
            for kind in ("own", "file"):
                more = sizes[size][f"{kind}_bytes"] - sizes[first][f"{kind}_bytes"]
                sizes[size][f"{kind}_bytes_a_record"] = more / (size - first)
        say("")
        for line in verdicts(sizes):
            say(line)
        say("")
        for line in table_of(self.figures):
            say(line)


def table_of(figures: dict[str, Any]) -> list[str]:
    """Return the figures as the table of the README."""
    lines = [
        "| records | thread: p50 / p99, CPU | all threads: p50 / p99, CPU | list scan in Python "
        "| memory a record | loaded in | indexed a CPU second |",
        "|---|---|---|---|---|---|---|",
    ]
    for size, found in figures["sizes"].items():
        scopes = [
            f"{one['p50_ms']:.1f} / {one['p99_ms']:.1f}, {one['cpu_ms']:.1f} ms"
            for one in (found["thread"], found["project"])
        ]
        scan = figures["seed"].get(size)
        own, file = (found.get(f"{kind}_bytes_a_record") for kind in ("own", "file"))
        cells = [
            f"{size:,}",
            *scopes,
            "" if scan is None else f"{scan:,.0f} ms",
            "" if own is None else f"{own:.0f} + {file:.0f} bytes",
            f"{found['load_s']:.1f} s",
            f"{found['indexing']['per_cpu_second']:.1f}" if "indexing" in found else "",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def copied(db: Path, to: Path) -> Path:
    """Copy a store that nobody has open, and its index."""
    shutil.copy(db, to)
    shutil.copytree(db.with_name(f"{db.name}.index"), to.with_name(f"{to.name}.index"))
    return to


def row_of(size: int, found: dict[str, Any]) -> str:
    """Return one size as a line."""
    parts = [
        f"{size:>9,} records",
        *(
            f"{scope} p50 {found[scope]['p50_ms']:.1f} p99 {found[scope]['p99_ms']:.1f} "
            f"CPU {found[scope]['cpu_ms']:.1f} ms"
            for scope in ("thread", "project")
        ),
        f"resident {found['own_bytes'] / 2**20:.0f} MB, of files {found['file_bytes'] / 2**20:.0f}",
        f"loaded in {found['load_s']:.1f} s",
        f"machine's load {found['load']:.1f}",
    ]
    if "indexing" in found:
        rate = found["indexing"]
        parts.append(
            f"indexing {rate['per_second']:.1f} records/s, "
            f"{rate['per_cpu_second']:.1f} a CPU second"
        )
    return " | ".join(parts)


def verdicts(sizes: dict[int, dict[str, Any]]) -> list[str]:
    """Say which targets of ours this run met."""
    targets: list[tuple[str, float, float]] = []
    for scope in ("thread", "project"):
        if 100_000 in sizes:
            at = sizes[100_000][scope]
            targets += [
                (f"{scope}: p50 at 100,000, ms", at["p50_ms"], 15),
                (f"{scope}: p99 at 100,000, ms", at["p99_ms"], 50),
            ]
        if {10_000, 1_000_000} <= sizes.keys():
            ratio = sizes[1_000_000][scope]["p50_ms"] / sizes[10_000][scope]["p50_ms"]
            targets.append((f"{scope}: p50 at 1,000,000 / p50 at 10,000", ratio, 4))
    for size, most in ((100_000, 2_000), (1_000_000, 600)):
        if size in sizes:
            each = sizes[size]["own_bytes_a_record"] + sizes[size]["file_bytes_a_record"]
            targets.append((f"resident bytes a record at {size:,}", each, most))
    # By the processor's time: nobody else's work is in it.
    rates = [one["indexing"]["per_cpu_second"] for one in sizes.values() if "indexing" in one]
    slower = 100 * (1 - min(rates) / rates[0])
    targets.append(("indexing a CPU second, slowest size against the first, %", slower, 20))
    return [
        f"{'ok' if value <= most else 'MISSED':7} {name}: {value:,.1f} (at most {most:g})"
        for name, value, most in targets
    ]


def plot(figures: Path, into: Path) -> None:
    """Draw the figures; matplotlib has an environment of its own."""
    python = own_environment("matplotlib", PLOT_PACKAGE)
    script = ROOT / "scripts" / "bench" / "growth_plot.py"
    subprocess.run(
        [python, script, figures, into], check=True, env=os.environ | {"MPLBACKEND": "Agg"}
    )


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def files_of(data: Path) -> list[Path]:
    """Return the conversations of a file or folder, see `--data`."""
    return sorted(data.rglob("*.jsonl")) if data.is_dir() else [data]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--data", type=Path, required=True,
        help="a file of conversations with questions (as scripts/bench/recall takes), or a folder",
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="up to 100,000 records")
    parser.add_argument("--into", type=Path, default=FIGURES, help="folder of figures and plots")
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    parser.add_argument(
        "--folder", type=Path, default=home / "library-of-context-bench" / "growth",
        help="where the stores are kept for the next run (2 GB)",
    )  # fmt: skip
    given = parser.parse_args()
    sizes = QUICK_SIZES if given.quick else SIZES
    bench = Bench(files_of(given.data), given.quick, sizes, given.folder)
    bench.run()
    bench.finish()
    given.into.mkdir(parents=True, exist_ok=True)
    figures = given.into / "growth.json"
    figures.write_text(json.dumps(bench.figures, indent=1) + "\n", encoding="utf-8")
    plot(figures, given.into)


if __name__ == "__main__":
    main()
