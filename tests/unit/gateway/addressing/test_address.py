"""Where `/to/...` leads, and where it may."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.addressing.address import AllowedHosts, address_in, is_public
from gateway.refusals import AddressForbidden, UnknownPath


@pytest.mark.parametrize(
    ("path", "base_url", "rest"),
    [
        ("https://api.openai.com/v1/chat/completions", "https://api.openai.com/v1", None),
        ("https:/api.openai.com/v1/chat/completions", "https://api.openai.com/v1", None),
        ("https://openrouter.ai/api/v1/chat/completions", "https://openrouter.ai/api/v1", None),
        ("https://h/v1beta/openai/chat/completions", "https://h/v1beta/openai", None),
        ("https://h/inference/chat/completions", "https://h/inference", None),
        ("http://127.0.0.1:11434/v1/responses", "http://127.0.0.1:11434/v1", "/responses"),
        ("https://H.Example./v1/messages", "https://h.example/v1", "/messages"),
        ("https://h/v1/threads/t/messages", "https://h/v1", "/threads/t/messages"),
        ("https://h/v1/models/org%2Fname", "https://h/v1", "/models/org%2Fname"),
        ("http://[::1]:8080/v1/embeddings", "http://[::1]:8080/v1", "/embeddings"),
        ("https://h/tokenize", "https://h", "/tokenize"),
    ],
)
def test_a_path_is_taken_apart_as_a_configured_base_url_would_be(
    path: str, base_url: str, rest: str | None
) -> None:
    address = address_in(f"/to/{path}")
    assert (address.base_url, address.path) == (base_url, rest or "/chat/completions")


@pytest.mark.parametrize(
    "path",
    [
        "",
        "https://host",
        "ftp://host/v1/x",
        "file:///etc/passwd",
        "https://user:pw@host/v1/x",
        "https://host@evil.example/v1/x",
        "https://host:0/v1/x",
        "https://host:99999/v1/x",
        "https://ho%73t/v1/x",
        "https://host\\@evil/v1/x",
        "https://host/v1/../admin/x",
        "https://host/v1/%2e%2e/admin/x",
        "https://[::1/v1/x",
    ],
)
def test_what_is_no_plain_address_is_no_path_of_ours(path: str) -> None:
    with pytest.raises(UnknownPath):
        address_in(f"/to/{path}")


def allows(pattern: str, origin: str) -> bool:
    try:
        AllowedHosts((pattern,)).check(address_in(f"/to/{origin}/v1/x"))
    except AddressForbidden:
        return False
    return True


@pytest.mark.parametrize(
    ("pattern", "origin", "expected"),
    [
        ("api.example", "https://api.example", True),
        ("API.example", "https://Api.Example:8443", True),
        ("api.example:443", "https://api.example", False),
        ("api.example:8443", "https://api.example:8443", True),
        ("*.example", "https://a.b.example", True),
        ("*.example", "https://example", False),
        ("api.example", "https://api.example.evil", False),
        ("*", "https://8.8.8.8", True),
        ("*", "http://127.0.0.1:9", False),
        ("127.0.0.*", "http://127.0.0.1:9", False),
        ("*", "http://[::1]:9", False),
        ("*", "http://169.254.169.254", False),
        ("*", "http://10.0.0.1", False),
        ("*", "http://[::ffff:10.0.0.1]", False),
        ("*", "http://2130706433", False),
        ("*", "http://0x7f.1", False),
        ("*", "http://127.1", False),
        ("127.0.0.1:9", "http://127.0.0.1:9", True),
        ("127.0.0.1:9", "http://127.0.0.1:10", False),
        ("[::1]:9", "http://[::1]:9", True),
        ("10.0.0.1", "http://10.0.0.1", True),
    ],
)
def test_hosts_are_listed_and_private_ones_by_themselves(
    pattern: str, origin: str, expected: bool
) -> None:
    assert allows(pattern, origin) is expected


@pytest.mark.parametrize(
    "number",
    [
        "127.0.0.1",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "fe80::1",
        "fc00::1",
        "ff0e::1",
        "::ffff:192.168.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    ],
)
def test_an_address_that_is_not_on_the_public_internet_is_known(number: str) -> None:
    assert not is_public(ipaddress.ip_address(number))


@pytest.mark.parametrize("number", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8"])
def test_a_public_address_is_known(number: str) -> None:
    assert is_public(ipaddress.ip_address(number))


@given(st.text(max_size=60))
def test_any_text_is_an_address_or_refused(text: str) -> None:
    try:
        address = address_in(f"/to/{text}")
    except UnknownPath:
        return
    assert address_in(f"/to/{address.base_url}{address.path}").origin == address.origin


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_within_an_ipv6_one_is_judged_as_itself(
    number: ipaddress.IPv4Address,
) -> None:
    within = ipaddress.IPv6Address(f"::ffff:{number}")
    assert is_public(within) == is_public(number)
