"""Every setting: its name, type, default, bounds and one sentence of help, in this one place.

From the structs below come the flags of `serve`, the `LIBRARY_OF_CONTEXT_*` names, the output of
`config`, and `library-of-context.example.toml`. gateway/configuration.py reads the values in.

msgspec was chosen over pydantic-settings: it is here already, and pydantic would cost 12 MB of
memory and 100 ms of every start for the same checks.

An upstream's key is never a setting: a setting names the environment variable that holds it, and
the key is looked up where it is sent, so that nothing here can print it.
"""

import fnmatch
from typing import Annotated, Literal

from msgspec import Meta, Struct

from gateway.addressing.loopback import is_loopback
from gateway.retention import settings as keeping
from gateway.served import (
    PUBLIC_APIS,
    UNNAMED,
    ModelSettings,
    Pause,
    Placement,
    Replacement,
    Rounds,
    Seconds,
    ServedModel,
    Share,
    UpstreamSettings,
)

AUTO, OFFLINE, LITELLM = "auto", "offline", "litellm:"
"""What an upstream may be beside a URL and a name from [upstreams]; the last is a prefix."""


def desk_share(budget_tokens: int) -> int:
    """Return the most that the desk has by default; governor/budget.py knows it too, and a test
    holds the two together, because importing the governor costs half a second."""
    return budget_tokens // 4


def protected_share(budget_tokens: int) -> int:
    """Return the most that pins have by default; likewise."""
    return budget_tokens // 8


