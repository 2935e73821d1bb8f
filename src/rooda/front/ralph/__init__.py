"""The second front: plan, build and prompt modes on the same engine."""
