"""Reading the reset time from limit messages; other numbers are never taken for a time."""

import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import rooda
from rooda.world.agents.resets import requested_delay, reset_time
from support.properties import examples
from support.tables import each_row

BERLIN = ZoneInfo("Europe/Berlin")
NEW_YORK = ZoneInfo("America/New_York")
SUNDAY_EVENING = datetime(2026, 11, 15, 18, 36, tzinfo=BERLIN)


def local_reset(text: str, now: datetime = SUNDAY_EVENING) -> str | None:
    """Return the time that is read from the text, in local time."""
    found = reset_time(text, now)
    if found is None:
        return None
    assert found.utcoffset() is not None
    shown = found.astimezone(now.tzinfo).replace(tzinfo=None)
    return shown.isoformat(" ", "auto" if shown.second or shown.microsecond else "minutes")


def seconds_left(text: str) -> float | None:
    found = reset_time(text, SUNDAY_EVENING)
    return None if found is None else (found - SUNDAY_EVENING).total_seconds()


@each_row(
    "text,expected",
    [
        # claude
        ("Claude AI usage limit reached|1794769200", "2026-11-15 20:00"),
        ("You've hit your limit · resets 11:14am (UTC)", "2026-11-16 12:14"),
        ("You've hit your session limit · resets 8:30pm (Asia/Tokyo)", "2026-11-16 12:30"),
        ("You've hit your weekly limit · resets Sep 15 at 7pm", "2027-09-15 19:00"),
        ("You've hit your weekly limit · resets Nov 17, 4pm (Europe/Rome)", "2026-11-17 16:00"),
        ("5-hour limit reached ∙ resets 3pm\n  /upgrade to increase", "2026-11-16 15:00"),
        ("Opus weekly limit reached ∙ resets Nov 20, 9am", "2026-11-20 09:00"),
        ("Opus weekly limit reached ∙ resets Nov 20", "2026-11-20 00:00"),
        ("Your limit will reset \n     at 3pm (America/Santiago).", "2026-11-15 19:00"),
        ("Your limit will reset at 1pm (Etc/GMT+5).", "2026-11-15 19:00"),
        ('{"rate_limit_info":{"resetsAt":1794769200,"x":1}}', "2026-11-15 20:00"),
        # codex
        ("hit your usage limit. Try again in 3 days 4 hours 22 minutes.", "2026-11-18 22:58"),
        ("(https://openai.com/pricing) or try again in 5 days 22\nhours 11\nminutes.",
         "2026-11-21 16:47"),
        ("or try again at 11:05 PM.", "2026-11-15 23:05"),
        ("or try again at Nov 23rd, 2026 1:36 PM.", "2026-11-23 13:36"),
        ("or try again after December 6, 2026, 11:15.", "2026-12-06 11:15"),
        ("5h limit: (resets 03:27)", "2026-11-16 03:27"),
        ("Weekly limit: (resets 11:15 on 22 Nov)", "2026-11-22 11:15"),
        ('"plan_type":"free","resets_at":1794769200,"resets_in_seconds":5040', "2026-11-15 20:00"),
        # gemini
        ("Your quota will reset after 10h5m23s.", "2026-11-16 04:41:23"),
        ("Usage limit reached for all Pro models. Access resets at 10:57 PM GMT-3.",
         "2026-11-16 02:57"),
        ('limit: 20\\nPlease retry in 34.5s.\\",\\n \\"retryDelay\\": \\"34s\\"',
         "2026-11-15 18:36:34.500000"),
        ("Suggested retry after 2s.. Retrying after 5226ms...", "2026-11-15 18:36:05.226000"),
        ("Expected quota reset within 24h.]", "2026-11-16 18:36"),
        ('"quotaResetTimeStamp": "2026-11-15T22:00:00Z"', "2026-11-15 23:00"),
        # opencode, and the services behind it
        ("Free usage exceeded, subscribe to Go [retrying in 6h16m - attempt #1]",
         "2026-11-16 00:52"),
        ("quota exceeded [retrying in ~1 week attempt #1]", "2026-11-22 18:36"),
        ("Your limit will reset at 2026-11-15 20:30:24 [retrying in 2m 22s #8]",
         "2026-11-15 20:30:24"),
        ("It will reset at 2026-11-16 16:11:46 +0800 CST.", "2026-11-16 09:11:46"),
        ('"responseHeaders":{"retry-after":"7200","server":"x"}', "2026-11-15 20:36"),
        ("limit reached (0/0 used), resets at 2026-11-16T15:00:00Z (2056)", "2026-11-16 16:00"),
        # copilot
        ("Please try again in 15 hours 23 minutes. Please review our Terms", "2026-11-16 09:59"),
        ("exceeded your 5 hour session limits. Please retry after 2733 seconds.",
         "2026-11-15 19:21:33"),
        ("Please wait 587 hours 33 minutes before trying again.", "2026-12-10 06:09"),
        ("Your session rate limit will reset on December 22 at 6:21 AM.", "2026-12-22 06:21"),
        # cursor and kiro
        ("Your usage limits will reset when your monthly cycle ends on 12/17/2026.*",
         "2026-12-17 00:00"),
        ("Estimated Usage\nresets on 12/01", "2026-12-01 00:00"),
        ("Please return tomorrow to continue building.", "2026-11-16 00:00"),
    ],
)  # fmt: skip
def test_messages_of_real_clis_give_the_reset_time(text: str, expected: str) -> None:
    assert local_reset(text) == expected


