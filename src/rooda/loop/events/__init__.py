"""What happens in a run and its iterations: typed events with their words."""
