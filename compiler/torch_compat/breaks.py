"""Graph breaks, skipped frames, abandoned rests, recompile limits and failed backends, as torch's own objects.

Four places know of them, each of a part: the maker of the message (type, context, explanation, hints), the log of a break in
symbolic execution, the exception that leaves a frame, and the reason why a frame was not compiled. `torch._dynamo.explain`
and the counters miss some of each.
"""

from __future__ import annotations

import contextlib
import re
import sys
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from torch._dynamo import convert_frame, exc
from torch._dynamo import symbolic_convert as symbolic
from torch._guards import TracingContext
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from compiler.ir.dynamo import GraphBreak, is_link
from compiler.ir.graph import StackFrame
from compiler.session import Sources
from compiler.torch_compat.dynamo import Guarded, snippet_line, stack_frames
from compiler.torch_compat.hooks import replaced

Kind = Literal["break", "rest_of_function", "whole_function", "recompile_limit", "backend_failure", "skipped"]
Said = Callable[[GraphBreak, str, str], None]

_REST = "Encountered graph break that we cannot resume from"
_WHOLE = "Failed to handle graph break gracefully"
_LIMIT = "Dynamo recompile limit exceeded"
_BACKEND = "Backend compiler exception"
_OURS = str(Path(__file__).parents[1])
_RESUMED = re.compile(r"torch_dynamo_resume_in_(.+)_at_\d+")
_MODE = "torch dispatch mode present"
_MORE = re.compile(r"For more information about this error, see: (https://\S+)")
# Why a frame was not compiled, where that says nothing of the user's model: told elsewhere, or not a model's frame.
_SILENT = (
    "compilation failed with a custom frame execution strategy",
    "an error was suppressed during compilation",
    "frame is in the Dynamo skipfiles list",
    "frame is already Dynamo-generated code",
    "frame has already started executing",
)


