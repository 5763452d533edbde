"""`room`: post a notice into a chat room of the workspace, where people and agents read it."""

from __future__ import annotations

from foliot.domain.delivery import Accepted, Came, Rejected
from foliot.domain.errors import Invalid, NotFound
from foliot.services import Database
from foliot.services.messaging.courier import OutgoingNotice
from foliot.services.messaging.messages import post_notice


class RoomChannel:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def send(self, notice: OutgoingNotice) -> Came:
        named = str(notice.config.get("room"))
        text = f"{notice.content.title}\n\n{notice.content.text}"
        try:
            await post_notice(self._database, notice.taken.workspace_id, named, text)
        except NotFound as error:
            return Rejected(404, error.message, stops=True)
        except Invalid as error:  # a quota: messages of the room are pruned in time
            return Rejected(422, error.message)
        return Accepted(200, "The room has it.")
