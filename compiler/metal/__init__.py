"""One Triton kernel of a run, down to the metal: a phase of its own, asked for one kernel at a time.

`locations` and `occupancy` know texts and figures only; `build` asks Triton, through `torch_compat/triton_build.py`.
"""