_DEFAULT_DEVICE = "torch/utils/_device.py"


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
        plain = self._sources.plain
        fields, first = self._made_of(text)
        gb_type = str(fields.get("gb_type") or getattr(error, "gb_type", None) or type(error).__name__)
        cause = str(first.get("gb_type", ""))
        cause = cause if cause != gb_type else ""
        frames = _from_user(stack_frames(stack or (), self._sources))
        # With a default device every call passes through there.
        whole = [frame for frame in frames if frame.file != _DEFAULT_DEVICE]
        frames = [frame for frame in whole if frame.user]
        line = snippet_line(frames, self._sources)
        where = f"{frames[-1].file}:{frames[-1].line}" if frames else self._place(code)
        if line is None and not frames and code.co_filename == self._sources.main:
            line = code.co_firstlineno
        library = f"{whole[-1].file}:{whole[-1].line}" if whole and not whole[-1].user else ""
        if fallback and not library and not self._sources.is_user(code.co_filename):
            library = self._place(code)  # the user's line led there; what is given to eager is the library's function
        if fallback and library:
            where = library
        found = GraphBreak(
            id="",
            kind=kind,
            gb_id=_gb_id(gb_type),
            gb_type=gb_type,
            reason=plain(text.strip().split("\n", 1)[0]),
            context=plain(str(fields.get("context", ""))),
            explanation=plain(str(fields.get("explanation", ""))),
            hints=[plain(hint) for hint in _hints(text, fields, first)],
            url=exc.get_gbid_documentation_link(gb_type) or _link(text),
            line=line,
            library=library,
            cause_type=cause,
            cause_gb_id=_gb_id(cause),
            function=frames[-1].function if frames and kind == "break" else code.co_name,
            stack=whole,
            text=plain(text),
        )
        self._said(found, where, fallback)

    def _made_of(self, text: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """The fields of the message that a text ends with, and of the one that it begins with: torch writes a break that it
        met while it handled another one after that one."""
        inside = [(text.index(said), fields) for said, fields in self._fields if said in text]
        if not inside:
            return {}, {}
        return inside[-1][1], min(inside, key=lambda one: one[0])[1]

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
        modes = ", ".join(type(mode).__name__ for mode in _get_current_dispatch_mode_stack())
        self._said(
            GraphBreak(
                id="",
                kind="skipped",
                reason=reason.strip().split("\n", 1)[0],
                context=modes if _MODE in reason else "",
                line=code.co_firstlineno if own else None,
                function=code.co_name,
                text=self._sources.plain(reason),
            ),
            self._place(code),
            "",
        )


@contextlib.contextmanager
def _counting_messages(messaged: Callable[[], None]) -> Iterator[None]:
    """`messaged()` for each message that torch has for its log `graph_breaks`, on or off. Two of its three places write it
    whatever the level is. `ConvertFrame` asks for the level first: that it asks is then the message, of what it handles."""

    def on_debug(debug: Callable[..., None]) -> Callable[..., None]:
        def counted(*args: Any, **kwargs: Any) -> None:
            debug(
                *args, **{**kwargs, "stacklevel": kwargs.get("stacklevel", 1) + 1}
            )  # the record's place stays torch's
            messaged()

        return counted

    def on_level(is_enabled: Callable[[int], bool]) -> Callable[[int], bool]:
        def asked(level: int) -> bool:
            enabled = is_enabled(level)
            error = sys.exc_info()[1]
            if not enabled and hasattr(error, "compile_id") and hasattr(error, "real_stack"):
                messaged()
            return enabled

        return asked

    with contextlib.ExitStack() as stack:
        for log in (exc.graph_breaks_log, symbolic.graph_break_log, convert_frame.graph_break_log):
            stack.enter_context(replaced(log, "debug", on_debug))
        stack.enter_context(replaced(convert_frame.graph_break_log, "isEnabledFor", on_level))
        yield


def _user_stack(error: Any) -> list[Any]:
    """The user's stack of a break, with the frames above the one that is traced, resumed functions counted once."""
    stack = getattr(error, "real_stack", None)
    if stack is None:
        stack = TracingContext.extract_stack()
    return _collapsed([*symbolic.get_stack_above_dynamo(), *stack])


def _collapsed(stack: list[Any]) -> list[Any]:
    """What Dynamo resumes after a break is called by what came before it: one function, shown once, as it is named. Torch's own
    `collapse_resume_frames` also takes a library's `forward` for the rest of the user's."""
    frames: list[Any] = []
    for frame in stack:
        if frame.filename.startswith(_OURS):  # the hooks that torch's frames go through
            continue
        name = own_name(frame.name)
        if name != frame.name and frames and frames[-1].name == name and frames[-1].filename == frame.filename:
            frames.pop()
        frames.append(traceback.FrameSummary(frame.filename, frame.lineno, name, line=frame.line))
    return frames


def own_name(name: str) -> str:
    """A function as its author calls it: what Dynamo resumes after a break is a part of it."""
    resumed = _RESUMED.fullmatch(name)
    return resumed[1] if resumed else name


def _from_user(stack: list[StackFrame]) -> list[StackFrame]:
    """Without what is above the user's first frame; nothing of a stack without any."""
    first = next((at for at, frame in enumerate(stack) if frame.user), len(stack))
    return stack[first:]


def _gb_id(gb_type: str) -> str:
    return str(exc._load_gb_type_to_gb_id_map().get(gb_type, ""))


def _hints(text: str, fields: dict[str, Any], first: dict[str, Any]) -> list[str]:
    """Torch's own, those of the first cause before those of what came of it."""
    found = [str(hint) for hint in (*first.get("hints", ()), *fields.get("hints", ()))]
    if not fields:  # errors of sizes have no hints, but a line that is one
        found = [line for line in text.splitlines() if line.startswith("consider ")]
    return list(dict.fromkeys(found))


def _link(text: str) -> str:
    found = _MORE.search(text)
    return found[1] if found and is_link(found[1]) else ""


@contextlib.contextmanager
def watching_breaks(said: Said, messaged: Callable[[], None], sources: Sources, guarded: Guarded) -> Iterator[None]:
    """While it lasts, `said(break, where, fallback)` is called each time that one strikes; ids are for the caller to
    give. `fallback` says what is given to eager: rest_of_function, whole_function, recompile_limit, or nothing.

    `messaged` is called for each message that torch's log `graph_breaks` has, or would have were it on: on, torch also writes
    more records of its structured trace."""
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

    # What torch tells of the user's stack ends where its own file begins, and this frame is above it (exc.filter_stack).
    on_frame.__code__ = on_frame.__code__.replace(co_filename=convert_frame.__file__)
    exc.format_graph_break_message = on_message
    symbolic.InstructionTranslatorBase.log_graph_break = on_log
    convert_frame.ConvertFrameAssert.__call__ = on_convert
    convert_frame.CatchErrorsWrapper.__call__ = on_frame
    try:
        with _counting_messages(messaged):
            yield
    finally:
        exc.format_graph_break_message = format_message
        symbolic.InstructionTranslatorBase.log_graph_break = log_graph_break
        convert_frame.ConvertFrameAssert.__call__ = convert
        convert_frame.CatchErrorsWrapper.__call__ = catch
