"""Start a program, follow what it prints, keep time, stop it. Knows nothing of agents or loops."""
