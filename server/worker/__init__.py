"""The worker: takes runs from the queue, has them run by sandboxed children, writes what they say."""
