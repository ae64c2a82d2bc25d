"""What the stages make, as frozen values. Torch-free.

Every payload is a pydantic model whose `format` field is versioned; `PAYLOADS` (in `compiler/ir/payloads.py`) lists
them, and the page's TypeScript types are generated from it.
"""
