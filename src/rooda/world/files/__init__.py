"""The one door to folders whose content an agent controls."""
