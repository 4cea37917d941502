"""gateway/cli/ports.py: who holds a port."""

import asyncio
import os
import socket
import sys

import pytest

from gateway.cli.ports import bound_socket, is_free, occupant


def test_a_bound_port_is_not_free_until_it_is_closed() -> None:
    with bound_socket("127.0.0.1", 0) as held:
        held.listen()
        port = held.getsockname()[1]
        assert not is_free("127.0.0.1", port)
    assert is_free("127.0.0.1", port)


def test_an_address_of_another_machine_cannot_be_bound() -> None:
    with pytest.raises(OSError, match="assign"):
        bound_socket("192.0.2.1", 0)


async def test_an_answer_in_two_writes_does_not_wait_for_an_acknowledgement() -> None:
    """asyncio switches Nagle's algorithm off only for sockets that were made as TCP ones."""
    delays: list[int] = []

    async def served(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        taken: socket.socket = writer.get_extra_info("socket")
        delays.append(taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    server = await asyncio.start_server(served, sock=bound_socket("127.0.0.1", 0))
    async with server:
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await reader.read()
        writer.close()
    assert delays and delays[0]


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's /proc: run on Linux")
def test_the_process_on_a_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        assert f"process {os.getpid()}" in occupant("127.0.0.1", held.getsockname()[1])