@each_row(
    "text,expected",
    [
        ("usage limit reached|1735689600", "2025-01-01 01:00"),
        ('"resetsAt":1794726000', "2026-11-15 08:00"),
        ('"resetsAt":1794726000500', "2026-11-15 08:00:00.500000"),
        ("anthropic-ratelimit-unified-reset: 1794726000.25", "2026-11-15 08:00:00.250000"),
        ("resets on October 1, 2025 at 5:00 AM UTC", "2025-10-01 07:00"),
        ("Try again at Feb 3rd, 2026 3:05 PM", "2026-02-03 15:05"),
        ("retry-after: Sun, 15 Nov 2026 11:14:00 GMT", "2026-11-15 12:14"),
        ("reset at 2026-11-15T11:14:00.123456789+02:00", "2026-11-15 10:14:00.123456"),
    ],
)
def test_complete_date_and_time_is_used_even_in_the_past(text: str, expected: str) -> None:
    assert local_reset(text) == expected


@each_row(
    "clock,expected",
    [
        ("3pm", "2026-11-16 15:00"),
        ("7pm", "2026-11-15 19:00"),
        ("7 PM", "2026-11-15 19:00"),
        ("7:05 p.m.", "2026-11-15 19:05"),
        ("12am", "2026-11-16 00:00"),
        ("12:30am", "2026-11-16 00:30"),
        ("12pm", "2026-11-16 12:00"),
        ("noon", "2026-11-16 12:00"),
        ("midnight", "2026-11-16 00:00"),
        ("18:36", "2026-11-15 18:36"),
        ("18:20", "2026-11-16 18:20"),
        ("at 15:30", "2026-11-16 15:30"),
        ("at 23:59:59", "2026-11-15 23:59:59"),
        ("today at 8pm", "2026-11-15 20:00"),
        ("tomorrow at 9am", "2026-11-16 09:00"),
        ("9am tomorrow", "2026-11-16 09:00"),
        ("Sunday 7pm", "2026-11-15 19:00"),
        ("Sunday 6pm", "2026-11-22 18:00"),
        ("Monday 9am", "2026-11-16 09:00"),
        ("on Thursday at 10:00", "2026-11-19 10:00"),
        ("Fri 4:00 PM", "2026-11-20 16:00"),
        ("9am on Saturday", "2026-11-21 09:00"),
        ("Wednesday", "2026-11-18 00:00"),
        ("on the 1st of December", "2026-12-01 00:00"),
        ("Nov 15 at 11:14 PM", "2026-11-15 23:14"),
        ("at Oct 7, 1am", "2027-10-07 01:00"),
        ("9am on Dec. 3", "2026-12-03 09:00"),
        ("31/12/2026", "2026-12-31 00:00"),
    ],
)
def test_time_without_day_or_year_is_the_next_such_time(clock: str, expected: str) -> None:
    assert local_reset(f"You've hit your limit · resets {clock}") == expected


