"""A job that fails and recovers, and who hears of it: one message for each. `./dev serve` must be running.

The messages go to a room, so no mail server is needed. An e-mail channel has `{"kind": "email", "to": ["ops@example.com"]}` instead.
"""

from __future__ import annotations

from foliot import Client

with Client() as foliot:  # FOLIOT_API_URL and FOLIOT_API_KEY, or the server of this folder
    health = f"{foliot.url}/healthz"
    room = foliot.rooms.create("On call")
    channel = foliot.channels.create({"name": "on call", "config": {"kind": "room", "room": room.id}})
    job = foliot.jobs.create(
        name="check the shop",
        type="http",
        schedule={"kind": "manual"},
        config={"method": "GET", "url": f"{health}/wrong"},
        retry={"max": 0},
    )
    rule = foliot.notification_rules.create(
        {
            "name": "the shop",
            "events": ["run_failed", "recovered"],
            "channels": [channel.id],
            "scope": {"jobs": [job.id]},
        }
    )

    foliot.runs.wait(foliot.jobs.run(job.id).id, within=60)
    [failure] = foliot.rooms.messages(room.id, wait=25).items
    [incident] = foliot.incidents.list(job_id=job.id).items
    print(f"{incident.state}: {failure.text.splitlines()[0]}")

    foliot.jobs.patch(job.id, {"config": {"method": "GET", "url": health}})
    foliot.runs.wait(foliot.jobs.run(job.id).id, within=60)
    [recovery] = foliot.rooms.messages(room.id, after=failure.seq, wait=25).items
    [incident] = foliot.incidents.list(job_id=job.id).items
    print(f"{incident.state}: {recovery.text.splitlines()[0]}")

    foliot.notification_rules.delete(rule.id)
    foliot.channels.delete(channel.id)
    foliot.jobs.delete(job.id, purge=True)
