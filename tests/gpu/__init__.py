"""Whether the code for a virtual GPU is what a machine with such a GPU makes: `python -m tests.gpu` (see `__main__.py`)."""