@each_row(
    "zone,expected",
    [
        ("", "2026-11-16 09:00"),
        (" (UTC)", "2026-11-16 10:00"),
        (" utc", "2026-11-16 10:00"),
        (" GMT.", "2026-11-16 10:00"),
        ("Z", "2026-11-16 10:00"),
        (" PST", "2026-11-16 18:00"),
        (" PDT", "2026-11-16 17:00"),
        (" PT", "2026-11-16 18:00"),
        (" (Pacific Time)", "2026-11-16 18:00"),
        (" UTC+2", "2026-11-16 08:00"),
        (" (GMT+5:30)", "2026-11-16 04:30"),
        ("+02:00", "2026-11-16 08:00"),
        (" -0330", "2026-11-16 13:30"),
        (" (Europe/Berlin)", "2026-11-16 09:00"),
        (" America/New_York", "2026-11-16 15:00"),
        (" (America/Argentina/Buenos_Aires)", "2026-11-16 13:00"),
        (" (Pacific/Kiritimati)", "2026-11-15 20:00"),
        (" (for all models)", "2026-11-16 09:00"),
    ],
)
def test_zone_of_the_message_is_used_or_else_the_local_zone(zone: str, expected: str) -> None:
    assert local_reset(f"resets 9:00am{zone}") == expected


@each_row(
    "text,seconds",
    [
        ("try again in 3 hours", 10800),
        ("try again in 45 minutes", 2700),
        ("try again in 1h30m", 5400),
        ("in 1h 30m", 5400),
        ("retry in 1 hour and 30 minutes", 5400),
        ("retry in 2 hrs, 5 mins, and 3 secs", 7503),
        ("try again in about an hour", 3600),
        ("try again in half an hour", 1800),
        ("try again in a minute", 60),
        ("Try again in less than a minute.", 60),
        ("Please try again in 915ms. Visit", 0.915),
        ("Please retry in 34.074824224s", 34.074824),
        ("try again in 1,200 seconds", 1200),
        ("reset after 0s", 0),
        ("available again in 2d", 172800),
        ("resets in one week", 604800),
        ("Suggested retry after 2s", 2),
        ("retry-after: 2", 2),
        ("retry-after: 2\nserver: nginx", 2),
        ("Retry after 30.", 30),
        ("retry-after-ms=1500", 1.5),
        ("retryDelayMs: 2000,", 2),
        ('"retry_delay_ms":2449.551146471532,"error_status":429', 2.449551),
        ('retryDelay":"34s"', 34),
        ("x-ratelimit-reset-tokens: 6m0s", 360),
    ],
)
def test_duration_counts_from_now(text: str, seconds: float) -> None:
    assert seconds_left(text) == seconds


@each_row(
    "text",
    [
        "",
        "429",
        "status 429 (limit 200000)",
        "request id 1794769200abc",
        "retry (request id 1794769200abc)",
        "exceed your organization's rate limit of 30,000 input tokens per minute. Try again later.",
        "try again in a moment",
        "or wait for limits to reset (every 5h and every week.).",
        "retried 5 times (total retry wait time: 11.10 seconds)",
        "retry failed after 30 seconds",
        "retry after 5 attempts",
        "your limit was reset 3 hours ago",
        "your limit was reset 1 hour 3 minutes ago",
        "Connection reset at 10:30",
        "presets 3pm",
        "Report of 2026-11-16T10:00:00Z, see page 1794769200 of 12:30",
        "10 requests in 60 seconds",
        '"overageStatus":"rejected","overageResetsAt":1796083200',
        '"error":"rate_limit","subtype":"api_retry","attempt":1,"max_retries":10',
        "resets in 1:30",
        "resets 3",
        "resets 25:00",
        "resets 13pm",
        "resets 11:75am",
        "resets Feb 30 at 9am",
        "resets 2026-13-45",
        "resets next month",
    ],
)
def test_number_that_is_not_a_time_gives_none(text: str) -> None:
    assert local_reset(text) is None


@each_row("day", ["Nov 15", "11/15/2026", "2026-11-15", "Sunday"])
def test_day_without_time_gives_none_if_it_is_today(day: str) -> None:
    assert local_reset(f"resets {day}") is None


@each_row(
    "text,expected",
    [
        ("resets 7pm. Weekly limit resets Nov 20 at 9am", "2026-11-20 09:00"),
        ("Weekly limit resets Nov 20 at 9am, session resets 7pm", "2026-11-20 09:00"),
        ("On Dec 1, 2026 we raise prices. Your limit resets 7pm", "2026-11-15 19:00"),
        ("6 requests in 60 seconds; resets 7pm; build of 2027-01-01", "2026-11-15 19:00"),
        ("reset at 2026-01-01 10:00, retry in 2m", "2026-11-15 18:38"),
        ('"resetsAt":1794769200,"overageResetsAt":1796083200', "2026-11-15 20:00"),
    ],
)
def test_latest_of_several_reset_times_is_used(text: str, expected: str) -> None:
    assert local_reset(text) == expected


