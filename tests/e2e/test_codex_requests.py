"""What Codex CLI sends, as it sends it: `session_id` header, `store: false`, sealed reasoning, the
whole transcript with every step.

Source: openai/codex, codex-rs/codex-api/src/common.rs (`ResponsesApiRequest`), requests/headers.rs,
sse/responses.rs. The words are our own.
"""

import json
from typing import Any

import httpx

from tests.e2e.answers import Json
from tests.e2e.conftest import StartGateway
from tests.e2e.gateway_process import GatewayProcess
from tests.e2e.responses_answers import RESPONSES_PATH, calling, reasoned, spoken, streamed_items
from tests.e2e.stub_upstream import StubUpstream
from tests.e2e.talk import filler, texts

SHELL = {
    "type": "function",
    "name": "shell",
    "description": "Runs a shell command.",
    "strict": False,
    "parameters": {
        "type": "object",
        "properties": {"command": {"type": "array", "items": {"type": "string"}}},
        "required": ["command"],
        "additionalProperties": False,
    },
}
PATCH = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Edits files.",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: begin_patch"},
}


def says(text: str) -> Json:
    part = {"type": "input_text", "text": text}
    return {"type": "message", "role": "user", "content": [part]}


class Codex:
    """Sends the steps of one session."""

    def __init__(self, gateway: GatewayProcess, session: str) -> None:
        self.session = session
        self.input: list[Json] = [
            {
                "type": "message",
                "role": "developer",
                "content": [{"type": "input_text", "text": "<permissions>read only</permissions>"}],
            },
            says("<environment_context>\n  <cwd>/tmp/project</cwd>\n</environment_context>"),
        ]
        self._http = httpx.Client(base_url=gateway.url, timeout=30, trust_env=False, verify=False)

    def step(self) -> tuple[httpx.Response, list[Json]]:
        """Send the transcript; return the answer, and its items as Codex gathers them."""
        body = {
            "model": "gpt-5-codex",
            "instructions": "You are Codex, a coding agent.",
            "input": self.input,
            "tools": [SHELL, PATCH],
            "tool_choice": "auto",
            "parallel_tool_calls": False,
            "reasoning": {"effort": "medium", "summary": "auto"},
            "store": False,
            "stream": True,
            "include": ["reasoning.encrypted_content"],
            "prompt_cache_key": self.session,
        }
        headers = {
            "session_id": self.session,
            "conversation_id": self.session,
            "originator": "codex_cli_rs",
            "accept": "text/event-stream",
            "authorization": "Bearer sk-test",
        }
        answer = self._http.post("/responses", json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        events = [
            json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")
        ]
        assert events[-1]["type"] == "response.completed"
        items = [event["item"] for event in events if event["type"] == "response.output_item.done"]
        return answer, items

    def close(self) -> None:
        self._http.close()


def remembered(item: Json) -> Json:
    """Return an item as Codex sends it again: without its id where nothing is stored."""
    kept = {key: value for key, value in item.items() if key not in {"id", "status"}}
    if item["type"] == "message":
        kept["content"] = [{"type": "output_text", "text": item["content"][0]["text"]}]
    return kept


def test_a_codex_session_of_many_steps_is_one_thread_and_keeps_its_task(
    gateway: GatewayProcess, upstream: StubUpstream, topic: str
) -> None:
    """CASES A6, F1, H1: a task, then steps of sealed reasoning, a call and its result."""
    codex = Codex(gateway, f"session-{topic}")
    codex.input.append(says(f"Find out why {topic} fails. The key file is KEY-4471.pem."))
    threads = set()
    for number in range(14):
        arguments = json.dumps({"command": ["cat", f"file{number}.py"]})
        step = [reasoned(f"gAAAA{number}" + "x" * 200),
                calling(f"call_{topic}_{number}", "shell", arguments)]  # fmt: skip
        upstream.script(streamed_items(*step, store=False), path=RESPONSES_PATH)
        answer, items = codex.step()
        threads.add(answer.headers["x-library-session"])
        codex.input += [remembered(item) for item in items]
        result = {"output": f"file{number} of {topic}: {filler(number, words=300)}",
                  "metadata": {"exit_code": 0, "duration_seconds": 0.1}}  # fmt: skip
        codex.input.append(
            {"type": "function_call_output", "call_id": f"call_{topic}_{number}",
             "output": json.dumps(result)}
        )  # fmt: skip
    upstream.script(streamed_items(spoken(f"done {topic}"), store=False), path=RESPONSES_PATH)
    answer, _ = codex.step()
    codex.close()
    assert len(threads) == 1
    report = gateway.report(answer.headers["x-library-turn"])
    assert report["is_paged"]
    assert report["identified_by"] == "session_id"
    sent = upstream.last.json
    assert sent["instructions"] == "You are Codex, a coding agent."
    assert sent["input"][0] == codex.input[0]
    assert f"why {topic} fails" in texts(upstream.last.messages)
    latest: list[Any] = codex.input[-3:]
    assert sent["input"][-3:] == latest, "the latest step goes back word for word"
    assert (sent["store"], sent["include"]) == (False, ["reasoning.encrypted_content"])
    stored = [row for row in gateway.events() if topic in row["text"]]
    assert len({row["text"] for row in stored}) == len(stored), "nothing is stored twice"


def test_codex_works_on_a_server_that_has_chat_completions_only(
    start_gateway: StartGateway, topic: str
) -> None:
    gateway = start_gateway(url="offline")
    codex = Codex(gateway, f"session-{topic}")
    codex.input.append(says('call shell {"command": ["ls"]}'))
    _, items = codex.step()
    assert [(item["type"], item["name"]) for item in items] == [("function_call", "shell")]
    codex.input += [remembered(item) for item in items]
    codex.input.append(
        {"type": "function_call_output", "call_id": items[0]["call_id"], "output": "README.md"}
    )
    _, items = codex.step()
    codex.close()
    assert "README.md" in items[0]["content"][0]["text"]
