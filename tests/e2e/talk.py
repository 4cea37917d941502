"""What a client says: messages, transcripts, and one way to post them raw."""

import json
import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import httpx

from tests.e2e.answers import Json, call
from tests.e2e.protocols import CHAT, Protocol

MODEL = "gpt-4o-mini"
"""Its tokenizer is o200k_base, so the gateway's count is exact and ours can check it."""

_WORDS = (
    *("river", "stone", "lantern", "harbour", "copper", "meadow", "violin", "thunder", "maple"),
    *("orbit", "canvas", "pepper", "saddle", "granite", "whisper", "falcon", "ribbon", "timber"),
    *("crystal", "anchor", "velvet", "pocket", "marble", "silver", "garden"),
)


def system(text: str) -> Json:
    return {"role": "system", "content": text}


def user(text: Any) -> Json:
    return {"role": "user", "content": text}


def assistant(text: Any, **more: Any) -> Json:
    return {"role": "assistant", "content": text, **more}


def asks(*tool_calls: Json, text: str | None = None, **more: Any) -> Json:
    return {"role": "assistant", "content": text, "tool_calls": list(tool_calls), **more}


def result(call_id: str, text: Any) -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def tool(name: str, description: str = "Does what its name says.") -> Json:
    parameters = {"type": "object", "properties": {"q": {"type": "string"}}}
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


def filler(seed: int | str, *, words: int = 60) -> str:
    """Return plain words that no question of a test asks for; one or two tokens each."""
    chosen = random.Random(f"filler {seed}")
    return " ".join(chosen.choice(_WORDS) for _ in range(words))


def small_talk(name: str, *, turns: int, words: int = 60) -> list[Json]:
    """Return `turns` question-and-answer pairs, every message a different one."""
    messages: list[Json] = []
    for turn in range(turns):
        messages.append(user(f"{name} question {turn}: {filler(f'{name} q{turn}', words=words)}"))
        messages.append(
            assistant(f"{name} answer {turn}: {filler(f'{name} a{turn}', words=words)}")
        )
    return messages


def tool_steps(name: str, *, steps: int, words: int = 60, parallel: int = 1) -> list[Json]:
    """Return an agent's steps, each one message with `parallel` calls and their results."""
    messages: list[Json] = []
    for step in range(steps):
        ids = [f"call_{name}_{step}_{index}" for index in range(parallel)]
        messages.append(
            asks(*(call(i, "look", f'{{"q": "{name} {step} {n}"}}') for n, i in enumerate(ids)))
        )
        messages += [result(i, f"{name} saw {i}: {filler(i, words=words)}") for i in ids]
    return messages


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer of the gateway, read to its end."""

    status: int
    headers: httpx.Headers
    content: bytes
    protocol: Protocol = CHAT

    @property
    def json(self) -> Json:
        value = httpx.Response(self.status, content=self.content).json()
        assert isinstance(value, dict)
        return value

    @property
    def text(self) -> str:
        found = self.protocol.message(self.json)["content"]
        assert isinstance(found, str)
        return found

    @property
    def code(self) -> Any:
        """Which error it is, in whatever place the protocol has for it."""
        return self.protocol.code(self.json)

    @property
    def turn_id(self) -> str:
        return self.headers["x-library-turn"]

    @property
    def thread_id(self) -> str:
        return self.headers["x-library-session"]

    @property
    def prompt_tokens(self) -> int:
        return int(self.headers["x-library-prompt-tokens"])


class Client:
    """Posts chats to one gateway as bare HTTP, so that a test sees every byte and header."""

    opened: ClassVar[list["Client"]] = []
    """Closed after each test (conftest.py), also when it failed half-way."""

    def __init__(self, url: str, protocol: Protocol = CHAT) -> None:
        self.url = url
        self.protocol = protocol
        self.http = httpx.Client(base_url=url, timeout=30, trust_env=False, verify=False)
        self.opened.append(self)

    def close(self) -> None:
        self.http.close()

    def chat(
        self,
        messages: list[Json],
        *,
        budget: int | None = None,
        session: str | None = None,
        headers: dict[str, str] | None = None,
        model: str = MODEL,
        **fields: Any,
    ) -> Reply:
        """Post a chat and return whatever came; streams are read to their end."""
        sent = self.http.post(
            self.protocol.path,
            json=self.protocol.request({"model": model, "messages": messages, **fields}),
            headers=request_headers(budget=budget, session=session, more=headers),
        )
        return Reply(sent.status_code, sent.headers, sent.content, self.protocol)

    @contextmanager
    def streaming(
        self, messages: list[Json], *, session: str | None = None, **fields: Any
    ) -> Iterator[httpx.Response]:
        """Open a streamed chat; leaving the block hangs up."""
        body = {"model": MODEL, "messages": messages, "stream": True, **fields}
        with self.http.stream(
            "POST",
            self.protocol.path,
            json=self.protocol.request(body),
            headers=request_headers(session=session),
        ) as response:
            yield response


def request_headers(
    *, budget: int | None = None, session: str | None = None, more: dict[str, str] | None = None
) -> dict[str, str]:
    headers = dict(more or {})
    if budget is not None:
        headers["x-library-budget-tokens"] = str(budget)
    if session is not None:
        headers["x-library-session"] = session
    return headers


def texts(messages: list[Json]) -> str:
    """Return all words of a prompt as one text, to look for something in it."""
    found: list[str] = []
    for message in messages:
        content = message.get("content")
        if isinstance(content, str):
            found.append(content)
        elif content:
            found += [str(part.get("text", "")) for part in content]
    return "\n".join(found)


class RawConnection:
    """One chat over a bare socket, which can hang up at any moment and see every header line."""

    def __init__(
        self,
        origin: str,
        body: Json | bytes,
        *,
        headers: dict[str, str] | None = None,
        path: str = "/v1/chat/completions",
    ) -> None:
        host, _, port = origin.removeprefix("http://").partition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=10)
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {"host": f"{host}:{port}", "content-type": "application/json"} | (headers or {})
        named = {"content-length": str(len(content))} | named
        lines = [f"POST {path} HTTP/1.1", *(f"{k}: {v}" for k, v in named.items()), "", ""]
        self._socket.sendall("\r\n".join(lines).encode() + content)
        self.received = b""

    def read_until(self, wanted: bytes) -> bytes:
        while wanted not in self.received:
            data = self._socket.recv(1 << 16)
            assert data, f"the gateway hung up after {self.received!r}"
            self.received += data
        return self.received

    def read_head(self) -> tuple[int, list[tuple[str, str]]]:
        """Return the status and the header lines in order, duplicates kept, names lower-case."""
        head = self.read_until(b"\r\n\r\n").partition(b"\r\n\r\n")[0].decode("latin-1")
        first, *lines = head.split("\r\n")
        pairs = [line.partition(":") for line in lines]
        return int(first.split(" ")[1]), [(name.lower(), value.strip()) for name, _, value in pairs]

    def hang_up(self) -> None:
        self._socket.close()
