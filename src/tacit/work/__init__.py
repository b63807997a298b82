"""When things run: sessions taken in, jobs in a durable queue, schedules, and the worker."""
