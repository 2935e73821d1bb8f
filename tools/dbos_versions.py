"""Test the durable engine with other versions of DBOS: `python -m tools.dbos_versions`.

rooda uses private parts of DBOS. These are the oldest and the newest version that rooda allows, as
far as the package index has them. Each goes into an environment of its own, and is deleted after.
"""

import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import venv
from importlib.metadata import version as installed_version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[1]
_PIP = ("-m", "pip", "--disable-pip-version-check")
_TESTS = "tests/fleet/worker/test_durable.py"
_KNOWN = "Available versions:"


class NotAvailable(Exception):  # noqa: N818 - what happened
    """A version can't be found or installed here."""


def allowed_versions() -> list[str]:
    """Return the oldest and the newest version that the index has and rooda allows."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = (Requirement(line) for line in extras["optional-dependencies"]["fleet"])
    allowed = next(one for one in needed if one.name == "dbos").specifier
    printed = _run(sys.executable, *_PIP, "index", "versions", "dbos")
    line = next((one for one in printed.splitlines() if one.startswith(_KNOWN)), "")
    found = sorted(Version(word) for word in line.removeprefix(_KNOWN).split(",") if word.strip())
    if fitting := [one for one in found if one in allowed]:
        return sorted({str(fitting[0]), str(fitting[-1])})
    raise NotAvailable("the package index has no version of dbos that rooda allows")


def is_installed(version: str) -> bool:
    """Return whether the tests of the project run with this version anyway."""
    return installed_version("dbos") == version


def run_tests(version: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the tests of the engine with a version, in an environment in this folder."""
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    _run(python, *_PIP, "-q", "install", f"dbos=={version}", "psycopg[binary]>=3.1")
    ours = _run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    # Everything else comes from the environment of the project, after what was installed here.
    lines = [str(ROOT / "src"), sysconfig.get_path("purelib")]
    Path(ours, "project.pth").write_text("\n".join([*lines, ""]))
    check = f"from importlib.metadata import version as v; assert v('dbos') == '{version}'"
    _run(python, "-c", check)
    words = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", _TESTS]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)


def _run(*words: str) -> str:
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotAvailable(f"{' '.join(words[1:])} failed: {done.stderr[-500:]}")
    return done.stdout


def main() -> int:
    """Test every version that is to be tested; 0 if all tests passed."""
    for version in allowed_versions():
        sys.stdout.write(f"dbos {version}\n")
        with tempfile.TemporaryDirectory() as folder:
            done = run_tests(version, Path(folder))
        sys.stdout.write(done.stdout[-3000:])
        if done.returncode:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
