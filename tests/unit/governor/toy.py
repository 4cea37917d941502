"""A counter that counts words, so that expected numbers can be worked out by hand."""

from collections.abc import Sequence

from governor.message import Message

MESSAGE_OVERHEAD = 2


class WordCounter:
    """One token a word, two a message, three a prompt."""

    identity = "words"
    is_exact = True
    prompt_overhead_tokens = 3
    degraded = ""

    def count(self, text: str) -> int:
        return len(text.split())

    def message(self, message: Message) -> int:
        return MESSAGE_OVERHEAD + self.count(" ".join(message.counted))

    def schemas(self, schemas: tuple[str, ...]) -> int:
        return sum(map(self.count, schemas))

    async def prime(self, texts: Sequence[str], schemas: Sequence[str] = ()) -> None:
        return
