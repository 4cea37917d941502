"""Messages of role and text alone, against the gateway's own reading of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.chat.message import message_of, written
from governor.errors import MalformedTranscript
from governor.memory.plain import Plain
from governor.turn import PlannedMessage

TEXT = st.text(min_size=1)


@given(
    st.sampled_from(["user", "assistant", "system"]), TEXT, st.none() | TEXT, TEXT, st.none() | TEXT
)
def test_a_message_is_to_a_program_what_it_is_to_the_gateway(
    role: str, text: str, name: str | None, before: str, replaced: str | None
) -> None:
    raw = {"role": role, "content": text} | ({"name": name} if name else {})
    own, gateways = Plain().message_of(raw), message_of(raw)
    if (
        gateways.digest or role == "system"
    ):  # Else it looks like text of ours, which a gateway sees.
        assert (own.role, own.text, own.digest) == (gateways.role, gateways.text, gateways.digest)
        assert sorted(own.counted) == sorted(gateways.counted)
    planned = PlannedMessage(own, before=before, replaced=replaced)
    theirs = written(PlannedMessage(gateways, before=before, replaced=replaced))
    assert Plain().written(planned).raw == theirs.raw


@pytest.mark.parametrize(
    "raw",
    [
        {"role": "tool", "content": "x"},
        {"role": "user", "content": [{"type": "text", "text": "x"}]},
        {"role": "assistant", "content": "x", "tool_calls": []},
        {"content": "x"},
    ],
)
def test_what_is_not_plain_is_refused(raw: dict[str, object]) -> None:
    with pytest.raises(MalformedTranscript):
        Plain().message_of(raw)
