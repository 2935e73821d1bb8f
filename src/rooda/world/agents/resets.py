"""Reads the end of a limit from a CLI's message. An unknown time is better than a wrong time."""

import re
from calendar import isleap
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from rooda.base.controls import clean

_END = 4096  # characters to read at each end of a text; CLIs do not put the time in the middle
_ONE_DAY = timedelta(days=1)
_LAG = timedelta(minutes=15)
_MINUTE = timedelta(minutes=1)
_TWO_MOMENTS = (datetime(2001, 1, 2, 3, 4, 5, tzinfo=UTC), datetime(2004, 8, 7, 20, 30, tzinfo=UTC))


def _rx(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII | re.IGNORECASE)


# JSON strings nested in JSON keep their escapes; terminals draw frames.
_NOISE = _rx(r"\\(?:[nrt]|u[0-9a-f]{4})|[\u2500-\u257f]")

# A time counts only after such a word, or if it is the whole message. The words include field names
# (resetsAt, retry-after, quotaResetTimeStamp), but not the fields of paid extra usage.
_PROMISE = _rx(
    r"(?<!p)(?<!overage)(?<!overage[_-])(?<!connection )reset(?:s?\b (?:time|date)\b|[\w-]*)"
    r"|retry(?: after\b|[\w-]*)"
    r"|\b(?:again|until|wait|return|come back|renews?)\b"
    r"|\blimit reached(?=\|)|\A(?=in |tomorrow\b)"
)
# Words that may be between such a word and its time. Bounded, because hostile text may repeat them.
_LINK = _rx(
    r"(?:[\s:=\"'`|(\[*>~\u2248\u00b7\u2219\u2022]|\s-\s"
    r"|(?:(?:your|the|this) request|when your (?:\w+ ){0,2}(?:cycle|period) (?:ends|renews|resets)"
    r"|less than|at least|up to|will be|every day|approximately|roughly|about|around|another"
    r"|at|on|in|by|after|within|until|for|only|is|the|next|today|tonight|daily)\b){0,16}"
)

_UNIX = _rx(r"[1-9]\d{9}(?P<thousandths>\d{3})?(?:\.\d{1,20})?(?!\w)")

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_AMOUNT = r"(?:\d{1,3}(?:,\d{3}){1,2}|\d{1,9})(?:\.\d{1,20})?|(?:half )?an?(?= )|one(?= )"
_UNIT = (
    r"ms(?:ecs?)?|milliseconds?|s(?:ec(?:ond)?s?)?|min(?:ute)?s?|months?|m"
    r"|h(?:(?:ou)?rs?)?|d(?:ays?)?|w(?:(?:ee)?ks?)?"
)
_PART = _rx(rf"(?P<amount>{_AMOUNT}) ?(?P<unit>{_UNIT})(?![a-z])")
_DURATION = _rx(
    rf"(?:(?:{_AMOUNT}) ?(?:{_UNIT})(?![a-z])(?:,? ?(?:and |& )?(?=\d|an? ))?){{1,8}}+(?! ?ago\b)"
)

