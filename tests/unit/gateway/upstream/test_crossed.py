"""gateway/upstream/crossed.py and speaking.py: who is asked in which protocol."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field

import orjson
import pytest

from gateway.refusals import ProtocolUnspoken
from gateway.upstream.crossed import CrossedUpstream
from gateway.upstream.protocol import Untranslated, UpstreamFailed, UpstreamRequest
from gateway.upstream.protocol import Upstream as AnyUpstream
from gateway.upstream.speaking import Speaking
from gateway.wire.crossing.responses_on_chat import RESPONSES_ON_CHAT
from gateway.wire.protocol import PromptCache

STREAM = [
    b'data: {"choices": [{"index": 0, "delta": {"content": "hi"}}]}\n\n',
    b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\n',
    b"data: [DONE]\n\n",
]
WHOLE = orjson.dumps(
    {"choices": [{"index": 0, "finish_reason": "stop",
                  "message": {"role": "assistant", "content": "hi"}}]}
)  # fmt: skip


@dataclass
class Reply:
    status: int
    headers: list[tuple[bytes, bytes]]
    pieces: list[bytes]
    is_closed: bool = False

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        for piece in self.pieces:
            yield piece

    async def aclose(self) -> None:
        self.is_closed = True


@dataclass
class Upstream:
    """Answers chat completions, and other paths with a status."""

    other_status: int = 404
    chat_status: int = 200
    speaks: frozenset[str] | None = None
    caches: Mapping[str, PromptCache] = field(default_factory=dict)
    name: str = "local"
    asked: list[tuple[str, bytes]] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)

    async def open(self, request: UpstreamRequest) -> Reply:
        self.asked.append((request.path, request.body))
        is_chat = request.path.startswith("/chat/completions")
        is_stream = is_chat and b'"stream":true' in request.body
        kind = b"text/event-stream" if is_stream else b"application/json"
        reply = Reply(
            self.chat_status if is_chat else self.other_status,
            [(b"content-type", kind), (b"content-length", b"99"), (b"x-own", b"1")],
            (STREAM if is_stream else [WHOLE]) if is_chat else [b"{}"],
        )
        self.replies.append(reply)
        return reply

    async def count_tokens(self, text: str) -> int | None:
        return len(text)

    async def probe(self) -> str | None:
        return None

    async def close(self) -> None:
        return None


def request(**fields: object) -> UpstreamRequest:
    body = orjson.dumps({"model": "m", "input": "x", **fields})
    return UpstreamRequest(method="POST", path="/responses?v=1", headers={}, body=body)


def crossed(upstream: Upstream, *, limit_bytes: int = 9_999) -> CrossedUpstream:
    return CrossedUpstream(
        upstream,
        RESPONSES_ON_CHAT,
        is_sure=True,
        limit_bytes=limit_bytes,
        on_lacking=lambda: None,
    )


async def read(driver: AnyUpstream, asked: UpstreamRequest) -> bytes:
    reply = await driver.open(asked)
    return b"".join([chunk async for chunk in reply.chunks()])


async def test_the_upstream_is_asked_in_its_own_protocol() -> None:
    upstream = Upstream()
    body = orjson.loads(await read(crossed(upstream), request()))
    assert body["output"][0]["content"][0]["text"] == "hi"
    ((path, sent),) = upstream.asked
    assert path == "/chat/completions?v=1"
    assert orjson.loads(sent)["messages"] == [{"role": "user", "content": "x"}]


async def test_each_piece_of_a_stream_is_translated_when_it_comes() -> None:
    """CASES D1."""
    reply = await crossed(Upstream()).open(request(stream=True))
    chunks = [chunk async for chunk in reply.chunks()]
    assert b"response.output_text.delta" in chunks[0]
    assert b"response.completed" in chunks[-1]
    assert (b"content-length", b"99") not in reply.headers
    assert (b"x-own", b"1") in reply.headers


async def test_two_answers_never_have_one_id() -> None:
    driver = crossed(Upstream())
    ids = {orjson.loads(await read(driver, request()))["id"] for _ in range(3)}
    assert len(ids) == 3


async def asked_twice(upstream: Upstream) -> list[str]:
    """Return the paths that two requests of one gateway ask for."""
    speaking = Speaking(limit_bytes=9_999)
    for _ in range(2):
        await read(speaking.upstream_for("responses", upstream), request())
    return [path.partition("?")[0] for path, _ in upstream.asked]


async def test_who_may_speak_a_protocol_is_asked_in_it_until_it_has_no_such_path() -> None:
    upstream = Upstream()
    paths = await asked_twice(upstream)
    assert paths == ["/responses", "/chat/completions", "/chat/completions"]
    assert upstream.replies[0].is_closed
    assert await asked_twice(Upstream(other_status=200)) == ["/responses"] * 2


async def test_a_missing_model_is_no_missing_path() -> None:
    paths = await asked_twice(Upstream(chat_status=404))
    assert paths == ["/responses", "/chat/completions"] * 2


async def test_what_cannot_be_translated_reaches_no_upstream() -> None:
    upstream = Upstream()
    with pytest.raises(Untranslated) as refused:
        await crossed(upstream).open(request(tools=[{"type": "web_search"}]))
    assert refused.value.param == "tools"
    assert upstream.asked == []


async def test_an_answer_too_long_to_be_translated_is_an_error() -> None:
    with pytest.raises(UpstreamFailed):
        await read(crossed(Upstream(), limit_bytes=10), request())


def test_only_who_does_not_speak_a_protocol_is_crossed() -> None:
    speaking = Speaking(limit_bytes=9)
    native = Upstream(speaks=frozenset({"chat", "responses"}))
    assert speaking.upstream_for("responses", native) is native
    local = Upstream(speaks=frozenset({"chat"}))
    assert speaking.upstream_for("chat", local) is local
    assert isinstance(speaking.upstream_for("responses", local), CrossedUpstream)
    assert isinstance(speaking.upstream_for("responses", Upstream(name="b")), CrossedUpstream)
    strange = Upstream(speaks=frozenset({"messages"}))
    with pytest.raises(ProtocolUnspoken):
        speaking.upstream_for("responses", strange)
