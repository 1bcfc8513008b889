"""Describe the server as an OpenAPI document."""

from __future__ import annotations

from typing import Any

from sigma_run import Trained
from sigma_serve.bodies import CSV, JSON, column_names

ERRORS = {
    400: "The body is not JSON.",
    401: "The token is missing or wrong.",
    413: "The body is too large, or has too many rows.",
    415: "The body is neither JSON nor CSV.",
    422: "The rows do not fit the network.",
}


def describe_api(model: Trained, name: str, most: int, locked: bool) -> dict[str, Any]:
    """Return the document for a network, which takes this many rows a request."""
    unit = {
        "get": {
            "security": [],
            "summary": "Whether the server answers, and with which checkpoint.",
            **_describe_answer(JSON),
        }
    }
    counts = {
        "get": {"summary": "Requests, errors, rows and seconds, for Prometheus.", **_describe_answer("text/plain")}
    }
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": name, "version": str(model.path.name), "description": str(model.network)},
        "paths": {"/predict": {"post": _predict(model, most)}, "/health": unit, "/metrics": counts},
    }
    if locked:
        document["components"] = {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}}
        document["security"] = [{"token": []}]
    return document


def _predict(model: Trained, most: int) -> dict[str, Any]:
    names = [*model.shapes]
    rows = {name: {"type": "array", "maxItems": most, "items": _row(model, name)} for name in names}
    if len(names) == 1:
        (only,) = rows.values()
        body: dict[str, Any] = {"oneOf": [{"type": "object", "properties": {"rows": only}, "required": ["rows"]}, only]}
    else:
        body = {"type": "object", "properties": rows, "required": names}
    answers = {"200": {"description": "One prediction for each row.", "content": {JSON: {"schema": ANSWER}, CSV: {}}}}
    refused = {"type": "object", "properties": {"error": {"type": "string"}}}
    for status, why in ERRORS.items():
        answers[str(status)] = {"description": why, "content": {JSON: {"schema": refused}}}
    top = {"name": "top", "in": "query", "description": "List this many classes.", "schema": {"type": "integer"}}
    return {
        "summary": "Predict for rows.",
        "parameters": [top],
        "requestBody": {"required": True, "content": {JSON: {"schema": body}, CSV: {"schema": {"type": "string"}}}},
        "responses": answers,
    }


def _row(model: Trained, section: str) -> dict[str, Any]:
    """Return the schema of a row: numbers in lists, or values by column."""
    numbers: dict[str, Any] = {"type": "number"}
    for size in reversed(model.shapes[section]):
        numbers = {"type": "array", "minItems": size, "maxItems": size, "items": numbers}
    if not (names := column_names(model, section)):
        return numbers
    values = {"type": ["number", "string", "boolean", "null"]}
    columns = dict.fromkeys(names, values)
    return {"oneOf": [{"type": "object", "properties": columns}, numbers]}


def _describe_answer(kind: str) -> dict[str, Any]:
    return {"responses": {"200": {"description": "Always.", "content": {kind: {}}}}}


ANSWER = {
    "type": "object",
    "properties": {
        "predictions": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "row": {"type": "integer"},
                    "class": {"type": "integer"},
                    "label": {"type": ["string", "number", "boolean"]},
                    "probability": {"type": "number"},
                    "probabilities": {"type": "array", "items": {"type": "number"}},
                    "values": {},
                    "columns": {"type": "array", "items": {"type": "string"}},
                },
            },
        }
    },
}
