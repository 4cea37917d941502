"""Results as people read them."""

from typing import Any

from gateway.bench.scoring import Answered, Laid, summary
from gateway.bench.tables import MARKS, aligned, by_category, by_method, markdown, put_in, text


def answered(name: str, category: str, whole: tuple[str, ...]) -> Answered:
    laid = Laid(tokens=500, record_count=3, whole=whole, parts=("b",), ms=4.0, is_first=True)
    return Answered(name, category, ("a", "b"), {1_024: laid})


FIGURES: dict[str, Any] = {
    "index_s": 1.5,
    "degraded": ["embedder"],
    "categories": summary([answered("q1", "multi-hop", ("a",)), answered("q2", "temporal", ())]),
}
RESULTS: dict[str, Any] = {
    "command": "library-of-context bench recall --data hand.jsonl",
    "tokenizer": "o200k_base",
    "settings": {"embedder": "none", "unrelated": False, "peers": {"mem0": "mem0ai-2.2.1"}},
    "sets": [
        {
            "name": "hand",
            "sha256": "ab" * 32,
            "conversations": 1,
            "messages": 1_234,
            "questions": 2,
            "labels_left_out": 3,
            "questions_left_out": 0,
        }
    ],
    "methods": {"measured": {"hand": FIGURES}, "window": {"hand": FIGURES}},
}


def test_a_table_has_its_figures_under_their_heads() -> None:
    assert aligned(by_category(FIGURES, "whole")) == [
        "category   asked       @1,024",
        "---------  -----  -----------",
        "multi-hop      1  .500 / .000",
        "temporal       1  .000 / .000",
        "all            2  .250 / .000",
    ]
    assert aligned(by_category(FIGURES, "passage"))[-1].endswith(".750 / .500")


def test_methods_stand_below_each_other() -> None:
    assert aligned(by_method(RESULTS, "hand", "passage")) == [
        "method         @1,024  p50 ms  p95 ms",
        "--------  -----------  ------  ------",
        "measured  .750 / .500     4.0     4.0",
        "window    .750 / .500     4.0     4.0",
    ]


def test_what_a_reader_must_know_stands_below() -> None:
    lines = text(RESULTS).splitlines()
    assert "hand: sha256 abababababababab, 1 conversations, 1,234 messages, 2 questions" in lines
    assert "hand: 3 labels left out, they name no message" in lines
    assert "measured on hand was degraded: embedder" in lines
    assert "tokens: o200k_base; embedder: none" in lines
    assert "mem0: mem0ai-2.2.1" in lines
    assert "hand: told to the library and indexed in 1.5 s" in lines


def test_unrelated_questions_have_a_table_of_their_own() -> None:
    unrelated = RESULTS | {"settings": RESULTS["settings"] | {"unrelated": True}}
    assert "hand, measured      2   48.8%" in text(unrelated)
    assert "recall" not in text(unrelated)


def test_markdown_takes_the_place_of_what_stood_between_the_marks() -> None:
    block = markdown(RESULTS)
    assert "| measured | .750 / .500 | 4.0 | 4.0 |" in block
    assert "| multi-hop | 1 | 1.00 / 1.00 |" in block
    assert "| multi-hop | 1 | .500 / .000 |" in block, "both countings, where they differ"
    assert RESULTS["command"] in block
    document = f"before\n{MARKS[0]}\nold\n{MARKS[1]}\nafter\n"
    assert put_in(document, block) == f"before\n{MARKS[0]}\n{block}{MARKS[1]}\nafter\n"
    assert put_in(put_in(document, "other\n"), block) == put_in(document, block)
    assert put_in("", block) == block
