"""The warden: a small process that starts a program, adopts all it starts, and stops all of it.

The warden lives in a session of its own. When its channel closes, rooda has died or wants no more,
and the warden stops the program.
"""
