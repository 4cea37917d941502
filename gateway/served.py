"""What the settings say of one upstream and of one model: the tables of the settings file.

Beside gateway/settings.py, which has what holds for all; the types that both use are here.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

Count = Annotated[int, Meta(ge=1)]
Placement = Literal["user", "system", "attached"]
Replacement = Literal["every-turn", "focus", "interval", "on-request"]
OwnPlacement = Annotated[
    Placement | Literal[""], Meta(description="In place of the setting `desk_placement`.")
]
OwnReplacement = Annotated[
    Replacement | Literal[""], Meta(description="In place of the setting `desk_replacement`.")
]
Rounds = Annotated[int, Meta(ge=0, le=16)]
Share = Annotated[float, Meta(gt=0, le=1)]
OwnRounds = Annotated[Rounds | None, Meta(description="In place of the setting `lookup_rounds`.")]
Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Pause = Annotated[float, Meta(ge=0, le=3_600)]
PUBLIC_APIS = (
    "api.openai.com",
    "api.anthropic.com",
    "api.deepseek.com",
    "api.groq.com",
    "api.mistral.ai",
    "api.together.xyz",
    "api.x.ai",
    "generativelanguage.googleapis.com",
    "openrouter.ai",
)
"""Hosts of well-known providers."""


Price = Annotated[float, Meta(ge=0)]


class UpstreamSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One named provider, `[upstreams.NAME]`."""

    url: Annotated[str, Meta(description="Base URL, `litellm:PROVIDER/MODEL`, or `offline`.")]
    api_key_env: Annotated[
        str,
        Meta(
            description="Name of the environment variable that holds its key; empty: the "
            "client's own key is forwarded."
        ),
    ] = ""
    speaks: Annotated[
        tuple[Literal["chat", "responses", "messages"], ...],
        Meta(description="Protocols that it takes; empty: known by its address, or found out."),
    ] = ()
    budget_tokens: Annotated[
        Count | None,
        Meta(
            description="In place of the setting `budget_tokens`, for models that have none of "
            "their own: larger where a warm cache makes that cheap."
        ),
    ] = None
    strip_old_reasoning: Annotated[
        bool,
        Meta(description="Leave out reasoning of assistant messages before the last user message."),
    ] = False
    prompt_cache: Annotated[
        Literal["", "off", "marks", "key"],
        Meta(
            description="What a prompt that was paged tells the provider's cache: `marks` "
            "(`cache_control` behind what stays), `key` (the thread as `prompt_cache_key`) or "
            "`off`; empty: as api.anthropic.com, api.openai.com and `litellm:anthropic/` are known "
            "to want it, nothing elsewhere."
        ),
    ] = ""
    desk_placement: OwnPlacement = ""
    desk_replacement: OwnReplacement = ""
    lookup_rounds: OwnRounds = None


UNNAMED = UpstreamSettings(url="")
"""What holds for an upstream without a name of its own."""


class ModelSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What holds for models whose name matches a pattern, `[models."PATTERN"]`."""

    upstream: Annotated[
        str, Meta(description="Where these models are served: as the setting `upstream`.")
    ] = ""
    name: Annotated[
        str, Meta(description="The name to send upstream; empty: the one the client used.")
    ] = ""
    tokenizer: Annotated[
        str,
        Meta(
            description="`o200k`, `cl100k`, `qwen3` or `llama3`, the path of a tokenizer.json, "
            "`upstream` (its own /tokenize), `bound` (a declared upper bound) or `bound:1.5` (that "
            "much of it); empty: by the model's name."
        ),
    ] = ""
    window_tokens: Annotated[
        Count | None, Meta(description="The model's context window; unset: only the budget limits.")
    ] = None
    budget_tokens: Annotated[
        Count | None, Meta(description="In place of the setting `budget_tokens`.")
    ] = None
    desk_tokens: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="In place of the setting `desk_tokens`."),
    ] = None
    reply_reserve_tokens: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="In place of the setting `reply_reserve_tokens`."),
    ] = None
    desk_placement: OwnPlacement = ""
    desk_replacement: OwnReplacement = ""
    lookup_rounds: OwnRounds = None
    price: Annotated[
        Price | None,
        Meta(description="Money for a million prompt tokens, for `savings`; unset: not reckoned."),
    ] = None
    cache_read_price: Annotated[
        Price | None, Meta(description="The same, out of the provider's cache; unset: `price`.")
    ] = None
    cache_write_price: Annotated[
        Price | None, Meta(description="The same, into the provider's cache; unset: `price`.")
    ] = None


class ServedModel(Struct, frozen=True, kw_only=True):
    """`ModelSettings` of one model, with the general settings in place of what is not set."""

    upstream: str
    name: str
    tokenizer: str
    """Empty: by the model's name."""
    window_tokens: int | None
    """None: unknown."""
    budget_tokens: int
    desk_tokens: int
    protected_tokens: int
    lookup_tokens: int
    reply_reserve_tokens: int
    desk_placement: OwnPlacement
    """Empty: not said for this model."""
    desk_replacement: OwnReplacement
    lookup_rounds: OwnRounds
    """None: not said for this model."""
    price: float | None
    """None: not known; then the other two are not asked for."""
    cache_read_price: float | None
    cache_write_price: float | None
