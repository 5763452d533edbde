"""`foliot whoami`: which server, which key, which workspace, and what it may."""

from __future__ import annotations

from foliot.cli.session import Session, api_command


@api_command
def whoami(session: Session) -> None:
    """Which server answers, who you are there, and what you may."""
    from foliot.cli.key_rendering import me_page

    me = session.client.me()
    session.show(me, lambda: me_page(me, session.client.url, session.now))
