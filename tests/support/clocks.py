"""The five clocks of the tests, and the CPU part of the idle evidence."""

from rooda.world.process.clocks import Clock, Since

FIRST = Clock("first_output_timeout", 5, Since.FIRST_OUTPUT)
IDLE = Clock("idle_timeout", 10, Since.ACTIVITY)
ITERATION = Clock("iteration_timeout", 60, Since.START)
GRACE = Clock("result_grace", 30, Since.RESULT)
DURATION = Clock("max_duration", 90, Since.START)
CLOCKS = (FIRST, IDLE, ITERATION, GRACE, DURATION)

CPU = "its processes used {:.2f}s of CPU time between the last two checks"
