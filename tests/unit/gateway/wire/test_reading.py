"""What all protocols' requests are read by."""

import json

import pytest

from gateway.wire.protocol import MalformedRequest, Wire
from gateway.wire.reading import MODEL_CHARS_MAX
from gateway.wire.wires import WIRES


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_a_models_name_has_an_end(wire: Wire) -> None:
    """DESIGN 1.13: counters, prices and calibrations are kept by it, hundreds of them."""
    items = "hi" if wire.is_text else [{"role": "user", "content": "hi"}]
    body = {"model": "m" * MODEL_CHARS_MAX, wire.items: items}
    assert wire.decode(json.dumps(body).encode(), None).model == body["model"]
    body["model"] = "m" * (MODEL_CHARS_MAX + 1)
    with pytest.raises(MalformedRequest) as caught:
        wire.decode(json.dumps(body).encode(), None)
    assert caught.value.param == "model"
