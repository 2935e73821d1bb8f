"""What one iteration of a loop did, as records that the engine, the store and the API share."""
