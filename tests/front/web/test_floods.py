"""`rooda web` under load: floods, readers that never read, and broken records."""

import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from support.children import until
from support.gitwork import GitWork
from support.states import state_of
from support.webwork import Site, obedient_run, web, work_with_a_run

pytestmark = pytest.mark.real


WORDS = "words of the agent"


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitWork]:
    with work_with_a_run(tmp_path_factory.mktemp("web"), WORDS) as found:
        yield found


@pytest.fixture(scope="module")
def site(work: GitWork) -> Iterator[Site]:
    with web(work) as found:
        yield found


@pytest.mark.long
def test_half_sent_requests_keep_no_other_reader_out(site: Site) -> None:
    with ExitStack() as stack:
        for number in range(300):
            connection = stack.enter_context(site.connect())
            with suppress(BrokenPipeError, ConnectionResetError):  # one connection too many
                connection.sendall(site.request("/api/runs")[: 5 + number % 60])
        until(lambda: _is_answered(site), "a whole request is answered")
    assert site.get("/api/runs").status == 200


def test_three_hundred_readers_at_once_are_served_or_refused_and_the_server_goes_on(
    site: Site, work: GitWork
) -> None:
    path = f"/api/live/run/{site.place(work.reader.run().run)}"
    with ExitStack() as stack:
        readers = [stack.enter_context(site.connect()) for _ in range(300)]
        for reader in readers:
            with suppress(BrokenPipeError, ConnectionResetError):
                reader.sendall(site.request(path))
        said = [_first_bytes(reader) for reader in readers]
        served = [one for one in said if one.startswith(b"HTTP/1.1 200")]
        assert 100 <= len(served) <= 200
        rest = [one for one in said if one and not one.startswith(b"HTTP/1.1 200")]
        assert all(one.startswith(b"HTTP/1.1 503") for one in rest), rest
    until(lambda: _is_answered(site), "a reader is served again")


def _first_bytes(reader: socket.socket) -> bytes:
    try:
        return reader.recv(30)
    except ConnectionResetError:
        return b""


def _is_answered(site: Site) -> bool:
    try:
        return site.get("/api/runs").status == 200
    except OSError:
        return False


# What an agent can do to the record of its own work tree.
BREAK = {
    "a pipe": "rm -f {db}*; mkfifo {db}",
    "garbage": "rm -f {db}-*; head -c 100000 /dev/urandom > {db}",
    "pipes instead of files": "for one in $(find $(dirname {db})/runs -type f); do"
    " rm $one; mkfifo $one; done",
}


@pytest.mark.long
def test_work_tree_with_a_broken_record_hides_no_other(site: Site, work: GitWork) -> None:
    good = site.place(work.reader.run().run)
    broken = []
    for name, command in BREAK.items():
        tree = replace(work, path=work.path.parent / name.replace(" ", "-"), started=[])
        work.git("clone", "-q", str(work.path), str(tree.path), cwd=work.path.parent)
        assert tree.work(work.agent("echo '<promise>SUCCESS</promise>'")).code == 0
        broken.append(site.place(tree.reader.run().run))
        path = state_of(tree.path) / "rooda.db"
        subprocess.run(["sh", "-ec", command.format(db=path)], check=True)
    for _ in range(2):  # a thread that waits for a pipe would be lost
        for place in broken:
            for kind in ("run", "report", "live/run"):
                with site.connect() as connection:
                    connection.sendall(site.request(f"/api/{kind}/{place}"))
                    assert connection.recv(12) in {b"HTTP/1.1 200", b"HTTP/1.1 404"}, place
            assert site.get(f"/api/iteration/{place}/1").status in {200, 404}
        assert good in site.runs()
        assert site.get(f"/api/iteration/{good}/1").status == 200
    assert "Traceback" not in site.errors.read_text()


@pytest.mark.long
def test_reader_that_never_reads_is_dropped_and_delays_neither_the_run_nor_others(
    site: Site, work: GitWork, tmp_path: Path
) -> None:
    flood = tmp_path / "flood"
    flood.write_text(("forty characters that an agent could say" * 2 + "\n") * 12_000)
    with obedient_run(work, "-n", "200") as agent, ExitStack() as stack:
        path = f"/api/live/run/{site.place(agent.run)}"
        stuck = stack.enter_context(site.connect(receive_buffer=1024))
        stuck.sendall(site.request(path))
        other = site.follow(path)
        stack.callback(other.close)
        iteration = 1
        while site.still_has(stuck):
            agent.does(f"cat {flood}; echo end of {iteration}.")
            other.words(f"end of {iteration}.")
            assert iteration < 100, "it is still connected"
            iteration += 1
            agent.ends_iteration()
        agent.says("after the drop")
        other.words("after the drop")
        agent.ends()
        done = agent.running.finish()
        assert done.code == 0, done.err
        other.read(lambda one: "success" in one.get("html", ""))
        assert site.get(path.replace("/live", "")).status == 200