@each_row(
    "now,text,expected",
    [
        ("2026-12-31 22:00", "resets Jan 1, 1am", "2027-01-01 01:00"),
        ("2026-12-31 22:00", "resets 3am", "2027-01-01 03:00"),
        ("2026-12-31 22:00", "resets Dec 31 at 11pm", "2026-12-31 23:00"),
        ("2027-01-01 00:30", "resets Dec 31 at 11pm", "2027-12-31 23:00"),
        ("2026-12-31 22:00", "resets tomorrow", "2027-01-01 00:00"),
        ("2028-02-28 22:00", "resets 3am", "2028-02-29 03:00"),
        ("2028-02-28 22:00", "resets tomorrow at 9am", "2028-02-29 09:00"),
        ("2026-11-15 18:36", "resets Feb 29 at 9am", "2028-02-29 09:00"),
        ("2028-03-02 12:00", "resets Feb 29 at 9am", "2032-02-29 09:00"),
        ("2096-03-02 12:00", "resets Feb 29 at 9am", "2104-02-29 09:00"),
        ("2026-11-15 23:59", "resets 12am", "2026-11-16 00:00"),
        ("2026-11-16 00:00", "resets 12am", "2026-11-16 00:00"),
    ],
)
def test_next_time_across_midnight_new_year_and_leap_days(
    now: str, text: str, expected: str
) -> None:
    assert local_reset(text, datetime.fromisoformat(now).replace(tzinfo=BERLIN)) == expected


def test_day_is_computed_in_the_zone_of_the_message() -> None:
    late_in_berlin = datetime(2026, 11, 16, 2, 0, tzinfo=BERLIN)  # still Sunday in New York
    assert (
        local_reset("resets tomorrow at 9am (America/New_York)", late_in_berlin)
        == "2026-11-16 15:00"
    )
    assert local_reset("resets Sunday 9pm (America/New_York)", late_in_berlin) == "2026-11-16 03:00"
    assert local_reset("resets Nov 15 (America/New_York)", late_in_berlin) is None


@each_row(
    "now,text,expected",
    [
        # Berlin, March: the hour from 02:00 to 03:00 is skipped
        ("2026-03-28 22:00+01:00", "resets 2:30am (Europe/Berlin)", "2026-03-29 01:30"),
        ("2026-03-28 22:00+01:00", "resets 3am (Europe/Berlin)", "2026-03-29 01:00"),
        ("2026-03-28 22:00+01:00", "resets 1:59am (Europe/Berlin)", "2026-03-29 00:59"),
        ("2026-03-28 22:00+01:00", "try again in 6 hours", "2026-03-29 03:00"),
        # Berlin, October: the hour from 02:00 to 03:00 is repeated
        ("2026-10-24 22:00+02:00", "resets 2:30am (Europe/Berlin)", "2026-10-25 01:30"),
        ("2026-10-25 02:45+02:00", "resets 2:30am (Europe/Berlin)", "2026-10-25 01:30"),
        ("2026-10-25 02:45+01:00", "resets 2:30am (Europe/Berlin)", "2026-10-26 01:30"),
        ("2026-10-24 22:00+02:00", "resets Oct 25 at 3am (Europe/Berlin)", "2026-10-25 02:00"),
        # New York, March
        ("2026-03-07 22:00-05:00", "resets 2:30am (America/New_York)", "2026-03-08 07:30"),
        ("2026-03-07 22:00-05:00", "resets Mar 8, 3am (America/New_York)", "2026-03-08 07:00"),
        # New York, November
        ("2026-10-31 22:00-04:00", "resets 1:30am (America/New_York)", "2026-11-01 06:30"),
        ("2026-10-31 22:00-04:00", "resets 9am (America/New_York)", "2026-11-01 14:00"),
        ("2026-10-31 22:00-04:00", "resets tomorrow at 1am ET", "2026-11-01 06:00"),
    ],
)
def test_ambiguous_time_at_a_clock_change_is_the_later_one(
    now: str, text: str, expected: str
) -> None:
    moment = datetime.fromisoformat(now)
    for zone in (UTC, BERLIN, NEW_YORK):
        found = reset_time(text, moment.astimezone(zone))
        assert found == datetime.fromisoformat(f"{expected}+00:00")


@pytest.mark.parametrize("seconds", [0, 1, 59])
def test_time_lasts_until_the_end_of_its_minute(seconds: int) -> None:
    now = SUNDAY_EVENING.replace(second=seconds)
    found = reset_time("resets 6:36pm", now)
    assert found == SUNDAY_EVENING + timedelta(minutes=1 if seconds else 0)


