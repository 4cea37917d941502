"""Which headers travel."""

from hypothesis import given, strategies

from gateway.wire.headers import reply_headers, request_headers, said_in

NAMES = strategies.sampled_from(
    [b"connection", b"Content-Length", b"TE", b"x-a", b"X-A", b"x-b", b"host", b"set-cookie"]
)
ROWS = strategies.lists(
    strategies.tuples(NAMES, strategies.sampled_from([b"x-a", b"close, X-B", b"1"])), max_size=8
)


def test_what_belongs_to_a_connection_stays_on_it() -> None:
    """CASES E1 (headroom#1808)."""
    rows = [
        (b"Host", b"gateway"),
        (b"Connection", b"keep-alive, X-Private"),
        (b"x-private", b"1"),
        (b"TE", b"trailers"),
        (b"Transfer-Encoding", b"chunked"),
        (b"Content-Length", b"3"),
        (b"Accept-Encoding", b"gzip"),
        (b"X-Library-Session", b"s"),
        (b"Authorization", b"Bearer k"),
        (b"X-Vendor", b"v"),
        (b"x-vendor", b"w"),
    ]
    assert request_headers(rows) == {"authorization": "Bearer k", "x-vendor": "v, w"}
    assert request_headers(rows, drop=frozenset({"authorization"})) == {"x-vendor": "v, w"}


def test_an_answers_length_encoding_and_date_are_our_servers_to_say() -> None:
    """CASES E1 (superlocalmemory PR#79)."""
    rows = [
        (b"Date", b"then"),
        (b"Server", b"theirs"),
        (b"Content-Length", b"3"),
        (b"Content-Encoding", b"gzip"),
        (b"Connection", b"x-hop"),
        (b"X-Hop", b"1"),
        (b"X-Library-Turn", b"of another gateway"),
        (b"X-Request-Id", b"r"),
        (b"Set-Cookie", b"a=1"),
        (b"Set-Cookie", b"b=2"),
    ]
    assert reply_headers(rows) == [
        (b"x-request-id", b"r"),
        (b"set-cookie", b"a=1"),
        (b"set-cookie", b"b=2"),
    ]


def test_a_name_that_is_no_ascii_is_read_as_it_was_meant() -> None:
    """Read as Latin-1, half of the capital umlauts were unprintable, and refused in a session."""
    rows = [(b"X-Library-Session", "Übung".encode()), (b"x-old", b"\xe9"), (b"x-old", b"a\xe9")]
    assert said_in(rows) == {"x-library-session": "Übung", "x-old": "aé"}


@given(ROWS)
def test_filtering_twice_changes_nothing_and_no_name_stands_twice(
    rows: list[tuple[bytes, bytes]],
) -> None:
    once = request_headers(rows)
    again = request_headers((name.encode(), value.encode()) for name, value in once.items())
    assert again == once
    assert reply_headers(reply_headers(rows)) == reply_headers(rows)


def test_a_value_beyond_ascii_arrives_as_it_was_sent() -> None:
    """CASES E5 (litellm#10791): the HTTP client writes what it is given in UTF-8."""
    rows = [(b"x-title", "Café".encode()), (b"x-old", b"Caf\xe9")]
    assert request_headers(rows) == {"x-title": "Café", "x-old": "Café"}


def test_a_control_character_in_a_header_does_not_cost_the_answer() -> None:
    """CASES E1 (headroom#1808): our server refuses to send what our client had read."""
    assert reply_headers([(b"x-a", b"b\x01c\x7f")]) == [(b"x-a", b"b c ")]
