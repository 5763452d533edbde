"""Parse filter text into a query and report all errors at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from difflib import get_close_matches

from foliot.domain.errors import Mark, QueryInvalid
from foliot.domain.filters.fields import FilterField, FilterFields
from foliot.domain.filters.query import Query, Term
from foliot.domain.filters.values import NotReadError, read_value

LONGEST = 2_000  # characters
MOST_TERMS = 50
MOST_VALUES = 100
_SPACES = frozenset(" \t\r\n\u00a0")


def read_query(text: str, fields: FilterFields, now: datetime, zone: tzinfo = UTC) -> Query:
    """Parse the text of `q=`. Days are those of `zone`; durations count back from `now`."""
    if len(text) > LONGEST:
        raise QueryInvalid(f"A filter has at most {LONGEST:,} characters.", pointer="/q")
    reader = _Reader(text, fields, now, zone)
    terms = tuple(reader.terms())
    if len(terms) > MOST_TERMS:
        raise QueryInvalid(f"A filter has at most {MOST_TERMS} terms.", pointer="/q")
    _raise(reader.wrong)
    return Query(terms)


def read_parameters(
    given: Mapping[str, Sequence[str]], fields: FilterFields, now: datetime, zone: tzinfo = UTC
) -> Query:
    """Parse plain parameters such as `status=failed&tag=billing`. Several values of one field mean any of them."""
    terms, wrong = [], []
    for name, texts in given.items():
        field = fields.get(name)
        if field is None or not texts:
            continue
        try:
            terms.append(Term(field.target, tuple(read_value(field, text, now, zone) for text in texts)))
        except NotReadError as error:
            wrong.append(QueryInvalid(f"{error}", pointer=f"/{name}", hint=error.hint))
    _raise(wrong)
    return Query(tuple(terms))


@dataclass(frozen=True, slots=True)
class _Piece:
    text: str
    start: int
    end: int


class _Reader:
    def __init__(self, text: str, fields: FilterFields, now: datetime, zone: tzinfo) -> None:
        self._text, self._fields, self._now, self._zone = text, fields, now, zone
        self._at = 0
        self.wrong: list[QueryInvalid] = []

    def terms(self) -> Iterator[Term]:
        while self._skip_spaces():
            start = self._at
            negated = self._take("-")
            if self._is_over():
                self._refuse("A minus excludes what follows it.", start, self._at, 'Such as "-tag:old".')
                return
            word = self._piece(stops=":")
            if self._take(":"):
                values, field = self._values(), self._field(word)
            else:
                values, field = [word] if word.text else [], self._fields.get(self._fields.free)
            if field is not None and (term := self._term(field, values, negated)):
                yield term

    def _term(self, field: FilterField, pieces: list[_Piece], negated: bool) -> Term | None:
        values = []
        for piece in pieces:
            try:
                values.append(read_value(field, piece.text, self._now, self._zone))
            except NotReadError as error:
                self._refuse(str(error), piece.start, piece.end, error.hint)
        return Term(field.target, tuple(values), negated) if values else None

    def _field(self, word: _Piece) -> FilterField | None:
        field = self._fields.get(word.text.lower())
        if field is None:
            close = get_close_matches(word.text.lower()[:64], self._fields.names, n=1, cutoff=0.6)
            known = f"Known for {self._fields.noun}: {', '.join(self._fields.names)}."
            hint = (
                f'Did you mean "{close[0]}"? {known}'
                if close
                else f"{known} Text with a colon in it goes in quotes."
            )
            self._refuse(f'There is no field "{word.text[:64]}" to filter by', word.start, word.end, hint)
        return field

    def _values(self) -> list[_Piece]:
        """Parse the values after the colon, separated by commas."""
        found = [self._piece(stops=",")]
        while self._take(","):
            found.append(self._piece(stops=","))
        for piece in found:
            if not piece.text:
                self._refuse(
                    "A value is missing",
                    piece.start,
                    piece.end,
                    "Such as status:failed,paused, without spaces.",
                )
                return []
        if len(found) > MOST_VALUES:
            self._refuse(f"A term has at most {MOST_VALUES} values", found[0].start, self._at, None)
            return []
        return found

    def _piece(self, stops: str) -> _Piece:
        """Read up to a space or one of `stops`; quotes include both. A backslash in quotes takes the next character literally."""
        start, text = self._at, ""
        while not self._is_over() and (here := self._text[self._at]) not in _SPACES and here not in stops:
            text += self._quoted() if here == '"' else self._next()
        return _Piece(text, start, self._at)

    def _quoted(self) -> str:
        start, text = self._at, ""
        self._at += 1
        while not self._is_over():
            here = self._next()
            if here == '"':
                return text
            text += self._next() if here == "\\" and not self._is_over() else here
        self._refuse("This quote is not closed", start, self._at, 'Put a " at its end.')
        return text

    def _next(self) -> str:
        self._at += 1
        return self._text[self._at - 1]

    def _take(self, sign: str) -> bool:
        found = self._text.startswith(sign, self._at)
        self._at += found
        return found

    def _skip_spaces(self) -> bool:
        """Skip separators. Return whether text is left."""
        while not self._is_over() and self._text[self._at] in _SPACES:
            self._at += 1
        return not self._is_over()

    def _is_over(self) -> bool:
        return self._at >= len(self._text)

    def _refuse(self, message: str, start: int, end: int, hint: str | None) -> None:
        sentence = f"{message.removesuffix('.')} (column {start + 1})."
        self.wrong.append(QueryInvalid(sentence, pointer="/q", hint=hint, mark=Mark(self._text, start, end)))


def _raise(wrong: Sequence[QueryInvalid]) -> None:
    if len(wrong) == 1:
        raise wrong[0]
    if wrong:
        raise QueryInvalid(
            f"{len(wrong)} parts of this filter cannot be read.", mark=wrong[0].mark, parts=tuple(wrong)
        )
