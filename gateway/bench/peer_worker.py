"""Runs in the environment of a peer: the one place that knows how each of them is asked.

A program of its own that imports nothing of ours, because a peer's packages are not ours and never
shall be. It reads JSON lines and writes one for each:

    {"peer", "messages": [{"role", "name", "text", "cost", "row"}]}  ->  {"ready": version}
    {"question", "row", "budget"}                                   ->  {"order": [message], "ms"}

`cost` is what a message costs on the desk, `row` its vector (both for peers that count or compare).
`order` has the places of messages, best first. A peer that chooses within a budget is given the
true costs, so that its own guesses about tokens do not decide.
"""

import importlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

Message = dict[str, Any]
Ask = Callable[[str, list[float], int], list[int]]


def langchain(messages: list[Message]) -> Ask:
    """`trim_messages`: the newest messages that fit.

    Source: reference.langchain.com, langchain_core.messages.utils.trim_messages.
    """
    library = importlib.import_module("langchain_core.messages")
    kinds = {"user": library.HumanMessage, "assistant": library.AIMessage}
    made = [
        kinds.get(one["role"], library.HumanMessage)(content=one["text"], id=str(at))
        for at, one in enumerate(messages)
    ]

    def ask(question: str, row: list[float], budget: int) -> list[int]:
        kept = library.trim_messages(
            made,
            max_tokens=budget,
            token_counter=lambda some: sum(messages[int(one.id)]["cost"] for one in some),
            strategy="last",
        )
        return [int(one.id) for one in reversed(kept)]

    return ask


def acolyterag(messages: list[Message]) -> Ask:
    """`retrieve_related_messages` in its token-budget mode.

    Source: github.com/pastor0711/AcolyteRAG, README "API Reference".
    """
    library: Any = importlib.import_module("acolyterag.retrieval")
    costs = {one["text"]: one["cost"] for one in messages}
    library._estimate_tokens = lambda text: costs[text]
    history = [
        {"role": one["role"], "content": one["text"], "place": at}
        for at, one in enumerate(messages)
    ]

    def ask(question: str, row: list[float], budget: int) -> list[int]:
        found = library.retrieve_related_messages(
            history,
            question,
            max_retrieved=len(history),
            exclude_last_n=0,
            enable_token_based_retrieval=True,
            target_token_count=budget,
            max_retrieved_for_token_target=len(history),
        )
        return [one["place"] for one in found]

    return ask


def mem0(messages: list[Message]) -> Ask:
    """`Memory.add(infer=False)` and `Memory.search`: no language model, our vectors, its own
    scores; qdrant in memory.

    Source: docs.mem0.ai, "Add Memory" and "Search Memory".
    """
    folder = tempfile.mkdtemp(prefix="library-of-context-mem0-")
    os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": folder, "OPENAI_API_KEY": "unused"}
    library = importlib.import_module("mem0")
    size = len(messages[0]["row"])
    store = {"path": os.path.join(folder, "qdrant"), "embedding_model_dims": size}
    memory = library.Memory.from_config(
        {
            "vector_store": {"provider": "qdrant", "config": store},
            "history_db_path": os.path.join(folder, "history.db"),
        }
    )
    rows = {one["text"]: one["row"] for one in messages}
    memory.embedding_model.embed = lambda text, memory_action=None: rows[text]
    for at, one in enumerate(messages):
        said = {"role": one["role"], "content": one["text"]}
        memory.add([said], user_id="bench", metadata={"place": at}, infer=False)

    def ask(question: str, row: list[float], budget: int) -> list[int]:
        rows[question.strip()] = row
        found = memory.search(
            question, top_k=len(messages), filters={"user_id": "bench"}, threshold=0.0
        )
        return [one["metadata"]["place"] for one in found["results"]]

    return ask


def ralc(messages: list[Message]) -> Ask:
    """`ContextManager.retrieve` with its own heuristic extractor and our vectors.

    Source: github.com/Vivek0x6b/Ralc, README "Usage".
    """
    library = importlib.import_module("ralc")
    numpy = importlib.import_module("numpy")
    rows = {one["text"]: one["row"] for one in messages}
    costs = {one["text"]: one["cost"] for one in messages}

    class Embedder:
        def embed(self, texts: list[str]) -> Any:
            return numpy.array([rows[text] for text in texts], numpy.float32)

    class Counter:
        approximate = False

        def count(self, text: str) -> int:
            return int(costs.get(text, len(text) // 4))

    manager = library.ContextManager(embedder=Embedder(), token_counter=Counter())
    places = {manager.add_message(one["role"], one["text"]): at for at, one in enumerate(messages)}

    def ask(question: str, row: list[float], budget: int) -> list[int]:
        rows[question] = row
        nodes = manager.retrieve(query=question, token_budget=budget).nodes
        return [places[node.id] for node in nodes if node.id in places]

    return ask


PEERS: dict[str, Callable[[list[Message]], Ask]] = {
    "langchain": langchain,
    "acolyterag": acolyterag,
    "mem0": mem0,
    "ralc": ralc,
}


def main() -> None:
    """Answer until there is nothing more to read."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # What a peer prints is no answer.
    ask: Ask | None = None
    for line in sys.stdin:
        told = json.loads(line)
        if ask is None:
            ask = PEERS[told["peer"]](told["messages"])
            answer: dict[str, Any] = {"ready": True}
        else:
            started_s = time.perf_counter()
            order = ask(told["question"], told["row"], told["budget"])
            answer = {"order": order, "ms": (time.perf_counter() - started_s) * 1e3}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
