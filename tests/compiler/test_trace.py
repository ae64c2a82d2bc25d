"""Torch's structured trace, as it is kept."""

from __future__ import annotations

from functools import partial

from torch._logging import structured, trace_structured

from compiler.torch_compat.trace import Trace
from tests.compiler.traces import read


def test_records_are_kept_in_torchs_form_and_the_processs_tables_are_put_back() -> None:
    strings = structured.INTERN_TABLE
    trace = Trace()
    for text in ("one\ntwo", "three"):
        with trace.recording():
            trace_structured("artifact", lambda: {"name": "x", "encoding": "string"}, payload_fn=partial(str, text))
    trace_structured("artifact", lambda: {"name": "after", "encoding": "string"}, payload_fn=lambda: "no")
    kept = trace.payload("capture")
    found = [(one.name, one.payload) for one in read(kept.text) if one.kind == "artifact"]
    assert found[0][0] == "torch_version"
    assert found[1:] == [("x", "one\ntwo"), ("x", "three")]
    assert (kept.cut, kept.records) == (False, len(read(kept.text)))
    assert structured.INTERN_TABLE is strings


def test_a_trace_that_is_too_long_is_cut_between_records() -> None:
    trace = Trace(limit=2000)
    with trace.recording():
        for _ in range(20):
            trace_structured("artifact", lambda: {"name": "x", "encoding": "string"}, payload_fn=lambda: "y" * 500)
    kept = trace.payload("native")
    assert kept.cut
    assert len(kept.text) <= 2000
    assert 0 < kept.records == len(read(kept.text)) < 20
