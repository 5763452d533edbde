"""A reminder in a room, and an answer to it: what an agent would do. `./dev serve` must be running."""

from __future__ import annotations

from foliot import Client

with Client() as foliot:  # FOLIOT_API_URL and FOLIOT_API_KEY, or the server of this folder
    room = foliot.rooms.create("Stand-up")
    job = foliot.jobs.create(
        name="stand-up",
        type="message",
        schedule="every 2 seconds",
        max_runs=2,
        config={"room": str(room.id), "text": "What is on today? ({{run.id}})"},
    )

    answered = 0
    for message in foliot.rooms.follow(room.id):
        print(f"{message.sender.name or message.sender.kind}: {message.text}")
        if message.job_id:
            foliot.rooms.post(room.id, "Three tickets and the release.")
            answered += 1
        elif answered == 2:
            break

    for run in foliot.jobs.each_run(job.id, status="succeeded"):
        print(f"run {run.number} left message {run.output['message_id']}")