def test_wait_is_correct_across_a_clock_change() -> None:
    evening = datetime(2026, 10, 24, 22, 0, tzinfo=BERLIN)
    found = reset_time("resets 9am (Europe/Berlin)", evening)
    assert found is not None
    assert found - evening == timedelta(hours=12)


@each_row(
    "zone",
    [
        "(Europe/Nowhere)",
        "(europe/nowhere)",
        "(Mars)",
        "(America)",
        "(Middle Earth Time)",
        "(Europe/../../etc/passwd)",
        "(A/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a)",
        "XYZ",
        "IST",
    ],
)
def test_unknown_zone_gives_no_time(zone: str) -> None:
    assert local_reset(f"resets 3pm {zone}") is None
    assert local_reset(f"resets 3pm {zone}, or try again in 2 hours") == "2026-11-15 20:36"
    assert local_reset(f'resets 3pm {zone} "resetsAt":1794769200') == "2026-11-15 20:00"


@pytest.mark.real
def test_times_without_named_zones_are_read_without_a_zone_database() -> None:
    script = """
from datetime import datetime, timedelta, timezone
from rooda.world.agents.resets import reset_time
now = datetime(2026, 11, 15, 18, 36, tzinfo=timezone(timedelta(hours=1)))
for text in ("resets 3pm (Europe/Berlin)", "resets 3pm PT", "resets 3pm (UTC)", "resets 7pm",
             "resets 3pm (Europe/Berlin), retry in 2 hours", "limit reached|1794769200"):
    print(reset_time(text, now))
"""
    source = str(Path(rooda.__file__).parents[1])
    env = {**os.environ, "PYTHONTZPATH": "", "PYTHONPATH": source}
    # -S: without site-packages, which may contain a zone database
    ran = subprocess.run(
        [sys.executable, "-S", "-c", script], env=env, capture_output=True, text=True, check=True
    )
    assert ran.stdout.split("\n") == [
        "None",
        "None",
        "2026-11-16 15:00:00+00:00",
        "2026-11-15 18:00:00+00:00",
        "2026-11-15 19:36:00+00:00",
        "2026-11-15 19:00:00+00:00",
        "",
    ]


@each_row(
    "text",
    [
        "\x1b[91m\x1b[1mError: \x1b[0mlimit · resets \x1b[1m7pm\x1b[0m",
        "limit resets\u202f7:00\u202fPM",
        r"limit\nresets\u00a07pm\n",
        r"{\"error\":{\"message\":\"Limit.\nresets \\\"7pm\\\"\"}}",
        "│ limit resets │\n│ at 7pm        │",
        "limit **resets at `7pm`**",
        "LIMIT RESETS AT 7PM",
    ],
)
def test_colors_escapes_and_frames_are_ignored(text: str) -> None:
    assert local_reset(text) == "2026-11-15 19:00"


@pytest.mark.parametrize("size", [100, 8000, 3_000_000])
def test_both_ends_of_a_long_text_are_searched(size: int) -> None:
    assert local_reset("resets 7pm" + " x" * size) == "2026-11-15 19:00"
    assert local_reset("x " * size + "resets 7pm") == "2026-11-15 19:00"


@each_row(
    "text",
    [
        "try again in 999999999 days",
        "try again in 9" + "9" * 5000 + " hours",
        "retry-after: " + "9" * 5000,
        "resetsAt: " + "9" * 5000,
        "resets Oct 9, 99999 10am",
        "resets 99999-01-01T00:00:00Z",
        "resets 0000-01-01",
        "resets 0001-01-01T00:00:00+14:00",
        "resets 99:99:99",
        "resets 00/00",
        "resets ٣pm",
        "resets \ud800 3\udfff",
    ],
)
def test_absurd_times_give_none(text: str) -> None:
    assert local_reset(text) is None


def test_times_after_the_last_date_give_none() -> None:
    last = datetime.max.replace(tzinfo=UTC)
    texts = ["resets 3pm", "resets Dec 1", "resets Monday", "tomorrow", "in 1s", "resets 3pm EST"]
    assert [reset_time(text, last) for text in texts] == [None] * len(texts)


