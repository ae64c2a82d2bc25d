"""Graph breaks, skipped frames, abandoned rests, recompile limits and failed backends, as torch's own objects.

Four places know of them, each of a part: the maker of the message (type, context, explanation, hints), the log of a break in
symbolic execution, the exception that leaves a frame, and the reason why a frame was not compiled. `torch._dynamo.explain`
and the counters miss some of each.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Literal

from torch._dynamo import convert_frame, exc
from torch._dynamo import symbolic_convert as symbolic
from torch._guards import TracingContext

from compiler.ir.dynamo import GraphBreak
from compiler.session import Sources
from compiler.torch_compat.dynamo import Guarded, snippet_line, stack_frames

Kind = Literal["break", "rest_of_function", "whole_function", "recompile_limit", "backend_failure", "skipped"]
Said = Callable[[GraphBreak, str, str], None]

_REST = "Encountered graph break that we cannot resume from"
_WHOLE = "Failed to handle graph break gracefully"
_LIMIT = "Dynamo recompile limit exceeded"
_BACKEND = "Backend compiler exception"
# Why a frame was not compiled, where that says nothing of the user's model: told elsewhere, or not a model's frame.
_SILENT = (
    "compilation failed with a custom frame execution strategy",
    "an error was suppressed during compilation",
    "frame is in the Dynamo skipfiles list",
    "frame is already Dynamo-generated code",
    "frame has already started executing",
)


class _BreakWatch:
    def __init__(self, said: Said, sources: Sources) -> None:
        self._said = said
        self._sources = sources
        # Message → its fields. Torch makes messages also for breaks that it then avoids, so only the latest are kept.
        self._fields: deque[tuple[str, dict[str, Any]]] = deque(maxlen=256)

    def made(self, text: str, gb_type: str, context: str, explanation: str, hints: list[str]) -> None:
        fields = {"gb_type": gb_type, "context": context, "explanation": explanation, "hints": list(hints)}
        self._fields.append((text, fields))

    def say(self, kind: Kind, error: BaseException, stack: Any, code: Any, fallback: str = "") -> None:
        """The place of a cause without a stack of the user's is the function that it struck."""
        text = str(getattr(error, "msg", None) or error)
        fields: dict[str, Any] = next((known for said, known in reversed(self._fields) if said in text), {})
        gb_type = str(fields.get("gb_type") or getattr(error, "gb_type", None) or type(error).__name__)
        frames = [frame for frame in stack_frames(stack or (), self._sources) if frame.user]
        line = snippet_line(frames, self._sources)
        where = f"{frames[-1].file}:{frames[-1].line}" if frames else self._place(code)
        if line is None and not frames and code.co_filename == self._sources.main:
            line = code.co_firstlineno
        found = GraphBreak(
            id="",
            kind=kind,
            gb_id=exc._load_gb_type_to_gb_id_map().get(gb_type, ""),
            gb_type=gb_type,
            reason=text.strip().split("\n", 1)[0],
            context=str(fields.get("context", "")),
            explanation=str(fields.get("explanation", "")),
            hints=[str(hint) for hint in fields.get("hints", ())],
            url=exc.get_gbid_documentation_link(gb_type) or "",
            line=line,
            function=code.co_name,
            stack=frames,
            text=text,
        )
        self._said(found, where, fallback)

    def _place(self, code: Any) -> str:
        return f"{self._sources.shown(code.co_filename)}:{code.co_firstlineno}"

    def logged(self, translator: Any, reason: str, error: Any, stack: Any) -> None:
        fallback = ""
        if reason.startswith(_REST):
            fallback = "rest_of_function"
        elif reason.startswith(_WHOLE) or getattr(error, "skip_frame", False):
            fallback = "whole_function"
        kind: Kind = "rest_of_function" if fallback == "rest_of_function" else "whole_function" if fallback else "break"
        if getattr(error, "gb_type", None) == _BACKEND:
            kind = "backend_failure"
        self.say(kind, error, stack, translator.f_code, fallback)

    def left(self, converter: Any, code: Any, error: Exception) -> None:
        """An exception left a frame that torch then gives to eager; one that is raised to the user is no fallback."""
        if converter._one_graph or converter._box.error_on_graph_break:
            return
        stack = getattr(error, "real_stack", None)
        if getattr(error, "gb_type", None) == _LIMIT:
            self.say("recompile_limit", error, None, code, "recompile_limit")
        elif isinstance(error, (exc.Unsupported, exc.UserError)):
            # Torch logs only what it began to trace; of a library's frames no more than that is worth a word.
            told = hasattr(error, "compile_id") or self._sources.is_user(code.co_filename)
            if told and not getattr(error, "logged", False):
                self.say("whole_function", error, stack, code, "whole_function")
        elif convert_frame.config.suppress_errors:
            self.say("whole_function", error, stack, code, "whole_function")

    def skipped(self, code: Any, reason: str) -> None:
        if reason in _SILENT or not self._sources.is_user(code.co_filename):
            return
        own = code.co_filename == self._sources.main
        self._said(
            GraphBreak(
                id="",
                kind="skipped",
                reason=reason.strip().split("\n", 1)[0],
                line=code.co_firstlineno if own else None,
                function=code.co_name,
                text=reason,
            ),
            self._place(code),
            "",
        )


