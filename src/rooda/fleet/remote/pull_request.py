"""`finish: pr`: a pull request for a run that ended as success, through `gh`.

Doing it twice makes one pull request. A failure loses nothing: the branch of the run stays.
"""

import re
import tempfile
from pathlib import Path

import msgspec
from msgspec import Struct

from rooda.base.controls import clean, one_line
from rooda.base.numbers import count, money
from rooda.base.secrets.masking import Masker
from rooda.base.secrets.sensitive import without_secret_values
from rooda.fleet.place import local_folder, without_credentials
from rooda.fleet.remote.server import NAME, transport
from rooda.fleet.run_model import BRANCHES, FleetTask
from rooda.world.git.git import INHERITED, Git, GitError
from rooda.world.process.exits import Exited, describe
from rooda.world.tools import Command, Tools

_PATIENCE = 120.0  # seconds for one call of gh
_LONGEST_TITLE, _LONGEST_TEXT, _LONGEST_WORDS = 120, 4000, 2000  # characters
_UNATTENDED = {
    "GH_PROMPT_DISABLED": "1",
    "GH_NO_UPDATE_NOTIFIER": "1",
    "NO_COLOR": "1",
    "GH_PAGER": "cat",
}
# https://host/owner/name.git, ssh://git@host:22/owner/name, git@host:owner/name
_ADDRESS = re.compile(
    r"(?:(?:https?|ssh|git)://(?:[^@/]*@)?(?P<host>[^/:]+)(?::\d+)?/"
    r"|(?:[^@/]*@)?(?P<short>[^/:]+):/?)(?P<path>[^/]+/[^/]+?)(?:\.git)?/?"
)
_NUMBER = re.compile(r"(https?://\S+/pull/(\d+))")
_INSTALL = "install gh (https://cli.github.com) and log in: gh auth login"


class NotFinished(Exception):  # noqa: N818 - what happened
    """Why there is no pull request, and what to do."""


class PullRequest(Struct, frozen=True):
    """A pull request as `gh` names it."""

    number: int
    url: str


class _Found(Struct, frozen=True):
    number: int
    url: str
    state: str = ""
    headRefOid: str = ""  # noqa: N815 - the name that gh gives it


class Description(Struct, frozen=True):
    """The title and the text of a pull request."""

    title: str
    body: str


def describe_run(
    task: FleetTask,
    run: str,
    *,
    iterations: int,
    cost: float | None = None,
    words: str = "",
    masker: Masker | None = None,
) -> Description:
    """Return title and text: what the user wanted, what it took, and the agent's last words.

    The words of an agent are in a block in which they are nothing but text: they mention no person,
    close no issue, and show no secret.
    """
    mask = (masker or Masker()).text
    title = one_line(mask(without_secret_values(task.title or task.name)))[:_LONGEST_TITLE]
    took = count(iterations, "iteration")
    if cost is not None:
        took += f", {money(cost)}"
    parts = [f"Made by rooda in run `{run}`: {took}."]
    if text := _cut(mask(task.text), _LONGEST_TEXT):
        parts += ["## Task", text]
    if said := _cut(mask(words), _LONGEST_WORDS):
        fence = "`" * max(3, 1 + max((len(ticks) for ticks in re.findall("`+", said)), default=0))
        parts += ["## What the agent said", f"{fence}text\n{said}\n{fence}"]
    return Description(title or run, "\n\n".join(parts) + "\n")


def _cut(text: str, most: int) -> str:
    plain = without_secret_values(clean(text)).strip()
    return plain if len(plain) <= most else f"{plain[:most].rstrip()} ..."


def trouble_ahead(url: str, tools: Tools) -> str:
    """Return why no run could become a pull request from this machine; empty if nothing is seen.

    Nothing is asked of the network.
    """
    try:
        _means(url, tools)
    except NotFinished as error:
        return str(error)
    return ""


def _means(url: str, tools: Tools) -> tuple[str, str, str]:
    """Return the address for pull requests, its name for gh, and gh. Raises NotFinished."""
    hosting = _hosting(url, tools)
    place = _ADDRESS.fullmatch(hosting)
    if place is None:
        raise NotFinished(
            f"{without_credentials(hosting)} is not the address of a repository that gh knows: "
            "open the pull request by hand"
        )
    program = tools.find("gh")
    if program is None:
        raise NotFinished(f"gh is not installed: {_INSTALL}")
    return hosting, f"{place['host'] or place['short']}/{place['path']}", program


