"""Give large pieces of memory back to the system as soon as they are not needed."""

import ctypes

_MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of mallopt(3)
_LARGE = 256 * 1024


def give_back_at_once() -> None:
    """Without this, glibc learns from the first large piece that is freed to keep all later ones.

    An agent that floods us would cost ten megabytes more at the moment when its end is joined.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):  # another C library
        return
    mallopt(_MMAP_THRESHOLD, _LARGE)
