"""What is answered below `/v1/responses`; more of it in tests/e2e/test_openai_responses.py."""

from pathlib import Path

from tests.unit.gateway.serving import served


async def test_a_compaction_counts_its_items_and_no_tools_that_a_model_would_be_offered(
    tmp_path: Path,
) -> None:
    async with (
        served(tmp_path, lookup_rounds=4) as client,
        client.post("/v1/responses/compact", json={"model": "gpt-4o", "input": "abc"}) as answer,
    ):
        told = await answer.json()
    [item] = told["output"]
    assert "abc" in str(item)
    assert told["usage"]["output_tokens"] == told["usage"]["input_tokens"] < 20
