"""The processes of a worker: slots, turns of runs, the durable engine, and their heart."""
