"""Which database the settings mean, and what it takes to bring it up to date."""

from __future__ import annotations

from foliot.wiring.home import Home, bring_up_to_date


def test_a_node_on_an_up_to_date_database_needs_no_owner(login_url: str) -> None:
    applied, facts = bring_up_to_date(Home(login_url, login_url, None))
    assert applied == ()
    assert not facts.one_login