def lookup_share(budget_tokens: int) -> int:
    """Return the most that is kept free for look-ups by default; likewise."""
    return budget_tokens // 8


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of one gateway, complete and checked."""

    host: Annotated[
        str,
        Meta(
            min_length=1,
            description="Address to listen on; one that is not loopback needs `keys_file`.",
        ),
    ] = "127.0.0.1"
    port: Annotated[
        int, Meta(ge=0, le=65_535, description="Port to listen on; 0 picks a free one.")
    ] = 8765
    db: Annotated[
        str, Meta(description="Database file; empty: library.db in the user's data folder.")
    ] = ""
    upstream: Annotated[
        str,
        Meta(
            min_length=1,
            description="Where requests go: an OpenAI-compatible base URL, "
            "`litellm:PROVIDER/MODEL`, `offline`, a name from [upstreams], or `auto` (OpenAI when "
            "OPENAI_API_KEY is set, else a local Ollama or llama.cpp server, else offline).",
        ),
    ] = "auto"
    budget_tokens: Annotated[
        int, Meta(ge=1, description="The most tokens that one request may send to the model.")
    ] = 8_000
    protected_tokens: Annotated[
        int,
        Meta(
            ge=0,
            description="Of the budget, the most that pinned records may take; the "
            "default is never above an eighth of the budget.",
        ),
    ] = 1_000
    desk_tokens: Annotated[
        int,
        Meta(
            ge=0,
            description="Of the budget, the most that recalled records may take; the "
            "default is never above a quarter of the budget.",
        ),
    ] = 2_000
    window_low_water: Annotated[
        Share,
        Meta(
            description="When the recent messages overflow they are cut down, so that with the "
            "recalled records they fill this share of what pins leave them, and the prompt's "
            "prefix then stays the same a while."
        ),
    ] = 0.45
    agent_low_water: Annotated[
        Share, Meta(description="The same where the messages hold results of tools.")
    ] = 0.5
    window_high_water: Annotated[
        Share,
        Meta(
            description="Recent messages overflow at this share, and where the desk finds no room."
        ),
    ] = 1.0
    desk_placement: Annotated[
        Placement,
        Meta(
            description="Where recalled records stand: before the last message of the user, behind "
            "the system text, or each before the message that it was recalled for, so that the "
            "prompt's prefix survives."
        ),
    ] = "attached"
    desk_replacement: Annotated[
        Replacement,
        Meta(
            description="When a message brings other records: whenever one is missing; when those "
            "that lie there do not serve it; when they lie there for `desk_interval_s`; or when "
            "somebody asks for it."
        ),
    ] = "focus"
    desk_served_share: Annotated[
        Share,
        Meta(
            description="With `focus`: they stay while so much of what is found, by score, lies "
            "there. A short question is always brought what is missing."
        ),
    ] = 0.2
    desk_interval_s: Annotated[
        Seconds, Meta(description="With `interval`: the least between two changes.")
    ] = 300.0
    cache_idle_s: Annotated[
        float,
        Meta(
            ge=0,
            description="After such a pause all is laid out afresh, as the provider's cache "
            "is cold; 0: never.",
        ),
    ] = 3_600.0
    lookup_rounds: Annotated[
        Rounds,
        Meta(
            description="Within one answer, so many times the model may look things up by itself, "
            "with two tools that the gateway offers it beside the client's and runs unseen; 0: it "
            "is offered none."
        ),
    ] = 0
    lookup_tokens: Annotated[
        int,
        Meta(
            ge=0,
            description="Of the budget, what is kept free for that where it is offered; the "
            "default is never above an eighth of the budget.",
        ),
    ] = 1_000
    reply_reserve_tokens: Annotated[
        int,
        Meta(
            ge=0,
            description="Kept free of a known context window for the reply when the "
            "client sets no maximum.",
        ),
    ] = 1_024
    recall: Annotated[
        Literal["thread", "project", "team"],
        Meta(
            description="What a request may recall from: its own thread, every thread of its "
            "collection, or those and the shelves of its key's teams."
        ),
    ] = "thread"
    observe: Annotated[
        bool, Meta(description="Record and report everything, but send requests out as they came.")
    ] = False
    durability: Annotated[
        Literal["strict", "relaxed"],
        Meta(
            description="When the database cannot be written: "
            "`strict` answers 503, `relaxed` passes the request through and says so in a header."
        ),
    ] = "strict"
    strict_freshness: Annotated[
        bool, Meta(description="Before recalling, wait until the whole thread is indexed.")
    ] = False
    freshness_timeout_s: Annotated[Seconds, Meta(description="The longest such wait.")] = 5.0
    embedder: Annotated[
        str,
        Meta(
            description="What turns text into vectors: `onnx` (all-MiniLM-L6-v2, which set-up "
            "installs), `onnx:FOLDER` (a folder with model.onnx and tokenizer.json), "
            "`ollama:MODEL`, `openai:URL#MODEL` (any OpenAI-compatible URL/embeddings), `hashing` "
            "(built in, no model); with `none` recall is by words alone."
        ),
    ] = "onnx"
    embedder_api_key_env: Annotated[
        str,
        Meta(
            description="Name of the environment variable that holds the key for `openai:`; empty: "
            "none is sent."
        ),
    ] = ""
    embedder_threads: Annotated[
        int,
        Meta(
            ge=1,
            le=64,
            description="Processors that a model in this process may use in the background.",
        ),
    ] = 1
    embedder_timeout_s: Annotated[
        Seconds,
        Meta(
            description="The longest that a request waits for its question to be embedded; then "
            "recall is by words."
        ),
    ] = 1.0
    redis_url: Annotated[
        str,
        Meta(
            description="A Redis that keeps question vectors and rankings for this gateway's next "
            "start and for others: `redis://`, `rediss://` (TLS) or `unix://`; empty: none is "
            "needed. wsl-redis-install.sh installs one."
        ),
    ] = ""
    redis_keyspace: Annotated[
        str,
        Meta(
            pattern=r"^[\w.\-]{0,64}$",
            description="Gateways that name the same share the Redis' question vectors; empty: a "
            "random one that belongs to the database.",
        ),
    ] = ""
    minimum_relevance: Annotated[
        float, Meta(ge=0, le=1, description="Records that score below this are not recalled.")
    ] = 0.25
    mask_secrets: Annotated[
        bool,
        Meta(
            description="Before it is stored or logged, mask what has the form of a key or token, "
            "and passwords in URLs; another password looks like any word, and stays."
        ),
    ] = False
    keys_file: Annotated[
        str,
        Meta(
            description="File of gateway keys, made by `library-of-context keys add`; "
            "empty: no keys, one collection, loopback only."
        ),
    ] = ""
    allowed_hosts: Annotated[
        tuple[str, ...],
        Meta(
            description="Further Host header values to accept; loopback names "
            "and `host` always are. None, on an address that is not loopback: any, since keys "
            "guard it."
        ),
    ] = ()
    allowed_origins: Annotated[
        tuple[str, ...], Meta(description="Web origins whose pages may call the gateway.")
    ] = ()
    to_hosts: Annotated[
        tuple[str, ...],
        Meta(
            description="Hosts that a client may name in the path, `/to/https://HOST/v1/...`: "
            "names, or patterns with *, with a port or without. An address that is not public must "
            "be listed itself."
        ),
    ] = PUBLIC_APIS
    to_remote_callers: Annotated[
        bool, Meta(description="Let callers from other machines name an upstream in the path, too.")
    ] = False
    mcp_tools: Annotated[
        tuple[str, ...],
        Meta(
            description="What MCP clients are offered: `all`, `cooperative` (what an agent needs "
            "whose host keeps the transcript: it reads, and adds what can be taken back), or tools "
            "by name."
        ),
    ] = ("all",)
    allow_network_fs: Annotated[
        bool,
        Meta(
            description="Accept a database on a network or foreign file system, where "
            "SQLite's locks may not hold."
        ),
    ] = False
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Meta(description="The least that is logged.")
    ] = "info"
    log_text: Annotated[bool, Meta(description="Let message text into the log.")] = False
    max_body_bytes: Annotated[
        int, Meta(ge=1, description="Largest request body, also after decompression.")
    ] = 64 * 2**20
    max_reply_bytes: Annotated[
        int,
        Meta(
            ge=1,
            description="Largest reply that is kept for the record; a longer one is "
            "relayed whole and recorded as partial.",
        ),
    ] = 32 * 2**20
    max_inflight_requests: Annotated[
        int, Meta(ge=1, description="Requests served at once; the next one is answered 429.")
    ] = 128
    connect_timeout_s: Annotated[
        Seconds, Meta(description="Longest wait for a connection to the upstream.")
    ] = 10.0
    first_byte_timeout_s: Annotated[
        Seconds,
        Meta(
            description="Longest wait for the upstream's first byte; a local model reads "
            "its whole prompt before it."
        ),
    ] = 600.0
    idle_timeout_s: Annotated[
        Seconds, Meta(description="Longest silence of the upstream within a reply.")
    ] = 120.0
    upstream_retries: Annotated[
        int,
        Meta(
            ge=0,
            le=10,
            description="Further attempts when the upstream fails before its first byte.",
        ),
    ] = 2
    keepalive_comment_s: Annotated[
        Pause,
        Meta(
            description="Send a comment into a stream that was silent for "
            "so long, for proxies that cut idle connections; 0: never.",
        ),
    ] = 0.0
    shutdown_grace_s: Annotated[
        Pause,
        Meta(
            description="How long running requests may go on after the gateway was told to stop.",
        ),
    ] = 10.0
    retention_every_hours: keeping.EveryHours = 0.0
    retention_keep_importance: keeping.KeepImportance = "high"
    retention_keep_tags: keeping.KeepTags = ()
    retention_keep_words: keeping.KeepWords = ()
    retention_keep_wanted: keeping.KeepWanted = 3.0
    low_disk_bytes: keeping.LowDisk = 256 * 2**20
    upstreams: Annotated[dict[str, UpstreamSettings], Meta(description="Named providers.")] = {}
    models: Annotated[
        dict[str, ModelSettings],
        Meta(
            description="Per-model values: the exact name, else the "
            "first pattern (with * and ?) that matches."
        ),
    ] = {}
    retention: keeping.Rules = {}

    def for_model(self, model: str, *, upstream: str = "") -> ServedModel:
        """Return what holds for `model`, where `upstream` serves it; "": where the settings say."""
        own = self.models.get(model) or next(
            (row for glob, row in self.models.items() if fnmatch.fnmatchcase(model, glob)),
            ModelSettings(),
        )
        place = upstream or own.upstream or self.upstream
        named = own.budget_tokens or self.upstreams.get(place, UNNAMED).budget_tokens
        budget = named or self.budget_tokens
        desk, protected, lookup = self.desk_tokens, self.protected_tokens, self.lookup_tokens
        if named:
            desk, protected = min(desk, desk_share(budget)), min(protected, protected_share(budget))
            lookup = min(lookup, lookup_share(budget))
        reserve = own.reply_reserve_tokens
        return ServedModel(
            upstream=place,
            name=own.name or model,
            tokenizer=own.tokenizer,
            window_tokens=own.window_tokens,
            budget_tokens=budget,
            desk_tokens=desk if own.desk_tokens is None else own.desk_tokens,
            protected_tokens=protected,
            lookup_tokens=lookup,
            reply_reserve_tokens=self.reply_reserve_tokens if reserve is None else reserve,
            desk_placement=own.desk_placement,
            desk_replacement=own.desk_replacement,
            lookup_rounds=own.lookup_rounds,
            price=own.price,
            cache_read_price=own.cache_read_price,
            cache_write_price=own.cache_write_price,
        )

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach `host`."""
        return is_loopback(self.host)
