"""Whether the code for a virtual GPU is the code that a machine with such a GPU makes: `python -m tests.gpu` (see `__main__.py`)."""
