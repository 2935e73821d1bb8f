"""The variables that a program sees in a sandbox: those that it needs, and those that rooda sets.

bubblewrap itself gets this environment: programs inside can read that of bubblewrap.
"""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from rooda.world.agents.containment import NETWORK_VARIABLES, SandboxNeeds

_PASSED = (
    *("PATH", "HOME", "LANG", "LANGUAGE", "LC_*", "TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR"),
    *("TZ", "USER", "LOGNAME", "SHELL", "CI", "EDITOR"),
    *("PYENV_ROOT", "PYENV_VERSION", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "GOROOT", "JAVA_HOME"),
    *("NVM_DIR", "NVM_BIN", "VOLTA_HOME", "BUN_INSTALL", "PNPM_HOME", "VIRTUAL_ENV"),
    *("ROODA_RUN", "ROODA_TOKEN"),  # not ROODA_*: a setting of the fleet may have a password
    *("ROODA_SLOT", "ROODA_PORT_BASE", "COMPOSE_PROJECT_NAME"),
    *NETWORK_VARIABLES,
)


def inside(
    environ: Mapping[str, str],
    outside: Mapping[str, str],
    names: Iterable[str],
    needs: SandboxNeeds,
) -> dict[str, str]:
    """Return the variables of `environ` that pass in.

    What differs from the environment `outside` was set by rooda or by a setting, for this program.
    `names` (with *) are those that the user lets in.
    """
    patterns = (*_PASSED, *names, *needs.variables)
    exact = {one for one in patterns if "*" not in one}
    wild = [one for one in patterns if "*" in one]
    passed = {
        name: value
        for name, value in environ.items()
        if name in exact
        or outside.get(name) != value
        or any(fnmatchcase(name, one) for one in wild)
    }
    return {**passed, **needs.environ}


def of_loader(environ: Mapping[str, str]) -> list[str]:
    """Return the variables with which bubblewrap itself would load code, before it shuts anything.

    They can name files of the work tree.
    """
    return [name for name in environ if name.startswith("LD_") or name == "GLIBC_TUNABLES"]


def with_git_settings(
    environ: Mapping[str, str], settings: Iterable[tuple[str, str]]
) -> dict[str, str]:
    """Return the environment with settings of git added to those that it has already."""
    given = environ.get("GIT_CONFIG_COUNT", "0")
    number = int(given) if given.isdecimal() else 0
    found = dict(environ)
    for key, value in settings:
        found[f"GIT_CONFIG_KEY_{number}"] = key
        found[f"GIT_CONFIG_VALUE_{number}"] = value
        number += 1
    found["GIT_CONFIG_COUNT"] = str(number)
    return found
