"""The plan's schema at work: problems in words, and the defaults."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from saltern.problem import Problem

Schema = Mapping[str, Any]


Path = tuple[Any, ...]


@dataclass(frozen=True)
class Fault:
    """A problem, and the part of the plan that cannot be used for it (empty: all of it)."""

    problem: Problem
    part: Path
    unnamed: bool = False  # not even its name can be used


def faults(schema: Schema, plan: Any) -> list[Fault]:
    """Everything in the plan that the schema refuses."""
    found = list(_odd_keys(plan, ()))
    texts_only = _without(plan, found) if found else plan
    errors = Draft202012Validator(schema).iter_errors(texts_only)
    return found + [fault for error in errors for fault in _faults_of(error)]


def usable(schema: Schema, plan: Any, entries: Iterable[str]) -> Any:
    """A copy of the plan without what the schema refuses, so that the rest can be checked too.

    entries: sections of named entries; there an entry with a fault becomes None, so that it stays
        known by name
    """
    while True:
        found = [
            fault
            for fault in faults(schema, plan)
            if fault.unnamed or _value(plan, fault.part) is not None
        ]
        if not found:
            return plan
        plan = _without(plan, found, entries)


def _without(plan: Any, found: Iterable[Fault], entries: Iterable[str] = ()) -> Any:
    copied = copy.deepcopy(plan)
    for fault in found:
        part = fault.part
        is_entry = len(part) > 1 and part[0] in entries and not fault.unnamed
        if is_entry and _value(copied, part[:2]) is not None:
            copied[part[0]][part[1]] = None
        else:
            _remove(copied, part)
    return copied


def _value(place: Any, part: Path) -> Any:
    for key in part:
        try:
            place = place[key]
        except (KeyError, IndexError, TypeError):
            return None
    return place


def _remove(place: Any, part: Path) -> None:
    """Take a key out of its map; a whole list for one of its items."""
    parent = _value(place, part[:-1])
    if isinstance(parent, dict):
        parent.pop(part[-1], None)
    elif isinstance(parent, list):
        _remove(place, part[:-1])


def with_defaults(schema: Schema, plan: Any) -> Any:
    """The plan with each missing key that has a default."""
    return _filled(schema, schema, copy.deepcopy(plan))


def path(parts: Iterable[Any]) -> str:
    """A key path as people write it: hosts:node01:roles."""
    return ":".join(str(part) for part in parts) or "saltern"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _odd_keys(value: Any, at: Path) -> Iterator[Fault]:
    """Keys that YAML did not read as text; Slurm and the schema know only text."""
    if not isinstance(value, dict):
        return
    for key, item in value.items():
        if isinstance(key, str):
            yield from _odd_keys(item, (*at, key))
        else:
            found = f"the key {key!r}, which is {_kind(key)}"
            problem = Problem(path([*at, key]), found, "a text", "put it in quotes")
            yield Fault(problem, (*at, key), unnamed=True)


def _faults_of(error: ValidationError) -> Iterator[Fault]:
    at: Path = tuple(error.absolute_path)
    kind, rule = str(error.validator), error.validator_value
    if kind == "additionalProperties":
        known = list(error.schema.get("properties", {}))
        for key in sorted(set(error.instance) - set(known)):
            near = get_close_matches(key, known, n=1)
            advice = f"did you mean {near[0]}?" if near else "remove it"
            expected = f"one of {', '.join(sorted(known))}"
            yield Fault(Problem(path([*at, key]), "an unknown key", expected, advice), (*at, key))
    elif kind == "required":
        for key in sorted(set(rule) - set(error.instance)):
            meaning = error.schema.get("properties", {}).get(key, {}).get("description", "")
            expected = f"a value ({meaning.rstrip('.')})" if meaning else "a value"
            yield Fault(Problem(path([*at, key]), "nothing", expected, "add the key"), at or (key,))
    elif "propertyNames" in error.schema_path:
        name = error.instance
        problem = Problem(
            path([*at, name]), f"the name {_shown(name)}", _rule(kind, rule), "rename it"
        )
        yield Fault(problem, (*at, name), unnamed=True)
    else:
        where = path(at)
        yield Fault(Problem(where, _found(where, error), _expected(error), _advice(error)), at)


def _found(where: str, error: ValidationError) -> str:
    if where.split(":", 1)[0] == "secrets":
        return "a value that is not shown"
    if error.validator == "type":
        return f"{_shown(error.instance)}, which is {_kind(error.instance)}"
    return _shown(error.instance)


def _kind(value: Any) -> str:
    names = {
        dict: "a map",
        list: "a list",
        str: "a text",
        bool: "true or false",
        type(None): "nothing",
    }
    return names.get(
        type(value), "a number" if isinstance(value, (int, float)) else f"a {type(value).__name__}"
    )


def _advice(error: ValidationError) -> str:
    """YAML reads 13 as a number and 1:00:00 as 3600."""
    scalar = not isinstance(error.instance, (dict, list, str, type(None)))
    return (
        "put it in quotes"
        if error.validator == "type" and error.validator_value == "string" and scalar
        else ""
    )


def _expected(error: ValidationError) -> str:
    meaning = error.schema.get("description")
    rule = _rule(str(error.validator), error.validator_value)
    return f"{rule} ({meaning.rstrip('.')})" if meaning else rule


_TYPES = {
    "object": "a map",
    "array": "a list",
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


_WORDS: Mapping[str, Callable[[Any], str]] = {
    "type": lambda rule: " or ".join(_TYPES[name] for name in _listed(rule)),
    "enum": lambda rule: f"one of {', '.join(str(item) for item in rule)}",
    "const": lambda rule: f"{rule!r}",
    "pattern": lambda rule: f"text like {rule}",
    "minimum": lambda rule: f"at least {rule}",
    "maximum": lambda rule: f"at most {rule}",
    "exclusiveMinimum": lambda rule: f"more than {rule}",
    "minLength": lambda rule: f"at least {rule} characters",
    "maxLength": lambda rule: f"at most {rule} characters",
    "minItems": lambda rule: f"at least {rule} item{'' if rule == 1 else 's'}",
    "minProperties": lambda rule: f"at least {rule} entr{'y' if rule == 1 else 'ies'}",
    "uniqueItems": lambda rule: "no item twice",
    "oneOf": lambda rule: " or ".join(_option(item) for item in rule),
}


def _rule(kind: str, rule: Any) -> str:
    return _WORDS[kind](rule) if kind in _WORDS else f"{kind} {rule}"


def _option(schema: Schema) -> str:
    kind = "const" if "const" in schema else "type"
    return _rule(kind, schema[kind])


def _filled(schema: Schema, root: Schema, value: Any) -> Any:
    schema = _resolved(schema, root)
    if not isinstance(value, dict):
        return value
    known = schema.get("properties", {})
    for key, below in known.items():
        default = _resolved(below, root)
        if key not in value and "default" in default:
            value[key] = copy.deepcopy(default["default"])
        if key in value:
            value[key] = _filled(below, root, value[key])
    others = schema.get("additionalProperties")
    if isinstance(others, Mapping):
        for key in value.keys() - known.keys():
            value[key] = _filled(others, root, value[key])
    return value


def _resolved(schema: Schema, root: Schema) -> Schema:
    if "$ref" not in schema:
        return schema
    target: Any = root
    for part in schema["$ref"].removeprefix("#/").split("/"):
        target = target[part]
    return {**target, **{key: item for key, item in schema.items() if key != "$ref"}}
