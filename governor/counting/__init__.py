"""How many tokens a prompt costs: exactly where the tokenizer is known, else never too few.

`Counters` makes a `Counter` (governor/turn.py) for a model. Below it, each part in its own module:

    sources.py      one text's tokens: OpenAI's encodings, a tokenizer.json, a bound, an upstream
    bound.py        the bound for unknown tokenizers
    prices.py       what stands around texts: templates, schemas, images, other parts
    counter.py      the price of a whole message
    calibration.py  what the replies' `usage` teaches about a bound
    cache.py        counts of texts seen before
    registry.py     which of these a model gets

Nothing here opens a connection: an upstream's tokenizer is asked through a callable.
"""

from governor.counting.bound import bound_tokens
from governor.counting.cache import CountCache
from governor.counting.calibration import Calibration
from governor.counting.counter import MessageCounter
from governor.counting.registry import Counters, UnknownTokenizer
from governor.counting.sources import Asked, Encoding, UpstreamCount

__all__ = [
    "Asked",
    "Calibration",
    "CountCache",
    "Counters",
    "Encoding",
    "MessageCounter",
    "UnknownTokenizer",
    "UpstreamCount",
    "bound_tokens",
]
