"""Read test results out of what an agent printed: pure, bounded, and in linear time."""

from rooda.testresults.junit_xml import read_xml
from rooda.testresults.read import read, read_bytes

__all__ = ["read", "read_bytes", "read_xml"]
