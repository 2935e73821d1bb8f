"""What a program prints: taken from pipes or files, kept within bounds, in memory and on disk."""
