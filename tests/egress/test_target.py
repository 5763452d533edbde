"""How an address is read: strictly, once, and into the parts that are connected to."""

from __future__ import annotations

import pytest

from foliot.egress.url import HttpTarget, InvalidTarget, MisleadingTarget, read_target


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://Example.COM", HttpTarget("https", "example.com", 443, "/")),
        ("http://example.com:8080/a/b?c=d#e", HttpTarget("http", "example.com", 8080, "/a/b?c=d")),
        ("HTTP://example.com?x", HttpTarget("http", "example.com", 80, "/?x")),
        ("https://example.com:/", HttpTarget("https", "example.com", 443, "/")),
        ("https://bücher.example/ä", HttpTarget("https", "xn--bcher-kva.example", 443, "/%C3%A4")),
        ("http://93.184.216.34/", HttpTarget("http", "93.184.216.34", 80, "/")),
        ("http://[2606:4700:0:0::1111]:81/", HttpTarget("http", "2606:4700::1111", 81, "/")),
        ("https://example.com./", HttpTarget("https", "example.com.", 443, "/")),
        ("http://my_service:9000/%7Bx%7D", HttpTarget("http", "my_service", 9000, "/%7Bx%7D")),
    ],
)
def test_an_address_is_read_into_what_is_connected_to(url: str, target: HttpTarget) -> None:
    assert read_target(url) == target


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://example.com:443/", "example.com"),
        ("https://example.com.:8443/", "example.com:8443"),
        ("http://[2606:4700::1111]:81/", "[2606:4700::1111]:81"),
        ("http://example.com:443/", "example.com:443"),
    ],
)
def test_the_header_host_says_what_the_address_says(url: str, host: str) -> None:
    assert read_target(url).authority == host


def test_a_target_is_reported_without_what_may_be_secret_in_it() -> None:
    assert str(read_target("https://Example.com/hooks/s3cret?token=hunter2")) == "https://example.com"


@pytest.mark.parametrize(
    "url",
    [
        "", "example.com", "//example.com/", "http:example.com", "http:/example.com", "ftp://example.com/", "file:///etc/passwd",
        "gopher://127.0.0.1:6379/_INFO", "dict://127.0.0.1:11211/", "javascript:alert(1)", "data:text/plain,x", "http://",
        "http://:80/", "http:///path", "http://example.com:port/", "http://example.com:0/", "http://example.com:65536/",
        "http://example.com:99999999999/", "http://exa mple.com/".replace(" ", "*"), "http://-example.com/", "http://a..b/",
        f"http://{'a' * 64}.com/", "http://[::1/", "http://[nonsense]/", "http://::1/", "https://" + "a" * 9_000,
    ],
)  # fmt: skip
def test_what_is_no_http_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidTarget) as refused:
        read_target(url)
    assert refused.value.message
    assert refused.value.hint


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        ("http://2130706433/", "127.0.0.1"), ("http://0x7f000001/", "127.0.0.1"), ("http://0X7F.0.0.1/", "127.0.0.1"),
        ("http://0177.0.0.1/", "127.0.0.1"), ("http://017700000001/", "127.0.0.1"), ("http://127.1/", "127.0.0.1"),
        ("http://127.0.1/", "127.0.0.1"), ("http://127.0.0.1./", "127.0.0.1"), ("http://0/", "0.0.0.0"),
        ("http://127.0.0.01/", "127.0.0.1"), ("http://0x7f.1/", "127.0.0.1"), ("http://2852039166/", "169.254.169.254"),
    ],
)  # fmt: skip
def test_an_unusual_spelling_is_refused_with_the_plain_one(url: str, meant: str) -> None:
    with pytest.raises(MisleadingTarget, match=meant):
        read_target(url)
