"""The sandbox: which part of the machine an agent and its tests can see and change."""
