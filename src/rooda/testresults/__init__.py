"""Read test results out of what an agent printed: pure, bounded, and in linear time."""
