"""When things run: taking sessions in, watching for their end, the worker in the background."""