def _user_stack(error: Any) -> list[Any]:
    """The user's stack of a break, with the frames above the one that is traced, resumed functions counted once."""
    stack = getattr(error, "real_stack", None)
    if stack is None:
        stack = TracingContext.extract_stack()
    return list(symbolic.collapse_resume_frames(symbolic.get_stack_above_dynamo() + stack))


@contextlib.contextmanager
def watching_breaks(said: Said, sources: Sources, guarded: Guarded) -> Iterator[None]:
    """While it lasts, `said(break, where, fallback)` is called each time that one strikes; ids are for the caller to
    give. `fallback` says what is given to eager: rest_of_function, whole_function, recompile_limit, or nothing."""
    watch = _BreakWatch(said, sources)
    format_message = exc.format_graph_break_message
    log_graph_break = symbolic.InstructionTranslatorBase.log_graph_break
    convert = convert_frame.ConvertFrameAssert.__call__
    catch = convert_frame.CatchErrorsWrapper.__call__

    def on_message(gb_type: str, context: str, explanation: str, hints: list[str]) -> str:
        text: str = format_message(gb_type, context, explanation, hints)
        watch.made(text, gb_type, context, explanation, hints)
        return text

    def on_log(self: Any, code_options: Any, reason: str, exc: Any) -> None:
        fresh = not exc.logged
        stack: list[Any] = []
        if fresh:
            with guarded():
                stack = _user_stack(exc)
        log_graph_break(self, code_options, reason, exc)
        if fresh:
            with guarded():
                watch.logged(self, reason, exc, stack)

    def on_convert(self: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return convert(self, frame, *args, **kwargs)
        except Exception as error:
            with guarded():
                watch.left(self, frame.f_code, error)
            raise

    def on_frame(self: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
        result = catch(self, frame, *args, **kwargs)
        if result is not None and result.skip_reason is not None and result.guarded_code is None:
            with guarded():
                watch.skipped(frame.f_code, result.skip_reason)
        return result

    exc.format_graph_break_message = on_message
    symbolic.InstructionTranslatorBase.log_graph_break = on_log
    convert_frame.ConvertFrameAssert.__call__ = on_convert
    convert_frame.CatchErrorsWrapper.__call__ = on_frame
    try:
        yield
    finally:
        exc.format_graph_break_message = format_message
        symbolic.InstructionTranslatorBase.log_graph_break = log_graph_break
        convert_frame.ConvertFrameAssert.__call__ = convert
        convert_frame.CatchErrorsWrapper.__call__ = catch
