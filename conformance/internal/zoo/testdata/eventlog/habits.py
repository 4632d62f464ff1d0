"""Habits that are right and unusual: what they change of an endpoint."""

HABITS = {
    "no-event-for-equal-rows": lambda endpoint: None,
    "log-is-compacted": lambda endpoint: None,
    "batches-of-seven": lambda endpoint: endpoint.speed.update(maximum_batch_size=7),
}
