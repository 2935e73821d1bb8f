"""Send one message to one target: a process of its own, which can't take longer than its limit.

The job comes on standard input, so that no address is in a command line or an environment. The
kernel ends the process after the limit, also inside of a call that never returns.
"""

import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rooda.base.service_addresses import HIDDEN, secrets_of

LIMIT = 20  # seconds
_LONGEST_REASON = 300  # characters
UNKNOWN = "apprise does not know this kind of address, or a part of it is missing"


def main() -> None:
    """Do the job; print nothing if it succeeded, else why not."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
    signal.alarm(LIMIT)
    reason = outcome_of(json.loads(sys.stdin.buffer.read()))
    with contextlib.suppress(OSError):
        os.write(1, reason.encode("utf-8", "replace"))


def outcome_of(job: Mapping[str, Any]) -> str:
    """Return why the job failed, without secrets; "" if it succeeded.

    A job that checks addresses returns the numbers of those that can't be used.
    """
    try:
        if job.get("argv"):
            reason = _show(job["argv"], job)
        elif "check" in job:
            return "\n".join(unusable(job["check"]))
        else:
            reason = _send(job["url"], job)
    except Exception as error:  # noqa: BLE001 - a bug of a service's plugin is no failure of rooda
        reason = f"{type(error).__name__} in the package that sends it"
    return _without_secrets(reason, job.get("url", ""))[:_LONGEST_REASON]


def unusable(urls: Sequence[str]) -> list[str]:
    """Return the numbers, from 1 on, of the addresses to which apprise can't send."""
    with _quiet():
        import apprise  # noqa: PLC0415 - it takes a quarter of a second

        make = apprise.Apprise.instantiate
        known = [make(url, suppress_exceptions=True) is not None for url in urls]
    return [str(number) for number, one in enumerate(known, 1) if not one]


def _send(url: str, job: Mapping[str, Any]) -> str:
    with _quiet() as told:
        import apprise  # noqa: PLC0415 - see above

        asset = apprise.AppriseAsset(app_id="rooda", app_desc="rooda", async_mode=False)
        service = apprise.Apprise(asset=asset)
        if not service.add(url):
            return UNKNOWN
        is_sent = service.notify(
            body=job["body"],
            title=job["title"],
            notify_type=job["kind"],
            body_format="text",
            interpret_escapes=False,
        )
    if is_sent:
        return ""
    return told[0] if told else "the service did not accept the message"


class _Told(logging.Handler):
    """Keeps what the package warns about."""

    def __init__(self, told: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._told = told

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the words."""
        self._told.append(record.getMessage())


@contextlib.contextmanager
def _quiet() -> Any:
    """Yield the list of what the package warns about; it prints nothing itself."""
    told: list[str] = []
    handler, logger = _Told(told), logging.getLogger("apprise")
    logger.addHandler(handler)
    before, logger.propagate = logger.propagate, False
    try:
        yield told
    finally:
        logger.removeHandler(handler)
        logger.propagate = before


def _show(argv: Sequence[str], job: Mapping[str, Any]) -> str:
    """Run the program of the desktop; the kernel ends it with this process's group."""
    try:
        done = subprocess.run(
            [*argv, job["title"], job["body"]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
            timeout=LIMIT - 2,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {LIMIT} seconds"
    except OSError as error:
        return f"can't be started: {error.strerror}"
    if done.returncode == 0:
        return ""
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return said[-1] if said else f"exit code {done.returncode}"


def _without_secrets(reason: str, url: str) -> str:
    words = " ".join(reason.split())
    for secret in sorted(secrets_of(url), key=len, reverse=True) if url else ():
        words = words.replace(secret, HIDDEN)
    return words


if __name__ == "__main__":
    main()
