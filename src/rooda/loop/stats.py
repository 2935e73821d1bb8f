"""Statistics of iteration times in constant memory (Welford's method)."""

import math

from msgspec import Struct


class Stats(Struct, frozen=True):
    """Count, extremes, mean and spread of the durations so far, in seconds."""

    count: int = 0
    total: float = 0.0
    minimum: float = 0.0
    maximum: float = 0.0
    mean: float = 0.0
    m2: float = 0.0

    def add(self, seconds: float) -> "Stats":
        """The statistics with one more duration."""
        count = self.count + 1
        before = seconds - self.mean
        mean = self.mean + before / count
        return Stats(
            count,
            self.total + seconds,
            min(self.minimum, seconds) if self.count else seconds,
            max(self.maximum, seconds),
            mean,
            # The old mean on one side and the new mean on the other: that is the method.
            self.m2 + before * (seconds - mean),
        )

    def summary(self) -> dict[str, float | None]:
        """What others may see of it; `m2` is the method's own."""
        names = ("count", "total", "minimum", "maximum", "mean", "stddev")
        return {name: getattr(self, name) for name in names}

    @property
    def stddev(self) -> float | None:
        """The population standard deviation; unknown before the second duration."""
        return math.sqrt(self.m2 / self.count) if self.count > 1 else None
