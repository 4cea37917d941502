"""Which counter a model gets, and what was learned about each."""

import re
import threading
from dataclasses import asdict
from pathlib import Path

import msgspec
import orjson

from governor.counting.bound import load as load_bound
from governor.counting.cache import CountCache
from governor.counting.calibration import Calibration
from governor.counting.counter import MessageCounter
from governor.counting.prices import (
    CHAT,
    CLAUDE,
    CLAUDE_BEFORE_4_7,
    HARMONY,
    OPENAI,
    TEXT,
    Template,
)
from governor.counting.sources import (
    ENCODINGS,
    Asked,
    Bound,
    Encoding,
    Source,
    TokenizerFile,
    UpstreamCount,
)

CACHE_BYTES_DEFAULT = 4 * 1024 * 1024
"""26,000 texts: a dozen long transcripts at once."""
O200K = "o200k_base"
CL100K = "cl100k_base"
MODELS_MAX = 256
"""Clients name models as they like: what is kept for each name has to end somewhere."""

_FAMILIES = (
    (re.compile(r"(chatgpt-4o|gpt-4o|gpt-4\.[15]|gpt-5|o[13]$|o[13]-|o4-mini)"), O200K, OPENAI),
    (re.compile(r"(gpt-4$|gpt-4-|gpt-3\.5|gpt-35-turbo|(davinci|babbage)-002)"), CL100K, OPENAI),
    # Harmony's encoding is o200k with other special tokens; ordinary text counts the same.
    (re.compile(r"gpt-oss"), O200K, HARMONY),
    (re.compile(r"offline$"), O200K, OPENAI),  # gateway/upstream/offline.py counts its usage so.
)
"""Whose tokenizer is public. Source: tiktoken 0.14, model.py."""
_CLAUDE_BEFORE_4_7 = re.compile(CLAUDE_BEFORE_4_7)
_RESELLERS = re.compile(r"^(?:[a-z]{2,6}\.)?anthropic\.")
CLAUDE_FACTOR = 1.35
"""Of the bound, for Claude since Opus 4.7, whose tokenizer makes up to so many times the tokens of
the one before, which the bound was measured on. Source: Anthropic, "What's new in Claude Opus
4.7"."""


class UnknownTokenizer(Exception):
    """A setting names a tokenizer that is not there."""

    def __init__(self, tokenizer: str, reason: str) -> None:
        super().__init__(f"tokenizer {tokenizer!r}: {reason}")
        self.tokenizer = tokenizer
        self.reason = reason


