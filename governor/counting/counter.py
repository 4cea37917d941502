"""The price of a whole message: its texts, its template, its images and other parts."""

from collections.abc import Sequence
from math import ceil

from governor.counting.cache import CountCache
from governor.counting.prices import (
    Template,
    image_tokens,
    opaque_tokens,
    schema_texts,
    schemas_tokens,
    template_tokens,
)
from governor.counting.sources import Asked, Source
from governor.message import Message

PRICES_MAX = 8
"""Prices kept in a message, one a model: clients re-send messages, and name models as they like."""


class MessageCounter:
    """Counts for one model; implements `governor.turn.Counter`.

    Immutable but for the shared cache: another factor makes another counter.
    """

    def __init__(
        self,
        *,
        source: Source,
        template: Template,
        cache: CountCache,
        model: str,
        key: str,
        declared_factor: float = 1.0,
        learned_factor: float = 1.0,
    ) -> None:
        self.key = key
        """Whose calibration this counter goes by."""
        self.learned_factor = learned_factor
        self.factor = factor = declared_factor * learned_factor
        self.is_exact = source.is_exact
        self.identity = f"{source.identity}/{template.name}/{model}/{factor:g}"
        self._source = source
        self._template = template
        self._cache = cache
        self._salt = cache.salt(source.identity)
        self._direct_chars = source.direct_chars
        self._model = model
        self.prompt_overhead_tokens = self._scaled(template.prompt_tokens)

    @property
    def degraded(self) -> str:
        """What is missing at the moment; "" when all is well."""
        return self._source.degraded if isinstance(self._source, Asked) else ""

    def count(self, text: str) -> int:
        """Return the tokens of `text`."""
        return self._scaled(self._raw(text))

    def message(self, message: Message) -> int:
        """Return the tokens of a message in a prompt."""
        found = message.prices.get(self.identity)
        if found is None:
            found = self._priced(message)
            if not self.degraded:  # Else it is a bound that holds until the upstream counts again.
                if len(message.prices) >= PRICES_MAX:
                    message.prices.clear()
                message.prices[self.identity] = found
        return found

    def _priced(self, message: Message) -> int:
        raw = self._raw
        tokens = template_tokens(self._template, message)
        for text in message.counted:
            tokens += raw(text)
        for image in message.images:
            tokens += image_tokens(self._model, image)
        for opaque in message.opaque:
            tokens += opaque_tokens(opaque)
        return self._scaled(tokens)

    def schemas(self, schemas: tuple[str, ...]) -> int:
        """Return the tokens of tool and response schemas, given as compact JSON texts."""
        return self._scaled(schemas_tokens(self._template, self._raw, schemas))

    async def prime(self, texts: Sequence[str], schemas: Sequence[str] = ()) -> None:
        """Ask the upstream for the counts of a request, where it is the one that counts."""
        if isinstance(self._source, Asked):
            forms = [form for schema in schemas for form in schema_texts(self._template, schema)]
            await self._source.prime([*texts, *forms])

    def _raw(self, text: str) -> int:
        if len(text) <= self._direct_chars:
            return self._source.count(text)
        cache, salt = self._cache, self._salt
        tokens = cache.get(salt, text)
        if tokens is None:
            tokens = self._source.count(text)
            if not isinstance(self._source, Asked):
                cache.put(salt, text, tokens)
        return tokens

    def _scaled(self, tokens: int) -> int:
        return tokens if self.factor == 1.0 else ceil(tokens * self.factor)