def open_pull_request(
    run: str,
    tip: str,
    base: str,
    description: Description,
    *,
    url: str,
    git_dir: Path,
    tools: Tools,
) -> PullRequest:
    """Return the pull request of a run; make it if there is none yet. Raises NotFinished.

    `url` is the remote of the fleet. If that is a folder of this machine, the branch is pushed to
    the `origin` of that repository first. `git_dir` is a repository that has the commit `tip`.
    """
    hosting, name, program = _means(url, tools)
    if hosting != url:
        _push(run, tip, hosting, git_dir, tools)
    gh = _Gh(program, name, tools)
    return gh.find(run, tip) or gh.create(run, tip, base, description)


def _hosting(url: str, tools: Tools) -> str:
    """Return the address of the repository with the pull requests."""
    folder = local_folder(url)
    if folder is None:
        return url
    git = Git(folder, tools)
    try:
        found = (git.ask("config", f"remote.origin.{key}") for key in ("pushurl", "url"))
        hosting = next((one for one in found if one), None)
    except GitError as error:
        raise NotFinished(f"git does not tell where {folder} comes from: {error}") from None
    if hosting is None:
        raise NotFinished(f"{folder} has no remote `origin`: add one (git remote add origin URL)")
    return hosting


def _push(run: str, tip: str, hosting: str, git_dir: Path, tools: Tools) -> None:
    """Push the branch of a run; one that is elsewhere on the server is not overwritten."""
    _, mover = transport(hosting, git_dir, tools)
    words = ("push", "--quiet", "--no-verify", "--no-signed", "--no-follow-tags", NAME)
    try:
        mover(*words, f"{tip}:{BRANCHES}{run}", umask=INHERITED)
    except GitError as error:
        raise NotFinished(
            f"the branch rooda/{run} was not pushed to {without_credentials(hosting)}: "
            f"{without_credentials(str(error))}"
        ) from None


class _Gh:
    """Calls gh for one repository, in an empty folder: it writes nothing into a repository."""

    def __init__(self, program: str, repository: str, tools: Tools) -> None:
        self._program = program
        self._repository = repository
        self._tools = tools

    def find(self, run: str, tip: str) -> PullRequest | None:
        """Return the pull request that is open for the branch, or was made for this commit."""
        fields = ("--json", "number,url,state,headRefOid", "--state", "all", "--limit", "30")
        said = self._call("list", "--head", f"rooda/{run}", *fields)
        try:
            found = msgspec.json.decode(said, type=list[_Found])
        except msgspec.MsgspecError as error:
            raise NotFinished(f"gh pr list printed something else than expected: {error}") from None
        fitting = (one for one in found if one.state == "OPEN" or one.headRefOid == tip)
        return next((PullRequest(one.number, one.url) for one in fitting), None)

    def create(self, run: str, tip: str, base: str, description: Description) -> PullRequest:
        """Make the pull request; if gh fails, look whether it was made all the same."""
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".md") as body:
            body.write(description.body)
            body.flush()
            words = ("--head", f"rooda/{run}", "--base", base, "--title", description.title)
            try:
                said = self._call("create", *words, "--body-file", body.name)
            except NotFinished as error:
                if (made := self.find(run, tip)) is None:
                    raise error from None
                return made
        if (told := _NUMBER.search(said.decode("utf-8", "replace"))) is not None:
            return PullRequest(int(told[2]), one_line(told[1]))
        if (made := self.find(run, tip)) is None:
            raise NotFinished("gh pr create did not tell the pull request")
        return made

    def _call(self, what: str, *words: str) -> bytes:
        """Return what `gh pr` prints. Raises NotFinished with its message."""
        printed: list[bytes] = []
        with tempfile.TemporaryDirectory(prefix="rooda-gh-") as folder:
            command = Command(
                what=f"gh pr {what}",
                argv=(self._program, "pr", what, "--repo", self._repository, *words),
                cwd=Path(folder),
                environ=_environ(self._tools),
                timeout=_PATIENCE,
                outside=True,
            )
            end, errors = self._tools.stream(command, printed.append)
        if end == Exited(0):
            return b"".join(printed)
        said = without_credentials(errors.decode("utf-8", "replace"))
        raise NotFinished(f"gh pr {what}: {said or describe(end)}")


def _environ(tools: Tools) -> dict[str, str]:
    """Return an environment in which gh asks nothing, and runs nothing of a work tree."""
    kept = {key: value for key, value in tools.environ.items() if not key.startswith("GIT_")}
    return {**kept, "PATH": tools.path, **_UNATTENDED}