# The field name before a number without a unit determines the unit.
_NUMBER = _rx(r"\d{1,9}(?:\.\d{1,20})?(?![\w:/%-])")
_NAMES_OF_MILLISECONDS = ("ms", "millis", "milliseconds")
_NAMES_OF_SECONDS = ("after", "delay", "seconds", "secs", "_in", "-in")
_END_OF_CLAUSE = _rx(r"\s*(?:[.,;!)\]}\"']|\Z)")

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = (
    r"(?P<name>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?:,? (?P<year>\d{4,6}))?(?![\d:])"
_WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
_WEEKDAY = r"(?:mon|tue(?:s)?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?\b\.?"
_HALF = r"\s?[ap]\.?m(?:\b|(?=(?-i:[A-Z])))(?:(?<=\.m)\.)?"
_CLOCK = (
    rf"(?P<word>noon|midnight)\b|(?=\d{{1,2}}(?::\d\d|{_HALF}))(?P<hour>\d{{1,2}})"
    r"(?::(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,20}))?)?)?"
    rf"(?P<half>{_HALF})?(?![\d:])"
)
_TWELVE = (0, *range(1, 12), 0)  # 12am is midnight, 12pm is noon

# The zones that JavaScript prints (it prints China's CST as GMT+8), without ambiguous names.
_HOURS_FROM_UTC = {"UTC": 0, "GMT": 0, "Z": 0, "HST": -10, "AKST": -9, "AKDT": -8, "PST": -8}
_HOURS_FROM_UTC |= {"PDT": -7, "MST": -7, "MDT": -6, "CST": -6, "CDT": -5, "EST": -5, "EDT": -4}
_HOURS_FROM_UTC |= {"CET": 1, "CEST": 2, "JST": 9}
_REGIONS = {
    **dict.fromkeys(("PT", "Pacific Time"), "America/Los_Angeles"),
    **dict.fromkeys(("MT", "Mountain Time"), "America/Denver"),
    **dict.fromkeys(("CT", "Central Time"), "America/Chicago"),
    **dict.fromkeys(("ET", "Eastern Time"), "America/New_York"),
}
_OFFSET = (
    r"\(?(?:UTC|GMT)? ?(?P<sign>[+\-\u2212])(?P<hours>0?\d|1[0-4])(?::?(?P<minutes>\d{2}))?(?!\w)"
)
# Every word in the shape of a zone counts as one: an unknown zone gives no time, not a wrong one.
_ZONE = (
    r"(?-i:\((?P<quoted>[A-Z][^()]{0,40}|[a-z_]{1,20}/[\w/+-]{1,40}|utc|gmt)\)"
    r"|(?P<plain>[A-Z][A-Za-z_]{1,20}(?:/[\w+-]{1,30}){1,2}"
    r"|(?:Pacific|Mountain|Central|Eastern) Time"
    rf"|(?i:{'|'.join(_HOURS_FROM_UTC)})|[A-Z]{{2,5}})(?!\w))"
)
# The pieces of a point in time, in any order; each piece occurs once.
_PIECES = tuple(
    (kind, _rx(pattern))
    for kind, pattern in (
        ("date", r"(?P<year>\d{4,6})[-/](?P<month>\d{1,2})[-/](?P<day>\d{1,2})(?!\d)"),
        ("date", rf"{_MONTH} {_DAY}{_YEAR}"),
        ("date", rf"{_DAY} (?:of )?{_MONTH}{_YEAR}"),
        ("date", r"(?P<month>\d{1,2})/(?P<day>\d{1,2})(?:/(?P<year>\d{4}))?(?![\d/])"),
        ("weekday", _WEEKDAY),
        ("tomorrow", r"tomorrow\b"),
        ("clock", _CLOCK),
        ("offset", _OFFSET),
        ("zone", _ZONE),
    )
)
_BETWEEN_PIECES = _rx(r"[\s,]*(?:T(?=\d)|(?:at|on|by)\b\s*)?")

_Pieces = Mapping[str, re.Match[str]]


def reset_time(text: str, now: datetime) -> datetime | None:
    """Return when a limit ends (in UTC) according to a message at `now`, or None without a time.

    If the message has several times, return the latest: after a too short wait the limit recurs.
    """
    words = _readable(text)
    announced = (_announced(promise, words, now) for promise in _PROMISE.finditer(words))
    return max((moment for moment in announced if moment is not None), default=None)


def requested_delay(text: str) -> float | None:
    """Return the seconds that a CLI asks to wait; None without a time or for a time of day."""
    delays = {_delay_at(text, now) for now in _TWO_MOMENTS}
    return delays.pop() if len(delays) == 1 else None  # a delay is independent of the time of day


def _delay_at(text: str, now: datetime) -> float | None:
    moment = reset_time(text, now)
    return None if moment is None else (moment - now).total_seconds()


def _readable(text: str) -> str:
    """Return both ends of a text on one line, without escapes and frames."""
    if len(text) > 2 * _END:
        text = f"{text[:_END]} ... {text[-_END:]}"
    return " ".join(_NOISE.sub(" ", clean(text)).replace("\\", "").split())


def _announced(promise: re.Match[str], words: str, now: datetime) -> datetime | None:
    link = _LINK.match(words, promise.end())
    start = link.end() if link else promise.end()
    try:
        if found := _UNIX.match(words, start):
            return datetime.fromtimestamp(_unix_seconds(found), UTC)
        if found := _DURATION.match(words, start):
            return now.astimezone(UTC) + timedelta(seconds=_length(found[0]))
        between, pieces = words[promise.end() : start], _pieces(words, start)
        if pieces and not between.lower().endswith("in "):  # "in 1:30" is not a time of day
            return _moment(pieces, now)
        if found := _NUMBER.match(words, start):
            seconds = _by_name(found, promise[0], between)
            return None if seconds is None else now.astimezone(UTC) + timedelta(seconds=seconds)
    except (ArithmeticError, LookupError, OSError, ValueError):
        return None  # no such day, hour or zone, or too far in the future
    return None


def _unix_seconds(found: re.Match[str]) -> float:
    return float(found[0]) / (1000 if found["thousandths"] else 1)


def _length(duration: str) -> float:
    return sum(_amount(part["amount"]) * _unit(part["unit"]) for part in _PART.finditer(duration))


def _amount(words: str) -> float:
    if words[0].isdecimal():
        return float(words.replace(",", ""))
    return 0.5 if words.lower().startswith("half") else 1.0


def _unit(word: str) -> float:
    word = word.lower()
    if word.startswith(("ms", "mil")):
        return 0.001
    return 31 * _SECONDS["d"] if word.startswith("mo") else _SECONDS[word[0]]


def _by_name(number: re.Match[str], name: str, between: str) -> float | None:
    """Return the seconds in `retry-after: 2`; None for `retry after 2 tries`."""
    is_field = any(sign in between for sign in ":=\"'")
    if not is_field and not _END_OF_CLAUSE.match(number.string, number.end()):
        return None
    if name.lower().endswith(_NAMES_OF_MILLISECONDS):
        return float(number[0]) / 1000
    return float(number[0]) if name.lower().endswith(_NAMES_OF_SECONDS) else None


def _pieces(words: str, start: int) -> _Pieces:
    """Return the consecutive pieces: day, time of day and zone."""
    found: dict[str, re.Match[str]] = {}
    while True:
        between = _BETWEEN_PIECES.match(words, start)
        start = between.end() if between else start
        for kind, pattern in _PIECES:
            if kind not in found and (piece := pattern.match(words, start)):
                found[kind], start = piece, piece.end()
                break
        else:
            return found


def _moment(pieces: _Pieces, now: datetime) -> datetime | None:
    if not pieces.keys() & {"date", "weekday", "tomorrow", "clock"}:
        return None
    zone = _zone(pieces) or now.tzinfo
    today = now.astimezone(zone).date()
    days = _days(pieces, today)
    if "clock" not in pieces and today in days:
        return None  # some unknown time today
    clock = _clock(pieces["clock"]) if "clock" in pieces else time()
    moments = [_later(day, clock, zone) for day in days]
    if "date" in pieces and timedelta() < now - moments[0] < _ONE_DAY:
        return moments[0]  # the machine slept past that day, so the date is not next year's
    return moments[0] if len(moments) == 1 else _next(moments, now.astimezone(UTC))


def _next(moments: list[datetime], now: datetime) -> datetime | None:
    """Return the first time in the future. A time lasts until the end of its minute."""
    for moment in moments:
        if moment >= now:
            return moment
        if moment + _MINUTE > now:
            return moment + _MINUTE
        if moment + _LAG > now:
            return moment  # clocks differ by minutes, so this time is not tomorrow's
    return None


def _later(day: date, clock: time, zone: tzinfo | None) -> datetime:
    """Return a local time in UTC.

    For a time that a daylight saving change repeats or skips, return the later of its two meanings.
    """
    shown = datetime.combine(day, clock, zone)
    return max(shown.replace(fold=fold).astimezone(UTC) for fold in (0, 1))


def _days(pieces: _Pieces, today: date) -> list[date]:
    """Return the day, or several candidates if the day depends on the current time."""
    if found := pieces.get("date"):
        return _dates(found, today)
    if found := pieces.get("weekday"):
        ahead = (_WEEKDAYS.index(found[0][:3].lower()) - today.weekday()) % 7
        return [today + timedelta(days=ahead), today + timedelta(days=ahead + 7)]
    tomorrow = today + _ONE_DAY
    # Include yesterday: the time may be a few minutes ago, before midnight.
    return [tomorrow] if "tomorrow" in pieces else [today - _ONE_DAY, today, tomorrow]


def _dates(found: re.Match[str], today: date) -> list[date]:
    part = found.groupdict()
    name, day = part.get("name"), int(part["day"])
    month = _MONTHS.index(name[:3].lower()) + 1 if name else int(part["month"])
    if month > len(_MONTHS):  # the day comes first, as outside of the US
        month, day = day, month
    if part["year"]:
        return [date(int(part["year"]), month, day)]
    years = range(today.year, today.year + 9)
    is_leap_day = (month, day) == (2, 29)
    return [date(year, month, day) for year in years if not is_leap_day or isleap(year)]


def _clock(found: re.Match[str]) -> time:
    if found["word"]:
        return time(12 if found["word"].lower() == "noon" else 0)
    hour, half = int(found["hour"]), found["half"]
    if half:
        hour = _TWELVE[hour] + (12 if "p" in half.lower() else 0)
    fraction = (found["fraction"] or "").ljust(6, "0")[:6]
    return time(hour, int(found["minute"] or 0), int(found["second"] or 0), int(fraction))


def _zone(pieces: _Pieces) -> tzinfo | None:
    """Return the zone, or None without one. Raises an error for an unknown zone."""
    if found := pieces.get("offset"):
        offset = timedelta(hours=int(found["hours"]), minutes=int(found["minutes"] or 0))
        return timezone(offset if found["sign"] == "+" else -offset)
    if found := pieces.get("zone"):
        name = found["quoted"] or found["plain"]
        if (hours := _HOURS_FROM_UTC.get(name.upper())) is not None:
            return timezone(timedelta(hours=hours))
        return ZoneInfo(_REGIONS.get(name, name))
    return None
