"""What the load bench says of its figures."""

from typing import Any

from scripts.bench.load import judged, shown


def row(**more: Any) -> dict[str, Any]:
    return {
        "name": "grouped",
        "per_second": 10.0,
        "cpu_ms": 3.0,
        "fsyncs": 0.5,
        "failed": 0,
        "p50_ms": {"new": 5.0, "paged": 10.0},
        "p99_ms": {"new": 29.0, "paged": 30.0},
    } | more


def test_what_must_hold_is_said_with_its_ratio() -> None:
    said = judged(row(), row(fsyncs=2.0))
    assert [holds for _, holds in said] == [True, True, True]
    assert said[0][0].startswith("fsyncs a request: 4.0x")
    worse = judged(row(p99_ms={"paged": 31.0}, failed=1), row(fsyncs=1.0))
    assert [holds for _, holds in worse] == [False, False, False]


def test_each_gateway_has_a_line() -> None:
    assert shown([row(), row(name="alone")]).count("paged 10.0/30.0") == 2