@each_row(
    "piece",
    [
        "reset ",
        "until ",
        "resets at at at at ",
        "reset::::",
        "reset-",
        "reset when your a a ",
        "resets 1h1h1h ",
        "resets Oct 9, 2026, 10am ",
        "resets Mon 1 Jan 2026 3pm UTC+2 ",
        "resets 3pm (Area{}/Town) ",
        "resets 3pm (Town{}) ",
        "resets 3pm (AAA ",
        "1,234",
        "half an ",
        "9",
        "\\",
        "\\n",
        "\x1b[",
        "\x1b]0;",
        "\u202f",
    ],
)
def test_hostile_text_is_read_in_less_than_a_second(piece: str) -> None:
    text = "".join(piece.format(number) for number in range(200_000 // len(piece)))
    reset_time(text[:100], SUNDAY_EVENING)
    started = time.process_time()
    reset_time(text, SUNDAY_EVENING)
    assert time.process_time() - started < 1  # usually 15 times faster


MOMENTS = st.integers(946_684_800, 3_786_912_000).map(lambda at: datetime.fromtimestamp(at, UTC))
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])


@given(now=MOMENTS, local=ZONES, zone=ZONES, hour=st.integers(0, 23), minute=st.integers(0, 59))
@examples(300)
def test_time_of_day_is_within_one_day_in_the_zone_of_the_message(
    now: datetime, local: str, zone: str, hour: int, minute: int
) -> None:
    found = reset_time(f"resets at {hour}:{minute:02} ({zone})", now.astimezone(ZoneInfo(local)))
    assert found is not None
    # A time that has just passed counts as over, not as tomorrow's.
    assert now - timedelta(minutes=15) < found <= now + timedelta(hours=25)
    shown = found.astimezone(ZoneInfo(zone))
    late = (shown.hour * 60 + shown.minute - hour * 60 - minute) % 1440
    assert late in {0, 1, 30, 60}  # a time lasts one minute, and skipped hours shift it


@given(moment=MOMENTS, offset=st.integers(-14 * 60, 14 * 60))
@examples()
def test_iso_time_is_read_exactly(moment: datetime, offset: int) -> None:
    there = moment.astimezone(timezone(timedelta(minutes=offset)))
    assert reset_time(f"resets at {there.isoformat()}.", SUNDAY_EVENING) == moment


PIECES = st.sampled_from(
    """reset resets retry again until wait at in on after for ago Oct Feb 9 29 30 2026 99999 3pm
    15:30 12am noon tomorrow Monday an hour 5m 1h30m 2.5s 1794769200 1794769200000 (UTC)
    (Europe/Berlin) (Nowhere) PST Z +02:00 -99 GMT+5 2026-11-15 11/17 T : | , . ( ) / -
    retry-after: \\n \\
    """.split()  # noqa: SIM905 - more readable than a list
)


@pytest.mark.real
@given(pieces=st.lists(PIECES | st.text(max_size=3), max_size=20), glue=st.sampled_from(["", " "]))
@examples(500)
@example(pieces=["resets", "3pm", "(\x00)"], glue=" ")
def test_reset_time_never_raises(pieces: list[str], glue: str) -> None:
    found = reset_time(glue.join(pieces), SUNDAY_EVENING)
    assert found is None or found.utcoffset() == timedelta(0)


def test_time_a_few_minutes_ago_is_over_and_not_tomorrow() -> None:
    now = datetime(2026, 11, 16, 0, 5, tzinfo=BERLIN)
    assert local_reset("resets 12am", now) == "2026-11-16 00:00"
    assert local_reset("resets 11:55pm", now) == "2026-11-15 23:55"
    assert local_reset("resets 11:45pm", now) == "2026-11-16 23:45"


def test_date_less_than_a_day_ago_is_over_and_not_next_year() -> None:
    now = datetime(2026, 11, 15, 18, 36, tzinfo=BERLIN)
    assert local_reset("resets Nov 15 at 11:14 AM", now) == "2026-11-15 11:14"
    assert local_reset("resets Nov 14 at 11:14 AM", now) == "2027-11-14 11:14"


@each_row(
    "words,seconds",
    [
        ("retry after 20s", 20.0),
        ("Please try again in 1.5 seconds", 1.5),
        ("try again in 3 hours 5 minutes", 11100.0),
        ("retry-after: 2", 2.0),
        ("resets 11:14am (UTC)", None),
        ("try again at 5pm", None),
        ("resets tomorrow at 3am", None),
        ("limit reached|1794725026", None),
        ("try again later", None),
        ("", None),
    ],
)
def test_requested_delay_is_none_for_a_time_of_day(words: str, seconds: float | None) -> None:
    assert requested_delay(words) == seconds
