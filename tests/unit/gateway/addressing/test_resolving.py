"""A name is judged by what it leads to, in the look-up that the connection is made with."""

import socket

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from gateway.addressing.address import AllowedHosts
from gateway.addressing.resolving import AddressedUpstreams, GuardedResolver
from gateway.upstream.protocol import Patience, UpstreamFailed, UpstreamRequest
from tests.unit.gateway.local_server import answering

PATIENCE = Patience(connect_s=2, first_byte_s=5, idle_s=5, retries=2)


class Names(AbstractResolver):
    """Answers every name with the same addresses, and counts how often."""

    def __init__(self, *numbers: str) -> None:
        self.numbers = numbers
        self.asked_count = 0

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.asked_count += 1
        return [
            ResolveResult(
                hostname=host,
                host=number,
                port=port,
                family=socket.AF_INET6 if ":" in number else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for number in self.numbers
        ]

    async def close(self) -> None: ...


@pytest.mark.parametrize(
    "numbers",
    [("127.0.0.1",), ("8.8.8.8", "10.0.0.1"), ("fe80::1%eth0",), ("::ffff:169.254.169.254",)],
)
async def test_a_public_name_that_leads_to_a_private_address_is_refused(
    numbers: tuple[str, ...],
) -> None:
    resolver = GuardedResolver(AllowedHosts(("*",)), Names(*numbers))
    with pytest.raises(UpstreamFailed) as caught:
        await resolver.resolve("rebound.example", 443)
    assert (caught.value.kind, caught.value.status) == ("forbidden", 403)


async def test_a_public_name_is_resolved_and_a_listed_one_may_be_private() -> None:
    public = GuardedResolver(AllowedHosts(("*",)), Names("8.8.8.8"))
    assert [one["host"] for one in await public.resolve("a.example", 443)] == ["8.8.8.8"]
    listed = GuardedResolver(AllowedHosts(("box.lan:80",)), Names("10.0.0.1"))
    assert [one["host"] for one in await listed.resolve("box.lan", 80)] == ["10.0.0.1"]
    with pytest.raises(UpstreamFailed):
        await listed.resolve("box.lan", 81)


async def test_no_connection_is_made_where_none_may_lead_and_none_is_tried_again() -> None:
    names = Names("127.0.0.1")
    with answering(b"{}") as port:
        request = UpstreamRequest("GET", "/models", {}, b"")
        made = AddressedUpstreams(AllowedHosts(("*.example",)), PATIENCE, resolver=names)
        with pytest.raises(UpstreamFailed, match="not on the public Internet"):
            await made.upstream(f"http://a.example:{port}/v1").open(request)
        await made.close()
        assert names.asked_count == 1
        listed = AddressedUpstreams(
            AllowedHosts((f"a.example:{port}",)), PATIENCE, resolver=Names("127.0.0.1")
        )
        reply = await listed.upstream(f"http://a.example:{port}/v1").open(request)
        assert reply.status == 200
        await reply.aclose()
        await listed.close()


async def test_upstreams_of_one_host_have_one_name() -> None:
    made = AddressedUpstreams(AllowedHosts(("*",)), PATIENCE, resolver=Names("8.8.8.8"))
    assert made.upstream("https://a.example:8/api/v1").name == "https://a.example:8"
    await made.close()
