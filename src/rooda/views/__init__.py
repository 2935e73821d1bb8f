"""A recorded run as words, tables, pages and messages. Views only read."""
