"""Who is there, who belongs to whom, and how to signal exactly one of them."""
