"""1 GB of output through rooda, by files and by pipes, against `agent > file; tail | grep`."""

import sysconfig
from pathlib import Path

from benchmarks.measure import alternate, report, seconds

LIMIT = 1.5

_AGENT = """\
#!/bin/sh
yes 'forty characters that an agent could say' | head -c 1073741824
echo '<promise>SUCCESS</promise>'
"""
_BASH = "./agent > file; tail -c 10M file | grep '<promise>SUCCESS</promise>'; rm file"


def measure(folder: Path) -> bool:
    agent = folder / "agent"
    agent.write_text(_AGENT)
    agent.chmod(0o755)
    rooda = str(Path(sysconfig.get_path("scripts")) / "rooda")
    results = []
    for capture in ("file", "pipe"):
        command = [rooda, "build", "--ai-cmd", "./agent", "--quiet", "--capture", capture]
        ours, theirs = alternate(
            lambda command=command: seconds(command, folder),  # type: ignore[misc]
            lambda: seconds(["bash", "-c", _BASH], folder),
            rounds=5,
        )
        name = f"1 GB by {capture}: rooda / agent > file; tail | grep"
        results.append(report(name, ours, theirs, "s", LIMIT))
    return all(results)
