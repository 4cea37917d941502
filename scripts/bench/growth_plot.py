"""Draws the figures of scripts/bench/growth: `growth_plot.py FIGURES.json FOLDER`.

It runs in an environment that has matplotlib and nothing of ours.
"""

import json
import sys
from pathlib import Path

from matplotlib import pyplot  # type: ignore[import-not-found]

BLUE, GREEN, GREY, RED = "#1f6fb4", "#2a9d6f", "#8a8f98", "#c8503c"


def main() -> None:
    figures = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    sizes = {int(size): found for size, found in figures["sizes"].items()}
    seed = {int(size): value for size, value in figures["seed"].items()}
    # Text stays text in the SVG, and the same figures make the same bytes.
    pyplot.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "growth", "font.size": 9}
    drawing, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4.2), width_ratios=(3, 2))
    search(left, sizes, seed)
    indexing(right, {size: one for size, one in sizes.items() if "indexing" in one})
    drawing.tight_layout()
    for kind, more in (("png", {"Software": None}), ("svg", {"Date": None})):
        drawing.savefig(Path(sys.argv[2], f"growth.{kind}"), dpi=160, metadata=more)


def search(axes, sizes, seed) -> None:  # type: ignore[no-untyped-def]
    for scope, colour in (("project", BLUE), ("thread", GREEN)):
        for name, style in (("p50", "-"), ("p99", ":")):
            values = [one[scope][f"{name}_ms"] for one in sizes.values()]
            axes.plot(list(sizes), values, style, color=colour, marker="o", markersize=3,
                      label=f"scope {scope}, {name}")  # fmt: skip
    axes.plot(list(seed), list(seed.values()), "--", color=RED, marker="s", markersize=3,
              label="exact scan of float lists in Python")  # fmt: skip
    axes.axhline(15, color=GREY, linewidth=0.8)
    axes.text(max(sizes), 13.2, "15 ms", color=GREY, fontsize=8, ha="right", va="top")
    axes.set(xscale="log", yscale="log", ylim=(5, 20_000),
             xlabel="records stored", ylabel="milliseconds a search",
             title="Search, the question's embedding included")  # fmt: skip
    axes.grid(visible=True, which="major", linewidth=0.4)
    axes.legend(frameon=False, fontsize=8, loc="upper left")


def indexing(axes, sizes) -> None:  # type: ignore[no-untyped-def]
    values = [one["indexing"]["per_cpu_second"] for one in sizes.values()]
    axes.plot(list(sizes), values, "-", color=BLUE, marker="o", markersize=3)
    axes.set(xscale="log", ylim=(0, 1.25 * max(values)), xlabel="records stored",
             ylabel="records a second of one core",
             title="Indexing, embedded by the ONNX model")  # fmt: skip
    axes.grid(visible=True, which="major", linewidth=0.4)


if __name__ == "__main__":
    main()
