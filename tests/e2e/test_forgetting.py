"""A thread forgotten while it is answered: the client gets its answer, nothing comes back."""

import json

import httpx
import pytest

from tests.e2e.answers import DONE, ROLE, Answer, Gate, Step, chunk, completion, stream
from tests.e2e.conftest import StartGateway
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import MODEL, Client, RawConnection, user


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_thread_forgotten_in_the_midst_of_its_request_is_answered_and_stays_forgotten(
    start_gateway: StartGateway, upstream: StubUpstream, topic: str, is_stream: bool
) -> None:
    """DESIGN 9: deleting deletes, and it breaks no exchange; 1.4: the answer is not touched."""
    # One of its own: forgetting rewrites the whole database, and the common one has much.
    gateway = start_gateway()
    gate, question, said = Gate(), f"{topic} the question", f"{topic} the answer"
    if is_stream:
        steps: list[Step] = [ROLE, chunk({"content": said}), gate, chunk({}, finish="stop"), DONE]
        upstream.script(stream(steps))
    else:
        data = json.dumps(completion({"role": "assistant", "content": said})).encode()
        upstream.script(
            Answer((data[:9], gate, data[9:]), headers=(("content-type", "application/json"),))
        )
    body = {"model": MODEL, "messages": [user(question)], "stream": is_stream}
    connection = RawConnection(gateway.origin, body, headers={"x-library-session": topic})
    upstream.wait_for_chats(1)
    gone = httpx.delete(f"{gateway.origin}/library/threads/{topic}")
    assert gone.status_code == 200
    gate.open()
    received = connection.read_until(DONE if is_stream else b'"total_tokens": 18}}').decode()
    connection.hang_up()
    assert received.startswith("HTTP/1.1 200")
    assert said in received
    assert "error" not in received
    if not is_stream:
        assert "x-library-degraded: forgotten" in received
    assert gateway.files_holding(question) == gateway.files_holding(said) == []
    assert Client(gateway.url).chat([user(f"{topic} afterwards")]).status == 200
