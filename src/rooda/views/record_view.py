"""The record for people: lists of runs and iterations, one run, one iteration."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from rooda.agents.failure_kinds import known_kind
from rooda.text.controls import clean, one_line, shown_words
from rooda.text.numbers import count, usage_words
from rooda.text.times import format_duration
from rooda.views.terminal import render_table

Object = Mapping[str, Any]
_FILES = 20  # that are listed by name


def moment(text: str | None) -> str:
    """A time of the record, as people read it here."""
    if not text:
        return "-"
    try:
        return f"{datetime.fromisoformat(text).astimezone():%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError):
        return text


def runs(found: Sequence[Object]) -> str:
    """One line a run, newest first."""
    titles = ("RUN", "STARTED", "PROCEDURE", "STATUS", "ITERATIONS", "TIME", "WHY")
    rows = [
        (
            str(run["run"]),
            moment(run["started_at"]),
            str(run["procedure"]),
            str(run["status"]),
            str(run["summary"]["total_iterations"]),
            format_duration(run["summary"]["total_duration_ms"] / 1000),
            one_line(str(run["reason"] or "")),
        )
        for run in found
    ]
    return render_table(titles, rows)


def run(found: Object, iterations: Sequence[Object]) -> str:
    """One run: what it was, and a line for each of its iterations."""
    summary = found["summary"]
    tests = f"{summary['total_tests_passed']} of {summary['total_tests_run']} passed"
    good = summary["successful_iterations"]
    bad = summary["failed_iterations"] + summary["timed_out_iterations"]
    about = [
        ("Run", found["run"]),
        ("Procedure", found["procedure"]),
        ("Status", _status(found)),
        ("Why", one_line(found["reason"] or "") or "-"),
        ("Started", moment(found["started_at"])),
        ("Ended", moment(found["ended_at"])),
        ("Command", one_line(found["command"] or "-")),
        *([] if found["flags"] is None else [("Flags", shown_words(found["flags"]) or "none")]),
        ("Iterations", f"{summary['total_iterations']} ({good} good, {bad} failed)"),
        ("Files", _counts_of_files(summary)),
    ]
    if summary["total_tests_run"]:
        about.append(("Tests", tests))
    if used := usage_words(found["tokens"], found["cost"]):
        about.append(("Used", used))
    about += [("Waited", _waited(wait)) for wait in grouped_waits(found["waits"] or ())]
    about += [
        ("Changed", f"iteration {one['iteration']}: {one['agent']} for {one['before']}")
        for one in found["agents_changed"] or ()
    ]
    text = render_table((), about)
    hooks = _hooks(found)
    if iterations:
        text += "\n" + iteration_list(iterations)
    return text + hooks


def _waited(wait: Object) -> str:
    where = f"iteration {wait['iteration']}, {wait['kind']} of {one_line(str(wait['what']))}"
    return f"{where}: {waited(wait)}"


def grouped_waits(waits: Sequence[Object]) -> list[Object]:
    """The waits of a run; those for the same outage become one, the last, with the sum of them."""
    found: list[Object] = []
    for wait in waits:
        last = found[-1] if found else None
        if last is None or not _is_same_outage(last, wait):
            found.append(wait)
            continue
        number = last.get("number", 1) + 1
        total = last.get("total", last["waited"] or 0.0) + (wait["waited"] or 0.0)
        found[-1] = {**wait, "number": number, "total": total}
    return found


def _is_same_outage(before: Object, wait: Object) -> bool:
    """Whether one wait follows another of the same outage, whichever agent it was for."""
    lasted, lasted_before = wait.get("lasted"), before.get("lasted")
    if lasted is None or lasted_before is None:
        return False
    return bool(lasted > lasted_before and lasted >= lasted_before + (before["waited"] or 0.0))


def waited(wait: Object) -> str:
    """How long a run waited, or until when it means to."""
    if wait["waited"] is None:
        words = f"{format_duration(wait['seconds'])} until {moment(wait['until'])}"
    else:
        words = f"{format_duration(wait['waited'])} of {format_duration(wait['seconds'])}"
    if wait.get("number", 1) > 1:
        words = f"{wait['number']} waits of {format_duration(wait['total'])}, the last {words}"
    if wait.get("lasted") is None:
        return words
    lasted = format_duration(wait["lasted"] + (wait["waited"] or 0.0))
    return f"{words}, in an outage of {lasted}"


def _counts_of_files(summary: Object) -> str:
    created, modified = summary["total_files_created"], summary["total_files_modified"]
    return f"{created} created, {modified} modified"


def _status(found: Object) -> str:
    code = found["exit_code"]
    return f"{found['status']}" + ("" if code is None else f" (exit code {code})")


def iteration_list(iterations: Sequence[Object]) -> str:
    """One line an iteration."""
    titles = ("NO", "STATUS", "TIME", "FILES", "TESTS", "SUMMARY")
    rows = [
        (
            str(one["number"]),
            str(one["status"]),
            _duration(one),
            _files(one["result"]),
            _tests(one["result"]),
            one_line(_words(one)),
        )
        for one in iterations
    ]
    return render_table(titles, rows)


def named_attempts(attempts: Sequence[Object]) -> list[tuple[str, Object]]:
    """Earlier attempts and what to call them; the tries of one outage become one, the last."""
    found: list[tuple[int, Object]] = []
    for one in attempts:
        kind = known_kind(one["kind"])
        is_outage = kind is not None and kind.is_outage
        is_again = is_outage and bool(found) and one["kind"] == found[-1][1]["kind"]
        first = found.pop()[0] if is_again else one["attempt"]
        found.append((first, one))
    return [(_called(first, last["attempt"]), last) for first, last in found]


def _called(first: int, last: int) -> str:
    return f"Attempt {first}" if first == last else f"Attempts {first} to {last}"


def _attempt(one: Object) -> str:
    kind = f" ({one['kind']})" if one["kind"] else ""
    return f"{one['status']}{kind}, begun {moment(one['started_at'])}"


def _duration(one: Object) -> str:
    return "-" if one["duration"] is None else format_duration(one["duration"])


def _files(result: Object | None) -> str:
    if result is None:
        return "-"
    kinds = (("+", "files_created"), ("~", "files_modified"), ("-", "files_deleted"))
    return " ".join(f"{sign}{len(result[key])}" for sign, key in kinds if result[key]) or "none"


def _tests(result: Object | None) -> str:
    tests = result and result["test_results"]
    return "-" if not tests else f"{tests['passed']}/{tests['total']}"


def _words(one: Object) -> str:
    reason = "" if one["status"] == "completed" else one["reason"] or ""
    summary = (one["result"] or {}).get("summary") or ""
    return reason or summary


def iteration(found: Object) -> str:
    """One iteration with all that is known of it."""
    result = found["result"]
    number = found["number"]
    attempt = f" (attempt {found['attempt']})" if found["attempt"] > 1 else ""
    about: list[tuple[str, str]] = [
        ("Iteration", f"{number}{attempt}"),
        ("Status", str(found["status"])),
        ("Started", moment(found["started_at"])),
        ("Ended", moment(found["ended_at"])),
        ("Took", _duration(found)),
        *((name, _attempt(one)) for name, one in named_attempts(found["earlier_attempts"] or ())),
    ]
    if found["reason"]:
        about.append(("Why", one_line(found["reason"])))
    if found["signal"]:
        about.append(("Signal", found["signal"]))
    if result is not None:
        code = result["exit_code"]
        about.append(("Exit code", "-" if code is None else str(code)))
        about.append(("Progress", "yes" if result["progress_detected"] else "no"))
        if result["test_results"]:
            about.append(("Tests", _counted(result["test_results"])))
    about += [*_agent(found), *_deeds(found)]
    text = render_table((), about, whole=True)
    if result is not None:
        text += _file_lists(result)
        if result["test_results"]:
            text += _failed_tests(result["test_results"])
        if result["summary"]:
            text += "\nSummary:\n" + _indented(result["summary"])
    return text + _hooks(found)


def _agent(found: Object) -> Iterator[tuple[str, str]]:
    """What the agent's CLI tells of itself."""
    tokens = found["tokens"] or {}
    if found["model"]:
        yield "Model", one_line(found["model"])
    if used := usage_words(tokens.get("total"), found["cost"]):
        turns = f" in {count(found['turns'], 'turn')}" if found["turns"] else ""
        yield "Used", f"{used}{turns}"
    full = (found["result"] or {}).get("context_usage_percent")
    if full is not None:
        yield "Context", f"{full}% full"
    if found["session_id"]:
        yield "Session", one_line(found["session_id"])
    if found["incomplete"]:
        yield "Output", "incomplete: it ends without the agent's result"


