"""The direct upstream against a real server that misbehaves on purpose."""

import asyncio
import gzip
from collections.abc import AsyncIterator

import pytest

from gateway.upstream.direct import DirectUpstream, open_pool
from gateway.upstream.protocol import Patience, UpstreamFailed, UpstreamRequest
from tests.e2e.answers import Answer, Cut, Gate, Hang, error, said
from tests.e2e.stub_upstream import StubUpstream
from tests.unit.gateway.peers import read

PATIENCE = Patience(connect_s=1.0, first_byte_s=0.5, idle_s=0.3, retries=2)
PATH = "/chat/completions"
BODY = b'{"model": "m", "messages": [{"role": "user", "content": "hi"}]}'


@pytest.fixture
async def upstream(server: StubUpstream) -> AsyncIterator[DirectUpstream]:
    server.reset()
    async with open_pool(PATIENCE) as pool:
        yield DirectUpstream("stub", url=server.url, pool=pool, patience=PATIENCE)


def asked(path: str = PATH, **headers: str) -> UpstreamRequest:
    return UpstreamRequest("POST", path, headers, BODY)


async def test_nothing_is_added_to_a_request_but_what_belongs_to_its_connection(
    server: StubUpstream, upstream: DirectUpstream
) -> None:
    """CASES E1, E5 (headroom#1808, litellm#10791)."""
    reply = await upstream.open(asked(f"{PATH}?api-version=1&x=%2F", **{"x-vendor": "v"}))
    await read(reply)
    seen = server.last
    assert dict(seen.headers) == {
        "host": f"127.0.0.1:{server.port}",
        "x-vendor": "v",
        "accept-encoding": "identity",
        "content-length": str(len(BODY)),
    }
    assert seen.body == BODY
    assert seen.target == f"/v1{PATH}?api-version=1&x=%2F"


async def test_a_large_body_arrives_whole_with_its_length(
    server: StubUpstream, upstream: DirectUpstream
) -> None:
    body = b'{"messages": [], "x": "' + b"y" * 3_000_000 + b'"}'
    server.budget_tokens = None
    server.script(said("ok"))
    await read(await upstream.open(UpstreamRequest("POST", PATH, {}, body)))
    assert server.last.body == body
    assert server.last.header("content-length") == str(len(body))


async def test_an_encoded_answer_is_decoded_and_its_headers_say_so(
    server: StubUpstream, upstream: DirectUpstream
) -> None:
    """CASES E1 (superlocalmemory PR#79)."""
    headers = (("content-type", "x/y"), ("content-encoding", "gzip"), ("set-cookie", "a=1"))
    server.script(Answer((gzip.compress(b"plain"),), headers=headers, framing="length"))
    reply = await upstream.open(asked())
    assert reply.headers == [(b"content-type", b"x/y"), (b"set-cookie", b"a=1")]
    assert await read(reply) == b"plain"


async def test_an_encoding_that_we_do_not_have_goes_on_with_its_name(
    server: StubUpstream, upstream: DirectUpstream
) -> None:
    """Without its name nobody could read it."""
    headers = (("content-encoding", "identity"), ("content-encoding", "gzip, compress"))
    server.script(Answer((gzip.compress(b"plain"),), headers=headers, framing="length"))
    reply = await upstream.open(asked())
    assert reply.headers == [(b"content-encoding", b"gzip, compress")]
    assert await read(reply) == gzip.compress(b"plain")


async def test_chunks_come_as_they_are_sent(server: StubUpstream, upstream: DirectUpstream) -> None:
    """CASES D1 (litellm#26102)."""
    gate = Gate()
    server.script(Answer((b"one", gate, b"two")))
    reply = await upstream.open(asked())
    chunks = reply.chunks()
    assert await anext(chunks) == b"one"
    gate.open()
    assert await anext(chunks) == b"two"
    await reply.aclose()


async def test_closing_ends_the_upstreams_work_at_once(
    server: StubUpstream, upstream: DirectUpstream
) -> None:
    """CASES D6 (litellm#30244)."""
    server.script(Answer((b"one", Hang())))
    reply = await upstream.open(asked())
    await anext(reply.chunks())
    await reply.aclose()
    assert await asyncio.to_thread(server.last.closed.wait, 1.0)


