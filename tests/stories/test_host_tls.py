"""Between a host and its server: TLS with a certificate that is trusted, or nothing. The peer is a real one, which ends TLS before a
real server.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from foliot import Client
from foliot.sdk import Untrusted
from tests.fork_server import environ_without_foliot, run_foliot
from tests.stories.certificates import Authority, in_front_of
from tests.stories.fleet import Fleet, HostProcess, wait_for
from tests.stories.server_process import wait_until

pytestmark = pytest.mark.usefixtures("used_data_dir")

KEY = "fol_nobody"
USAGE, UNREACHABLE = 2, 6  # exit codes


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority.new(tmp_path / "authority")


@pytest.fixture
def secure(fleet: Fleet, authority: Authority) -> Iterator[str]:
    """The address of the server, by TLS."""
    fleet.open()
    port = int(fleet.url.rpartition(":")[2])
    with in_front_of(port, authority.server("127.0.0.1")) as url:
        yield url


def refused(folder: Path, *flags: str, **environ: str) -> tuple[int, str]:
    """How a host ended that should not have started, and what it said."""
    env = environ_without_foliot() | {"FOLIOT_API_KEY": KEY} | environ
    done = run_foliot("host", *flags, cwd=folder, env=env)
    assert KEY not in done.stderr
    return done.returncode, done.stderr


def test_a_host_works_over_tls_by_whichever_way_it_learns_whom_to_trust(
    fleet: Fleet, secure: str, authority: Authority
) -> None:
    file = str(authority.file)
    ways: dict[str, tuple[list[str], dict[str, str]]] = {
        "flag": (["--ca", file], {}),
        "setting": ([], {"FOLIOT_CA_FILE": file}),
        "environment": ([], {"SSL_CERT_FILE": file}),
    }
    with fleet.client() as client:
        for name, (flags, environ) in ways.items():
            host = fleet.start("--name", name, "--allow-python", *flags, url=secure, **environ)
            host.wait_for(r'"worker.registered"')
            # It waits for work by now, or soon will: a run that comes later is fetched by the request that waits.
            run = client.jobs.run(fleet.job(client, "talking", name=name, target={"host": name}).id)
            wait_until(lambda run=run: client.runs.logs(run.id).items, "a line of a run under way")  # type: ignore[misc]
            fleet.open_gate()
            done = wait_for(client, run.id, "succeeded")
            assert (done.output, done.host) == ("done", name)
        assert {each.status for each in client.hosts.list().items} == {"online"}


@pytest.mark.slow
def test_a_server_that_is_not_trusted_gets_nothing_and_the_host_says_why(
    fleet: Fleet, secure: str, authority: Authority, tmp_path: Path
) -> None:
    code, said = refused(fleet.folder, "--server", secure)
    assert code == UNREACHABLE, said
    assert "is not trusted: " in said
    assert "FOLIOT_CA_FILE to its certificate, or use --ca" in said
    other = Authority.new(tmp_path / "other", "another authority")
    assert refused(fleet.folder, "--server", secure, "--ca", str(other.file))[0] == UNREACHABLE
    by_name = secure.replace("127.0.0.1", "localhost")
    code, said = refused(fleet.folder, "--server", by_name, "--ca", str(authority.file))
    assert (code, "localhost" in said) == (UNREACHABLE, True), said
    with Client(secure, KEY) as client, pytest.raises(Untrusted, match="is not trusted"):
        client.me()
    with Client(secure, fleet.client_key, ca=authority.file) as client:
        assert client.hosts.list().items == []


@pytest.mark.parametrize("content", [None, "", "no certificate"])
def test_a_file_without_certificates_is_reported_as_one(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    code, said = refused(tmp_path, "--server", "https://127.0.0.1:9", "--ca", str(file))
    assert (code, f"{file} has no readable certificates" in said) == (USAGE, True), said


def test_an_address_without_its_scheme_is_reported_as_one(tmp_path: Path) -> None:
    code, said = refused(tmp_path, "--server", "127.0.0.1:9")
    assert (code, "'127.0.0.1:9' is not a URL" in said) == (USAGE, True), said


def test_plain_http_to_another_machine_is_refused_unless_a_flag_allows_it(tmp_path: Path) -> None:
    code, said = refused(tmp_path, "--server", "http://192.0.2.1:8700")
    assert (code, "is not https" in said, "--insecure" in said) == (USAGE, True, True)
    allowed = HostProcess(tmp_path, "http://192.0.2.1:9", KEY, "--insecure")
    try:
        allowed.wait_for(r'"host.waiting"')  # nobody is there, and that is all that is wrong
    finally:
        allowed.end()