def _counted(tests: Object) -> str:
    names = ("passed", "failed", "skipped")
    return f"{tests['total']}: " + ", ".join(f"{tests[name]} {name}" for name in names)


def _deeds(found: Object) -> list[tuple[str, str]]:
    """What the loop did around the agent."""
    deeds: list[tuple[str, str]] = []
    if verify := found["verify"]:
        deeds.append(("Verify", f"{verify['error'] or 'passed'} ({one_line(verify['command'])})"))
    if commit := found["commit"]:
        deeds.append(("Commit", f"{commit['commit'][:12]} {one_line(commit['message'])}"))
    if push := found["push"]:
        deeds.append(("Push", f"{push['branch']} to {push['remote']}"))
    for name, key in (("Commit", "commit_failed"), ("Push", "push_failed")):
        if failed := found[key]:
            deeds.append((name, f"failed: {one_line(failed['error'])}"))
    if stopped := found["cleaned_up"]:
        names = ", ".join(f"{one['name']} (pid {one['pid']})" for one in stopped)
        deeds.append(("Cleaned up", one_line(names)))
    if (snapshot := found["snapshot"]) and snapshot["commit"]:
        deeds.append(("Snapshot", snapshot["commit"][:12]))
        if snapshot["left_out"]:
            deeds.append(("Left out", one_line(", ".join(snapshot["left_out"]))))
    return [*deeds, *_oddities(found)]


