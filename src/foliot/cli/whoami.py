"""`foliot whoami`: which server, which key, which workspace, and what it may."""

from __future__ import annotations

from foliot.cli.session import Here, asking


@asking
def whoami(here: Here) -> None:
    """Which server answers, who you are there, and what you may."""
    from foliot.cli.key_rendering import me_page

    me = here.client.me()
    here.show(me, lambda: me_page(me, here.client.url, here.now))
