"""The contract as JSON schema, from which the page's TypeScript types are generated: `python -m compiler.schema`."""

from __future__ import annotations

import json
import sys
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import models_json_schema

from compiler.events import VERSION, Body, Event, RunRequest
from compiler.ir.comparison import RunComparison
from compiler.ir.payloads import PAYLOADS
from compiler.text import Frozen


def contract() -> dict[str, Any]:
    """One schema whose definitions are everything that travels. Every field is required: what is sent is sent whole."""
    models: list[type[Frozen]] = [Event, RunRequest, RunComparison, *PAYLOADS.values()]
    _, schema = models_json_schema([(model, "serialization") for model in models], ref_template="#/definitions/{model}")
    definitions: dict[str, Any] = schema.pop("$defs")
    body = TypeAdapter(Body).json_schema(mode="serialization", ref_template="#/definitions/{model}")
    body.pop("$defs")
    definitions |= {"Body": body, "Payloads": _payloads()}
    del definitions["Event"]["properties"]["body"]
    for name, definition in definitions.items():
        if "properties" in definition:
            optional = {"compile", "stage"} if name == "Event" else set()
            definition["required"] = [key for key in definition["properties"] if key not in optional]
            for field in definition["properties"].values():
                field.pop("title", None)
    definitions["Envelope"] = definitions.pop("Event") | {"title": "Envelope"}
    return {
        "title": "Contract",
        "type": "object",
        "properties": {
            name: {"$ref": f"#/definitions/{name}"}
            for name in ("Envelope", "Body", "RunRequest", "RunComparison", "Payloads", "StageName")
        }
        | {"version": {"const": VERSION}},
        "additionalProperties": False,
        "definitions": definitions,
    }


def _payloads() -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {kind: {"$ref": f"#/definitions/{model.__name__}"} for kind, model in PAYLOADS.items()},
        "additionalProperties": False,
    }


if __name__ == "__main__":
    json.dump(contract(), sys.stdout, indent=1, sort_keys=True)