def _oddities(found: Object) -> Iterator[tuple[str, str]]:
    if found["returned_to"] is not None:
        yield "Tree", f"the same as after iteration {found['returned_to']}"
    if found["changes_unknown"]:
        yield "Changes", f"unknown: {one_line(found['changes_unknown'])}"


def _file_lists(result: Object) -> str:
    text = ""
    for title, key in (
        ("Created", "files_created"),
        ("Modified", "files_modified"),
        ("Deleted", "files_deleted"),
    ):
        names = result[key]
        if names:
            shown = [one_line(name) for name in names[:_FILES]]
            more = [f"... {count(len(names) - _FILES, 'more')}"] if len(names) > _FILES else []
            text += f"\n{title}:\n" + "".join(f"  {name}\n" for name in shown + more)
    return text


def _failed_tests(tests: Object) -> str:
    bad = [one for one in tests["details"] if one["status"] in ("failed", "error")]
    if not bad:
        return ""
    lines = [
        f"  {one_line(one['name'])}" + (f": {one_line(one['error'])}" if one["error"] else "")
        for one in bad[:_FILES]
    ]
    more = [f"  ... {len(bad) - _FILES} more"] if len(bad) > _FILES else []
    return "\nFailed tests:\n" + "\n".join(lines + more) + "\n"


def _hooks(found: Object) -> str:
    hooks = found["hooks"] or []
    if not hooks:
        return ""
    rows = [
        (hook["hook"], hook["error"] or "ok", format_duration(hook["duration"]), hook["command"])
        for hook in hooks
    ]
    return "\n" + render_table(("HOOK", "END", "TIME", "COMMAND"), rows)


def _indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in clean(text).splitlines())