async def test_cancelling_before_the_first_byte_ends_the_upstreams_work_at_once(
    server: StubUpstream, upstream: DirectUpstream
) -> None:
    """CASES D6 (litellm#37140)."""
    server.script(Answer((), before=(Hang(),)))
    asking = asyncio.ensure_future(upstream.open(asked()))
    await asyncio.to_thread(server.wait_for_chats, 1)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert await asyncio.to_thread(server.last.closed.wait, 1.0)


@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_what_may_pass_is_tried_again(
    server: StubUpstream, upstream: DirectUpstream, status: int
) -> None:
    """DESIGN 8: before the first byte only."""
    busy = error(status, {"error": {"message": "busy"}}, headers=[("retry-after", "0")])
    server.script(busy, busy, said("third try"))
    reply = await upstream.open(asked())
    assert b"third try" in await read(reply)
    assert len(server.chats) == 3


async def test_the_last_attempts_answer_is_the_clients(
    server: StubUpstream, upstream: DirectUpstream
) -> None:
    server.respond = lambda _: error(503, {"error": "busy"}, headers=[("retry-after", "0")])
    reply = await upstream.open(asked())
    assert reply.status == 503
    assert len(server.chats) == 3
    await reply.aclose()


async def test_a_long_retry_after_is_left_to_the_client(
    server: StubUpstream, upstream: DirectUpstream
) -> None:
    server.script(error(429, {"error": "slow down"}, headers=[("retry-after", "60")]))
    reply = await upstream.open(asked())
    assert reply.status == 429
    assert (b"retry-after", b"60") in reply.headers
    assert len(server.chats) == 1
    await reply.aclose()


@pytest.mark.parametrize("status", [400, 401, 404, 500])
async def test_what_would_fail_again_is_not_tried_again(
    server: StubUpstream, upstream: DirectUpstream, status: int
) -> None:
    server.script(error(status, {"error": "no"}))
    reply = await upstream.open(asked())
    assert reply.status == status
    assert len(server.chats) == 1
    await reply.aclose()


async def test_a_connection_dropped_before_the_first_byte_is_tried_again(
    server: StubUpstream, upstream: DirectUpstream
) -> None:
    server.script(Answer((), framing="close", before=(Cut(),)), said("second try"))
    assert b"second try" in await read(await upstream.open(asked()))


async def test_an_upload_is_never_sent_twice(
    server: StubUpstream, upstream: DirectUpstream
) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield BODY[:10]
        yield BODY[10:]

    server.script(error(503, {"error": "busy"}))
    request = UpstreamRequest("POST", PATH, {}, b"", upload=pieces())
    reply = await upstream.open(request)
    assert reply.status == 503
    assert [seen.body for seen in server.chats] == [BODY]
    await reply.aclose()


async def test_nobody_listening_is_refused_and_says_where() -> None:
    async with open_pool(PATIENCE) as pool:
        patience = Patience(1.0, 0.5, 0.3, retries=0)
        nowhere = DirectUpstream("n", url="http://127.0.0.1:1/v1", pool=pool, patience=patience)
        with pytest.raises(
            UpstreamFailed, match=r"n refused: no connection to 127.0.0.1:1 \(Connection refused\)"
        ) as failed:
            await nowhere.open(asked())
        assert (failed.value.kind, failed.value.status) == ("refused", 502)
        problem = await nowhere.probe()
        assert problem is not None
        assert "127.0.0.1:1" in problem


async def test_name_and_password_of_a_base_url_are_said_where_the_client_says_none(
    server: StubUpstream,
) -> None:
    """RFC 7617."""
    server.reset()
    url = server.url.replace("://", "://me:p%40ss@")
    async with open_pool(PATIENCE) as pool:
        upstream = DirectUpstream("n", url=url, pool=pool, patience=PATIENCE)
        await read(await upstream.open(asked()))
        await read(await upstream.open(asked(authorization="Bearer own")))
    said_by = [seen.header("authorization") for seen in server.chats]
    assert said_by == ["Basic bWU6cEBzcw==", "Bearer own"]


