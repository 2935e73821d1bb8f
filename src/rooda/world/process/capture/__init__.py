"""What a program prints: read from files or pipes, kept in bounded memory and on a bounded disk."""
