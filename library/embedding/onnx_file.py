"""Writes an ONNX model file: nodes, constants, inputs and outputs, as protocol buffers. Pure.

The `onnx` package does the same with 20 MB and three more dependencies; what one known model needs
of it are these few messages, each a list of numbered fields.

Source: onnx/onnx.proto (field numbers and enums), protobuf.dev/programming-guides/encoding.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

IR_VERSION = 10
OPSET = 20
"""The first with Gelu."""
MICROSOFT = "com.microsoft"
"""The operators that onnxruntime adds."""
FLOAT, UINT8, INT8, INT32, INT64 = 1, 2, 3, 6, 7
"""TensorProto.DataType"""
_VARINT, _BYTES, _FLOAT = 0, 2, 5
"""Wire types."""

Attribute = int | float


@dataclass(slots=True)
class Graph:
    """A graph being written; every method that adds something returns its name."""

    _nodes: list[bytes] = field(default_factory=list)
    _constants: list[bytes] = field(default_factory=list)
    _inputs: list[bytes] = field(default_factory=list)
    _outputs: list[bytes] = field(default_factory=list)

    def constant(self, name: str, data: bytes, *, kind: int, shape: Sequence[int]) -> str:
        """Add a tensor: little-endian numbers of `kind`, row by row."""
        dims = b"".join(_field(1, size) for size in shape)
        self._constants.append(dims + _field(2, kind) + _field(8, name) + _field(9, data))
        return name

    def integers(self, *values: int) -> str:
        """Add a one-dimensional int64 tensor."""
        data = struct.pack(f"<{len(values)}q", *values)
        name = f"integers{len(self._constants)}"
        return self.constant(name, data, kind=INT64, shape=(len(values),))

    def input(self, name: str, *, kind: int, shape: Sequence[int | str]) -> str:
        self._inputs.append(_value(name, kind, shape))
        return name

    def output(self, name: str, source: str, *, kind: int, shape: Sequence[int | str]) -> None:
        """Give what `source` names out under a name of its own."""
        self._nodes.append(_node("Identity", [source], [name], "", {}))
        self._outputs.append(_value(name, kind, shape))

    def node(self, operator: str, *inputs: str, domain: str = "", **attributes: Attribute) -> str:
        """Add an operator with one output; an input that is left out is ""."""
        return self.split(operator, *inputs, count=1, domain=domain, **attributes)[0]

    def split(
        self, operator: str, *inputs: str, count: int, domain: str = "", **attributes: Attribute
    ) -> list[str]:
        """Add an operator with several outputs."""
        outputs = [f"{operator}{len(self._nodes)}.{at}" for at in range(count)]
        self._nodes.append(_node(operator, inputs, outputs, domain, attributes))
        return outputs

    def model(self, producer: str) -> bytes:
        """Return the file."""
        graph = b"".join(
            [
                *(_field(1, node) for node in self._nodes),
                _field(2, producer),
                *(_field(5, constant) for constant in self._constants),
                *(_field(11, one) for one in self._inputs),
                *(_field(12, one) for one in self._outputs),
            ]
        )
        opsets = _field(1, "") + _field(2, OPSET), _field(1, MICROSOFT) + _field(2, 1)
        head = _field(1, IR_VERSION) + _field(2, producer)
        return head + _field(7, graph) + b"".join(_field(8, opset) for opset in opsets)


def _node(
    operator: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    domain: str,
    attributes: dict[str, Attribute],
) -> bytes:
    parts = [_field(1, name) for name in inputs]
    parts += [_field(2, name) for name in outputs]
    parts.append(_field(4, operator))
    parts += [_field(5, _attribute(name, value)) for name, value in attributes.items()]
    parts += [_field(7, domain)] if domain else []
    return b"".join(parts)


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, float):
        return _field(1, name) + _field(2, value) + _field(20, 1)
    return _field(1, name) + _field(3, value) + _field(20, 2)


def _value(name: str, kind: int, shape: Sequence[int | str]) -> bytes:
    sizes = [_field(2, size) if isinstance(size, str) else _field(1, size) for size in shape]
    tensor = _field(1, kind) + _field(2, b"".join(_field(1, size) for size in sizes))
    return _field(1, name) + _field(2, _field(1, tensor))


def _field(number: int, value: int | float | str | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3 | _VARINT) + _varint(value)
    if isinstance(value, float):
        return _varint(number << 3 | _FLOAT) + struct.pack("<f", value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | _BYTES) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1  # A negative number has ten bytes.
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
