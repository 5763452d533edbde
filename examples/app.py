"""Jobs that are functions: `foliot serve --app app:app` in this folder, then `python app.py` beside it.

The worker loads this module, makes the server's jobs what the decorators say, and calls the functions when they are due.
"""

import asyncio
from datetime import timedelta

from foliot import Context, Fail, Foliot, Retry, Skip

app = Foliot("shop")


@app.job(cron="0 6 * * mon-fri", timezone="Europe/Paris", timeout="5m", tags=["billing"], retry={"max": 5})
def charge(ctx: Context, currency: str = "EUR", limit: int = 100) -> dict[str, int]:
    """Charge open invoices. A plain function runs in a process of its own, which its timeout can end."""
    for number in range(limit):
        ctx.progress(number + 1, limit)
    ctx.log(f"charged {limit} invoices in {currency}; run {ctx.run_id}, attempt {ctx.attempt}")
    return {"charged": limit}


@app.job(every="10s", overlap="skip")
async def heartbeat(ctx: Context) -> str:
    """An async function runs on the worker's loop."""
    await asyncio.sleep(0.1)
    return f"planned for {ctx.planned_for:%H:%M:%S}"


@app.job(when="every weekday at 9am", timezone="Europe/Paris")
def remind() -> None:
    raise Skip("nobody to remind today")


@app.job
def refund(invoice: str, cents: int) -> str:
    """A job without a schedule runs on request, and may need parameters."""
    if cents <= 0:
        raise Fail(f"{cents} cents cannot be refunded")
    if invoice.startswith("new-"):
        raise Retry("the bank does not know it yet", after=timedelta(minutes=5))
    return f"refunded {cents} cents of {invoice}"


if __name__ == "__main__":
    print("called here:", refund("2027-001", cents=250))
    for run in (refund.run_now(invoice="2027-001", cents=250), charge.run_now(limit=4)):
        list(app.client.runs.follow_logs(run.id))  # comes to its end with the run
        for line in app.client.runs.logs(run.id).items:
            print("  ", line.text)
        done = app.client.runs.get(run.id)
        print("on a worker:", done.status, done.output)
