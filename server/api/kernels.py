"""`/api/v1/runs/{id}/kernels`: one kernel of a run down to machine code, as a derived run."""

from __future__ import annotations

from typing import Annotated

import orjson
from fastapi import APIRouter, Body, Depends, Query, Response
from pydantic import Field

from compiler.events import RunRequest, load_event
from compiler.ir.code import CodePayload
from compiler.ir.schedule import KernelsPayload
from compiler.targets import BY_ID
from compiler.text import Frozen, message
from server.api.runs import Submitted, enqueue, in_pace
from server.context import Shared, over
from server.errors import ApiError, ErrorBody
from server.kernels import UnaskableError, UnknownKernelError, generated, question

router = APIRouter(tags=["runs"])


class KernelAsked(Frozen):
    """A kernel by its entity, and which of its configurations to compile."""

    kernel: str = Field(max_length=1000)
    config: int = Field(0, ge=0, le=10_000)


@router.post(
    "/api/v1/runs/{id}/kernels",
    dependencies=[Depends(in_pace)],
    status_code=202,
    responses={
        200: {"model": Submitted, "description": "`reuse`: the finished run of the same question."},
        404: {"model": ErrorBody, "description": "There is no such run, or it is over and has no such kernel."},
        413: {"model": ErrorBody},
        409: {
            "model": ErrorBody,
            "description": "The run is for no GPU; the kernel is not Triton's; the run goes on and has no such kernel yet; or no "
            "worker serves its target.",
        },
        429: {"model": ErrorBody, "description": "As for `POST /api/v1/runs`."},
    },
)
def ask(
    id: str,
    asked: Annotated[KernelAsked, Body(examples=[{"kernel": "0_0/codegen/forward/triton_poi_fused_0", "config": 0}])],
    shared: Shared,
    response: Response,
    reuse: Annotated[
        bool, Query(description="Answer with the finished run of the same question, if there is one.")
    ] = True,
) -> Submitted:
    """Compile one Triton kernel of a run for the run's target, in a run of its own whose `question.parent` is this one. Its
    artifact `metal` holds every level, linked line by line."""
    parent = shared.run(id)
    if BY_ID[parent.request.options.target].kind == "cpu":
        raise ApiError(409, message("metal.no_target", target=parent.request.options.target))
    try:
        events = (load_event(orjson.loads(text)) for _seq, text in shared.runs.events(id))
        code, kernels = generated(events, asked.kernel)
        made = question(
            id,
            asked.kernel,
            asked.config,
            CodePayload.model_validate_json(shared.artifacts.get(code.hash)),
            KernelsPayload.model_validate_json(shared.artifacts.get(kernels.hash)),
        )
    except UnknownKernelError as fault:
        over(parent)  # in one that goes on it may still come
        raise ApiError(404, fault.cause) from None
    except UnaskableError as fault:
        raise ApiError(409, fault.cause) from None
    request = RunRequest(source=parent.request.source, options=parent.request.options, question=made)
    return enqueue(request, shared, response, reuse)
