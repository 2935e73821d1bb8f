"""The runs of this machine, and one run as it goes on, for the views that stay open."""
