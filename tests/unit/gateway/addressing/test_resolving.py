"""A name is judged by what it leads to, in the look-up that the connection is made with."""

import pytest

from gateway.addressing.address import AllowedHosts
from gateway.addressing.resolving import AddressedUpstreams, judge_of
from gateway.upstream.protocol import Patience, UpstreamFailed, UpstreamRequest
from tests.unit.gateway.local_server import answering

PATIENCE = Patience(connect_s=2, first_byte_s=5, idle_s=5, retries=2)


@pytest.mark.parametrize(
    "numbers",
    [("127.0.0.1",), ("8.8.8.8", "10.0.0.1"), ("fe80::1%eth0",), ("::ffff:169.254.169.254",)],
)
def test_a_public_name_that_leads_to_a_private_address_is_refused(numbers: tuple[str, ...]) -> None:
    with pytest.raises(UpstreamFailed) as caught:
        judge_of(AllowedHosts(("*",)))("rebound.example", 443, numbers)
    assert (caught.value.kind, caught.value.status) == ("forbidden", 403)


def test_a_public_name_passes_and_a_listed_one_may_be_private() -> None:
    judge_of(AllowedHosts(("*",)))("a.example", 443, ("8.8.8.8", "2606:4700::1111"))
    listed = judge_of(AllowedHosts(("box.lan:80",)))
    listed("box.lan", 80, ("10.0.0.1",))
    with pytest.raises(UpstreamFailed):
        listed("box.lan", 81, ("10.0.0.1",))


async def test_no_connection_is_made_where_none_may_lead_and_none_is_tried_again() -> None:
    """`localhost` is a name that leads to a private address on every machine."""
    with answering(b"{}") as port:
        request = UpstreamRequest("GET", "/models", {}, b"")
        made = AddressedUpstreams(AllowedHosts(("local*",)), PATIENCE)
        with pytest.raises(UpstreamFailed, match="not on the public Internet") as caught:
            await made.upstream(f"http://localhost:{port}/v1").open(request)
        assert caught.value.kind != "refused"  # Which would be tried again.
        await made.close()
        listed = AddressedUpstreams(AllowedHosts((f"localhost:{port}",)), PATIENCE)
        reply = await listed.upstream(f"http://localhost:{port}/v1").open(request)
        assert reply.status == 200
        await reply.aclose()
        await listed.close()


async def test_upstreams_of_one_host_have_one_name() -> None:
    made = AddressedUpstreams(AllowedHosts(("*",)), PATIENCE)
    assert made.upstream("https://a.example:8/api/v1").name == "https://a.example:8"
    await made.close()