@pytest.mark.parametrize(
    "request_",
    [asked(**{"x-a": "1\r\nx-b: 2"}), asked(**{"x-a": "1\n"}), asked("/a HTTP/1.1\r\nx-b: 2")],
)
async def test_no_value_becomes_a_header_of_its_own(
    server: StubUpstream, upstream: DirectUpstream, request_: UpstreamRequest
) -> None:
    """RFC 9110, 5.5: a line break in a value would end it."""
    with pytest.raises(UpstreamFailed, match="line break") as failed:
        await upstream.open(request_)
    assert failed.value.kind == "broken"
    assert not server.requests


async def test_a_probe_tells_no_password() -> None:
    """DESIGN 9: keys are never echoed, and readiness is open to anybody."""
    async with open_pool(PATIENCE) as pool:
        url = "http://me:hunter2@127.0.0.1:1/v1"
        problem = await DirectUpstream("n", url=url, pool=pool, patience=PATIENCE).probe()
    assert problem is not None
    assert "127.0.0.1:1" in problem
    assert "hunter2" not in problem


async def test_a_head_that_does_not_come_times_out(
    server: StubUpstream, upstream: DirectUpstream
) -> None:
    """CASES D9."""
    server.script(Answer((), before=(Hang(),)))
    with pytest.raises(UpstreamFailed) as failed:
        await upstream.open(asked())
    assert (failed.value.kind, failed.value.status) == ("timeout", 504)
    assert await asyncio.to_thread(server.last.closed.wait, 1.0)
    assert len(server.chats) == 1


@pytest.mark.parametrize(("end", "kind"), [(Hang(), "timeout"), (Cut(), "broken")])
async def test_an_answer_that_stops_in_the_middle_says_how(
    server: StubUpstream, upstream: DirectUpstream, end: Hang | Cut, kind: str
) -> None:
    """CASES D9."""
    server.script(Answer((b"one", end)))
    reply = await upstream.open(asked())
    chunks = reply.chunks()
    assert await anext(chunks) == b"one"
    with pytest.raises(UpstreamFailed) as failed:
        await anext(chunks)
    await reply.aclose()
    assert failed.value.kind == kind


async def test_a_redirect_is_the_clients_to_follow(
    server: StubUpstream, upstream: DirectUpstream
) -> None:
    """A followed one would carry the key to another host."""
    server.script(Answer((), status=307, headers=(("location", "http://127.0.0.1:1/"),)))
    reply = await upstream.open(asked())
    assert reply.status == 307
    assert (b"location", b"http://127.0.0.1:1/") in reply.headers
    await reply.aclose()


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b'{"tokens": [1, 2, 3]}', 3),
        (b'{"count": 5, "tokens": [1]}', 5),
        (b"[]", None),
        (b"{", None),
    ],
)
async def test_tokens_are_counted_by_the_upstream_as_llama_cpp_and_vllm_do(
    server: StubUpstream, upstream: DirectUpstream, answer: bytes, expected: int | None
) -> None:
    server.script(Answer((answer,)), path="/tokenize")
    assert await upstream.count_tokens("some text") == expected
    asked_for = server.requests[-1].json
    assert asked_for["content"] == asked_for["prompt"] == "some text"


async def test_an_upstream_without_a_tokenizer_is_asked_once(
    server: StubUpstream, upstream: DirectUpstream
) -> None:
    server.script(error(404, {"error": "no"}), path="/tokenize")
    assert await upstream.count_tokens("a") is None
    assert await upstream.count_tokens("b") is None
    assert [seen.path for seen in server.requests] == ["/tokenize"]


async def test_a_refused_key_is_an_answer_and_a_server_error_is_a_problem(
    server: StubUpstream, upstream: DirectUpstream
) -> None:
    server.script(error(401, {"error": "key"}), error(500, {"error": "oops"}), path="/v1/models")
    assert await upstream.probe() is None
    assert await upstream.probe() == f"{server.url} answers 500"


async def test_what_a_base_url_says_in_its_query_goes_with_every_request(
    server: StubUpstream,
) -> None:
    async with open_pool(PATIENCE) as pool:
        server.reset()
        azure = DirectUpstream("a", url=f"{server.url}?v=1", pool=pool, patience=PATIENCE)
        await read(await azure.open(asked()))
        await read(await azure.open(asked(f"{PATH}?x=2")))
    assert [seen.target for seen in server.chats] == [f"/v1{PATH}?v=1", f"/v1{PATH}?x=2&v=1"]
