"""The HTTP service, the store, the worker and the command line. Never imports torch."""
