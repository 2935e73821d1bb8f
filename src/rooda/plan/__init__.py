"""What was asked: layers of settings that know their origin, checked before the first agent."""
