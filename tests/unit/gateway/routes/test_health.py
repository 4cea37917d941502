"""What /metrics tells of a running gateway; readiness is held in test_readiness.py."""

from pathlib import Path

from tests.unit.gateway.serving import chat, served


async def test_metrics_show_what_the_caches_did(tmp_path: Path) -> None:
    """Issue 2: /metrics, caches."""
    async with served(tmp_path) as client:
        for texts in (("hello",), ("hello", "hi", "again")):
            async with client.post("/v1/chat/completions", json=chat(*texts)) as answer:
                assert answer.status == 200
                await answer.read()
        async with client.get("/metrics") as answer:
            lines = (await answer.text()).splitlines()
    assert 'library_cache{cache="messages",what="hits"} 1.0' in lines
    assert 'library_cache{cache="messages",what="misses"} 3.0' in lines
    for cache in ("messages", "token_counts", "paths"):
        assert any(line.startswith(f'library_cache{{cache="{cache}",') for line in lines)
