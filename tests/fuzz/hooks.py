"""What schemathesis does not know of Foliot: that keys of repeats must differ, that a refusal says why, and which refusals are meant."""

from __future__ import annotations

import re
from itertools import count
from typing import Any

import schemathesis
from schemathesis import Case, CheckContext, GenerationMode, HookContext, Response

KEY = "Idempotency-Key"
NUMBERS = count(1)

# Requests that fit the description and are refused nonetheless, because no JSON schema can say what is wrong with them.
# Another reason than these is a finding: the description lacks something, or the API refuses what it should take.
BEYOND_SCHEMA = (
    r"There is no time zone",  # names of zones are data
    r"There is no (such )?(job|member|calendar|run|revision|agent|host|instance|secret)",  # so are ids
    r"This (cursor|Last-Event-ID) is not one",  # only Foliot makes them
    r"ends? after it starts|end at another time than they start|lies before|has passed|has gone by|in the future|now or later|at most 31 days",  # two instants, or one and now
    r"between the years 1970 and 9000",
    r"is not (a time|a date|an id|a duration)\.",  # `24h`, `yesterday` and `1h30m` are languages, and so are cron and words
    r"must be an address",  # and addresses
    r"a whole number, not a number",  # a JSON schema takes 60.0 for an integer
    r"These words say something else",  # a sentence against the fields beside it
    r"longer than nothing and at most|at most 100 years|has no fixed length",  # durations are text
    r"Text cannot hold NUL",  # nor can PostgreSQL; repeated parameters are not held to their pattern
    r"which is no ETag",  # of a header that may be left out, some rounds send anything
    r"Which tags\?|There is no server",  # for some actions alone; names are data
    r"must look like .*\\S",  # what is a blank differs between Python and the language of JSON schemas
    r"An agent is at most an editor|A trigger needs a secret|Check-ins have no secret",  # rules between two fields
    r"not a write that a batch takes",  # its paths are text
)
# What a config holds is for the handler to say, and handlers are plugged in; words, cron and filters are languages.
BEYOND_IN = re.compile(r"^/config|/(words|expr|q)$")
TAKES_A_FILE = ("/imports", "/calendars/ics")  # their text is a file of another system


@schemathesis.hook
def before_call(context: HookContext, case: Case[Any], kwargs: dict[str, Any]) -> None:
    """Another body under the same key is refused on purpose; tests/web/test_idempotency.py knows all about that."""
    given = case.headers.get(KEY) if case.headers else None
    if isinstance(given, str) and re.fullmatch(r"[\x21-\x7e]{1,255}", given):
        case.headers[KEY] = f"{next(NUMBERS)}-{given[:240]}"


@schemathesis.check
def says_why(ctx: CheckContext, response: Response, case: Case[Any]) -> None:
    """Each refusal is a problem with a code and a sentence; 422 names what is wrong, each with a message."""
    if not 400 <= response.status_code < 500:
        return
    reported = response.json()
    assert reported["status"] == response.status_code
    assert reported["code"], "no code"
    assert reported["detail"].strip(), "no sentence"
    assert reported["request_id"], "no request id"
    assert all(each["message"] for each in reported["errors"]), "an error without a message"


@schemathesis.check
def refused_for_a_known_reason(ctx: CheckContext, response: Response, case: Case[Any]) -> None:
    if response.status_code not in {400, 422} or case.meta is None:
        return
    if case.meta.generation.mode != GenerationMode.POSITIVE:
        return
    reported = response.json()
    wrong = reported["errors"] or [{"pointer": "", "message": reported["detail"]}]
    unknown = [
        f"{each['pointer']}: {each['message']}"
        for each in wrong
        if not any(re.search(reason, each["message"]) for reason in BEYOND_SCHEMA)
        and not BEYOND_IN.search(each["pointer"])
        and not (each["pointer"] == "/text" and case.path.endswith(TAKES_A_FILE))
    ]
    assert not unknown, f"a request that fits the description is refused: {unknown}"
