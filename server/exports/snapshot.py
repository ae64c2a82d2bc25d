"""A memory timeline as a snapshot of PyTorch's allocator: the pickle that `torch.cuda._memory_viz` reads, as does pytorch.org.

The timeline is one of this product's (dry run, plan, or measured on the CPU); what a real allocator adds (rounding, caching,
fragmentation) is not in it, and its addresses are made up: first fit, in one segment.
"""

from __future__ import annotations

import pickle

from server.exports import Document, payloads

# Before the first byte, so that no block has the address 0.
_BASE = 1 << 32


def series(document: Document) -> list[str]:
    """Names of the timelines that a run has, the one to take first in front."""
    names = [_name(made) for _compile, made, _payload in payloads(document, "timeline")]
    return sorted(dict.fromkeys(names), key=lambda name: (name != "dry_run", name.startswith("plan")))


def snapshot(document: Document, name: str) -> bytes:
    """The pickle of one timeline. Raises LookupError when there is none of that name."""
    found = [payload for _compile, made, payload in payloads(document, "timeline") if _name(made) == name]
    if not found:
        raise LookupError(name)
    return pickle.dumps(_snapshot(found[-1]), protocol=4)


def _name(made: Document) -> str:
    return f"{made['name']}-{made['graph']}" if made["graph"] else str(made["name"])


def _snapshot(timeline: Document) -> Document:
    blocks, strings = timeline["blocks"], timeline["strings"]
    count = len(blocks["name"])
    points = len(timeline["points"]["live"])
    ends = [points if end < 0 else end for end in blocks["end"]]
    addresses = _addresses(blocks["start"], ends, blocks["bytes"])
    total = max((addresses[i] + blocks["bytes"][i] for i in range(count)), default=_BASE) - _BASE
    frames = [_frames(timeline, i) for i in range(count)]
    # At one point what ends goes before what begins.
    moments = [(ends[i], 0, i) for i in range(count) if ends[i] < points]
    moments += [(blocks["start"][i], 1, i) for i in range(count)]
    trace: list[Document] = [_entry("segment_alloc", _BASE, total, [], 0)] if total else []
    for at, begins, i in sorted(moments):
        actions = ("alloc",) if begins else ("free_requested", "free_completed")
        trace += [_entry(action, addresses[i], blocks["bytes"][i], frames[i], at) for action in actions]
    alive = sorted((addresses[i], i) for i in range(count) if ends[i] >= points and blocks["bytes"][i])
    laid: list[Document] = []
    at = _BASE
    for address, i in alive:
        if address > at:
            laid.append(_block(at, address - at, "inactive", []))
        laid.append(_block(address, blocks["bytes"][i], "active_allocated", frames[i]))
        at = address + blocks["bytes"][i]
    if at < _BASE + total:
        laid.append(_block(at, _BASE + total - at, "inactive", []))
    active = sum(blocks["bytes"][i] for _address, i in alive)
    segment = {
        "device": 0, "address": _BASE, "total_size": total, "allocated_size": active, "active_size": active,
        "requested_size": active, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False,
        "frames": [], "blocks": laid,
    }  # fmt: skip
    return {
        "segments": [segment] if total else [],
        "device_traces": [trace],
        "allocator_settings": {},
        "external_annotations": [],
        "aotscope": {"series": timeline["series"], "kinds": [strings[kind] for kind in blocks["kind"]]},
    }


def _entry(action: str, address: int, size: int, frames: list[Document], at: int) -> Document:
    return {"action": action, "addr": address, "size": size, "stream": 0, "frames": frames, "time_us": at, "device": 0}


def _block(address: int, size: int, state: str, frames: list[Document]) -> Document:
    return {"address": address, "size": size, "requested_size": size, "state": state, "frames": frames}


def _frames(timeline: Document, block: int) -> list[Document]:
    """Innermost first, as torch's: the tensor, then the line of the snippet where it is known."""
    blocks, strings = timeline["blocks"], timeline["strings"]
    name, module = strings[blocks["name"][block]], strings[blocks["module"][block]]
    made = [{"filename": module or strings[blocks["kind"][block]], "line": 0, "name": name}]
    if line := blocks["line"][block]:
        made.append({"filename": "snippet.py", "line": line, "name": module or name})
    return made


def _addresses(starts: list[int], ends: list[int], sizes: list[int]) -> list[int]:
    """An address for each block, such that none overlaps one that lives at the same time: the lowest that fits."""
    found = [_BASE] * len(starts)
    alive: list[int] = []  # by address
    for i in sorted(range(len(starts)), key=lambda block: (starts[block], block)):
        alive = [other for other in alive if ends[other] > starts[i]]
        at, place = _BASE, 0
        while place < len(alive) and found[alive[place]] - at < sizes[i]:
            at = max(at, found[alive[place]] + sizes[alive[place]])
            place += 1
        found[i] = at
        alive.insert(place, i)
    return found
