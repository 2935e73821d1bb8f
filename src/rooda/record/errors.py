"""What can be wrong with a record, in words for people."""


class StoreError(Exception):
    """The record can't be opened or read; the message says why and what to do."""


class NoRecord(StoreError):  # noqa: N818 - what was found
    """There is no such run, or none at all."""
