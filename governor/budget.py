"""How many tokens a prompt may have, and how its parts share them. Pure token arithmetic."""

from dataclasses import dataclass, replace

from governor.transcript import Transcript
from governor.turn import PLACEMENTS, REPLACEMENTS, Policy
from library.records import OwnSettings


def desk_share(budget_tokens: int) -> int:
    """Return the most that a desk takes of a budget smaller than the one it was set for."""
    return budget_tokens // 4


def protected_share(budget_tokens: int) -> int:
    """Return the most that pins take of such a budget."""
    return budget_tokens // 8


def lookup_share(budget_tokens: int) -> int:
    """Return the most that is kept free of such a budget for look-ups."""
    return budget_tokens // 8


def settled(policy: Policy, own: OwnSettings) -> Policy:
    """Return the policy with the nearest word on the budget - request, thread, key, model - and
    with the thread's own words on its desk; one that another version left is passed over."""
    placement = next((word for word in PLACEMENTS if word == own.desk_placement), None)
    replacement = next((word for word in REPLACEMENTS if word == own.desk_replacement), None)
    if placement or replacement:
        policy = replace(
            policy,
            placement=placement or policy.placement,
            replacement=replacement or policy.replacement,
        )
    named = policy.asked_budget_tokens or own.budget_tokens or policy.key_budget_tokens
    if not named and policy.asked_desk_tokens is None:
        return policy
    budget = named or policy.budget_tokens
    desk, protected, lookup = policy.desk_tokens, policy.protected_tokens, policy.lookup_tokens
    if budget < policy.budget_tokens:
        desk = min(desk, desk_share(budget))
        protected = min(protected, protected_share(budget))
        lookup = min(lookup, lookup_share(budget))
    if policy.asked_desk_tokens is not None:
        desk = policy.asked_desk_tokens
    return replace(
        policy,
        budget_tokens=budget,
        desk_tokens=desk,
        protected_tokens=protected,
        lookup_tokens=lookup,
    )


def allowed_tokens(policy: Policy, *, reply_tokens: int | None) -> int:
    """Return the most a prompt may count: the budget, or less where the window is smaller.

    The window has to hold the reply too: what the client asked for at most, else the reserve.
    """
    if policy.window_tokens is None:
        return policy.budget_tokens
    reserve = policy.reply_reserve_tokens if reply_tokens is None else reply_tokens
    return max(0, min(policy.budget_tokens, policy.window_tokens - reserve))


@dataclass(frozen=True, slots=True)
class Rooms:
    """What is left for each optional part after the parts that must be sent, and the pins."""

    desk_tokens: int
    window_tokens: int

    @property
    def tokens(self) -> int:
        """Both together: what one leaves unused is the other's."""
        return self.desk_tokens + self.window_tokens

    def low_tokens(self, share: float) -> int:
        """Return how much the window holds when it has moved: what the desk leaves of a share."""
        return max(0, int(self.tokens * share) - self.desk_tokens)

    def high_tokens(self, share: float) -> int:
        """Return how much the window may grow to before it moves."""
        return int(self.tokens * share)


def low_water(policy: Policy, transcript: Transcript) -> float:
    """Return the share to which the window is cut down: an agent's step goes by what the last few
    saw, and the words of "go on" find none of it again."""
    return policy.agent_low_water if transcript.has_results else policy.window_low_water


def rooms(policy: Policy, *, left_tokens: int) -> Rooms:
    """Share what pins leave between desk and recent window.

    The desk takes at most half of it, so that a small budget still has recent messages; a desk
    that the request itself asks for is taken at its word, be it all of the room.
    """
    assert left_tokens >= 0
    most = left_tokens // 2 if policy.asked_desk_tokens is None else left_tokens
    desk = 0 if policy.recall == "off" else min(policy.desk_tokens, most)
    return Rooms(desk, left_tokens - desk)
