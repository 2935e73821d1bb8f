"""Where people and browsers ask: the commands, the pages, and what all of them share."""