class Counters:
    """Makes counters, and keeps what they share: loaded tokenizers, counts, calibrations."""

    def __init__(self, *, cache_bytes: int = CACHE_BYTES_DEFAULT) -> None:
        self.cache = CountCache(cache_bytes)
        self._encodings = {name: Encoding(name) for name in ENCODINGS}
        self._files: dict[str, TokenizerFile] = {}
        self._asked: dict[str, Asked] = {}
        self._bound = Bound()
        self._calibrations: dict[str, Calibration] = {}
        self._made: dict[tuple[str, str, str, bool], MessageCounter] = {}

    def start_loading(self, *, has_openai: bool) -> threading.Thread:
        """Load in the background what the first request would otherwise wait for.

        `has_openai`: models with OpenAI's tables are expected. Where only others are served, the
        tables would be 60 MB for nothing; the first request that needs them loads them.
        """

        def load() -> None:
            load_bound()
            if has_openai:
                self._encodings[O200K].load()

        thread = threading.Thread(target=load, name="load-tokenizers", daemon=True)
        thread.start()
        return thread

    @property
    def loaded(self) -> tuple[str, ...]:
        """The encodings whose tables are in memory."""
        return tuple(name for name, one in self._encodings.items() if one.is_loaded)

    def counter_for(
        self,
        model: str,
        *,
        tokenizer: str | None = None,
        upstream: str = "",
        upstream_count: UpstreamCount | None = None,
        is_text: bool = False,
    ) -> MessageCounter:
        """Return the counter of `model` as `upstream` serves it; cheap for one made before.

        `is_text`: of prompts that are one text, with no template around their pieces.

        `tokenizer` is an encoding's name (`o200k`, `cl100k`, ...), the path of a tokenizer.json,
        `upstream`, `bound`, `bound:1.5`, or nothing: then the model's name decides.

        Raises:
            UnknownTokenizer: `tokenizer` is none of these, or cannot be read.

        """
        place = (upstream, model, tokenizer or "", is_text)
        made = self._made.get(place)
        if made is None:
            if len(self._made) >= MODELS_MAX:
                self._made.clear()
            made = self._make(model, tokenizer or "", upstream, upstream_count, is_text=is_text)
            self._made[place] = made
        return made

    def _make(
        self,
        model: str,
        tokenizer: str,
        upstream: str,
        upstream_count: UpstreamCount | None,
        *,
        is_text: bool,
    ) -> MessageCounter:
        bare = _bare(model)
        source, declared_factor = self._source(bare, tokenizer, upstream, upstream_count)
        # What a chat's loose template let a factor learn does not hold where there is none.
        key = f"{upstream}/{model}/{source.identity}{'/text' if is_text else ''}"
        calibration = self._calibrations.get(key, Calibration())
        return MessageCounter(
            source=source,
            template=TEXT if is_text else _template(bare, source),
            cache=self.cache,
            model=bare,
            key=key,
            declared_factor=declared_factor,
            learned_factor=calibration.factor,
        )

    def _source(
        self, bare: str, tokenizer: str, upstream: str, upstream_count: UpstreamCount | None
    ) -> tuple[Source, float]:
        """Return where counts come from, and the factor that a setting puts on them."""
        if not tokenizer:
            name = _family(bare)[0]
            if name:
                return self._encodings[name], 1.0
            is_new_claude = bare.startswith("claude") and not _CLAUDE_BEFORE_4_7.match(bare)
            return self._bound, CLAUDE_FACTOR if is_new_claude else 1.0
        for name in (tokenizer, f"{tokenizer}_base"):
            if name in self._encodings:
                return self._encodings[name], 1.0
        kind, _, rest = tokenizer.partition(":")
        if kind == "bound":
            return self._bound, _factor(tokenizer, rest)
        if tokenizer == "upstream":
            if upstream_count is None:
                raise UnknownTokenizer(tokenizer, "this upstream does not count tokens")
            return self._asked_of(f"upstream:{upstream}", upstream_count), 1.0
        return self._file(tokenizer), 1.0

    def _asked_of(self, identity: str, upstream_count: UpstreamCount) -> Asked:
        # One for an upstream, whatever its models are called: `/tokenize` is told no model.
        if identity not in self._asked:
            self._asked[identity] = Asked(identity, upstream_count, self.cache)
        return self._asked[identity]

    def _file(self, path: str) -> TokenizerFile:
        if path not in self._files:
            try:
                self._files[path] = TokenizerFile(Path(path).expanduser())
            except OSError as error:
                raise UnknownTokenizer(path, f"no encoding, and no file: {error}") from error
            except ValueError as error:
                raise UnknownTokenizer(path, f"not a tokenizer.json: {error}") from error
        return self._files[path]

    # -- calibration ---------------------------------------------------------------------------
    def observe(
        self, counter: MessageCounter, *, estimated_tokens: int, actual_tokens: int
    ) -> bool:
        """Learn from one reply; return whether the model is counted otherwise from now on.

        `estimated_tokens` is the whole prompt as `counter` counted it.
        """
        before = self._calibrations.get(counter.key)
        if before is None:
            if len(self._calibrations) >= MODELS_MAX:
                del self._calibrations[next(iter(self._calibrations))]
            before = Calibration(can_tighten=not counter.is_exact)
        after = before.observed(
            estimated_tokens=estimated_tokens / counter.learned_factor,
            actual_tokens=actual_tokens,
        )
        self._calibrations[counter.key] = after
        if after.factor != before.factor:
            self._made = {place: one for place, one in self._made.items() if one.key != counter.key}
        return after.factor != before.factor

    def calibrations(self) -> str:
        """Return what was learned, as JSON for `restore`."""
        return orjson.dumps({key: asdict(one) for key, one in self._calibrations.items()}).decode()

    def restore(self, text: str) -> None:
        """Take up what `calibrations` returned once; what cannot be read teaches nothing."""
        try:
            self._calibrations = msgspec.json.decode(text, type=dict[str, Calibration])
        except msgspec.MsgspecError:
            self._calibrations = {}
        self._made.clear()


def _bare(model: str) -> str:
    """Return the name without its provider and the mark of a fine-tuned one."""
    return _RESELLERS.sub("", model.lower().rsplit("/", 1)[-1].removeprefix("ft:"))


def _family(bare: str) -> tuple[str, Template]:
    """Return the encoding ("" if unknown) and the template that a model's name stands for."""
    for pattern, encoding, template in _FAMILIES:
        if pattern.match(bare):
            return encoding, template
    return "", CHAT


def _template(bare: str, source: Source) -> Template:
    if bare.startswith("claude"):
        return CLAUDE
    encoding, template = _family(bare)
    # A local model may be served under one of OpenAI's names; its tokenizer then says so.
    return template if encoding == source.identity else CHAT


def _factor(tokenizer: str, rest: str) -> float:
    try:
        factor = float(rest) if rest else 1.0
    except ValueError:
        factor = 0.0
    if not 0.0 < factor < 100.0:
        raise UnknownTokenizer(tokenizer, "write it as bound:1.5, a factor above 0")
    return factor
