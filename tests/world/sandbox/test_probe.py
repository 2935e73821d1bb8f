"""What bubblewrap prints where it does not work becomes a cause and a fix, in plain words."""

import pytest

from rooda.world.sandbox.probe import find_bwrap, why_not
from rooda.world.sandbox.sandbox_plan import SandboxError
from rooda.world.tools import Tools


@pytest.mark.parametrize(
    "said,cause,fix",
    [
        (
            "bwrap: No permissions to create new namespace, likely because the kernel ...",
            "this container or kernel does not allow user namespaces",
            "seccomp=unconfined",
        ),
        (
            "bwrap: Creating new namespace failed: max_user_namespaces exceeded (ENOSPC)",
            "no more user namespaces are allowed here",
            "within the outer sandbox",
        ),
        (
            "bwrap: Can't mount proc on /newroot/proc: Operation not permitted",
            "this container masks parts of /proc",
            "systempaths=unconfined",
        ),
        (
            "bwrap: setting up uid map: Permission denied",
            "the system forbids user namespaces to bubblewrap",
            "AppArmor profile",
        ),
        (
            "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted",
            "the system forbids user namespaces to bubblewrap",
            "AppArmor profile",
        ),
        ("bwrap: Unknown option --disable-userns", "bubblewrap is too old", "0.8 or newer"),
        ("warning\nbwrap: something new", ": something new", "bwrap --unshare-user"),
    ],
)
def test_words_of_bubblewrap_name_the_cause_and_the_fix(said: str, cause: str, fix: str) -> None:
    error = why_not(said)
    assert str(error).startswith("sandbox bwrap does not work here")
    assert cause in str(error)
    assert fix in error.fix


def test_machine_without_bubblewrap_learns_how_to_install_it() -> None:
    with pytest.raises(SandboxError, match="needs bubblewrap, which is not installed") as raised:
        find_bwrap(Tools({"PATH": "/nonexistent"}))
    assert "apt-get install bubblewrap" in raised.value.fix
