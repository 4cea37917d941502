"""Embedders that do what a test tells them."""

import asyncio
from collections.abc import Sequence

from library.embedding.hashing import HashingEmbedder
from library.embedding.protocol import EmbedderUnavailable

POISON = "poison"


class Told(HashingEmbedder):
    """Makes the rows of hashing under an identity of its own, as far as it is let."""

    def __init__(self, identity: str = "told") -> None:
        self.identity = identity
        self.may_embed = asyncio.Event()
        self.may_embed.set()
        self.is_down = False
        self.asked: list[str] = []
        self.embedded: list[str] = []
        self.is_closed = False

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        await self.may_embed.wait()
        if self.is_down:
            raise EmbedderUnavailable(f"{self.identity} is down")
        if any(POISON in text for text in texts):
            raise ValueError("cannot read this")
        self.embedded += texts
        return await super().embed(texts)

    async def embed_question(self, text: str) -> bytes:
        self.asked.append(text)
        if self.is_down:
            raise EmbedderUnavailable(f"{self.identity} is down")
        return await super().embed_question(text)

    async def close(self) -> None:
        self.is_closed = True
