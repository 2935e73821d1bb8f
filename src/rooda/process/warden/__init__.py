"""The warden: a small process that starts a program, adopts all it starts, and stops all of it.

It lives in a session of its own and takes the end of its channel as the death of who it works for.
"""
