"""Ratios of two commands measured in one run: the machines are shared and noisy."""

import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path


def seconds(command: Sequence[str], cwd: Path) -> float:
    """Wall time of one command."""
    began = time.perf_counter()
    subprocess.run(
        command,
        cwd=cwd,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return time.perf_counter() - began


def cpu_seconds(command: Sequence[str], cwd: Path) -> float:
    """CPU time of one command and of every process that it waited for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds(command, cwd)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def alternate(ours: Callable[[], float], theirs: Callable[[], float], rounds: int) -> list[float]:
    """Medians of both, measured in turns, so that noise hits both alike."""
    pairs = [(ours(), theirs()) for _ in range(rounds)]
    return [statistics.median(column) for column in zip(*pairs, strict=True)]


def report(name: str, ours: float, theirs: float, unit: str, limit: float) -> bool:
    """Print one line; whether the ratio is within its limit."""
    ratio = ours / theirs
    word = "ok" if ratio <= limit else "TOO SLOW"
    print(f"{name}: {ours:.2f} {unit} / {theirs:.2f} {unit} = {ratio:.2f} (at most {limit}) {word}")
    return ratio <= limit
